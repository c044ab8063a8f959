//! Settings by their types: what the text of a list, a map, records or a duration says. Every other
//! module reads them here.
//!
//! A value that has passed `check` can be read; the errors are for one that was given for a single
//! run or written without the check.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::format::parse_duration;
use super::people::own_user;
use super::relations::words;
use super::settings::Settings;
use crate::error::{Context as _, Error, Result};

impl Settings {
    /// The user of hosts; who runs turnup where none is named.
    pub fn ssh_user(&self) -> Result<String> {
        let user = self.get("phase1.ssh_user")?;
        Ok(if user.is_empty() { own_user() } else { user })
    }

    /// The number in a type of the caller's; 0 for one that does not count now.
    pub fn get_number<N: TryFrom<i64>>(&self, name: &str) -> Result<N>
    where
        N::Error: std::error::Error + Send + Sync + 'static,
    {
        N::try_from(self.get_int(name)?).context(format!("{name} is out of range"))
    }

    /// The value as one of the words of a type; none for one that does not count now.
    pub fn get_word<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let text = self.get(name)?;
        if text.is_empty() {
            return Ok(None);
        }
        let word = serde_json::from_value(serde_json::Value::String(text));
        word.map(Some).map_err(|error| Error::config(format!("{name}: {error}")).hint("turnup config check"))
    }

    /// The words of a list, `a,b`; none for one that does not count now.
    pub fn get_list(&self, name: &str) -> Result<Vec<String>> {
        Ok(words(&self.get(name)?))
    }

    /// The pairs of a map, `a=1,b=2`; none for one that does not count now.
    pub fn get_map(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let pair = |item: String| {
            let (key, value) = item.split_once('=').unwrap_or((&item, ""));
            (key.to_owned(), value.to_owned())
        };
        Ok(self.get_list(name)?.into_iter().map(pair).collect())
    }

    /// The elements of a list of records, each as its type reads it; none for one that does not
    /// count now.
    pub fn get_records<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>> {
        let text = self.get(name)?;
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let records = serde_json::from_str(&text);
        records.map_err(|error| Error::config(format!("{name}: {error}")).hint("turnup config check"))
    }

    /// The duration; none for one that does not count now.
    pub fn get_duration(&self, name: &str) -> Result<Option<Duration>> {
        let text = self.get(name)?;
        if text.is_empty() {
            return Ok(None);
        }
        let duration = parse_duration(&text);
        let wrong =
            || Error::config(format!("{name}: {text:?} is no duration such as 30m")).hint("turnup config check");
        duration.map(Some).ok_or_else(wrong)
    }
}
