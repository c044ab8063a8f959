//! Random configurations over the whole Kconfig tree: each is either refused, with the setting and
//! the reason, or everything that it becomes is something that the programs take.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Forecast, dry_parse_tests};
use crate::component::Reference;
use crate::config::format::Format;
use crate::config::{ProblemLevel, Setting, Settings, TARGET, TreeSource};
use crate::error::{Class, Error};
use crate::unknown;

const CASES: u64 = 200;
/// Of these so many are right.
const RIGHT: usize = 100;
const TARGETS: [&str; 5] = ["local", "baremetal", "gce", "aws", "azure"];

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

/// The settings of a target with what only its user knows.
fn base(target: &str, source: &TreeSource) -> Settings {
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
fn draw(random: &mut Random, source: &TreeSource, wrong: &mut Vec<String>) -> Settings {
    let target = random.pick(&TARGETS);
    let mut settings = base(target, source);
    for _ in 0..random.below(20) {
        let list = settings.list();
        let is_asked = |setting: &&Setting| {
            let symbol = settings.schema().find(&setting.name).unwrap();
            let is_file = settings.schema().rule(symbol).format.as_ref().is_some_and(Format::is_of_a_file);
            // What names a file is refused where there is none; the target is drawn above.
            setting.visible && setting.prompt.is_some() && !is_file && setting.name != TARGET
        };
        let asked: Vec<&Setting> = list.iter().filter(is_asked).collect();
        let asked = asked.into_iter().filter(|setting| settings.schema().acts_on(&setting.name, target));
        let setting = random.pick(&asked.cloned().collect::<Vec<_>>());
        let Some(value) = other_value(&settings, &setting, random) else { continue };
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
fn judge(settings: &Settings, source: &TreeSource, dir: &Path, wrong: &mut Vec<String>) -> bool {
    let mut problems = settings.check();
    problems.extend(settings.check_files(dir));
    problems.extend(settings.check_unused());
    if problems.iter().any(|problem| problem.level == ProblemLevel::Error) {
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
        wrong.extend(dry_parse_tests::mistakes(&path.to_string_lossy(), &shown, &reference));
    }
    true
}

/// A refusal names the setting and is no bug of ours.
fn find_unexplained(settings: &Settings, error: &Error) -> Option<String> {
    let is_explained = error.class() == Class::Config && settings.as_problem(error).symbol.is_some();
    (!is_explained).then(|| format!("it is refused without its setting: {}", error.render()))
}

/// `PROPTEST_RNG_SEED` draws others.
#[test]
fn a_random_configuration_is_refused_in_words_or_works() {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (source, dir) = (TreeSource::embedded(), tempfile::tempdir().unwrap());
    let (mut right, mut failures) = (0, Vec::new());
    for case in 0..CASES {
        let mut random = Random(seed + case);
        let mut wrong = Vec::new();
        let settings = draw(&mut random, &source, &mut wrong);
        match catch_unwind(AssertUnwindSafe(|| judge(&settings, &source, dir.path(), &mut wrong))) {
            Ok(is_right) => right += usize::from(is_right),
            Err(_) => wrong.push("it panicked".to_owned()),
        }
        if !wrong.is_empty() {
            failures.push(format!("case {case}: {}\n  {}", settings.minimal(), wrong.join("\n  ")));
        }
    }
    assert!(failures.is_empty(), "{} of {CASES}:\n{}", failures.len(), failures.join("\n"));
    assert!(right >= RIGHT, "{right} of {CASES} are right");
}
