//! Tests of what the API server is told of a cloud's machines: as text, and with a real API server
//! and an issuer of the test, which signs genuine tokens and forged ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::super::api_server::{ApiServer, authority, signed};
use super::super::csr_approver::{Policy, look_once};
use super::super::groups;
use super::super::setting_tests::cluster;
use super::super::user_data::tests::{boot_of_worker, group};
use super::*;
use crate::artifacts::{Lock, ResolvedArtifacts};

const GROUPS: &str = r#"[{"name": "web", "role": "worker", "size": 1, "zones": ["us-central1-a", "us-central1-b"]}, {"name": "web-b", "role": "worker", "size": 1}]"#;

/// Of two groups, one of whose names begins as the other's.
fn settings() -> Vec<(&'static str, &'static str)> {
    vec![
        ("phase1.cloud_provider", "gce"),
        ("phase1.cluster_name", "shop"),
        ("phase1.gce.project", "p-123456"),
        ("phase1.gce.zone", "us-central1-b"),
        ("phase1.user_data.artifacts_url", "https://artifacts.example.com"),
        ("phase1.user_data.identity", "cloud"),
        ("phase1.node_groups", GROUPS),
    ]
}

fn with(changes: &[(&'static str, &'static str)]) -> Result<Option<Value>> {
    let dir = tempfile::tempdir().unwrap();
    let mut all = settings();
    all.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    super::super::authentication::find(&cluster(dir.path(), &[&all[..], changes].concat()))
}

#[test]
fn the_api_server_is_told_of_machines_and_of_users_in_one_file() {
    let machines = with(&[]).unwrap().unwrap();
    insta::assert_snapshot!(format!("{machines:#}"));
    let users =
        [("phase2.apiserver.oidc_issuer_url", "https://login.example.com"), ("phase2.apiserver.oidc_client_id", "k8s")];
    let both = with(&users).unwrap().unwrap();
    assert_eq!(both["jwt"][0]["issuer"]["url"], "https://login.example.com");
    assert_eq!(both["jwt"][1], machines["jwt"][0]);
    assert_eq!(with(&[("phase1.user_data.identity", "token")]).unwrap(), None);
}

#[test]
fn what_tells_no_machine_from_another_is_refused() {
    let said = |changes: &[(&'static str, &'static str)]| with(changes).unwrap_err().render();
    let google = [
        ("phase2.apiserver.oidc_issuer_url", "https://accounts.google.com"),
        ("phase2.apiserver.oidc_client_id", "k8s"),
    ];
    let all =
        [said(&google), said(&[("phase1.gce.project", "")]), said(&[("phase1.gce.node_service_account", "default")])];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_host_of_the_configuration_asks_its_cloud_and_one_of_the_user_has_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = cluster(dir.path(), &settings());
    let selection = Lock::embedded().unwrap().select(&cluster.settings.kubernetes_version).unwrap();
    let artifacts = ResolvedArtifacts::expected(&selection, &cluster.settings.sources, None, None);
    let own = |group: &str| {
        let text = boot_of_worker(&cluster, &artifacts, group).bootstrap_kubeconfig.unwrap();
        serde_saphyr::from_str::<Value>(&text).unwrap()["users"][0]["user"].clone()
    };
    let words = ["node", "machine-identity", "--cloud=gce", "--audience=turnup.dev/gce/p-123456/shop"];
    assert_eq!(own("web")["exec"]["command"], "/opt/turnup/bin/turnup");
    assert_eq!(own("web")["exec"]["args"], json!(words));
    assert!(own("web").get("token").is_none());
    assert_eq!(own("by-hand"), json!({"token": "@turnup:token@"}));
    let group = group("web", Role::Worker);
    let error = groups::admit(&cluster, &group).err().unwrap();
    assert_eq!(error.message(), "hosts of the group web join by their cloud's word, and no token lets one in");
}

/// A cluster on aws, whose cloud is asked about machines.
fn aws() -> Vec<(&'static str, &'static str)> {
    vec![
        ("phase1.cloud_provider", "aws"),
        ("phase1.aws.region", "eu-central-1"),
        ("phase1.cluster_name", "shop"),
        ("phase1.user_data.artifacts_url", "https://artifacts.example.com"),
        ("phase1.user_data.identity", "cloud"),
    ]
}

#[test]
fn where_the_cloud_is_asked_the_api_server_verifies_nothing_itself() {
    let dir = tempfile::tempdir().unwrap();
    let of = |changes: &[(&str, &str)]| {
        let mut all = aws();
        all.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        cluster(dir.path(), &[&all[..], changes].concat())
    };
    let own = of(&[]);
    let role = find_role(&own).unwrap().unwrap();
    let expected = [role.audience.as_str(), &role.cluster, &role.role]
        == ["turnup.dev/aws/eu-central-1/shop", "shop", "shop-eu-central-1-node"];
    assert!(expected, "{role:?}");
    assert_eq!(super::super::authentication::find(&own).unwrap(), None);
    let words = find_program(&own).unwrap().unwrap();
    assert_eq!(words[1..], ["node", "machine-identity", "--cloud=aws", "--audience=turnup.dev/aws/eu-central-1/shop"]);
    assert_eq!(find_role(&of(&[("phase1.user_data.identity", "token")])).unwrap(), None);
    // Users of an identity provider are another matter.
    let users =
        [("phase2.apiserver.oidc_issuer_url", "https://login.example.com"), ("phase2.apiserver.oidc_client_id", "k8s")];
    assert!(super::super::authentication::find(&of(&users)).unwrap().is_some());
    let said = |changes: &[(&str, &str)]| find_proof(&of(changes)).unwrap_err().render();
    let all = [
        said(&[("phase2.apiserver.authentication_webhook_file", "webhook.yaml")]),
        said(&[("phase1.aws.node_instance_profile", "nodes")]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// Signs what it is asked to, and says with which key.
struct TokenIssuer {
    url: String,
    /// What its certificate is of.
    authority: String,
    key: KeyPair,
}

impl TokenIssuer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (authority, own) = authority();
        let (certificate, server_key) = signed(&own, "issuer", None);
        let key = KeyPair::generate().unwrap();
        let point = key.der_bytes();
        let [x, y] = [&point[1..33], &point[33..65]].map(|half| URL_SAFE_NO_PAD.encode(half));
        let keys =
            json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k", "x": x, "y": y}]});
        let about = json!({"issuer": url, "jwks_uri": format!("{url}/keys"), "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"]});
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate.der().to_vec())],
                PrivateKeyDer::try_from(server_key.serialize_der()).unwrap(),
            );
        let config = Arc::new(config.unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, keys, about) = (Arc::clone(&config), keys.to_string(), about.to_string());
                std::thread::spawn(move || {
                    let mut stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
                    let mut line = String::new();
                    BufReader::new(&mut stream).read_line(&mut line).ok()?;
                    let body = if line.starts_with("GET /keys ") { keys } else { about };
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
                    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
                    stream.conn.send_close_notify();
                    stream.flush().ok()
                });
            }
        });
        Self { url, authority, key }
    }

    fn sign(&self, claims: &Value) -> String {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&json!({"alg": "ES256", "kid": "k", "typ": "JWT"})), encode(claims));
        let signature = plain(&self.key.sign(text.as_bytes()).unwrap());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Both numbers of a signature, each in 32 bytes; rcgen gives them in DER.
fn plain(der: &[u8]) -> Vec<u8> {
    let (mut rest, mut all) = (&der[2..], Vec::new());
    for _ in 0..2 {
        let length = usize::from(rest[1]);
        let number = &rest[2..2 + length];
        let number = &number[number.len().saturating_sub(32)..];
        all.extend(std::iter::repeat_n(0, 32 - number.len()).chain(number.iter().copied()));
        rest = &rest[2 + length..];
    }
    all
}

/// What Google says of a machine, by its documentation.
fn claims(issuer: &TokenIssuer, name: &str) -> Value {
    let now = Timestamp::now().as_second();
    json!({
        "iss": issuer.url, "aud": "turnup.dev/gce/p-123456/shop", "sub": "112233", "azp": "112233",
        "email": "shop-node@p-123456.iam.gserviceaccount.com", "email_verified": true, "iat": now, "exp": now + 3600,
        "google": {"compute_engine": {"project_id": "p-123456", "project_number": 42, "zone": "us-central1-b",
            "instance_id": "7", "instance_name": name, "instance_creation_timestamp": now - 60}},
    })
}

#[test]
#[ignore = "starts an API server: make test-components"]
fn a_machine_becomes_the_node_of_its_name_and_a_forged_one_none() {
    let (issuer, dir) = (TokenIssuer::start(), tempfile::tempdir().unwrap());
    let cluster = cluster(dir.path(), &settings());
    let known = find_issuer(&cluster).unwrap().unwrap();
    let known = IdentityIssuer { url: issuer.url.clone(), ..known };
    // More than a cluster has: the expressions stay within what the API server takes.
    let zones = ["us-central1-a", "us-central1-b", "us-central1-c"].map(str::to_owned);
    let other = |name: String| MachineGroup { prefix: format!("shop-{name}-"), name, zones: zones.to_vec() };
    let others = (0..100).map(|number| other(format!("a-long-name-of-a-group-{number}")));
    let all: Vec<MachineGroup> = machine_groups(&cluster).unwrap().into_iter().chain(others).collect();
    let mut machines = render(&known, &all);
    machines["issuer"]["certificateAuthority"] = issuer.authority.clone().into();
    let mut file = with(&[]).unwrap().unwrap();
    file["jwt"] = json!([machines]);
    let flag = "--authentication-config={dir}/authentication.yaml";
    let api = ApiServer::start(&cluster.settings.kubernetes_version, &[flag], &[("authentication.yaml", &file)]);
    let admin = api.admin();
    admin.apply(&cluster.source.read_text("templates/bootstrap/rbac.yaml").unwrap()).unwrap();
    let token = |change: &dyn Fn(&mut Value)| {
        let mut claims = claims(&issuer, "shop-web-x1y2");
        change(&mut claims);
        issuer.sign(&claims)
    };
    // The issuer's keys are fetched in the background.
    let (good, since) = (token(&|_| ()), Instant::now());
    while let Err(said) = api.ask(&good, "a-own", "shop-web-x1y2") {
        assert!(since.elapsed() < Duration::from_mins(2), "{said}\n{}", api.log());
        std::thread::sleep(Duration::from_secs(1));
    }
    api.ask(&good, "b-other", "shop-web-z9z9").unwrap();
    api.ask(&good, "c-other-group", "shop-web-b-x1y2").unwrap();
    let mut in_b = claims(&issuer, "shop-web-b-q1q1");
    api.ask(&issuer.sign(&in_b), "d-own", "shop-web-b-q1q1").unwrap();
    let spec = admin.get(&["certificatesigningrequests", "a-own"]).unwrap()["spec"].clone();
    assert_eq!(spec["username"], "turnup:machine:web:shop-web-x1y2");
    assert_eq!(
        spec["groups"],
        json!(["system:bootstrappers:turnup", "system:bootstrappers:turnup:web", "system:authenticated"])
    );

    // A machine may ask for its certificate, and nothing else.
    let kubelet = api.kubelet(&good);
    let said = kubelet.command(&["get", "secrets", "--all-namespaces"]).output().unwrap_err();
    assert!(said.stderr().contains("forbidden") && said.stderr().contains("turnup:machine:web:"), "{}", said.stderr());

    let machine = |field: &'static str, value: Value| {
        token(&move |claims: &mut Value| claims["google"]["compute_engine"][field] = value.clone())
    };
    let claim = |field: &'static str, value: Value| token(&move |claims: &mut Value| claims[field] = value.clone());
    in_b["google"]["compute_engine"]["zone"] = "us-central1-a".into();
    let another = TokenIssuer { key: KeyPair::generate().unwrap(), url: issuer.url.clone(), authority: String::new() };
    let forged = [
        ("another project", machine("project_id", json!("p-654321"))),
        ("another zone", machine("zone", json!("us-central1-f"))),
        ("a zone of another group alone", issuer.sign(&in_b)),
        ("the name of the group in the place of a zone", machine("zone", json!("shop-web-"))),
        ("another cluster's name", machine("instance_name", json!("other-web-x1y2"))),
        ("a name that is no text", machine("instance_name", json!(["shop-web-x1y2"]))),
        ("another audience", claim("aud", json!("turnup.dev/gce/p-123456/other"))),
        ("another account", claim("email", json!("ci@p-123456.iam.gserviceaccount.com"))),
        ("an account that was not verified", claim("email_verified", json!(false))),
        ("no account", token(&|claims| drop(claims.as_object_mut().unwrap().remove("email")))),
        ("no machine", token(&|claims| drop(claims.as_object_mut().unwrap().remove("google")))),
        ("a machine in the short form", claim("google", json!({}))),
        ("a machine that is a text", claim("google", json!({"compute_engine": "shop-web-x1y2"}))),
        ("over", claim("exp", json!(Timestamp::now().as_second() - 60))),
        ("another issuer", claim("iss", json!("https://127.0.0.1:1"))),
        ("another key", another.sign(&claims(&issuer, "shop-web-x1y2"))),
    ];
    for (what, token) in forged {
        let said = api.ask(&token, "forged", "shop-web-x1y2");
        assert!(said.as_ref().is_err_and(|said| said.contains("Unauthorized")), "{what}: {said:?}");
    }

    let prefixes =
        [("web", "shop-web-"), ("web-b", "shop-web-b-")].map(|(group, prefix)| (group.into(), prefix.into()));
    let mut news = look_once(&admin, &Policy::new(prefixes.into(), Vec::new(), Vec::new())).unwrap();
    news.sort();
    let mistaken =
        |node: &str| format!("its cloud says that it is the machine shop-web-x1y2, and it asks to be the node {node}");
    let decided = [
        "approved a-own: the host shop-web-x1y2 joins".to_owned(),
        "approved d-own: the host shop-web-b-q1q1 joins".to_owned(),
        format!("denied b-other of shop-web-z9z9: {}", mistaken("shop-web-z9z9")),
        format!("denied c-other-group of shop-web-b-x1y2: {}", mistaken("shop-web-b-x1y2")),
    ];
    assert_eq!(news, decided);
    let reason = |name: &str| {
        admin.get(&["certificatesigningrequests", name]).unwrap()["status"]["conditions"][0]["reason"].clone()
    };
    assert_eq!(
        ["a-own", "b-other", "c-other-group", "d-own"].map(reason),
        ["TurnupApproved", "NotThisMachine", "NotThisMachine", "TurnupApproved"]
    );
}
