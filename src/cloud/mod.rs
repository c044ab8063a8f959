//! The clouds: everything that differs between them, one directory each, behind [`Cloud`].
//!
//! Other modules ask a [`Target`] or a [`Cloud`] and never compare its name. A new cloud is a
//! directory here and its line in [`CLOUDS`]. Nothing here writes a file; only the volumes' APIs
//! are asked, by the host that attaches one.

mod aws;
mod azure;
mod check;
mod dns_provider;
mod gce;
mod host;
mod http;
mod known_error;
mod spec;
mod target;
mod volume;

use std::fmt;
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::config::Settings;
use crate::error::{Error, Result};
use crate::inventory::volume::Volume;

pub use known_error::{KnownError, known, naming};
pub(crate) use spec::Exposure;
pub use spec::{CONTROL_PLANE, CloudGroup, Site, Spec, WORKERS};
pub use target::Target;
pub use volume::{Endpoints, VolumeApi, VolumeState, require_cloud, require_volume};

use spec::{CloudSettings, Defaults};

/// Every cloud that turnup has a Terraform module for.
#[rustfmt::skip]
pub static CLOUDS: &[&dyn Cloud] = &[
    &gce::Gce,
    &aws::Aws,
    &azure::Azure,
];

/// The cloud of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Cloud> {
    CLOUDS.iter().copied().find(|cloud| cloud.name() == name)
}

/// What one cloud is like.
pub trait Cloud: fmt::Debug + Sync {
    /// Its name as a target and in inventories: also that of its directories in `phases`,
    /// `templates` and here, and of the variable that its Terraform module has alone.
    fn name(&self) -> &'static str;

    /// What the configuration asks of it: what hosts have that say nothing else, and the rest.
    #[doc(hidden)]
    fn read(&self, settings: &Settings) -> Result<(Defaults, Box<dyn CloudSettings>)>;

    /// The value of `phase1.dns.provider` whose zones its module writes.
    fn dns_provider(&self) -> &'static str;

    /// Whether the zone that its module makes has the cluster's name, not only the domain's.
    fn zone_has_cluster_name(&self) -> bool {
        true
    }

    /// The largest user data in bytes, before it is encoded.
    fn user_data_limit(&self) -> usize;

    /// Names and addresses at which it tells a host what it is, beside 169.254.169.254.
    fn metadata_hosts(&self) -> &'static [&'static str];

    /// Where its Terraform provider looks for credentials: names of environment variables, `*` at
    /// the end for more.
    fn environment(&self) -> &'static [&'static str];

    /// Terraform's name of the backend that uses the same credentials.
    fn state_backend(&self) -> &'static str;

    /// What to do about errors that only it gives.
    fn known_errors(&self) -> &'static [KnownError];

    /// What makes it refuse to delete a resource: pairs of a type and an attribute that is true.
    /// A type without an attribute is a lock: a resource of its own that protects others.
    fn protections(&self) -> &'static [(&'static str, Option<&'static str>)] {
        &[]
    }

    /// The type of a resource that takes all that is in it along when it is deleted, volumes too.
    fn container(&self) -> Option<&'static str> {
        None
    }

    /// Terraform's type of the disks that its module makes for etcd.
    fn etcd_volume_type(&self) -> &'static str;

    /// The settings that attributes of such a disk come from, beside those that clouds share.
    fn etcd_volume_settings(&self) -> &'static [VolumeSetting];

    /// The form of a volume's id; `*` stands for one or more bytes that are no `/`.
    fn volume_id_form(&self) -> &'static str;

    /// The devices that a volume can only be once this host has it, without an API call. None
    /// where only the API knows.
    fn local_devices(&self, volume: &Volume) -> Vec<PathBuf>;

    /// The API that attaches a volume to this host, with the rights of the host's own identity.
    fn volume_api<'v>(&self, volume: &'v Volume, endpoints: &Endpoints) -> Result<Box<dyn VolumeApi + 'v>>;

    /// What lends a machine a key for buckets that speak S3, by its own identity; none where its
    /// machines have no such one.
    fn bucket_key(&self) -> Option<LendKey> {
        None
    }

    /// What its machines, disks and the rest cost, as `src/cloud/<cloud>/prices.toml` has it; with
    /// the date and the region that the prices are of.
    fn price_list(&self) -> &'static str;

    /// The command by which an administrator detaches a volume from a dead machine.
    fn detach_command(&self, volume: &Volume, machine: &str) -> String;
}

/// What a machine's own identity is lent for some hours, to sign requests with.
pub struct LentKey {
    /// Its public part.
    pub id: String,
    /// Its secret one.
    pub secret: Zeroizing<String>,
    /// What shows that it is lent; empty for keys that are not.
    pub session: Zeroizing<String>,
}

/// Asks the metadata service for a key.
pub type LendKey = fn(&Endpoints) -> Result<LentKey>;

/// A setting that an attribute of a disk comes from.
#[derive(Clone, Copy, Debug)]
pub struct VolumeSetting {
    /// Terraform's name of the attribute.
    pub attribute: &'static str,
    /// The Kconfig symbol.
    pub setting: &'static str,
    /// The setting's value is the attribute's, so that a plan tells what it was.
    pub same_value: bool,
}

impl VolumeSetting {
    /// A setting whose value is the attribute's.
    #[must_use]
    pub const fn same(attribute: &'static str, setting: &'static str) -> Self {
        Self { attribute, setting, same_value: true }
    }

    /// A setting of which the attribute is made.
    #[must_use]
    pub const fn derived(attribute: &'static str, setting: &'static str) -> Self {
        Self { attribute, setting, same_value: false }
    }
}

/// A value that no module can use; the message begins with its key.
fn refused(key: &str, why: impl fmt::Display) -> Error {
    Error::config(format!("{key}: {why}"))
}
