//! Checks of the artifacts' settings that no single value tells.
//!
//! Pure: it judges values.

use super::problem::Problem;
use super::relations::words;
use super::runtime::is_registry;
use super::values::Values;

const ORDER: &str = "phase2.artifacts.order";
const REGISTRY: &str = "phase2.artifacts.image_registry";

/// Everything that is wrong with them.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let problem = |name: &'static str| move |why: String| Problem::of(name, why);
    let order = judge_order(facts).map(problem(ORDER));
    let registry = facts.text(REGISTRY).and_then(judge_registry).map(problem(REGISTRY));
    order.into_iter().chain(registry).collect()
}

/// Each source once, and all that are switched on.
fn judge_order(facts: &Values<'_, '_>) -> Option<String> {
    let order = words(facts.text(ORDER)?);
    if let Some(twice) = order.iter().enumerate().find_map(|(at, word)| order[..at].contains(word).then_some(word)) {
        return Some(format!("{twice} is named twice"));
    }
    let is_on =
        |name: &str| facts.text(&format!("phase2.artifacts.{name}")).is_some_and(|value| !["", "n"].contains(&value));
    let left_out = ["bundle", "mirror", "upstream", "source"]
        .into_iter()
        .find(|name| is_on(name) && !order.iter().any(|word| word == name))?;
    Some(format!("it leaves out {left_out}, which phase2.artifacts.{left_out} switches on"))
}

fn judge_registry(text: &str) -> Option<String> {
    let (registry, path) = text.split_once('/').unwrap_or((text, ""));
    let is_part = |part: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        part.bytes().all(known) && part.starts_with(|first: char| first.is_ascii_alphanumeric())
    };
    let is_path = path.is_empty() || path.trim_end_matches('/').split('/').all(is_part);
    // Without a dot or a port the first part would be taken for a user of Docker's registry.
    let is_host = is_registry(registry) && (registry.contains(['.', ':']) || registry == "localhost");
    (!(text.is_empty() || is_host && is_path))
        .then(|| format!("{text} is no registry with a path, such as registry.example.com:5000/k8s"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::config::{Settings, TreeSource};

    fn refused(changes: &[(&str, &str)]) -> String {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        settings.set_all(changes).err().map(|error| error.render()).unwrap_or_default()
    }

    #[test]
    fn a_source_that_is_switched_on_has_its_place() {
        assert_eq!(refused(&[(ORDER, "source,mirror")]), "", "what is switched off may be left out");
        assert!(
            refused(&[(ORDER, "mirror,bundle")])
                .contains("it leaves out source, which phase2.artifacts.source switches on")
        );
        let mirror = ("phase2.artifacts.mirror", "/srv/mirror");
        assert!(refused(&[mirror, (ORDER, "source")]).contains("leaves out mirror"));
        assert!(refused(&[(ORDER, "source,source")]).contains("source is named twice"));
    }

    #[test]
    fn a_registry_is_a_host_with_a_path() {
        for good in ["registry.example.com", "registry.example.com:5000/k8s", "a.example/b/c-d", "localhost/k8s"] {
            assert_eq!(refused(&[(REGISTRY, good)]), "", "{good}");
        }
        for bad in ["https://a.example", "team/k8s", "a.example/K8s", "a.example//b", "a.example:x/b"] {
            assert!(refused(&[(REGISTRY, bad)]).contains("is no registry with a path"), "{bad}");
        }
    }
}
