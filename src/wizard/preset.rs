//! Profiles in the guide: their answers are the ones that the questions behind begin with.

use kconfig::SymbolId;

use super::model::Model;
use crate::config::{Profile, Schema, TARGET};

/// The question.
pub(super) const TITLE: &str = "Profile to start from";
/// The answer without a profile.
pub(super) const NONE: &str = "none";

/// A profile and its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preset {
    pub(super) name: String,
    /// What it is for.
    pub(super) purpose: String,
    /// Where its hosts come from.
    target: String,
    /// What it says besides that.
    answers: Vec<(SymbolId, String)>,
}

impl Preset {
    /// Of these profiles.
    pub(super) fn all(profiles: Vec<Profile>, schema: &Schema) -> Vec<Self> {
        let target = schema.tree().symbol(TARGET);
        let default = schema.config();
        let preset = |profile: Profile| {
            let (targets, answers): (Vec<_>, Vec<_>) =
                profile.answers(schema).into_iter().partition(|(symbol, _)| Some(*symbol) == target);
            let own = targets.into_iter().next().map(|(_, value)| value);
            let standard = || target.map_or_else(String::new, |target| default.value(target).to_owned());
            Self { target: own.unwrap_or_else(standard), name: profile.name, purpose: profile.purpose, answers }
        };
        profiles.into_iter().map(preset).collect()
    }
}

/// The profiles for the target as it is answered.
pub(super) fn offered(model: &Model) -> impl Iterator<Item = &Preset> {
    model.profiles.iter().filter(|preset| preset.target == model.target())
}

/// The profile of which all answers are given; of several the one that says most.
pub(super) fn current(model: &Model) -> Option<&Preset> {
    let holds = |preset: &&Preset| {
        let mut answers = preset.answers.iter();
        answers
            .all(|(symbol, value)| model.config.value(*symbol) == value && model.config.user_value(*symbol).is_some())
    };
    offered(model).filter(|preset| !preset.answers.is_empty()).filter(holds).max_by_key(|preset| preset.answers.len())
}

/// What is said of a choice.
pub(super) fn purpose(model: &Model, name: &str) -> String {
    let found = offered(model).find(|preset| preset.name == name);
    found.map_or_else(|| "Every setting at its default.".to_owned(), |preset| preset.purpose.clone())
}

/// Starts from another profile, or from none: the answers of the one before are forgotten.
pub(super) fn choose(model: &mut Model, name: &str) {
    let before = current(model).cloned();
    if before.as_ref().map_or(NONE, |preset| &preset.name) == name {
        return;
    }
    let after = offered(model).find(|preset| preset.name == name).cloned();
    let what = format!("the answers of the profile {name}");
    let changed = model.change(what, |config| {
        for (symbol, _) in before.iter().flat_map(|preset| &preset.answers) {
            config.unset(*symbol);
        }
        for (symbol, value) in after.iter().flat_map(|preset| &preset.answers) {
            config.assign(*symbol, value)?;
        }
        Ok(())
    });
    match changed {
        Ok(()) => model.stay_at(None),
        Err(why) => model.complain(why.to_string()),
    }
}

/// All choices with what is said of them.
pub(super) fn help(model: &Model) -> Vec<String> {
    let names = offered(model).map(|preset| preset.name.as_str()).chain([NONE]);
    names.map(|name| format!("{name}: {}", purpose(model, name))).collect()
}
