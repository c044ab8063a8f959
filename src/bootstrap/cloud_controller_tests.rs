//! What nodes are told where a cloud controller manager runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::tests::{facts, with_configs};
use crate::cluster::CLOUD_CONTROLLER;
use crate::config::{Settings, TreeSource};
use crate::node::NodeConfig;

fn kubelet(node_config: &NodeConfig) -> String {
    node_config.units.iter().find(|unit| unit.name == "kubelet.service").unwrap().text.clone()
}

#[test]
fn kubelet_says_which_machine_it_is_on_and_waits_to_be_let_in() {
    for cloud in ["aws", "gce"] {
        says_which_machine_it_is_on(cloud);
    }
}

fn says_which_machine_it_is_on(cloud: &str) {
    let target = ("phase1.cloud_provider", cloud);
    let plain = with_configs(&[target], |configs| {
        let host = &configs.inventory.hosts[0];
        kubelet(&configs.node_config(host, &facts()).unwrap().0)
    });
    assert!(!plain.contains("cloud") && !plain.contains("provider-id"), "{plain}");
    with_configs(&[target, ("phase3.cloud_controller", "y")], |configs| {
        for host in &configs.inventory.hosts {
            let text = kubelet(&configs.node_config(host, &facts()).unwrap().0);
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let first = lines.iter().position(|line| line.starts_with("ExecStart=")).unwrap();
            assert_eq!(
                lines[first - 2..first + 2],
                [
                    &*format!("ExecStartPre=/opt/turnup/bin/turnup node provider-id --cloud={cloud}"),
                    "EnvironmentFile=-/run/turnup/provider-id",
                    "ExecStart=/opt/turnup/bin/kubelet \\",
                    "--provider-id=${PROVIDER_ID} \\",
                ]
            );
            assert!(lines.contains(&"--cloud-provider=external \\"), "{text}");
        }
    });
}

#[test]
fn other_targets_have_no_such_controller() {
    for target in ["local", "baremetal", "azure", "custom"] {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set("phase1.cloud_provider", target).unwrap();
        let message = settings.set(CLOUD_CONTROLLER, "y").unwrap_err().render();
        assert!(
            message.contains("needs phase1.cloud_provider = \"aws\" || phase1.cloud_provider = \"gce\""),
            "{message}"
        );
        assert!(!settings.get_bool(CLOUD_CONTROLLER).unwrap(), "{target}");
    }
}
