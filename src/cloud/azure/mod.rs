//! Microsoft Azure: what it is called, what it takes, and what to do about its errors.
//!
//! `settings` is the part of its Terraform module, `volume` its API for volumes, `zone` that for
//! DNS zones.

mod identity;
mod settings;
mod size;
mod volume;
mod zone;

use std::path::PathBuf;

use super::spec::{CloudSettings, Defaults};
use super::{
    Cloud, Endpoints, KnownError, LendToken, VolumeApi, VolumeProvider, VolumeSetting, ZoneApi, known, naming,
};
use crate::config::Settings;
use crate::error::{Class, Result};
use crate::inventory::volume::Volume;

/// Microsoft Azure.
#[derive(Debug)]
pub(super) struct Azure;

impl VolumeProvider for Azure {
    fn name(&self) -> &'static str {
        "azure"
    }

    fn volume_id_form(&self) -> &'static str {
        "/subscriptions/*/resourceGroups/*/providers/Microsoft.Compute/disks/*"
    }

    fn local_devices(&self, _volume: &Volume) -> Vec<PathBuf> {
        Vec::new()
    }

    fn volume_api<'v>(&self, volume: &'v Volume, endpoints: &Endpoints) -> Result<Box<dyn VolumeApi + 'v>> {
        Ok(Box::new(volume::Manager::new(volume, endpoints)?))
    }

    fn detach_command(&self, volume: &Volume, machine: &str) -> String {
        format!("az vm disk detach --ids {machine} --name {}", volume.name)
    }
}

impl Cloud for Azure {
    fn read(&self, settings: &Settings) -> Result<(Defaults, Box<dyn CloudSettings>)> {
        let (defaults, own) = settings::read(settings)?;
        Ok((defaults, Box::new(own)))
    }

    fn dns_provider(&self) -> &'static str {
        "azuredns"
    }

    fn zone_id_forms(&self) -> &'static [&'static str] {
        &[
            "/subscriptions/*/resourceGroups/*/providers/Microsoft.Network/dnsZones/*",
            "/subscriptions/*/resourceGroups/*/providers/Microsoft.Network/privateDnsZones/*",
        ]
    }

    fn zone_api(&self, zone_id: &str, endpoints: &Endpoints) -> Result<Box<dyn ZoneApi>> {
        Ok(Box::new(zone::AzureDns::new(zone_id, endpoints)?))
    }

    fn user_data_limit(&self) -> usize {
        // 64 KB, and one byte less is taken.
        (64 << 10) - 1
    }

    fn metadata_hosts(&self) -> &'static [&'static str] {
        // The agent of virtual machines asks it.
        &["168.63.129.16"]
    }

    fn environment(&self) -> &'static [&'static str] {
        &[
            "ARM_*",
            "AZURE_*",
            // The identity of a job of GitHub or Azure DevOps, which it can use in place of a
            // password.
            "IDENTITY_*",
            "MSI_*",
            "ACTIONS_ID_TOKEN_REQUEST_*",
            "SYSTEM_OIDCREQUESTURI",
        ]
    }

    fn state_backend(&self) -> &'static str {
        "azurerm"
    }

    fn known_errors(&self) -> &'static [KnownError] {
        KNOWN_ERRORS
    }

    fn zone_has_cluster_name(&self) -> bool {
        false
    }

    fn protections(&self) -> &'static [(&'static str, Option<&'static str>)] {
        &[("azurerm_management_lock", None)]
    }

    fn container(&self) -> Option<&'static str> {
        Some("azurerm_resource_group")
    }

    fn blob_token(&self) -> Option<LendToken> {
        Some(identity::lend_blob_token)
    }

    fn etcd_volume_type(&self) -> &'static str {
        "azurerm_managed_disk"
    }

    fn etcd_volume_settings(&self) -> &'static [VolumeSetting] {
        ETCD_VOLUME_SETTINGS
    }

    fn price_list(&self) -> &'static str {
        include_str!("prices.toml")
    }
}

/// The settings behind attributes of a disk of etcd.
const ETCD_VOLUME_SETTINGS: &[VolumeSetting] = &[
    VolumeSetting::same("storage_account_type", "phase1.azure.etcd_volume_type"),
    VolumeSetting::same("location", "phase1.azure.location"),
    // A group of the cluster's own has no name in the configuration.
    VolumeSetting::derived("resource_group_name", "phase1.azure.resource_group"),
];

/// Errors that only it gives; the first that fits counts.
const KNOWN_ERRORS: &[KnownError] = &[
    known(
        &[&["aadsts700082"], &["refresh token has expired"]],
        Class::Precondition,
        "the login has expired: az login, then the same command again: it goes on where it stopped",
    ),
    known(
        &[&["az login"], &["azurecli authorizer"]],
        Class::Precondition,
        "az login, or ARM_CLIENT_ID, ARM_CLIENT_SECRET, ARM_TENANT_ID and ARM_SUBSCRIPTION_ID in the environment",
    ),
    naming(
        &[&["missingsubscriptionregistration"], &["not registered to use namespace"]],
        Class::Precondition,
        "az provider register --namespace {} --wait, then the same command again",
        "az provider register --namespace <the one in the message> --wait, then the same command again",
        &[("namespace '", "'")],
    ),
    known(
        &[&["exceeding approved", "quota"], &["exceeding quota limits"], &["quotaexceeded"]],
        Class::Precondition,
        "a quota of the subscription is used up: ask for more (portal: Usage + quotas), or fewer or smaller hosts",
    ),
    known(
        &[&["skunotavailable"], &["allocationrequest"], &["allocationfailed"]],
        Class::Precondition,
        "Azure has no machines of this size there: another size, zone or region, or the same command again later",
    ),
    naming(
        &[&["authorizationfailed"], &["does not have authorization to perform action"]],
        Class::Precondition,
        "the account lacks the permission {}: give it a role that has it (az role assignment create)",
        "the account lacks a permission: give it a role that has it (az role assignment create)",
        &[("perform action '", "'")],
    ),
    known(
        &[&["scopelocked"]],
        Class::Precondition,
        "a lock keeps it, which counts for a minute after it has gone: turnup down again; a lock that turnup did not make: az lock list, az lock delete --ids <id>",
    ),
];
