//! The list behind `turnup certificates`: every certificate that the cluster's directory knows of,
//! whose it is, who signed it, where it is and who renews it. It asks no host.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::bootstrap::node_config::find_written;
use crate::bootstrap::pki::{BACK_DATE, hosts_of, rest_at_renewal};
use crate::bootstrap::pki_items::{AuthorityItem, authorities};
use crate::bootstrap::rotation::{UnfinishedRotation, find_unfinished};
use crate::bootstrap::{ItemState, KeysetName};
use crate::cluster::Cluster;
use crate::error::Result;
use crate::inventory::Inventory;
use crate::node::node_config::Content;
use crate::state::{Credential, Store};

use super::certificates::{Certificate, CertificateLife, HERE, describe, files_here, level};

/// The name and version of its JSON; it grows only by new fields.
pub(crate) const SCHEMA: &str = "turnup.certificates/1";

/// What shows or uses the certificate, by its file below `pki/`.
const OWNERS: [(&str, &str); 11] = [
    ("admin", "administrator"),
    ("apiserver-etcd-client", "kube-apiserver, client of etcd"),
    ("apiserver-kubelet-client", "kube-apiserver, client of kubelets"),
    ("controller-manager", "kube-controller-manager"),
    ("csr-approver", "CSR approver"),
    ("dns", "writer of DNS names"),
    ("front-proxy-client", "kube-apiserver, client of extension API servers"),
    ("healthcheck", "health check of kube-apiserver"),
    ("machine-authenticator", "machine authenticator"),
    ("scheduler", "kube-scheduler"),
    ("ca-chain", "authority above"),
];
/// The same for those of one host, whose name follows. Longer ones first: a name may begin as one.
const OWNERS_OF_HOSTS: [(&str, &str); 6] = [
    ("kubelet-client-", "kubelet, client"),
    ("etcd-server-", "etcd, server"),
    ("etcd-peer-", "etcd, peer"),
    ("apiserver-", "kube-apiserver"),
    ("kubelet-", "kubelet"),
    ("host-", "the host itself"),
];

/// All certificates of a cluster.
#[derive(Debug, Serialize)]
pub(crate) struct CertificateList {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// When it was looked at.
    pub at: Timestamp,
    /// The cluster's name.
    pub cluster: String,
    /// Authorities first, then those of components and hosts, then those of people.
    pub certificates: Vec<ListedCertificate>,
    /// Rotations of keysets that have not come to their ends.
    pub rotations: Vec<UnfinishedRotation>,
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ListedCertificate {
    /// The component or the user.
    pub owner: String,
    /// The host, where it is one host's alone.
    pub host: Option<String>,
    /// The subject's common name.
    pub subject: String,
    /// The subject's organizations: to the API server the groups of its user.
    pub groups: Vec<String>,
    /// DNS names and IP addresses at which it serves.
    pub sans: Vec<String>,
    /// The item of a keyset that signed it: `kubernetes-ca 2`; nothing where none did, or where
    /// that was not written down.
    pub issuer: Option<String>,
    /// The serial number, in hexadecimal.
    pub serial: String,
    /// When it ends.
    pub ends: Timestamp,
    /// How long that is from now; negative when it has ended.
    pub left_seconds: i64,
    /// Whether that is enough.
    pub level: CertificateLife,
    /// Its file below the cluster's directory; nothing for one that is kept elsewhere.
    pub file: Option<String>,
    /// Where it is on hosts, as far as node configs were written.
    pub on_hosts: Vec<Place>,
    /// What renews it.
    pub renewed_by: String,
    /// From when that does; nothing where it follows from something else.
    pub renewed_from: Option<Timestamp>,
}

/// A file on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    /// The host.
    pub host: String,
    /// Its file there.
    pub path: String,
}

impl CertificateList {
    /// Reads the cluster's directory.
    pub(crate) fn read(cluster: &Cluster) -> Result<Self> {
        let inventory = cluster.find_inventory()?;
        let now = Timestamp::now();
        let reader = Reader {
            store: &cluster.store,
            authorities: authorities(&cluster.store)?,
            hosts: inventory.as_ref().map(host_names).unwrap_or_default(),
            files: inventory.as_ref().map(|inventory| find_files(cluster, inventory)).transpose()?.unwrap_or_default(),
            now,
        };
        let mut certificates = Vec::new();
        for name in files_here(&cluster.store) {
            certificates.extend(reader.read(&name)?);
        }
        certificates.sort_by_key(|one| (!one.is_authority(), one.owner.clone(), one.host.clone(), one.file.clone()));
        let state = cluster.store.state()?;
        let issued = state.credentials.iter().filter_map(|credential| person(credential, now));
        certificates.extend(issued);
        let rotations = find_unfinished(cluster)?;
        Ok(Self { schema: SCHEMA, at: now, cluster: cluster.settings.name.clone(), certificates, rotations })
    }
}

impl ListedCertificate {
    fn is_authority(&self) -> bool {
        self.owner.starts_with("authority")
    }
}

fn host_names(inventory: &Inventory) -> Vec<String> {
    inventory.hosts.iter().map(|host| host.name.clone()).collect()
}

/// The files of hosts that may have a certificate, of some hundred that a host has.
fn find_files(cluster: &Cluster, inventory: &Inventory) -> Result<Vec<(Place, Content)>> {
    let may_have_one = |content: &Content| match content {
        Content::Text(text) => text.contains("-----BEGIN CERTIFICATE"),
        Content::Secret { .. } => true,
        _ => false,
    };
    let mut found = Vec::new();
    for host in &inventory.hosts {
        let files = find_written(cluster, &host.name)?.map(|config| config.files).unwrap_or_default();
        let files = files.into_iter().filter(|file| may_have_one(&file.content));
        found.extend(files.map(|file| (Place { host: host.name.clone(), path: file.path }, file.content)));
    }
    Ok(found)
}

struct Reader<'a> {
    store: &'a Store,
    authorities: Vec<AuthorityItem>,
    hosts: Vec<String>,
    files: Vec<(Place, Content)>,
    now: Timestamp,
}

impl Reader<'_> {
    /// The certificates of a file below `pki/`; one, but for those above an authority.
    fn read(&self, name: &str) -> Result<Vec<ListedCertificate>> {
        let file = format!("pki/{name}");
        let text = self.store.read(&file)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let blocks = Pem::iter_from_buffer(text.as_bytes()).flatten().filter(|pem| pem.label == "CERTIFICATE");
        Ok(blocks.filter_map(|pem| self.list(name.trim_end_matches(".crt"), &file, &text, &pem.contents)).collect())
    }

    fn list(&self, stem: &str, file: &str, text: &str, der: &[u8]) -> Option<ListedCertificate> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let Certificate { subject, groups, ends, left_seconds, level, .. } =
            describe(HERE, file, &certificate, self.now)?;
        let begins = certificate.validity().not_before.timestamp();
        let issuer = self.authorities.iter().find(|one| one.has_signed(&certificate));
        let (owner, host) = self.owner(stem);
        let (renewed_by, renewed_from) = self.renewal(stem, host.as_deref(), begins, ends.as_second(), issuer);
        Some(ListedCertificate {
            owner,
            host,
            subject,
            groups,
            sans: hosts_of(&certificate),
            issuer: issuer.map(|one| format!("{} {}", one.keyset, one.id)),
            serial: certificate.raw_serial_as_string().replace(':', ""),
            ends,
            left_seconds,
            level,
            file: Some(file.to_owned()),
            on_hosts: self.places(stem, text),
            renewed_by,
            renewed_from,
        })
    }

    fn item(&self, stem: &str) -> Option<&AuthorityItem> {
        self.authorities.iter().find(|one| one.file == stem)
    }

    fn owner(&self, stem: &str) -> (String, Option<String>) {
        if let Some(item) = self.item(stem) {
            return (format!("authority {} {} ({})", item.keyset, item.id, item.state.name()), None);
        }
        let known =
            OWNERS.iter().find(|(file, _)| *file == stem || stem.starts_with("ca-chain") && *file == "ca-chain");
        if let Some((_, owner)) = known {
            return ((*owner).to_owned(), None);
        }
        let of_host = OWNERS_OF_HOSTS.iter().find_map(|(start, owner)| Some((*owner, stem.strip_prefix(start)?)));
        of_host.map_or_else(|| (stem.to_owned(), None), |(owner, host)| (owner.to_owned(), Some(host.to_owned())))
    }

    /// What renews it, and from when.
    fn renewal(
        &self,
        stem: &str,
        host: Option<&str>,
        begins: i64,
        ends: i64,
        issuer: Option<&AuthorityItem>,
    ) -> (String, Option<Timestamp>) {
        let by = match self.item(stem) {
            Some(item) if item.state == ItemState::Distrusted => return ("nothing: distrusted".to_owned(), None),
            Some(item) => return (format!("turnup keyset create {}", item.keyset), None),
            None if stem.starts_with("ca-chain") => return ("phase2.pki.ca_cert_file".to_owned(), None),
            None if stem == "admin" => "turnup kubeconfig",
            None => "turnup up",
        };
        if host.is_some_and(|host| !self.hosts.iter().any(|known| known == host)) {
            return ("nothing: its host is gone".to_owned(), None);
        }
        if stem.starts_with("kubelet-client-") {
            return ("its kubelet, on the host".to_owned(), None);
        }
        if let Some(issuer) = issuer.filter(|issuer| issuer.ends == ends) {
            return (format!("{by}, after a rotation of {}", issuer.keyset), None);
        }
        let life = u64::try_from(ends - begins).map(Duration::from_secs).unwrap_or_default().saturating_sub(BACK_DATE);
        let rest = i64::try_from(rest_at_renewal(stem, life).as_secs()).unwrap_or_default();
        (by.to_owned(), Timestamp::from_second(ends - rest).ok())
    }

    /// The files on hosts that have it: alone, in a bundle, or with its key.
    fn places(&self, stem: &str, text: &str) -> Vec<Place> {
        let has = |content: &Content| match content {
            Content::Text(found) => found.contains(text.trim_end()),
            Content::Secret { name, .. } => name == stem || *name == format!("{stem}.conf"),
            _ => false,
        };
        if text.is_empty() {
            return Vec::new();
        }
        self.files.iter().filter(|(_, content)| has(content)).map(|(place, _)| place.clone()).collect()
    }
}

/// A credential that was issued besides the administrator's, as the journal has it.
fn person(credential: &Credential, now: Timestamp) -> Option<ListedCertificate> {
    let (begins, ends) = (credential.issued.as_second(), credential.expires.as_second());
    let renewed_by =
        if credential.break_glass { "turnup kubeconfig --break-glass" } else { "turnup kubeconfig --user" };
    Some(ListedCertificate {
        owner: "a user of the API".to_owned(),
        host: None,
        subject: credential.user.clone(),
        groups: credential.groups.clone(),
        sans: Vec::new(),
        issuer: None,
        serial: credential.serial.clone(),
        ends: Timestamp::from_second(ends).ok()?,
        left_seconds: ends - now.as_second(),
        level: level(begins, ends, now),
        file: None,
        on_hosts: Vec::new(),
        renewed_by: renewed_by.to_owned(),
        renewed_from: None,
    })
}

/// What status says of a certificate of this file whose end is near: what renews it.
pub(super) fn remedy(file: &str) -> String {
    let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".crt");
    let is_item = |stem: &str, name: KeysetName| {
        let own = name.authority().map_or("", crate::bootstrap::pki::Authority::file);
        let rest = stem.strip_prefix(own).unwrap_or("?");
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok())
    };
    match stem {
        "admin" => "turnup kubeconfig".to_owned(),
        "kubelet-client-current.pem" => "its kubelet renews it by itself".to_owned(),
        _ => KeysetName::ALL
            .into_iter()
            .find(|name| name.authority().is_some() && file.starts_with("pki/") && is_item(stem, *name))
            .map_or_else(|| "turnup up".to_owned(), |name| format!("turnup keyset create {name}")),
    }
}
