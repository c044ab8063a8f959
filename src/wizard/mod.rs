//! The wizard: an Elm core over ratatui.
use std::path::Path;
use std::sync::Arc;
use crate::config::{Schema, Settings};
use crate::error::Result;
pub struct End;
impl End { pub fn describe(&self, _p: &Path) -> String { String::new() } }
pub fn run(_path: &Path, _schema: &Arc<Schema>, _settings: Option<Settings>) -> Result<End> { Ok(End) }
