//! What an addon would not start with, or would do harm with, that no single value tells. The rules
//! are those of `CoreDNS`, kube-proxy, flannel and the kernel.
//!
//! Pure: it judges values.

use std::time::Duration;

use super::format::{parse_duration, parse_quantity};
use super::node_groups::GROUPS;
use super::ports;
use super::problem::Problem;
use super::relations::words;
use super::schema::TARGET;
use super::values::Values;

/// Everything that is wrong with the settings of addons.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = check_stub_domains(facts);
    problems.extend(check_servers(facts));
    problems.extend(check_memory(facts));
    problems.extend(check_conntrack(facts));
    problems.extend(check_sync(facts));
    problems.extend(check_mtu(facts));
    problems.extend(check_interface(facts));
    problems.extend(check_patience(facts));
    problems.extend(check_metrics(facts));
    problems.extend(check_exporter(facts));
    problems.extend(check_dns_over_https(facts));
    problems.extend(check_traefik(facts));
    problems.extend(check_autoscaler(facts));
    problems
}

const STUBS: &str = "phase3.dns_stub_domains";

/// `CoreDNS` answers by the longest domain that fits: one that holds the cluster's, or lies in it,
/// takes names of Services away.
fn check_stub_domains(facts: &Values<'_, '_>) -> Vec<Problem> {
    let (Some(stubs), Some(cluster)) = (facts.text(STUBS), facts.text("phase2.cluster_domain")) else {
        return Vec::new();
    };
    let within = |one: &str, other: &str| {
        let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
        one == other || one.ends_with(&format!(".{other}"))
    };
    let domains = words(stubs).into_iter().map(|pair| pair.split('=').next().unwrap_or_default().to_owned());
    let meet = domains.filter(|domain| within(domain, cluster) || within(cluster, domain));
    let why = |domain: String| {
        Problem::of(STUBS, format!("{domain} meets the cluster's own domain {cluster} (phase2.cluster_domain)"))
    };
    meet.map(why).collect()
}

/// The address of the cluster's DNS: the tenth of the Services' network.
fn dns_address(facts: &Values<'_, '_>) -> Option<String> {
    Some(facts.network("phase2.service_cidr")?.address(10)?.to_string())
}

/// A question that `CoreDNS` passes on to itself never ends; its plugin `loop` then ends `CoreDNS`.
fn check_servers(facts: &Values<'_, '_>) -> Vec<Problem> {
    let Some(own) = dns_address(facts) else { return Vec::new() };
    let names = ["phase3.dns_upstreams", STUBS];
    let asks_itself = |name: &&str| {
        let servers = words(facts.text(name).unwrap_or_default());
        servers.iter().any(|server| server.rsplit('=').next() == Some(own.as_str()))
    };
    let why = |name| Problem::of(name, format!("{own} is the cluster's own DNS, which would ask itself"));
    names.into_iter().filter(asks_itself).map(why).collect()
}

/// Limits of memory, and what the manifests request: the API server refuses a limit below it.
const LIMITS: [(&str, &str, &str); 10] = [
    ("phase3.dns_memory_limit", "70Mi", "CoreDNS"),
    ("phase3.cloud_controller_memory_limit", "64Mi", "the cloud controller manager"),
    ("phase3.cloud_storage_memory_limit", "64Mi", "the CSI driver"),
    ("phase3.kube_state_metrics_memory_limit", "64Mi", "kube-state-metrics"),
    ("phase3.network_policies_memory_limit", "40Mi", "kube-network-policies"),
    ("phase3.snapshots_memory_limit", "32Mi", "snapshot-controller"),
    ("phase3.cert_manager_memory_limit", "64Mi", "cert-manager"),
    ("phase3.traefik_memory_limit", "64Mi", "Traefik"),
    ("phase3.cluster_autoscaler_memory_limit", "128Mi", "the cluster autoscaler"),
    ("phase3.headlamp_memory_limit", "64Mi", "Headlamp"),
];

fn check_memory(facts: &Values<'_, '_>) -> Vec<Problem> {
    let is_less = |limit: &str, request: &str| Some(parse_quantity(limit)? < parse_quantity(request)?);
    let judge = |(name, request, who): (&str, &str, &str)| {
        let limit = facts.text(name).filter(|limit| is_less(limit, request) == Some(true))?;
        Some(Problem::of(name, format!("{limit} is less than the {request} that {who} requests")))
    };
    LIMITS.into_iter().filter_map(judge).collect()
}

/// cert-manager does not start with a URL of another scheme.
fn check_dns_over_https(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase3.cert_manager_dns01_nameservers";
    let plain = words(facts.text(name)?).into_iter().find(|server| server.starts_with("http://"))?;
    Some(Problem::of(name, format!("{plain}: DNS over HTTPS needs an https URL")))
}

/// Traefik serves nothing without something to serve, and one node port leads to one port.
fn check_traefik(facts: &Values<'_, '_>) -> Option<Problem> {
    let (gateways, ingresses) = ("phase3.traefik_gateways", "phase3.traefik_ingresses");
    if facts.text(gateways) == Some("n") && facts.text(ingresses) == Some("n") {
        return Some(Problem::of(ingresses, format!("with {gateways}=n, too, Traefik has nothing to serve")));
    }
    let (http, https) = ("phase3.traefik_http_node_port", "phase3.traefik_https_node_port");
    let port = facts.number(https).filter(|port| facts.number(http) == Some(*port))?;
    Some(Problem::of(https, format!("{port} is {http} already")))
}

/// The autoscaler sizes groups with a bound alone, and each of its looks takes seconds.
fn check_autoscaler(facts: &Values<'_, '_>) -> Option<Problem> {
    const LEAST: Duration = Duration::from_mins(1);
    let name = "phase3.cluster_autoscaler";
    facts.text(name).filter(|on| *on == "y")?;
    if !facts.records(GROUPS).iter().any(|group| group["max"].is_number()) {
        return Some(Problem::of(name, format!("no node group has a max, so there is none to size ({GROUPS})")));
    }
    let name = "phase3.cluster_autoscaler_unneeded_time";
    let time = facts.text(name)?;
    let short = parse_duration(time)? < LEAST;
    short.then(|| Problem::of(name, format!("{time} is less than 1m: hosts would go while pods still arrive")))
}

/// node-exporter listens on every host.
fn check_exporter(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = ports::EXPORTER;
    let port = facts.number(name)?;
    let owner = ports::find_fixed(facts, &(port..=port)).map(|(_, owner)| owner);
    let sshd = || facts.number("phase1.ssh.port").filter(|ssh| *ssh == port).map(|_| "sshd");
    let owner = owner.or_else(sshd)?;
    Some(Problem::of(name, format!("port {port} is taken by {owner} on the same host")))
}

/// The kernel's table belongs to the machine around local hosts, which may not change it.
fn check_conntrack(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase3.kube_proxy_conntrack_per_core";
    let entries = facts.number(name).filter(|number| *number > 0)?;
    facts.text(TARGET).filter(|target| *target == "local")?;
    Some(Problem::of(name, format!("{entries}: local hosts cannot change the table of this machine; choose 0")))
}

/// kube-proxy does not start with a full sync more often than its least time between two (1s).
fn check_sync(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase3.kube_proxy_sync_period";
    let period = facts.text(name)?;
    let short = parse_duration(period)? < Duration::from_secs(1);
    short.then(|| Problem::of(name, format!("{period} is less than 1s")))
}

/// The least that IPv4 must carry (RFC 791).
const LEAST_MTU: i64 = 576;

fn check_mtu(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.network.mtu";
    let mtu = facts.number(name).filter(|mtu| (1..LEAST_MTU).contains(mtu))?;
    Some(Problem::of(
        name,
        format!("{mtu} is less than the {LEAST_MTU} bytes that every network must carry; 0 means none"),
    ))
}

/// The kernel's names of interfaces (IFNAMSIZ).
fn check_interface(facts: &Values<'_, '_>) -> Option<Problem> {
    const MOST: usize = 15;
    let name = "phase2.network.interface";
    let interface = facts.text(name)?;
    let plain = interface.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    (!plain || interface.len() > MOST).then(|| {
        Problem::of(name, format!("`{interface}` is no name of an interface: letters, digits, . _ -, at most {MOST}"))
    })
}

/// metrics-server has a port of its host, so one pod at most is on each, and asks kubelets no more
/// often.
fn check_metrics(facts: &Values<'_, '_>) -> Option<Problem> {
    const LEAST: Duration = Duration::from_secs(10);
    if facts.text("phase3.metrics_server") != Some("y") {
        return None;
    }
    let (replicas, resolution) = ("phase3.metrics_server_replicas", "phase3.metrics_server_resolution");
    let wanted = facts.number(replicas)?;
    let hosts = facts.number("phase1.control_plane.count").filter(|_| facts.text(TARGET) != Some("baremetal"));
    if let Some(hosts) = hosts.filter(|hosts| wanted > *hosts) {
        let why = format!("{wanted} pods need as many control-plane hosts, and there are {hosts}");
        return Some(Problem::of(replicas, why));
    }
    let period = facts.text(resolution)?;
    let short = parse_duration(period)? < LEAST;
    short.then(|| Problem::of(resolution, format!("{period} is less than 10s, the least that metrics-server takes")))
}

/// Probe pods end by themselves after a quarter of an hour.
fn check_patience(facts: &Values<'_, '_>) -> Option<Problem> {
    const BOUNDS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(10));
    let name = "phase3.validate_timeout";
    let timeout = facts.text(name)?;
    let given = parse_duration(timeout)?;
    (given < BOUNDS.0 || given > BOUNDS.1).then(|| Problem::of(name, format!("{timeout} is not from 10s to 10m")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use crate::config::{Settings, TreeSource};

    #[test]
    fn what_an_addon_would_not_start_with_is_refused() {
        let said = |name: &str, value: &str| {
            let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
            settings.set_all(&[(name, value)]).err().map_or_else(String::new, |error| error.message().to_owned())
        };
        for (name, value, why) in [
            (
                "phase3.dns_stub_domains",
                "local=10.0.0.53",
                "local meets the cluster's own domain cluster.local (phase2.cluster_domain)",
            ),
            (
                "phase3.dns_stub_domains",
                "svc.cluster.local=10.0.0.53",
                "svc.cluster.local meets the cluster's own domain cluster.local (phase2.cluster_domain)",
            ),
            (
                "phase3.dns_stub_domains",
                "corp.example=10.96.0.10",
                "10.96.0.10 is the cluster's own DNS, which would ask itself",
            ),
            (
                "phase3.dns_upstreams",
                "192.0.2.1,10.96.0.10",
                "10.96.0.10 is the cluster's own DNS, which would ask itself",
            ),
            ("phase3.dns_memory_limit", "64Mi", "64Mi is less than the 70Mi that CoreDNS requests"),
            (
                "phase3.kube_proxy_conntrack_per_core",
                "1",
                "1: local hosts cannot change the table of this machine; choose 0",
            ),
            ("phase3.validate_timeout", "20m", "20m is not from 10s to 10m"),
            ("phase3.kube_proxy_sync_period", "500ms", "500ms is less than 1s"),
            ("phase2.network.mtu", "500", "500 is less than the 576 bytes that every network must carry; 0 means none"),
            (
                "phase2.network.interface",
                "eth/0",
                "`eth/0` is no name of an interface: letters, digits, . _ -, at most 15",
            ),
        ] {
            assert_eq!(said(name, value), format!("{name}: {why}"));
        }
        for (name, value) in [
            ("phase3.dns_stub_domains", "corp.example=10.96.0.53,xcluster.local=10.0.0.53"),
            ("phase3.dns_memory_limit", "70Mi"),
            ("phase3.kube_proxy_sync_period", "1s"),
            ("phase2.network.mtu", "1400"),
            ("phase2.network.interface", "enp3s0.100"),
        ] {
            assert_eq!(said(name, value), "", "{name}={value}");
        }
    }

    #[test]
    fn metrics_server_has_a_port_of_its_host() {
        let source = TreeSource::embedded();
        let refused = |more: (&str, &str)| {
            let mut settings = Settings::defaults(&source).unwrap();
            let pairs = [("phase3.metrics_server", "y"), more];
            settings.set_all(&pairs).map_or_else(|error| error.render(), |_| String::new())
        };
        for (name, value, why) in [
            ("phase2.api_port", "4443", "port 4443 is taken by metrics-server on the same host"),
            ("phase3.metrics_server_replicas", "2", "2 pods need as many control-plane hosts, and there are 1"),
            ("phase3.metrics_server_resolution", "5s", "5s is less than 10s"),
        ] {
            let said = refused((name, value));
            assert!(said.contains(name) && said.contains(why), "{said}");
        }
        assert_eq!(refused(("phase3.metrics_server_resolution", "10s")), "");
    }

    #[test]
    fn node_exporter_has_a_port_that_is_free_on_every_host() {
        let source = TreeSource::embedded();
        let refused = |more: &[(&str, &str)]| {
            let mut settings = Settings::defaults(&source).unwrap();
            let pairs = [&[("phase3.node_exporter", "y")], more].concat();
            settings.set_all(&pairs).map_or_else(|error| error.render(), |_| String::new())
        };
        let port = "phase3.node_exporter_port";
        for (pairs, why) in [
            (&[(port, "10250")][..], "phase3.node_exporter_port: port 10250 is taken by kubelet on the same host"),
            (&[("phase2.api_port", "9100")], "phase2.api_port: port 9100 is taken by node-exporter on the same host"),
            (&[(port, "31000")], "port 31000 is taken by node-exporter and lies within 30000 to 32767"),
            (
                &[("phase1.cloud_provider", "baremetal"), ("phase1.ssh.port", "9100")],
                "phase3.node_exporter_port: port 9100 is taken by sshd on the same host",
            ),
        ] {
            let said = refused(pairs);
            assert!(said.contains(why), "{said}");
        }
        assert_eq!(refused(&[(port, "9101"), ("phase2.api_port", "9100")]), "");
    }

    #[test]
    fn cert_manager_asks_dns_servers_by_address_or_https() {
        let source = TreeSource::embedded();
        let refused = |name: &str, value: &str| {
            let mut settings = Settings::defaults(&source).unwrap();
            let pairs = [("phase3.cert_manager", "y"), (name, value)];
            settings.set_all(&pairs).map_or_else(|error| error.message().to_owned(), |_| String::new())
        };
        let servers = "phase3.cert_manager_dns01_nameservers";
        assert_eq!(
            refused(servers, "192.0.2.53,http://192.0.2.54/dns-query"),
            format!("{servers}: http://192.0.2.54/dns-query: DNS over HTTPS needs an https URL")
        );
        assert_eq!(refused(servers, "192.0.2.53,https://192.0.2.54/dns-query"), "");
        let limit = "phase3.cert_manager_memory_limit";
        assert_eq!(refused(limit, "32Mi"), format!("{limit}: 32Mi is less than the 64Mi that cert-manager requests"));
    }

    #[test]
    fn traefik_has_something_to_serve_at_ports_of_its_own() {
        let source = TreeSource::embedded();
        let refused = |pairs: &[(&str, &str)]| {
            let mut settings = Settings::defaults(&source).unwrap();
            let pairs: Vec<(&str, &str)> = [("phase3.traefik", "y")].iter().chain(pairs).copied().collect();
            settings.set_all(&pairs).map_or_else(|error| error.message().to_owned(), |_| String::new())
        };
        let (ingresses, port) = ("phase3.traefik_ingresses", "phase3.traefik_https_node_port");
        assert_eq!(
            refused(&[(ingresses, "n")]),
            format!("{ingresses}: with phase3.traefik_gateways=n, too, Traefik has nothing to serve")
        );
        assert_eq!(refused(&[(ingresses, "n"), ("phase3.gateway_api", "y")]), "");
        let arrival = ("phase3.traefik_arrival", "node-ports");
        assert_eq!(refused(&[arrival]), "");
        assert_eq!(
            refused(&[arrival, (port, "30080")]),
            format!("{port}: 30080 is phase3.traefik_http_node_port already")
        );
        let limit = "phase3.traefik_memory_limit";
        assert_eq!(refused(&[(limit, "32Mi")]), format!("{limit}: 32Mi is less than the 64Mi that Traefik requests"));
    }

    #[test]
    fn the_autoscaler_has_a_group_to_size_and_knows_its_machines() {
        let source = TreeSource::embedded();
        let bounded = r#"[{"name": "web", "role": "worker", "size": 1, "max": 3}]"#;
        let refused = |pairs: &[(&str, &str)]| {
            let mut settings = Settings::defaults(&source).unwrap();
            let on = [("phase1.cloud_provider", "aws"), ("phase3.cloud_controller", "y")];
            let pairs = [&on[..], pairs, &[("phase3.cluster_autoscaler", "y")]].concat();
            settings.set_all(&pairs).map_or_else(|error| error.message().to_owned(), |_| String::new())
        };
        let none = "phase3.cluster_autoscaler: no node group has a max, so there is none to size (phase1.node_groups)";
        assert_eq!(refused(&[]), none);
        assert_eq!(refused(&[("phase1.node_groups", &bounded.replace(", \"max\": 3", ""))]), none);
        let groups = ("phase1.node_groups", bounded);
        assert_eq!(refused(&[groups]), "");
        let time = "phase3.cluster_autoscaler_unneeded_time";
        assert_eq!(
            refused(&[groups, (time, "30s")]),
            format!("{time}: 30s is less than 1m: hosts would go while pods still arrive")
        );
        let limit = "phase3.cluster_autoscaler_memory_limit";
        assert_eq!(
            refused(&[groups, (limit, "64Mi")]),
            format!("{limit}: 64Mi is less than the 128Mi that the cluster autoscaler requests")
        );
        let taken = "port 8085 is taken by cluster-autoscaler on the same host";
        assert!(refused(&[groups, ("phase2.api_port", "8085")]).ends_with(taken));
        // Without provider IDs of Nodes it would know no machine.
        assert!(refused(&[groups, ("phase3.cloud_controller", "n")]).contains("phase3.cloud_controller"));
    }

    #[test]
    fn kube_state_metrics_gets_the_memory_that_it_requests() {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let limit = "phase3.kube_state_metrics_memory_limit";
        let error = settings.set_all(&[("phase3.kube_state_metrics", "y"), (limit, "32Mi")]).unwrap_err();
        assert_eq!(error.message(), format!("{limit}: 32Mi is less than the 64Mi that kube-state-metrics requests"));
    }
}
