//! When certificates end. Only certificates are read here, never a key.

use jiff::Timestamp;
use serde::Serialize;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::Result;
use crate::state::Store;

/// Where certificates of the cluster's own directory are.
pub(super) const HERE: &str = "here";

/// How much of its life a certificate has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CertificateLife {
    /// As much as it has at its renewal, or more.
    Ok,
    /// Less than that: 7 of 30 parts, a third less the largest share (`pki::rest_at_renewal`).
    Ending,
    /// Nothing.
    Ended,
}

/// A certificate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Certificate {
    /// `here`, or the host that has it.
    pub place: String,
    /// Its file, below the cluster's directory or on the host.
    pub file: String,
    /// The subject's common name.
    pub subject: String,
    /// The subject's organizations: to the API server the groups of its user.
    pub groups: Vec<String>,
    /// When it ends.
    pub ends: Timestamp,
    /// How long that is from now; negative when it has ended.
    pub left_seconds: i64,
    /// Whether that is enough.
    pub level: CertificateLife,
}

impl Certificate {
    /// Whether it is the administrator's.
    #[must_use]
    pub(crate) fn is_administrators(&self) -> bool {
        self.is_here() && self.file == "pki/admin.crt"
    }

    /// Whether it lies in the cluster's own directory.
    #[must_use]
    pub(crate) fn is_here(&self) -> bool {
        self.place == HERE
    }
}

/// The certificates in the cluster's own directory.
pub(super) fn here(store: &Store) -> Result<Vec<Certificate>> {
    let mut found = Vec::new();
    for name in files_here(store) {
        let file = format!("pki/{name}");
        let pem = store.read(&file)?.unwrap_or_default();
        found.extend(read(HERE, &file, &pem, Timestamp::now()));
    }
    Ok(found)
}

/// The files of certificates below `pki/`, by name.
pub(super) fn files_here(store: &Store) -> Vec<String> {
    let entries = fs_err::read_dir(store.path("pki")).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "crt"));
    let mut names: Vec<String> = paths.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

/// How much of a life between these seconds is left.
pub(super) fn level(begins: i64, ends: i64, now: Timestamp) -> CertificateLife {
    match ends - now.as_second() {
        ..=0 => CertificateLife::Ended,
        left if left < (ends - begins) * 7 / 30 => CertificateLife::Ending,
        _ => CertificateLife::Ok,
    }
}

/// The first certificate of a PEM file: those after it are the authorities that signed it.
pub(super) fn read(place: &str, file: &str, pem: &[u8], now: Timestamp) -> Option<Certificate> {
    let pem = Pem::iter_from_buffer(pem).flatten().find(|pem| pem.label == "CERTIFICATE")?;
    let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
    describe(place, file, &certificate, now)
}

/// What is said of a certificate.
pub(super) fn describe(
    place: &str,
    file: &str,
    certificate: &X509Certificate<'_>,
    now: Timestamp,
) -> Option<Certificate> {
    let (begins, ends) = (certificate.validity().not_before.timestamp(), certificate.validity().not_after.timestamp());
    let subject = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    let groups = certificate.subject().iter_organization().filter_map(|name| name.as_str().ok());
    Some(Certificate {
        place: place.to_owned(),
        file: file.to_owned(),
        subject: subject.unwrap_or_default().to_owned(),
        groups: groups.map(str::to_owned).collect(),
        ends: Timestamp::from_second(ends).ok()?,
        left_seconds: ends - now.as_second(),
        level: level(begins, ends, now),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::bootstrap::pki::{Authority, Leaf, Pki};

    #[test]
    fn a_certificate_is_good_then_ending_then_ended() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let pki = Pki::new(&store);
        pki.ensure_authority(Authority::Cluster, "c").unwrap();
        pki.ensure_leaf(&Leaf::client("scheduler", Authority::Cluster, "system:kube-scheduler", None)).unwrap();
        let all = here(&store).unwrap();
        let names: Vec<&str> = all.iter().map(|one| one.file.as_str()).collect();
        assert_eq!(names, ["pki/ca.crt", "pki/scheduler.crt"]);
        let pem = store.read("pki/scheduler.crt").unwrap().unwrap();
        let in_days = |days: i64| {
            let now = Timestamp::from_second(Timestamp::now().as_second() + days * 86_400).unwrap();
            read("w0", "f", &pem, now).unwrap()
        };
        for (days, level) in [
            (0, CertificateLife::Ok),
            (279, CertificateLife::Ok),
            (281, CertificateLife::Ending),
            (364, CertificateLife::Ending),
            (366, CertificateLife::Ended),
        ] {
            assert_eq!(in_days(days).level, level, "{days}");
        }
        assert_eq!(in_days(0).subject, "system:kube-scheduler");
        assert!(read("w0", "f", b"no certificate", Timestamp::now()).is_none());
    }
}
