//! Computes the complete configuration of every node from the settings, the hand-off and the host's facts.
//!
//! The result is a pure function of its inputs: the same inputs give the same bytes. It writes nothing and asks no host.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::artifacts::Obtained;
use crate::change;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::node::Facts;
use crate::node::complete::{Complete, Content, Directory, File, Health, User};
use crate::provision::{Handoff, Host, Role};

use super::assets::Assets;
use super::control_plane::{self, ControlPlane, ETCD_DIR, ETCD_USER};
use super::kubeconfig::{self, Identity};
use super::kubelet::{self, Agents};
use super::members::Members;
use super::outfit::{Group, Outfit, Seat, node_directories};
use super::pki::{Authority, LEAF_LIFE, Leaf, Pki};
use super::serving::{self, Reserved};
use super::user_data;

/// Secrets of a node by name.
pub type Secrets = BTreeMap<String, Zeroizing<String>>;

/// Where a node's complete configuration lies below the cluster's directory.
#[must_use]
pub fn file_of(node: &str) -> String {
    format!("complete/{node}.json")
}

/// Everything that the computation reads.
pub struct Completion<'a> {
    /// Settings, templates, PKI.
    pub cluster: &'a Cluster,
    /// The hosts.
    pub handoff: &'a Handoff,
    /// Binaries and images of the chosen version.
    pub artifacts: &'a Obtained,
}

impl Completion<'_> {
    /// Every certificate of the cluster.
    pub fn leaves(&self) -> Result<Vec<Leaf>> {
        let host_names = |host: &Host| vec![host.name.clone(), host.address.to_string()];
        let cluster = Authority::Cluster;
        let mut leaves = vec![
            Leaf::client("apiserver-kubelet-client", cluster, "kube-apiserver-kubelet-client", None),
            Leaf::client("apiserver-etcd-client", Authority::Etcd, "kube-apiserver-etcd-client", None),
            Leaf::client("front-proxy-client", Authority::FrontProxy, "front-proxy-client", None),
            Leaf::client("controller-manager", cluster, "system:kube-controller-manager", None),
            Leaf::client("scheduler", cluster, "system:kube-scheduler", None),
        ];
        if user_data::has_comers(self.cluster)? {
            leaves.push(Leaf::client(serving::APPROVER, cluster, serving::APPROVER_USER, None));
        }
        for host in self.handoff.control_planes() {
            let name = &host.name;
            let mut etcd_names = host_names(host);
            etcd_names.extend(["localhost".into(), "127.0.0.1".into()]);
            let etcd =
                |file: String| Leaf { client: true, ..Leaf::server(&file, Authority::Etcd, name, etcd_names.clone()) };
            let api_names = control_plane::api_names(&self.cluster.settings, &self.handoff.api, host)?;
            leaves.extend([
                Leaf::server(&format!("apiserver-{name}"), cluster, "kube-apiserver", api_names),
                etcd(format!("etcd-server-{name}")),
                etcd(format!("etcd-peer-{name}")),
            ]);
        }
        for host in &self.handoff.hosts {
            let user = format!("system:node:{}", host.name);
            let serving = Leaf::server(&format!("kubelet-{}", host.name), cluster, &user, host_names(host));
            leaves.push(Leaf { group: Some("system:nodes".into()), ..serving });
            if host.role == Role::ControlPlane {
                let file = format!("kubelet-client-{}", host.name);
                leaves.push(Leaf { life: LEAF_LIFE, ..Leaf::client(&file, cluster, &user, Some("system:nodes")) });
            }
        }
        Ok(leaves)
    }

    /// The complete configuration of one node and the secrets that it names.
    pub fn complete(&self, host: &Host, facts: &Facts) -> Result<(Complete, Secrets)> {
        let address = host.address.to_string();
        let outfit = self.outfit(Seat::of_host(host, &address), facts)?;
        let agents = outfit.agents()?;
        let mut files = Contents { pki: Pki::new(&self.cluster.store), list: Vec::new(), secrets: Secrets::new() };
        self.node_files(host, &agents, &mut files)?;
        let mut users = Vec::new();
        let mut health = Vec::new();
        if host.role == Role::ControlPlane {
            users.push(User { name: "etcd".into(), id: ETCD_USER });
            self.control_plane_files(host, &mut files)?;
            let (name, url) = ("etcd healthy".into(), "http://127.0.0.1:2381/health".into());
            health.push(Health { name, url, pod: "kube-system_etcd-".into() });
        }
        let machine = outfit.machine()?;
        let mut all = machine.files;
        all.extend(files.list);
        let mut dirs = machine.directories;
        dirs.extend(directories(host));
        let (mounts, units) = (outfit.mounts(&files.pki.text("etcd-ca", "crt")?), outfit.units(&agents)?);
        let complete = Complete { users, mounts, directories: dirs, files: all, units, health, ..machine };
        outfit.require_own_places(&complete)?;
        Ok((complete, files.secrets))
    }

    /// The part that needs nothing of the cluster: no certificate, no secret, no other host.
    pub fn machine(&self, host: &Host, facts: &Facts) -> Result<Complete> {
        self.outfit(Seat::of_host(host, &host.address.to_string()), facts)?.machine()
    }

    fn outfit<'b>(&'b self, seat: Seat<'b>, facts: &'b Facts) -> Result<Outfit<'b>> {
        let is_worker = |group: &Group| group.role == Role::Worker;
        let come_alone = user_data::groups(self.cluster).is_ok_and(|groups| groups.iter().any(is_worker));
        let has_workers = come_alone || self.handoff.hosts.iter().any(|host| host.role == Role::Worker);
        let api_here = self.find_api_here(seat.role);
        let assets = Assets::find(self.cluster, &seat)?;
        let approver = Reserved::list_for(seat.role, self.cluster, self.handoff)?;
        let (cluster, artifacts) = (self.cluster, self.artifacts);
        Ok(Outfit { cluster, artifacts, seat, facts, has_workers, api_here, assets, approver })
    }

    /// Where one of several control-plane hosts is to find its own API server: at the address before all of them. A name may stand for
    /// other addresses tomorrow, and clouds that give one lead a host back to itself.
    fn find_api_here(&self, role: Role) -> Option<Ipv4Addr> {
        let is_one_of_several = role == Role::ControlPlane && self.handoff.control_planes().count() > 1;
        self.handoff.api.host_for_nodes().parse().ok().filter(|_| is_one_of_several)
    }

    fn reference(&self, image: &str) -> Result<String> {
        self.artifacts.reference(image)
    }

    fn node_files(&self, host: &Host, agents: &Agents<'_>, files: &mut Contents<'_>) -> Result<()> {
        files.public("/etc/kubernetes/pki/ca.crt", "ca.crt")?;
        files.public("/etc/kubernetes/pki/kubelet.crt", &format!("kubelet-{}.crt", host.name))?;
        files.key("/etc/kubernetes/pki/kubelet.key", &format!("kubelet-{}.key", host.name), 0)?;
        files.text(kubelet::CONFIG, agents.kubelet_config()?);
        if host.role == Role::ControlPlane {
            let authority = files.pki.text("ca", "crt")?;
            let identity = Identity::File(crate::node::facts::CLIENT_CERTIFICATE);
            let name = &self.cluster.settings.name;
            let server = format!("https://127.0.0.1:{}", self.cluster.settings.api_port);
            files.text(kubelet::KUBECONFIG, kubeconfig::render(name, &server, &authority, "kubelet", &identity));
            let file = format!("kubelet-client-{}", host.name);
            let both = files.pki.text(&file, "crt")? + &files.pki.text(&file, "key")?;
            files.secret(crate::node::facts::CLIENT_CERTIFICATE, &file, both, 0);
            if let Some(file) = files.list.last_mut() {
                file.initial = true;
            }
        }
        Ok(())
    }

    fn control_plane_files(&self, host: &Host, files: &mut Contents<'_>) -> Result<()> {
        const PKI: &str = "/etc/kubernetes/pki";
        for name in ["apiserver-kubelet-client", "apiserver-etcd-client", "front-proxy-client"] {
            files.pair(&format!("{PKI}/{name}"), name, 0)?;
        }
        files.pair(&format!("{PKI}/apiserver"), &format!("apiserver-{}", host.name), 0)?;
        files.key(&format!("{PKI}/ca.key"), "ca.key", 0)?;
        files.key(&format!("{PKI}/sa.key"), "sa.key", 0)?;
        files.public(&format!("{PKI}/sa.pub"), "sa.pub")?;
        files.public(&format!("{PKI}/front-proxy-ca.crt"), "front-proxy-ca.crt")?;
        files.public(&format!("{PKI}/etcd/ca.crt"), "etcd-ca.crt")?;
        for name in ["server", "peer"] {
            files.pair(&format!("{PKI}/etcd/{name}"), &format!("etcd-{name}-{}", host.name), ETCD_USER)?;
        }
        self.component_kubeconfigs(files)?;
        let reference = |name: &str| self.reference(name);
        let settings = &self.cluster.settings;
        let members = Members::read(self.cluster, self.handoff)?;
        let control_plane = ControlPlane { settings, host, member: members.get(&host.name)?, image: &reference };
        for (path, text) in control_plane.files() {
            files.text(path, text);
        }
        if settings.audit {
            let policy = self.cluster.source.read_text("templates/bootstrap/audit-policy.json")?;
            files.text("/etc/kubernetes/config/audit-policy.json", policy);
        }
        if settings.encryption_at_rest {
            let text = encryption_configuration(&files.pki.text("encryption", "key")?);
            files.secret("/etc/kubernetes/config/encryption.json", "encryption.json", text, 0);
        }
        for pod in control_plane.static_pods()? {
            files.text(&pod.path(), pod.render());
        }
        Ok(())
    }

    fn component_kubeconfigs(&self, files: &mut Contents<'_>) -> Result<()> {
        let authority = files.pki.text("ca", "crt")?;
        let approver = user_data::has_comers(self.cluster)?.then_some(serving::APPROVER);
        for name in ["controller-manager", "scheduler"].into_iter().chain(approver) {
            let certificate = files.pki.text(name, "crt")?;
            let key = Zeroizing::new(files.pki.text(name, "key")?);
            let identity = Identity::Embedded { certificate: &certificate, key: &key };
            let server = format!("https://127.0.0.1:{}", self.cluster.settings.api_port);
            let text = kubeconfig::render(&self.cluster.settings.name, &server, &authority, name, &identity);
            files.secret(&format!("/etc/kubernetes/{name}.json"), &format!("{name}.json"), text, 0);
        }
        Ok(())
    }
}

/// What lies in etcd: Secrets under secretbox (`XSalsa20` and `Poly1305`); what was written before stays readable.
fn encryption_configuration(key: &str) -> String {
    let config = serde_json::json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [
            {"secretbox": {"keys": [{"name": "key1", "secret": key}]}},
            {"identity": {}},
        ]}],
    });
    format!("{config:#}\n")
}

fn directories(host: &Host) -> Vec<Directory> {
    let directory = |path: &str, mode, owner| Directory { path: path.into(), mode, owner };
    let mut all = node_directories();
    if host.role == Role::ControlPlane {
        all.push(directory("/etc/kubernetes/config", 0o700, 0));
        all.push(directory("/etc/kubernetes/pki/etcd", 0o755, 0));
        // The root of a disk is made what it should be when it is mounted.
        if host.etcd_disk().is_none() {
            all.push(directory(ETCD_DIR, 0o700, ETCD_USER));
        }
        all.push(directory("/var/log/kubernetes", 0o700, 0));
    }
    all
}

struct Contents<'a> {
    pki: Pki<'a>,
    list: Vec<File>,
    secrets: Secrets,
}

impl Contents<'_> {
    fn text(&mut self, path: &str, text: String) {
        self.push(path, 0o600, 0, Content::Text(text));
    }

    /// A file of `pki/` that everybody may read.
    fn public(&mut self, path: &str, file: &str) -> Result<()> {
        let (name, ending) = file.rsplit_once('.').unwrap_or((file, ""));
        let text = self.pki.text(name, ending)?;
        self.push(path, 0o644, 0, Content::Text(text));
        Ok(())
    }

    /// A private key of `pki/`.
    fn key(&mut self, path: &str, file: &str, owner: u32) -> Result<()> {
        let (name, ending) = file.rsplit_once('.').unwrap_or((file, ""));
        let text = self.pki.text(name, ending)?;
        self.secret(path, file, text, owner);
        Ok(())
    }

    /// A certificate and its key, from `pki/` to where the path says, without their endings.
    fn pair(&mut self, path: &str, name: &str, owner: u32) -> Result<()> {
        self.public(&format!("{path}.crt"), &format!("{name}.crt"))?;
        self.key(&format!("{path}.key"), &format!("{name}.key"), owner)
    }

    fn secret(&mut self, path: &str, name: &str, text: String, owner: u32) {
        // What is not known yet has no digest.
        let sha256 = if change::is_unknown(&text) { text.clone() } else { hex::encode(Sha256::digest(&text)) };
        self.secrets.insert(name.to_owned(), Zeroizing::new(text));
        self.push(path, 0o600, owner, Content::Secret { name: name.to_owned(), sha256 });
    }

    fn push(&mut self, path: &str, mode: u32, owner: u32, content: Content) {
        self.list.push(File::new(path, mode, owner, content));
    }
}

/// How long a worker's join token is valid (security defaults).
pub(super) const TOKEN_LIFE: Duration = Duration::from_mins(30);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
    #![expect(clippy::format_push_string, reason = "a test may be slow and plain")]
    #![expect(clippy::case_sensitive_file_extension_comparisons, reason = "the endings are our own")]

    use super::*;
    use crate::artifacts::{Lock, Obtained};
    use crate::config::{Settings, TreeSource};
    use crate::document::Document as _;
    use crate::node::complete::{API_UNIT, SERVING_UNIT};

    const HANDOFF: &str = r#"{
        "schema": "turnup.provision/1", "cluster": "kubernetes", "target": "local",
        "api": {"host": "10.117.0.10", "port": 6443},
        "hosts": [
            {"name": "cp", "role": "control-plane", "address": "10.117.0.10", "instance": "a",
             "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAA"}, "blobs": "/var/cache/turnup/blobs"},
            {"name": "w0", "role": "worker", "address": "10.117.0.20", "instance": "b",
             "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAA"}}
        ]}"#;

    fn facts() -> Facts {
        Facts {
            schema: Facts::SCHEMA.into(),
            os: "Debian GNU/Linux 12 (bookworm)".into(),
            kernel: "6.1.0".into(),
            arch: "x86_64".into(),
            cgroup: 2,
            container: false,
            lowers_oom_score: true,
            joined: false,
            resolv_conf: "/etc/resolv.conf".into(),
            memory_mib: 4096,
            cpus: 2,
        }
    }

    fn with_completion<T>(changes: &[(&str, &str)], act: impl FnOnce(&Completion<'_>) -> T) -> T {
        let dir = tempfile::tempdir().unwrap();
        let source = TreeSource::embedded();
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set_all(changes).unwrap();
        let cluster = Cluster::open(&settings, source, dir.path()).unwrap();
        let handoff = Handoff::parse("test", HANDOFF).unwrap();
        let artifacts = Obtained::pinned(&Lock::embedded().unwrap().select("1.36.3").unwrap());
        let completion = Completion { cluster: &cluster, handoff: &handoff, artifacts: &artifacts };
        let pki = Pki::new(&cluster.store);
        for authority in Authority::ALL {
            pki.ensure_authority(authority, "kubernetes").unwrap();
        }
        pki.ensure_service_account_key().unwrap();
        pki.ensure_encryption_key().unwrap();
        for leaf in completion.leaves().unwrap() {
            pki.ensure_leaf(&leaf).unwrap();
        }
        act(&completion)
    }

    fn text_of<'c>(complete: &'c Complete, path: &str) -> &'c str {
        let file = complete.files.iter().find(|file| file.path == path).unwrap();
        match &file.content {
            Content::Text(text) => text,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn every_file_of_the_control_plane() {
        with_completion(&[], |completion| {
            let (complete, _) = completion.complete(&completion.handoff.hosts[0], &facts()).unwrap();
            let mut text = String::new();
            for file in &complete.files {
                let content = match &file.content {
                    Content::Text(_) if file.path.ends_with(".crt") || file.path.ends_with(".pub") => "(certificate)\n",
                    Content::Text(_) if file.path.ends_with("kubelet-kubeconfig.json") => "(kubeconfig)\n",
                    Content::Text(text) => text,
                    Content::Secret { name, .. } => &format!("(secret {name})\n"),
                    other => panic!("{} is {other:?}", file.path),
                };
                text += &format!("--- {} {:o} {}\n{content}", file.path, file.mode, file.owner);
            }
            for unit in &complete.units {
                text += &format!("--- unit {}\n{}", unit.name, unit.text);
            }
            insta::assert_snapshot!(text);
        });
    }

    #[test]
    fn a_disk_of_etcds_own_is_mounted_before_kubelet_and_nothing_else_changes() {
        with_completion(&[("phase1.cluster_name", "a-long-name-of-a-cluster")], |completion| {
            let host = &completion.handoff.hosts[0];
            let (without, _) = completion.complete(host, &facts()).unwrap();
            let with = Host { etcd_device: "/dev/disk/by-id/nvme-1".into(), ..host.clone() };
            let (with, _) = completion.complete(&with, &facts()).unwrap();
            assert!(without.mounts.is_empty() && !serde_json::to_string(&without).unwrap().contains("mounts"));
            let mut mounts = with.mounts.clone();
            let whose = mounts[0].belongs_to.split_off("a-long-name-of-a-cluster ".len());
            assert_eq!(whose.len(), 64, "the digest of etcd's authority: {whose}");
            let mut text = serde_json::to_string_pretty(&mounts).unwrap() + "\n";
            for unit in with.units.iter().filter(|unit| !without.units.contains(unit)) {
                text += &format!("--- unit {}\n{}", unit.name, unit.text);
            }
            for path in with.files.iter().filter(|file| !without.files.contains(file)).map(|file| &file.path) {
                let lines = text_of(&with, path).lines().filter(|line| line.contains("etcd-disk"));
                text += &format!("--- file {path}\n{}\n", lines.collect::<Vec<_>>().join("\n"));
            }
            let gone = without.directories.iter().filter(|directory| !with.directories.contains(directory));
            text += &format!("without {gone:?}\n", gone = gone.map(|gone| &gone.path).collect::<Vec<_>>());
            insta::assert_snapshot!(text);
            let names: Vec<&str> = with.units.iter().map(|unit| unit.name.as_str()).collect();
            assert_eq!(names, ["containerd.service", "turnup-mounts.service", "kubelet.service"]);
        });
    }

    #[test]
    fn each_of_several_control_plane_hosts_reaches_its_own_api_server() {
        let names = |completion: &Completion<'_>, host: usize| {
            let (complete, _) = completion.complete(&completion.handoff.hosts[host], &facts()).unwrap();
            complete.units
        };
        with_completion(&[], |completion| {
            let alone = names(completion, 0);
            assert!(!alone.iter().any(|unit| unit.name == API_UNIT), "the one host is the address");
            let mut handoff = completion.handoff.clone();
            handoff.hosts[1].role = Role::ControlPlane;
            handoff.api.internal_host = Some("10.117.0.99".into());
            let several = Completion { handoff: &handoff, ..*completion };
            let pki = Pki::new(&several.cluster.store);
            for leaf in several.leaves().unwrap() {
                pki.ensure_leaf(&leaf).unwrap();
            }
            let units = names(&several, 0);
            let order: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
            assert_eq!(order, ["containerd.service", API_UNIT, "kubelet.service"]);
            insta::assert_snapshot!(units[1].text);
            handoff.api.internal_host = Some("api.example.com".into());
            let by_name = Completion { handoff: &handoff, ..*completion };
            assert_eq!(names(&by_name, 0).len(), 2);
        });
    }

    #[test]
    fn where_hosts_come_by_themselves_the_control_plane_approves_what_they_serve_with() {
        with_completion(&[], |completion| {
            let (without, _) = completion.complete(&completion.handoff.hosts[0], &facts()).unwrap();
            super::super::token::ensure_for_group(&completion.cluster.store, "pool", Duration::from_hours(1)).unwrap();
            let pki = Pki::new(&completion.cluster.store);
            for leaf in completion.leaves().unwrap() {
                pki.ensure_leaf(&leaf).unwrap();
            }
            let (with, secrets) = completion.complete(&completion.handoff.hosts[0], &facts()).unwrap();
            let new: Vec<&str> =
                with.units.iter().filter(|unit| !without.units.contains(unit)).map(|unit| &*unit.name).collect();
            assert_eq!(new, [SERVING_UNIT]);
            assert_eq!(with.units.last().unwrap().name, SERVING_UNIT, "after kubelet");
            let version = completion.cluster.version();
            insta::assert_snapshot!(with.units.last().unwrap().text.replace(version, "(the sha256 of turnup)"));
            let new: Vec<&File> = with.files.iter().filter(|file| !without.files.contains(file)).collect();
            assert_eq!((new.len(), &*new[0].path, new[0].mode), (1, "/etc/kubernetes/serving-approver.json", 0o600));
            assert!(secrets["serving-approver.json"].contains("https://127.0.0.1:6443"), "the API server beside it");
            let new: Vec<&str> =
                with.binaries.iter().filter(|one| !without.binaries.contains(one)).map(|one| &*one.path).collect();
            assert_eq!(new, ["/opt/turnup/bin/kubectl"]);
            let (worker, _) = completion.complete(&completion.handoff.hosts[1], &facts()).unwrap();
            assert!(!serde_json::to_string(&worker).unwrap().contains("serving-approver"));
        });
    }

    #[test]
    fn a_worker_gets_no_key_but_its_own() {
        with_completion(&[], |completion| {
            let (complete, secrets) = completion.complete(&completion.handoff.hosts[1], &facts()).unwrap();
            assert_eq!(secrets.keys().collect::<Vec<_>>(), ["kubelet-w0.key"]);
            let paths: Vec<&str> = complete.files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(
                paths,
                [
                    "/etc/containerd/config.toml",
                    "/etc/sysctl.d/90-turnup.conf",
                    "/etc/kubernetes/pki/ca.crt",
                    "/etc/kubernetes/pki/kubelet.crt",
                    "/etc/kubernetes/pki/kubelet.key",
                    "/etc/kubernetes/kubelet.json",
                ]
            );
            assert!(!text_of(&complete, "/etc/kubernetes/kubelet.json").contains("node-role"), "a worker has no taint");
        });
    }

    #[test]
    fn no_secret_is_in_the_file_that_a_person_reads() {
        with_completion(&[], |completion| {
            let (complete, secrets) = completion.complete(&completion.handoff.hosts[0], &facts()).unwrap();
            let text = serde_json::to_string(&complete).unwrap();
            assert!(!text.contains("PRIVATE KEY"));
            assert!(secrets.len() > 8);
            for (name, secret) in &secrets {
                assert!(!text.contains(secret.trim()), "{name}");
            }
        });
    }

    #[test]
    fn the_same_inputs_give_the_same_bytes() {
        with_completion(&[], |completion| {
            let host = &completion.handoff.hosts[0];
            let once = serde_json::to_string(&completion.complete(host, &facts()).unwrap().0).unwrap();
            let twice = serde_json::to_string(&completion.complete(host, &facts()).unwrap().0).unwrap();
            assert_eq!(once, twice);
        });
    }

    #[test]
    fn a_loosened_control_reaches_the_flags() {
        let changes = [
            ("phase2.security.audit", "n"),
            ("phase2.security.encryption_at_rest", "n"),
            ("phase2.security.tls13", "n"),
            ("phase2.security.pod_security", "n"),
        ];
        with_completion(&changes, |completion| {
            let (complete, secrets) = completion.complete(&completion.handoff.hosts[0], &facts()).unwrap();
            let apiserver = text_of(&complete, "/etc/kubernetes/manifests/kube-apiserver.json");
            for gone in ["--audit-", "--encryption-provider-config", "VersionTLS13"] {
                assert!(!apiserver.contains(gone), "{gone}");
            }
            assert!(!text_of(&complete, "/etc/kubernetes/config/admission.json").contains("PodSecurity"));
            assert!(!secrets.contains_key("encryption.json"));
        });
    }

    #[test]
    fn a_container_on_cgroup_v1_is_treated_as_what_it_is() {
        let facts = Facts { cgroup: 1, container: true, lowers_oom_score: false, ..facts() };
        with_completion(&[], |completion| {
            let (complete, _) = completion.complete(&completion.handoff.hosts[1], &facts).unwrap();
            assert!(complete.modules.is_empty());
            assert!(text_of(&complete, "/etc/kubernetes/kubelet.json").contains("\"cgroupDriver\": \"cgroupfs\""));
            let containerd = text_of(&complete, "/etc/containerd/config.toml");
            assert!(containerd.contains("restrict_oom_score_adj = true"), "{containerd}");
            assert!(containerd.contains("SystemdCgroup = false"), "{containerd}");
        });
    }
}
