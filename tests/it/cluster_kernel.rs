//! Settings of hosts that local hosts share with this machine, on bare metal: kernel modules, time
//! servers, and swap for pods. The hosts are containers, so they play a kernel with modules: which
//! of them are built in stands in a list of their own, and their clock's program really runs.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::Value;

use crate::cluster_bare::{configure, prepare};
use crate::cluster_reset::on_host;
use crate::cluster_support::Site;

const HOSTS: [(&str, &str); 2] = [("it-control-plane-0", "m1"), ("it-worker-0", "w1")];

/// A kernel whose modules are all built in, as far as the tools of modules can tell. The clock's
/// program, which local hosts mask, runs without the right to set this machine's clock.
const PREPARE: &str = r"
set -e
modules=/lib/modules/$(uname -r)
mkdir -p $modules /etc/systemd/system/systemd-timesyncd.service.d
for name in overlay nf_tables vxlan dummy wireguard; do echo kernel/$name.ko; done >$modules/modules.builtin
touch $modules/modules.order $modules/modules.builtin.modinfo
depmod
printf '[Unit]\nConditionVirtualization=\nConditionCapability=\n[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\n' >/etc/systemd/system/systemd-timesyncd.service.d/container.conf
systemctl unmask systemd-timesyncd 2>&1
systemctl daemon-reload
systemctl start systemd-timesyncd
";

/// What systemd-modules-load says of each module of its directories, when it is run as at boot.
const LOAD: &str = "SYSTEMD_LOG_LEVEL=debug /usr/lib/systemd/systemd-modules-load 2>&1; echo ended with $?";

fn modules_are_loaded_at_boot(site: &Site) {
    for (host, _) in HOSTS {
        assert_eq!(on_host(site, host, "cat /etc/modules-load.d/90-turnup.conf"), "dummy\nwireguard\n", "{host}");
        let said = on_host(site, host, LOAD);
        for name in ["dummy", "wireguard"] {
            assert!(said.contains(&format!("Module '{name}' is built in")), "{host}: {said}");
        }
        assert!(said.ends_with("ended with 0\n"), "{host}: {said}");
    }
}

/// systemd's own reading of its configuration, and what the program that runs says over D-Bus.
fn the_clock_asks_these_servers(site: &Site) {
    for (host, _) in HOSTS {
        let config = on_host(site, host, "systemd-analyze cat-config systemd/timesyncd.conf");
        assert!(config.contains("# /etc/systemd/timesyncd.conf.d/90-turnup.conf"), "{host}: {config}");
        assert_eq!(on_host(site, host, "systemctl is-active systemd-timesyncd"), "active\n", "{host}");
        let shown = on_host(site, host, "timedatectl show-timesync --property=SystemNTPServers");
        assert_eq!(shown, "SystemNTPServers=192.0.2.123 ntp.example.com\n", "{host}");
    }
}

/// Kubelet lets pods use swap with cgroup v2 alone, and ends elsewhere: then it is refused before.
fn pods_use_swap_where_they_can(site: &Site) {
    let can = on_host(site, HOSTS[1].0, "stat --file-system --format=%T /sys/fs/cgroup").trim() == "cgroup2fs";
    let behavior = |node: &str| {
        let path = format!("/api/v1/nodes/{node}/proxy/configz");
        let output = site.lent_kubectl("shelf").args(["get", "--raw", &path]).output().unwrap();
        let configz: Value = serde_json::from_slice(&output.stdout).unwrap();
        configz["kubeletconfig"]["memorySwap"]["swapBehavior"].clone()
    };
    let limited = "phase2.kubelet.swap_behavior=LimitedSwap";
    if can {
        site.lent(0, &["up", "--set", limited]);
    } else {
        for command in ["plan", "up"] {
            let refused = site.lent(3, &[command, "--set", limited]);
            assert!(refused.err.contains("LimitedSwap needs cgroup v2, and m1 has version 1"), "{refused}");
        }
    }
    for (_, node) in HOSTS {
        assert_eq!(behavior(node), if can { "LimitedSwap" } else { "NoSwap" }, "{node}");
    }
}

#[test]
#[ignore = "some minutes, and a root of its own: make test-settings"]
fn modules_time_servers_and_swap_are_in_force_on_bare_metal() {
    let Some((site, list)) = prepare("kernel", "10.123.24.0/24", "systemd-timesyncd") else { return };
    for (host, _) in HOSTS {
        on_host(&site, host, PREPARE);
    }
    configure(&site, &list, "person");
    let modules = "phase2.host.kernel_modules=dummy,wireguard";
    let servers = "phase2.host.ntp_servers=192.0.2.123,ntp.example.com";
    site.lent(0, &["config", "set", modules, servers]);
    site.lent(0, &["up"]);
    modules_are_loaded_at_boot(&site);
    the_clock_asks_these_servers(&site);
    pods_use_swap_where_they_can(&site);
    assert_eq!(site.lent(0, &["plan"]).out.trim(), "nothing to do");

    let gone = ["phase2.host.kernel_modules", "phase2.host.ntp_servers"];
    site.lent(0, &[&["config", "unset"], &gone[..]].concat());
    site.lent(0, &["up"]);
    for (host, _) in HOSTS {
        let left =
            "ls /etc/modules-load.d/90-turnup.conf /etc/systemd/timesyncd.conf.d/90-turnup.conf 2>/dev/null | wc -l";
        assert_eq!(on_host(&site, host, left).trim(), "0", "{host}");
        let shown = on_host(&site, host, "timedatectl show-timesync --property=SystemNTPServers");
        assert!(!shown.contains("ntp.example.com"), "{host}: {shown}");
    }
    site.lent(0, &["down", "--yes"]);
    site.ok(&["down", "--yes"]);
}
