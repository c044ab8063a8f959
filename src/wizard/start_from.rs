//! The guide's question from which profile to start: its answers are the ones that the questions
//! behind begin with.

use kconfig::SymbolId;

use super::model::Model;
use super::preset::Preset;

/// The question.
pub(super) const TITLE: &str = "Profile to start from";
/// The answer without a profile.
pub(super) const NONE: &str = "none";

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

/// Remembers the profile of which all answers were given, as long as one of them is.
pub(super) fn follow(model: &mut Model) {
    if let Some(now) = current(model) {
        model.profile = Some(now.clone());
        return;
    }
    let is_said = |(symbol, value): &(SymbolId, String)| model.config.user_value(*symbol) == Some(value);
    let has_left = |preset: &Preset| preset.target != model.target() || !preset.answers.iter().any(is_said);
    if model.profile.as_ref().is_some_and(has_left) {
        model.profile = None;
    }
}

/// What that profile says of a setting, where it has another value.
pub(super) fn other_profile(model: &Model, symbol: SymbolId) -> Option<&str> {
    let mut answers = model.profile.iter().flat_map(|preset| &preset.answers);
    let said = answers.find(|(other, _)| *other == symbol).map(|(_, value)| value.as_str());
    said.filter(|value| model.differs(symbol, value))
}

/// Its name.
pub(super) fn current_name(model: &Model) -> &str {
    current(model).map_or(NONE, |preset| &preset.name)
}

/// The names of all choices.
pub(super) fn names(model: &Model) -> impl Iterator<Item = &str> {
    offered(model).map(|preset| preset.name.as_str()).chain([NONE])
}

/// What is said of a choice.
pub(super) fn purpose(model: &Model, name: &str) -> String {
    let found = offered(model).find(|preset| preset.name == name);
    found.map_or_else(|| "Every setting at its default.".to_owned(), |preset| preset.purpose.clone())
}

/// Starts from another profile, or from none: the answers of the one before are forgotten.
pub(super) fn choose(model: &mut Model, name: &str) {
    if current_name(model) == name {
        return;
    }
    let before = current(model).cloned();
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
    names(model).map(|name| format!("{name}: {}", purpose(model, name))).collect()
}
