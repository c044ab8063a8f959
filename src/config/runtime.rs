//! Checks of the container runtime's and the proxy's settings that no single value tells.
//!
//! Pure: it judges values.

use serde_json::Value;

use super::format::Format;
use super::problem::Problem;
use super::relations::words;
use super::values::Values;

const MIRRORS: &str = "phase2.runtime.registry_mirrors";
const NO_PROXY: &str = "phase2.no_proxy";
const DATA_DIR: &str = "phase2.runtime.data_dir";
const AUTH_FILE: &str = "phase2.runtime.registry_auth_file";
/// Directories of local hosts that lie on no overlay.
const REAL: [&str; 3] = ["/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd"];
/// What containerd must not fill: it changes the mode of its directory, and a reset empties it.
const TAKEN: [&str; 9] = ["/etc", "/usr", "/run", "/dev", "/proc", "/sys", "/tmp", "/var/lib/turnup", "/opt/turnup"];

/// Everything that is wrong with them.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let problem = |name: &'static str| move |why: String| Problem::of(name, why);
    let mirrors = facts.records(MIRRORS);
    let mut problems: Vec<Problem> = mirrors.iter().filter_map(judge_mirrors).map(problem(MIRRORS)).collect();
    problems.extend(judge_data_dir(facts).map(problem(DATA_DIR)));
    problems.extend(judge_credentials(facts).map(problem(AUTH_FILE)));
    for name in ["phase2.http_proxy", "phase2.https_proxy"] {
        problems.extend(judge_proxy(facts.text(name).unwrap_or_default()).map(problem(name)));
    }
    problems.extend(judge_exceptions(facts.text(NO_PROXY).unwrap_or_default()).map(problem(NO_PROXY)));
    problems
}

fn judge_mirrors(entry: &Value) -> Option<String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let is = |name: &str| entry.get(name) == Some(&Value::Bool(true));
    let registry = text("registry");
    if registry != "*" && !is_registry(registry) {
        return Some(format!(
            "{registry} is no registry; expected the part of an image's name before the first slash, such as docker.io or registry.example.com:5000, or `*`"
        ));
    }
    let urls: Vec<&str> =
        entry.get("mirrors").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if urls.is_empty() {
        return Some(format!("{registry}: it has no mirror; name a URL, or leave the entry out"));
    }
    if let Some(twice) = urls.iter().enumerate().find_map(|(at, url)| urls[..at].contains(url).then_some(*url)) {
        return Some(format!("{registry}: {twice} is named twice"));
    }
    if entry.get("ca_file").is_some() && is("skip_verify") {
        return Some(format!("{registry}: skip_verify accepts any certificate; leave it or ca_file out"));
    }
    let plain = urls.iter().find(|url| url.starts_with("http://"))?;
    (entry.get("ca_file").is_some() || is("skip_verify"))
        .then(|| format!("{registry}: {plain} has no certificate; leave ca_file and skip_verify out, or take https"))
}

/// `docker.io`, `registry.example.com:5000`.
pub(super) fn is_registry(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    Format::Host.validate(host).is_ok() && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn judge_data_dir(facts: &Values<'_, '_>) -> Option<String> {
    let dir = facts.text(DATA_DIR)?;
    let is_below = |place: &str| dir.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_above = |place: &str| place.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'));
    if dir == "/" || TAKEN.iter().any(|place| is_below(place)) || TAKEN.iter().chain(&REAL).any(|place| is_above(place))
    {
        return Some(format!("{dir} holds other things than containerd's; choose a directory of its own"));
    }
    // Only local hosts have this network.
    facts.network("phase1.local.subnet")?;
    if facts.text("phase2.runtime.snapshotter") != Some("overlayfs") || REAL.iter().any(|place| is_below(place)) {
        return None;
    }
    Some(format!(
        "{dir} lies on an overlay of local hosts, and the kernel puts no overlay on one; choose a directory below {}",
        REAL[0]
    ))
}

/// Hosts that join by user data get no secret but their token.
fn judge_credentials(facts: &Values<'_, '_>) -> Option<String> {
    facts.text(AUTH_FILE).filter(|file| !file.is_empty())?;
    facts.text("phase1.user_data.format").is_some_and(|format| !format.is_empty()).then(|| {
        "workers join by user data, which every program of a host may read; take imagePullSecrets or phase2.kubelet.credential_provider_config".to_owned()
    })
}

/// A proxy is a host and a port.
fn judge_proxy(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let has_path =
        !rest.trim_end_matches('/').bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-".contains(&byte));
    has_path.then(|| format!("{url} has more than a host and a port; expected such as http://proxy.example.com:3128"))
}

fn judge_exceptions(text: &str) -> Option<String> {
    let wrong = words(text).into_iter().find(|entry| {
        entry == "*" || !entry.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:/-_".contains(&byte))
    })?;
    Some(match wrong.as_str() {
        "*" => {
            "with * there is no proxy at all; leave phase2.http_proxy and phase2.https_proxy empty for that".to_owned()
        }
        _ => format!("{wrong} is no name, ending of a name (.example.com), address or network"),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;
    use crate::config::{Settings, TreeSource};

    #[test]
    fn mirrors_of_what_is_no_registry_and_certificates_that_do_not_count_are_refused() {
        let good = [
            json!({"registry": "docker.io", "mirrors": ["https://a.example"], "ca_file": "ca.crt"}),
            json!({"registry": "a.example:5000", "mirrors": ["http://a.example", "https://b.example"]}),
            json!({"registry": "*", "mirrors": ["https://a.example/v2/all"], "override_path": true, "skip_verify": true}),
        ];
        for entry in good {
            assert_eq!(judge_mirrors(&entry), None, "{entry}");
        }
        let bad = [
            (json!({"registry": "docker.io/library", "mirrors": ["https://a.example"]}), "is no registry"),
            (json!({"registry": "..", "mirrors": ["https://a.example"]}), "is no registry"),
            (json!({"registry": "a.example:port", "mirrors": ["https://a.example"]}), "is no registry"),
            (json!({"registry": "docker.io", "mirrors": []}), "it has no mirror"),
            (json!({"registry": "docker.io", "mirrors": ["https://a.example", "https://a.example"]}), "named twice"),
            (json!({"registry": "*", "mirrors": ["https://a"], "ca_file": "a", "skip_verify": true}), "accepts any"),
            (json!({"registry": "*", "mirrors": ["http://a"], "skip_verify": true}), "has no certificate"),
        ];
        for (entry, why) in bad {
            assert!(judge_mirrors(&entry).unwrap().contains(why), "{entry}");
        }
    }

    fn refused(changes: &[(&str, &str)]) -> String {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set_all(changes).err().map(|error| error.render()).unwrap_or_default()
    }

    #[test]
    fn a_proxy_is_a_host_and_a_port_and_leads_somewhere() {
        let proxy = "http://proxy.example.com:3128";
        assert_eq!(
            refused(&[("phase2.http_proxy", proxy), ("phase2.no_proxy", "10.0.0.0/8,.example.com,a_b,::1")]),
            ""
        );
        assert!(refused(&[("phase2.http_proxy", "http://a.example/b\"c")]).contains("more than a host and a port"));
        assert!(refused(&[("phase2.http_proxy", "http://user:word@a.example")]).contains("user name or password"));
        assert!(refused(&[("phase2.http_proxy", proxy), ("phase2.no_proxy", "*")]).contains("no proxy at all"));
        assert!(refused(&[("phase2.http_proxy", proxy), ("phase2.no_proxy", "a%n")]).contains("a%n is no name"));
    }

    #[test]
    fn containerd_gets_a_directory_of_its_own_on_a_disk() {
        assert_eq!(refused(&[(DATA_DIR, "/var/lib/containerd/data")]), "");
        assert_eq!(refused(&[(DATA_DIR, "/srv/containerd"), ("phase2.runtime.snapshotter", "native")]), "");
        assert_eq!(refused(&[("phase1.cloud_provider", "baremetal"), (DATA_DIR, "/srv/containerd")]), "");
        assert!(refused(&[(DATA_DIR, "/srv/containerd")]).contains("lies on an overlay of local hosts"));
        for dir in ["/var", "/var/lib", "/etc/containerd", "/run/containerd", "/opt/turnup"] {
            assert!(refused(&[(DATA_DIR, dir)]).contains("holds other things"), "{dir}");
        }
    }
}
