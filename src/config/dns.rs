//! Settings of the names that hosts keep in a DNS zone, which no single format judges: what has to
//! be given, and whether the names are in the zone. Pure.

use super::problem::Problem;
use super::values::Values;

const SERVER: &str = "phase2.dns.server";
const ZONE: &str = "phase2.dns.zone";
const DOMAIN: &str = "phase2.dns.domain";
const KEY_FILE: &str = "phase2.dns.key_file";

/// Everything that is wrong with these settings.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let text = |name: &str| facts.text(name).unwrap_or_default();
    if text(SERVER).is_empty() {
        return Vec::new();
    }
    let missing = [(ZONE, "name the zone, such as example.com"), (KEY_FILE, "name the file with the key of the zone")];
    let missing = missing.into_iter().filter(|(name, _)| text(name).is_empty());
    let mut problems: Vec<Problem> =
        missing.map(|(name, what)| Problem::of(name, format!("{SERVER} is set: {what}"))).collect();
    let (zone, domain) = (text(ZONE), text(DOMAIN));
    if !zone.is_empty() && !domain.is_empty() && domain != zone && !domain.ends_with(&format!(".{zone}")) {
        problems.push(Problem::of(DOMAIN, format!("{domain} is not in the zone {zone} ({ZONE})")));
    }
    problems
}
