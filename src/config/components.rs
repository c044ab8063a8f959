//! What a component would refuse to start with, or what would lock users out, that no single value
//! tells. The rules are those of the components themselves (Kubernetes 1.35 to 1.37, etcd 3.6).
//!
//! Pure: it judges values.

use std::time::Duration;

use super::format::{Format, parse_duration};
use super::problem::Problem;
use super::relations::words;
use super::schema::suggestion;
use super::values::Values;

/// What kubelet measures and evicts by (`--eviction-hard`).
const SIGNALS: [&str; 8] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
];
/// What kubelet can reserve (`--kube-reserved`).
const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];
/// Admission plugins that other settings or the safety of every cluster rest on, and the settings.
const KEPT_PLUGINS: [(&str, &str); 5] = [
    ("NodeRestriction", "kubelets could then change other nodes"),
    ("PodSecurity", "see phase2.security.pod_security"),
    ("DenyServiceExternalIPs", "phase2.security.deny_external_ips switches it off"),
    ("EventRateLimit", "phase2.security.event_rate_limit switches it off"),
    ("ServiceAccount", "pods could then reach no API"),
];

/// Kernel parameters of which each pod has its own, and the beginnings of such names
/// (<https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/>).
const OF_PODS: [&str; 10] = [
    "kernel.sem",
    "kernel.shm",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.msg",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
];
const OF_PODS_BELOW: [&str; 2] = ["net.", "fs.mqueue."];
/// What `--runtime-config` knows besides groups with a version.
const API_LEVELS: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];
/// The groups of the API.
const API_GROUPS: [&str; 23] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Everything that is wrong with the settings of components.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = check_signals(facts);
    problems.extend(check_reserved(facts));
    problems.extend(check_placement(facts));
    problems.extend(check_shutdown(facts));
    problems.extend(check_images(facts));
    problems.extend(check_node_labels(facts));
    problems.extend(check_heartbeats(facts));
    problems.extend(check_controllers(facts));
    problems.extend(check_plugins(facts));
    problems.extend(check_values(facts));
    problems.extend(check_encrypted(facts));
    problems.extend(check_ciphers(facts));
    problems.extend(check_enabled(facts));
    problems.extend(check_pulls(facts));
    problems.extend(check_exemptions(facts));
    problems.extend(check_elections(facts));
    problems.extend(check_unsafe_sysctls(facts));
    problems.extend(check_api_versions(facts));
    problems
}

/// The keys of a map, `a=1,b=2`.
fn keys(facts: &Values<'_, '_>, name: &str) -> Vec<String> {
    let pairs = words(facts.text(name).unwrap_or_default());
    pairs.iter().map(|pair| pair.split('=').next().unwrap_or_default().to_owned()).collect()
}

fn unknown_key(facts: &Values<'_, '_>, name: &str, known: &[&str], what: &str) -> Option<Problem> {
    let key = keys(facts, name).into_iter().find(|key| !known.contains(&key.as_str()))?;
    let near = suggestion(&key, known.iter().copied());
    Some(Problem::of(name, format!("`{key}` is no {what}; expected {}{near}", known.join(", "))))
}

fn check_signals(facts: &Values<'_, '_>) -> Vec<Problem> {
    const SOFT: &str = "phase2.kubelet.eviction_soft";
    const GRACE: &str = "phase2.kubelet.eviction_soft_grace_period";
    let maps = ["phase2.kubelet.eviction_hard", SOFT, GRACE, "phase2.kubelet.eviction_minimum_reclaim"];
    let mut problems: Vec<Problem> =
        maps.into_iter().filter_map(|name| unknown_key(facts, name, &SIGNALS, "eviction signal of kubelet")).collect();
    let (soft, grace) = (keys(facts, SOFT), keys(facts, GRACE));
    if let Some(signal) = soft.iter().find(|signal| !grace.contains(signal)) {
        problems.push(Problem::of(GRACE, format!("{signal} has a soft threshold ({SOFT}) and no grace period")));
    }
    if let Some(signal) = grace.iter().find(|signal| !soft.contains(signal)) {
        problems.push(Problem::of(GRACE, format!("{signal} has no soft threshold ({SOFT})")));
    }
    problems
}

fn check_reserved(facts: &Values<'_, '_>) -> Vec<Problem> {
    let names = ["phase2.kubelet.system_reserved", "phase2.kubelet.kube_reserved"];
    names
        .into_iter()
        .filter_map(|name| unknown_key(facts, name, &RESERVABLE, "resource that can be reserved"))
        .collect()
}

/// The static CPU manager has to leave a CPU to others.
fn check_placement(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.kubelet.cpu_manager_policy";
    facts.text(name).filter(|policy| *policy == "static")?;
    let named = facts.text("phase2.kubelet.reserved_cpus").is_some_and(|cpus| !cpus.is_empty());
    let reserved = ["phase2.kubelet.system_reserved", "phase2.kubelet.kube_reserved"];
    let reserved = reserved.iter().any(|name| keys(facts, name).iter().any(|key| key == "cpu"));
    let why = "static needs CPUs that no pod has for itself; set phase2.kubelet.reserved_cpus or reserve cpu";
    (!named && !reserved).then(|| Problem::of(name, why))
}

fn check_shutdown(facts: &Values<'_, '_>) -> Option<Problem> {
    let (name, whole) = ("phase2.kubelet.shutdown_grace_period_critical", "phase2.kubelet.shutdown_grace_period");
    let (part, all) = (facts.text(name)?, facts.text(whole)?);
    let longer = parse_duration(part)? > parse_duration(all)?;
    longer.then(|| Problem::of(name, format!("{part} is longer than all of it, {all} ({whole})")))
}

fn check_images(facts: &Values<'_, '_>) -> Option<Problem> {
    let (low, high) = ("phase2.kubelet.image_gc_low_threshold", "phase2.kubelet.image_gc_high_threshold");
    let equal = facts.number(low)? == facts.number(high)?;
    equal.then(|| {
        Problem::of(
            low,
            format!("it must be smaller than {high}, and both are {}", facts.text(low).unwrap_or_default()),
        )
    })
}

/// A kubelet does not start with labels that only the control plane may set.
fn check_node_labels(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.kubelet.node_labels";
    let within = |prefix: &str, domain: &str| prefix == domain || prefix.ends_with(&format!(".{domain}"));
    let key = keys(facts, name).into_iter().find(|key| {
        let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
        ["kubernetes.io", "k8s.io", "turnup.dev"].iter().any(|domain| within(prefix, domain))
    })?;
    Some(Problem::of(
        name,
        format!("{key} is a label of Kubernetes' own or turnup's; choose a name outside of kubernetes.io and k8s.io"),
    ))
}

/// A node that reports as often as it may must not count as lost.
fn check_heartbeats(facts: &Values<'_, '_>) -> Option<Problem> {
    const TIMES: u32 = 3;
    /// The life of a node's lease, by which it counts as there (`nodeLeaseDurationSeconds`).
    const LEASE: Duration = Duration::from_secs(40);
    let name = "phase2.controller_manager.node_monitor_grace_period";
    let period = "phase2.kubelet.node_status_update_frequency";
    let (grace, every) = (facts.text(name)?, facts.text(period)?);
    let least = (parse_duration(every)? * TIMES).max(LEASE);
    let short = parse_duration(grace)? < least;
    short.then(|| {
        let least = least.as_secs();
        Problem::of(
            name,
            format!("{grace} is less than {least}s: a node that reports every {every} ({period}) would count as lost"),
        )
    })
}

fn check_controllers(facts: &Values<'_, '_>) -> Option<Problem> {
    const NEEDED: &str = "token-cleaner-controller";
    let name = "phase2.controller_manager.controllers";
    let controllers = words(facts.text(name)?);
    let missing = !controllers.iter().any(|controller| controller == NEEDED);
    missing.then(|| Problem::of(name, format!("{NEEDED} is missing: old bootstrap tokens would stay; add it")))
}

fn check_plugins(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.apiserver.disable_admission_plugins";
    let plugins = words(facts.text(name)?);
    let (plugin, why) = KEPT_PLUGINS.iter().find(|(kept, _)| plugins.iter().any(|plugin| plugin == kept))?;
    Some(Problem::of(name, format!("{plugin} cannot be disabled here: {why}")))
}

/// Images that were brought along have no registry to be pulled from.
fn check_pulls(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.apiserver.enable_admission_plugins";
    words(facts.text(name)?).iter().find(|plugin| *plugin == "AlwaysPullImages")?;
    let why = "AlwaysPullImages keeps pods with images that were brought along from starting; \
               phase2.security.verify_image_credentials does without";
    Some(Problem::of(name, why))
}

/// The network and kube-proxy need rights there that the standards refuse.
fn check_exemptions(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.security.pod_security_exempt_namespaces";
    let namespaces = words(facts.text(name)?);
    let missing = !namespaces.iter().any(|namespace| namespace == "kube-system");
    missing.then(|| Problem::of(name, "kube-system is missing, where the network and kube-proxy run; add it"))
}

/// etcd does not start otherwise.
fn check_elections(facts: &Values<'_, '_>) -> Option<Problem> {
    const TIMES: i64 = 5;
    let (name, heartbeat) = ("phase2.etcd.election_timeout_ms", "phase2.etcd.heartbeat_interval_ms");
    let (election, beat) = (facts.number(name)?, facts.number(heartbeat)?);
    let short = election < beat.saturating_mul(TIMES);
    short.then(|| {
        Problem::of(
            name,
            format!("{election} is less than {TIMES} times {beat} ({heartbeat}), and etcd would not start"),
        )
    })
}

/// What an eviction threshold may be.
fn is_threshold(text: &str) -> bool {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    percent.map_or_else(|| Format::Quantity.validate(text).is_ok(), |percent| percent > 0.0 && percent <= 100.0)
}

/// Single values that a kubelet does not start with.
fn check_values(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in
        ["phase2.kubelet.eviction_hard", "phase2.kubelet.eviction_soft", "phase2.kubelet.eviction_minimum_reclaim"]
    {
        let pairs = words(facts.text(name).unwrap_or_default());
        let wrong = pairs.iter().find(|pair| pair.split_once('=').is_some_and(|(_, value)| !is_threshold(value)));
        problems
            .extend(wrong.map(|pair| Problem::of(name, format!("{pair}: expected an amount such as 100Mi, or 5%"))));
    }
    let duration = |name: &str| facts.text(name).and_then(parse_duration);
    let within = |name: &str, least: Duration| duration(name).is_some_and(|value| !value.is_zero() && value < least);
    if within("phase2.kubelet.image_maximum_gc_age", Duration::from_secs(121)) {
        let name = "phase2.kubelet.image_maximum_gc_age";
        problems.push(Problem::of(name, "it must be longer than 2m, the least age at which images are deleted, or 0s"));
    }
    if within("phase2.etcd.defragment_interval", Duration::from_hours(1)) {
        let why = "it must be at least 1h, or 0s: a member stands still while it is defragmented";
        problems.push(Problem::of("phase2.etcd.defragment_interval", why));
    }
    for name in ["phase2.kubelet.shutdown_grace_period", "phase2.kubelet.shutdown_grace_period_critical"] {
        if within(name, Duration::from_secs(1)) {
            problems.push(Problem::of(name, "it must be at least 1s, or 0s"));
        }
    }
    let cpus = "phase2.kubelet.reserved_cpus";
    let is_set = |text: &str| text.chars().all(|letter| letter.is_ascii_digit() || ",-".contains(letter));
    if facts.text(cpus).is_some_and(|text| !is_set(text)) {
        problems.push(Problem::of(cpus, "expected numbers of CPUs, such as 0-1 or 0,2"));
    }
    problems
}

/// The API server reads this list again while it runs, and would not start with a wrong one.
fn check_encrypted(facts: &Values<'_, '_>) -> Option<Problem> {
    const ALL: &str = "*.*";
    let name = "phase2.security.encryption_resources";
    let kinds = words(facts.text(name)?);
    let is_kind = |kind: &str| {
        let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
        let is_word = !resource.is_empty()
            && resource.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
        (is_word && group != "*") || (resource == "*" && !group.is_empty())
    };
    if kinds.is_empty() {
        return Some(Problem::of(name, "it is empty; name secrets, or switch phase2.security.encryption_at_rest off"));
    }
    if let Some(kind) = kinds.iter().find(|kind| !is_kind(kind)) {
        let why =
            format!("`{kind}` is no kind of objects; expected its plural name, such as secrets or deployments.apps");
        return Some(Problem::of(name, why));
    }
    let twice = kinds.iter().enumerate().find(|(at, kind)| kinds[..*at].contains(kind));
    if let Some((_, kind)) = twice {
        return Some(Problem::of(name, format!("{kind} is named twice")));
    }
    let at = kinds.iter().position(|kind| kind == ALL)?;
    (at + 1 < kinds.len()).then(|| Problem::of(name, format!("{ALL} covers what stands behind it; name it last")))
}

/// Without one of these HTTP/2 has no cipher suite, and the API server does not start. TLS 1.3
/// takes no list.
fn check_ciphers(facts: &Values<'_, '_>) -> Option<Problem> {
    const NEEDED: [&str; 2] = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];
    const TLS13: &str = "phase2.security.tls13";
    let name = "phase2.security.tls_ciphers";
    let suites = words(facts.text(name)?);
    if !suites.is_empty() && facts.text(TLS13) == Some("y") {
        let why = format!("TLS 1.3 chooses its suites itself ({TLS13}); leave it empty, or set {TLS13}=n");
        return Some(Problem::of(name, why));
    }
    let missing = !suites.is_empty() && !NEEDED.iter().any(|needed| suites.iter().any(|suite| suite == needed));
    missing.then(|| Problem::of(name, format!("HTTP/2 needs {} or {}; add one", NEEDED[0], NEEDED[1])))
}

fn check_enabled(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.apiserver.enable_admission_plugins";
    let plugins = words(facts.text(name)?);
    let disabled = words(facts.text("phase2.apiserver.disable_admission_plugins").unwrap_or_default());
    if let Some(plugin) = plugins.iter().find(|plugin| disabled.contains(plugin)) {
        return Some(Problem::of(name, format!("{plugin} is among the disabled ones as well")));
    }
    let off = facts.text("phase2.security.event_rate_limit") == Some("n");
    let without = |plugin: &&String| *plugin == "ImagePolicyWebhook" || (off && *plugin == "EventRateLimit");
    let plugin = plugins.iter().find(without)?;
    Some(Problem::of(name, format!("{plugin} needs a configuration, which no setting gives it")))
}

/// kubelet does not start with a parameter that is not known to be a pod's own.
fn check_unsafe_sysctls(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.kubelet.allowed_unsafe_sysctls";
    let all = words(facts.text(name)?);
    let is_of_pods = |pattern: &str| {
        // As kubelet does, which takes a slash for a dot.
        let start = pattern.split('*').next().unwrap_or_default().replace('/', ".");
        OF_PODS.contains(&start.as_str()) || OF_PODS_BELOW.iter().any(|below| start.starts_with(below))
    };
    let wrong = all.iter().find(|pattern| !is_of_pods(pattern))?;
    let near = suggestion(wrong, OF_PODS.into_iter());
    let why = format!(
        "kubelet knows no `{wrong}` of which each pod has its own; expected net.*, fs.mqueue.*, kernel.sem, kernel.shm* or kernel.msg*"
    );
    Some(Problem::of(name, why + &near))
}

/// The API server does not start with a group that it does not have.
fn check_api_versions(facts: &Values<'_, '_>) -> Option<Problem> {
    let name = "phase2.apiserver.runtime_config";
    let all = words(facts.text(name)?);
    if all == ["api/all=false"] {
        return Some(Problem::of(name, "an API server without any version serves nothing"));
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |text: &str| {
        let Some(rest) = text.strip_prefix('v') else { return false };
        let split = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
        split.map_or(is_number(rest), |(major, minor)| is_number(major) && is_number(minor))
    };
    for key in keys(facts, name) {
        let parts: Vec<&str> = key.split('/').collect();
        match parts[..] {
            _ if API_LEVELS.contains(&key.as_str()) => {}
            [group, version] | [group, version, _] if API_GROUPS.contains(&group) && is_version(version) => {}
            [group, version] | [group, version, _] if is_version(version) => {
                let near = suggestion(group, API_GROUPS.into_iter());
                return Some(Problem::of(name, format!("the API has no group `{group}`{near}")));
            }
            _ => {
                let levels = API_LEVELS.join(", ");
                let near = suggestion(&key, API_LEVELS.into_iter());
                let why = format!("`{key}` is neither GROUP/VERSION, such as batch/v1beta1, nor one of {levels}{near}");
                return Some(Problem::of(name, why));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use crate::config::{Settings, TreeSource};

    #[test]
    fn tls_13_takes_no_list_of_suites() {
        let refused = |tls13: &str| {
            let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
            let suites = ("phase2.security.tls_ciphers", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
            let set = settings.set_all(&[("phase2.security.tls13", tls13), suites]);
            set.err().map(|error| error.render()).unwrap_or_default()
        };
        assert!(refused("y").contains("phase2.security.tls_ciphers: TLS 1.3 chooses its suites itself"));
        assert_eq!(refused("n"), "");
    }

    #[track_caller]
    fn refusal(name: &str, value: &str) -> String {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set(name, value).err().map(|error| error.message().to_owned()).unwrap_or_default()
    }

    #[test]
    fn kubelet_takes_parameters_that_are_a_pods_own() {
        let refused = |value: &str| refusal("phase2.kubelet.allowed_unsafe_sysctls", value);
        for good in ["net.core.somaxconn", "net.*", "net/ipv4/*", "kernel.shm*,kernel.msgmax", "fs.mqueue.queues_max"] {
            assert_eq!(refused(good), "", "{good}");
        }
        for wrong in ["vm.swappiness", "net", "kernel.*", "*", "fs.mqueue*"] {
            assert!(refused(wrong).contains("of which each pod has its own"), "{wrong}: {}", refused(wrong));
        }
        assert!(refused("kernel.shmmx").contains("did you mean `kernel.shmmax`?"), "{}", refused("kernel.shmmx"));
    }

    #[test]
    fn the_api_server_takes_groups_and_versions_that_it_has() {
        let refused = |value: &str| refusal("phase2.apiserver.runtime_config", value);
        for good in ["api/all=true,api/alpha=false", "batch/v1=true", "resource.k8s.io/v1beta2/devicetaintrules=true"] {
            assert_eq!(refused(good), "", "{good}");
        }
        for (wrong, why) in [
            ("two=false", "neither GROUP/VERSION"),
            ("v1=true", "neither GROUP/VERSION"),
            ("batch/one=true", "neither GROUP/VERSION"),
            ("batch/v1alpha=true", "neither GROUP/VERSION"),
            ("api/bta=true", "did you mean `api/beta`?"),
            ("btch/v1=true", "did you mean `batch`?"),
            ("api/all=false", "serves nothing"),
        ] {
            assert!(refused(wrong).contains(why), "{wrong}: {}", refused(wrong));
        }
    }
}
