//! Which variables of our environment Terraform gets besides what every child has: the places where the clouds' providers look for
//! credentials, of the cloud that is meant and of no other. Their values are never read here.

use crate::cluster::{Backend, DriverSettings};

/// Google's provider and backend.
const GOOGLE: &[&str] = &["GOOGLE_*", "CLOUDSDK_*", "GCLOUD_*", "GCE_METADATA_*", "USER_PROJECT_OVERRIDE"];
/// Amazon's.
const AMAZON: &[&str] = &["AWS_*"];
/// Microsoft's; the second line is the identity of a job of GitHub or Azure DevOps, which it can use in place of a password.
const MICROSOFT: &[&str] =
    &["ARM_*", "AZURE_*", "IDENTITY_*", "MSI_*", "ACTIONS_ID_TOKEN_REQUEST_*", "SYSTEM_OIDCREQUESTURI"];

/// The patterns for this target and this place of the state.
pub(super) fn patterns(target: &str, driver: &DriverSettings) -> Vec<String> {
    let of_target = match target {
        "gce" => GOOGLE,
        "aws" => AMAZON,
        "azure" => MICROSOFT,
        _ => &[],
    };
    let of_state = match driver.backend {
        Backend::Gcs { .. } => of_place("gcs"),
        Backend::S3 { .. } => of_place("s3"),
        Backend::Azurerm { .. } => of_place("azurerm"),
        Backend::Local | Backend::Http { .. } => &[],
    };
    let own = driver.custom_environment.iter().map(String::as_str);
    let mut all: Vec<String> = of_target.iter().chain(of_state).copied().chain(own).map(str::to_owned).collect();
    all.sort();
    all.dedup();
    all
}

/// The patterns for a place of the state, by Terraform's name of its kind.
pub(super) fn of_place(kind: &str) -> &'static [&'static str] {
    match kind {
        "gcs" => GOOGLE,
        "s3" => AMAZON,
        "azurerm" => MICROSOFT,
        _ => &[],
    }
}

/// All of them: to remove what is left of a cluster whose configuration is lost.
pub(super) fn all() -> Vec<String> {
    [GOOGLE, AMAZON, MICROSOFT].concat().into_iter().map(str::to_owned).collect()
}
