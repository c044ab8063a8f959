//! The settings of the control plane that become more than one flag or field, as typed values. Only
//! read here; `bootstrap::control_plane` acts on them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::Settings;
use crate::error::Result;

use super::user_data::UserDataSettings;

/// Settings of the API server, the scheduler and what guards them; a file is named as the
/// configuration names it, and empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the Kconfig tree")]
pub struct ControlPlaneSettings {
    /// Pods of users run on control-plane hosts too: they carry no taint.
    pub runs_pods: bool,
    /// What makes a machine a control-plane host is kept on the volume of its etcd.
    pub keeps_identity: bool,
    pub audit: bool,
    pub audit_policy_file: String,
    pub encryption_at_rest: bool,
    /// Kinds of objects that etcd has encrypted: `secrets`, `deployments.apps`.
    pub encryption_resources: Vec<String>,
    /// The socket of the KMS plugin that encrypts them; none for a key of turnup's.
    pub encryption_kms_endpoint: Option<String>,
    pub pod_security: Option<PodSecurity>,
    pub deny_external_ips: bool,
    pub event_rate_limit: bool,
    pub verify_image_credentials: bool,
    pub enable_admission_plugins: Vec<String>,
    pub oidc: Option<Oidc>,
    pub authentication_webhook_file: String,
    pub authorization_webhook_file: String,
    /// A URL; empty for the Service's own name.
    pub service_account_issuer: String,
    pub scheduler_strategy: String,
    pub scheduler_config_file: String,
    /// Zero for never.
    pub etcd_defragment_interval: Option<Duration>,
}

/// The levels of the Pod Security Standards (`privileged`, `baseline`, `restricted`) that count
/// where a namespace has no label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSecurity {
    /// Pods above it are refused.
    pub enforce: String,
    /// Pods above it are warned about and audited.
    pub warn: String,
    /// Namespaces in which everything is allowed.
    pub exempt_namespaces: Vec<String>,
}

/// An identity provider whose tokens log users in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct Oidc {
    pub issuer_url: String,
    pub client_id: String,
    pub username_claim: String,
    pub username_prefix: String,
    /// Empty for no groups.
    pub groups_claim: String,
    pub groups_prefix: String,
    /// Empty for the authorities that every system knows.
    pub ca_file: String,
    pub required_claims: BTreeMap<String, String>,
}

impl ControlPlaneSettings {
    /// What the settings say.
    pub(super) fn read(settings: &Settings) -> Result<Self> {
        let security = |name: &str| format!("phase2.security.{name}");
        let api_server = |name: &str| format!("phase2.apiserver.{name}");
        let get_bool = |name: &str| settings.get_bool(&security(name));
        Ok(Self {
            runs_pods: settings.get_bool("phase1.control_plane.runs_pods")?,
            keeps_identity: settings.get_bool("phase1.etcd_volume.identity")?
                || settings.get_bool(UserDataSettings::OF_LOCAL_HOSTS)?,
            audit: get_bool("audit")?,
            audit_policy_file: settings.get(&security("audit_policy_file"))?,
            encryption_at_rest: get_bool("encryption_at_rest")?,
            encryption_resources: settings.get_list(&security("encryption_resources"))?,
            encryption_kms_endpoint: find_key_service(settings)?,
            pod_security: get_bool("pod_security")?.then(|| PodSecurity::read(settings)).transpose()?,
            deny_external_ips: get_bool("deny_external_ips")?,
            event_rate_limit: get_bool("event_rate_limit")?,
            verify_image_credentials: get_bool("verify_image_credentials")?,
            enable_admission_plugins: settings.get_list(&api_server("enable_admission_plugins"))?,
            oidc: Oidc::find(settings)?,
            authentication_webhook_file: settings.get(&api_server("authentication_webhook_file"))?,
            authorization_webhook_file: settings.get(&api_server("authorization_webhook_file"))?,
            service_account_issuer: settings.get(&api_server("service_account_issuer"))?,
            scheduler_strategy: settings.get("phase2.scheduler.strategy")?,
            scheduler_config_file: settings.get("phase2.scheduler.config_file")?,
            etcd_defragment_interval: settings.get_duration("phase2.etcd.defragment_interval")?,
        })
    }
}

impl ControlPlaneSettings {
    /// Where the KMS plugin's socket lies on control-plane hosts.
    #[must_use]
    pub fn encryption_kms_directory(&self) -> Option<&str> {
        Some(self.encryption_kms_endpoint.as_deref()?.rsplit_once('/')?.0)
    }
}

fn find_key_service(settings: &Settings) -> Result<Option<String>> {
    let on = settings.get_bool("phase2.security.encryption_at_rest")?
        && settings.get("phase2.security.encryption_provider")? == "kms";
    on.then(|| settings.get("phase2.security.encryption_kms_endpoint")).transpose()
}

impl PodSecurity {
    fn read(settings: &Settings) -> Result<Self> {
        Ok(Self {
            enforce: settings.get("phase2.security.pod_security_enforce")?,
            warn: settings.get("phase2.security.pod_security_warn")?,
            exempt_namespaces: settings.get_list("phase2.security.pod_security_exempt_namespaces")?,
        })
    }
}

impl Oidc {
    fn find(settings: &Settings) -> Result<Option<Self>> {
        let get = |name: &str| settings.get(&format!("phase2.apiserver.oidc_{name}"));
        if get("issuer_url")?.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            issuer_url: get("issuer_url")?,
            client_id: get("client_id")?,
            username_claim: get("username_claim")?,
            username_prefix: get("username_prefix")?,
            groups_claim: get("groups_claim")?,
            groups_prefix: get("groups_prefix")?,
            ca_file: get("ca_file")?,
            required_claims: settings.get_map("phase2.apiserver.oidc_required_claims")?,
        }))
    }
}
