//! How Terraform is driven, as typed settings: the program, the place of its state, its limits, and
//! what must not be deleted.
//!
//! It reads settings and no file. A setting that is not asked for the target has no value and
//! counts as its default.

use std::time::Duration;

use crate::config::Settings;
use crate::error::{Error, Result};

/// Which program is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// terraform when it is on PATH, else tofu.
    #[default]
    Auto,
    /// `HashiCorp` Terraform.
    Terraform,
    /// `OpenTofu`.
    Tofu,
}

/// Where Terraform keeps its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub enum Backend {
    /// In its working directory.
    #[default]
    Local,
    /// Google Cloud Storage.
    Gcs { bucket: String, prefix: String },
    /// Amazon S3 or a server that speaks its protocol.
    S3 { bucket: String, prefix: String, region: String, endpoint: String, kms_key: String },
    /// An Azure storage account.
    Azurerm { resource_group: String, storage_account: String, container: String },
    /// A server that speaks Terraform's protocol. `gitlab_lock` says which requests lock and
    /// unlock.
    Http { address: String, lock_address: String, gitlab_lock: bool, username: String, password_file: String },
}

/// How Terraform is driven.
#[derive(Clone, Debug)]
pub struct DriverSettings {
    /// Which program.
    pub program: Program,
    /// A directory or a URL in place of the registry of providers; empty for the registry.
    pub provider_mirror: String,
    /// How many resources are made at once.
    pub parallelism: u32,
    /// How long to wait for the state's lock, as Terraform reads it: `5m`.
    pub lock_timeout: String,
    /// How long plan, apply and destroy may take together.
    pub timeout: Duration,
    /// Where the state is to be.
    pub backend: Backend,
    /// `turnup down` is refused.
    pub deletion_protection: bool,
    /// `turnup down` leaves the volumes of etcd.
    pub keep_volumes: bool,
    /// The directory of a module of one's own; empty for those that turnup has.
    pub custom_module: String,
    /// Variables of our environment that such a module's providers need.
    pub custom_environment: Vec<String>,
}

impl DriverSettings {
    /// The default of `phase1.timeout`.
    pub const TIMEOUT: Duration = Duration::from_mins(30);

    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let program = match settings.get("phase1.terraform.program")?.as_str() {
            "terraform" => Program::Terraform,
            "tofu" => Program::Tofu,
            _ => Program::Auto,
        };
        let or = |name: &str, otherwise: &str| -> Result<String> {
            let value = settings.get(name)?;
            Ok(if value.is_empty() { otherwise.to_owned() } else { value })
        };
        Ok(Self {
            program,
            provider_mirror: settings.get("phase1.terraform.provider_mirror")?,
            parallelism: u32::try_from(settings.get_int("phase1.terraform.parallelism")?).unwrap_or(10).max(1),
            lock_timeout: or("phase1.terraform.lock_timeout", "10s")?,
            timeout: settings.get_duration("phase1.timeout")?.unwrap_or(Self::TIMEOUT),
            backend: Backend::read(settings)?,
            deletion_protection: settings.get_bool("phase1.deletion_protection")?,
            keep_volumes: settings.get_bool("phase1.etcd_volume.keep")?,
            custom_module: settings.get("phase1.custom.module")?,
            custom_environment: settings.get_list("phase1.custom.environment")?,
        })
    }
}

impl Backend {
    fn read(settings: &Settings) -> Result<Self> {
        let get = |name: &str| settings.get(&format!("phase1.state.{name}"));
        let own = |name: &str, example: &str| require_own(&format!("phase1.state.{name}"), get(name)?, example);
        Ok(match get("backend")?.as_str() {
            "gcs" => Self::Gcs { bucket: own("gcs.bucket", EXAMPLE_BUCKET)?, prefix: get("gcs.prefix")? },
            "s3" => Self::S3 {
                // A server of one's own may well have a bucket of this name.
                bucket: if get("s3.endpoint")?.is_empty() {
                    own("s3.bucket", EXAMPLE_BUCKET)?
                } else {
                    get("s3.bucket")?
                },
                prefix: get("s3.prefix")?,
                region: get("s3.region")?,
                endpoint: get("s3.endpoint")?,
                kms_key: get("s3.kms_key")?,
            },
            "azurerm" => Self::Azurerm {
                resource_group: get("azurerm.resource_group")?,
                storage_account: own("azurerm.storage_account", EXAMPLE_ACCOUNT)?,
                container: get("azurerm.container")?,
            },
            "http" => {
                let (address, lock_address) = (get("http.address")?, get("http.lock_address")?);
                require_private("phase1.state.http.address", &address)?;
                if !lock_address.is_empty() {
                    require_private("phase1.state.http.lock_address", &lock_address)?;
                }
                Self::Http {
                    address,
                    lock_address,
                    gitlab_lock: get("http.lock_requests")? == "gitlab",
                    username: get("http.username")?,
                    password_file: get("http.password_file")?,
                }
            }
            _ => Self::Local,
        })
    }
}

/// The Kconfig tree's default: bucket names are global in a cloud, so this one belongs to another
/// account.
const EXAMPLE_BUCKET: &str = "terraform-state";
const EXAMPLE_ACCOUNT: &str = "tfstate";

fn require_own(key: &str, value: String, example: &str) -> Result<String> {
    if value == example {
        return Err(Error::config(format!("{key} is {example}, which is only a placeholder"))
            .hint(format!("turnup config set {key}=…, one that exists")));
    }
    Ok(value)
}

/// The state holds keys: over a network it travels by https only.
fn require_private(name: &str, url: &str) -> Result<()> {
    if url.is_empty() {
        return Err(Error::config(format!("{name} is empty, and the state is to be kept there"))
            .hint(format!("turnup config set {name}=https://…")));
    }
    let own = ["http://127.0.0.1:", "http://127.0.0.1/", "http://localhost:", "http://localhost/"];
    if url.starts_with("https://") || own.iter().any(|start| url.starts_with(start)) {
        return Ok(());
    }
    Err(Error::config(format!("{name}: {url} is not https, and the state holds keys"))
        .hint(format!("turnup config set {name}=https://…")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::config::TreeSource;

    #[test]
    fn a_store_without_a_name_is_refused_with_its_key() {
        let read = |changes: &[(&str, &str)]| {
            let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
            settings.set("phase1.cloud_provider", "gce").unwrap();
            settings.set_all(changes).unwrap();
            Backend::read(&settings)
        };
        for (backend, key) in [
            ("gcs", "phase1.state.gcs.bucket"),
            ("s3", "phase1.state.s3.bucket"),
            ("azurerm", "phase1.state.azurerm.storage_account"),
        ] {
            let chosen = ("phase1.state.backend", backend);
            let refused = read(&[chosen]).unwrap_err();
            assert!(refused.message().starts_with(&format!("{key} is ")), "{}", refused.message());
            assert!(read(&[chosen, (key, "ours")]).is_ok(), "{backend}");
        }
        let minio = ("phase1.state.s3.endpoint", "https://minio.example.com");
        assert!(read(&[("phase1.state.backend", "s3"), minio]).is_ok(), "a server of one's own");
    }

    #[test]
    fn the_state_does_not_travel_in_the_open() {
        for (url, fine) in [
            ("https://gitlab.example.com/state", true),
            ("http://127.0.0.1:8080/state", true),
            ("http://gitlab.example.com/state", false),
            ("http://127.0.0.1.example.com/state", false),
            ("", false),
        ] {
            assert_eq!(require_private("name", url).is_ok(), fine, "{url}");
        }
    }
}
