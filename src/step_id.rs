//! The id of a step: `<phase>/<step>`, and `<phase>/<step>@<host>` on one host. The one place that
//! puts it together and takes it apart; it knows no phase and no step.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The id of a step, on one host if it is a host step. Files and events have it as one text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepId {
    phase: Cow<'static, str>,
    step: Cow<'static, str>,
    host: Option<String>,
}

impl StepId {
    /// A step that is known by name.
    #[must_use]
    pub const fn of(phase: &'static str, step: &'static str) -> Self {
        Self { phase: Cow::Borrowed(phase), step: Cow::Borrowed(step), host: None }
    }

    /// A step of a phase.
    #[must_use]
    pub fn new(phase: &str, step: &str) -> Self {
        Self { phase: Cow::Owned(phase.to_owned()), step: Cow::Owned(step.to_owned()), host: None }
    }

    /// The same step on this host.
    #[must_use]
    pub fn on(&self, host: &str) -> Self {
        Self { host: Some(host.to_owned()), ..self.clone() }
    }

    /// The same step, on whichever host.
    #[must_use]
    pub fn on_any_host(&self) -> Self {
        Self { host: None, ..self.clone() }
    }

    /// The name of its phase.
    #[must_use]
    pub fn phase(&self) -> &str {
        &self.phase
    }

    /// Its name.
    #[must_use]
    pub fn step(&self) -> &str {
        &self.step
    }

    /// The host, of a host step.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }
}

/// `<phase>/<step>` of an id, and its host, without a copy: for events by the thousand.
#[must_use]
pub fn split_host(id: &str) -> (&str, Option<&str>) {
    id.split_once('@').map_or((id, None), |(step, host)| (step, Some(host)))
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.phase, self.step)?;
        self.host.as_ref().map_or(Ok(()), |host| write!(f, "@{host}"))
    }
}

impl FromStr for StepId {
    type Err = Error;

    fn from_str(id: &str) -> Result<Self, Error> {
        let (step, host) = split_host(id);
        match step.split_once('/') {
            Some((phase, step)) if !phase.is_empty() && !step.is_empty() && host != Some("") => {
                Ok(Self { host: host.map(str::to_owned), ..Self::new(phase, step) })
            }
            _ => Err(Error::usage(format!("{id:?} is not the id of a step; expected PHASE/STEP or PHASE/STEP@HOST"))),
        }
    }
}

impl TryFrom<String> for StepId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        id.parse()
    }
}

impl From<StepId> for String {
    fn from(id: StepId) -> Self {
        id.to_string()
    }
}

impl PartialEq<str> for StepId {
    fn eq(&self, other: &str) -> bool {
        other.parse().is_ok_and(|other: Self| other == *self)
    }
}

impl PartialEq<&str> for StepId {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn an_id_is_one_text_and_three_parts() {
        let id: StepId = "bootstrap/node-config@c-worker-0".parse().unwrap();
        assert_eq!((id.phase(), id.step(), id.host()), ("bootstrap", "node-config", Some("c-worker-0")));
        assert_eq!(id, StepId::of("bootstrap", "node-config").on("c-worker-0"));
        assert_eq!(id.on_any_host(), "bootstrap/node-config");
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(text, "\"bootstrap/node-config@c-worker-0\"");
        assert_eq!(serde_json::from_str::<StepId>(&text).unwrap(), id);
        for wrong in ["", "join", "/join", "bootstrap/", "bootstrap/join@"] {
            assert!(wrong.parse::<StepId>().is_err(), "{wrong}");
        }
    }
}
