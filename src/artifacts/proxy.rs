//! Which URLs are fetched through a proxy, and whose certificates are trusted then. It fetches
//! nothing.

use std::net::IpAddr;
use std::sync::Arc;

use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use crate::network::{Network, Network6};
use crate::{Context as _, Error, Result};

/// Authorities that a host trusts, in PEM: Debian's bundle, Fedora's.
const BUNDLES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The way out of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownloadProxy {
    /// For `http://`: `http://proxy.example.com:3128`; empty: directly.
    pub http: String,
    /// For `https://`, in the same form.
    pub https: String,
    /// What is reached directly: names with all below them, endings (`.example.com`), addresses,
    /// networks in CIDR form.
    pub direct: Vec<String>,
    /// Certificates in PEM of authorities that are trusted beside the usual ones.
    pub authorities: String,
}

impl DownloadProxy {
    /// The proxy that leads to this URL, if one does.
    #[must_use]
    pub fn find(&self, url: &str) -> Option<&str> {
        let (scheme, rest) = url.split_once("://")?;
        let proxy = if scheme == "https" { &self.https } else { &self.http };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_ascii_lowercase();
        let is_direct = self.direct.iter().any(|entry| covers(entry, &host));
        (!proxy.is_empty() && !is_direct).then_some(proxy.as_str())
    }

    /// Where a request for this URL goes, and whom it trusts.
    pub(super) fn transport(&self, url: &str) -> Result<(Option<ureq::Proxy>, RootCerts)> {
        let via = self.find(url).map(ureq::Proxy::new).transpose();
        let via = via.map_err(|error| Error::config("the proxy's URL cannot be used").source(error))?;
        if self.authorities.is_empty() {
            return Ok((via, RootCerts::WebPki));
        }
        // With certificates of one's own, only these count: the host's are added.
        let bundle = BUNDLES.iter().find_map(|path| fs_err::read(path).ok()).unwrap_or_default();
        let mut known = read_certificates(&bundle).unwrap_or_default();
        known.extend(read_certificates(self.authorities.as_bytes())?);
        Ok((via, RootCerts::Specific(Arc::new(known))))
    }
}

fn read_certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>> {
    let mut certificates = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.context("a certificate of the proxy's authority is no PEM")? {
            certificates.push(certificate);
        }
    }
    Ok(certificates)
}

/// Whether an exception is about this host, as Go's programs read `NO_PROXY`.
#[must_use]
pub fn covers(entry: &str, host: &str) -> bool {
    if let Ok(address) = host.parse::<IpAddr>() {
        if let Ok(one) = entry.parse::<IpAddr>() {
            return one == address;
        }
        return match address {
            IpAddr::V4(address) => entry.parse::<Network>().is_ok_and(|network| network.contains(address)),
            IpAddr::V6(address) => entry
                .parse::<Network6>()
                .is_ok_and(|network| Network6::containing(address, network.prefix()) == network),
        };
    }
    let ending = entry.trim_start_matches('.').to_ascii_lowercase();
    let is_below = host.strip_suffix(&ending).is_some_and(|rest| rest.ends_with('.'));
    !ending.is_empty() && (is_below || (host == ending && !entry.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_read_as_components_of_kubernetes_read_them() {
        let direct = ["10.0.0.0/8", "192.0.2.7", ".svc", "example.com"].map(str::to_owned).to_vec();
        let proxy =
            DownloadProxy { http: "http://a:1".into(), https: "http://b:2".into(), direct, ..DownloadProxy::default() };
        for direct in [
            "http://10.1.2.3/x",
            "https://192.0.2.7:5000/v2",
            "https://kubernetes.default.svc",
            "http://example.com",
            "http://www.Example.com:80/",
        ] {
            assert_eq!(proxy.find(direct), None, "{direct}");
        }
        for (url, via) in [
            ("http://192.0.2.8/", "http://a:1"),
            ("https://svc/", "http://b:2"),
            ("https://anexample.com/a", "http://b:2"),
            ("https://example.org/?at=10.0.0.1", "http://b:2"),
        ] {
            assert_eq!(proxy.find(url), Some(via), "{url}");
        }
        assert_eq!(
            DownloadProxy { http: "http://a:1".into(), ..DownloadProxy::default() }.find("https://example.org"),
            None
        );
    }
}
