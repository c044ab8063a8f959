//! The items of keysets as files below `pki/`: which of them signs, what is in a bundle, and new
//! ones.
//!
//! The list (`keyset`) is written after the files of a new item: a crash between the two leaves
//! files that the next attempt takes over. No file of an item is ever removed.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData as _};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use crate::cluster::find_document;
use crate::document::{self, Found};
use crate::error::{Context as _, Error, Result};
use crate::state::Store;

use super::keyset::{FILE, FIRST, ItemState, Keyset, KeysetName, Keysets, numbered};
use super::own_authority::OwnAuthority;
use super::pki::{Authority, Pki};

/// The certificates above the user's own authority, below `pki/`.
pub(super) const CHAIN: &str = "ca-chain";

/// An item of an authority.
#[derive(Clone, Debug)]
pub struct AuthorityItem {
    /// Its keyset.
    pub keyset: KeysetName,
    /// Its number.
    pub id: u32,
    /// What it is used for.
    pub state: ItemState,
    /// Its file below `pki/`, without ending.
    pub file: String,
    /// When it ends, in seconds since 1970.
    pub ends: i64,
    der: Vec<u8>,
}

impl AuthorityItem {
    /// `der` is its certificate.
    pub(super) fn new(keyset: KeysetName, id: u32, state: ItemState, file: String, der: Vec<u8>) -> Self {
        let ends = X509Certificate::from_der(&der).map(|(_, own)| own.validity().not_after.timestamp());
        Self { keyset, id, state, file, ends: ends.unwrap_or_default(), der }
    }

    /// Whether it signed this certificate.
    #[must_use]
    pub fn has_signed(&self, certificate: &X509Certificate<'_>) -> bool {
        X509Certificate::from_der(&self.der)
            .is_ok_and(|(_, own)| certificate.verify_signature(Some(own.public_key())).is_ok())
    }
}

/// All items of authorities that are here.
pub fn authorities(store: &Store) -> Result<Vec<AuthorityItem>> {
    let pki = Pki::new(store);
    let mut found = Vec::new();
    for keyset in KeysetName::ALL.into_iter().filter(|name| name.authority().is_some()) {
        for item in pki.keyset(keyset)?.items {
            let file = keyset.file(item.id);
            let Some(der) = pki.certificate(&file)? else { continue };
            found.push(AuthorityItem::new(keyset, item.id, item.state, file, der));
        }
    }
    Ok(found)
}

impl Pki<'_> {
    fn keysets(&self) -> Result<Keysets> {
        match find_document::<Keysets>(self.store, FILE)? {
            Found::There(keysets) => Ok(keysets),
            Found::Missing | Found::Older(_) => Ok(Keysets::default()),
        }
    }

    /// The items of a keyset; one, where it was never rotated.
    pub(super) fn keyset(&self, name: KeysetName) -> Result<Keyset> {
        Ok(self.keysets()?.keysets.remove(&name).unwrap_or_default())
    }

    /// Writes down what became of a keyset.
    pub(super) fn write_keyset(&self, name: KeysetName, keyset: Keyset) -> Result<()> {
        let mut all = self.keysets()?;
        all.keysets.insert(name, keyset);
        self.store.write_file(FILE, document::render(FILE, &all)?.as_bytes(), 0o600)
    }

    /// The file of the item that signs or encrypts, without ending.
    pub(super) fn primary(&self, name: KeysetName) -> Result<String> {
        Ok(name.file(self.keyset(name)?.primary()))
    }

    /// The files of all items that verify or decrypt, without ending.
    pub(super) fn trusted(&self, name: KeysetName) -> Result<Vec<String>> {
        Ok(self.keyset(name)?.trusted().map(|item| name.file(item)).collect())
    }

    /// The certificates of an authority that verify, in PEM.
    pub fn bundle(&self, authority: Authority) -> Result<String> {
        self.trusted(authority.into())?.iter().map(|file| self.text(file, "crt")).collect()
    }

    /// The same; none before the authority is there.
    pub(super) fn find_bundle(&self, authority: Authority) -> Result<Option<String>> {
        let is_there = self.store.read(format!("pki/{}.crt", authority.file()))?.is_some();
        is_there.then(|| self.bundle(authority)).transpose()
    }

    /// The bundle with the authorities above up to the root; none where all are roots themselves.
    /// For pods alone (kube-root-ca.crt): OpenSSL, and with it Node.js and Python before 3.13,
    /// accepts no authority without its root. kubectl, kubelet and the components need no root and
    /// get none.
    pub fn root_bundle(&self) -> Result<Option<String>> {
        let mut above = String::new();
        for item in self.keyset(KeysetName::KubernetesCa)?.trusted() {
            let rel = format!("pki/{}.crt", numbered(CHAIN, item));
            let chain = self.store.read(&rel)?.unwrap_or_default();
            above += &String::from_utf8(chain).context(format!("{rel} is not text"))?;
        }
        if above.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.bundle(Authority::Cluster)? + &above))
    }

    /// The keys of the encryption configuration with their names, the primary's first: what is
    /// written is encrypted with that one.
    pub(super) fn encryption_keys(&self) -> Result<Vec<(String, Zeroizing<String>)>> {
        let name = KeysetName::EncryptionKey;
        let keyset = self.keyset(name)?;
        let primary = keyset.primary();
        let others = keyset.trusted().filter(|item| *item != primary);
        let key = |item| Ok((format!("key{item}"), Zeroizing::new(self.text(&name.file(item), "key")?)));
        std::iter::once(primary).chain(others).map(key).collect()
    }

    /// Takes the user's own authority, or keeps it. A renewed certificate of the same key takes the
    /// place of the one before; another key is another item, which only `turnup keyset create`
    /// makes.
    pub(super) fn adopt(&self, own: &OwnAuthority) -> Result<()> {
        let name = KeysetName::KubernetesCa;
        if self.certificate(&name.file(FIRST))?.is_none() {
            return self.write_own(own, FIRST);
        }
        match self.find_own(own)? {
            Some(item) => self.write_own(own, item),
            None => Err(Error::precondition("phase2.pki.ca_cert_file: the cluster has another authority")
                .evidence("one takes the place of the other in a rotation (docs/certificates.md)")
                .hint(format!("turnup keyset create {name}; to keep the one before: turnup config unset phase2.pki.ca_key_file phase2.pki.ca_cert_file"))),
        }
    }

    /// The item whose key this authority has.
    fn find_own(&self, own: &OwnAuthority) -> Result<Option<u32>> {
        let name = KeysetName::KubernetesCa;
        let key = KeyPair::from_pem(&own.key).context("the authority's key is damaged")?;
        for item in &self.keyset(name)?.items {
            let der = self.certificate(&name.file(item.id))?.unwrap_or_default();
            let found = X509Certificate::from_der(&der);
            if found.is_ok_and(|(_, found)| found.public_key().raw == key.subject_public_key_info()) {
                return Ok(Some(item.id));
            }
        }
        Ok(None)
    }

    fn write_own(&self, own: &OwnAuthority, item: u32) -> Result<()> {
        let file = KeysetName::KubernetesCa.file(item);
        if self.certificate(&file)?.is_none() {
            self.store.write_file(format!("pki/{file}.key"), own.key.as_bytes(), 0o600)?;
        }
        for (file, text) in [(numbered(CHAIN, item), &own.chain), (file, &own.certificate)] {
            if self.store.read(format!("pki/{file}.crt"))?.unwrap_or_default() != text.as_bytes() {
                self.write_certificate(&file, text)?;
            }
        }
        Ok(())
    }

    /// Makes the files of an item: what is there of an attempt that did not come to its end is
    /// kept.
    pub(super) fn make_item(&self, name: KeysetName, item: u32, cluster: &str) -> Result<()> {
        let file = name.file(item);
        match name.authority() {
            Some(authority) => match OwnAuthority::find(&self.settings, self.work_dir)? {
                Some(own) if authority == Authority::Cluster => self.add_own(&own, item),
                _ => self.make_authority(&file, &numbered(&format!("{cluster} {}", authority.file()), item)),
            },
            None if name == KeysetName::ServiceAccount => self.make_service_account_key(&file),
            None => self.make_encryption_key(&file),
        }
    }

    /// The user's own authority as one more item.
    fn add_own(&self, own: &OwnAuthority, item: u32) -> Result<()> {
        if let Some(known) = self.find_own(own)?.filter(|known| *known != item) {
            let message = format!("phase2.pki.ca_cert_file names the authority that is item {known} already");
            return Err(Error::precondition(message)
                .hint("turnup config set phase2.pki.ca_cert_file=FILE phase2.pki.ca_key_file=FILE (of the next one)"));
        }
        self.write_own(own, item)
    }

    /// Makes the key pair that signs service accounts' tokens, or keeps it.
    pub(super) fn make_service_account_key(&self, file: &str) -> Result<()> {
        let key = self.ensure_key(file)?;
        if self.store.read(format!("pki/{file}.pub"))?.is_none() {
            self.store.write_file(format!("pki/{file}.pub"), key.public_key_pem().as_bytes(), 0o600)?;
        }
        Ok(())
    }

    /// Makes the key that encrypts Secrets in etcd (32 bytes as base64), or keeps it.
    pub(super) fn make_encryption_key(&self, file: &str) -> Result<()> {
        let rel = format!("pki/{file}.key");
        if self.store.read(&rel)?.is_some() {
            return Ok(());
        }
        let mut bytes = Zeroizing::new([0_u8; 32]);
        getrandom::fill(bytes.as_mut()).map_err(|error| Error::permanent(format!("no random numbers: {error}")))?;
        let text = Zeroizing::new(STANDARD.encode(bytes.as_ref()));
        self.store.write_file(rel, text.as_bytes(), 0o600)
    }

    /// The files of an item that are here.
    pub(super) fn files_of(&self, name: KeysetName, item: u32) -> Vec<PathBuf> {
        let paths = ["crt", "pub", "key"].map(|end| PathBuf::from(format!("pki/{}.{end}", name.file(item))));
        paths.into_iter().filter(|path| self.store.path(path).is_file()).collect()
    }

    /// The keyset and item of an authority's file, without ending.
    pub(super) fn find_item(&self, file: &str) -> Result<Option<(KeysetName, u32)>> {
        for name in Authority::ALL.map(KeysetName::from) {
            if let Some(item) = self.keyset(name)?.items.iter().find(|item| name.file(item.id) == file) {
                return Ok(Some((name, item.id)));
            }
        }
        Ok(None)
    }
}
