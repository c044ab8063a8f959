//! The rules of this repository that no compiler knows: which module may do what, and
//! whether the documents speak of things that exist. Each failure names the place and what to do.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};
use turnup::cli::Cli;
use turnup::cloud::{CLOUDS, Target};
use turnup::cluster::Cluster;
use turnup::config::{Settings, TreeSource};

/// Which modules below it a module names, from the lowest to the highest.
/// The crate documentation draws the same picture; change both.
const MODULES: &[(&str, &str)] = &[
    ("terminal", ""),
    ("error", "terminal"),
    ("step_id", ""),
    ("unknown", "step_id"),
    ("change", "error step_id unknown"),
    ("parallel", ""),
    ("failpoint", ""),
    ("atomic_file", ""),
    ("redact", ""),
    ("input", ""),
    ("network", ""),
    ("json", ""),
    ("format", "network terminal"),
    ("document", "format json terminal unknown"),
    ("config", "atomic_file format input json network"),
    ("component", "config document format"),
    ("state", "atomic_file failpoint input terminal unknown"),
    ("exec", "atomic_file failpoint redact"),
    ("phase", "change exec failpoint format input parallel state step_id unknown"),
    ("report", "phase state terminal"),
    ("artifacts", "atomic_file component document exec input network parallel phase"),
    ("inventory", "config document format"),
    ("cloud", "artifacts config exec inventory unknown"),
    ("picture", "cloud config inventory"),
    ("wizard", "config input picture terminal"),
    ("doctor", "artifacts cloud exec"),
    ("cluster", "artifacts cloud component config doctor document exec input inventory phase state"),
    (
        "provision",
        "artifacts atomic_file change cloud cluster config document exec failpoint format input inventory parallel phase state unknown",
    ),
    ("node", "artifacts atomic_file change cloud document exec failpoint format input inventory parallel"),
    (
        "bootstrap",
        "artifacts atomic_file change cloud cluster component config document exec input inventory node parallel phase provision state unknown",
    ),
    ("addons", "artifacts bootstrap change cluster config document exec failpoint inventory parallel phase unknown"),
    (
        "forecast",
        "addons artifacts bootstrap cluster component config exec inventory node phase provision state unknown",
    ),
    ("plan", "addons artifacts bootstrap change cluster config document forecast node phase state terminal"),
    ("validate", "addons bootstrap cluster inventory phase report"),
    (
        "status",
        "addons artifacts bootstrap cluster component inventory node parallel phase provision report state terminal",
    ),
    ("support_bundle", "artifacts atomic_file bootstrap cluster config doctor inventory parallel redact state status"),
    ("bench", "addons artifacts bootstrap cluster config exec inventory node phase report validate"),
    (
        "cli",
        "addons artifacts atomic_file bench bootstrap change cluster component config doctor exec forecast input inventory node parallel phase picture plan provision report state status support_bundle terminal validate wizard",
    ),
];

/// Modules that write files, besides `state`: everything else below a cluster's directory goes
/// through it.
const WRITERS: &[(&str, &str)] = &[
    ("src/state/", "the one writer of a cluster's directory"),
    ("src/artifacts/", "the cache, which all clusters share"),
    ("src/support_bundle/archive.rs", "the support bundle, where the user wants it"),
    ("src/bench/", "clusters of its own in a directory of its own"),
    ("src/bootstrap/backup.rs", "a backup that is fetched, in the file of --to"),
    ("src/bootstrap/user_kubeconfig.rs", "the operator's own kubeconfig, as kubectl does"),
    ("src/cli/kubeconfig.rs", "a kubeconfig for a colleague or for the safe, in the file of --to"),
    ("src/cli/config/picture.rs", "a picture of the cluster, in the file of --svg"),
    ("src/cli/completions.rs", "a completion script, in the file of --to"),
    ("src/cli/man.rs", "man pages, in the directory of --dir"),
    ("src/cli/kconfig/conf.rs", "what Linux's conf writes, where it writes it"),
    ("src/cli/kconfig/output.rs", "Kconfig and .config files that the user names, never a cluster's"),
    ("src/config/file.rs", "the configuration file"),
    ("src/failpoint/", "the failpoint log of a crash test, where that test put it"),
    ("src/atomic_file.rs", "replaces a file for those who may write it"),
    ("src/exec/", "logs, and sockets of connections"),
    ("src/input/", "opens to read, with flags that only so can be given"),
    ("src/node/", "runs on a host and makes it what it should be"),
    ("src/provision/local/", "makes and removes local hosts"),
    ("src/wizard/files.rs", "the draft beside the configuration file"),
    ("src/wizard/recording.rs", "the recording that the user names"),
    (
        "src/provision/apply.rs",
        "replaces the link to OpenTofu from the artifacts; the directory in which Terraform only plans",
    ),
];

/// Modules that read whole files without `input`, which limits the size of files from other
/// sources.
const READERS: &[(&str, &str)] = &[
    ("src/artifacts/", "the cache and the lists of packages of this machine"),
    ("src/support_bundle/secrets.rs", "turnup's own keys, whose size is looked at first"),
    ("src/cli/kconfig/", "files of Linux's tree that the user names"),
    ("src/cloud/aws/volume.rs", "what the kernel of a host says of its disks"),
    ("src/cli/session.rs", "the recording that the user names"),
    ("src/doctor/", "what the kernel of this machine says"),
    ("src/exec/", "what the kernel says, and turnup's own cache"),
    ("src/failpoint/", "what the kernel says, in a crash test"),
    ("src/node/", "files of the host that it runs on, which are root's"),
    ("src/provision/local/", "what the kernel says, and consoles of local hosts"),
    ("src/provision/terraform/lock.rs", "what the kernel says"),
    ("src/state/lock.rs", "the kernel's list of locks"),
];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs_err::read_to_string(root().join(path)).unwrap()
}

/// Every file below these directories whose name ends so, relative to the repository.
pub(crate) fn files(dirs: &[&str], end: &str) -> Vec<String> {
    let mut waiting: Vec<PathBuf> = dirs.iter().map(|dir| root().join(dir)).collect();
    let mut found = Vec::new();
    while let Some(dir) = waiting.pop() {
        for entry in fs_err::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// The code of a file without its tests and comments.
pub(crate) fn code(path: &str) -> String {
    let text = read(path);
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).fold(String::new(), |all, line| all + line + "\n")
}

pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs")
}

/// Fails with all findings at once.
#[track_caller]
pub(crate) fn none(findings: &[String], advice: &str) {
    assert!(findings.is_empty(), "{advice}:\n  {}", findings.join("\n  "));
}

#[test]
fn modules_name_only_modules_below_them() {
    let mut wrong = Vec::new();
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    for path in files(&["src"], ".rs") {
        let module = path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default().to_owned();
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let Some(allowed) = allowed(&module) else {
            wrong.push(format!("{path}: the module {module} is not in MODULES"));
            continue;
        };
        for name in modules_named(&code(&path)).into_iter().filter(|name| *name != module && *name != "error") {
            if !allowed.contains(&name.as_str()) {
                wrong.push(format!("{path} names {name}"));
            }
            used.insert((module.clone(), name));
        }
    }
    let listed = MODULES.iter().flat_map(|(module, list)| list.split_whitespace().map(|name| (*module, name)));
    let idle = listed.filter(|(module, name)| *name != "error" && !used.contains(&((*module).into(), (*name).into())));
    wrong.extend(idle.map(|(module, name)| format!("{module} names {name} no more")));
    none(&wrong, "move the code, or change MODULES and the crate documentation");
}

#[test]
fn only_what_is_named_outside_is_public() {
    let lib = read("src/lib.rs");
    let outside: String = ["src/main.rs"]
        .into_iter()
        .map(read)
        .chain(files(&["benches", "tests"], ".rs").iter().map(|path| read(path)))
        .collect();
    let public = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let idle = public.filter(|module| !outside.contains(&format!("turnup::{module}")));
    none(&idle.map(str::to_owned).collect::<Vec<_>>(), "write `mod` in place of `pub mod` in src/lib.rs");
}

#[test]
fn the_modules_are_listed_from_the_lowest_to_the_highest() {
    for (at, (module, _)) in MODULES.iter().enumerate() {
        let below: Vec<&str> = MODULES[..at].iter().map(|(name, _)| *name).collect();
        for name in allowed(module).unwrap() {
            assert!(below.contains(&name), "{module} names {name}, which is not below it");
        }
    }
}

fn allowed(module: &str) -> Option<Vec<&'static str>> {
    MODULES.iter().find(|(name, _)| *name == module).map(|(_, list)| list.split_whitespace().collect())
}

/// The modules behind `crate::module` and `crate::{module::…, other}`.
fn modules_named(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let list = match after.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or_default(),
            None => after.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default(),
        };
        let words = list.split(',').map(|item| item.trim().split("::").next().unwrap_or_default().trim());
        named.extend(words.filter(|word| MODULES.iter().any(|(module, _)| module == word)).map(str::to_owned));
    }
    named
}

#[test]
fn only_exec_spawns() {
    let spawns = |path: &String| ["process::Command", "duct::"].iter().any(|word| code(path).contains(word));
    // Tests start servers that they speak to.
    let is_free = |path: &String| path.starts_with("src/exec/") || path.ends_with("_tests.rs");
    let strange = files(&["src", "crates/kconfig/src"], ".rs").into_iter().filter(|path| !is_free(path));
    none(&strange.filter(spawns).collect::<Vec<_>>(), "use crate::exec::Run, which forwards signals and masks secrets");
}

#[test]
fn only_these_give_a_script_to_a_shell() {
    // Each is a constant, or made from constants alone; what differs from host to host is an
    // argument behind it.
    const KNOWN: [&str; 9] = [
        "src/bench/kubeadm.rs",
        "src/bootstrap/encryption_key.rs",
        "src/bootstrap/etcd_step.rs",
        "src/exec/shell.rs",
        "src/exec/ssh.rs",
        "src/provision/baremetal/preflight/run.rs",
        "src/status/components.rs",
        "src/status/hosts.rs",
        "src/support_bundle/hosts.rs",
    ];
    let uses: Vec<String> = files(&["src"], ".rs").into_iter().filter(|path| code(path).contains("\"-c\"")).collect();
    assert_eq!(uses, KNOWN, "give arguments to a program, or add the file here and to the invariant in src/lib.rs");
}

/// Where a cloud's name stands outside of its directory, and why.
const CLOUD_NAMES: &[(&str, &str)] = &[
    ("src/cloud/mod.rs", "the registry"),
    ("src/bootstrap/backup_store.rs", "a store of backups, which every target may use"),
    ("src/bootstrap/cloud_resources.rs", "Kubernetes' own names of sources of volumes"),
    ("src/cluster/backup.rs", "a store of backups, which every target may use"),
    ("src/cluster/driver.rs", "Terraform's backend azurerm, which every target may use"),
    ("src/config/backup.rs", "a store of backups, which every target may use"),
    ("src/config/ebs.rs", "the limits of the volumes of an addon, of which the checks of settings know no cloud"),
    ("src/config/import.rs", "names of settings that kubernetes-anywhere had"),
    ("src/node/backup/", "a store of backups, which every target may use"),
    ("src/provision/terraform/", "Terraform's backend azurerm, which every target may use"),
    ("src/redact/patterns.rs", "a scheme of HTTP authentication"),
];

/// The clouds, by the directories that they have.
fn clouds() -> Vec<String> {
    let dirs = files(&["src/cloud"], "/settings.rs").into_iter();
    dirs.map(|path| path.trim_start_matches("src/cloud/").split('/').next().unwrap().to_owned()).collect()
}

/// Whether a text has a word that begins so, in any case.
fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let begins = |at: usize| !text[..at].ends_with(|letter: char| letter.is_ascii_alphabetic());
    text.match_indices(word).any(|(at, _)| begins(at))
}

#[test]
fn a_clouds_name_stands_in_its_directory_and_in_the_registry() {
    let clouds = clouds();
    let registered: BTreeSet<&str> = CLOUDS.iter().map(|cloud| cloud.name()).collect();
    assert!(clouds.iter().eq(registered), "each has a directory with settings.rs and its line in CLOUDS");
    let mut strange = Vec::new();
    let mut used = BTreeSet::new();
    for path in files(&["src"], ".rs").into_iter().filter(|path| !is_test(path) && !path.contains("/tests/")) {
        let code = code(&path);
        let named = clouds.iter().filter(|cloud| !path.starts_with(&format!("src/cloud/{cloud}/")));
        for cloud in named.filter(|cloud| has_word(&code, cloud)) {
            match CLOUD_NAMES.iter().find(|(place, _)| path.starts_with(place)) {
                Some((place, _)) => drop(used.insert(*place)),
                None => strange.push(format!("{path} names {cloud}")),
            }
        }
    }
    none(&strange, "put what differs behind `cloud::Cloud`, or into a structured comment of phases/");
    let idle: Vec<String> = CLOUD_NAMES.iter().map(|(place, _)| (*place).to_owned()).collect();
    let idle: Vec<String> = idle.into_iter().filter(|place| !used.contains(place.as_str())).collect();
    none(&idle, "names no cloud any more: take it out of CLOUD_NAMES");
}

#[test]
fn the_later_phases_compare_no_target() {
    // What differs by target is a method of `cloud::Target`.
    const LATER: [&str; 6] =
        ["src/bootstrap", "src/node", "src/addons", "src/validate", "src/config/check.rs", "src/cli"];
    const WAYS: [&str; 9] = [
        "target ==",
        "target !=",
        "target.name()",
        "target.is_local()",
        "target.is_custom()",
        "match target",
        "settings.target {",
        "Target::Local",
        "Target::BareMetal",
    ];
    let mut found = Vec::new();
    for path in files(&["src"], ".rs").into_iter().filter(|path| LATER.iter().any(|place| path.starts_with(place))) {
        let code = if is_test(&path) { String::new() } else { code(&path) };
        found.extend(WAYS.iter().filter(|way| code.contains(**way)).map(|way| format!("{path}: {way}")));
    }
    none(&found, "ask a method of cloud::Target that says what differs");
}

#[test]
fn paths_of_hosts_stand_in_one_place() {
    const KNOWN: [&str; 8] = [
        // A script for a shell on the host.
        "src/support_bundle/hosts.rs",
        // Below `node`, which it cannot name: where a directory of the user must not lie.
        "src/config/host_system.rs",
        "src/config/limits.rs",
        "src/config/runtime.rs",
        // Below `node`, which it cannot name: what a file of the user must not replace.
        "src/config/assets.rs",
        // Below `node` as well: where the scripts of own steps lie.
        "src/phase/custom.rs",
        // kubeadm's own files.
        "src/bench/kubeadm.rs",
        "src/node/layout.rs",
    ];
    let names = |path: &String| ["\"/etc/kubernetes", "\"/opt/turnup"].iter().any(|word| code(path).contains(word));
    let found = files(&["src"], ".rs").into_iter().filter(|path| !is_test(path) && !KNOWN.contains(&path.as_str()));
    none(&found.filter(names).collect::<Vec<_>>(), "name the path in src/node/layout.rs");
}

#[test]
fn only_state_writes_below_the_directory_of_a_cluster() {
    const WAYS: &[&str] = &[
        "fs_err::write",
        "fs_err::copy",
        "fs_err::rename",
        "fs_err::create_dir",
        "fs_err::remove",
        "fs_err::hard_link",
        "fs_err::set_permissions",
        "File::create",
        "OpenOptions",
        "tempfile_in(",
        "tempdir_in(",
        "AtomicFile::create",
        "atomic_file::replace",
        "::new_in(",
    ];
    let mut strange = Vec::new();
    let mut used = BTreeSet::new();
    for path in files(&["src"], ".rs").into_iter().filter(|path| !is_test(path)) {
        let code = code(&path);
        let Some(way) = WAYS.iter().find(|way| code.contains(**way)) else { continue };
        match WRITERS.iter().find(|(place, _)| path.starts_with(place)) {
            Some((place, _)) => drop(used.insert(*place)),
            None => strange.push(format!("{path}: {way}")),
        }
    }
    none(&strange, "use crate::state::Store, or add the file to WRITERS with the reason");
    let idle = WRITERS.iter().map(|(place, why)| format!("{place}: {why}"));
    let idle: Vec<String> = idle.filter(|line| !used.iter().any(|place| line.starts_with(place))).collect();
    none(&idle, "writes nothing any more: take it out of WRITERS");
}

#[test]
fn files_of_other_parties_are_read_within_a_limit() {
    const WAYS: &[&str] = &["fs_err::read(", "fs_err::read_to_string("];
    let mut strange = Vec::new();
    let mut used = BTreeSet::new();
    for path in files(&["src"], ".rs").into_iter().filter(|path| !is_test(path)) {
        let code = code(&path);
        if !WAYS.iter().any(|way| code.contains(way)) {
            continue;
        }
        match READERS.iter().find(|(place, _)| path.starts_with(place)) {
            Some((place, _)) => drop(used.insert(*place)),
            None => strange.push(path),
        }
    }
    none(&strange, "use crate::input::read, or add the file to READERS with the reason");
    let idle = READERS.iter().map(|(place, why)| format!("{place}: {why}"));
    let idle: Vec<String> = idle.filter(|line| !used.iter().any(|place| line.starts_with(place))).collect();
    none(&idle, "reads no whole file any more: take it out of READERS");
}

#[test]
fn kconfig_touches_nothing_outside() {
    let outside = ["std::process", "std::env", "std::fs", "fs_err", "std::net", "SystemTime", "std::io::std"];
    let mut found = Vec::new();
    for path in files(&["crates/kconfig/src"], ".rs") {
        let code = code(&path);
        found.extend(outside.iter().filter(|word| code.contains(**word)).map(|word| format!("{path}: {word}")));
    }
    none(&found, "let the caller hand it in: see kconfig::Files and kconfig::Env");
}

#[test]
fn every_room_is_in_the_crate_documentation() {
    let text = read("src/lib.rs");
    let documentation: String = text.lines().filter(|line| line.starts_with("//!")).collect();
    let missing: Vec<String> = MODULES
        .iter()
        .map(|(module, _)| format!("`{module}`"))
        .filter(|module| !documentation.contains(module))
        .collect();
    none(&missing, "say in src/lib.rs what the module is for");
}

#[test]
fn every_test_file_is_a_module() {
    let main = read("tests/it/main.rs");
    let names = files(&["tests/it"], ".rs").into_iter().map(|path| path.replace("tests/it/", "").replace(".rs", ""));
    let forgotten: Vec<String> =
        names.filter(|name| name != "main" && !main.contains(&format!("mod {name};"))).collect();
    none(&forgotten, "add the file to tests/it/main.rs");
}

#[test]
fn only_one_place_decides_whether_a_test_is_skipped() {
    let of_its_own = |path: &String| {
        let text = read(path);
        text.contains(concat!("\"skip", "ped")) || text.contains(concat!("var_os(\"", "CI\").is_none"))
    };
    let others = files(&["tests"], ".rs").into_iter().filter(|path| !path.ends_with("/skip.rs"));
    let findings: Vec<String> = others.filter(of_its_own).collect();
    none(&findings, "call skip::skip, which fails where CI is set");
}

#[test]
fn every_dependency_has_its_reason() {
    let mut bare = Vec::new();
    for manifest in ["Cargo.toml", "crates/kconfig/Cargo.toml", "crates/reference/Cargo.toml"] {
        let text = read(manifest);
        let (mut inside, mut before) = (false, "");
        for line in text.lines() {
            if line.starts_with('[') {
                inside = matches!(line, "[dependencies]" | "[dev-dependencies]" | "[build-dependencies]");
            } else if inside && line.contains('=') && !before.starts_with('#') && !line.contains("workspace = true") {
                bare.push(format!("{manifest}: {line}"));
            }
            before = line;
        }
    }
    none(&bare, "say in a comment above it what the crate is for");
}

#[test]
fn every_target_of_the_makefile_is_one_call_of_turnup_or_cargo() {
    let text = read("Makefile");
    let recipes: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix('\t')).collect();
    let calls = ["$(TURNUP) ", "cargo ", "nice -n 5 cargo ", "$(CARGO_DENY) ", "$(MAKE) "];
    // `help` prints the comments of this very file; the list of phony targets is no recipe.
    let is_fine = |line: &&&str| {
        let line = line.trim_start_matches('@');
        calls.iter().any(|call| line.starts_with(call)) || line.starts_with("sed -n ") || line.starts_with("test lint")
    };
    let strange: Vec<String> = recipes.iter().filter(|line| !is_fine(line)).map(|line| (*line).to_owned()).collect();
    none(&strange, "the logic belongs into the program");
    for line in recipes.iter().filter(|line| line.contains("turnup") || line.contains("$(TURNUP)")) {
        let words: Vec<&str> = line.split_whitespace().skip_while(|word| !word.ends_with("(TURNUP)")).skip(1).collect();
        accept(&words.join(" ").replace("$(ARGS)", ""));
    }
}

#[test]
fn what_the_documents_of_security_name_exists() {
    let (mut commands_found, mut settings_found) = (0, 0);
    let source = TreeSource::find(root());
    let settings = Settings::defaults(&source).unwrap();
    for file in ["SECURITY.md", "docs/access.md"] {
        let text = read(file);
        assert!(text.lines().count() <= 150, "{file} is too long to be read");
        for command in commands(&text) {
            if let Some(arguments) = command.strip_prefix("turnup ") {
                commands_found += 1;
                accept(arguments);
            }
            if command.starts_with("phase") && command.contains('.') {
                settings_found += 1;
                assert!(settings.get(&command).is_ok(), "{file}: there is no setting {command}");
            }
        }
    }
    assert!(commands_found > 8 && settings_found > 8, "{commands_found} commands, {settings_found} settings");
}

/// What stands between backticks, and each line of blocks of code, up to a comment.
pub(crate) fn commands(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            block = !block;
        } else if block {
            found.push(line.split("  #").next().unwrap_or_default().trim_start_matches("$ ").trim().to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(|text| text.trim().to_owned()));
        }
    }
    found
}

/// The command line has these words. Placeholders and ellipses stand for something that clap takes.
#[track_caller]
pub(crate) fn accept(arguments: &str) {
    let by_shell = shell_words::split(arguments).ok();
    let words = by_shell.unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect()).into_iter();
    let words = words.filter(|word| word != "…").map(|word| word.replace(['<', '>'], ""));
    match Cli::try_parse_from(std::iter::once("turnup".to_owned()).chain(words)) {
        Ok(_) => {}
        // A command that is only named, without what it needs.
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::MissingRequiredArgument) => {}
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {}
        Err(error) => panic!("turnup {arguments}: {error}"),
    }
}

#[test]
fn every_command_is_in_the_guide() {
    let text = read("docs/day-by-day.md");
    let named: BTreeSet<String> =
        commands(&text).iter().filter_map(|line| line.split_whitespace().nth(1)).map(str::to_owned).collect();
    let cli = Cli::command();
    let visible =
        cli.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| command.get_name().to_owned());
    none(
        &visible.filter(|name| !named.contains(name)).collect::<Vec<_>>(),
        "say in docs/day-by-day.md what the command is for",
    );
}

/// One host, as provision hands it over.
const INVENTORY: &str = r#"{"schema": "turnup.provision/1", "cluster": "kubernetes", "target": "any",
    "api": {"host": "10.0.0.1", "port": 6443},
    "hosts": [{"name": "one", "role": "control-plane", "address": "10.0.0.1", "instance": "1",
        "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}],
    "groups": [{"name": "workers", "role": "worker", "size": 1}]}"#;

#[test]
fn every_step_has_an_action() {
    let dir = tempfile::tempdir().unwrap();
    for target in Target::all() {
        let source = TreeSource::find(root());
        let mut settings = Settings::defaults(&source).unwrap();
        settings.set_all(&[("phase1.cloud_provider", target.name())]).unwrap();
        // Steps that come only with a setting are among them.
        settings.set("phase2.backup.store", "host").unwrap();
        if target.cloud().is_some() {
            settings.set("phase1.user_data.artifacts_url", "https://example.com").unwrap();
        }
        let cluster = Arc::new(Cluster::open(&settings, source, &dir.path().join(target.name())).unwrap());
        // The later phases know their hosts from the inventory.
        cluster.store.write_file("outputs/provision.json", INVENTORY.as_bytes(), 0o600).unwrap();
        let phases = [turnup::bootstrap::provision_phase, turnup::bootstrap::phase, turnup::addons::phase];
        for phase in phases.map(|load| load(&cluster).unwrap()) {
            for step in &phase.manifest.steps {
                let acts = phase.actions.contains_key(&step.name) || !step.run.is_empty();
                assert!(acts, "{target}: {}/{} has no action", phase.name, step.name);
            }
            let known = |name: &&String| phase.manifest.steps.iter().any(|step| step.name == **name);
            let idle: Vec<String> = phase.actions.keys().filter(|name| !known(name)).cloned().collect();
            none(&idle, &format!("{target}: actions of {} that no phase.toml names", phase.name));
        }
    }
}
