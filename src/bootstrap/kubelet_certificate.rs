//! Kubelets' client certificates in a rotation of the Kubernetes authority: who signed them, and
//! the renewal of those that the primary did not sign.
//!
//! A kubelet renews its certificate by itself late in its life. After a promotion that is too late:
//! the old item can be distrusted only once no kubelet has a certificate of it.

use x509_parser::pem::Pem;

use crate::cluster::Cluster;
use crate::error::{Class, Result};
use crate::inventory::{Host, Inventory};
use crate::parallel;

use super::host_connection::HostConnection;
use super::keyset::KeysetName;
use super::pki::Pki;
use super::pki_items::{AuthorityItem, authorities};

/// Whether the host's kubelet has a certificate of another item than the primary. Hosts are asked
/// only during a rotation.
pub(super) fn is_of_former_item(cluster: &Cluster, connection: &HostConnection<'_>) -> Result<bool> {
    let keyset = Pki::of(cluster).keyset(KeysetName::KubernetesCa)?;
    if keyset.trusted().count() < 2 {
        return Ok(false);
    }
    let item = find_item(cluster, keyset.primary())?;
    Ok(judge(&connection.kubelet_certificate()?, item.as_ref()) != SignedBy::Item)
}

/// The hosts whose kubelet's client certificate this item signed, and those that do not tell.
pub(super) fn find_signed_by(cluster: &Cluster, inventory: &Inventory, id: u32) -> Result<Vec<String>> {
    let item = find_item(cluster, id)?;
    let ask = |host: &Host| -> Result<Option<String>> {
        match HostConnection::for_proof(cluster, host).and_then(|connection| connection.kubelet_certificate()) {
            Ok(pem) => Ok(judge(&pem, item.as_ref()).reason().map(|why| format!("{}: {why}", host.name))),
            Err(error) if error.class() == Class::Interrupted => Err(error),
            Err(error) => Ok(Some(format!("{} does not tell: {}", host.name, error.message()))),
        }
    };
    let answers = parallel::map(&inventory.hosts, parallel::HOSTS, ask);
    answers.into_iter().filter_map(Result::transpose).collect()
}

fn find_item(cluster: &Cluster, id: u32) -> Result<Option<AuthorityItem>> {
    let all = authorities(&cluster.store)?;
    Ok(all.into_iter().find(|one| (one.keyset, one.id) == (KeysetName::KubernetesCa, id)))
}

/// What a kubelet's client certificate is to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignedBy {
    Missing,
    Damaged,
    /// The item signed it.
    Item,
    /// Another one did.
    Another,
}

impl SignedBy {
    /// Why the item cannot go; none when the certificate is of another one.
    const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("its kubelet has no client certificate"),
            Self::Damaged => Some("its kubelet's client certificate is damaged"),
            Self::Item => Some("its kubelet's client certificate is of this item"),
            Self::Another => None,
        }
    }
}

pub(super) fn judge(pem: &str, item: Option<&AuthorityItem>) -> SignedBy {
    let Some(pem) = Pem::iter_from_buffer(pem.as_bytes()).flatten().next() else { return SignedBy::Missing };
    match pem.parse_x509() {
        Ok(certificate) if item.is_some_and(|item| item.has_signed(&certificate)) => SignedBy::Item,
        Ok(_) => SignedBy::Another,
        Err(_) => SignedBy::Damaged,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use rcgen::{CertificateParams, Issuer, KeyPair};

    use super::*;
    use crate::bootstrap::keyset::ItemState;

    #[test]
    fn a_certificate_belongs_to_the_item_that_signed_it() {
        let authority = || {
            let key = KeyPair::generate().unwrap();
            let certificate = CertificateParams::default().self_signed(&key).unwrap();
            (certificate, key)
        };
        let (old, old_key) = authority();
        let (new, _) = authority();
        let item = |certificate: &rcgen::Certificate| {
            AuthorityItem::new(
                KeysetName::KubernetesCa,
                1,
                ItemState::Primary,
                "ca".to_owned(),
                certificate.der().to_vec(),
            )
        };
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::new(CertificateParams::default(), &old_key);
        let leaf = CertificateParams::default().signed_by(&key, &issuer).unwrap().pem();
        assert_eq!(judge(&leaf, Some(&item(&old))), SignedBy::Item);
        assert_eq!(judge(&leaf, Some(&item(&new))), SignedBy::Another);
        assert_eq!(judge(&leaf, None), SignedBy::Another);
        assert_eq!(judge("", Some(&item(&old))), SignedBy::Missing);
        let damaged = leaf.replacen("MII", "AAA", 1);
        assert_eq!(judge(&damaged, Some(&item(&old))), SignedBy::Damaged);
    }
}
