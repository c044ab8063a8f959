//! Profiles as the wizard knows them: what they are for, and what they say.

use kconfig::SymbolId;

use crate::config::{Profile, Schema, TARGET};

/// A profile and its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preset {
    pub(super) name: String,
    /// What it is for.
    pub(super) purpose: String,
    /// Where its hosts come from.
    pub(super) target: String,
    /// What it says besides that.
    pub(super) answers: Vec<(SymbolId, String)>,
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
