//! Backups of an etcd that is two scripts.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::*;

/// Programs that answer as etcd 3.6 does; a snapshot is a file with some words.
pub(super) struct Fake {
    pub(super) dir: tempfile::TempDir,
    ctl: String,
    utl: String,
}

const ETCDCTL: &str = r#"#!/bin/sh
for last in "$@"; do case "$last" in */snapshot.db) file=$last;; esac; done
case "$*" in
*"endpoint status"*) echo '[{"Endpoint":"x","Status":{"header":{"cluster_id":17446744073709551615},"version":"3.6.16"}}]' ;;
*"snapshot save"*) [ ! -e "$(dirname "$0")/full" ] || { echo 'Error: write x: no space left on device' >&2; exit 1; }
  echo "all of etcd" >"$file" ;;
esac
"#;

const ETCDUTL: &str = r#"#!/bin/sh
case "$*" in
*"snapshot status"*) echo '{"hash":439041101,"revision":4711,"totalKey":1200,"totalSize":12,"version":"3.6.0"}' ;;
*"snapshot restore"*) for word in "$@"; do case "$word" in --data-dir=*) mkdir -p "${word#--data-dir=}/member/snap"; : >"${word#--data-dir=}/member/snap/db";; esac; done ;;
esac
"#;

fn script(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs_err::write(&path, text).unwrap();
    fs_err::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

impl Fake {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [ctl, utl] =
            [("etcdctl", ETCDCTL), ("etcdutl", ETCDUTL)].map(|(name, text)| script(dir.path(), name, text));
        Self { dir, ctl, utl }
    }

    fn programs(&self) -> EtcdPrograms<'_> {
        EtcdPrograms { etcdctl: &self.ctl, etcdutl: &self.utl }
    }

    pub(super) fn place(&self) -> BackupPlace {
        let directory = self.dir.path().join("deep/backups");
        BackupPlace {
            directory,
            cluster: "kube".into(),
            host: "h0".into(),
            kubernetes_version: "1.36.3".into(),
            given: self.dir.path().join("given"),
            private: self.dir.path().to_owned(),
        }
    }

    pub(super) fn take(&self, recent: usize) -> Result<TakenBackup> {
        self.take_for(recent, Vec::new())
    }

    fn take_for(&self, recent: usize, recipients: Vec<String>) -> Result<TakenBackup> {
        let subject = BackupSubject { cluster_id: "abcd".into(), reason: "request".into(), recipients };
        self.place().take(&self.programs(), &subject, Retention { recent, daily: 0 })
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_backup_says_what_it_is_and_can_be_verified_and_fetched() {
    let fake = Fake::new();
    let taken = fake.take(5).unwrap();
    let place = fake.place();
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&place.directory), mode(&place.directory.join(&taken.backup.name))), (0o700, 0o600));
    assert_eq!(names_in(&place.directory), [LOCK, taken.backup.name.as_str()], "and nothing half");
    let manifest = taken.backup.manifest.unwrap();
    assert_eq!((manifest.revision, manifest.keys, manifest.hash.as_str()), (4711, 1200, "1a2b3c4d"));
    assert_eq!((manifest.etcd_version.as_str(), manifest.etcd_cluster_id.as_str()), ("3.6.16", "f21f494c589bffff"));
    let verified = place.verify(&fake.programs(), &taken.backup.name).unwrap();
    assert_eq!(verified.manifest, manifest);
    assert_eq!(names_in(&place.directory).len(), 2, "the restored one is gone");
    let engine = base64::engine::general_purpose::STANDARD;
    let part = engine.decode(place.part(&taken.backup.name, 0).unwrap()).unwrap();
    assert_eq!(part, fs_err::read(place.directory.join(&taken.backup.name)).unwrap());
    assert_eq!(place.part(&taken.backup.name, part.len() as u64).unwrap(), "");
}

#[test]
fn what_it_does_not_know_stays_and_is_named() {
    let fake = Fake::new();
    let place = fake.place();
    fs_err::create_dir_all(place.directory.join(".part-9-killed")).unwrap();
    let others = [".part-9-killed", "kube-20200101T000000Z-h1.tar", "kube2-20200101T000000Z-h0.tar", "notes"];
    for name in &others[1..] {
        fs_err::write(place.directory.join(name), "").unwrap();
    }
    let own = "kube-20200101T000000Z-h0.tar";
    fs_err::write(place.directory.join(own), "cut off").unwrap();
    assert_eq!(
        place.list().unwrap().backups[0].damage.as_deref().map(|why| why.contains("no whole backup")),
        Some(true)
    );
    let taken = fake.take(1).unwrap();
    assert_eq!((taken.deleted, taken.others), (vec![own.to_owned()], others.map(str::to_owned).to_vec()));
    assert_eq!(names_in(&place.directory).len(), others.len() + 2);
}

#[test]
fn a_full_disk_leaves_the_old_ones() {
    let fake = Fake::new();
    let first = fake.take(1).unwrap().backup.name;
    fs_err::write(fake.dir.path().join("full"), "").unwrap();
    let error = fake.take(1).unwrap_err().render();
    assert!(error.contains("no space left") && error.contains("those that are there stay"), "{error}");
    assert_eq!(names_in(&fake.place().directory), [LOCK, &first]);
}

#[test]
fn a_name_leads_nowhere_else() {
    let fake = Fake::new();
    fake.take(1).unwrap();
    fs_err::write(fake.dir.path().join("kube-20200101T000000Z-h0.tar"), "").unwrap();
    for name in ["", ".", LOCK, "../../etcdctl", "../kube-20200101T000000Z-h0.tar", "kube-20200101T000000Z-h0.tar"] {
        assert!(fake.place().part(name, 0).is_err() && fake.place().verify(&fake.programs(), name).is_err(), "{name}");
    }
    let place = fake.place();
    for name in ["kube-20200101T000000-h0.tar", "kube-2020-01-01T00:00:00Z-h0.tar", "kube-20200101T000000Z-h0.tar.part"]
    {
        assert_eq!(place.time_of(name), None, "{name}");
    }
}

#[test]
fn a_backup_that_etcd_reads_otherwise_is_refused() {
    let fake = Fake::new();
    let name = fake.take(1).unwrap().backup.name;
    script(fake.dir.path(), "etcdutl", &ETCDUTL.replace("4711", "4712"));
    let error = fake.place().verify(&fake.programs(), &name).unwrap_err().render();
    assert!(error.contains("is not what its manifest says") && error.contains("revision 4712"), "{error}");
}

#[test]
fn with_recipients_it_is_encrypted_and_signed_and_takes_the_clusters_keys_along() {
    let fake = Fake::new();
    let place = fake.place();
    let plain = fake.take(5).unwrap().backup.name;
    let (recipient, identity) = encryption::tests::new_key(fake.dir.path(), "key");
    let (key, public_key) = signature::tests::new_pair();
    let mut keys = Vec::new();
    encrypt(std::slice::from_ref(&recipient), &b"a key"[..], &mut keys).unwrap();
    fs_err::create_dir(&place.given).unwrap();
    fs_err::write(place.given.join(layout::BACKUP_KEY), key).unwrap();
    fs_err::write(place.given.join(layout::BACKUP_CLUSTER), keys).unwrap();
    let taken = fake.take_for(5, vec![recipient]).unwrap();
    let name = taken.backup.name;
    assert!(name.ends_with("-h0.age.tar"), "{name}");
    assert_eq!(names_in(&place.directory).len(), 3, "nothing half, and nothing plain");
    let listed: Vec<String> = place.list().unwrap().backups.into_iter().map(|backup| backup.name).collect();
    assert_eq!(listed, [plain.as_str(), &name], "both kinds are known");
    let path = place.directory.join(&name);
    let trust = TrustedSigner { public_key: Some(public_key), unsigned: false };
    trust.require(&name, &inspect(&path).unwrap()).unwrap();
    let identities = Identities::read(&identity).unwrap();
    let mut out = Vec::new();
    extract(&path, Some(&identities), &mut out).unwrap();
    assert_eq!(
        (out.as_slice(), read_directory(&path, &identities).unwrap()),
        (&b"all of etcd\n"[..], b"a key".to_vec())
    );
    let refused = place.verify(&fake.programs(), &name).unwrap_err().render();
    assert!(refused.contains("is encrypted"), "{refused}");
    assert!(read_directory(&place.directory.join(&plain), &identities).is_err());
    let deleted = fake.take(1).unwrap().deleted;
    assert_eq!(deleted, [plain, name], "retention knows both");
    assert!(fake.take_for(1, vec!["age1wrong".into()]).is_err());
    assert_eq!(names_in(&place.directory).len(), 2);
}
