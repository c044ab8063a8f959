//! What control-plane hosts are given for their backups: the key that signs them, and, encrypted
//! for the operator, what a cluster needs that has lost the operator's machine with all hosts.
//!
//! The latter is one file that no host can read: configuration, authorities, keys. It is made here
//! and made again when something in it changes; hosts put it into their archives as it is.

use std::io::Read as _;
use std::sync::Arc;

use age::armor::{ArmoredWriter, Format};
use rcgen::{KeyPair, PKCS_ED25519};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::cluster::{BackupSettings, Cluster, SSH_KEY};
use crate::error::{Context as _, Error, Result};
use crate::node::backup::{LONGEST_DIRECTORY, TrustedSigner, append, encrypt};
use crate::phase::{Action, Check, Cx, Inputs};
use crate::unknown;

use super::keyset::{self, KeysetName, numbered};
use super::pki::Pki;
use super::pki_items::CHAIN;
use super::step_ids::BACKUP_KEYS;

/// The key that signs, and its public half, below the cluster's directory.
pub(super) const KEY: &str = "pki/backup.key";
pub(super) const PUBLIC_KEY: &str = "pki/backup.pub";
/// What hosts put into their archives.
pub(super) const DIRECTORY: &str = "outputs/backup-directory.age";
/// Of what it was made.
const DIGEST: &str = "outputs/backup-directory.sha256";
/// The configuration in it.
pub(super) const CONFIGURATION: &str = "config.json";

/// Who has to have signed a backup of this cluster.
pub(super) fn signer(cluster: &Cluster, unsigned: bool) -> Result<TrustedSigner> {
    let public_key = cluster.store.read(PUBLIC_KEY)?.map(String::from_utf8).transpose();
    Ok(TrustedSigner { public_key: public_key.context(format!("{PUBLIC_KEY} is not text"))?, unsigned })
}

/// Files of the cluster without which a backup brings nothing back, by their paths below its
/// directory. What follows from them is made again by the next run.
fn files(cluster: &Cluster) -> Result<Vec<(String, Vec<u8>)>> {
    let pki = Pki::of(cluster);
    let mut paths = vec![keyset::FILE.to_owned(), KEY.to_owned(), PUBLIC_KEY.to_owned()];
    for name in KeysetName::ALL {
        let stems = pki.keyset(name)?.items.into_iter().map(|item| name.file(item.id));
        paths.extend(stems.flat_map(|stem| ["crt", "key", "pub"].map(|end| format!("pki/{stem}.{end}"))));
    }
    for item in pki.keyset(KeysetName::KubernetesCa)?.items {
        paths.push(format!("pki/{}.crt", numbered(CHAIN, item.id)));
    }
    paths.extend([SSH_KEY.to_owned(), format!("{SSH_KEY}.pub")]);
    let mut files = Vec::new();
    for path in paths {
        if let Some(bytes) = cluster.store.read(&path)? {
            files.push((path, bytes));
        }
    }
    let text = serde_json::to_string_pretty(cluster.configuration()).context("cannot write the configuration")?;
    files.push((CONFIGURATION.to_owned(), (text + "\n").into_bytes()));
    Ok(files)
}

/// The same as an archive, which has the same bytes whenever they have.
fn pack(cluster: &Cluster) -> Result<Zeroizing<Vec<u8>>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, bytes) in files(cluster)? {
        append(&mut tar, &path, bytes.len() as u64, bytes.as_slice())?;
    }
    let packed = Zeroizing::new(tar.into_inner()?);
    if packed.len() as u64 > LONGEST_DIRECTORY / 2 {
        return Err(Error::precondition("the cluster's keys and configuration are too large for a backup")
            .evidence(format!("{} bytes", packed.len())));
    }
    Ok(packed)
}

/// The files of an archive that [`pack`] has made, by their paths.
pub(super) fn unpack(packed: &[u8]) -> Result<Vec<(String, Zeroizing<Vec<u8>>)>> {
    let damaged = "the cluster's keys in the backup are damaged";
    let mut files = Vec::new();
    for entry in tar::Archive::new(packed).entries().context(damaged)? {
        let entry = entry.context(damaged)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut bytes = Zeroizing::new(Vec::new());
        entry.take(LONGEST_DIRECTORY).read_to_end(&mut bytes).context(damaged)?;
        files.push((path, bytes));
    }
    Ok(files)
}

fn digest(packed: &[u8], settings: &BackupSettings) -> String {
    hex::encode(Sha256::new().chain_update(settings.recipients.join(" ")).chain_update(packed).finalize())
}

/// The step `backup-keys`.
pub(super) struct BackupKeys(pub(super) Arc<Cluster>);

impl BackupKeys {
    /// The settings; none where nothing is encrypted.
    fn encrypts(&self) -> Option<&BackupSettings> {
        self.0.settings.backup.as_ref().filter(|settings| !settings.recipients.is_empty())
    }

    fn make_key(&self) -> Result<()> {
        let store = &self.0.store;
        let key = if let Some(pem) = store.read(KEY)?.map(Zeroizing::new) {
            let pem = std::str::from_utf8(&pem).context(format!("{KEY} is not text"))?;
            KeyPair::from_pem(pem).map_err(|error| {
                Error::precondition(format!("{} is not a private key", store.path(KEY).display()))
                    .source(error)
                    .hint("put it back from a copy; or remove it with backup.pub, and older backups need --unsigned")
            })?
        } else {
            let key = KeyPair::generate_for(&PKCS_ED25519).context("cannot make a key")?;
            store.write_file(KEY, Zeroizing::new(key.serialize_pem()).as_bytes(), 0o600)?;
            key
        };
        let public_key = key.public_key_pem();
        if store.read(PUBLIC_KEY)?.unwrap_or_default() != public_key.as_bytes() {
            store.write_file(PUBLIC_KEY, public_key.as_bytes(), 0o600)?;
        }
        Ok(())
    }
}

impl Action for BackupKeys {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        Ok(self.0.inputs(&[BackupSettings::RECIPIENTS]))
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        let store = &self.0.store;
        if store.read(KEY)?.is_none() || store.read(PUBLIC_KEY)?.is_none() {
            return Ok(Check::Drifted(format!("{KEY} or its public half is missing")));
        }
        let Some(settings) = self.encrypts() else { return Ok(Check::Ok) };
        let known = store.read(DIGEST)?.filter(|_| store.path(DIRECTORY).is_file());
        let is_same = known.as_deref() == Some(digest(&pack(&self.0)?, settings).as_bytes());
        Ok(if is_same { Check::Ok } else { Check::Drifted("configuration or keys are others than in backups".into()) })
    }

    fn run(&self, _host: Option<&str>, _cx: &Cx) -> Result<()> {
        self.make_key()?;
        let Some(settings) = self.encrypts() else { return Ok(()) };
        let (store, packed) = (&self.0.store, pack(&self.0)?);
        let digest = digest(&packed, settings);
        let sealed = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?;
        let sealed = encrypt(&settings.recipients, packed.as_slice(), sealed)?;
        store.write_file(DIRECTORY, &sealed.finish()?, 0o600)?;
        // Last: killed before it, the step makes the other one again.
        store.write_file(DIGEST, digest.as_bytes(), 0o600)
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        let store = &self.0.store;
        for (file, what) in [(KEY, "key that signs backups"), (PUBLIC_KEY, "its public half")] {
            if store.read(file)?.is_none() {
                store.write_file(file, unknown::after_with(&BACKUP_KEYS, what).as_bytes(), 0o600)?;
            }
        }
        if self.encrypts().is_some() {
            let what = unknown::after_with(&BACKUP_KEYS, "the cluster's keys and configuration, encrypted");
            store.write_file(DIRECTORY, what.as_bytes(), 0o600)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_junk_is_none() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        tar.append_data(&mut header, "pki/ca.key", &b"k"[..]).unwrap();
        let files = unpack(&tar.into_inner().unwrap()).unwrap();
        assert_eq!((files[0].0.as_str(), files[0].1.as_slice()), ("pki/ca.key", &b"k"[..]));
        assert!(unpack(&[7; 2000]).is_err());
    }
}
