//! The clouds: everything that differs between them, one directory each, behind [`Cloud`].
//!
//! Other modules ask a [`Target`] or a [`Cloud`] and never compare its name. A new cloud is a
//! directory here and its line in [`CLOUDS`]. Nothing here writes a file. Only APIs for volumes and
//! for DNS zones are asked, by hosts: those of clouds, and that of this machine's own hosts.

mod aws;
mod azure;
mod check;
mod dns_provider;
mod gce;
mod host;
mod http;
mod known_error;
mod local_volume;
mod machine_identity;
mod spec;
mod target;
mod volume;
mod volume_providers;
mod zone;

use std::fmt;
use zeroize::Zeroizing;

use crate::config::Settings;
use crate::error::{Error, Result};

#[cfg(test)]
pub(crate) use aws::{AwsEmulator, EmulatedMachine};
pub use known_error::{KnownError, known, naming};
pub use local_volume::{LocalVolume, LocalVolumeState, device_of};
pub use machine_identity::{
    FetchIdentity, IdentityIssuer, IdentityJudge, IdentityToken, MachineProof, MachineRole, OpenJudge, ProvenMachine,
};
pub(crate) use spec::Exposure;
pub use spec::{CONTROL_PLANE, CloudGroup, Site, Spec, WORKERS, member_name};
pub use target::Target;
pub(crate) use volume::has_form;
pub use volume::{Endpoints, VolumeApi, VolumeProvider, VolumeState};
pub use volume_providers::{find_volume_provider, require_volume, require_volume_provider};
pub use zone::{RecordKind, ZoneApi, ZoneName, ZoneRecords, quote, unquote};

use spec::{CloudSettings, Defaults};

/// Every cloud that turnup has a Terraform module for.
#[rustfmt::skip]
pub static CLOUDS: &[&dyn Cloud] = &[
    &gce::Gce,
    &aws::Aws,
    &azure::Azure,
];

/// The cloud whose zones this value of `phase1.dns.provider` means.
#[must_use]
pub fn find_by_dns(provider: &str) -> Option<&'static dyn Cloud> {
    CLOUDS.iter().copied().find(|cloud| cloud.dns_provider() == provider)
}

/// The cloud of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Cloud> {
    CLOUDS.iter().copied().find(|cloud| cloud.name() == name)
}

/// What one cloud is like.
pub trait Cloud: VolumeProvider {
    /// What the configuration asks of it: what hosts have that say nothing else, and the rest.
    #[doc(hidden)]
    fn read(&self, settings: &Settings) -> Result<(Defaults, Box<dyn CloudSettings>)>;

    /// The value of `phase1.dns.provider` whose zones its module writes.
    fn dns_provider(&self) -> &'static str;

    /// The forms of a zone's id, as [`VolumeProvider::volume_id_form`] has them.
    fn zone_id_forms(&self) -> &'static [&'static str];

    /// The API for the records of a zone, with the rights of the host's own identity.
    fn zone_api(&self, zone_id: &str, endpoints: &Endpoints) -> Result<Box<dyn ZoneApi>>;

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

    /// Those fields of the module's variable of its name that say what workers' machines are made
    /// of, beside those of each group.
    fn machine_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it makes another machine, from the latest template, in the place of one that has
    /// powered itself off.
    fn replaces_ended_machines(&self) -> bool {
        false
    }

    /// What lends a machine a key for buckets that speak S3, by its own identity; none where its
    /// machines have no such one.
    fn bucket_key(&self) -> Option<LendKey> {
        None
    }

    /// What lends a machine a token for containers of Azure Blob Storage, by its own identity; none
    /// where its machines have no such one.
    fn blob_token(&self) -> Option<LendToken> {
        None
    }

    /// What asks a machine's metadata service for a token that says which machine it is; none where
    /// no token says that.
    fn fetch_identity(&self) -> Option<FetchIdentity> {
        None
    }

    /// What asks a machine's metadata service for the provider ID of its Node; none where turnup
    /// brings no cloud controller manager.
    fn fetch_provider_id(&self) -> Option<FetchProviderId> {
        None
    }

    /// Whether its controller manager finds the machines of control-plane hosts for load balancers:
    /// some know machines by the names of their Nodes there.
    fn balances_control_plane(&self) -> bool {
        true
    }

    /// How the names end that it gives its machines and that its controller writes on Nodes.
    fn machine_domains(&self) -> &'static [&'static str] {
        &[]
    }

    /// What asks it whose token it is, where no signature says that by itself; with the rights of
    /// the host's own identity.
    fn identity_judge(&self) -> Option<OpenJudge> {
        None
    }

    /// What its machines, disks and the rest cost, as `src/cloud/<cloud>/prices.toml` has it; with
    /// the date and the region that the prices are of.
    fn price_list(&self) -> &'static str;
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

/// Asks the metadata service for a token that is good for some hours.
pub type LendToken = fn(&Endpoints) -> Result<Zeroizing<String>>;

/// Asks the metadata service which machine this is, in the form of a Node's `spec.providerID`.
pub type FetchProviderId = fn(&Endpoints) -> Result<String>;

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
