//! Amazon EC2: what it is called, what it takes, and what to do about its errors.
//!
//! `settings` is the part of its Terraform module, `volume` its API for volumes, `zone` that for
//! DNS zones, `metadata` what a machine is told of itself, `machine_identity` how one proves which
//! it is.

mod ec2;
#[cfg(test)]
#[path = "emulator_tests.rs"]
mod emulator;
mod machine;
mod machine_identity;
mod metadata;
mod presigned;
mod settings;
mod sigv4;
mod volume;
mod xml;
mod zone;

use std::path::{Path, PathBuf};

use super::spec::{CloudSettings, Defaults};
use super::{
    Cloud, Endpoints, FetchIdentity, FetchProviderId, KnownError, LendKey, OpenJudge, VolumeApi, VolumeProvider,
    VolumeSetting, ZoneApi, known, naming,
};
#[cfg(test)]
pub(crate) use emulator::{AwsEmulator, EmulatedMachine};

use crate::config::Settings;
use crate::error::{Class, Result};
use crate::inventory::volume::Volume;

/// Amazon EC2.
#[derive(Debug)]
pub(super) struct Aws;

impl VolumeProvider for Aws {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn volume_id_form(&self) -> &'static str {
        "vol-*"
    }

    fn local_devices(&self, volume: &Volume) -> Vec<PathBuf> {
        volume::devices(volume, Path::new("/sys/block"))
    }

    fn volume_api<'v>(&self, volume: &'v Volume, endpoints: &Endpoints) -> Result<Box<dyn VolumeApi + 'v>> {
        Ok(Box::new(volume::Ec2::new(volume, endpoints)?))
    }

    fn detach_command(&self, volume: &Volume, _machine: &str) -> String {
        format!("aws ec2 detach-volume --volume-id {}", volume.id)
    }
}

impl Cloud for Aws {
    fn read(&self, settings: &Settings) -> Result<(Defaults, Box<dyn CloudSettings>)> {
        let (defaults, own) = settings::read(settings)?;
        Ok((defaults, Box::new(own)))
    }

    fn dns_provider(&self) -> &'static str {
        "route53"
    }

    fn zone_id_forms(&self) -> &'static [&'static str] {
        &["Z*"]
    }

    fn zone_api(&self, zone_id: &str, endpoints: &Endpoints) -> Result<Box<dyn ZoneApi>> {
        Ok(Box::new(zone::Route53::new(zone_id, endpoints)?))
    }

    fn user_data_limit(&self) -> usize {
        // "16 KB, in raw form".
        16 << 10
    }

    fn metadata_hosts(&self) -> &'static [&'static str] {
        &["fd00:ec2::254", "instance-data.ec2.internal"]
    }

    fn environment(&self) -> &'static [&'static str] {
        &["AWS_*"]
    }

    fn state_backend(&self) -> &'static str {
        "s3"
    }

    fn known_errors(&self) -> &'static [KnownError] {
        KNOWN_ERRORS
    }

    fn protections(&self) -> &'static [(&'static str, Option<&'static str>)] {
        // Of other types it is only a part of a template.
        &[("aws_instance", Some("disable_api_termination"))]
    }

    fn etcd_volume_type(&self) -> &'static str {
        "aws_ebs_volume"
    }

    fn etcd_volume_settings(&self) -> &'static [VolumeSetting] {
        ETCD_VOLUME_SETTINGS
    }

    fn bucket_key(&self) -> Option<LendKey> {
        Some(|endpoints| metadata::Metadata::open(&endpoints.metadata)?.key())
    }

    fn fetch_provider_id(&self) -> Option<FetchProviderId> {
        Some(|endpoints| metadata::Metadata::open(&endpoints.metadata)?.provider_id())
    }

    fn machine_domains(&self) -> &'static [&'static str] {
        // Inner names, of us-east-1 and of all other regions; public ones likewise, and China's.
        &[
            ".ec2.internal",
            ".compute.internal",
            ".compute-1.amazonaws.com",
            ".compute.amazonaws.com",
            ".compute.amazonaws.com.cn",
        ]
    }

    fn machine_fields(&self) -> &'static [&'static str] {
        &[
            "security_groups",
            "disk_encrypted",
            "disk_kms_key",
            "disk_iops",
            "node_instance_profile",
            "key_pair",
            "detailed_monitoring",
            "cpu_credits",
        ]
    }

    fn replaces_ended_machines(&self) -> bool {
        // EC2 terminates it (`instance_initiated_shutdown_behavior`), and its group makes another.
        true
    }

    fn fetch_identity(&self) -> Option<FetchIdentity> {
        Some(machine_identity::fetch)
    }

    fn identity_judge(&self) -> Option<OpenJudge> {
        Some(|endpoints, workers| Box::new(machine_identity::AwsJudge::new(endpoints, workers)))
    }

    fn price_list(&self) -> &'static str {
        include_str!("prices.toml")
    }
}

/// The settings behind attributes of a disk of etcd.
const ETCD_VOLUME_SETTINGS: &[VolumeSetting] = &[VolumeSetting::same("type", "phase1.aws.etcd_volume_type")];

/// Errors that only it gives; the first that fits counts.
const KNOWN_ERRORS: &[KnownError] = &[
    known(
        &[&["no valid credential sources"], &["nocredentialproviders"]],
        Class::Precondition,
        "AWS_PROFILE=<name>, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment; aws sts get-caller-identity shows who you are",
    ),
    known(
        &[&["expiredtoken"], &["security token included in the request is expired"]],
        Class::Precondition,
        "the credentials have expired: aws sso login (or new keys), then the same command again: it goes on where it stopped",
    ),
    known(
        &[
            &["vcpulimitexceeded"],
            &["addresslimitexceeded"],
            &["instancelimitexceeded"],
            &["your current instance limit"],
        ],
        Class::Precondition,
        "a limit of the account is reached: ask for more (console: Service Quotas), or fewer or smaller hosts",
    ),
    known(
        &[&["insufficientinstancecapacity"], &["capacity in the availability zone you requested"]],
        Class::Precondition,
        "the zone has no machines of this type left: another zone or instance type, or the same command again later",
    ),
    naming(
        &[&["is not authorized to perform:"]],
        Class::Precondition,
        "the account lacks the permission {}: attach a policy that allows it",
        "the account lacks a permission: attach a policy that allows it",
        &[("is not authorized to perform: ", " ")],
    ),
    known(
        &[&["unauthorizedoperation"]],
        Class::Precondition,
        "the account lacks a permission; which one: aws sts decode-authorization-message --encoded-message <the long word>",
    ),
];
