//! Random configurations over the whole Kconfig tree: each is either refused, with the setting and
//! the reason, or everything that it becomes is something that the programs take.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::own_parse_tests::Programs;
use super::{Forecast, dry_parse_tests};
use crate::artifacts::Lock;
use crate::component::Reference;
use crate::config::format::Format;
use crate::config::{ProblemLevel, Setting, Settings, TARGET, TreeSource};
use crate::error::{Class, Error};
use crate::unknown;

const CASES: u64 = 200;
/// Of these so many are right.
const RIGHT: usize = 100;
const TARGETS: [&str; 5] = ["local", "baremetal", "gce", "aws", "azure"];
/// With settings that name files, and the target whose module is a directory of this machine.
const CASES_WITH_FILES: u64 = 120;
const RIGHT_WITH_FILES: usize = 15;
const TARGETS_WITH_FILES: [&str; 3] = ["local", "custom", "gce"];

/// What some settings' files have when they are right.
const FILES: [(&str, &str); 9] = [
    (
        "phase2.security.audit_policy_file",
        r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}"#,
    ),
    (
        "phase2.scheduler.config_file",
        r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}"#,
    ),
    ("phase2.apiserver.authentication_webhook_file", WEBHOOK),
    ("phase2.apiserver.authorization_webhook_file", WEBHOOK),
    ("phase2.apiserver.audit_webhook_file", WEBHOOK),
    ("phase2.overrides", r#"{"kubelet": {"config": {"maxPods": 50}}}"#),
    ("phase2.runtime.config_file", "version = 3\n"),
    (
        "phase1.ssh.known_hosts_file",
        "192.0.2.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
    ),
    (
        "phase1.ssh.authorized_key_files",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
    ),
];

const WEBHOOK: &str = r#"{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.7/a"}}],
    "users": [{"name": "u", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}"#;

/// A generator of numbers (`SplitMix64`): the same for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high.saturating_sub(low)).unwrap_or(0).saturating_add(1);
        match self.below(4) {
            0 => low,
            1 => high,
            // Small numbers are what people write.
            2 => low.saturating_add(i64::try_from(self.next() % span.min(100)).unwrap()),
            _ => low.saturating_add(i64::try_from(self.next() % span).unwrap_or(0)),
        }
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// A text of this format, most often one that is valid.
    fn text(&mut self, format: &Format) -> String {
        match format {
            Format::Cidr(low, high) => {
                let prefix = self.between(i64::from(*low), i64::from(*high));
                let address = (10 << 24 | u32::try_from(self.below(1 << 24)).unwrap())
                    & u32::MAX.checked_shl(u32::try_from(32 - prefix).unwrap()).unwrap_or(0);
                format!("{}/{prefix}", std::net::Ipv4Addr::from(address))
            }
            Format::Int(low, high) => self.between(*low, *high).to_string(),
            Format::Duration => format!("{}{}", self.below(90), self.pick(&["s", "m", "h", "m30s", "h0m1s", "ms"])),
            Format::Quantity => format!("{}{}", self.below(900), self.pick(&["", "m", "k", "M", "Mi", "Gi", ".5Gi"])),
            Format::Enum(words) => self.pick(words),
            Format::List(element) => {
                let count = self.below(4);
                (0..count).map(|_| self.text(element)).collect::<Vec<_>>().join(",")
            }
            Format::Map(key, value) => {
                let count = self.below(3);
                (0..count).map(|_| format!("{}={}", self.text(key), self.text(value))).collect::<Vec<_>>().join(",")
            }
            Format::Any(formats) => {
                let format = self.pick(formats);
                self.text(&format)
            }
            Format::Records(fields) => {
                let count = self.below(3);
                let mut records = Vec::new();
                for _ in 0..count {
                    let mut record = Map::new();
                    for field in fields {
                        if field.required || self.below(3) == 0 {
                            let text = self.text(&field.format);
                            record.insert(field.name.clone(), field.format.to_json(&text));
                        }
                    }
                    records.push(Value::Object(record));
                }
                Value::Array(records).to_string()
            }
            Format::Text | Format::Content => {
                self.pick(&["plain", "it's \"quoted\"", "a: b # c", "$HOME %h \\", "ü 日本", "- x", "{a}"]).to_owned()
            }
            Format::Word => self.pick(&["word", "a:b", "$x", "%n", "x\\y", "#", "{{a}}", "0x1f", "no"]).to_owned(),
            _ => {
                let samples = format.samples();
                if samples.is_empty() { String::new() } else { self.pick(&samples) }
            }
        }
    }
}

/// What is drawn from.
struct Pool<'a> {
    targets: &'a [&'a str],
    /// Where files are made for settings that name some; those are not drawn where it is none.
    files: Option<&'a Path>,
    /// The programs that are given what comes of it.
    programs: Option<&'a Programs>,
    /// Which settings are drawn.
    is_drawn: fn(&str) -> bool,
}

impl Pool<'_> {
    /// A file for a setting: most often what belongs there, or else what does not.
    fn file(&self, name: &str, random: &mut Random) -> String {
        let right = FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let text =
            random.pick(&["", "{}", "- a", "words of no form", "\u{0}\u{1}", "-----BEGIN CERTIFICATE-----\nAA==\n"]);
        let text = right.filter(|_| random.below(4) > 0).unwrap_or(text);
        let path = self.files.unwrap_or(Path::new("")).join(format!("file-{}", random.below(1_000_000)));
        fs_err::write(&path, text).unwrap();
        // What is secret is refused where others may read it.
        fs_err::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path.display().to_string()
    }
}

/// The settings of a target with what only its user knows.
fn base(target: &str, source: &TreeSource, files: Option<&Path>) -> Settings {
    let mut settings = Settings::defaults(source).unwrap();
    settings.set(TARGET, target).unwrap();
    let key = |host: u8| Format::HostKey.samples()[usize::from(host % 2)].clone();
    let host = |at: u8, role: &str| json!({"name": format!("h{at}"), "role": role, "address": format!("192.0.2.{at}"), "host_key": key(at)});
    match target {
        "baremetal" => {
            let hosts = json!([host(1, "control-plane"), host(2, "worker")]).to_string();
            settings.set("phase1.baremetal.hosts", &hosts).map(drop).unwrap();
        }
        "local" => {}
        "custom" => {
            let module = files.unwrap().join("module");
            fs_err::create_dir_all(&module).unwrap();
            fs_err::write(module.join("main.tf"), "variable \"cluster\" {}\noutput \"inventory\" {\n  value = {}\n}\n")
                .unwrap();
            settings.set("phase1.custom.module", &module.display().to_string()).map(drop).unwrap();
        }
        _ => drop(settings.set("phase1.user_data.artifacts_url", "https://artifacts.example.com/a").unwrap()),
    }
    settings
}

/// Another value, whether or not it is valid.
fn other_value(settings: &Settings, setting: &Setting, random: &mut Random) -> Option<String> {
    let symbol = settings.schema().find(&setting.name).unwrap();
    if setting.kind.is_logical() {
        return Some(if setting.value == "y" { "n" } else { "y" }.to_owned());
    }
    if setting.kind.is_numeric() {
        let (low, high) = settings.config().range(symbol).unwrap_or((0, 1_000_000));
        return Some(random.between(low, high).to_string());
    }
    let format = settings.schema().rule(symbol).format.as_ref();
    if let Some(format) = format.filter(|_| random.below(3) > 0) {
        return Some(random.text(format));
    }
    let known = settings.other_values(&setting.name).unwrap();
    (!known.is_empty()).then(|| random.pick(&known))
}

/// A random configuration: answers that are refused are refused in words, and left out.
fn draw(random: &mut Random, source: &TreeSource, pool: &Pool<'_>, wrong: &mut Vec<String>) -> Settings {
    let target = random.pick(pool.targets);
    let mut settings = base(target, source, pool.files);
    settings.set("phase2.kubernetes_version", &random.pick(&pinned_versions())).map(drop).unwrap();
    for _ in 0..random.below(20) {
        let list = settings.list();
        let is_file = |setting: &Setting| {
            let symbol = settings.schema().find(&setting.name).unwrap();
            match &settings.schema().rule(symbol).format {
                Some(Format::List(element)) => pool.files.is_some() && element.is_of_a_file(),
                format => format.as_ref().is_some_and(Format::is_of_a_file),
            }
        };
        // What names a file is refused where there is none; the target is drawn above.
        let is_asked = |setting: &&Setting| {
            let is_drawn = setting.visible && setting.prompt.is_some() && setting.name != TARGET;
            is_drawn && (pool.is_drawn)(&setting.name) && (pool.files.is_some() || !is_file(setting))
        };
        let mut asked: Vec<Setting> = list.iter().filter(is_asked).cloned().collect();
        // Files are few among so many.
        if pool.files.is_some() && random.below(4) == 0 {
            asked.retain(is_file);
        }
        let setting = random.pick(&asked);
        let value = match pool.files.filter(|_| is_file(&setting)) {
            Some(_) => Some(pool.file(&setting.name, random)),
            None => other_value(&settings, &setting, random),
        };
        let Some(value) = value else { continue };
        if let Err(error) = settings.set(&setting.name, &value) {
            let is_told = error.class() == Class::Config || error.class() == Class::Usage;
            if !is_told || !error.render().contains("phase") {
                wrong.push(format!("{}={value}: {}", setting.name, error.render()));
            }
        }
    }
    settings
}

/// Whether the configuration is right; what is wrong with what it becomes, or with how it is
/// refused, is added to `wrong`.
fn judge(
    settings: &Settings,
    source: &TreeSource,
    dir: &Path,
    programs: Option<&Programs>,
    wrong: &mut Vec<String>,
) -> bool {
    if settings.check_whole(dir).iter().any(|problem| problem.level == ProblemLevel::Error) {
        return false;
    }
    let cluster = match Forecast::rehearse(settings, source, dir) {
        Ok(cluster) => cluster,
        Err(error) => {
            wrong.extend(find_unexplained(settings, &error));
            return false;
        }
    };
    let reference = Reference::load(source, &cluster.settings.kubernetes_version).unwrap();
    for (path, bytes) in cluster.store.imagined_files() {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let shown = unknown::shown(&text);
        let path = path.to_string_lossy();
        wrong.extend(dry_parse_tests::mistakes(&path, &shown, &reference));
        let version = &cluster.settings.kubernetes_version;
        wrong.extend(programs.into_iter().flat_map(|programs| programs.mistakes(&path, &shown, version)));
    }
    true
}

/// A refusal names the setting and is no bug of ours.
fn find_unexplained(settings: &Settings, error: &Error) -> Option<String> {
    let is_explained = error.class() == Class::Config && settings.as_problem(error).symbol.is_some();
    (!is_explained).then(|| format!("it is refused without its setting: {}", error.render()))
}

#[test]
fn a_random_configuration_is_refused_in_words_or_works() {
    judge_all(CASES, RIGHT, &Pool { targets: &TARGETS, files: None, programs: None, is_drawn: any });
}

#[test]
fn so_is_one_whose_settings_name_files_and_a_module() {
    let files = tempfile::tempdir().unwrap();
    let pool = Pool { targets: &TARGETS_WITH_FILES, files: Some(files.path()), programs: None, is_drawn: any };
    judge_all(CASES_WITH_FILES, RIGHT_WITH_FILES, &pool);
}

#[test]
#[ignore = "asks the programs themselves, of every version: make test-components"]
fn the_programs_take_what_a_random_configuration_becomes() {
    let programs = Programs::pinned();
    judge_all(CASES, RIGHT, &Pool { targets: &TARGETS, files: None, programs: Some(&programs), is_drawn: any });
}

fn any(_: &str) -> bool {
    true
}

fn pinned_versions() -> Vec<String> {
    Lock::embedded().unwrap().versions().into_iter().map(str::to_owned).collect()
}

/// What hosts of this machine can have, whatever the value: nothing that names another machine, and
/// no sizes that a small machine may lack.
fn is_for_this_machine(name: &str) -> bool {
    const NOT: [&str; 11] = [
        "_reserved",
        "reserved_cpus",
        "eviction_",
        "cpu_manager",
        "memory_manager",
        "_request",
        "swap",
        "oidc_",
        "kms",
        "encryption_provider",
        "network.interface",
    ];
    let parts = [
        "apiserver.",
        "controller_manager.",
        "scheduler.",
        "kubelet.",
        "etcd.",
        "security.",
        "network.",
        "pki.",
        "update.",
    ];
    let names =
        ["pod_cidr", "service_cidr", "cluster_domain", "api_port", "max_pods", "proxy_mode", "kubernetes_version"];
    let Some(rest) = name.strip_prefix("phase2.") else { return false };
    let is_in = parts.iter().any(|part| rest.starts_with(part)) || names.contains(&rest);
    is_in && !NOT.iter().any(|part| rest.contains(part))
}

/// The sample that `cluster_random` brings up: each is right, and answers much.
fn sample() -> Vec<(PathBuf, Settings)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/random");
    let mut files: Vec<PathBuf> = fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| (path.clone(), Settings::load(&path, &TreeSource::embedded()).unwrap());
    files.into_iter().map(read).collect()
}

/// How many settings have another value than their default.
fn count_answers(settings: &Settings) -> usize {
    let defaults = Settings::defaults(&TreeSource::embedded()).unwrap();
    let defaults = defaults.list();
    let is_other =
        |setting: &&Setting| defaults.iter().any(|other| other.name == setting.name && other.value != setting.value);
    settings.list().iter().filter(is_other).count()
}

#[test]
fn the_sample_for_real_hosts_is_right() {
    let (source, dir) = (TreeSource::embedded(), tempfile::tempdir().unwrap());
    let all = sample();
    assert!(all.len() >= 3);
    for (path, settings) in all {
        let mut wrong = Vec::new();
        let is_right = judge(&settings, &source, dir.path(), None, &mut wrong);
        assert!(is_right && wrong.is_empty(), "{}: {wrong:?}", path.display());
        assert!(count_answers(&settings) >= 8, "{}: {}", path.display(), count_answers(&settings));
    }
}

#[test]
#[ignore = "writes the sample for real hosts again, from PROPTEST_RNG_SEED on"]
fn draw_the_sample_for_real_hosts() {
    let (source, dir) = (TreeSource::embedded(), tempfile::tempdir().unwrap());
    let pool = Pool { targets: &["local"], files: None, programs: None, is_drawn: is_for_this_machine };
    let mut drawn = 0;
    for case in 0.. {
        let settings = draw(&mut Random(seed() + case), &source, &pool, &mut Vec::new());
        if count_answers(&settings) >= 8 && judge(&settings, &source, dir.path(), None, &mut Vec::new()) {
            drawn += 1;
            let file = format!("tests/it/random/{drawn}.json");
            let text = serde_json::to_string_pretty(&settings.minimal()).unwrap() + "\n";
            fs_err::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(file), text).unwrap();
        }
        if drawn == 4 {
            return;
        }
    }
}

/// `PROPTEST_RNG_SEED` draws others.
fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn judge_all(cases: u64, least: usize, pool: &Pool<'_>) {
    let seed = seed();
    let (source, dir) = (TreeSource::embedded(), tempfile::tempdir().unwrap());
    let (mut right, mut failures) = (0, Vec::new());
    for case in 0..cases {
        let mut random = Random(seed + case);
        let mut wrong = Vec::new();
        let settings = draw(&mut random, &source, pool, &mut wrong);
        match catch_unwind(AssertUnwindSafe(|| judge(&settings, &source, dir.path(), pool.programs, &mut wrong))) {
            Ok(is_right) => right += usize::from(is_right),
            Err(_) => wrong.push("it panicked".to_owned()),
        }
        if !wrong.is_empty() {
            failures.push(format!("case {case}: {}\n  {}", settings.minimal(), wrong.join("\n  ")));
        }
    }
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
    assert!(right >= least, "{right} of {cases} are right");
}
