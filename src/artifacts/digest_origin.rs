//! Where the digests of the lock file come from: it says of each how far to trust it.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// How a digest became known; it says how far to trust it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DigestOrigin {
    /// A build from the Go module, which is reproducible.
    SourceBuild {
        /// The C compiler, linker and libraries that have a say in the bytes: `cpp-12
        /// 12.2.0-14+deb12u1, libc6-dev 2.36-9`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        c_toolchain: Option<String>,
    },
    /// An image that was assembled from binaries of this file.
    Assembled,
    /// The checksum file that the project publishes beside the release.
    ChecksumFile {
        /// Its address.
        url: String,
        /// When it was read.
        on: Date,
    },
    /// What others have recorded about the release; the project's own checksum file was not read.
    PublicRecord {
        /// Which records.
        note: String,
        /// When they were read.
        on: Date,
    },
    /// The file itself, as it came the first time: nothing vouches for it but the connection.
    FirstDownload {
        /// Where it came from.
        url: String,
        /// When.
        on: Date,
    },
}
