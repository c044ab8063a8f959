//! A store that is moto's server, whose S3 is that which tests of other projects use.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Duration;

use crate::cloud::Endpoints;
use crate::http_server;
use crate::node::emulator::free_port;

use super::emulator::{Emulator, take_list_read_and_delete};
use super::*;

/// The server.
struct Moto {
    emulator: Emulator,
    scheme: &'static str,
}

impl Moto {
    fn start() -> Self {
        Self::start_as("http", &[])
    }

    fn start_as(scheme: &'static str, words: &[&str]) -> Self {
        let python = reference::Python::with_moto().unwrap();
        let emulator = Emulator::start("moto", |port| {
            let own = ["-m", "moto.server", "-H", "127.0.0.1", "-p", port];
            duct::cmd(python.program(), own.iter().chain(words)).env("PYTHONPATH", python.packages())
        });
        Self { emulator, scheme }
    }

    fn store(&self, bucket: &str) -> S3Bucket {
        S3Bucket {
            bucket: bucket.into(),
            region: "us-east-1".into(),
            prefix: "etcd/".into(),
            path_style: true,
            secret_key: "do-not-show".into(),
            ..store_of(&format!("{}://127.0.0.1:{}", self.scheme, self.emulator.port))
        }
    }

    fn make_bucket(&self, name: &str) {
        ureq::put(format!("http://127.0.0.1:{}/{name}", self.emulator.port)).send_empty().unwrap();
    }
}

#[test]
#[ignore = "needs moto: make test-backup"]
fn a_bucket_takes_lists_reads_and_deletes_what_is_ours() {
    let moto = Moto::start();
    moto.make_bucket("safe");
    let store = BackupStore::S3(moto.store("safe"));
    let missing = take_list_read_and_delete(&store);
    assert!(missing.contains("NoSuchKey"), "{missing}");
    let nowhere = moto.store("nowhere").put("kube-1.tar", Path::new("Cargo.toml")).unwrap_err().render();
    assert!(nowhere.contains("NoSuchBucket") && nowhere.contains("make the bucket"), "{nowhere}");
    assert!(!format!("{store:?}{missing}{nowhere}").contains("do-not-show"));
    assert!(!format!("{missing}{nowhere}").contains("X-Amz"), "no signed address is shown");
}

#[test]
#[ignore = "needs moto: make test-backup"]
fn a_store_shows_a_certificate_of_the_authority_that_is_named() {
    let authority = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        (rcgen::Issuer::new(params, key), pem)
    };
    let ((issuer, pem), (_, other)) = (authority("store"), authority("other"));
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let files = ["server.crt", "server.key"].map(|name| dir.path().join(name).display().to_string());
    fs_err::write(&files[0], certificate.pem()).unwrap();
    fs_err::write(&files[1], key.serialize_pem()).unwrap();
    let moto = Moto::start_as("https", &["--ssl-cert", &files[0], "--ssl-key", &files[1]]);
    let store = |authority: &str| S3Bucket { authority: authority.to_owned(), ..moto.store("safe") };
    let bucket = format!("{}/safe", moto.store("safe").endpoint);
    store(&pem).connection().agent().unwrap().put(bucket).send_empty().unwrap();
    store(&pem).put("kube-1.tar", Path::new(&files[0])).unwrap();
    assert_eq!(store(&pem).list("kube-").unwrap().len(), 1);
    for wrong in [String::new(), other] {
        let said = store(&wrong).list("kube-").unwrap_err().render();
        assert!(said.contains("cannot be reached") && said.contains("phase2.backup.s3.ca_file"), "{said}");
    }
}

#[test]
#[ignore = "needs moto: make test-backup"]
fn hosts_copy_what_is_missing_and_retention_applies_there() {
    let moto = Moto::start();
    let fake = tests::Fake::new();
    let place = fake.place();
    let early = fake.take(5).unwrap();
    assert_eq!(early.stored, None);
    fs_err::create_dir(&place.given).unwrap();
    let store = moto.store("safe");
    fs_err::write(place.given.join(layout::BACKUP_STORE), serde_json::to_vec(&BackupStore::S3(store.clone())).unwrap())
        .unwrap();
    // Without the bucket the backup is on the host all the same, and says what to do.
    let taken = fake.take(5).unwrap();
    let error = taken.stored.unwrap().error().unwrap().render();
    assert!(error.contains("NoSuchBucket") && error.contains("the backup is on the host"), "{error}");
    assert!(place.list().unwrap().stored.unwrap().problem.unwrap().contains("NoSuchBucket"));

    moto.make_bucket("safe");
    let foreign = ["kube-20200101T000000Z-h1.tar", "kube2-20200101T000000Z-h0.tar", "kube-notes"];
    let file = fake.dir.path().join("etcdctl");
    for name in foreign {
        store.put(name, Path::new(&file)).unwrap();
    }
    let last = fake.take(5).unwrap();
    let names = [early.backup.name, taken.backup.name, last.backup.name];
    let outcome = last.stored.unwrap();
    assert_eq!((outcome.error().is_none(), outcome.copied.len()), (true, 3), "also those of before: {outcome:?}");
    let stored = place.list().unwrap().stored.unwrap().backups;
    let found: Vec<&str> = stored.iter().map(|(_, object)| object.name.as_str()).collect();
    assert_eq!(found, [foreign[0], &names[0], &names[1], &names[2]], "of this cluster, of every host");
    // The store has what the host has lost.
    fs_err::remove_file(place.directory.join(&names[1])).unwrap();
    let engine = base64::engine::general_purpose::STANDARD;
    assert!(engine.decode(place.part(&names[1], 0).unwrap()).unwrap().starts_with(b"manifest.json"));
    assert!(place.part(foreign[2], 0).is_err(), "no backup");

    let outcome = fake.take(1).unwrap().stored.unwrap();
    assert_eq!((outcome.copied.len(), outcome.deleted), (1, names.to_vec()));
    let left: Vec<String> = store.list("").unwrap().into_iter().map(|object| object.name).collect();
    assert!(left.len() == 4 && foreign.iter().all(|name| left.iter().any(|one| one == name)), "{left:?}");
}

/// A bucket in this place, with a key.
fn store_of(endpoint: &str) -> S3Bucket {
    S3Bucket {
        endpoint: endpoint.into(),
        bucket: "safe".into(),
        region: "eu".into(),
        prefix: String::new(),
        path_style: false,
        authority: String::new(),
        machine: String::new(),
        access_key: "AK".into(),
        secret_key: "secret".into(),
    }
}

#[test]
fn every_refusal_names_the_way_out() {
    let store = S3Bucket { secret_key: "do-not-show".into(), ..store_of("https://s3.example.com") };
    let refusal = |status, code: &str| {
        let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>");
        store.connection().refusal("copying b", status, &text).render()
    };
    for (status, code, way) in [
        (403, "AccessDenied", "allow this key"),
        (403, "InvalidAccessKeyId", "credentials_file"),
        (403, "RequestTimeTooSkewed", "clock"),
        (404, "NoSuchBucket", "make the bucket"),
        (400, "AuthorizationHeaderMalformed", "phase2.backup.s3.region"),
        (507, "XMinioStorageFull", "make room in the store"),
    ] {
        let said = refusal(status, code);
        assert!(said.contains(way) && said.contains(code) && !said.contains("do-not-show"), "{said}");
    }
    let down = free_port();
    let nowhere = S3Bucket { endpoint: format!("http://127.0.0.1:{down}"), path_style: true, ..store };
    let error = nowhere.list("").unwrap_err().render();
    assert!(error.contains("cannot be reached") && !error.contains("X-Amz"), "{error}");
}

#[test]
fn the_role_of_a_machine_is_a_key_with_what_shows_that_it_is_lent() {
    let answer = |path: &str| match path {
        "/latest/api/token" => Some("s3ssion"),
        "/latest/meta-data/iam/security-credentials/" => Some("a-role"),
        "/latest/meta-data/iam/security-credentials/a-role" => {
            Some(r#"{"Code": "Success", "AccessKeyId": "AKIA", "SecretAccessKey": "s3cret", "Token": "l3nt"}"#)
        }
        _ => None,
    };
    let metadata = http_server::serve(http_server::LOOPBACK, move |request, stream| {
        let is_session = request.headers.keys().any(|name| name.to_lowercase().contains("x-aws-ec2-metadata-token"));
        match answer(&request.path).filter(|_| is_session) {
            Some(text) => http_server::send(stream, "200 OK", text.as_bytes()),
            None => http_server::send(stream, "401 Unauthorized", b""),
        }
    });
    let endpoints = Endpoints { metadata, api: None };
    let store = S3Bucket { machine: "aws".into(), ..store_of("https://s3.eu-central-1.amazonaws.com") };
    let key = store.key_of(&endpoints).unwrap();
    let bucket =
        rusty_s3::Bucket::new(store.endpoint.parse().unwrap(), rusty_s3::UrlStyle::Path, "safe", "eu").unwrap();
    let url = rusty_s3::S3Action::sign(&bucket.get_object(Some(&key), "etcd/a"), Duration::from_mins(1));
    assert!(url.as_str().contains("X-Amz-Security-Token=l3nt") && url.as_str().contains("AKIA"), "{url}");
    assert!(!url.as_str().contains("s3cret"));
    let other = S3Bucket { machine: "gce".into(), ..store };
    assert!(other.key_of(&endpoints).unwrap_err().render().contains("machines of gce have no key"));
}
