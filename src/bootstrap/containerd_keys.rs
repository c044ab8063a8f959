//! The keys and types of containerd's configuration, from what the pinned containerd has where a
//! file says nothing. It judges a configuration, and does not know where that came from.

use toml::{Table, Value};

use crate::component::did_you_mean;

const DEFAULT: &str = include_str!("containerd_default.toml");

/// Tables whose keys are names of one's own; what they name is like what stands there by default.
const NAMED: [&str; 2] = ["plugins/io.containerd.cri.v1.runtime/containerd/runtimes", "stream_processors"];
/// Tables whose keys depend on more than containerd: on images, on a runtime's type, on registries
/// (old keys of which are not among the defaults).
const FREE: [&str; 4] = ["plugins/io.containerd.cri.v1.images/pinned_images", "timeouts", "registry", "options"];

/// The first key that containerd would ignore, being nearly one of its own, or whose value has
/// another type than containerd reads: what is wrong with it, after the name of a file.
pub(super) fn find_slip(config: &Table) -> Option<String> {
    let known: Table = toml::from_str(DEFAULT).unwrap_or_default();
    find_in(config, &known, "")
}

fn find_in(own: &Table, known: &Table, path: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    if FREE.contains(&path) || FREE.contains(&name) {
        return None;
    }
    let is_named = NAMED.contains(&path);
    own.iter().find_map(|(key, value)| {
        let known_value = if is_named { known.values().next() } else { known.get(key) };
        let Some(known_value) = known_value else {
            let near = did_you_mean(key, known.keys().map(String::as_str));
            return (!near.is_empty()).then(|| format!("containerd has no key `{key}`{}{near}", place(path)));
        };
        match (value, known_value) {
            (Value::Table(own), Value::Table(known)) => {
                find_in(own, known, format!("{path}/{key}").trim_start_matches('/'))
            }
            // A whole number is a fraction, too.
            (Value::Integer(_), Value::Float(_)) => None,
            _ if value.same_type(known_value) => None,
            _ => Some(format!(
                "`{key}`{} is of type {}; containerd expects {}",
                place(path),
                value.type_str(),
                known_value.type_str()
            )),
        }
    })
}

/// As the table's head has it: ` in [plugins.'io.containerd.gc.v1.scheduler']`.
fn place(path: &str) -> String {
    let quote = |part: &str| if part.contains('.') { format!("'{part}'") } else { part.to_owned() };
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(quote).collect();
    if parts.is_empty() { String::new() } else { format!(" in [{}]", parts.join(".")) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn judge(text: &str) -> Option<String> {
        find_slip(&toml::from_str(text).unwrap())
    }

    #[test]
    fn the_defaults_have_no_slip_and_neither_has_what_they_leave_out() {
        assert_eq!(judge(DEFAULT), None);
        for text in [
            "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gvisor]\nruntime_type = 'io.containerd.runsc.v1'",
            "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gvisor.options]\nTypeUrl = 'x'",
            "[plugins.'io.containerd.cri.v1.images'.registry.mirrors.'docker.io']\nendpoint = ['https://a']",
            "[plugins.'io.containerd.cri.v1.images'.pinned_images]\nother = 'a'",
            "[proxy_plugins.stargz]\ntype = 'snapshot'",
            "[[plugins.'io.containerd.transfer.v1.local'.unpack_config]]\nplatform = 'linux/amd64'",
        ] {
            assert_eq!(judge(text), None, "{text}");
        }
    }

    #[test]
    fn a_slip_is_named_with_its_table_and_the_key_that_is_near() {
        let slips = [
            "[plugins.'io.containerd.gc.v1.scheduler']\npause_treshold = 0.1",
            "[plugins.'io.containerd.gc.v1.schedular']\ndeletion_threshold = 1",
            "[plugins.'io.containerd.cri.v1.runtime']\nmax_container_log_line_size = '16k'",
            "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gvisor]\nruntime_typ = 'a'",
            "[plugins.'io.containerd.snapshotter.v1.overlayfs']\nupperdir_labels = true",
            "oom_score = '1'",
            "[plugins.'io.containerd.gc.v1.scheduler']\npause_threshold = 1",
        ];
        let told: Vec<String> = slips.iter().map(|text| judge(text).unwrap_or_default()).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        containerd has no key `pause_treshold` in [plugins.'io.containerd.gc.v1.scheduler']; did you mean `pause_threshold`?
        containerd has no key `io.containerd.gc.v1.schedular` in [plugins]; did you mean `io.containerd.gc.v1.scheduler`?
        `max_container_log_line_size` in [plugins.'io.containerd.cri.v1.runtime'] is of type string; containerd expects integer
        containerd has no key `runtime_typ` in [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gvisor]; did you mean `runtime_type`?
        containerd has no key `upperdir_labels` in [plugins.'io.containerd.snapshotter.v1.overlayfs']; did you mean `upperdir_label`?
        `oom_score` is of type string; containerd expects integer
        ");
    }
}
