//! What the pinned components accept: their own `--help`, and what programs say that are compiled
//! from the same Go modules.
//!
//! The help says which flags there are. The programs of `templates/artifacts/reference` add what
//! no help shows: hidden flags, types behind placeholders, fields of files with their defaults, and
//! gates that can no longer be changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::cache::Cache;
use super::gobuild::Order;
use super::keylock::KeyLock;
use super::lock::Lock;
use super::platform::Platform;
use super::progress::Watch;
use super::selection::{Artifact, Selection};
use super::sources::{Effort, Sources};
use crate::atomic_file::{self, FileMode};
use crate::component::{
    ComponentReference, Flag, Gate, HelpFlag, Reference, ReferenceFile, compare_gates, read_etcd, read_pflag,
};
use crate::exec::Run;
use crate::{Context, Error, Result};

/// The components, each with the packages that its description is made of.
const COMPONENTS: [(&str, &[&str]); 6] = [
    ("etcd", &["etcd"]),
    ("kube-apiserver", &["describe", "kube-apiserver"]),
    ("kube-controller-manager", &["describe", "kube-controller-manager"]),
    ("kube-proxy", &["describe", "kube-proxy"]),
    ("kube-scheduler", &["describe", "kube-scheduler"]),
    ("kubelet", &["describe", "kubelet"]),
];
const LIMIT: Duration = Duration::from_mins(1);

/// By the name of the component, and by that of the flag.
type Helps = BTreeMap<String, BTreeMap<String, HelpFlag>>;

/// What a program of `templates/artifacts/reference` prints.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    flags: BTreeMap<String, Flag>,
    kinds: BTreeMap<String, ReferenceFile>,
    feature_gates: BTreeMap<String, Gate>,
}

/// The flags in the help of each pinned component of a Kubernetes version.
pub fn read_help(selection: &Selection, cache: &Cache, sources: &Sources, watch: &dyn Watch) -> Result<Helps> {
    let binaries: Vec<&Artifact> = COMPONENTS.iter().map(|(name, _)| selection.binary(name)).collect::<Result<_>>()?;
    let blobs = cache.ensure_all(binaries, sources, watch)?;
    let mut helps = Helps::new();
    for ((name, _), blob) in COMPONENTS.iter().zip(blobs) {
        let output =
            Run::new(&blob.path).arg("--help").dir(cache.root()).label(format!("{name} --help")).timeout(LIMIT);
        let output = output.output()?;
        // etcd says on standard error how it is called.
        let flags = if *name == "etcd" {
            read_etcd(&format!("{}\n{}", output.stderr, output.stdout))
        } else {
            read_pflag(&output.stdout)
        };
        helps.insert((*name).to_owned(), flags);
    }
    Ok(helps)
}

/// What the components of a Kubernetes version accept.
pub fn describe_components(
    lock: &Lock,
    kubernetes: &str,
    cache: &Cache,
    sources: &Sources,
    watch: &dyn Watch,
) -> Result<Reference> {
    let selection = lock.select(kubernetes)?;
    let mut helps = read_help(&selection, cache, sources, watch)?;
    let mut components = BTreeMap::new();
    for (directory, names) in group_by_module(&selection)? {
        let key = format!("reference-{directory}");
        let work = KeyLock::acquire(cache.root(), &key, &key, watch)?;
        let out = compile(selection.binary(names[0])?, &names, work.work(), &cache.log_path(&key), watch)?;
        for name in names {
            let output = Run::new(out.join(name)).dir(&out).label(format!("the description of {name}")).timeout(LIMIT);
            let described: Described = serde_json::from_str(&output.output()?.stdout)
                .context(format!("the description of {name} is not of the form of the others"))?;
            let help = helps.remove(name).unwrap_or_default();
            let version = selection.binary(name)?.version.clone();
            components.insert(name.to_owned(), merge(name, version, help, described)?);
        }
    }
    Ok(Reference::new(&selection.kubernetes, components))
}

/// Writes the table below this directory, whole or not at all.
pub fn write_reference(reference: &Reference, dir: &Path) -> Result<PathBuf> {
    let path = dir.join(Reference::path(&reference.kubernetes));
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent)?;
    }
    atomic_file::replace(&path, reference.to_text()?.as_bytes(), FileMode::Exact(0o644))
        .context(format!("cannot replace {}", path.display()))?;
    Ok(path)
}

/// The names of components by the Go module that they are built from.
fn group_by_module(selection: &Selection) -> Result<BTreeMap<&str, Vec<&'static str>>> {
    let mut modules: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for (name, _) in COMPONENTS {
        let binary = selection.binary(name)?.binary();
        let binary = binary.ok_or_else(|| Error::bug(format!("{name} is not a binary in the lock file")))?;
        modules.entry(&binary.directory).or_default().push(name);
    }
    Ok(modules)
}

/// Compiles the programs that describe these components; gives the directory that they are in.
fn compile(artifact: &Artifact, names: &[&str], work: &Path, log: &Path, watch: &dyn Watch) -> Result<PathBuf> {
    let binary = artifact.binary().ok_or_else(|| Error::bug(format!("{artifact} is not a binary")))?;
    let programs: Vec<String> = names.iter().map(|name| format!("./reference/{name}")).collect();
    let mut reference: Vec<&str> = COMPONENTS
        .iter()
        .filter(|(name, _)| names.contains(name))
        .flat_map(|(_, packages)| packages.to_vec())
        .collect();
    reference.sort_unstable();
    reference.dedup();
    let packages = programs.iter().map(String::as_str).collect();
    Order { binary, platform: &Platform::host(), packages, reference: &reference, effort: &Effort::default() }
        .build(work, log, watch)
}

/// One component, of what its help and its description say. They must agree where both speak.
fn merge(
    name: &str,
    version: String,
    help: BTreeMap<String, HelpFlag>,
    described: Described,
) -> Result<ComponentReference> {
    let Described { mut flags, kinds, feature_gates } = described;
    for flag in flags.values_mut() {
        flag.hidden = true;
    }
    let mut disagreements = compare_gates(&feature_gates, &help);
    for (flag, shown) in help {
        let Some(known) = flags.get_mut(&flag) else {
            disagreements.push(format!("--{flag}: the module lacks it"));
            continue;
        };
        known.hidden = false;
        known.words.clone_from(&shown.words);
        if name == "etcd" {
            complete_etcd(known, &shown);
        } else if (&known.default, &known.deprecated) == (&shown.default, &shown.deprecated) {
            known.placeholder = (known.type_name != shown.shown_type).then_some(shown.shown_type);
        } else {
            disagreements.push(format!("--{flag}: {shown:?} and {known:?}"));
        }
    }
    if !disagreements.is_empty() {
        let message =
            format!("the help of {name} and its Go module disagree about {} flags or gates", disagreements.len());
        return Err(Error::bug(message).evidence_of(&disagreements));
    }
    Ok(ComponentReference { version, flags, files: kinds, feature_gates })
}

/// etcd's help is written by hand. It knows defaults that are computed after flags were parsed.
fn complete_etcd(flag: &mut Flag, shown: &HelpFlag) {
    flag.default = flag.default.take().or_else(|| shown.default.clone());
    flag.deprecated.clone_from(&shown.deprecated);
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    fn described() -> Described {
        let flags = r#"{"mode": {"type": "bool"}, "old": {"type": "int", "default": "1", "deprecated": "gone soon"}}"#;
        serde_json::from_str(&format!(r#"{{"flags": {flags}, "kinds": {{}}, "feature_gates": {{}}}}"#)).unwrap()
    }

    fn merged(name: &str, help: &str) -> Result<BTreeMap<String, Flag>> {
        let help = if name == "etcd" { read_etcd(help) } else { read_pflag(help) };
        merge(name, "1.0.0".into(), help, described()).map(|component| component.flags)
    }

    #[test]
    fn what_no_help_shows_comes_from_the_module() {
        let flags = merged("kubelet", "      --mode RuntimeDefault   Uses RuntimeDefault.\n").unwrap();
        assert_eq!(
            (flags["mode"].type_name.as_str(), flags["mode"].placeholder.as_deref()),
            ("bool", Some("RuntimeDefault"))
        );
        assert_eq!((flags["mode"].hidden, flags["old"].hidden), (false, true));
        let flags = merged("etcd", "  --mode 'true'\n    Words. Deprecated in v3.6.\n").unwrap();
        assert_eq!((flags["mode"].default.as_deref(), flags["old"].default.as_deref()), (Some("true"), Some("1")));
        assert_eq!(flags["mode"].deprecated.as_deref(), Some("Deprecated in v3.6."));
    }

    #[test]
    fn help_and_module_must_agree() {
        let old = "      --old int    An old one. (default 1) (DEPRECATED: gone soon)\n";
        merged("kubelet", old).unwrap();
        for help in [&old.replace('1', "2"), &old.replace("soon", "now"), "      --new   Another one.\n"] {
            let error = merged("kubelet", help).unwrap_err();
            assert!(error.message().contains("kubelet"), "{}", error.render());
        }
    }
}
