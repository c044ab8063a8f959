//! The cluster that the answers describe, below the summary of the guide, drawn as `turnup config
//! picture` does.

use std::sync::Arc;

use kconfig::Config;

use crate::config::{Schema, Settings};
use crate::picture::{Glyphs, Picture};

/// The picture of these answers; none while they cannot be read, which the summary tells in words.
pub(super) fn of(schema: &Arc<Schema>, config: &Config<'_>) -> Option<Picture> {
    let mut settings = Settings::from_defaults(Arc::clone(schema));
    settings.adopt(config);
    Picture::of(&settings, None).ok()
}

/// Its lines, with one between them and what stands above.
pub(super) fn lines(picture: Option<&Picture>, is_ascii: bool, width: u16) -> Vec<String> {
    let glyphs = if is_ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
    let drawn = picture.map(|picture| picture.lines(usize::from(width), glyphs));
    drawn.map(|drawn| [vec![String::new()], drawn].concat()).unwrap_or_default()
}
