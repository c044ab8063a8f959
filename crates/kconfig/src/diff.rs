//! What differs between two `.config` files, and with a tree, which differences are decisions and
//! which follow from others.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::fragment;
use crate::value::{Origin, Tri};

/// One name that the two files do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name, without the prefix.
    pub name: String,
    /// The value in the first file, as written there; none when it has none.
    pub before: Option<String>,
    /// The value in the second file.
    pub after: Option<String>,
}

/// Differences in the order of the kernel's script: what is gone, what changed, what is new, each
/// sorted by name.
#[must_use]
pub fn diff(before: &str, after: &str, prefix: &str) -> Vec<Difference> {
    let read = |text: &str| -> BTreeMap<String, String> {
        fragment::parse(text, prefix).into_iter().map(|request| (request.name, request.value)).collect()
    };
    let (before, mut after) = (read(before), read(after));
    let (mut gone, mut changed) = (Vec::new(), Vec::new());
    for (name, value) in before {
        match after.remove(&name) {
            None => gone.push(Difference { name, before: Some(value), after: None }),
            Some(new) if new != value => {
                changed.push(Difference { name, before: Some(value), after: Some(new) });
            }
            Some(_) => {}
        }
    }
    let new = after.into_iter().map(|(name, value)| Difference { name, before: None, after: Some(value) });
    gone.into_iter().chain(changed).chain(new).collect()
}

impl Difference {
    /// As the kernel's script shows it: `-NAME value`, `+NAME value` or ` NAME old -> new`.
    #[must_use]
    pub fn to_line(&self) -> String {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => format!(" {} {before} -> {after}", self.name),
            (Some(before), None) => format!("-{} {before}", self.name),
            (None, after) => format!("+{} {}", self.name, after.as_deref().unwrap_or_default()),
        }
    }

    /// The new value as a line of a `.config`; none for what is gone.
    #[must_use]
    pub fn to_request(&self, prefix: &str) -> Option<String> {
        self.after.as_deref().map(|value| fragment::assignment(&self.name, value, prefix))
    }

    /// Why the value is what it is in the second file; both configurations are of one tree.
    #[must_use]
    pub fn explain(&self, before: &Config<'_>, after: &Config<'_>) -> Option<String> {
        let tree = after.tree();
        let symbol = tree.symbol(&self.name)?;
        let location = |span| tree.location(span);
        if self.after.is_none() || after.visible(symbol) == Tri::N && before.visible(symbol) != Tri::N {
            let why = after.explain_visibility(symbol);
            if !why.is_empty() {
                return Some(why.join("; "));
            }
        }
        match after.origin(symbol) {
            Origin::User if after.user_value(symbol) == before.user_value(symbol) => None,
            Origin::User if before.visible(symbol) == Tri::N => Some("set; it could not be set before".to_owned()),
            Origin::User => Some("set".to_owned()),
            Origin::Default { span } => Some(format!("its default counts ({})", location(span))),
            Origin::Select { by, span } => Some(format!("{} selects it ({})", tree.get(by).name, location(span))),
            Origin::Imply { by, span } => Some(format!("{} implies it ({})", tree.get(by).name, location(span))),
            Origin::Choice => Some("its choice decides".to_owned()),
            Origin::Unset => None,
        }
    }
}
