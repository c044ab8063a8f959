//! Tests of the configuration object: what is read, what is refused and how it is said, what is
//! written.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;

use kconfig::{Env, MemoryFiles, Tree};

use super::super::ProblemLevel;
use super::*;

/// Every type, with dependencies, a choice and a secret.
const SMALL: &str = r#"
mainmenu "Small"

config a.name
	string "Name"
	default "it"

#: format = cidr
config a.net
	string "Network"
	default "10.0.0.0/8"

config a.count
	int "Count"
	range 1 9
	default 3

config a.on
	bool "On"
	default y

config a.deep.off
	bool "Off"

config a.deep.inner
	bool "Inner"
	depends on a.deep.off
	default y

config b.mask
	hex "Mask"
	default 0x1f

#: secret
config b.token
	string "Token"

choice
	prompt "Colour"
	default b.red

config b.red
	bool "Red"

config b.blue
	bool "Blue"

endchoice
"#;

fn small() -> Arc<Schema> {
    let files = MemoryFiles::new([("Kconfig", SMALL)]);
    Schema::new(Tree::load("Kconfig", &files, &Env::empty()).unwrap()).unwrap()
}

fn ours() -> Arc<Schema> {
    Schema::load(&TreeSource::embedded()).unwrap()
}

struct File {
    dir: tempfile::TempDir,
}

impl File {
    fn with(text: &str) -> Self {
        let file = Self { dir: tempfile::tempdir().unwrap() };
        fs_err::write(file.path(), text).unwrap();
        file
    }

    fn none() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("c.json")
    }

    fn open(&self, schema: Arc<Schema>) -> Settings {
        Settings::open(&self.path(), schema).unwrap().unwrap()
    }

    fn text(&self) -> String {
        fs_err::read_to_string(self.path()).unwrap()
    }
}

/// Everything found in a file over the small tree, one line each.
fn found(text: &str) -> String {
    let settings = File::with(text).open(small());
    let line = |problem: &Problem| format!("{:?} {}", problem.level, problem.line(Path::new("c.json")));
    settings.check().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn defaults_are_nested_in_the_order_of_the_menus_without_what_is_off() {
    let settings = Settings::from_defaults(small());
    insta::assert_snapshot!(settings.text(), @r#"
    {
      "a": {
        "name": "it",
        "net": "10.0.0.0/8",
        "count": 3,
        "on": true
      },
      "b": {
        "mask": "0x1f",
        "token": "",
        "red": true
      }
    }
    "#);
}

#[test]
fn our_own_defaults() {
    let settings = Settings::from_defaults(ours());
    assert_eq!(settings.check(), [], "the defaults are right");
    insta::assert_snapshot!(settings.text());
    let mut bare = settings;
    bare.set_all(&[("phase1.cloud_provider", "baremetal")]).unwrap();
    assert_eq!(bare.check(), []);
    assert_eq!(bare.get("phase1.baremetal.hosts_file").unwrap(), "provision.json");
    assert_eq!(bare.get_int("phase1.num_nodes").unwrap(), 0, "not asked, so nothing");
}

#[test]
fn every_setting_of_ours_teaches() {
    let schema = ours();
    for &symbol in schema.ordered() {
        let name = schema.name(symbol);
        let definition = schema.tree().get(symbol);
        assert!(schema.prompt(symbol).is_some(), "{name} has a prompt");
        assert!(schema.rule(symbol).effect.is_some(), "{name} says what a change does");
        let help = definition.nodes.iter().find_map(|node| schema.tree().help(*node)).unwrap_or_default();
        assert!(help.split_whitespace().count() >= 15, "{name} has help that teaches");
        assert!(help.lines().all(|line| line.chars().count() <= 74), "{name}: help fits into 80 columns");
        if definition.kind == SymbolType::String {
            assert!(schema.rule(symbol).format.is_some(), "{name} has a format");
        }
        let example = schema.rule(symbol).example.clone();
        if let (Some(example), Some(format)) = (example, &schema.rule(symbol).format) {
            assert_eq!(format.validate(&example), Ok(()), "the example of {name}");
        }
    }
}

#[test]
fn saving_and_loading_is_the_identity() {
    let file = File::none();
    let mut settings = Settings::from_defaults(small());
    settings.set_all(&[("a.count", "9"), ("a.on", "n"), ("b.blue", "y"), ("b.mask", "0xff")]).unwrap();
    settings.save(&file.path()).unwrap();
    let again = file.open(small());
    assert_eq!(again.json(), settings.json());
    assert_eq!(again.check().iter().filter(|problem| problem.level == ProblemLevel::Error).count(), 0);
    assert!(!again.get_bool("a.on").unwrap(), "its default is y");
    assert!(!again.differs_from_file());
}

#[test]
fn mistakes_are_placed_and_explained() {
    insta::assert_snapshot!(found(r#"{
  "a": {
    "name": 5,
    "cuont": 3,
    "net": "10.0.0.1/8",
    "count": 12,
    "on": "yes",
    "on": true,
    "deep": []
  },
  "b": {"mask": "0xzz", "token": {"x": 1}},
  "c.d": 1,
  "e": {}
}"#), @r#"
    Error c.json:3:13: a.name must be a string in quotes, not the number 5
    Error c.json:4:5: there is no setting `a.cuont`; did you mean `a.count`?
    Error c.json:5:12: a.net: 10.0.0.1/8 is an address inside the network 10.0.0.0/8; write the network itself
    Error c.json:6:14: a.count is 12, but must lie between 1 and 9
    Error c.json:7:11: a.on must be true or false, not a string
    Error c.json:8:5: `a.on` occurs twice; the first one is in line 7
    Error c.json:9:13: `a.deep` is a group of settings and must be an object, not a list
    Error c.json:11:17: `0xzz` is not a value for b.mask, which is of type hex
    Error c.json:11:35: `b.token` is a setting, not a group; `b.token.x` does not exist
    Error c.json:12:3: key `c.d` has dots; objects are nested instead: {"c": {"d": …
    Error c.json:13:3: there is no setting `e`
    Notice c.json: b.token is new: its default "" is used
    "#);
}

#[test]
fn what_is_absent_has_its_default() {
    insta::assert_snapshot!(found(r#"{"a": {"name": "x", "net": "10.0.0.0/8", "deep": {"inner": true}}, "b": {"token": ""}}"#), @r#"
    Notice c.json:1:60: a.deep.inner has no effect: it cannot be set now: needs a.deep.off (a.deep.off is n)
    Notice c.json: a.count is new: its default 3 is used
    Notice c.json: a.on is new: its default y is used
    Notice c.json: b.mask is new: its default 0x1f is used
    "#);
}

#[test]
fn a_bool_that_is_off_is_written_when_its_default_is_on() {
    let file = File::with(r#"{"a": {"on": false, "deep": {"off": false}}, "b": {"red": false, "blue": true}}"#);
    let mut settings = file.open(small());
    assert!(!settings.get_bool("a.on").unwrap());
    settings.set("a.deep.off", "y").unwrap();
    assert!(settings.get_bool("a.deep.inner").unwrap(), "absent, and its default is y");
    settings.set("a.deep.inner", "n").unwrap();
    let off = |settings: &Settings, pointer: &str| settings.json().pointer(pointer).cloned();
    assert_eq!(off(&settings, "/a/on"), Some(Value::Bool(false)));
    assert_eq!(off(&settings, "/a/deep/inner"), Some(Value::Bool(false)));
    assert_eq!(off(&settings, "/b/red"), None, "blue says it");
    settings.set("a.deep.off", "n").unwrap();
    assert_eq!(off(&settings, "/a/deep"), None, "n by default, and not asked");
    settings.save(&file.path()).unwrap();
    let again = file.open(small());
    assert_eq!(again.text(), settings.text());
    assert!(!again.get_bool("a.on").unwrap() && again.get_bool("b.blue").unwrap());
}

#[test]
fn what_was_not_asked_gets_its_default_when_it_is_asked() {
    let file = File::none();
    Settings::from_defaults(small()).save(&file.path()).unwrap();
    let mut settings = file.open(small());
    let changes = settings.set("a.deep.off", "y").unwrap();
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(names, ["a.deep.off", "a.deep.inner"]);
    assert!(settings.get_bool("a.deep.inner").unwrap(), "it had no answer");
}

#[test]
fn a_text_that_is_no_object_is_never_overwritten() {
    for text in ["", "[]", "{\"a\": 1,}", "phase1:\n  num_nodes: 3\n", "{} {}"] {
        let file = File::with(text);
        let error = Settings::open(&file.path(), small()).unwrap_err();
        assert_eq!(error.class(), Class::Config);
        assert!(error.message().contains("c.json:1:") || error.message().contains("c.json:2:"), "{}", error.message());
        assert!(Settings::from_defaults(small()).save(&file.path()).is_err());
        assert!(Settings::from_defaults(small()).overwrite(&file.path()).is_err());
        assert_eq!(file.text(), text);
    }
}

#[test]
fn sets_all_or_nothing_and_says_everything_at_once() {
    let mut settings = Settings::from_defaults(small());
    let before = settings.json().clone();
    let error = settings
        .set_all(&[
            ("a.count", "0"),
            ("a.nmae", "x"),
            ("a.net", "10"),
            ("a.name", "fine"),
            ("a.on", "maybe"),
            ("a.deep.inner", "y"),
        ])
        .unwrap_err();
    insta::assert_snapshot!(error.render(), @r"
    error: nothing was changed: 5 things are wrong
      | there is no setting `a.nmae`; did you mean `a.name`?
      | a.count: 0 is out of range: 1 to 9
      | a.net: a network needs a prefix length, as in 10.1.0.0/16
      | a.on: `maybe` is neither y nor n
      | a.deep.inner cannot be set now: needs a.deep.off (a.deep.off is n)
    next: see all settings: turnup config list; turnup config explain a.count; turnup config explain a.net
    ");
    let twice = settings.set_all(&[("a.count", "4"), ("a.count", "5")]).unwrap_err();
    assert_eq!(twice.message(), "a.count is given twice");
    assert_eq!(*settings.json(), before);
}

#[test]
fn sets_in_the_order_that_dependencies_ask_for() {
    let mut settings = Settings::from_defaults(small());
    settings.set_all(&[("a.deep.inner", "n"), ("a.deep.off", "true")]).unwrap();
    assert!(settings.get_bool("a.deep.off").unwrap());
    assert!(!settings.get_bool("a.deep.inner").unwrap());
}

#[test]
fn mends_a_file_that_is_wrong() {
    let file = File::with(r#"{"a": {"cuont": 3, "count": 12}, "x": 1}"#);
    let mut settings = file.open(small());
    assert!(settings.usable(&file.path()).is_err());
    let error = settings.set("a.name", "x").unwrap_err();
    assert!(
        error.render().contains("a.cuont"),
        "a file is not written while anything in it is wrong: {}",
        error.render()
    );
    assert!(settings.unset(&["a.cuont", "y"]).is_err());
    let mut settings = file.open(small());
    let error = settings.unset(&["a.cuont", "x"]).unwrap_err();
    assert!(error.message().contains("a.count is 12"), "{}", error.message());
    settings.set("a.count", "4").unwrap_err();
    assert_eq!(file.text(), r#"{"a": {"cuont": 3, "count": 12}, "x": 1}"#);
}

#[test]
fn a_file_that_another_process_changed_is_not_lost() {
    let file = File::none();
    let mut mine = Settings::from_defaults(small());
    mine.save(&file.path()).unwrap();
    let mut theirs = file.open(small());
    theirs.set("a.count", "5").unwrap();
    theirs.save(&file.path()).unwrap();
    mine.set("a.count", "6").unwrap();
    let error = mine.save(&file.path()).unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert!(file.text().contains("\"count\": 5"));
    mine.overwrite(&file.path()).unwrap();
    assert!(file.text().contains("\"count\": 6"));
    assert!(Settings::from_defaults(small()).save(&file.path()).is_err(), "it was created meanwhile");
}

#[test]
fn secrets_are_private_and_never_shown() {
    let file = File::none();
    let mut settings = Settings::from_defaults(small());
    let changes = settings.set("b.token", "hunter2").unwrap();
    assert_eq!(changes[0].after.as_deref(), Some("(secret)"));
    settings.save(&file.path()).unwrap();
    assert_eq!(fs_err::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!settings.subset_digest(&["b."])["b.token"].contains("hunter2"));
}

#[test]
fn what_is_so_by_default_follows_what_it_derives_from() {
    let file = File::none();
    let mut settings = Settings::from_defaults(ours());
    settings.save(&file.path()).unwrap();
    assert!(file.text().contains(r#""kube_context_name": "kubernetes""#), "the file names every value");
    let mut again = file.open(ours());
    let changes = again.set("phase1.cluster_name", "prod").unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!(again.get("phase2.kube_context_name").unwrap(), "prod");
    again.set("phase2.kube_context_name", "mine").unwrap();
    again.save(&file.path()).unwrap();
    let mut again = file.open(ours());
    again.set("phase1.cluster_name", "test").unwrap();
    assert_eq!(again.get("phase2.kube_context_name").unwrap(), "mine", "an answer of its own stays");
}

#[test]
fn settings_are_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Settings>();
}

#[test]
fn asks_by_name_and_type() {
    let settings = Settings::from_defaults(small());
    assert_eq!(settings.get("a.count").unwrap(), "3");
    assert_eq!(settings.get_int("a.count").unwrap(), 3);
    assert_eq!(settings.get_int("b.mask").unwrap(), 31);
    assert_eq!(settings.get_int("a.name").unwrap_err().class(), Class::Bug);
    assert_eq!(settings.get("a.cuont").unwrap_err().class(), Class::Config);
    assert_eq!(
        settings.subset_digest(&["a.c", "a.deep."]).into_keys().collect::<Vec<_>>(),
        ["a.count", "a.deep.inner", "a.deep.off"]
    );
}

#[test]
fn settings_together_can_be_wrong() {
    let wrong = |assignments: &[(&str, &str)]| {
        Settings::from_defaults(ours()).set_all(assignments).unwrap_err().message().to_owned()
    };
    insta::assert_snapshot!(wrong(&[("phase2.pod_cidr", "10.96.0.0/12")]), @"phase2.service_cidr: 10.96.0.0/16 overlaps the pods' addresses 10.96.0.0/12 (phase2.pod_cidr); choose separate networks");
    insta::assert_snapshot!(wrong(&[("phase1.local.subnet", "10.244.7.0/24")]), @"phase2.pod_cidr: 10.244.0.0/16 overlaps the hosts' addresses 10.244.7.0/24 (phase1.local.subnet); choose separate networks");
    insta::assert_snapshot!(wrong(&[("phase1.num_nodes", "300")]), @"nothing was changed: 2 things are wrong");
    let routed = [("phase1.cloud_provider", "azure"), ("phase2.network.flannel_backend", "host-gw")];
    insta::assert_snapshot!(wrong(&routed), @"phase2.network.flannel_backend: with host-gw no pod on azure reaches one of another host; choose vxlan");
    insta::assert_snapshot!(wrong(&[("phase1.local.subnet", "10.117.0.0/30")]), @"phase1.local.subnet: 10.117.0.0/30 has room for 1 hosts, but 2 are needed (1 for the control plane, 1 workers)");
    insta::assert_snapshot!(wrong(&[("phase2.api_port", "10250")]), @"phase2.api_port: port 10250 is taken by kubelet on the same host");
    insta::assert_snapshot!(wrong(&[("phase1.control_plane.count", "4")]), @"phase1.control_plane.count: 4 control-plane hosts survive no more losses than 3; choose 3 or 5");
    insta::assert_snapshot!(wrong(&[("phase2.network.node_port_first", "32768")]), @"phase2.network.node_port_last: 32767 is smaller than 32768 (phase2.network.node_port_first)");
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "gce"), ("phase1.gce.zone", "us-east1-b")]), @"phase1.gce.zone: us-east1-b is no zone of us-central1 (phase1.gce.region); expected us-central1-a or the like");
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "aws"), ("phase1.aws.zones", "us-east-1a,us-east-1")]), @"phase1.aws.zones: us-east-1 is no zone of us-east-1 (phase1.aws.region); expected us-east-1a or the like");
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "aws"), ("phase1.aws.vpc_cidr", "10.96.0.0/16")]), @"phase2.service_cidr: 10.96.0.0/16 overlaps the hosts' addresses 10.96.0.0/16 (phase1.aws.vpc_cidr); choose separate networks");
    let groups = r#"[{"name": "web", "role": "worker", "size": 5, "min": 1, "max": 3}]"#;
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "aws"), ("phase1.node_groups", groups)]), @r#"phase1.node_groups: web: the size is 5, but must lie between min (1) and max (3)"#);
    let groups =
        r#"[{"name": "web", "role": "worker", "size": 200}, {"name": "gpu", "role": "worker", "size": 0, "max": 100}]"#;
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "aws"), ("phase1.node_groups", groups)]), @"phase2.pod_cidr: 10.244.0.0/16 has room for 256 nodes with a /24 each, but there may be 301");
    let spot = r#"[{"name": "web", "role": "worker", "size": 1, "spot": true}]"#;
    insta::assert_snapshot!(wrong(&[("phase1.node_groups", spot)]), @"phase1.node_groups: web: spot: hosts of this machine have no spot of their own");
    let image = r#"[{"name": "web", "role": "worker", "size": 1, "image": "jammy"}]"#;
    insta::assert_snapshot!(wrong(&[("phase1.node_groups", image)]), @"phase1.node_groups: web: image: `jammy` is none of bookworm, trixie or noble");
    let known = image.replace("jammy", "noble");
    Settings::from_defaults(ours()).set_all(&[("phase1.node_groups", &known)]).unwrap();
    let cloud = [("phase1.cloud_provider", "gce"), ("phase1.node_groups", image)];
    Settings::from_defaults(ours()).set_all(&cloud).unwrap();
    let door = wrong(&[("phase1.node_groups", r#"[{"name": "door", "role": "bastion", "size": 1}]"#)]);
    assert!(door.starts_with("phase1.node_groups: "), "a group of what is always refused: {door}");
    insta::assert_snapshot!(wrong(&[("phase2.network.node_cidr_bits", "26")]), @"phase2.max_pods: a node's /26 (phase2.network.node_cidr_bits) has addresses for 61 pods, not for 110");
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "aws"), ("phase1.control_plane.count", "3"), ("phase1.api.exposure", "static-address")]), @"phase1.api.exposure: a static address leads to one host, but phase1.control_plane.count is 3; choose load-balancer or dns");
    insta::assert_snapshot!(wrong(&[("phase2.apiserver.oidc_issuer_url", "http://sso.example.com")]), @"phase2.apiserver.oidc_issuer_url: the API server takes only issuers whose URL begins with https://");
    let hosts = r#"[{"name": "a", "address": "192.0.2.1", "role": "control-plane", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
        {"name": "b", "address": "192.0.2.1", "role": "worker", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIABBBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]"#;
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "baremetal"), ("phase1.baremetal.hosts", hosts)]), @"phase1.baremetal.hosts: a and b have the same address, 192.0.2.1");
    let hosts = r#"[{"name": "a", "address": "192.0.2.1", "role": "control-plane", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
        {"name": "b", "address": "192.0.2.2", "role": "worker", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIABBBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]"#;
    let narrow = ("phase2.pod_cidr", "10.244.0.0/24");
    insta::assert_snapshot!(wrong(&[("phase1.cloud_provider", "baremetal"), ("phase1.baremetal.hosts", hosts), narrow]), @"phase2.pod_cidr: 10.244.0.0/24 has room for 1 nodes with a /24 each, but there may be 2");
    for (setting, value) in [
        ("phase2.kubelet.eviction_hard", "memory.avail=1Gi"),
        ("phase2.kubelet.eviction_soft", "memory.available=1Gi"),
        ("phase2.kubelet.kube_reserved", "gpu=1"),
        ("phase2.kubelet.cpu_manager_policy", "static"),
        ("phase2.kubelet.image_gc_high_threshold", "80"),
        ("phase2.kubelet.node_labels", "node.kubernetes.io/pool=a"),
        ("phase2.kubelet.node_status_update_frequency", "20s"),
        ("phase2.controller_manager.controllers", "*"),
        ("phase2.apiserver.disable_admission_plugins", "NodeRestriction"),
        ("phase2.apiserver.enable_admission_plugins", "AlwaysPullImages"),
        ("phase2.apiserver.enable_admission_plugins", "ImagePolicyWebhook"),
        ("phase2.kubelet.eviction_hard", "memory.available=lots"),
        ("phase2.kubelet.image_maximum_gc_age", "1m"),
        ("phase2.kubelet.shutdown_grace_period", "500ms"),
        ("phase2.security.encryption_resources", "Secrets"),
        ("phase2.security.encryption_resources", "*.*,secrets"),
        ("phase2.security.encryption_resources", "secrets,secrets"),
        ("phase2.security.pod_security_exempt_namespaces", "storage"),
        ("phase2.etcd.heartbeat_interval_ms", "500"),
    ] {
        insta::assert_snapshot!(format!("{setting}={value}").replace(['*', '='], "-"), wrong(&[(setting, value)]));
    }
    let mut strange = Settings::from_defaults(ours());
    let why = strange.set_all(&[("phase2.host.hooks", r#"[{"name": "a", "command": "b", "groups": ["worker"]}]"#)]);
    insta::assert_snapshot!(why.unwrap_err().message(), @"phase2.host.hooks: a: no group here is called `worker`; did you mean `workers`?; groups: control-plane, workers");
    let mut bare = Settings::from_defaults(ours());
    bare.set_all(&[("phase1.cloud_provider", "baremetal"), ("phase2.pod_cidr", "10.117.0.0/16")]).unwrap();
}

proptest::proptest! {
    /// C05: quotes, pipes, backslashes, `$` and everything else survive.
    #[test]
    fn any_text_survives_a_round_trip(name in r#"["'|\\$`\n\t a-zé😀{}#;]{0,12}"#, count in 1_i64..=9, on in proptest::bool::ANY) {
        let file = File::none();
        let mut settings = Settings::from_defaults(small());
        let count = count.to_string();
        settings.set_all(&[("a.name", &name), ("a.count", &count), ("a.on", if on { "y" } else { "n" })]).unwrap();
        settings.save(&file.path()).unwrap();
        let again = file.open(small());
        proptest::prop_assert_eq!(again.get("a.name").unwrap(), name);
        proptest::prop_assert_eq!(again.get("a.count").unwrap(), count);
        proptest::prop_assert_eq!(again.get_bool("a.on").unwrap(), on);
        proptest::prop_assert_eq!(again.text(), settings.text());
    }
}
