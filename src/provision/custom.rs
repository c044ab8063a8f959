//! A Terraform module that is not turnup's: what it is given, what it has to give back, and what it
//! must not do.
//!
//! The module's directory is copied into Terraform's working directory as it is; nothing of it is
//! rewritten or understood beyond what is checked here. `docs/custom-module.md` is the contract for
//! people.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::artifacts::Digest;
use crate::cluster::Cluster;
use crate::cluster::user_data::GroupRecord;
use crate::error::{Error, Result};
use crate::input;

use super::terraform::{BACKEND, CLI_CONFIG, DIR, LOCK_FILE, VARIABLES, pretty};
use crate::inventory::Inventory;

/// A module is text; a directory with an image in it is the wrong one.
const LARGEST: u64 = 4 << 20;
/// How deep its folders go.
const DEEPEST: usize = 8;
const CONTRACT: &str = "docs/custom-module.md says what it has to declare";

/// The module's files and its variables, by their paths below the cluster's directory.
pub(super) fn files(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let mut files = module(cluster)?;
    files.retain(|(name, _)| name != LOCK_FILE);
    let mut files: Vec<(String, String)> =
        files.into_iter().map(|(name, text)| (format!("{DIR}/{name}"), text)).collect();
    files.push((VARIABLES.to_owned(), pretty(&variables(cluster)?)?));
    Ok(files)
}

/// The lock file that comes with the module.
pub(super) fn lock_file(cluster: &Cluster) -> Result<Option<String>> {
    Ok(module(cluster)?.into_iter().find(|(name, _)| name == LOCK_FILE).map(|(_, text)| text))
}

/// One digest of all files of the module.
pub(super) fn digest(cluster: &Cluster) -> Result<String> {
    let mut all = String::new();
    for (name, text) in module(cluster)? {
        all.extend([name.as_str(), " ", &Digest::of(text.as_bytes()).to_string(), "\n"]);
    }
    Ok(Digest::of(all.as_bytes()).to_string())
}

/// What the module is given: the variable `cluster`, a part of the object that turnup's own modules
/// are given, by the same names.
pub(super) fn variables(cluster: &Cluster) -> Result<Value> {
    let settings = &cluster.settings;
    let mut told = settings.module.clone().unwrap_or_default().cluster;
    told.insert("name".into(), json!(settings.name));
    told.insert("kubernetes_version".into(), json!(settings.kubernetes_version));
    let networks = json!({"pods": settings.pod_cidr.to_string(), "services": settings.service_cidr.to_string()});
    told.insert("networks".into(), networks);
    told.entry("ssh").or_insert_with(|| json!({}))["authorized_keys"] = json!(cluster.authorized_keys()?);
    Ok(json!({"cluster": told}))
}

/// What the module gave back, checked.
pub(super) fn parse_inventory(cluster: &Cluster, value: &Value) -> Result<Inventory> {
    let settings = &cluster.settings;
    let shown = format!("the output inventory of {}", settings.driver.custom_module);
    let inventory = Inventory::from_value(&shown, value)?;
    inventory.require_cluster(&shown, &settings.name, settings.api_port)?;
    require_groups(&shown, &settings.node_groups, &inventory)?;
    Ok(inventory)
}

/// An error when what the user says of a group's Nodes reaches none: no host says that it belongs
/// to it.
fn require_groups(shown: &str, groups: &[GroupRecord], inventory: &Inventory) -> Result<()> {
    let says_something = |group: &&GroupRecord| {
        let empty = group.labels.is_empty() && group.taints.is_empty() && group.kube_reserved.is_empty();
        group.size > 0 && (!empty || group.max_pods.is_some())
    };
    let has_host = |group: &GroupRecord| inventory.hosts.iter().any(|host| host.group == group.name);
    let Some(group) = groups.iter().filter(says_something).find(|group| !has_host(group)) else { return Ok(()) };
    let message = format!("phase1.node_groups: no host of {shown} belongs to the group {}", group.name);
    Err(Error::config(message)
        .evidence("its labels, taints, max_pods and kube_reserved would do nothing")
        .hint(format!("give its hosts group = \"{}\" in the output inventory; docs/custom-module.md", group.name)))
}

/// Refuses a setting that the module would ignore: none of its files has the attribute's name.
fn require_used(dir: &Path, files: &[(String, String)], given: &BTreeSet<(String, String)>) -> Result<()> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let uses = |word: &str| files.iter().any(|(_, text)| text.split(|letter| !is_word(letter)).any(|one| one == word));
    let last = |attribute: &str| attribute.rsplit('.').next().unwrap_or_default().to_owned();
    let Some((setting, attribute)) = given.iter().find(|(_, attribute)| !uses(&last(attribute))) else {
        return Ok(());
    };
    let message = format!("{setting}: the module in {} does not use var.cluster.{attribute}", dir.display());
    Err(Error::config(message).evidence("the setting would do nothing").hint(format!(
        "use the attribute {} in the module (docs/custom-module.md), or: turnup config unset {setting}",
        last(attribute)
    )))
}

fn directory(cluster: &Cluster) -> Result<PathBuf> {
    let named = &cluster.settings.driver.custom_module;
    if named.is_empty() {
        return Err(Error::config(
            "phase1.custom.module: it is empty, and the target custom needs the directory of a module",
        )
        .hint("turnup config set phase1.custom.module=DIR; docs/custom-module.md says what has to be in it"));
    }
    let dir = cluster.work_dir.join(named);
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(Error::config(format!("phase1.custom.module: {} is no directory", dir.display()))
        .hint("turnup config set phase1.custom.module=DIR"))
}

/// All files of the module by their names in it, sorted.
fn module(cluster: &Cluster) -> Result<Vec<(String, String)>> {
    let dir = directory(cluster)?;
    let mut files = Vec::new();
    for name in walk(&dir, &[]).into_iter().filter(|name| !is_terraforms_own(name)) {
        let path = dir.join(&name);
        let text = input::read_text(&path, LARGEST).map_err(|error| {
            Error::config(format!("{} is no file of a Terraform module", path.display()))
                .source(error)
                .hint("phase1.custom.module has to name the directory of the module alone")
        })?;
        files.push((name, text));
    }
    check(&dir, &files)?;
    if let Some(told) = &cluster.settings.module {
        require_used(&dir, &files, &told.given)?;
    }
    Ok(files)
}

/// What Terraform writes beside a module when it is used by hand.
fn is_terraforms_own(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    file.contains(".tfstate") || Path::new(file).extension().is_some_and(|ending| ending == "tfplan")
}

/// Refuses, before anything is done, a module that could not work.
fn check(dir: &Path, files: &[(String, String)]) -> Result<()> {
    let shown = dir.display();
    let is_root = |name: &str| !name.contains('/') && (has_ending(name, "tf") || name.ends_with(".tf.json"));
    let root: Vec<&(String, String)> = files.iter().filter(|(name, _)| is_root(name)).collect();
    if root.is_empty() {
        return Err(Error::config(format!("{shown}: there is no Terraform file in it")).hint(CONTRACT));
    }
    for name in [BACKEND, CLI_CONFIG, "terraform.tfvars.json"] {
        if files.iter().any(|(file, _)| file == name) {
            return Err(Error::config(format!("{shown}/{name}: turnup writes a file of this name itself"))
                .hint("give it another name; variables go into a file that ends in .auto.tfvars"));
        }
    }
    for (kind, name) in [("variable", "cluster"), ("output", "inventory")] {
        if !root.iter().any(|(file, text)| declares(file, text, kind, name)) {
            return Err(Error::config(format!("{shown}: the module has no {kind} \"{name}\"")).hint(CONTRACT));
        }
    }
    for (file, text) in root {
        if let Some(line) = find_backend(file, text) {
            return Err(Error::config(format!("{shown}/{file}:{line}: the module has a backend of its own")).hint(
                "remove the block: where the state is kept is said with turnup config set phase1.state.backend=…",
            ));
        }
    }
    Ok(())
}

fn has_ending(file: &str, ending: &str) -> bool {
    Path::new(file).extension().is_some_and(|found| found == ending)
}

fn declares(file: &str, text: &str, kind: &str, name: &str) -> bool {
    if has_ending(file, "json") {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        return value[kind].get(name).is_some();
    }
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [first, second, ..] if first == kind && second.trim_end_matches('{').trim_matches('"') == name)
    })
}

/// The line of a `backend` or `cloud` block.
fn find_backend(file: &str, text: &str) -> Option<usize> {
    if has_ending(file, "json") {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let settings = &value["terraform"];
        return (settings.get("backend").is_some() || settings.get("cloud").is_some()).then_some(1);
    }
    let begins = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["backend", name, ..] => name.starts_with('"'),
            ["cloud", "{", ..] | ["cloud{", ..] => true,
            _ => false,
        }
    };
    text.lines().position(begins).map(|at| at + 1)
}

/// The files below a directory by their names in it, sorted, without what begins with a dot except
/// the lock file, and without the folders at its top that are named.
pub(super) fn walk(dir: &Path, without: &[&str]) -> Vec<String> {
    let mut waiting = vec![(String::new(), 0)];
    let mut files = Vec::new();
    while let Some((below, depth)) = waiting.pop() {
        for entry in fs_err::read_dir(dir.join(&below)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if name.starts_with('.') && name != LOCK_FILE || below.is_empty() && without.contains(&name.as_str()) {
                continue;
            }
            // A link to a directory may lead in a circle; one to a file is the file.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            match fs_err::metadata(entry.path()) {
                Ok(found) if found.is_file() => files.push(path),
                Ok(found) if found.is_dir() && !is_link && depth < DEEPEST => waiting.push((path, depth + 1)),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    const GOOD: &str = "variable \"cluster\" {\n  type = any\n}\noutput \"inventory\" {\n  value = {}\n}\n";

    fn checked(files: &[(&str, &str)]) -> String {
        let files: Vec<(String, String)> =
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        check(Path::new("mine"), &files).map_or_else(|error| error.render(), |()| "fine".to_owned())
    }

    #[test]
    fn a_module_that_could_not_work_is_refused_before_it_is_used() {
        let json = r#"{"variable": {"cluster": {}}, "output": {"inventory": {"value": 1}}}"#;
        for good in [
            &[("main.tf", GOOD)][..],
            &[("main.tf.json", json)],
            &[("main.tf", GOOD), ("sub/x.tf", "backend \"s3\" {}")],
        ] {
            assert_eq!(checked(good), "fine");
        }
        let backend = format!("terraform {{\n  backend \"s3\" {{}}\n}}\n{GOOD}");
        let told = [
            checked(&[("readme.md", "x")]),
            checked(&[("main.tf", "output \"inventory\" {}")]),
            checked(&[("main.tf", "variable \"cluster\"{}\n# output \"inventory\"")]),
            checked(&[("main.tf", GOOD), ("backend.tf.json", "{}")]),
            checked(&[("main.tf", &backend)]),
        ];
        insta::assert_snapshot!(told.join("\n\n"));
    }

    #[test]
    fn a_setting_that_the_module_would_ignore_is_refused() {
        let files = vec![("main.tf".to_owned(), format!("{GOOD}locals {{ cidrs = var.cluster.api.allowed_cidrs }}"))];
        let given = |setting: &str, attribute: &str| BTreeSet::from([(setting.to_owned(), attribute.to_owned())]);
        let judge = |given: &BTreeSet<(String, String)>| require_used(Path::new("mine"), &files, given);
        judge(&given("phase1.api.allowed_cidrs", "api.allowed_cidrs")).unwrap();
        let error = judge(&given("phase1.tags", "tags")).unwrap_err();
        assert_eq!(error.message(), "phase1.tags: the module in mine does not use var.cluster.tags");
        let error = judge(&given("phase1.node_groups", "groups[*].machine_type")).unwrap_err();
        assert!(error.next().unwrap().contains("use the attribute machine_type in the module"), "{error:?}");
    }

    #[test]
    fn only_what_belongs_to_the_module_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["main.tf", "modules/a/a.tf", ".terraform/x", ".terraform.lock.hcl", "hosts/h.json", ".git/config"]
        {
            let path = dir.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "").unwrap();
        }
        fs_err::os::unix::fs::symlink(dir.path(), dir.path().join("modules/circle")).unwrap();
        assert_eq!(walk(dir.path(), &["hosts"]), [".terraform.lock.hcl", "main.tf", "modules/a/a.tf"]);
        assert!(is_terraforms_own("terraform.tfstate.backup") && !is_terraforms_own("main.tf"));
    }
}
