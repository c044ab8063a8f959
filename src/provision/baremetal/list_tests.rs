//! The list becomes the inventory.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::Duration;

use super::*;

fn access() -> SshSettings {
    SshSettings {
        user: "root".into(),
        port: 22,
        key: None,
        known_hosts: None,
        connect_timeout: Duration::from_secs(10),
        use_agent: false,
        authorized_key_files: Vec::new(),
        bastion: None,
    }
}

fn hosts(text: &str) -> Vec<ListedHost> {
    serde_json::from_str(text).unwrap()
}

fn inventory(hosts: &[ListedHost], access: &SshSettings, known: &[(&str, u16, &str)]) -> Result<Inventory> {
    let find_key = |address: &str, port: u16| {
        let found = known.iter().find(|one| one.0 == address && one.1 == port);
        Ok(found.map(|one| one.2.to_owned()))
    };
    List { cluster: "shelf", api_port: 6443, api_host: "", hosts, access, find_key: &find_key }.inventory()
}

const RICH: &str = r#"[
    {"name": "w1", "address": "192.0.2.21", "role": "worker", "ssh_user": "admin", "ssh_port": 2222, "ssh_jump": "m1",
     "zone": "rack-2", "labels": {"example.com/pool": "fast"}, "taints": ["gpu=yes:NoSchedule", "slow:NoExecute"]},
    {"name": "w2", "address": "192.0.2.22", "role": "worker", "ssh_jump": "passer@door:2200", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAW2W2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "m1", "address": "192.0.2.11", "role": "control-plane", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAM1M1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}
]"#;
const KNOWN: [(&str, u16, &str); 2] = [
    ("192.0.2.21", 2222, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAW1W1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    ("door", 2200, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIADOORAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
];

#[test]
fn every_field_reaches_the_inventory() {
    let inventory = inventory(&hosts(RICH), &access(), &KNOWN).unwrap();
    insta::assert_snapshot!(inventory.render().unwrap());
    let known_hosts: String = inventory.hosts.iter().map(Host::known_hosts).collect();
    insta::assert_snapshot!("known_hosts", known_hosts);
}

#[test]
fn only_a_new_key_is_another_machine() {
    let instance =
        |text: &str| inventory(&hosts(text), &access(), &KNOWN).unwrap().host("m1").unwrap().instance.clone();
    assert_eq!(instance(RICH), instance(&RICH.replace("rack-2", "rack-3").replace("192.0.2.11", "192.0.2.12")));
    assert_ne!(instance(RICH), instance(&RICH.replace("M1M1", "M1M2")));
}

#[test]
fn all_hosts_without_a_key_are_named_with_the_way_to_one() {
    let access = SshSettings { known_hosts: Some("/srv/known".into()), ..access() };
    let error = inventory(
        &hosts(&RICH.replace(
            r#", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAW2W2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA""#,
            "",
        )),
        &access,
        &KNOWN[1..],
    )
    .unwrap_err();
    insta::assert_snapshot!(error.render());
    let door = inventory(&hosts(RICH), &self::access(), &KNOWN[..1]).unwrap_err();
    insta::assert_snapshot!("a_jump_host_without_a_key", door.render());
}

#[test]
fn the_bastion_is_the_way_to_all_that_do_not_say_otherwise() {
    let bastion = Bastion { host: "door".into(), user: "turnup".into(), port: 22 };
    let access = SshSettings { bastion: Some(bastion), ..access() };
    let known = [("door", 22, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIADOORAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")];
    let list = r#"[{"name": "m1", "address": "192.0.2.11", "role": "control-plane", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAM1M1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "ssh_jump": "none"},
        {"name": "w1", "address": "192.0.2.21", "role": "worker", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAW1W1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
        {"name": "w2", "address": "192.0.2.22", "role": "worker", "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAW2W2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "ssh_jump": "m1"}]"#;
    let inventory = inventory(&hosts(list), &access, &known).unwrap();
    let jump = |name: &str| {
        inventory
            .host(name)
            .unwrap()
            .ssh
            .jump
            .as_ref()
            .map(|jump| format!("{}@{} {}", jump.user, jump.host, jump.host_key))
    };
    assert_eq!(jump("m1"), None);
    assert_eq!(
        jump("w1").unwrap(),
        "turnup@door ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIADOORAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    );
    assert_eq!(
        jump("w2").unwrap(),
        "root@192.0.2.11 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAM1M1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    );
    let behind = hosts(&list.replace(r#", "ssh_jump": "none""#, ""));
    let error = self::inventory(&behind, &access, &known).unwrap_err();
    assert!(error.message().contains("w2 is to be reached through m1, which is itself behind another host"), "{error}");
}

#[test]
fn what_could_be_an_option_is_no_jump_host() {
    for wrong in ["-oProxyCommand=x", "a@-b", "a@b@c", "host:", "host:0", "host:99999", "@host", "", "a/b"] {
        assert_eq!(parse_jump(wrong, "root"), None, "{wrong}");
    }
    let jump = parse_jump("door.example.com", "root").unwrap();
    assert_eq!((jump.user.as_str(), jump.host.as_str(), jump.port), ("root", "door.example.com", 22));
}
