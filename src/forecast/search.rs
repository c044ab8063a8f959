//! The search for the settings that decide which values of a node config: by trials of other
//! values, many at a time. Knows nothing of what a setting is for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Forecast;
use super::affected::node_place;
use super::compare::{Trace, Way, traces};
use super::origin::{Origins, parse};
use super::pools::{self, Knowledge, Pools};
use crate::config::{ChangeEffect, Setting, Settings};
use crate::error::Result;
use crate::node::layout;

impl Forecast {
    /// Which settings decide which values of a node, found by trial.
    pub fn origins(&self, settings: &Settings, node: &str) -> Result<Origins> {
        let mut search = Search::new(self, settings, node);
        let (mut elsewhere, mut acting) = (Vec::new(), Vec::new());
        for Setting { name, .. } in settings.list() {
            // What changes no host stands in no node config.
            let is_elsewhere = settings.effect(name)? == Some(ChangeEffect::None);
            let list = if is_elsewhere { &mut elsewhere } else { &mut acting };
            list.push(Untried { name: name.clone(), values: settings.other_values(name)? });
        }
        search.try_pools(&mut acting);
        search.try_rounds(elsewhere);
        search.try_rounds(acting);
        Ok(search.origins)
    }
}

/// A setting with another value than it has.
type Trial = (String, String);

/// Which differences a trial has shown; none where its values alter nothing or are wrong, or the
/// node would not be there at all. An error where they cannot be turned up.
type Shown<T> = Result<Option<BTreeSet<T>>>;

/// Trials that were made together, and where something differed.
type Pool = (Vec<Trial>, BTreeSet<Way>);

/// A setting with the values that no trial has had yet, in their order.
struct Untried {
    name: String,
    values: Vec<String>,
}

impl Untried {
    fn next(&mut self) -> Option<Trial> {
        (!self.values.is_empty()).then(|| (self.name.clone(), self.values.remove(0)))
    }

    fn give_back(&mut self, (_, value): Trial) {
        self.values.insert(0, value);
    }
}

/// The search for origins. The first value of each setting is tried in pools, which tell what it
/// reaches. The others are tried together, and in parts where anything differs that none of them is
/// known to reach, nor names in a `sets` comment.
struct Search<'a> {
    forecast: &'a Forecast,
    settings: &'a Settings,
    node: &'a str,
    /// The node config that the settings make, and what is in it.
    own: (&'a str, Value),
    origins: Origins,
}

/// A setting that reaches more values than these would hide what others reach.
const FAR: usize = 8;

impl<'a> Search<'a> {
    fn new(forecast: &'a Forecast, settings: &'a Settings, node: &'a str) -> Self {
        let own = forecast.files.get(&Forecast::node_file(node)).map_or("", String::as_str);
        Self {
            forecast,
            settings,
            node,
            own: (own, parse(own)),
            origins: Origins { reached: BTreeMap::new(), trials: 0 },
        }
    }

    /// The next value of each of these settings that would alter something, and is right beside
    /// the others: a wrong one would spoil their trials. What is right by itself alone has its turn
    /// in another round.
    fn next_round(&self, settings: &mut [Untried]) -> Vec<Trial> {
        let next = |untried: &mut Untried| {
            std::iter::from_fn(|| untried.next()).find(|(name, value)| self.settings.would_alter(name, value))
        };
        let mut round: Vec<Option<Trial>> = settings.iter_mut().map(next).collect();
        loop {
            let together: Vec<Trial> = round.iter().flatten().cloned().collect();
            let wrong = self.find_wrong(&together);
            if wrong.is_empty() || together.len() < 2 {
                return together;
            }
            for (trial, untried) in round.iter_mut().zip(settings.iter_mut()) {
                let is_wrong = trial.as_ref().is_some_and(|(name, _)| wrong.contains(name));
                let Some((name, value)) = trial.take_if(|_| is_wrong) else { continue };
                if self.settings.may_be(&name, &value) {
                    untried.give_back((name, value));
                } else {
                    *trial = next(untried);
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

    /// Tries values until one can be turned up, and all where the setting reaches far.
    fn try_alone(&mut self, untried: &mut Untried) {
        while let Some(trial) = untried.next() {
            let Ok(Some(ways)) = self.differences(std::slice::from_ref(&trial)) else { continue };
            let reached = self.origins.reached.entry(trial.0).or_default();
            reached.extend(ways);
            if reached.len() <= FAR {
                break;
            }
        }
    }

    /// Tries the first value of each of these settings in pools, and alone only where the pools do
    /// not tell what it reaches.
    fn try_pools(&mut self, settings: &mut [Untried]) {
        let firsts = self.next_round(settings);
        let has_first = |untried: &&Untried| firsts.iter().any(|(name, _)| *name == untried.name);
        let others = settings.iter().filter(|untried| !has_first(untried));
        let mut alone: BTreeSet<String> = others.map(|untried| untried.name.clone()).collect();
        let (pools, tried) = self.show_pools(&firsts, &mut alone);
        let mut settled = BTreeSet::new();
        loop {
            for untried in settings.iter_mut().filter(|untried| alone.contains(&untried.name)) {
                if let Some(first) = firsts.iter().find(|(name, _)| *name == untried.name) {
                    untried.give_back(first.clone());
                }
                self.try_alone(untried);
            }
            settled.append(&mut alone);
            let known = Known { firsts: &firsts, reached: &self.origins.reached, settled: &settled };
            let decoded = pools.decode(&known);
            for (item, trace) in decoded.shown {
                self.origins.reached.entry(firsts[item].0.clone()).or_default().insert(trace.way);
            }
            if decoded.open.is_empty() {
                break;
            }
            alone = decoded.open.into_iter().map(|item| firsts[item].0.clone()).collect();
        }
        for untried in settings.iter_mut().filter(|untried| !settled.contains(&untried.name)) {
            if self.origins.reached.get(&untried.name).is_some_and(|reached| reached.len() > FAR) {
                self.try_alone(untried);
            }
        }
        for (trials, ways) in tried {
            if !self.is_explained(&trials, &ways) {
                self.try_together(&trials);
            }
        }
    }

    /// What pools of these trials show. Those that spoil a pool, or would need as many, are to be tried
    /// alone.
    fn show_pools(&mut self, firsts: &[Trial], alone: &mut BTreeSet<String>) -> (Pools<Trace>, Vec<Pool>) {
        let (mut pools, mut tried) = (Pools::new(), Vec::new());
        let mut waiting = pools::design(firsts.len());
        if waiting.len() >= firsts.len() {
            alone.extend(firsts.iter().map(|(name, _)| name.clone()));
        }
        while let Some(mut pool) = waiting.pop() {
            pool.retain(|item| !alone.contains(&firsts[*item].0));
            let trials: Vec<Trial> = pool.iter().map(|item| firsts[*item].clone()).collect();
            match (self.traces(&trials), &trials[..]) {
                (Ok(None), []) => {}
                (Ok(Some(traces)), _) => {
                    tried.push((trials, traces.iter().map(|trace| trace.way.clone()).collect()));
                    pools.add(pool.into_iter(), traces);
                }
                (_, [(name, _)]) => drop(alone.insert(name.clone())),
                (found, _) => {
                    let suspects = self.find_refused(&trials, &found);
                    if suspects.is_empty() || suspects.len() > pool.len() / 4 {
                        waiting.push(pool.split_off(pool.len() / 2));
                    } else {
                        alone.extend(suspects);
                    }
                    waiting.push(pool);
                }
            }
        }
        (pools, tried)
    }

    /// All values of these settings: the next one of each together.
    fn try_rounds(&mut self, mut settings: Vec<Untried>) {
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
        if let [(name, value)] = trials {
            let ways = found.ok().flatten().unwrap_or_default();
            return self.origins.reached.entry(name.clone()).or_default().extend(ways);
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

    /// Those of these settings that an error is about, or else those nearest to it in the menus.
    fn find_refused<T>(&self, trials: &[Trial], found: &Shown<T>) -> BTreeSet<String> {
        let refused = match found {
            Ok(_) => self.settings.find_wrong(&pairs(trials)),
            Err(error) => self.settings.as_problem(error).symbol.into_iter().collect(),
        };
        let nearness = |name: &str| refused.iter().map(|other| count_shared(name, other)).max().unwrap_or(0);
        // All of a phase share the first part.
        nearest(trials, nearness, 2)
    }

    /// Those of these settings that have the name of a value that none of them is known to reach, or
    /// else those that are known to reach what is next to it: another value of a setting reaches what
    /// is near by.
    fn find_neighbors(&self, trials: &[Trial], ways: &BTreeSet<Way>) -> BTreeSet<String> {
        let open: Vec<&Way> = ways.iter().filter(|way| !self.is_known(trials, way)).collect();
        let shared = |left: &Way, right: &Way| left.iter().zip(right).take_while(|(left, right)| left == right).count();
        let nearness = |name: &str| {
            if open.iter().any(|way| is_name_of(name, way)) {
                return usize::MAX;
            }
            let known = self.origins.reached.get(name).into_iter().flatten();
            known.flat_map(|way| open.iter().map(move |open| shared(way, open))).max().unwrap_or(0)
        };
        nearest(trials, nearness, 1)
    }

    /// Whether all that differs is known, or named by one of these settings, which then is known to
    /// reach it.
    fn is_explained(&mut self, trials: &[Trial], ways: &BTreeSet<Way>) -> bool {
        let mut is_explained = true;
        for way in ways {
            if self.is_known(trials, way) {
                continue;
            }
            match self.who_names(trials, way) {
                Some(name) => drop(self.origins.reached.entry(name).or_default().insert(way.clone())),
                None => is_explained = false,
            }
        }
        is_explained
    }

    /// Whether one of these settings is known to reach a value.
    fn is_known(&self, trials: &[Trial], way: &Way) -> bool {
        let reached = trials.iter().filter_map(|(name, _)| self.origins.reached.get(name)).flatten();
        reached.into_iter().any(|known| way.starts_with(known))
    }

    /// The one of these settings that names the place in a `sets` comment; none where several do.
    fn who_names(&self, trials: &[Trial], way: &Way) -> Option<String> {
        let (kind, place) = node_place(way);
        let names = |name: &&String| {
            let destinations = self.settings.destinations(name).unwrap_or_default();
            destinations.iter().any(|destination| is_at(destination, kind, &place))
        };
        let mut naming = trials.iter().map(|(name, _)| name).filter(names);
        naming.next().filter(|_| naming.next().is_none()).cloned()
    }

    /// The values of the node that differ with these.
    fn differences(&mut self, trials: &[Trial]) -> Shown<Way> {
        Ok(self.traces(trials)?.map(|traces| traces.into_iter().map(|trace| trace.way).collect()))
    }

    fn traces(&mut self, trials: &[Trial]) -> Shown<Trace> {
        let Some(other) = self.node_with(trials)? else { return Ok(None) };
        self.origins.trials += 1;
        let (text, own) = &self.own;
        Ok(Some(if other == *text { BTreeSet::new() } else { traces(own, &parse(&other)) }))
    }

    fn node_with(&self, trials: &[Trial]) -> Result<Option<String>> {
        let Some(variant) = self.settings.assume(&pairs(trials)) else { return Ok(None) };
        self.forecast.node_with(&variant, self.node)
    }
}

/// What is known of the settings whose first values are tried in pools.
struct Known<'k> {
    firsts: &'k [Trial],
    reached: &'k BTreeMap<String, BTreeSet<Way>>,
    settled: &'k BTreeSet<String>,
}

impl Knowledge<Trace> for Known<'_> {
    fn knows(&self, item: usize, trace: &Trace) -> bool {
        let reached = self.reached.get(&self.firsts[item].0).into_iter().flatten();
        reached.into_iter().any(|known| trace.way.starts_with(known))
    }

    fn is_settled(&self, item: usize) -> bool {
        self.settled.contains(&self.firsts[item].0)
    }

    fn includes(&self, one: &Trace, other: &Trace) -> bool {
        other.way.starts_with(&one.way)
    }

    fn hides(&self, one: &Trace, other: &Trace) -> bool {
        one.way.len() < other.way.len() && other.way.starts_with(&one.way)
    }
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

/// Whether a value is called what the setting is: `cgroupDriver`, `cgroup_driver`.
fn is_name_of(setting: &str, way: &Way) -> bool {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let (_, own) = setting.rsplit_once('.').unwrap_or_default();
    way.last().is_some_and(|last| plain(last) == plain(own))
}

fn pairs(trials: &[Trial]) -> Vec<(&str, &str)> {
    trials.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Whether a destination (`kubelet maxPods`, `etcd --name`) is this place of a node, or around it.
fn is_at(destination: &str, kind: &str, place: &str) -> bool {
    match (kind, destination.split_once(' '), place.split_once(": ")) {
        ("flag", ..) => destination == place,
        ("file", Some((component, field)), Some((path, at))) => {
            let is_within = at.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            let is_requested = field.strip_prefix("request.").is_some_and(|resource| {
                at.ends_with(&format!(".resources.requests.{resource}")) && layout::static_pod(path) == Some(component)
            });
            is_requested || is_within && path.contains(&format!("/{component}/"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::super::compare::differences;
    use super::*;
    use crate::config::TreeSource;

    const NODE: &str = "kubernetes-worker-0";

    /// What every value of every setting alone reaches.
    fn try_each(forecast: &Forecast, settings: &Settings) -> Origins {
        let mut search = Search::new(forecast, settings, NODE);
        for Setting { name, .. } in settings.list() {
            for value in settings.other_values(name).unwrap() {
                let other = search.node_with(&[(name.clone(), value)]).ok().flatten();
                let ways = other.map(|other| differences(&search.own.1, &parse(&other))).unwrap_or_default();
                search.origins.trials += 1;
                search.origins.reached.entry(name.clone()).or_default().extend(ways);
            }
        }
        search.origins
    }

    #[test]
    fn few_node_configs_tell_what_one_for_each_value_would() {
        let (source, dir) = (TreeSource::embedded(), tempfile::tempdir().unwrap());
        let settings = Settings::defaults(&source).unwrap();
        let forecast = Forecast::of(&settings, &source, dir.path()).unwrap();
        let (few, each) = (forecast.origins(&settings, NODE).unwrap(), try_each(&forecast, &settings));
        assert!(few.trials <= 85 && each.trials > 2 * few.trials, "{} for {}", few.trials, each.trials);
        let text = &forecast.files[&Forecast::node_file(NODE)];
        let values = few.node_values(text);
        assert_eq!(values, each.node_values(text));
        let decided = values.iter().filter(|value| !value.settings.is_empty()).count();
        assert!(decided > 60, "{decided}");
    }
}
