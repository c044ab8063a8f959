//! The agents of hosts: what they repair, what is told of it, and how a test keeps them from their
//! work while it breaks something on purpose.

use std::time::{Duration, Instant};

use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, TIMEOUT, say};

/// Does this while the agents of these hosts sleep. Each is caught between two looks: it must not
/// keep the lock of its host.
pub(crate) fn without_agents<T>(site: &Site, hosts: &[&str], act: impl FnOnce() -> T) -> T {
    for host in hosts {
        site.in_host(host, "flock /run/turnup-node.lock systemctl kill --signal=STOP turnup-agent.service");
    }
    let result = act();
    for host in hosts {
        site.in_host(host, "systemctl kill --signal=CONT turnup-agent.service");
    }
    result
}

/// Agents that were killed are there again, which systemd sees to after ten seconds, and found
/// their hosts as their node configs say.
pub(crate) fn wait_for_agents(site: &Site, hosts: &[&str]) {
    let well = "grep --quiet as-declared /run/turnup/agent.json && systemctl is-active --quiet turnup-agent";
    for host in hosts {
        site.in_host(host, &format!("timeout 300 sh -c 'until {well}; do sleep 1; done'"));
    }
}

/// What was harmed needs no run of turnup: pods and API servers of a busy machine are ready again
/// some time after all else is.
pub(crate) fn wait_for_nothing_to_do(site: &Site) {
    let since = Instant::now();
    loop {
        let plan = site.ok(&["plan"]).out;
        if plan.trim() == "nothing to do" {
            return;
        }
        assert!(since.elapsed() < TIMEOUT, "{plan}");
        std::thread::sleep(Duration::from_secs(2));
    }
}

/// What hosts lose is there again at the next look, with no run of turnup; then nothing differs,
/// and `status` names what was repaired.
pub(crate) fn hosts_are_kept_as_their_node_config_says(site: &Site, hosts: &[&str]) {
    let process = |host: &str| on_host(site, host, "systemctl show --property=MainPID --value turnup-agent");
    let before: Vec<String> = hosts.iter().map(|host| process(host)).collect();
    for host in hosts {
        site.in_host(host, "systemctl is-enabled turnup-agent.service");
        site.in_host(host, "rm /etc/crictl.yaml && echo '# edited' >>/var/lib/kubelet/config.yaml");
        site.in_host(host, "systemctl stop kubelet.service");
    }
    let told = "/opt/turnup/bin/turnup node agent status | grep 'file /etc/crictl.yaml is missing'";
    for host in hosts {
        site.in_host(host, &format!("timeout 300 sh -c \"until {told}; do sleep 1; done\""));
        site.in_host(host, "test -s /etc/crictl.yaml && ! grep '# edited' /var/lib/kubelet/config.yaml");
        site.in_host(host, "systemctl is-active kubelet.service");
        site.in_host(host, "journalctl --unit=turnup-agent.service --output=cat | grep /etc/crictl.yaml");
        let metrics = metrics_of(site, host);
        for wanted in ["turnup_agent_state{state=\"as-declared\"} 1\n", "turnup_agent_problems 0\n"] {
            assert!(metrics.contains(wanted), "{host}: {metrics}");
        }
        assert!(!metrics.contains("turnup_agent_repairs_total 0\n"), "{host}: {metrics}");
        let costs = metrics.lines().filter(|line| line.starts_with("process_"));
        say(&format!("agent of {host}: {}", costs.collect::<Vec<_>>().join(", ")));
    }
    let after: Vec<String> = hosts.iter().map(|host| process(host)).collect();
    assert_eq!(before, after, "an agent never restarts itself");
    let status = site.ok(&["status"]).out;
    for host in hosts {
        assert!(status.contains(&format!("{host}: repaired in the last day")), "{host}: {status}");
    }
}

/// What the agent tells Prometheus on its host.
fn metrics_of(site: &Site, host: &str) -> String {
    let ask = r#"exec 3<>/dev/tcp/127.0.0.1/3991; printf "GET /metrics HTTP/1.0\r\n\r\n" >&3; cat <&3"#;
    on_host(site, host, &format!("bash -c '{ask}'"))
}

/// An agent that does not run is named and started.
pub(crate) fn a_stopped_agent_is_started(site: &Site, host: &str) {
    site.in_host(host, "systemctl stop turnup-agent.service && test ! -e /run/turnup");
    let status = site.ok(&["status"]).out;
    assert!(status.contains(&format!("{host}: turnup-agent.service does not run")), "{status}");
    let plan = site.ok(&["plan"]).out;
    assert!(plan.contains("service turnup-agent.service"), "{plan}");
    let ran = site.up().ran();
    assert_eq!(ran.len(), 1, "{ran:?}");
    site.in_host(host, "systemctl is-active turnup-agent.service");
}
