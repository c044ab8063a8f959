//! The one way a template of the tree becomes text: a name without a value is an error.

use crate::config::TreeSource;
use crate::error::{Context as _, Result};

/// The text of the template at this path of the tree, with a newline at its end.
pub(crate) fn render(source: &TreeSource, path: &str, context: &minijinja::Value) -> Result<String> {
    let cannot = || format!("cannot render {path}");
    let environment = source.parse(path, |text| {
        let mut environment = minijinja::Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        environment.add_template_owned(path.to_owned(), text.to_owned()).context(cannot())?;
        Ok(environment)
    })?;
    let template = environment.get_template(path).context(cannot())?;
    // The engine drops the newline at the end.
    Ok(template.render(context).context(cannot())? + "\n")
}
