//! Signatures as they are documented, a made-up store that refuses, and Azurite, which is
//! Microsoft's own emulator.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::net::TcpStream;

use super::super::emulator::{Emulator, take_list_read_and_delete};
use super::super::store::BackupStore;
use super::*;
use crate::http_server;
use crate::node::emulator::free_port;

/// Every emulator's account and key, which are published.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

fn container(endpoint: &str) -> BlobContainer {
    BlobContainer {
        endpoint: endpoint.into(),
        account: "myaccount".into(),
        container: "mycontainer".into(),
        prefix: "etcd/".into(),
        authority: String::new(),
        machine: String::new(),
        account_key: KEY.into(),
        sas_token: String::new(),
    }
}

fn get<'a>(path: &'a str, query: &'a [(&'static str, &'a str)]) -> BlobRequest<'a> {
    BlobRequest { method: "GET", path, query, headers: &[], length: None }
}

#[test]
fn what_is_signed_is_what_microsoft_documents() {
    let store = container("https://myaccount.blob.core.windows.net");
    let query = [("comp", "metadata"), ("restype", "container"), ("timeout", "20")];
    let headers =
        [("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT".to_owned()), ("x-ms-version", "2015-02-21".to_owned())];
    // "Authorize with Shared Key", Blob service.
    let text = store.text_to_sign(&get("/mycontainer", &query), &headers);
    assert_eq!(
        text,
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
    );
    // openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY -binary | base64
    assert_eq!(sign_text(KEY, &text).unwrap(), "1u9lui2jDxj0+fpbHjQ5m5NnastJRSYM+PSmfi8TXx4=");
    let headers = [("x-ms-blob-type", "BlockBlob".to_owned())];
    let put = BlobRequest { method: "PUT", path: "/mycontainer/a", query: &[], headers: &headers, length: Some(11) };
    let text = store.text_to_sign(&put, &headers);
    assert_eq!(
        text,
        "PUT\n\n\n11\n\napplication/octet-stream\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\n/myaccount/mycontainer/a"
    );
    // Nothing, and not 0, where there is no byte.
    let text = store.text_to_sign(&BlobRequest { length: Some(0), ..put }, &headers);
    assert!(text.starts_with("PUT\n\n\n\n\napplication"), "{text}");
    // The path has the account where the address has it.
    let emulator = BlobContainer { account: ACCOUNT.into(), ..container("http://127.0.0.1:10000/devstoreaccount1/") };
    let text = emulator.text_to_sign(&get("/etcd/a%2Bb", &[]), &[]);
    assert!(text.ends_with("\n/devstoreaccount1/devstoreaccount1/etcd/a%2Bb"), "{text}");
    assert!(sign_text("no base64!", "").unwrap_err().render().contains("credentials_file"));
}

#[test]
fn a_request_has_its_key_in_a_header_or_its_sas_in_the_address() {
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let query = [("comp", "list"), ("prefix", "etcd/kube a")];
    let store = container("https://myaccount.blob.core.windows.net/");
    let (url, headers) = store.sign(&get("/mycontainer", &query), now).unwrap();
    assert_eq!(url.as_str(), "https://myaccount.blob.core.windows.net/mycontainer?comp=list&prefix=etcd%2Fkube%20a");
    let of = |headers: &[SignedHeader], wanted: &str| {
        headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str().to_owned())
    };
    assert_eq!(of(&headers, "x-ms-date").as_deref(), Some("Sun, 01 Mar 2026 12:00:00 GMT"));
    assert!(of(&headers, "authorization").is_some_and(|value| value.starts_with("SharedKey myaccount:")));
    let sas = BlobContainer { account_key: String::new(), sas_token: "sv=1&sig=a%3D".into(), ..store };
    let (url, headers) = sas.sign(&get("/mycontainer", &query), now).unwrap();
    assert!(url.ends_with("&sv=1&sig=a%3D") && of(&headers, "authorization").is_none(), "{}", url.as_str());
    assert_eq!(sas.path_of("kube-1 ä.tar"), "/mycontainer/etcd/kube-1%20%C3%A4.tar");
}

/// A metadata service whose machine has an identity; what it is asked is another question each time
/// that is not this one.
fn metadata() -> Endpoints {
    let answer = |request: http_server::Request, stream: &mut TcpStream| {
        let wanted =
            "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F";
        assert_eq!((request.path.as_str(), request.headers["metadata"].as_str()), (wanted, "true"));
        http_server::send(stream, "200 OK", br#"{"access_token":"lent","expires_in":"86399","token_type":"Bearer"}"#)
    };
    Endpoints { metadata: http_server::serve(http_server::LOOPBACK, answer), ..Endpoints::default() }
}

#[test]
fn a_machine_shows_the_token_that_its_identity_is_lent() {
    let store = BlobContainer {
        machine: "azure".into(),
        account_key: String::new(),
        ..container("https://myaccount.blob.core.windows.net")
    };
    assert_eq!(store.token_of(&metadata()).unwrap().as_str(), "lent");
    // From now on it is known.
    let (url, headers) = store.sign(&get("/mycontainer", &[]), Timestamp::now()).unwrap();
    let shown = headers.iter().find(|(name, _)| *name == "authorization").map(|(_, value)| value.as_str());
    assert_eq!((url.contains('?'), shown), (false, Some("Bearer lent")));
    let text = serde_json::to_string(&BackupStore::Blob(store.clone())).unwrap();
    assert!(text.contains(r#""machine":"azure""#) && !text.contains("lent"), "{text}");
    // Its version of the API is one that takes tokens, which is from 2017-11-09 on.
    assert!(VERSION > "2017-11-09");
    let other = BlobContainer { machine: "gce".into(), ..store };
    *LENT.lock().unwrap() = None;
    assert!(other.token_of(&Endpoints::default()).unwrap_err().render().contains("have no identity"));
}

/// A store that answers as it does, in two parts and with the mark of its encoding.
fn made_up(request: &http_server::Request, stream: &mut TcpStream) -> std::io::Result<()> {
    let blob = |name: &str| {
        format!("<Blob><Name>{name}</Name><Properties><Content-Length>7</Content-Length></Properties></Blob>")
    };
    let list = |blobs: String, next: &str| {
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>"
        )
    };
    let has_key = request.headers.get("authorization").is_some_and(|value| value.starts_with("SharedKey "));
    if !has_key && !request.path.contains("sig=") {
        return http_server::send(stream, "401 No", b"");
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("PUT", _) if request.headers["x-ms-blob-type"] == "BlockBlob" && request.body == b"content" => {
            http_server::send(stream, "201 Created", b"")
        }
        ("DELETE", _) => http_server::send(stream, "202 Accepted", b""),
        (_, path) if path.contains("comp=list") && path.contains("marker=more") => {
            http_server::send(stream, "200 OK", list(blob("etcd/kube-2.tar"), "").as_bytes())
        }
        (_, path) if path.contains("comp=list") => {
            let blobs = blob("etcd/kube-1.tar") + &blob("etcd/other-1.tar") + &blob("elsewhere");
            http_server::send(stream, "200 OK", list(blobs, "more").as_bytes())
        }
        ("GET", _) if request.headers["x-ms-range"] == "bytes=7-16" => http_server::send(stream, "416 No", b""),
        ("GET", _) if request.headers.contains_key("x-ms-range") => {
            http_server::send(stream, "206 Partial Content", b"con")
        }
        _ => http_server::send(stream, "400 Bad Request", b""),
    }
}

#[test]
fn a_container_takes_lists_reads_and_deletes() {
    let store = container(&http_server::serve(http_server::LOOPBACK, |request, stream| made_up(&request, stream)));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b");
    fs_err::write(&path, "content").unwrap();
    let sas = BlobContainer { account_key: String::new(), sas_token: "sp=rwdl&sig=secret".into(), ..store.clone() };
    for store in [store, sas] {
        store.put("kube-1.tar", &path).unwrap();
        let found = store.list("kube-").unwrap();
        let names: Vec<(&str, u64)> = found.iter().map(|one| (one.name.as_str(), one.bytes)).collect();
        assert_eq!(names, [("kube-1.tar", 7), ("kube-2.tar", 7)]);
        assert_eq!(store.read_part("kube-1.tar", 0, 3).unwrap(), b"con");
        assert!(store.read_part("kube-1.tar", 7, 10).unwrap().is_empty(), "behind its end");
        store.delete("kube-1.tar").unwrap();
    }
}

#[test]
fn every_refusal_names_the_way_out_and_no_secret() {
    let store = BlobContainer { sas_token: "sig=do-not-show".into(), ..container("https://x.blob.core.windows.net") };
    let refusal = |status, code: &str| {
        let text = format!(
            "\u{feff}<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no\nRequestId:1</Message></Error>"
        );
        store.connection().refusal("copying b", status, &text).render()
    };
    for (status, code, way) in [
        (403, "AuthenticationFailed", "timedatectl"),
        (403, "AuthorizationFailure", "firewall"),
        (403, "AuthorizationPermissionMismatch", "allow this key, SAS or identity"),
        (403, "KeyBasedAuthenticationNotPermitted", "sas_token"),
        (404, "ContainerNotFound", "make the container"),
        (404, "BlobNotFound", "turnup backup list"),
        (404, "ResourceNotFound", "phase2.backup.azure.account"),
        (409, "BlobImmutableDueToPolicy", "keeps what turnup would delete"),
        (503, "ServerBusy", "tries again"),
    ] {
        let said = refusal(status, code);
        assert!(said.contains(way) && said.contains(code), "{said}");
        assert!(!said.contains("do-not-show") && !said.contains("RequestId"), "{said}");
    }
    let down = free_port();
    let nowhere = BlobContainer { endpoint: format!("http://127.0.0.1:{down}"), account_key: String::new(), ..store };
    let error = nowhere.list("").unwrap_err().render();
    assert!(error.contains("cannot be reached") && !error.contains("do-not-show"), "{error}");
    assert!(!format!("{:?}", BackupStore::Blob(nowhere)).contains("do-not-show"));
}

#[test]
fn a_host_knows_by_the_fields_which_kind_of_store_it_was_told_of() {
    let told = BackupStore::Blob(container("https://x"));
    let text = serde_json::to_string(&told).unwrap();
    assert!(serde_json::from_str::<BackupStore>(&text).unwrap() == told);
    let bucket = r#"{"endpoint": "https://s3", "bucket": "b", "region": "eu", "prefix": "", "path_style": false}"#;
    assert!(matches!(serde_json::from_str(bucket).unwrap(), BackupStore::S3(_)), "as it was before there were kinds");
    assert!(serde_json::from_str::<BackupStore>(r#"{"endpoint": "https://x", "account": "a"}"#).is_err());
}

/// The emulator.
struct Azurite {
    emulator: Emulator,
    _data: tempfile::TempDir,
}

impl Azurite {
    fn start() -> Self {
        let (azurite, data) = (reference::Azurite::get().unwrap(), tempfile::tempdir().unwrap());
        let emulator = Emulator::start("azurite", |port| {
            let words = ["--blobHost", "127.0.0.1", "--silent", "--disableTelemetry", "--blobPort", port, "--location"];
            let words = words.map(std::ffi::OsString::from).into_iter().chain([data.path().into()]);
            duct::cmd(azurite.program(), std::iter::once(azurite.script().into()).chain(words))
        });
        Self { emulator, _data: data }
    }

    fn store(&self, container: &str) -> BlobContainer {
        let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", self.emulator.port);
        BlobContainer { account: ACCOUNT.into(), container: container.into(), ..self::container(&endpoint) }
    }

    fn make_container(&self, name: &str) {
        let (store, path) = (self.store(name), format!("/{name}"));
        let query = [("restype", "container")];
        let request = BlobRequest { method: "PUT", ..get(&path, &query) };
        let (url, headers) = store.sign(&request, Timestamp::now()).unwrap();
        let builder = store.connection().agent().unwrap().put(url.as_str());
        assert_eq!(with_headers(builder, &headers).send_empty().unwrap().status(), 201);
    }
}

/// A shared access signature of a container, as "Create a service SAS" has it.
fn shared_access(container: &str, rights: &str, ends: &str) -> String {
    let resource = format!("/blob/{ACCOUNT}/{container}");
    let text = format!("{rights}\n\n{ends}\n{resource}\n\n\n\n{VERSION}\nc\n\n\n\n\n\n\n");
    let signature = escape(&sign_text(KEY, &text).unwrap(), b"");
    format!("sv={VERSION}&sr=c&sp={rights}&se={}&sig={signature}", escape(ends, b""))
}

#[test]
#[ignore = "needs azurite: make test-backup"]
fn microsofts_emulator_accepts_what_is_signed_and_refuses_the_rest() {
    let emulator = Azurite::start();
    emulator.make_container("safe");
    let sas = shared_access("safe", "rwdl", "2100-01-01T00:00:00Z");
    let keyed = emulator.store("safe");
    let lent = BlobContainer { account_key: String::new(), sas_token: sas, ..keyed.clone() };
    for store in [&keyed, &lent] {
        let missing = take_list_read_and_delete(&BackupStore::Blob(store.clone()));
        assert!(missing.contains("BlobNotFound") && !missing.contains("sig="), "{missing}");
    }
    let path = Path::new("Cargo.toml");
    let nowhere = emulator.store("nowhere").put("kube-1.tar", path).unwrap_err().render();
    assert!(nowhere.contains("ContainerNotFound") && nowhere.contains("make the container"), "{nowhere}");
    let wrong = BlobContainer { account_key: STANDARD.encode("another"), ..keyed.clone() };
    assert!(wrong.list("").unwrap_err().render().contains("credentials_file"));
    let ended = shared_access("safe", "rwdl", "2020-01-01T00:00:00Z");
    let ended = BlobContainer { sas_token: ended, ..lent.clone() };
    assert!(ended.list("").unwrap_err().render().contains("credentials_file"));
    let reads = BlobContainer { sas_token: shared_access("safe", "rl", "2100-01-01T00:00:00Z"), ..lent };
    assert!(reads.put("kube-3.tar", path).unwrap_err().render().contains("allow this key, SAS or identity"));
    assert_eq!(reads.list("kube-").unwrap().len(), 1);
}
