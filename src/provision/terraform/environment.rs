//! Which variables of our environment Terraform gets besides what every child has: the places where
//! the clouds' providers look for credentials, of the cloud that is meant and of no other. Their
//! values are never read here.

use crate::cloud::{CLOUDS, Cloud, Target};
use crate::cluster::{Backend, DriverSettings};

/// The patterns for this target and this place of the state.
pub(super) fn patterns(target: Target, driver: &DriverSettings) -> Vec<String> {
    let of_target = target.cloud().map_or(&[][..], Cloud::environment);
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
    CLOUDS.iter().find(|cloud| cloud.state_backend() == kind).map_or(&[], |cloud| cloud.environment())
}

/// All of them: to remove what is left of a cluster whose configuration is lost.
pub(super) fn all() -> Vec<String> {
    CLOUDS.iter().flat_map(|cloud| cloud.environment()).map(|pattern| (*pattern).to_owned()).collect()
}
