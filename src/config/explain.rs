//! Why a setting has its value, and what would have to change for another one. Secrets stay secret
//! in every answer.

use std::collections::BTreeSet;

use kconfig::explain::{Explanation, Plan, Reason};
use kconfig::{Config, SymbolId, SymbolType, Tri, explain};

use super::Settings;
use super::check::judge;
use super::format::Format;
use super::problem::{Problem, ProblemLevel};
use super::settings::spelled;
use crate::error::{Error, Result};

/// What stands between a setting and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WishWay {
    /// The setting.
    pub name: String,
    /// The value that was asked for; none for any.
    pub value: Option<String>,
    /// It has this value already.
    pub reached: bool,
    /// It has, or can be given it now.
    pub open: bool,
    /// What is in the way now.
    pub blocked: Vec<String>,
    /// Answers after which it works, in an order in which each is possible; none when no way was
    /// found.
    pub steps: Option<Vec<(String, String)>>,
}

impl Settings {
    /// All there is to say about a setting.
    pub fn explain(&self, name: &str) -> Result<Explanation> {
        let symbol = self.schema().find(name)?;
        let mut explanation = explain::explain(&self.config(), symbol);
        explanation.expected = self.schema().rule(symbol).format.as_ref().map(ToString::to_string);
        self.hide(&mut explanation);
        Ok(explanation)
    }

    /// Why a setting has its value, down to answers and defaults.
    pub fn why(&self, name: &str) -> Result<Reason> {
        let symbol = self.schema().find(name)?;
        let mut reason = explain::reason(&self.config(), symbol);
        self.hide_reason(&mut reason);
        Ok(reason)
    }

    /// What stands between a setting and a value, or, without one, being set at all.
    pub fn why_not(&self, name: &str, value: Option<&str>) -> Result<WishWay> {
        let symbol = self.schema().find(name)?;
        let config = self.config();
        let kind = self.schema().tree().get(symbol).kind;
        let wish = value.or(kind.is_logical().then_some("y")).map(|value| spelled(kind, value));
        let value = wish.as_deref();
        if let Some(why) = value.and_then(|value| judge(self.schema(), &config, symbol, value)) {
            return Err(Error::config(format!("{name} can never be that: {why}")));
        }
        let reached = value.is_some_and(|value| config.value(symbol) == value);
        let settable = |value: &str| config.clone().set(symbol, value).is_ok();
        let open = reached || value.map_or(config.visible(symbol) != Tri::N, settable);
        let found = explain::plan(&config, symbol, value);
        let steps = |plan: Plan| plan.steps.into_iter().map(|step| (step.name, step.value)).collect();
        let way = WishWay {
            name: name.to_owned(),
            reached,
            open,
            blocked: if open { Vec::new() } else { self.obstacles(name, symbol, value) },
            value: wish,
            steps: found.map(steps),
        };
        self.require_possible(way)
    }

    /// The way, when `set` takes it: conditions are not all that a value has to meet.
    fn require_possible(&self, mut way: WishWay) -> Result<WishWay> {
        let Some(steps) = way.steps.as_mut().filter(|steps| !steps.is_empty()) else { return Ok(way) };
        let Err(mut error) = self.after(steps) else { return Ok(way) };
        // What is asked for without a value may have to have one at once.
        let example = self.schema().find(&way.name).ok().and_then(|symbol| self.schema().rule(symbol).example.clone());
        if let Some(example) = example.filter(|_| way.value.is_none()) {
            steps.push((way.name.clone(), example));
            match self.after(steps) {
                Ok(_) => return Ok(way),
                Err(still) => error = still,
            }
        }
        if way.open {
            return Err(error);
        }
        way.blocked.push(format!("then it would be refused: {}", error.message()));
        way.blocked.extend(error.evidence_lines().iter().cloned());
        way.steps = None;
        Ok(way)
    }

    /// The same settings with these answers.
    pub fn after(&self, answers: &[(String, String)]) -> Result<Self> {
        let mut settings = self.clone();
        settings.set_all(&answers.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>())?;
        Ok(settings)
    }

    /// The same settings with other values of this one, one after the other; whether the user could
    /// set them now does not matter, but they alter something, and make nothing wrong that was not.
    pub fn variants(&self, name: &str) -> Result<Vec<Self>> {
        let values = self.other_values(name)?;
        Ok(values.iter().filter_map(|value| self.assume(&[(name, value)])).collect())
    }

    /// The same settings with these values, whether or not they could be set now; none where they
    /// alter nothing, or make something wrong that was not.
    #[must_use]
    pub fn assume(&self, values: &[(&str, &str)]) -> Option<Self> {
        let config = self.assumed(values)?;
        Some(self.evaluated(&config, self.judge_no_worse(&config)?))
    }

    /// Whether this value would alter something, and has the setting's type, range and format.
    #[must_use]
    pub fn would_alter(&self, name: &str, value: &str) -> bool {
        let Ok(symbol) = self.schema().find(name) else { return false };
        let is_right = |config: Config<'_>| judge(self.schema(), &config, symbol, value).is_none();
        self.assumed(&[(name, value)]).is_some_and(is_right)
    }

    /// Whether this value would alter something, and make nothing wrong that was not.
    #[must_use]
    pub fn may_be(&self, name: &str, value: &str) -> bool {
        self.assumed(&[(name, value)]).is_some_and(|config| self.judge_no_worse(&config).is_some())
    }

    /// The settings that these values would make wrong.
    #[must_use]
    pub fn find_wrong(&self, values: &[(&str, &str)]) -> Vec<String> {
        let judgement = self.assumed(values).map(|config| self.judge_all(&config)).unwrap_or_default();
        let wrong = judgement.into_iter().filter(|problem| problem.level == ProblemLevel::Error);
        wrong.filter_map(|problem| problem.symbol).collect()
    }

    /// Those of these settings that do not get their values, because others of these values take
    /// the question away.
    #[must_use]
    pub fn find_hidden(&self, values: &[(&str, &str)]) -> Vec<String> {
        let Some(config) = self.assumed(values) else { return Vec::new() };
        let is_asked = |symbol| config.visible(symbol) != Tri::N;
        let has = |name: &str, value: &str| {
            self.schema().find(name).is_ok_and(|symbol| is_asked(symbol) && config.value(symbol) == value)
        };
        values.iter().filter(|(name, value)| !has(name, value)).map(|(name, _)| (*name).to_owned()).collect()
    }

    /// The answers with these values, where they alter something.
    fn assumed(&self, values: &[(&str, &str)]) -> Option<Config<'static>> {
        let mut config = self.config();
        for (name, value) in values {
            config.assign(self.schema().find(name).ok()?, value).ok()?;
        }
        // No setting changes but by one of these that does: one that is not asked has no effect.
        let differs = |name: &str| {
            let symbol = self.schema().find(name).ok();
            symbol.is_some_and(|symbol| !self.has(name, config.value(symbol), config.is_written(symbol)))
        };
        values.iter().any(|(name, _)| differs(name)).then_some(config)
    }

    /// What is wrong with these answers, or worth knowing, unless more is wrong than here.
    fn judge_no_worse(&self, config: &Config<'_>) -> Option<Vec<Problem>> {
        let judgement = self.judge_all(config);
        (count_errors(&judgement) <= count_errors(&self.check())).then_some(judgement)
    }

    /// Values that a setting could have instead: all of switches and words, of numbers the
    /// bounds and the next one, of texts those that the tree names, and some of their format.
    pub fn other_values(&self, name: &str) -> Result<Vec<String>> {
        let symbol = self.schema().find(name)?;
        let (config, rule) = (self.config(), self.schema().rule(symbol));
        let mut values: Vec<String> = match self.schema().tree().get(symbol).kind {
            SymbolType::Bool => ["y", "n"].map(ToOwned::to_owned).into(),
            SymbolType::Tristate => ["y", "m", "n"].map(ToOwned::to_owned).into(),
            SymbolType::Int | SymbolType::Hex => {
                let (low, high) = config.range(symbol).unwrap_or((0, 1));
                let beside = config.value(symbol).parse().map_or(low, |value: i64| (value + 1).min(high));
                [low, high, beside].map(|number| number.to_string()).into()
            }
            _ => {
                let own = rule.example.iter().cloned().chain([String::new()]);
                let named = own.chain(explain::values_named_for(&config, symbol));
                named.chain(rule.format.iter().flat_map(Format::samples)).collect()
            }
        };
        let mut seen = BTreeSet::from([config.value(symbol).to_owned()]);
        values.retain(|value| seen.insert(value.clone()));
        Ok(values)
    }

    fn obstacles(&self, name: &str, symbol: SymbolId, value: Option<&str>) -> Vec<String> {
        let config = self.config();
        if config.visible(symbol) == Tri::N {
            return config.explain_visibility(symbol);
        }
        let refusal = value.and_then(|value| config.clone().set(symbol, value).err());
        refusal.map_or_else(Vec::new, |error| vec![error.to_string().replace(&format!("{name} "), "it ")])
    }

    /// Whether a setting is never to be shown.
    #[must_use]
    pub fn is_secret(&self, name: &str) -> bool {
        self.schema().tree().symbol(name).is_some_and(|symbol| self.schema().rule(symbol).secret)
    }

    fn hide(&self, explanation: &mut Explanation) {
        self.hide_reason(&mut explanation.reason);
        if self.is_secret(&explanation.name) {
            mask(&mut explanation.value);
            explanation.ignored.iter_mut().chain(&mut explanation.line).for_each(mask);
        }
        for link in [&mut explanation.selects, &mut explanation.implies].into_iter().flatten() {
            if self.is_secret(&link.name) {
                mask(&mut link.value);
            }
        }
    }

    fn hide_reason(&self, reason: &mut Reason) {
        if self.is_secret(&reason.name) {
            mask(&mut reason.value);
        }
        reason.because.iter_mut().for_each(|cause| self.hide_reason(cause));
    }
}

fn count_errors(problems: &[Problem]) -> usize {
    problems.iter().filter(|problem| problem.level == ProblemLevel::Error).count()
}

/// Hides a secret; that there is none may be seen.
fn mask(text: &mut String) {
    if !text.is_empty() {
        "(secret)".clone_into(text);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::TreeSource;
    use crate::config::setting::ComponentValue;

    #[test]
    fn every_way_is_one_that_set_takes() {
        let settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let hidden = settings.list().iter().filter(|setting| !setting.visible && setting.prompt.is_some());
        let mut ways = 0;
        for setting in hidden {
            let way = settings.why_not(&setting.name, None).unwrap();
            if let Some(steps) = way.steps {
                settings.after(&steps).unwrap();
                ways += 1;
            }
        }
        assert!(ways > 50, "{ways}");
    }

    #[test]
    fn what_set_refuses_has_no_way() {
        let settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        for (name, value) in [("phase1.control_plane.count", "2"), ("phase2.pod_cidr", "10.96.0.0/16")] {
            let refused = settings.clone().set(name, value).unwrap_err().render();
            assert_eq!(settings.why_not(name, Some(value)).unwrap_err().render(), refused);
        }
    }

    #[test]
    fn a_variant_keeps_what_was_given_for_this_run() {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let given = ComponentValue { place: "--set".into(), path: "kubelet.maxPods".into(), value: "50".into() };
        settings.remember_component_values(vec![given]);
        let variant = settings.assume(&[("phase2.api_port", "7443")]).unwrap();
        assert_eq!(variant.component_values(), settings.component_values());
        assert!(
            settings.assume(&[("phase1.gce.region", "europe-west1")]).is_none(),
            "nothing differs on hosts of this machine"
        );
        assert!(!settings.may_be("phase2.max_pods", "100000") && settings.may_be("phase2.max_pods", "100"));
    }
}
