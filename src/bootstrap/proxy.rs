//! The way out of the hosts' network through an HTTP proxy: who is told of it, in which form, and
//! what is reached without it.
//!
//! A URL without user name and password, so it may stand in units, which every user of a host can
//! see. Asks no host.

use std::collections::BTreeSet;

use crate::artifacts::covers;
use crate::cloud::Cloud;
use crate::cluster::{Cluster, ProxySettings};
use crate::error::Result;
use crate::node::node_config::{Content, File, PROXY_AUTHORITY, Proxy};

use super::runtime::read_certificates;

/// apt's part: it looks at no environment when a timer starts it.
const APT: &str = "/etc/apt/apt.conf.d/90turnup-proxy";
/// What never lies behind a proxy: the host itself, and the addresses at which clouds tell their
/// hosts what they are. A cloud adds its own.
const OWN: [&str; 4] = ["localhost", "127.0.0.0/8", "::1", "169.254.0.0/16"];

/// The proxy of a host, where the settings name one.
pub(super) struct HostProxy<'a> {
    cluster: &'a Cluster,
    settings: &'a ProxySettings,
    no_proxy: Vec<String>,
}

impl<'a> HostProxy<'a> {
    /// `api` is where hosts reach the API, as far as that is known. Nothing that a proxy is for
    /// reaches other hosts, so that one that comes or goes changes nothing on the rest.
    pub(super) fn find(cluster: &'a Cluster, api: Option<&str>) -> Option<Self> {
        let settings = Some(&cluster.settings.proxy).filter(|proxy| proxy.is_set())?;
        let of = &cluster.settings;
        let mut no_proxy: Vec<String> = OWN.map(str::to_owned).to_vec();
        no_proxy.extend([of.pod_cidr.to_string(), of.service_cidr.to_string()]);
        no_proxy.extend([".svc".to_owned(), format!(".{}", of.cluster_domain.trim_matches('.'))]);
        no_proxy.extend(of.firewall.host_networks.iter().chain(&settings.no_proxy).cloned());
        let metadata = of.target.cloud().map(Cloud::metadata_hosts).unwrap_or_default();
        for host in metadata.iter().copied().chain(api) {
            if !no_proxy.iter().any(|entry| covers(entry, host)) {
                no_proxy.push(host.to_owned());
            }
        }
        let mut known = BTreeSet::new();
        no_proxy.retain(|entry| known.insert(entry.clone()));
        Some(Self { cluster, settings, no_proxy })
    }

    /// For what runs on the host.
    pub(super) fn decided(&self) -> Proxy {
        let ProxySettings { http_proxy, https_proxy, .. } = self.settings.clone();
        Proxy { http: http_proxy, https: https_proxy, direct: self.no_proxy.clone() }
    }

    /// `NAME=VALUE` for a unit of systemd, where a percent sign begins a specifier.
    pub(super) fn environment(&self) -> Vec<String> {
        let all = [
            ("HTTP_PROXY", self.settings.http_proxy.clone()),
            ("HTTPS_PROXY", self.settings.https_proxy.clone()),
            ("NO_PROXY", self.no_proxy.join(",")),
        ];
        let given = all.into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| format!("{name}={}", value.replace('%', "%%"))).collect()
    }

    /// The same for programs that know the names in lower case alone, such as curl.
    pub(super) fn environment_of_tools(&self) -> Vec<String> {
        let lower =
            |line: &String| line.split_once('=').map(|(name, value)| format!("{}={value}", name.to_lowercase()));
        let all = self.environment();
        all.iter().filter_map(lower).chain(all.iter().cloned()).collect()
    }

    /// What apt and the store of trusted authorities read.
    pub(super) fn files(&self) -> Result<Vec<File>> {
        let mut files = vec![File::new(APT, 0o644, 0, Content::Text(self.apt()))];
        if self.has_authority() {
            let text = read_certificates(self.cluster, "phase2.proxy_ca_file", &self.settings.proxy_ca_file)?;
            files.push(File::new(PROXY_AUTHORITY, 0o644, 0, Content::Text(text)));
        }
        Ok(files)
    }

    /// Whether the proxy opens TLS with certificates of an authority of its own.
    pub(super) const fn has_authority(&self) -> bool {
        !self.settings.proxy_ca_file.is_empty()
    }

    /// Networks and endings are unknown to apt, which takes only whole names of hosts.
    fn apt(&self) -> String {
        let (http, https) = (&self.settings.http_proxy, &self.settings.https_proxy);
        let is_host = |entry: &&String| !entry.contains('/') && !entry.starts_with(['.', '@']) && !entry.contains(':');
        let given = [("http", http), ("https", https)].into_iter().filter(|(_, proxy)| !proxy.is_empty());
        let lines = given.flat_map(|(scheme, proxy)| {
            let direct = self.no_proxy.iter().filter(is_host);
            let direct = direct.map(move |host| format!("Acquire::{scheme}::Proxy::{host} \"DIRECT\";\n"));
            std::iter::once(format!("Acquire::{scheme}::Proxy \"{proxy}\";\n")).chain(direct)
        });
        lines.collect::<Vec<_>>().concat()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::config::{Settings, TreeSource};

    fn with_proxy<T>(changes: &[(&str, &str)], api: &str, look: impl FnOnce(&HostProxy<'_>) -> T) -> Option<T> {
        let dir = tempfile::tempdir().unwrap();
        let source = TreeSource::embedded();
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set_all(changes).unwrap();
        let cluster = Cluster::open(&settings, source, dir.path()).unwrap();
        HostProxy::find(&cluster, Some(api)).map(|proxy| look(&proxy))
    }

    #[test]
    fn a_network_or_an_ending_covers_what_is_in_it() {
        let direct = |changes: &[(&str, &str)], api: &str| {
            let proxy = [("phase2.http_proxy", "http://proxy.example.com:3128")];
            let changes: Vec<_> = proxy.iter().chain(changes).copied().collect();
            with_proxy(&changes, api, |proxy| proxy.no_proxy.clone()).unwrap()
        };
        let has = |list: &[String], entry: &str| list.iter().any(|one| one == entry);
        let bare = ("phase1.cloud_provider", "baremetal");
        assert!(has(&direct(&[bare], "192.0.2.10"), "192.0.2.10"));
        assert!(!has(&direct(&[bare, ("phase2.no_proxy", "192.0.2.0/24")], "192.0.2.10"), "192.0.2.10"));
        assert!(!has(&direct(&[bare, ("phase2.no_proxy", ".example.com")], "api.example.com"), "api.example.com"));
        assert!(!has(&direct(&[], "10.117.0.2"), "10.117.0.2"), "the network of the hosts has it");
        for cloud in crate::cloud::CLOUDS {
            let own = direct(&[("phase1.cloud_provider", cloud.name())], "api.example.com");
            let missing = cloud.metadata_hosts().iter().find(|host| !own.iter().any(|entry| covers(entry, host)));
            assert_eq!(missing, None, "{}: {own:?}", cloud.name());
            assert!(!cloud.metadata_hosts().is_empty());
        }
    }

    #[test]
    fn what_the_cluster_consists_of_is_reached_directly() {
        assert!(with_proxy(&[], "", |_| ()).is_none());
        let changes =
            [("phase2.http_proxy", "http://proxy.example.com:3128"), ("phase2.no_proxy", "10.0.0.0/8,.intern")];
        with_proxy(&changes, "api.example.com", |proxy| {
            insta::assert_snapshot!(proxy.environment().join("\n"), @r"
            HTTP_PROXY=http://proxy.example.com:3128
            HTTPS_PROXY=http://proxy.example.com:3128
            NO_PROXY=localhost,127.0.0.0/8,::1,169.254.0.0/16,10.244.0.0/16,10.96.0.0/16,.svc,.cluster.local,10.117.0.0/24,10.0.0.0/8,.intern,api.example.com
            ");
            assert_eq!(proxy.environment_of_tools()[0], "http_proxy=http://proxy.example.com:3128");
            insta::assert_snapshot!(proxy.apt(), @r#"
            Acquire::http::Proxy "http://proxy.example.com:3128";
            Acquire::http::Proxy::localhost "DIRECT";
            Acquire::http::Proxy::api.example.com "DIRECT";
            Acquire::https::Proxy "http://proxy.example.com:3128";
            Acquire::https::Proxy::localhost "DIRECT";
            Acquire::https::Proxy::api.example.com "DIRECT";
            "#);
            assert_eq!(proxy.files().unwrap().len(), 1, "without an authority there is nothing to trust");
            let decided = proxy.decided();
            assert_eq!(decided.https, decided.http, "the one for https follows the other");
        })
        .unwrap();
    }
}
