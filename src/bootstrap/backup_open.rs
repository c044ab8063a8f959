//! `turnup backup open`: makes the cluster's directory and the configuration again from an
//! encrypted backup, where the operator's machine is lost. It replaces nothing.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::cluster::SSH_KEY;
use crate::config::{Privacy, replace_file};
use crate::error::{Error, Result};
use crate::node::backup::{BackupManifest, Identities, TrustedSigner, fingerprint, inspect, read_directory};
use crate::state::Store;
use crate::unknown;

use super::backup_keys::{CONFIGURATION, PUBLIC_KEY, unpack};
use super::keyset::{self, KeysetName};

/// What was made.
#[derive(Debug)]
pub(crate) struct OpenedBackup {
    /// What the backup says of itself.
    pub manifest: BackupManifest,
    /// The cluster's directory.
    pub directory: PathBuf,
    /// How many files are in it.
    pub files: usize,
    /// The short name of the key that has signed, to be compared with what the operator wrote down.
    pub signer: String,
}

/// Reads the archive, and writes nothing unless all of it is as it should be. `expected` is the
/// short name that the key has to have.
pub(crate) fn open(
    archive: &Path,
    identities: &Identities,
    state_dir: &Path,
    configuration: &Path,
    expected: Option<&str>,
) -> Result<OpenedBackup> {
    let signed = inspect(archive)?;
    let directory = state_dir.join(&signed.manifest.cluster);
    for path in [directory.as_path(), configuration] {
        if path.exists() {
            return Err(Error::precondition(format!("{} exists already", path.display()))
                .evidence("what is there is never replaced: it may be the only copy of newer keys")
                .hint(
                    "the same in an empty directory; or, with the directory that is there: turnup restore --file FILE",
                ));
        }
    }
    let files = unpack(&Zeroizing::new(read_directory(archive, identities)?))?;
    let named = archive.display().to_string();
    let text = |path: &str| {
        let found = files.iter().find(|(name, _)| name == path).and_then(|(_, bytes)| std::str::from_utf8(bytes).ok());
        found.ok_or_else(|| Error::precondition(format!("{named}: {path} is missing")).hint("use another backup"))
    };
    let public_key = text(PUBLIC_KEY)?.to_owned();
    let name_of_key = fingerprint(&public_key);
    if let Some(expected) = expected.filter(|expected| *expected != name_of_key) {
        return Err(Error::precondition(format!("{named} is signed by another key"))
            .evidence(format!("expected {expected}"))
            .evidence(format!("found {name_of_key}")));
    }
    TrustedSigner { public_key: Some(public_key), unsigned: false }.require(&named, &signed)?;
    let authority = text(&format!("pki/{}.crt", KeysetName::EtcdCa.file(keyset::FIRST)))?;
    if unknown::digest(authority) != signed.manifest.cluster_id {
        return Err(
            Error::precondition(format!("{named}: its keys are not those of its cluster")).hint("use another backup")
        );
    }
    if let Some((path, _)) = files.iter().find(|(path, _)| !is_expected(path)) {
        return Err(
            Error::precondition(format!("{named}: {path:?} is no file of a cluster")).hint("use another backup")
        );
    }
    let configuration_text = text(CONFIGURATION)?;
    let store = Store::open(&directory)?;
    let own = files.iter().filter(|(path, _)| path != CONFIGURATION);
    let mut count = 0;
    for (path, bytes) in own {
        store.write_file(path, bytes, 0o600)?;
        count += 1;
    }
    replace_file(configuration, configuration_text, Privacy::Private)?;
    Ok(OpenedBackup { manifest: signed.manifest, directory, files: count, signer: name_of_key })
}

/// What `backup_keys` packs; a path that leads elsewhere is none of these.
fn is_expected(path: &str) -> bool {
    let is_plain = |name: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        !name.is_empty() && !name.starts_with('.') && name.chars().all(allowed)
    };
    path == CONFIGURATION
        || path == SSH_KEY
        || path.strip_suffix(".pub") == Some(SSH_KEY)
        || path.strip_prefix("pki/").is_some_and(is_plain)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use std::sync::Arc;
    use std::time::Duration;

    use age::secrecy::ExposeSecret as _;

    use super::super::backup_keys::{BackupKeys, DIRECTORY, KEY};
    use super::super::backup_words;
    use super::super::pki::{Authority, Pki};
    use super::*;
    use crate::cluster::Cluster;
    use crate::config::{Settings, TreeSource};
    use crate::node::backup::{ArchiveContent, EncryptedPart, EncryptedParts, encrypt, write};
    use crate::phase::{Action as _, Check, Cx, Sink};

    /// A cluster with backups for this key, whose step has run.
    fn cluster(dir: &Path, recipient: &str) -> Arc<Cluster> {
        let source = TreeSource::embedded();
        let mut settings = Settings::defaults(&source).unwrap();
        let changes =
            [("phase2.backup.store", "host"), ("phase2.backup.recipients", recipient), ("phase2.max_pods", "77")];
        settings.set_all(&changes).unwrap();
        let cluster = Arc::new(Cluster::open(&settings, source, dir).unwrap());
        let pki = Pki::of(&cluster);
        for authority in Authority::ALL {
            pki.ensure_authority(authority, "kubernetes").unwrap();
        }
        pki.ensure_service_account_key().unwrap();
        pki.ensure_encryption_key().unwrap();
        cluster
    }

    fn run(step: &BackupKeys, dir: &Path) {
        let cx = Cx::detached("keys", Sink::channel().0, dir.join("log"), Duration::ZERO);
        step.run(None, &cx).unwrap();
    }

    fn digest(bytes: &[u8]) -> EncryptedPart {
        use sha2::Digest as _;
        EncryptedPart { sha256: hex::encode(sha2::Sha256::digest(bytes)), size: bytes.len() as u64 }
    }

    /// What a host of this cluster would write.
    fn archive(cluster: &Cluster, to: &Path, recipient: &str) {
        let store = &cluster.store;
        let (directory, sealed) = (store.read(DIRECTORY).unwrap().unwrap(), to.with_extension("age"));
        let recipients = vec![recipient.to_owned()];
        encrypt(&recipients, &b"etcd"[..], fs_err::File::create(&sealed).unwrap()).unwrap();
        let snapshot = digest(&fs_err::read(&sealed).unwrap());
        let encrypted = Some(EncryptedParts { recipients, snapshot, directory: Some(digest(&directory)) });
        let manifest = &BackupManifest {
            schema: "turnup.backup/1".into(),
            cluster: "kubernetes".into(),
            cluster_id: backup_words::cluster_id(cluster).unwrap(),
            host: "h0".into(),
            time: jiff::Timestamp::UNIX_EPOCH,
            reason: "interval".into(),
            kubernetes_version: "1.36.3".into(),
            etcd_version: "3.6.16".into(),
            etcd_cluster_id: "1".into(),
            revision: 7,
            hash: "1a".into(),
            keys: 7,
            sha256: digest(b"etcd").sha256,
            size: 4,
            encrypted,
        };
        let key = String::from_utf8(store.read(KEY).unwrap().unwrap()).unwrap();
        let content = ArchiveContent { manifest, snapshot: &sealed, directory: Some(&directory), key: Some(&key) };
        write(to, &content).unwrap();
    }

    #[test]
    fn an_empty_directory_gets_everything_back_that_cannot_be_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let key = age::x25519::Identity::generate();
        let (recipient, identity) = (key.to_public().to_string(), dir.path().join("key"));
        fs_err::write(&identity, key.to_string().expose_secret()).unwrap();
        let cluster = cluster(&dir.path().join("one"), &recipient);
        let step = BackupKeys(Arc::clone(&cluster));
        assert!(matches!(step.verify(None).unwrap(), Check::Drifted(_)));
        run(&step, dir.path());
        assert_eq!(step.verify(None).unwrap(), Check::Ok);
        let first = cluster.store.read(DIRECTORY).unwrap().unwrap();
        let plain = cluster.store.read("pki/encryption.key").unwrap().unwrap();
        assert!(!first.windows(plain.len()).any(|bytes| bytes == plain), "encrypted");

        let file = dir.path().join("monday.age.tar");
        archive(&cluster, &file, &recipient);
        let identities = Identities::read(&identity).unwrap();
        let (state, config) = (dir.path().join("new/.turnup"), dir.path().join("new/.config.json"));
        fs_err::create_dir_all(dir.path().join("new")).unwrap();
        let attempt = |signer| open(&file, &identities, &state, &config, signer);
        let refused = attempt(Some("SHA256:0")).unwrap_err().render();
        assert!(refused.contains("signed by another key") && !state.exists(), "{refused}");
        let opened = attempt(None).unwrap();
        for name in [
            "ca.key",
            "ca.crt",
            "etcd-ca.key",
            "front-proxy-ca.key",
            "sa.key",
            "sa.pub",
            "encryption.key",
            "backup.key",
        ] {
            let path = format!("pki/{name}");
            let found = fs_err::read(opened.directory.join(&path)).unwrap();
            assert_eq!(Some(found), cluster.store.read(&path).unwrap(), "{name}");
        }
        let settings = Settings::load(&config, &TreeSource::embedded()).unwrap();
        assert_eq!(settings.get("phase2.max_pods").unwrap(), "77");
        let refused = attempt(Some(&opened.signer)).unwrap_err().render();
        assert!(refused.contains("exists already"), "{refused}");
        fs_err::remove_dir_all(&state).unwrap();
        assert!(attempt(None).unwrap_err().render().contains(".config.json exists already"));

        // Another key of the cluster, and it is made again; the same, and it stays as it is.
        run(&step, dir.path());
        let again = cluster.store.read(DIRECTORY).unwrap().unwrap();
        assert_ne!(again, first, "each encryption is another one");
        cluster.store.write_file("pki/encryption.key", b"another", 0o600).unwrap();
        assert!(matches!(step.verify(None).unwrap(), Check::Drifted(_)));
    }

    #[test]
    fn only_files_of_a_clusters_directory_are_written() {
        for good in ["pki/ca.key", "pki/etcd-ca-2.crt", "pki/keysets.json", "config.json", SSH_KEY] {
            assert!(is_expected(good), "{good}");
        }
        for bad in
            ["pki/../x", "pki/..", "pki/", "/etc/passwd", "../x", "journal.jsonl", "ssh/known_hosts", "pki/a/b", ""]
        {
            assert!(!is_expected(bad), "{bad}");
        }
    }
}
