//! Puts a cluster, user and context of one name into the text of a kubeconfig, or takes them out.
//! All else stays as it is, comments and unknown fields among it. Pure: it opens no file.
//!
//! Lists are edited line by line, and the result must mean what the same change of the parsed value
//! means; where it does not, the text is left alone and an error says so.

use serde_json::{Map, Value, json};

use crate::error::{Context as _, Error, Result};
use crate::node::yaml;

/// Sections of a kubeconfig, in the order of [`Entries::all`].
const SECTIONS: [&str; 3] = ["clusters", "users", "contexts"];
const CURRENT: &str = "current-context";

/// The entries of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entries {
    all: [Value; 3],
    context: String,
}

impl Entries {
    /// The entries of turnup's own kubeconfig under this name.
    pub(super) fn of(config: &Value, context: &str) -> Self {
        let user = user_of(context);
        let all = [
            json!({"name": context, "cluster": config["clusters"][0]["cluster"]}),
            json!({"name": user, "user": config["users"][0]["user"]}),
            json!({"name": context, "context": {"cluster": context, "user": user}}),
        ];
        Self { all, context: context.to_owned() }
    }
}

fn user_of(context: &str) -> String {
    format!("admin@{context}")
}

fn names(context: &str) -> [String; 3] {
    [context.to_owned(), user_of(context), context.to_owned()]
}

/// Whether all entries are there as they should be.
pub(super) fn has(text: &str, entries: &Entries) -> bool {
    let Ok(value) = parse(text) else { return false };
    let found = SECTIONS.iter().zip(&entries.all);
    found.into_iter().all(|(section, entry)| find(&value, section, &entry["name"]).is_some_and(|found| found == entry))
}

/// Which of the sections has an entry of this context's name.
pub(super) fn find_section(text: &str, context: &str) -> Result<Option<&'static str>> {
    let value = parse(text)?;
    let mut all = SECTIONS.into_iter().zip(names(context));
    Ok(all.find(|(section, name)| find(&value, section, &json!(name)).is_some()).map(|(section, _)| section))
}

/// The text with these entries. Theirs becomes the current context only where there is none.
pub(super) fn put(text: &str, entries: &Entries) -> Result<String> {
    edit(text, &entries.context, Some(entries))
}

/// The text without the entries of this context. Where it was the current one, there is none then.
pub(super) fn take_out(text: &str, context: &str) -> Result<String> {
    edit(text, context, None)
}

fn parse(text: &str) -> Result<Value> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value: Value = serde_saphyr::from_str(text).context("the kubeconfig is no YAML")?;
    match value {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(value),
        _ => Err(Error::precondition("the kubeconfig is of another form")),
    }
}

fn find<'v>(value: &'v Value, section: &str, name: &Value) -> Option<&'v Value> {
    value[section].as_array()?.iter().find(|entry| entry["name"] == *name)
}

fn edit(text: &str, context: &str, entries: Option<&Entries>) -> Result<String> {
    let before = parse(text)?;
    let mut expected = before.clone();
    let names = names(context);
    for (at, section) in SECTIONS.into_iter().enumerate() {
        set_entry(&mut expected, section, &names[at], entries.map(|entries| &entries.all[at]));
    }
    let current = before[CURRENT].as_str().unwrap_or_default();
    let next = match entries {
        Some(_) if current.is_empty() => Some(context),
        None if current == context => Some(""),
        _ => None,
    };
    if let Some(next) = next {
        expected[CURRENT] = next.into();
    }
    if expected == before {
        return Ok(text.to_owned());
    }
    if text.trim_start().starts_with('{') {
        let text = serde_json::to_string_pretty(&expected).context("cannot write the kubeconfig")?;
        return Ok(text + "\n");
    }
    if before.as_object().is_some_and(Map::is_empty) {
        expected["apiVersion"] = "v1".into();
        expected["kind"] = "Config".into();
        return Ok(format!("{text}{}", yaml::render(&expected)));
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (at, section) in SECTIONS.into_iter().enumerate() {
        set_lines(&mut lines, section, &names[at], entries.map(|entries| &entries.all[at]));
    }
    if let Some(next) = next {
        let line = format!("{CURRENT}: {}", if next.is_empty() { "\"\"".to_owned() } else { scalar(next) });
        match lines.iter().position(|line| line.starts_with("current-context:")) {
            Some(at) => lines[at] = line,
            None => lines.push(line),
        }
    }
    let edited = lines.join("\n") + "\n";
    if parse(&edited).is_ok_and(|value| value == expected) {
        return Ok(edited);
    }
    Err(Error::precondition("the kubeconfig is written in a way in which turnup cannot edit it without touching the rest")
        .hint("let kubectl write it again: kubectl config set-context --current, or turnup config set phase2.kubeconfig.merge=n"))
}

fn scalar(text: &str) -> String {
    yaml::render(&json!(text)).trim_end().to_owned()
}

fn set_entry(value: &mut Value, section: &str, name: &str, entry: Option<&Value>) {
    if entry.is_none() && value[section].as_array().is_none_or(|all| all.iter().all(|one| one["name"] != name)) {
        return;
    }
    if !value[section].is_array() {
        value[section] = json!([]);
    }
    let Some(all) = value[section].as_array_mut() else { return };
    match (all.iter().position(|one| one["name"] == name), entry) {
        (Some(at), Some(entry)) => all[at] = entry.clone(),
        (Some(at), None) => drop(all.remove(at)),
        (None, Some(entry)) => all.push(entry.clone()),
        (None, None) => {}
    }
}

/// The same in the lines of a document in block style.
fn set_lines(lines: &mut Vec<String>, section: &str, name: &str, entry: Option<&Value>) {
    let Some(head) = lines.iter().position(|line| line.starts_with(&format!("{section}:"))) else {
        if let Some(entry) = entry {
            lines.push(format!("{section}:"));
            lines.extend(item(entry, ""));
        }
        return;
    };
    let rest = lines[head][section.len() + 1..].split(" #").next().unwrap_or_default().trim().to_owned();
    let is_content = |line: &String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let end = (head + 1..lines.len())
        .find(|at| is_content(&lines[*at]) && !lines[*at].starts_with([' ', '-', '\t']))
        .unwrap_or(lines.len());
    let first = (head + 1..end).find(|at| is_content(&lines[*at]));
    let indent = first.map_or(String::new(), |at| {
        let line = &lines[at];
        line[..line.len() - line.trim_start().len()].to_owned()
    });
    let begins = |line: &String| line.strip_prefix(&indent).is_some_and(|line| line == "-" || line.starts_with("- "));
    let starts: Vec<usize> = (head + 1..end).filter(|at| begins(&lines[*at])).collect();
    // Comments and blank lines behind an item belong to what follows.
    let range = |nth: usize| {
        let until = starts.get(nth + 1).copied().unwrap_or(end);
        let last = (starts[nth]..until).rev().find(|at| is_content(&lines[*at])).unwrap_or(starts[nth]);
        starts[nth]..last + 1
    };
    let is_named = |nth: &usize| {
        let value: Option<Value> = serde_saphyr::from_str(&lines[range(*nth)].join("\n")).ok();
        value.is_some_and(|value| value[0]["name"] == name)
    };
    let found = (0..starts.len()).find(is_named).map(range);
    let last = starts.len().checked_sub(1).map_or(head + 1, |nth| range(nth).end);
    let new = entry.map(|entry| item(entry, &indent)).unwrap_or_default();
    match found {
        Some(found) => {
            if new.is_empty() && starts.len() == 1 {
                lines[head] = format!("{section}: []");
            }
            lines.splice(found, new);
        }
        None if !new.is_empty() => {
            if ["[]", "null", "~"].contains(&rest.as_str()) {
                lines[head] = format!("{section}:");
            }
            lines.splice(last..last, new);
        }
        None => {}
    }
}

fn item(entry: &Value, indent: &str) -> Vec<String> {
    yaml::render(&json!([entry])).lines().map(|line| format!("{indent}{line}")).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn entries(server: &str) -> Entries {
        let config = json!({
            "clusters": [{"name": "kubernetes", "cluster": {"server": server}}],
            "users": [{"name": "admin", "user": {"client-key-data": "a2V5"}}],
        });
        Entries::of(&config, "prod")
    }

    const OTHER: &str = "\
# My clusters.
apiVersion: v1
clusters:
# The one at home.
- cluster:
    server: https://home:6443 # behind the door
  name: home
  x-note: kept
# The end of clusters.

contexts:
  - context: {cluster: home, user: me}
    name: home
current-context: home
kind: Config
preferences: {}
users:
- name: me
  user:
    token: abc
x-own: [1, 2]
";

    #[test]
    fn entries_come_and_go_and_all_else_stays() {
        let with = put(OTHER, &entries("https://a")).unwrap();
        assert!(has(&with, &entries("https://a")) && !has(OTHER, &entries("https://a")));
        assert!(with.contains("current-context: home\n"), "the current context is the user's");
        let left: Vec<&str> = with.lines().filter(|line| OTHER.lines().any(|old| old == *line)).collect();
        assert!(OTHER.lines().all(|line| left.contains(&line)), "{with}");
        assert!(with.contains("  - name: prod\n    context:\n"), "as the list is indented: {with}");
        assert_eq!(put(&with, &entries("https://a")).unwrap(), with);
        let moved = put(&with, &entries("https://b")).unwrap();
        assert!(has(&moved, &entries("https://b")) && !moved.contains("https://a"));
        assert_eq!(take_out(&moved, "prod").unwrap(), OTHER);
        assert_eq!(find_section(OTHER, "home").unwrap(), Some("clusters"));
        assert_eq!(find_section(OTHER, "prod").unwrap(), None);
    }

    #[test]
    fn without_a_current_context_ours_is_it() {
        for text in [
            "",
            "# nothing yet\n",
            "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: null\nusers: []\ncurrent-context: \"\"\n",
            "{\"apiVersion\": \"v1\", \"kind\": \"Config\", \"clusters\": null}",
        ] {
            let with = put(text, &entries("https://a")).unwrap();
            let value = parse(&with).unwrap();
            assert_eq!((&value["current-context"], &value["kind"]), (&json!("prod"), &json!("Config")), "{with}");
            assert!(has(&with, &entries("https://a")), "{with}");
            let without = take_out(&with, "prod").unwrap();
            assert_eq!(parse(&without).unwrap()["current-context"], "", "{without}");
            assert_eq!(find_section(&without, "prod").unwrap(), None);
        }
    }

    #[test]
    fn kubectl_reads_the_result() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        fs_err::write(&file, put(OTHER, &entries("https://a")).unwrap()).unwrap();
        let kubectl = |words: &[&str]| {
            let run = crate::exec::Run::new("kubectl").arg("--kubeconfig").arg(&file).args(words).dir(dir.path());
            run.succeed().map(|output| output.stdout)
        };
        // Where this machine has one.
        let Ok(contexts) = kubectl(&["config", "get-contexts", "--output=name"]) else { return };
        assert_eq!(contexts.lines().collect::<Vec<_>>(), ["home", "prod"]);
        assert_eq!(kubectl(&["config", "current-context"]).unwrap().trim(), "home");
        kubectl(&["config", "use-context", "prod"]).unwrap();
        let server = ["config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"];
        assert_eq!(kubectl(&server).unwrap().trim(), "https://a");
        // kubectl has written the file its own way by now.
        let text = fs_err::read_to_string(&file).unwrap();
        fs_err::write(&file, take_out(&text, "prod").unwrap()).unwrap();
        assert_eq!(kubectl(&["config", "get-contexts", "--output=name"]).unwrap().trim(), "home");
        assert!(kubectl(&["config", "current-context"]).is_err());
    }

    #[test]
    fn what_cannot_be_edited_is_left_alone() {
        let flow = "apiVersion: v1\nclusters: [{name: home, cluster: {}}]\n";
        assert!(put(flow, &entries("https://a")).unwrap_err().message().contains("without touching the rest"));
        assert!(put("clusters: [\n", &entries("https://a")).is_err());
        assert!(put("- a\n", &entries("https://a")).is_err());
    }
}
