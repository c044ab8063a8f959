//! What binaries and images a node gets, and how we know that they are the right ones.
//!
//! [`Lock`] is `cluster.lock.json`: every artifact of every supported Kubernetes version with its
//! sha256. [`Cache`] holds the bytes under their digest and gets what is missing from [`Sources`],
//! in the order the configuration gives: a bundle or mirror, the upstream release sites, or the Go
//! toolchain, whose builds are reproducible and therefore have a digest to be checked against.
//! Images are assembled from the same binaries ([`image_tar`]), so that no registry is needed.
//!
//! Architecture invariant: nothing leaves this module whose bytes do not have the digest in the
//! lock file. A file in the cache is whole or not there at all, whenever the process was killed.
//!
//! This module knows nothing of clusters, hosts and phases.

mod advisories;
mod apt;
mod archive;
mod bundle;
mod cache;
mod digest;
mod digest_origin;
mod download;
mod export;
mod fetch;
mod gobuild;
mod image;
mod keylock;
mod lock;
mod maintain;
mod overlay;
mod platform;
mod progress;
mod proxy;
mod reference;
mod registry_image;
mod resolved;
mod rootfs;
mod selection;
mod size;
mod sources;
mod tree;
mod unique;

pub use advisories::{Advisories, Advisory, describe as describe_advisories};
pub use apt::Distribution;
pub use archive::ImageArchive;
pub use cache::{Cache, CacheHealth};
pub use digest::{Digest, NotADigest};
pub use digest_origin::DigestOrigin;
pub use download::{Presence, find_blob, resume_url};
pub use export::{Exported, export_bundle, export_mirror};
pub use fetch::Blob;
pub use image::image_tar;
pub use lock::{BinarySpec, Cgo, ImageSpec, LARGEST, LOCK_FILE, Lock, Module, Pin, Pins, UpstreamSpec};
pub use maintain::{RecordedDigest, pin_upstream, rewrite_lock, write_lock};
pub use platform::Platform;
pub use progress::{NoProgress, Watch};
pub use proxy::{DownloadProxy, covers};
pub use reference::{describe_components, read_help, write_reference};
pub use registry_image::RegistryImage;
pub use resolved::ResolvedArtifacts;
pub use rootfs::{RootFs, host_root_digest};
pub use selection::{Artifact, ArtifactKind, BinaryArtifact, ImageArtifact, Selection, Variant};
pub use size::Size;
pub use sources::{Effort, Location, Source, Sources, blob_url};
pub use unique::Unique;
