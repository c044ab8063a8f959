//! The cluster that the answers describe, below the summary of the guide, drawn as `turnup config
//! picture` does.

use std::sync::Arc;

use super::model::{Form, Model};
use crate::config::Settings;
use crate::picture::{Glyphs, Picture};

/// The picture, with a line between it and what stands above; nothing for a tree of other people,
/// and while the answers cannot be read, which the summary tells in words.
pub(super) fn lines(model: &Model, width: u16) -> Vec<String> {
    if model.form != Form::Object || model.target().is_empty() {
        return Vec::new();
    }
    let mut settings = Settings::from_defaults(Arc::clone(&model.schema));
    settings.adopt(&model.config);
    let glyphs = if model.ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
    let drawn = Picture::of(&settings, None).map(|picture| picture.lines(usize::from(width), glyphs));
    drawn.map(|drawn| [vec![String::new()], drawn].concat()).unwrap_or_default()
}
