//! A place where Terraform's state is kept besides its working directory, as the `backend` block of
//! a module. No secret is ever in it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::cluster::Backend;
use crate::document::Fields;

/// A backend with its settings, in Terraform's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::provision) struct BackendConfig {
    /// Terraform's name of the backend.
    pub(super) kind: String,
    /// Its settings.
    pub(super) config: Map<String, Value>,
}

impl BackendConfig {
    /// The formats of its texts.
    pub(super) fn fields() -> Fields {
        Fields::new(&[
            ("kind", "dns-label"),
            ("config.*", "text or bool or int"),
            ("config.endpoints", "map(dns-label, url)"),
        ])
    }

    /// What the configuration asks for; none for the working directory.
    pub(in crate::provision) fn of(backend: &Backend, cluster: &str) -> Option<Self> {
        let (kind, config) = match backend {
            Backend::Local => return None,
            Backend::Gcs { bucket, prefix } => ("gcs", json!({"bucket": bucket, "prefix": join(&[prefix, cluster])})),
            Backend::S3 { bucket, prefix, region, endpoint, kms_key } => {
                let mut config = json!({
                    "bucket": bucket,
                    "key": join(&[prefix, cluster, "terraform.tfstate"]),
                    "region": region,
                    "encrypt": true,
                    // The lock is a file beside the state: no table is needed.
                    "use_lockfile": true,
                });
                if !kms_key.is_empty() {
                    config["kms_key_id"] = json!(kms_key);
                }
                if !endpoint.is_empty() {
                    config["endpoints"] = json!({"s3": endpoint});
                    // What only Amazon has.
                    for name in ["use_path_style", "skip_credentials_validation", "skip_region_validation"] {
                        config[name] = json!(true);
                    }
                    for name in ["skip_requesting_account_id", "skip_metadata_api_check", "skip_s3_checksum"] {
                        config[name] = json!(true);
                    }
                }
                ("s3", config)
            }
            Backend::Azurerm { resource_group, storage_account, container } => (
                "azurerm",
                json!({
                    "resource_group_name": resource_group,
                    "storage_account_name": storage_account,
                    "container_name": container,
                    "key": format!("{cluster}.tfstate"),
                }),
            ),
            Backend::Http { address, lock_address, gitlab_lock, username, .. } => {
                let mut config = json!({"address": address, "retry_max": 4});
                if !lock_address.is_empty() {
                    config["lock_address"] = json!(lock_address);
                    config["unlock_address"] = json!(lock_address);
                    let (lock, unlock) = if *gitlab_lock { ("POST", "DELETE") } else { ("LOCK", "UNLOCK") };
                    config["lock_method"] = json!(lock);
                    config["unlock_method"] = json!(unlock);
                }
                if !username.is_empty() {
                    config["username"] = json!(username);
                }
                ("http", config)
            }
        };
        let config = config.as_object().cloned().unwrap_or_default();
        Some(Self { kind: kind.to_owned(), config })
    }

    /// The file that tells Terraform.
    pub(in crate::provision) fn render(&self) -> String {
        render(&self.kind, &self.config)
    }

    /// Whether the state of both is the same one: how it is encrypted or locked may differ.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.location() == other.location()
    }

    /// Whether Terraform's own memory of a backend is of this place.
    pub(super) fn is_saved_as(&self, saved: &SavedBackend) -> bool {
        let saved = Self { kind: saved.kind.clone(), config: saved.config.clone() };
        self.is_same(&saved)
    }

    /// The place in a few words: `http https://…`, `s3 bucket/prefix/cluster/terraform.tfstate`.
    pub(in crate::provision) fn describe(&self) -> String {
        let parts: Vec<&str> = self.location().into_iter().flatten().collect();
        format!("{} {}", self.kind, parts.join("/"))
    }

    fn location(&self) -> Vec<Option<&str>> {
        let names: &[&str] = match self.kind.as_str() {
            "gcs" => &["bucket", "prefix"],
            "s3" => &["bucket", "key"],
            "azurerm" => &["storage_account_name", "container_name", "key"],
            _ => &["address"],
        };
        let mut parts: Vec<Option<&str>> =
            names.iter().map(|name| self.config.get(*name).and_then(Value::as_str)).collect();
        if self.kind == "s3" {
            parts.insert(0, self.config.get("endpoints").and_then(|all| all["s3"].as_str()));
        }
        parts
    }
}

/// What Terraform itself remembers of the backend that it was made ready for, secrets included:
/// never to be shown or kept.
pub(super) struct SavedBackend {
    pub(super) kind: String,
    pub(super) config: Map<String, Value>,
}

impl SavedBackend {
    /// From `.terraform/terraform.tfstate`; none when it is not there or speaks of no backend.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(bytes).ok()?;
        let kind = value["backend"]["type"].as_str()?.to_owned();
        let mut config = value["backend"]["config"].take();
        drop_nulls(&mut config);
        Some(Self { kind, config: config.as_object().cloned().unwrap_or_default() })
    }

    pub(super) fn render(&self) -> String {
        render(&self.kind, &self.config)
    }

    /// The password that it was made ready with.
    pub(super) fn password(&self) -> Option<String> {
        self.config.get("password").and_then(Value::as_str).map(str::to_owned)
    }
}

fn render(kind: &str, config: &Map<String, Value>) -> String {
    let block = json!({"terraform": {"backend": {kind: config}}});
    // A value of JSON can always be written.
    serde_json::to_string_pretty(&block).unwrap_or_default() + "\n"
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(object) = value {
        object.retain(|_, value| !value.is_null());
        object.values_mut().for_each(drop_nulls);
    }
}

/// Parts of a path without empty ones and doubled slashes.
fn join(parts: &[&str]) -> String {
    let parts = parts.iter().map(|part| part.trim_matches('/')).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn http(address: &str, lock: &str, gitlab_lock: bool) -> BackendConfig {
        let backend = Backend::Http {
            address: address.into(),
            lock_address: lock.into(),
            gitlab_lock,
            username: "me".into(),
            password_file: "secret".into(),
        };
        BackendConfig::of(&backend, "c").unwrap()
    }

    #[test]
    fn backends_as_terraform_reads_them() {
        let (bucket, prefix) = ("b".to_owned(), "/team/".to_owned());
        let (region, kms_key) = ("eu-1".to_owned(), "arn:k".to_owned());
        let endpoint = "https://minio.example.com".to_owned();
        let all = [
            Backend::Local,
            Backend::Gcs { bucket: bucket.clone(), prefix: prefix.clone() },
            Backend::S3 { bucket, prefix, region, endpoint, kms_key },
            Backend::Azurerm { resource_group: "r".into(), storage_account: "s".into(), container: "t".into() },
        ];
        let mut places: Vec<BackendConfig> = all.iter().filter_map(|backend| BackendConfig::of(backend, "c")).collect();
        places.push(http("https://h/state", "https://h/state/lock", true));
        let told: Vec<String> =
            places.iter().map(|place| format!("{}\n{}", place.describe(), place.render())).collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn another_lock_is_the_same_place_and_another_address_is_not() {
        let place = http("https://h/one", "", false);
        assert!(place.is_same(&http("https://h/one", "https://h/lock", true)));
        assert!(!place.is_same(&http("https://h/two", "", false)));
        let saved = br#"{"version": 3, "backend": {"type": "http", "config": {"address": "https://h/one", "password": "pw", "lock_address": null}}}"#;
        let saved = SavedBackend::parse(saved).unwrap();
        assert!(place.is_saved_as(&saved));
        assert!(saved.render().contains("\"password\": \"pw\"") && !saved.render().contains("null"));
        assert!(SavedBackend::parse(b"{}").is_none() && SavedBackend::parse(b"").is_none());
    }
}
