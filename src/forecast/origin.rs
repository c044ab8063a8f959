//! Which settings decide the values of a node config, found by trial.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Forecast;
use super::affected::{node_place, unfold};
use super::compare::{NAMES, Way, differences, members};
use super::reach::{self, Reach};
use crate::config::{ChangeEffect, Setting, Settings};
use crate::error::Result;
use crate::node::node_config::{Content, NodeConfig};

/// One value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeValue {
    /// What and where: `flag kubelet --node-ip`.
    pub place: String,
    /// The value; of a text of several lines, how many.
    pub value: String,
    /// The settings with which it changes.
    pub settings: BTreeSet<String>,
}

impl Forecast {
    /// The file of a node config.
    #[must_use]
    pub fn node_file(node: &str) -> String {
        crate::bootstrap::node_config::file_of(node)
    }

    /// Which settings decide which values of a node, found by trial.
    pub fn origins(&self, settings: &Settings, node: &str) -> Result<Origins> {
        let Some(mut search) = Search::new(self, settings, node)? else { return Ok(Origins::default()) };
        let mut rounds = Vec::new();
        for Setting { name, .. } in settings.list() {
            let expected = search.expected.get(name).map(BTreeSet::len);
            // What changes no host stands in no node config.
            if settings.effect(name)? == Some(ChangeEffect::None) && expected.unwrap_or_default() == 0 {
                continue;
            }
            let mut values = search.values(name)?;
            // What reaches far would hide what the others reach.
            if expected.is_none_or(|values| values > FAR) {
                search.try_alone(&mut values);
            }
            rounds.push(values);
        }
        search.try_rounds(rounds);
        Ok(search.origins)
    }

    /// The same node in another forecast with these hosts, which may have given it another name.
    pub(super) fn counterpart<'a>(&self, node: &'a str, hosts: &BTreeSet<&'a str>) -> Option<&'a str> {
        if hosts.contains(node) || hosts.len() != self.hosts.len() {
            return Some(node);
        }
        let at = self.hosts.keys().position(|name| name == node)?;
        hosts.iter().nth(at).copied()
    }
}

/// What trials have shown of the values of one node.
#[derive(Debug, Default)]
pub struct Origins {
    /// Each setting with the ways to the values that change with it.
    reached: Reach,
    /// How many node configs were computed for it.
    pub trials: usize,
}

/// Parts of a way that name an element of the node config: `files`, `/etc/hosts`.
const ELEMENT: usize = 2;

impl Origins {
    /// All values of the node config in `text`, each with the settings that change it.
    #[must_use]
    pub fn node_values(&self, text: &str) -> Vec<NodeValue> {
        let mut leaves = Vec::new();
        collect_leaves(&parse(text), &mut Way::new(), &mut leaves);
        // By the element of the node config that they are in, of which there are hundreds.
        let mut near: BTreeMap<&[String], Vec<(&String, &Way)>> = BTreeMap::new();
        for (name, way) in self.reached.iter().flat_map(|(name, reached)| reached.iter().map(move |way| (name, way))) {
            near.entry(&way[..way.len().min(ELEMENT)]).or_default().push((name, way));
        }
        let touches = |one: &[String], other: &[String]| one.starts_with(other) || other.starts_with(one);
        let origin = |way: &Way| -> BTreeSet<String> {
            let near = near.iter().filter(|(element, _)| touches(way, element)).flat_map(|(_, reached)| reached);
            near.filter(|(_, changed)| touches(way, changed)).map(|(name, _)| (*name).clone()).collect()
        };
        leaves.into_iter().map(|(way, value)| NodeValue { place: label(&way), settings: origin(&way), value }).collect()
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).map(unfold).unwrap_or_default()
}

/// A setting with another value than it has.
type Trial = (String, String);

/// Which values differ in a trial; none where it alters nothing or is wrong, or the node would not
/// be there at all. An error where it cannot be turned up.
type Shown = Result<Option<BTreeSet<Way>>>;

/// The search for origins. Values of many settings are tried together, and in parts where anything
/// differs that none of them is known or expected to reach.
struct Search<'a> {
    forecast: &'a Forecast,
    settings: &'a Settings,
    node: &'a str,
    /// The node config that the settings make.
    own: NodeConfig,
    /// What settings reach where all others have their defaults.
    expected: Reach,
    origins: Origins,
}

/// A setting that reaches more values than these would hide what others reach.
const FAR: usize = 8;

impl<'a> Search<'a> {
    /// None where the node is not known before its hosts are.
    fn new(forecast: &'a Forecast, settings: &'a Settings, node: &'a str) -> Result<Option<Self>> {
        let Some(own) = forecast.node_with(settings, node)? else { return Ok(None) };
        let expected = forecast.hosts.get(node).map(|role| reach::of_defaults(*role)).unwrap_or_default();
        Ok(Some(Self { forecast, settings, node, own, expected, origins: Origins::default() }))
    }

    /// The other values of a setting, the last one first.
    fn values(&self, name: &str) -> Result<Vec<Trial>> {
        let values = self.settings.other_values(name)?.into_iter().rev();
        Ok(values.map(|value| (name.to_owned(), value)).collect())
    }

    /// The next value of each of these settings that would alter something, and is right and not
    /// hidden beside the others: a wrong one would spoil their trials. What is right by itself has
    /// its turn in another round.
    fn next_round(&self, settings: &mut [Vec<Trial>]) -> Vec<Trial> {
        let next = |values: &mut Vec<Trial>, is_fit: &dyn Fn(&str, &str) -> bool| {
            std::iter::from_fn(|| values.pop()).find(|(name, value)| is_fit(name, value))
        };
        let alters = |name: &str, value: &str| self.settings.would_alter(name, value);
        let mut round: Vec<Option<Trial>> = settings.iter_mut().map(|values| next(values, &alters)).collect();
        loop {
            let together: Vec<Trial> = round.iter().flatten().cloned().collect();
            let mut unfit = self.find_wrong(&together);
            if unfit.is_empty() {
                unfit = self.settings.find_hidden(&pairs(&together));
            }
            if unfit.is_empty() || together.len() < 2 {
                return together;
            }
            for (at, trial) in round.iter_mut().enumerate() {
                let is_unfit = trial.as_ref().is_some_and(|(name, _)| unfit.contains(name));
                let Some((name, value)) = trial.take_if(|_| is_unfit) else { continue };
                if self.settings.may_be(&name, &value) {
                    settings[at].push((name, value));
                } else {
                    // Often each value of it is wrong while others stay as they are.
                    *trial = next(&mut settings[at], &|name, value| self.settings.may_be(name, value));
                }
            }
        }
    }

    /// The settings whose values are wrong together: those that the mistakes are about, or else one
    /// without which there would be fewer.
    fn find_wrong(&self, trials: &[Trial]) -> Vec<String> {
        let mut wrong = self.settings.find_wrong(&pairs(trials));
        if wrong.is_empty() {
            return wrong;
        }
        wrong.retain(|name| trials.iter().any(|(one, _)| one == name));
        let mut part = trials;
        while wrong.is_empty() {
            let (left, right) = part.split_at(part.len() / 2);
            let half = [left, right].into_iter().find(|half| !self.settings.find_wrong(&pairs(half)).is_empty());
            match half {
                Some(half) if half.len() < part.len() => part = half,
                _ => wrong.extend(part.first().map(|(name, _)| name.clone())),
            }
        }
        wrong
    }

    /// Tries the first value that can be turned up, and more where the setting reaches far, until
    /// it is known to reach all that is expected.
    fn try_alone(&mut self, values: &mut Vec<Trial>) {
        while let Some(trial) = values.pop() {
            let Ok(Some(ways)) = self.differences(std::slice::from_ref(&trial)) else { continue };
            let name = trial.0;
            let reached = self.origins.reached.entry(name.clone()).or_default();
            reached.extend(ways);
            let is_expected = self.expected.get(&name).is_some_and(|expected| expected.is_subset(reached));
            if reached.len() <= FAR || is_expected {
                break;
            }
        }
    }

    /// All values of these settings: the next one of each together.
    fn try_rounds(&mut self, mut settings: Vec<Vec<Trial>>) {
        loop {
            let round = self.next_round(&mut settings);
            if round.is_empty() {
                return;
            }
            self.try_together(&round);
        }
    }

    fn try_together(&mut self, trials: &[Trial]) {
        let found = self.differences(trials);
        if let [(name, _)] = trials {
            let ways = found.ok().flatten().unwrap_or_default();
            return self.origins.reached.entry(name.clone()).or_default().extend(ways);
        }
        if let Some(refused) = self.find_refused_alone(trials, &found) {
            let others: Vec<Trial> = trials.iter().filter(|trial| *trial != refused).cloned().collect();
            return self.try_together(&others);
        }
        let halves = || (trials[..trials.len() / 2].to_vec(), trials[trials.len() / 2..].to_vec());
        let suspects = match &found {
            Ok(Some(ways)) if self.is_explained(trials, ways) => return,
            Ok(Some(ways)) => self.find_neighbors(trials, ways),
            found => self.find_refused(trials, found),
        };
        let (one, others): (Vec<Trial>, Vec<Trial>) =
            trials.iter().cloned().partition(|(name, _)| suspects.contains(name));
        let (one, others) = if one.is_empty() || others.is_empty() { halves() } else { (one, others) };
        self.try_together(&one);
        self.try_together(&others);
    }

    /// The one of these values that would be refused alone, too: the error is about its setting and
    /// names no other one.
    fn find_refused_alone<'t>(&self, trials: &'t [Trial], found: &Shown) -> Option<&'t Trial> {
        let error = found.as_ref().err()?;
        let about = self.settings.as_problem(error).symbol?;
        let said = [error.message()].into_iter().chain(error.evidence_lines().iter().map(String::as_str));
        let said: Vec<&str> = said.collect();
        let is_named = |name: &str| said.iter().any(|line| line.contains(name));
        let (refused, others): (Vec<&Trial>, Vec<&Trial>) = trials.iter().partition(|(name, _)| *name == about);
        refused.into_iter().next().filter(|_| !others.iter().any(|(name, _)| is_named(name)))
    }

    /// Those of these settings that an error is about, or else those nearest to it in the menus.
    fn find_refused(&self, trials: &[Trial], found: &Shown) -> BTreeSet<String> {
        let refused = match found {
            Ok(_) => self.settings.find_wrong(&pairs(trials)),
            Err(error) => self.settings.as_problem(error).symbol.into_iter().collect(),
        };
        let nearness = |name: &str| refused.iter().map(|other| count_shared(name, other)).max().unwrap_or(0);
        // All of a phase share the first part.
        nearest(trials, nearness, 2)
    }

    /// Those of these settings that are known to reach what is next to a value that none of them is
    /// known to reach: another value of a setting reaches what is near by.
    fn find_neighbors(&self, trials: &[Trial], ways: &BTreeSet<Way>) -> BTreeSet<String> {
        let open: Vec<&Way> = ways.iter().filter(|way| !self.is_known(trials, way)).collect();
        let shared = |left: &Way, right: &Way| left.iter().zip(right).take_while(|(left, right)| left == right).count();
        let nearness = |name: &str| {
            let known = self.origins.reached.get(name).into_iter().flatten();
            known.flat_map(|way| open.iter().map(move |open| shared(way, open))).max().unwrap_or(0)
        };
        nearest(trials, nearness, 1)
    }

    /// Whether all that differs is known or expected. All of these settings that are expected to
    /// reach a value that differs are taken to do so.
    fn is_explained(&mut self, trials: &[Trial], ways: &BTreeSet<Way>) -> bool {
        let mut is_explained = true;
        for way in ways {
            let is_known = self.is_known(trials, way);
            let is_expected = |name: &&String| self.expected.get(*name).is_some_and(|reached| is_within(way, reached));
            let expected: Vec<&String> = trials.iter().map(|(name, _)| name).filter(is_expected).collect();
            is_explained &= is_known || !expected.is_empty();
            for name in expected {
                self.origins.reached.entry(name.clone()).or_default().insert(way.clone());
            }
        }
        is_explained
    }

    /// Whether one of these settings is known to reach a value.
    fn is_known(&self, trials: &[Trial], way: &Way) -> bool {
        trials.iter().filter_map(|(name, _)| self.origins.reached.get(name)).any(|reached| is_within(way, reached))
    }

    /// What differs with these values.
    fn differences(&mut self, trials: &[Trial]) -> Shown {
        let Some(variant) = self.settings.assume(&pairs(trials)) else { return Ok(None) };
        let Some(other) = self.forecast.node_with(&variant, self.node)? else { return Ok(None) };
        self.origins.trials += 1;
        let (own, other) = blank_same(&self.own, other);
        Ok(Some(differences(&unfold(json!(own)), &unfold(json!(other)))))
    }
}

/// Whether a value is one of these, or in one of them.
fn is_within(way: &Way, reached: &BTreeSet<Way>) -> bool {
    reached.iter().any(|known| way.starts_with(known))
}

/// Both node configs without what is long and the same in both: nearly all.
fn blank_same(own: &NodeConfig, mut other: NodeConfig) -> (NodeConfig, NodeConfig) {
    let mut own = own.clone();
    for file in &mut own.files {
        if let Some(same) = other.files.iter_mut().find(|other| *other == file) {
            (file.content, same.content) = (Content::Text(String::new()), Content::Text(String::new()));
        }
    }
    for unit in &mut own.units {
        if let Some(same) = other.units.iter_mut().find(|other| *other == unit) {
            unit.text.clear();
            same.text.clear();
        }
    }
    (own, other)
}

/// Those of these settings that are nearest, at least so near.
fn nearest(trials: &[Trial], nearness: impl Fn(&str) -> usize, least: usize) -> BTreeSet<String> {
    let all: Vec<(&String, usize)> = trials.iter().map(|(name, _)| (name, nearness(name))).collect();
    let most = all.iter().map(|(_, nearness)| *nearness).max().unwrap_or(0).max(least);
    all.into_iter().filter(|(_, nearness)| *nearness == most).map(|(name, _)| name.clone()).collect()
}

/// How many parts of their names two settings share from the beginning, one more where all.
fn count_shared(left: &str, right: &str) -> usize {
    let shared = left.split('.').zip(right.split('.')).take_while(|(left, right)| left == right).count();
    shared + usize::from(left == right)
}

fn pairs(trials: &[Trial]) -> Vec<(&str, &str)> {
    trials.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The place, and which of its values it is where it has several.
fn label(way: &[String]) -> String {
    let (kind, name) = node_place(way);
    match way {
        [_, _, content, secret, field] if content == "content" && secret == "secret" => {
            format!("{kind} {name} secret {field}")
        }
        [list, _, field, ..] if ["content", "text"].contains(&field.as_str()) || list == "sysctls" => {
            format!("{kind} {name}")
        }
        [_, _, field, ..] => format!("{kind} {name} {field}"),
        _ => format!("{kind} {name}"),
    }
}

fn collect_leaves(value: &Value, way: &mut Way, leaves: &mut Vec<(Way, String)>) {
    let Some(members) = members(value).filter(|members| !members.is_empty()) else {
        let is_name = way.last().is_some_and(|last| NAMES.contains(&last.as_str())) && way.len() > 2;
        if !(is_name && value.as_str() == way.get(way.len() - 2).map(String::as_str)) {
            leaves.push((way.clone(), shown(way, value)));
        }
        return;
    };
    for (name, value) in members {
        way.push(name.into_owned());
        collect_leaves(&value, way, leaves);
        way.pop();
    }
}

fn shown(way: &[String], value: &Value) -> String {
    match (value.as_str(), way) {
        (Some(text), [.., list, _]) if ["flags", "command"].contains(&list.as_str()) => {
            text.split_once('=').map_or(text, |(_, value)| value).to_owned()
        }
        (Some(text), _) if text.trim_end().contains('\n') => format!("({} lines)", text.lines().count()),
        (Some(text), _) => text.trim_end().to_owned(),
        (None, [.., field]) if field == "mode" => value.as_u64().map_or_else(String::new, |mode| format!("{mode:04o}")),
        (None, _) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::config::TreeSource;
    use crate::inventory::Role;

    const NODES: [&str; 2] = ["kubernetes-control-plane-0", "kubernetes-worker-0"];

    /// What every value of every setting alone reaches.
    fn try_each(forecast: &Forecast, settings: &Settings, node: &str) -> Origins {
        let mut search = Search::new(forecast, settings, node).unwrap().unwrap();
        for Setting { name, .. } in settings.list() {
            let mut reached = BTreeSet::new();
            for trial in search.values(name).unwrap() {
                reached.extend(search.differences(&[trial]).ok().flatten().unwrap_or_default());
            }
            search.origins.reached.insert(name.clone(), reached);
        }
        search.origins
    }

    /// Requires that the table says what was measured, or writes it.
    fn require_current(measured: &BTreeMap<Role, Reach>) {
        let text = format!("{}\n", serde_json::to_string_pretty(measured).unwrap());
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            fs_err::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/forecast/reach.json"), text).unwrap();
        } else {
            assert!(text == reach::TABLE, "src/forecast/reach.json is not what was measured: make reference writes it");
        }
    }

    #[test]
    fn few_node_configs_tell_what_one_for_each_value_would() {
        let (source, dir) = (TreeSource::embedded(), tempfile::tempdir().unwrap());
        let settings = Settings::defaults(&source).unwrap();
        let forecast = Forecast::of(&settings, &source, dir.path()).unwrap();
        let each = NODES.map(|node| try_each(&forecast, &settings, node));
        let of_roles = NODES.iter().zip(&each).map(|(node, each)| (forecast.hosts[*node], each.reached.clone()));
        require_current(&of_roles.collect());
        for (node, each) in NODES.iter().zip(&each) {
            let few = forecast.origins(&settings, node).unwrap();
            assert!(few.trials <= 45 && each.trials > 7 * few.trials, "{} for {}", few.trials, each.trials);
            let text = &forecast.files[&Forecast::node_file(node)];
            let values = few.node_values(text);
            assert_eq!(values, each.node_values(text));
            let decided = values.iter().filter(|value| !value.settings.is_empty()).count();
            assert!(decided > 60, "{decided}");
        }
    }
}
