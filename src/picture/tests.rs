//! Pictures of the presets and of what presets do not have: the words in the terminal, and SVG that
//! a parser takes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::config::TreeSource;

fn settings(changes: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    settings.set_all(changes).unwrap();
    settings
}

fn picture(changes: &[(&str, &str)]) -> Picture {
    Picture::of(&settings(changes), None).unwrap()
}

const GROUPS: &str = r#"[{"name": "web", "role": "worker", "size": 4, "min": 2, "max": 9}, {"name": "spot", "role": "worker", "size": 2, "machine_type": "MACHINE", "spot": true, "disk_gb": 100}, {"name": "odd", "role": "worker", "size": 1, "machine_type": "UNKNOWN"}]"#;

/// Three control-plane hosts, groups, a bastion, and one list of networks that is not the world.
fn cloud(target: &str, machine: &str, unknown: &str) -> Picture {
    let groups = GROUPS.replace("MACHINE", machine).replace("UNKNOWN", unknown);
    picture(&[
        ("phase1.cloud_provider", target),
        ("phase1.cluster_name", "shop"),
        ("phase1.control_plane.count", "3"),
        ("phase1.node_groups", &groups),
        ("phase1.ssh.bastion", "create"),
        ("phase1.ssh.allowed_cidrs", "203.0.113.0/24"),
    ])
}

fn drawn(picture: &Picture) -> String {
    picture.lines(80, Glyphs::UNICODE).join("\n")
}

#[test]
fn each_cloud_is_drawn() {
    insta::assert_snapshot!("gce", drawn(&cloud("gce", "n2-standard-4", "z3-highmem-8")));
    insta::assert_snapshot!("aws", drawn(&cloud("aws", "m7i.xlarge", "u-6tb1.metal")));
    insta::assert_snapshot!("azure", drawn(&cloud("azure", "Standard_D4s_v5", "Standard_M8ms")));
}

#[test]
fn targets_without_a_cloud_are_drawn() {
    insta::assert_snapshot!(
        "local",
        drawn(&picture(&[("phase1.control_plane.count", "3"), ("phase1.num_nodes", "2")]))
    );
    let hosts = r#"[{"name": "m1", "address": "192.0.2.11", "role": "control-plane", "zone": "rack-a"}, {"name": "w1", "address": "192.0.2.21", "role": "worker", "zone": "rack-b"}]"#;
    let listed = [
        ("phase1.cloud_provider", "baremetal"),
        ("phase1.baremetal.hosts", hosts),
        ("phase1.ssh.known_hosts_file", "/dev/null"),
    ];
    insta::assert_snapshot!("baremetal", drawn(&picture(&listed)));
    let custom = [
        ("phase1.cloud_provider", "custom"),
        ("phase1.custom.module", "modules/openstack"),
        ("phase1.api.allowed_cidrs", "10.0.0.0/8,::/0"),
    ];
    insta::assert_snapshot!("custom", drawn(&picture(&custom)));
}

#[test]
fn no_line_is_wider_than_the_terminal_and_ascii_is_ascii() {
    let picture = cloud("gce", "n2-standard-4", "z3-highmem-8");
    for width in [20, 40, 61, 80, 100, 200] {
        for glyphs in [Glyphs::ASCII, Glyphs::UNICODE] {
            let lines = picture.lines(width, glyphs);
            let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.max(40), "{width}: {widest}");
            assert!(glyphs == Glyphs::UNICODE || lines.iter().all(|line| line.is_ascii()));
        }
    }
}

#[test]
fn what_is_open_to_the_world_is_marked() {
    let open = picture(&[("phase1.cloud_provider", "gce")]);
    assert_eq!(drawn(&open).matches("0.0.0.0/0  OPEN TO THE WORLD").count(), 2, "API server and SSH");
    let narrow =
        [("phase1.api.allowed_cidrs", "203.0.113.0/24"), ("phase1.ssh.allowed_cidrs", "0.0.0.0/1,128.0.0.0/1")];
    let halves = picture(&[&[("phase1.cloud_provider", "gce")], &narrow[..]].concat());
    assert_eq!(drawn(&halves).matches("OPEN TO THE WORLD").count(), 2, "both halves: {}", drawn(&halves));
    // Hosts without public addresses are reached from inside alone, whatever the lists say.
    let closed =
        [("phase1.gce.public_addresses", "n"), ("phase1.api.external", "n"), ("phase1.api.exposure", "load-balancer")];
    let closed = drawn(&picture(&[&[("phase1.cloud_provider", "gce")], &closed[..]].concat()));
    assert!(!closed.contains("WORLD") && closed.matches("closed: reached from inside").count() == 2, "{closed}");
}

#[test]
fn the_estimate_adds_up_what_has_a_price_and_names_what_has_none() {
    let cost = cloud("aws", "m7i.xlarge", "u-6tb1.metal").cost.unwrap();
    let sum: f64 = cost.lines.iter().filter_map(|line| line.month).sum();
    assert!((sum - cost.total).abs() < 0.001);
    let unknown: Vec<&str> =
        cost.lines.iter().filter(|line| line.month.is_none()).map(|line| line.what.as_str()).collect();
    assert_eq!(unknown, ["m7i.xlarge, spot", "u-6tb1.metal"]);
    assert!(cost.sum().ends_with(", and what has no price known"), "{}", cost.sum());
    let elsewhere = picture(&[("phase1.cloud_provider", "aws"), ("phase1.aws.region", "eu-west-1")]).cost.unwrap();
    assert!(elsewhere.terms().iter().any(|term| term.contains("another region")));
    assert!(picture(&[]).cost.is_none(), "hosts of this machine cost nothing");
}

#[test]
fn svg_is_well_formed_and_has_the_same_words() {
    let targets = [
        cloud("gce", "n2-standard-4", "z3-highmem-8"),
        cloud("azure", "Standard_D4s_v5", "Standard_M8ms"),
        picture(&[]),
    ];
    for picture in targets {
        let text = picture.svg();
        let document = roxmltree::Document::parse(&text).unwrap();
        assert_eq!(document.root_element().tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
        let words: String = document.descendants().filter_map(|node| node.text()).collect();
        for zone in &picture.zones {
            assert!(words.contains(&zone.title()), "{}", zone.name);
            assert!(zone.hosts.iter().all(|hosts| words.contains(&hosts.name)), "{}", zone.name);
        }
        let number = |node: &roxmltree::Node<'_, '_>, name: &str| node.attribute(name).unwrap().parse::<u32>().unwrap();
        let (width, height) = (number(&document.root_element(), "width"), number(&document.root_element(), "height"));
        for rect in document.descendants().filter(|node| node.has_tag_name("rect")) {
            assert!(
                number(&rect, "x") + number(&rect, "width") <= width
                    && number(&rect, "y") + number(&rect, "height") <= height
            );
        }
    }
    insta::assert_snapshot!("svg", picture(&[("phase1.num_nodes", "2")]).svg());
}

#[test]
fn the_json_form_names_hosts_networks_and_doors() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&picture(&[("phase1.cloud_provider", "gce")])).unwrap());
}
