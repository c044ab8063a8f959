//! Google Compute Engine: what it is called, what it takes, and what to do about its errors.
//!
//! `settings` is the part of its Terraform module, `machine_identity` by what its machines are
//! known, `metadata` what they are told of themselves, `volume` its API for volumes, `zone` that
//! for DNS zones.

mod machine_identity;
mod metadata;
mod settings;
mod volume;
mod zone;

use std::path::PathBuf;

use super::spec::{CloudSettings, Defaults};
use super::{
    Cloud, Endpoints, FetchIdentity, FetchProviderId, KnownError, VolumeApi, VolumeProvider, VolumeSetting, ZoneApi,
    known, naming,
};
use crate::config::Settings;
use crate::error::{Class, Result};
use crate::inventory::volume::Volume;

/// Google Compute Engine.
#[derive(Debug)]
pub(super) struct Gce;

impl VolumeProvider for Gce {
    fn name(&self) -> &'static str {
        "gce"
    }

    fn volume_id_form(&self) -> &'static str {
        "projects/*/zones/*/disks/*"
    }

    fn local_devices(&self, volume: &Volume) -> Vec<PathBuf> {
        volume::devices(volume)
    }

    fn volume_api<'v>(&self, volume: &'v Volume, endpoints: &Endpoints) -> Result<Box<dyn VolumeApi + 'v>> {
        Ok(Box::new(volume::Compute::new(volume, endpoints)?))
    }

    fn detach_command(&self, volume: &Volume, machine: &str) -> String {
        let parts = super::volume::parts(self.volume_id_form(), &volume.id);
        let zone = parts.and_then(|parts| parts.get(1).copied()).unwrap_or("ZONE");
        let name = machine.rsplit('/').next().unwrap_or(machine);
        format!("gcloud compute instances detach-disk {name} --disk={} --zone={zone}", volume.name)
    }
}

impl Cloud for Gce {
    fn read(&self, settings: &Settings) -> Result<(Defaults, Box<dyn CloudSettings>)> {
        let (defaults, own) = settings::read(settings)?;
        Ok((defaults, Box::new(own)))
    }

    fn dns_provider(&self) -> &'static str {
        "clouddns"
    }

    fn zone_id_forms(&self) -> &'static [&'static str] {
        &["projects/*/managedZones/*"]
    }

    fn zone_api(&self, zone_id: &str, endpoints: &Endpoints) -> Result<Box<dyn ZoneApi>> {
        Ok(Box::new(zone::CloudDns::new(zone_id, endpoints)?))
    }

    fn user_data_limit(&self) -> usize {
        // For one value of the metadata.
        256 << 10
    }

    fn metadata_hosts(&self) -> &'static [&'static str] {
        &["metadata.google.internal", "metadata"]
    }

    fn environment(&self) -> &'static [&'static str] {
        &["GOOGLE_*", "CLOUDSDK_*", "GCLOUD_*", "GCE_METADATA_*", "USER_PROJECT_OVERRIDE"]
    }

    fn state_backend(&self) -> &'static str {
        "gcs"
    }

    fn known_errors(&self) -> &'static [KnownError] {
        KNOWN_ERRORS
    }

    fn etcd_volume_type(&self) -> &'static str {
        "google_compute_disk"
    }

    fn etcd_volume_settings(&self) -> &'static [VolumeSetting] {
        ETCD_VOLUME_SETTINGS
    }

    fn machine_fields(&self) -> &'static [&'static str] {
        &[
            "network_tags",
            "disk_kms_key",
            "node_service_account",
            "os_login",
            "shielded_vm",
            "min_cpu_platform",
            "subnetwork",
        ]
    }

    fn replaces_ended_machines(&self) -> bool {
        // A managed instance group repairs what it has not stopped itself
        // (<https://cloud.google.com/compute/docs/instance-groups/about-repair>).
        true
    }

    fn fetch_identity(&self) -> Option<FetchIdentity> {
        Some(machine_identity::fetch)
    }

    fn fetch_provider_id(&self) -> Option<FetchProviderId> {
        Some(metadata::provider_id)
    }

    fn balances_control_plane(&self) -> bool {
        // Machines of the control plane end in something of Google's, and their Nodes do not.
        false
    }

    fn price_list(&self) -> &'static str {
        include_str!("prices.toml")
    }
}

/// The settings behind attributes of a disk of etcd.
const ETCD_VOLUME_SETTINGS: &[VolumeSetting] =
    &[VolumeSetting::same("type", "phase1.gce.etcd_volume_type"), VolumeSetting::same("project", "phase1.gce.project")];

/// Errors that only it gives; the first that fits counts.
const KNOWN_ERRORS: &[KnownError] = &[
    known(
        &[&["could not find default credentials"]],
        Class::Precondition,
        "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS=<key file of a service account>",
    ),
    known(
        &[&["oauth2", "token expired"], &["oauth2: cannot fetch token"]],
        Class::Precondition,
        "the login has expired: gcloud auth application-default login, then the same command again",
    ),
    naming(
        &[&["accessnotconfigured"], &["has not been used in project", "or it is disabled"]],
        Class::Precondition,
        "gcloud services enable {}, wait a minute, then the same command again",
        "enable the API that the message names, wait a minute, then the same command again",
        &[("/apis/api/", "/overview")],
    ),
    naming(
        &[&["quota '", "exceeded"], &["insufficient regional quota"], &["quota_exceeded"]],
        Class::Precondition,
        "the project's quota for {} is used up: ask for more (console: IAM & Admin, Quotas), or fewer or smaller hosts",
        "a quota of the project is used up: ask for more (console: IAM & Admin, Quotas), or fewer or smaller hosts",
        &[("quota '", "'"), ("resource: \"", "\""), ("resource \"", "\"")],
    ),
    known(
        &[&["zone_resource_pool_exhausted"], &["does not have enough resources available to fulfill the request"]],
        Class::Precondition,
        "the zone has no machines of this type left: another zone or machine type, or the same command again later",
    ),
    naming(
        &[&["error 403", "required '", "permission"]],
        Class::Precondition,
        "the account lacks the permission {}: give it a role that has it (gcloud projects add-iam-policy-binding)",
        "the account lacks a permission: give it a role that has it (gcloud projects add-iam-policy-binding)",
        &[("Required '", "'")],
    ),
    // Terraform deletes a group before it changes the balancer that names it, and Google refuses
    // that.
    naming(
        &[&["is already being used by", "/backendservices/"]],
        Class::Precondition,
        "the load balancer still leads to a host that goes: gcloud compute backend-services remove-backend {} --region=<region> --instance-group=<group> --instance-group-zone=<zone>, for each balancer of the cluster; then the same command again",
        "take the group off the load balancer (gcloud compute backend-services remove-backend), then the same command again",
        &[("/backendServices/", "'")],
    ),
];
