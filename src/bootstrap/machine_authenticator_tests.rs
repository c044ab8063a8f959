//! Tests of what the API server is told: by themselves, and with a real API server and an EC2 in
//! miniature whose STS verifies signatures (`cloud::AwsEmulator`).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![expect(clippy::format_push_string, reason = "a test may be slow and plain")]

use std::path::Path;
use std::sync::mpsc::Receiver;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::super::api_server::{ApiServer, authority, free_port, signed};
use super::super::control_plane;
use super::super::csr_approver::{Policy, look_once};
use super::super::kubeconfig::{self, Identity};
use super::super::node_config::tests::{facts, with_configs};
use super::*;
use crate::cloud::{AwsEmulator, EmulatedMachine};
use crate::config::{Settings, TreeSource};
use crate::error::Class;
use crate::node::node_config::{Content, MACHINE_AUTHENTICATOR_UNIT};

/// Says always the same.
struct FixedJudge(fn() -> Result<ProvenMachine>);

impl IdentityJudge for FixedJudge {
    fn prefix(&self) -> &'static str {
        "own."
    }

    fn judge(&self, token: &str) -> Result<ProvenMachine> {
        assert!(token.starts_with(self.prefix()), "it is asked of its own tokens alone");
        self.0()
    }
}

fn node_groups() -> BTreeMap<String, String> {
    [("web", "web-"), ("web-b", "web-b-")].map(|(group, prefix)| (group.into(), prefix.into())).into()
}

fn authenticator(judge: fn() -> Result<ProvenMachine>) -> (Authenticator, Receiver<News>) {
    let (news, all) = channel();
    (
        Authenticator { judge: Box::new(FixedJudge(judge)), node_groups: node_groups(), news, told: Mutex::default() },
        all,
    )
}

fn review(token: &str) -> Value {
    json!({"apiVersion": REVIEW.0, "kind": REVIEW.1, "spec": {"token": token, "audiences": ["https://kubernetes"]}})
}

fn of(group: &str, host: &str) -> ProvenMachine {
    ProvenMachine { id: "i-0123456789abcdef0".into(), group: group.into(), host: host.into() }
}

#[test]
fn a_machine_is_a_user_of_its_group_and_name() {
    let (service, news) = authenticator(|| Ok(of("web-b", "ip-10-0-0-1.eu-central-1.compute.internal")));
    let user = json!({
        "username": "turnup:machine:web-b:web-b-ip-10-0-0-1",
        "groups": ["system:bootstrappers:turnup", "system:bootstrappers:turnup:web-b"],
    });
    let expected = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "status": {"authenticated": true, "user": user}});
    assert_eq!(service.answer(&review("own.a")), Some(expected));
    service.answer(&review("own.a"));
    let lines: Vec<String> = news.try_iter().filter_map(line_of).collect();
    assert_eq!(lines, ["i-0123456789abcdef0 of the group web-b is web-b-ip-10-0-0-1"], "once");
}

fn line_of(news: News) -> Option<String> {
    match news {
        News::Line(line) => Some(line),
        News::Trouble(_) => None,
    }
}

#[test]
fn tokens_of_others_are_no_matter_of_a_cloud() {
    let (service, _news) = authenticator(|| panic!("asked"));
    for token in ["", "abcdef.0123456789abcdef", "eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "OWN.a", " own.a"] {
        assert_eq!(service.answer(&review(token)).unwrap()["status"], json!({"authenticated": false}), "{token}");
    }
    for other in [json!({}), json!([]), json!({"apiVersion": REVIEW.0, "kind": REVIEW.1, "spec": {}})] {
        assert_eq!(service.answer(&other), None, "{other}");
    }
    let mut old = review("own.a");
    old["apiVersion"] = "authentication.k8s.io/v1beta1".into();
    assert_eq!(service.answer(&old), None);
}

#[test]
fn a_refusal_is_remembered_and_silence_of_the_cloud_is_not() {
    let status = |judge: fn() -> Result<ProvenMachine>| {
        let (service, news) = authenticator(judge);
        let status = service.answer(&review("own.secret")).unwrap()["status"].clone();
        let lines: Vec<String> = news.try_iter().filter_map(line_of).collect();
        assert!(lines.iter().all(|line| !line.contains("secret")), "{lines:?}");
        (status, lines.concat())
    };
    let refused = json!({"authenticated": false});
    let (found, line) = status(|| Err(Error::permanent("the machine i-1 is terminated")));
    assert_eq!((found, line.as_str()), (refused.clone(), "refused: the machine i-1 is terminated"));
    let (found, line) = status(|| Ok(of("db", "ip-10-0-0-1")));
    let none = "refused: the machine i-0123456789abcdef0 is of the group \"db\", which is none: turnup up";
    assert_eq!((found, line.as_str()), (refused, none));
    let (found, line) = status(|| Err(Error::new(Class::Transient, "sts does not answer")));
    assert_eq!(found["authenticated"], false);
    assert!(found["error"].as_str().is_some_and(|error| !error.is_empty()), "{found}");
    assert_eq!(line, "cannot say whose token it is: sts does not answer");
    // A name that cannot be a Node's.
    let (found, _) = status(|| Ok(of("web", "a_b")));
    assert_eq!(found, json!({"authenticated": false}));
}

#[test]
fn one_who_tries_again_and_again_does_not_fill_the_journal() {
    let (service, news) = authenticator(|| Ok(of("web", "a")));
    for number in 0..1000 {
        service.tell(format!("line {}", number % 200));
    }
    assert_eq!(news.try_iter().count(), MOST_LINES);
}

#[test]
fn the_api_server_of_a_host_asks_the_authenticator_beside_it() {
    let settings = [
        ("phase1.cloud_provider", "aws"),
        ("phase1.user_data.artifacts_url", "https://artifacts.example.com"),
        ("phase1.user_data.identity", "cloud"),
        (
            "phase1.node_groups",
            r#"[{"name": "web", "role": "worker", "size": 1}, {"name": "web-b", "role": "worker", "size": 1}]"#,
        ),
    ];
    with_configs(&settings, |configs| {
        let (host, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        let at = |name: &str| host.units.iter().position(|unit| unit.name == name).unwrap();
        assert!(at(MACHINE_AUTHENTICATOR_UNIT) < at("kubelet.service"), "the API server may ask at once");
        let mut text = host.units[at(MACHINE_AUTHENTICATOR_UNIT)].text.replace(configs.cluster.version(), "(turnup)");
        for file in &host.files {
            if let (Content::Yaml(value), true) = (&file.content, file.path.ends_with("kube-apiserver.yaml")) {
                let flags = value["spec"]["containers"][0]["command"].as_array().unwrap();
                let flags = flags.iter().filter_map(Value::as_str).filter(|flag| flag.contains("webhook"));
                text.extend(flags.map(|flag| format!("{flag}\n")));
            }
            if file.path.contains("machine-authenticator") {
                text += &format!("{} {:o} {}\n", file.path, file.mode, file.owner);
            }
        }
        let config = host.files.iter().find(|file| file.path.ends_with(control_plane::MACHINES)).unwrap();
        let Content::Yaml(config) = &config.content else { panic!("{config:?}") };
        text += &format!("{} {}\n", config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]);
        let user = host.users.iter().find(|user| user.id == USER_ID).unwrap();
        let directory = host.directories.iter().find(|one| one.path == layout::MACHINE_AUTHENTICATOR).unwrap();
        text += &format!("{} {} {:o}\n", user.name, directory.path, directory.mode);
        insta::assert_snapshot!(text);
        assert!(host.ports.contains(&3993), "refused while another program listens there");
        let leaf = configs.leaves().unwrap().into_iter().find(|leaf| leaf.file == NAME).unwrap();
        assert_eq!((leaf.hosts, leaf.client), (vec!["127.0.0.1".to_owned()], false));
        let (worker, _) = configs.node_config(&configs.inventory.hosts[1], &facts()).unwrap();
        assert!(!serde_json::to_string(&worker).unwrap().contains(NAME));
    });
    with_configs(&[&settings[..2], &settings[3..]].concat(), |configs| {
        let (host, _) = configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap();
        assert!(!serde_json::to_string(&host).unwrap().contains(NAME), "with tokens there is none");
        assert!(configs.leaves().unwrap().iter().all(|leaf| leaf.file != NAME));
    });
}

/// The host that serves is of the control plane.
const CONTROL_PLANE: usize = 0;

const AUDIENCE: &str = "turnup.dev/aws/eu-central-1/shop";

/// The control plane, machines of two groups, and what is none; each has the number of its place.
fn machines() -> Vec<EmulatedMachine> {
    let machine = |number: u8, change: &dyn Fn(&mut EmulatedMachine)| {
        let mut machine = EmulatedMachine::new("shop", "web", number);
        change(&mut machine);
        machine
    };
    let of_other = EmulatedMachine::new("other", "web", 9);
    let id_of_other = of_other.id.clone();
    vec![
        machine(0, &|machine| {
            machine.role = "shop-eu-central-1-control-plane".into();
            machine.tag("k8s.io/role/control-plane", "1");
        }),
        machine(1, &|_| {}),
        machine(2, &|machine| machine.tag("k8s.io/group", "web-b")),
        machine(3, &|machine| machine.state = "terminated".into()),
        machine(4, &|machine| machine.account = "999900001111".into()),
        machine(5, &|machine| machine.session = "by-hand".into()),
        machine(6, &|machine| machine.tag("KubernetesCluster", "other")),
        machine(7, &|machine| machine.tag("k8s.io/group", "gone")),
        machine(8, &|machine| machine.session.clone_from(&id_of_other)),
        of_other,
    ]
}

/// What a machine shows.
fn token(cloud: &AwsEmulator, number: usize, audience: &str) -> String {
    let fetch = cloud::find("aws").and_then(Cloud::fetch_identity).unwrap();
    fetch(&cloud.endpoints(number), audience).unwrap().text.to_string()
}

/// Tokens that let no machine in; `good` is one that does.
fn forged(cloud: &AwsEmulator, good: &str) -> Vec<(&'static str, String)> {
    let url = String::from_utf8(URL_SAFE_NO_PAD.decode(good.strip_prefix("k8s-aws-v1.").unwrap()).unwrap()).unwrap();
    let signature = signature_of(&url);
    let changed = |from: &str, to: &str| {
        assert!(url.contains(from), "{from}");
        format!("k8s-aws-v1.{}", URL_SAFE_NO_PAD.encode(url.replacen(from, to, 1)))
    };
    let of = |number| token(cloud, number, AUDIENCE);
    vec![
        ("the control plane's role", of(CONTROL_PLANE)),
        ("a machine that has ended", of(3)),
        ("another account", of(4)),
        ("a session that is no machine", of(5)),
        ("a machine that is tagged as another cluster's", of(6)),
        ("a group that is none", of(7)),
        ("a session with the id of another cluster's machine", of(8)),
        ("a machine of another cluster", of(9)),
        ("a token for another cluster", token(cloud, 1, "turnup.dev/aws/eu-central-1/other")),
        ("another key", changed("EXAMPL1", "EXAMPL2")),
        ("an unknown key", changed("EXAMPL1", "EXAMPLE")),
        ("another signature", changed(&signature, &signature.chars().rev().collect::<String>())),
        ("a longer life", changed("X-Amz-Expires=60", "X-Amz-Expires=900")),
        ("another STS", changed("amazonaws.com", "amazonaws.com.evil.example")),
        ("another action", changed("GetCallerIdentity", "GetSessionToken")),
        ("a bootstrap token", "abcdef.0123456789abcdef".to_owned()),
        ("nothing behind the prefix", "k8s-aws-v1.".to_owned()),
    ]
}

fn signature_of(url: &str) -> String {
    url.rsplit_once('=').unwrap().1.to_owned()
}

/// An API server that asks an authenticator, which is not there yet, and how to start that.
fn api_server(dir: &Path) -> (ApiServer, AuthenticatorOptions) {
    let (authority, own) = authority();
    let (certificate, key) = signed(&own, NAME, None);
    let file = |name: &str, text: &str| {
        fs_err::write(dir.join(name), text).unwrap();
        dir.join(name)
    };
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let role = "shop-eu-central-1-node".to_owned();
    let options = AuthenticatorOptions {
        listen,
        certificate: file("server.crt", &certificate.pem()),
        key: file("server.key", &key.serialize_pem()),
        cloud: "aws".into(),
        workers: MachineRole { audience: AUDIENCE.into(), cluster: "shop".into(), role },
        node_groups: node_groups(),
    };
    let url = format!("https://{listen}/token-review");
    let config = kubeconfig::config("shop", &url, &authority, "kube-apiserver", &Identity::Unproven);
    let flags = [
        "--authentication-token-webhook-config-file={dir}/webhook",
        "--authentication-token-webhook-version=v1",
        "--authentication-token-webhook-cache-ttl=1s",
    ];
    let version = Settings::defaults(&TreeSource::embedded()).unwrap().get("phase2.kubernetes_version").unwrap();
    (ApiServer::start(&version, &flags, &[("webhook", &config)]), options)
}

#[test]
#[ignore = "starts an API server: make test-components"]
fn a_machine_of_ec2_becomes_the_node_of_its_name_and_a_forged_one_none() {
    let cloud = AwsEmulator::start(&machines());
    let dir = tempfile::tempdir().unwrap();
    // It comes up while the authenticator is away.
    let (api, options) = api_server(dir.path());
    let good = token(&cloud, 1, AUDIENCE);
    // kubectl has not learnt yet what the API has, and says it in other words then.
    let said = api.ask(&good, "early", "web-ip-172-20-1-1").unwrap_err();
    assert!(said.contains("asked for the client to provide credentials"), "{said}");
    let (news, lines) = channel();
    start(options, cloud.endpoints(CONTROL_PLANE), news).unwrap();
    assert!(line_of(lines.recv().unwrap()).unwrap().starts_with("listens at "));

    let admin = api.admin();
    admin.apply(&TreeSource::embedded().read_text("templates/bootstrap/rbac.yaml").unwrap()).unwrap();
    let since = Instant::now();
    while let Err(said) = api.ask(&good, "a-own", "web-ip-172-20-1-1") {
        assert!(since.elapsed() < Duration::from_mins(1), "{said}\n{}", api.log());
        thread::sleep(Duration::from_millis(500));
    }
    api.ask(&good, "b-other", "web-ip-172-20-1-9").unwrap();
    api.ask(&good, "c-other-group", "web-b-ip-172-20-1-1").unwrap();
    api.ask(&token(&cloud, 2, AUDIENCE), "d-own", "web-b-ip-172-20-1-2").unwrap();
    let spec = admin.get(&["certificatesigningrequests", "a-own"]).unwrap()["spec"].clone();
    assert_eq!(spec["username"], "turnup:machine:web:web-ip-172-20-1-1");
    let of_group = ["system:bootstrappers:turnup", "system:bootstrappers:turnup:web", "system:authenticated"];
    assert_eq!(spec["groups"], json!(of_group));
    let said = api.kubelet(&good).command(&["get", "secrets", "--all-namespaces"]).output().unwrap_err();
    assert!(said.stderr().contains("forbidden") && said.stderr().contains("turnup:machine:web:"), "{}", said.stderr());

    for (what, token) in forged(&cloud, &good) {
        let said = api.ask(&token, "forged", "web-ip-172-20-1-1");
        assert!(said.as_ref().is_err_and(|said| said.contains("Unauthorized")), "{what}: {said:?}");
    }
    let told: Vec<String> = lines.try_iter().filter_map(line_of).collect();
    assert!(told.iter().all(|line| !line.contains("X-Amz-Signature=") && !line.contains("session/")), "{told:?}");
    assert!(told.contains(&"refused: STS answers 403 SignatureDoesNotMatch".to_owned()), "{told:?}");

    let mut news = look_once(&admin, &Policy::new(node_groups(), Vec::new(), Vec::new())).unwrap();
    news.sort();
    let own = "its cloud says that it is the machine web-ip-172-20-1-1, and it asks to be the node";
    let decided = [
        "approved a-own: the host web-ip-172-20-1-1 joins".to_owned(),
        "approved d-own: the host web-b-ip-172-20-1-2 joins".to_owned(),
        format!("denied b-other of web-ip-172-20-1-9: {own} web-ip-172-20-1-9"),
        format!("denied c-other-group of web-b-ip-172-20-1-1: {own} web-b-ip-172-20-1-1"),
    ];
    assert_eq!(news, decided);
}
