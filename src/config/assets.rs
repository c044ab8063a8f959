//! Checks of the user's own files and programs on hosts that no single field of their records
//! allows.
//!
//! Pure: it judges the texts of `phase2.host.file_assets` and `phase2.host.hooks`, whose single
//! values are right already.

use base64::Engine as _;
use serde_json::Value;

/// Where only turnup itself writes.
const OWN: [&str; 3] = ["/var/lib/turnup/", "/opt/turnup/", "/etc/systemd/system/turnup-"];
/// What the kernel shows, and what is gone after a boot.
const NO_FILES: [&str; 4] = ["/proc/", "/sys/", "/dev/", "/run/"];
/// Directories of the system, which no entry may make another one, nor a link.
const SYSTEM: [&str; 33] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/etc/systemd",
    "/etc/systemd/system",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/run",
    "/var/tmp",
];
/// The most that base64 may hold: larger content does not belong in a file that the user reads.
const LARGEST: usize = 1 << 20;
/// What an entry is made of: one of them is there.
const SOURCES: [&str; 6] = ["file", "url", "content", "base64", "link", "directory"];
/// The accounts of a host, which programs of the host change.
const ACCOUNTS: [&str; 4] = ["/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow"];
/// Who may log in or become root, and what is loaded into every program.
const PRIVILEGED: [&str; 5] = ["/etc/sudoers.d/", "/etc/ssh/", "/etc/pam.d/", "/etc/security/", "/etc/ld.so.preload"];
/// Bits of a mode with which a program runs as its owner or group, and with which every user may
/// write.
const PRIVILEGED_BITS: u32 = 0o6002;
/// With this bit all users may write a directory, and each of them removes only its own files.
const STICKY: u32 = 0o1000;
/// Fields of a hook that a unit file says itself.
const SAID_BY_UNIT: [&str; 5] = ["before", "after", "requires", "run", "timeout"];

/// Everything that is wrong with the files, each in one sentence.
pub(super) fn find_mistakes_in_files(text: &str) -> Vec<String> {
    judge_each(text, |file| {
        [
            judge_source(file),
            judge_base64(file),
            judge_link(file),
            judge_path(text_of(file, "path")).or_else(|| judge_system(file)),
            judge_mode(file),
            judge_privilege(file),
            judge_units(file, &["restarts"]),
        ]
    })
}

/// Everything that is wrong with the programs, each in one sentence.
pub(super) fn find_mistakes_in_hooks(text: &str) -> Vec<String> {
    judge_each(text, |hook| {
        [
            judge_program(hook),
            judge_unit_file(hook),
            judge_service(hook),
            judge_units(hook, &["before", "after", "requires"]),
        ]
    })
}

/// The names of groups that an entry is for, with the entry's own.
pub(super) fn groups_named(text: &str) -> Vec<(String, String)> {
    let pairs = |entry: &Value| {
        let name = text_of(entry, "name").to_owned();
        list_of(entry, "groups").into_iter().map(move |group| (name.clone(), group.to_owned())).collect::<Vec<_>>()
    };
    records(text).iter().flat_map(pairs).collect()
}

fn records(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_default()
}

fn judge_each<const N: usize>(text: &str, judge: impl Fn(&Value) -> [Option<String>; N]) -> Vec<String> {
    let all = records(text).into_iter().flat_map(|entry| {
        let name = text_of(&entry, "name").to_owned();
        judge(&entry).into_iter().flatten().map(move |why| format!("{name}: {why}")).collect::<Vec<_>>()
    });
    all.collect()
}

fn text_of<'v>(entry: &'v Value, name: &str) -> &'v str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list_of<'v>(entry: &'v Value, name: &str) -> Vec<&'v str> {
    entry.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn judge_source(file: &Value) -> Option<String> {
    let is_given = |name: &&str| file.get(name).is_some_and(|value| *value != Value::Bool(false));
    let given: Vec<&str> = SOURCES.into_iter().filter(is_given).collect();
    match given.as_slice() {
        [] => {
            return Some("it has no content; give it one of file, url, content, base64, link and directory".to_owned());
        }
        [_] => {}
        [first, second, ..] => return Some(format!("it has both {first} and {second}; leave one out")),
    }
    let (url, sha256) = (text_of(file, "url"), file.get("sha256"));
    match (url, sha256) {
        ("", None) => None,
        ("", Some(_)) => Some("sha256 is the hash of what a url gives; leave it out".to_owned()),
        (url, None) => Some(format!("{url} needs its sha256; look with: curl --location {url} | sha256sum")),
        (_, Some(_)) => None,
    }
}

fn is_directory(file: &Value) -> bool {
    file.get("directory") == Some(&Value::Bool(true))
}

fn judge_base64(file: &Value) -> Option<String> {
    file.get("base64")?;
    match base64::engine::general_purpose::STANDARD.decode(text_of(file, "base64")) {
        Ok(bytes) if bytes.len() > LARGEST => {
            let size = bytes.len();
            Some(format!("base64 holds {size} bytes, and at most 1 MiB go along; give a url and a sha256 instead"))
        }
        Ok(_) => None,
        Err(error) => Some(format!("base64 is not base64 ({error}); make it with: base64 --wrap=0 FILE")),
    }
}

fn judge_link(file: &Value) -> Option<String> {
    file.get("link")?;
    let (path, target) = (text_of(file, "path"), text_of(file, "link"));
    if target == path {
        return Some(format!("the link {path} leads to itself"));
    }
    if target.starts_with(&format!("{path}/")) {
        return Some(format!("the link {path} leads to {target}, for which it would have to be a directory"));
    }
    let needless = ["mode", "owner", "owner_group"].into_iter().find(|name| file.get(name).is_some())?;
    Some(format!("a link has no {needless} of its own, that of {target} counts; leave {needless} out"))
}

/// A mode that one of them should not have locks all users out.
fn judge_system(file: &Value) -> Option<String> {
    let path = text_of(file, "path");
    let is_judged = is_directory(file) || file.get("link").is_some();
    (is_judged && SYSTEM.contains(&path))
        .then(|| format!("{path} is a directory of the system itself, and none of these is changed"))
}

fn judge_path(path: &str) -> Option<String> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if !path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain)) {
        return Some(format!("{path} is not the absolute path of a file"));
    }
    // What holds is meant as well: /var/lib/turnup itself.
    let whole = format!("{path}/");
    if OWN.iter().any(|own| whole.starts_with(own)) {
        return Some(format!("{path} is a place of turnup's own"));
    }
    if NO_FILES.iter().any(|dir| path.starts_with(dir)) {
        return Some(format!("{path} is no file that stays: nothing is written to /proc, /sys, /dev and /run"));
    }
    if ACCOUNTS.contains(&path.trim_end_matches('-')) {
        return Some(format!("{path} holds the accounts of the host, and would lose them; make users with a hook"));
    }
    if path == "/etc/sudoers" {
        return Some("a mistake in /etc/sudoers locks turnup out; write a file in /etc/sudoers.d".to_owned());
    }
    let keys = ["/.ssh/authorized_keys", "/.ssh/authorized_keys2"];
    keys.iter().any(|end| path.ends_with(end)).then(|| {
        format!(
            "{path} says who may log in, and would lock turnup out; name public keys in phase1.ssh.authorized_key_files"
        )
    })
}

/// What can give root to other users is accepted only with an explicit field.
fn judge_privilege(file: &Value) -> Option<String> {
    let (path, mode) = (text_of(file, "path"), text_of(file, "mode"));
    let given = u32::from_str_radix(mode, 8).unwrap_or_default();
    let bits = match is_directory(file) {
        false => given & PRIVILEGED_BITS,
        // Its setgid is a group for what is made in it, and its setuid nothing.
        true if given & STICKY == 0 => given & 0o0002,
        true => 0,
    };
    let whole = format!("{path}/");
    let why = if bits & 0o6000 != 0 {
        format!("with the mode {mode} every user who runs {path} becomes its owner or group")
    } else if bits != 0 && is_directory(file) {
        let sticky = STICKY | given & 0o0777;
        format!("with the mode {mode} every user may remove what others have in {path}, with {sticky:o} only their own")
    } else if bits != 0 {
        format!("with the mode {mode} every user may write {path}")
    } else if PRIVILEGED.iter().any(|place| whole.starts_with(place)) || whole.contains("/.ssh/") {
        format!("{path} decides who may log in or become root")
    } else {
        let idle = file.get("privileged") == Some(&Value::Bool(true));
        return idle.then(|| format!("neither {path} nor its mode is privileged; leave privileged out"));
    };
    (file.get("privileged") != Some(&Value::Bool(true)))
        .then(|| format!("{why}; where that is meant, add \"privileged\": true"))
}

fn judge_mode(file: &Value) -> Option<String> {
    let mode = file.get("mode").map(|_| text_of(file, "mode"))?;
    let is_octal = matches!(mode.len(), 3 | 4) && mode.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    (!is_octal).then(|| format!("the mode {mode} is not three or four octal digits, such as 0644"))
}

/// Their names are said in full: systemd would take one without an ending for a service here and
/// for an error there.
fn judge_units(entry: &Value, fields: &[&str]) -> Option<String> {
    const ENDINGS: [&str; 6] = [".service", ".socket", ".timer", ".mount", ".target", ".path"];
    let units = fields.iter().flat_map(|field| list_of(entry, field).into_iter().map(move |unit| (field, unit)));
    let (field, unit) = units.into_iter().find(|(_, unit)| !ENDINGS.iter().any(|ending| unit.ends_with(ending)))?;
    Some(format!("{unit} in {field} is no unit of systemd, such as {unit}.service"))
}

fn judge_program(hook: &Value) -> Option<String> {
    match (hook.get("command").is_some(), hook.get("unit_file").is_some()) {
        (false, false) => Some("it has no program; give it a command or a unit_file".to_owned()),
        (true, true) => Some("it has both a command and a unit_file; leave one out".to_owned()),
        _ => None,
    }
}

fn judge_unit_file(hook: &Value) -> Option<String> {
    hook.get("unit_file")?;
    let twice = SAID_BY_UNIT.iter().find(|name| hook.get(**name).is_some())?;
    Some(format!("a unit file says {twice} itself; leave it out here"))
}

fn judge_service(hook: &Value) -> Option<String> {
    let is_service = text_of(hook, "run") == "always";
    (is_service && hook.get("timeout").is_some())
        .then(|| "a program that always runs has no timeout; leave it out".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ROOTS_KEYS: &str = concat!("/ro", "ot/.ssh/authorized_keys");

    #[test]
    fn good_files_and_programs_have_no_mistakes() {
        let sha256 = "0".repeat(64);
        let files = json!([
            {"name": "motd", "path": "/etc/motd", "content": "Hello", "mode": "0644", "restarts": ["ssh.service"]},
            {"name": "ca", "path": "/etc/ca.crt", "file": "ca.crt", "mode": "444", "owner": "root"},
            {"name": "tool", "path": "/usr/local/bin/tool", "url": "https://example.com/tool", "sha256": sha256},
            {"name": "setuid", "path": "/usr/local/bin/su2", "file": "su2", "mode": "4755", "privileged": true},
            {"name": "team", "path": "/etc/sudoers.d/team", "file": "team", "privileged": true},
            {"name": "passwd", "path": "/etc/passwd.conf", "content": "a", "mode": "1755"},
            {"name": "bytes", "path": "/etc/bytes", "base64": "/wA=", "owner": "root", "owner_group": "adm"},
            {"name": "link", "path": "/usr/local/bin/kubectl", "link": "/opt/turnup/bin/kubectl", "directory": false},
            {"name": "pool", "path": "/srv/pool", "directory": true, "mode": "1777", "owner_group": "adm"},
            {"name": "team-dir", "path": "/srv/team", "directory": true, "mode": "2770"},
            {"name": "open", "path": "/srv/open", "directory": true, "mode": "777", "privileged": true},
        ]);
        let hooks = json!([
            {"name": "disk", "command": "disk-setup", "before": ["containerd.service"], "run": "once", "timeout": "5m"},
            {"name": "agent", "command": "agent", "run": "always"},
            {"name": "own", "unit_file": "own.service", "disabled": true},
        ]);
        let none: Vec<String> = Vec::new();
        assert_eq!(find_mistakes_in_files(&files.to_string()), none);
        assert_eq!(find_mistakes_in_hooks(&hooks.to_string()), none);
    }

    #[test]
    fn everything_that_is_wrong_with_a_file_is_said() {
        let cases = [
            (json!({}), "it has no content; give it one of file, url, content, base64, link and directory"),
            (json!({"directory": false}), "it has no content"),
            (json!({"content": "a", "link": "/b"}), "it has both content and link; leave one out"),
            (json!({"directory": true, "base64": ""}), "it has both base64 and directory; leave one out"),
            (
                json!({"base64": "a b"}),
                "base64 is not base64 (Invalid symbol 32, offset 1.); make it with: base64 --wrap=0 FILE",
            ),
            (json!({"base64": "A".repeat((LARGEST / 3 + 1) * 4)}), "base64 holds 1048578 bytes, and at most 1 MiB go"),
            (json!({"link": "/etc/a"}), "the link /etc/a leads to itself"),
            (
                json!({"link": "/etc/a/b"}),
                "the link /etc/a leads to /etc/a/b, for which it would have to be a directory",
            ),
            (json!({"link": "/b", "mode": "0644"}), "a link has no mode of its own, that of /b counts; leave mode out"),
            (json!({"link": "/b", "owner_group": "adm"}), "a link has no owner_group of its own"),
            (json!({"link": "/b", "path": "/etc/shadow"}), "/etc/shadow holds the accounts of the host"),
            (json!({"link": "/srv", "path": "/home"}), "/home is a directory of the system itself"),
            (json!({"directory": true, "path": "/etc"}), "/etc is a directory of the system itself"),
            (json!({"directory": true, "path": "/var/lib/turnup"}), "is a place of turnup's own"),
            (json!({"directory": true, "path": "/etc/sudoers.d"}), "decides who may log in or become root"),
            (json!({"directory": true, "path": "/srv/a/.ssh"}), "decides who may log in or become root"),
            (
                json!({"directory": true, "mode": "2777"}),
                "every user may remove what others have in /etc/a, with 1777 only their own; where that is meant, add",
            ),
            (
                json!({"directory": true, "mode": "2", "privileged": true}),
                "the mode 2 is not three or four octal digits",
            ),
            (json!({"directory": true, "sha256": "ab"}), "sha256 is the hash of what a url gives"),
            (json!({"content": "a", "file": "b"}), "it has both file and content; leave one out"),
            (json!({"url": "https://example.com/a"}), "needs its sha256; look with: curl"),
            (json!({"content": "a", "sha256": "ab"}), "sha256 is the hash of what a url gives"),
            (json!({"content": "a", "path": "etc/motd"}), "etc/motd is not the absolute path of a file"),
            (json!({"content": "a", "path": "/etc/"}), "/etc/ is not the absolute path"),
            (json!({"content": "a", "path": "/etc/../motd"}), "is not the absolute path"),
            (json!({"content": "a", "path": "/var/lib/turnup/a"}), "is a place of turnup's own"),
            (json!({"content": "a", "path": "/etc/shadow"}), "/etc/shadow holds the accounts of the host"),
            (json!({"content": "a", "path": "/etc/passwd-"}), "/etc/passwd- holds the accounts of the host"),
            (json!({"content": "a", "path": "/etc/sudoers"}), "write a file in /etc/sudoers.d"),
            (json!({"content": "a", "path": "/proc/sys/kernel/x"}), "is no file that stays"),
            (json!({"content": "a", "path": ROOTS_KEYS, "privileged": true}), "would lock turnup out"),
            (
                json!({"content": "a", "path": "/etc/sudoers.d/a"}),
                "become root; where that is meant, add \"privileged\": true",
            ),
            (json!({"content": "a", "path": "/srv/a/.ssh/config"}), "decides who may log in"),
            (
                json!({"content": "a", "mode": "4755"}),
                "with the mode 4755 every user who runs /etc/a becomes its owner",
            ),
            (json!({"content": "a", "mode": "0666"}), "with the mode 0666 every user may write /etc/a"),
            (json!({"content": "a", "privileged": true}), "leave privileged out"),
            (json!({"content": "a", "mode": "0888"}), "the mode 0888 is not three or four octal digits"),
            (
                json!({"content": "a", "restarts": ["ssh"]}),
                "ssh in restarts is no unit of systemd, such as ssh.service",
            ),
        ];
        for (change, why) in cases {
            let mut file = json!({"name": "a", "path": "/etc/a"});
            file.as_object_mut()
                .into_iter()
                .for_each(|file| file.extend(change.as_object().cloned().unwrap_or_default()));
            let mistakes = find_mistakes_in_files(&json!([file]).to_string());
            assert!(mistakes.iter().any(|mistake| mistake.starts_with("a: ") && mistake.contains(why)), "{mistakes:?}");
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        }
    }

    #[test]
    fn everything_that_is_wrong_with_a_program_is_said() {
        let cases = [
            (json!({"name": "a"}), "it has no program; give it a command or a unit_file"),
            (json!({"name": "a", "command": "b", "unit_file": "c"}), "it has both a command and a unit_file"),
            (json!({"name": "a", "unit_file": "c", "run": "boot"}), "a unit file says run itself"),
            (json!({"name": "a", "command": "b", "run": "always", "timeout": "5m"}), "has no timeout"),
            (json!({"name": "a", "command": "b", "before": ["kubelet"]}), "kubelet in before is no unit of systemd"),
        ];
        for (hook, why) in cases {
            let mistakes = find_mistakes_in_hooks(&json!([hook]).to_string());
            assert!(mistakes.len() == 1 && mistakes[0].contains(why), "{mistakes:?}");
        }
    }

    #[test]
    fn groups_are_named_with_who_names_them() {
        let text = json!([{"name": "a", "groups": ["x", "y"]}, {"name": "b"}]).to_string();
        let pair = |name: &str, group: &str| (name.to_owned(), group.to_owned());
        assert_eq!(groups_named(&text), [pair("a", "x"), pair("a", "y")]);
    }
}
