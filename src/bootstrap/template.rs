//! The one way a template of the tree becomes text: a name without a value is an error.

use crate::config::TreeSource;
use crate::error::{Context as _, Result};

/// The text of the template at this path of the tree, with a newline at its end.
pub(crate) fn render(source: &TreeSource, path: &str, context: &minijinja::Value) -> Result<String> {
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    let text = source.read_text(path)?;
    // The engine drops the newline at the end.
    Ok(environment.render_str(&text, context).context(format!("cannot render {path}"))? + "\n")
}
