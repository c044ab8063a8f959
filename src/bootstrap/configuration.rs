//! What settings assign to components (`#: sets = …`), put where a component reads it: flags,
//! fields of its configuration file, files beside it, requests of its pod.
//!
//! It knows no flag and no field by name; `control_plane` and `kubelet` decide what comes first.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::cluster::{Cluster, ClusterSettings};
use crate::component::OverrideSubject;
use crate::config::{Assignment, ComponentName, Destination, flag_text};
use crate::error::{Error, Result};
use crate::input;

use super::component::Flags;

/// A file of the user's for a component is for people to read as well.
const LARGEST: u64 = 1 << 20;

/// Whose configuration of which component it is.
#[derive(Clone, Copy)]
pub(super) struct Configuration<'a> {
    pub(super) settings: &'a ClusterSettings,
    pub(super) component: ComponentName,
    pub(super) subject: OverrideSubject<'a>,
}

impl<'a> Configuration<'a> {
    /// All that settings assign to the component, in the order of the menus.
    fn assigned(self) -> impl Iterator<Item = &'a Assignment> {
        let assignments = self.settings.assignments.iter();
        assignments.filter(move |assignment| assignment.component == self.component)
    }

    fn overrides(self) -> impl Iterator<Item = &'a Assignment> {
        self.settings.overrides.of(self.component, self.subject)
    }

    /// The flags with those that settings assign and the user's own. `place` says where a file of
    /// the user's lies for the component.
    pub(super) fn with_flags(self, mut flags: Flags, place: impl Fn(&str) -> String) -> Result<Flags> {
        let mut values = Value::Object(Map::new());
        for assignment in self.assigned() {
            let Destination::Flag(name) = &assignment.destination else { continue };
            let value = if assignment.is_file { place(file_name(name)).into() } else { assignment.value.clone() };
            set_field(&mut values, std::slice::from_ref(name), &value);
        }
        for assignment in self.overrides() {
            let Destination::Flag(name) = &assignment.destination else { continue };
            if flags.has(name) || is_wiring(self.component, name) {
                return Err(owned(assignment));
            }
            set_field(&mut values, std::slice::from_ref(name), &assignment.value);
        }
        for (name, value) in values.as_object().into_iter().flatten() {
            flags = flags.set(name, flag_text(value)?);
        }
        Ok(flags)
    }

    /// Sets the fields that settings assign: those with a default, or those that the user has
    /// answered.
    pub(super) fn set_fields(self, config: &mut Value, defaults: bool) {
        for assignment in self.assigned().filter(|assignment| assignment.is_default == defaults) {
            if let Destination::Field(path) = &assignment.destination {
                set_field(config, path, &assignment.value);
            }
        }
    }

    /// Sets the user's own fields; `decided` is what turnup has to decide itself.
    pub(super) fn set_own_fields(self, config: &mut Value, decided: &Value) -> Result<()> {
        for assignment in self.overrides() {
            let Destination::Field(path) = &assignment.destination else { continue };
            if path.iter().try_fold(decided, |value, part| value.get(part)).is_some() {
                return Err(owned(assignment));
            }
            set_field(config, path, &assignment.value);
        }
        Ok(())
    }

    /// What the component's pod requests, by resource.
    pub(super) fn requests(self) -> Map<String, Value> {
        let request = |assignment: &Assignment| match &assignment.destination {
            Destination::Request(resource) => Some((resource.clone(), assignment.value.clone())),
            _ => None,
        };
        self.assigned().filter_map(request).collect()
    }
}

/// The user's files for a component: their names beside its other files, and what is in them.
pub(super) fn files(cluster: &Cluster, component: ComponentName) -> Result<Vec<(String, String)>> {
    let file = |assignment: &Assignment| -> Option<Result<(String, String)>> {
        let Destination::Flag(flag) = &assignment.destination else { return None };
        let path = assignment.value.as_str().filter(|_| assignment.is_file)?;
        let text = read(cluster, &assignment.origin, path).and_then(|text| {
            if flag.contains("webhook") {
                require_embedded(&assignment.origin, path, &text)?;
            }
            Ok((file_name(flag).to_owned(), text))
        });
        Some(text)
    };
    let own = cluster.settings.assignments.iter().filter(|assignment| assignment.component == component);
    own.filter_map(file).collect()
}

/// A digest of what the user gives components past the settings' own values: overrides, and what is
/// in the files that settings name.
pub(super) fn digest(cluster: &Cluster) -> Result<String> {
    let of = &cluster.settings.control_plane;
    let named = [&of.audit_policy_file, &of.scheduler_config_file];
    let oidc = of.oidc.as_ref().map(|oidc| &oidc.ca_file);
    let mut text = format!("{:?}", cluster.settings.overrides);
    for file in named.into_iter().chain(oidc).filter(|file| !file.is_empty()) {
        text += &read(cluster, "phase2", file)?;
    }
    let (runtime, proxy) = (&cluster.settings.runtime, &cluster.settings.proxy);
    let authorities = runtime.registry_mirrors.iter().filter_map(|entry| entry.ca_file.as_ref());
    let named = authorities.chain([&runtime.registry_auth_file, &runtime.config_file, &proxy.proxy_ca_file]);
    for file in named.filter(|file| !file.is_empty()) {
        text.extend(["\n", file, "\n", &read(cluster, "phase2", file)?]);
    }
    for component in ComponentName::ALL {
        for (name, content) in files(cluster, component)? {
            text.extend(["\n", component.name(), " ", &name, "\n", &content]);
        }
    }
    Ok(hex::encode(Sha256::digest(text)))
}

/// A digest of the certificate and the key of the user's own authority; empty where turnup makes
/// it.
pub(super) fn own_authority(cluster: &Cluster) -> Result<String> {
    let pki = &cluster.settings.pki;
    if pki.ca_cert_file.is_empty() {
        return Ok(String::new());
    }
    let mut digest = Sha256::new();
    for (setting, file) in
        [("phase2.pki.ca_cert_file", &pki.ca_cert_file), ("phase2.pki.ca_key_file", &pki.ca_key_file)]
    {
        digest.update(Sha256::digest(Zeroizing::new(read(cluster, setting, file)?).as_bytes()));
    }
    Ok(hex::encode(digest.finalize()))
}

/// A text file that a setting names, relative to the configuration's directory.
pub(crate) fn read(cluster: &Cluster, setting: &str, name: &str) -> Result<String> {
    let path = cluster.work_dir.join(name);
    input::read_text(&path, LARGEST).map_err(|error| {
        let message = format!("{setting}: {} cannot be read", path.display());
        Error::config(message).source(error).hint("turnup config check")
    })
}

/// Fields of a kubeconfig that name further files, each with the one that has what is in them.
const NAMES_FILES: [(&str, &str, &str, &str); 4] = [
    ("clusters", "cluster", "certificate-authority", "certificate-authority-data"),
    ("users", "user", "client-certificate", "client-certificate-data"),
    ("users", "user", "client-key", "client-key-data"),
    ("users", "user", "tokenFile", "token"),
];

/// An error when the kubeconfig of a webhook cannot be used where it goes: nothing but this file
/// is copied there.
fn require_embedded(setting: &str, path: &str, text: &str) -> Result<()> {
    let refuse = |why: String, hint: &str| Err(Error::config(format!("{setting}: {path}: {why}")).hint(hint));
    let config: Value = match serde_saphyr::from_str(text) {
        Ok(config) => config,
        // The parser's snippet would show what may be a secret.
        Err(error) => return refuse(format!("it is no YAML: {}", error.without_snippet()), "turnup config check"),
    };
    if config["clusters"].as_array().is_none_or(Vec::is_empty) {
        return refuse("it is no kubeconfig: it names no cluster".to_owned(), "turnup config check");
    }
    for (list, kind, field, instead) in NAMES_FILES {
        let entries = config[list].as_array().into_iter().flatten();
        let named = entries.map(|entry| &entry[kind][field]).find_map(Value::as_str);
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let why = format!("{list}[].{kind}.{field} names the file {named}, which the host does not have");
            return refuse(why, &format!("embed what is in it: {instead}"));
        }
    }
    let users = config["users"].as_array().into_iter().flatten();
    if users.map(|user| &user["user"]).any(|user| user.get("exec").is_some()) {
        let why = "users[].user.exec names a program, which the API server's image does not have".to_owned();
        return refuse(why, "embed a client certificate or a token");
    }
    Ok(())
}

/// Settings that decide what turnup gives a component.
const OWNERS: [(&str, &str); 19] = [
    ("--audit-log-path", "phase2.security.audit"),
    ("--audit-policy-file", "phase2.security.audit_policy_file"),
    ("--authorization-mode", "phase2.apiserver.authorization_webhook_file"),
    ("--cluster-cidr", "phase2.pod_cidr"),
    ("--cluster-name", "phase1.cluster_name"),
    ("--enable-admission-plugins", "phase2.apiserver.enable_admission_plugins"),
    ("--encryption-provider-config", "phase2.security.encryption_at_rest"),
    ("--authentication-config", "phase2.apiserver.oidc_issuer_url"),
    ("--authentication-token-webhook-config-file", "phase2.apiserver.authentication_webhook_file"),
    ("--node-labels", "phase2.kubelet.node_labels"),
    ("--secure-port", "phase2.api_port"),
    ("--service-account-issuer", "phase2.apiserver.service_account_issuer"),
    ("--service-cluster-ip-range", "phase2.service_cidr"),
    ("--service-node-port-range", "phase2.network.node_port_first"),
    ("--tls-min-version", "phase2.security.tls13"),
    ("clusterCIDR", "phase2.pod_cidr"),
    ("clusterDomain", "phase2.cluster_domain"),
    ("clusterDNS", "phase2.service_cidr"),
    ("tlsMinVersion", "phase2.security.tls13"),
];

/// Whether a flag that turnup leaves out would change where a component finds its files, or who
/// leads.
fn is_wiring(component: ComponentName, flag: &str) -> bool {
    match component {
        ComponentName::Kubelet => ["cert-dir", "config-dir", "root-dir"].contains(&flag),
        // It reads its file, and then not these flags.
        ComponentName::KubeScheduler => {
            let ignored = ["contention-profiling", "kubeconfig", "profiling"].contains(&flag);
            ignored || flag.starts_with("kube-api-") || flag.starts_with("leader-elect")
        }
        _ => false,
    }
}

/// What turnup has to decide itself is no matter of an override.
fn owned(assignment: &Assignment) -> Error {
    let place = assignment.destination.to_string();
    let error = Error::config(format!("{}: turnup decides this itself", assignment.origin));
    match OWNERS.iter().find(|(owned, _)| *owned == place) {
        Some((_, setting)) => error.hint(format!("turnup config explain {setting}")),
        None => error.hint("remove it from the overrides"),
    }
}

/// Adds the members of `further`, into objects that both have.
pub(super) fn merge(config: &mut Value, further: Value) {
    let Value::Object(members) = further else { return };
    for (name, value) in members {
        set_field(config, &[name], &value);
    }
}

/// Sets one field. The members of an object are set one by one, so that others stay.
fn set_field(config: &mut Value, path: &[String], value: &Value) {
    let Value::Object(members) = config else { return };
    let Some((first, rest)) = path.split_first() else {
        if let Value::Object(new) = value {
            members.extend(new.clone());
        }
        return;
    };
    if rest.is_empty() && !value.is_object() {
        members.insert(first.clone(), value.clone());
    } else {
        set_field(members.entry(first.clone()).or_insert_with(|| Value::Object(Map::new())), rest, value);
    }
}

/// How the file of a flag is called: as the flag, without what says that it is one.
pub(super) fn file_name(flag: &str) -> &str {
    let name = flag.strip_suffix("-file").unwrap_or(flag);
    name.strip_suffix("-config").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;
    use crate::config::{Settings, TreeSource};

    #[test]
    fn a_field_is_set_and_others_stay() {
        let mut config =
            json!({"maxPods": 110, "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1Gi"}});
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        set_field(&mut config, &path("maxPods"), &json!(50));
        set_field(&mut config, &path("evictionHard"), &json!({"nodefs.available": "2Gi"}));
        set_field(&mut config, &path("logging.verbosity"), &json!(4));
        let expected = json!({
            "maxPods": 50,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "2Gi"},
            "logging": {"verbosity": 4},
        });
        assert_eq!(config, expected);
    }

    #[test]
    fn the_kubeconfig_of_a_webhook_names_no_further_file() {
        let with = |cluster: &str, user: &str| {
            format!("clusters:\n- name: a\n  cluster: {{{cluster}}}\nusers:\n- name: a\n  user: {{{user}}}\n")
        };
        let good = with("server: https://a.example, certificate-authority-data: YQ==", "token: abc");
        assert!(require_embedded("s", "w.conf", &good).is_ok());
        for (text, why) in [
            (with("certificate-authority: /etc/ca.crt", ""), "clusters[].cluster.certificate-authority names the file"),
            (with("", "client-certificate: a.crt"), "users[].user.client-certificate names the file a.crt"),
            (with("", "client-key: a.key"), "users[].user.client-key names the file a.key"),
            (with("", "tokenFile: /t"), "users[].user.tokenFile names the file /t"),
            (with("", "exec: {command: a}"), "users[].user.exec names a program"),
            ("a: b".to_owned(), "it names no cluster"),
            ("{".to_owned(), "it is no YAML"),
        ] {
            let error = require_embedded("s", "w.conf", &text).err().map(|error| error.message().to_owned());
            assert!(
                error.as_deref().is_some_and(|error| error.starts_with("s: w.conf: ") && error.contains(why)),
                "{error:?}"
            );
        }
    }

    #[test]
    fn a_file_is_called_as_its_flag() {
        assert_eq!(file_name("authorization-webhook-config-file"), "authorization-webhook");
        assert_eq!(file_name("image-credential-provider-config"), "image-credential-provider");
    }

    #[test]
    fn another_key_of_the_users_authority_is_another_authority() {
        let dir = tempfile::tempdir().unwrap();
        let source = TreeSource::embedded();
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set_all(&[("phase2.pki.ca_cert_file", "ca.crt"), ("phase2.pki.ca_key_file", "ca.key")]).unwrap();
        let mut cluster = Cluster::open(&settings, source, dir.path()).unwrap();
        dir.path().clone_into(&mut cluster.work_dir);
        let digest = |certificate: &str, key: &str| {
            fs_err::write(dir.path().join("ca.crt"), certificate).unwrap();
            fs_err::write(dir.path().join("ca.key"), key).unwrap();
            own_authority(&cluster).unwrap()
        };
        let one = digest("certificate", "key");
        assert_eq!((one.len(), digest("certificate", "key")), (64, one.clone()), "a digest and nothing of the key");
        assert!(digest("certificate", "other") != one && digest("certificatek", "ey") != one);
    }
}
