//! Settings of the names that hosts keep in a DNS zone, which no single format judges: what has to
//! be given, whether the names are in the zone, and whether Terraform writes the same. Pure.

use super::problem::Problem;
use super::values::Values;

const PROVIDER: &str = "phase2.dns.provider";
const SERVER: &str = "phase2.dns.server";
const ZONE: &str = "phase2.dns.zone";
const ZONE_ID: &str = "phase2.dns.zone_id";
const DOMAIN: &str = "phase2.dns.domain";
const KEY_FILE: &str = "phase2.dns.key_file";

/// The provider that is no cloud.
const SERVERS: &str = "rfc2136";
/// The value of `phase1.dns.provider` with which Terraform writes no names.
const NO_ZONE: &str = "hosts";

/// Everything that is wrong with these settings.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let text = |name: &str| facts.text(name).unwrap_or_default();
    let is_cloud = ![SERVERS, ""].contains(&text(PROVIDER));
    let given = if is_cloud { format!("{PROVIDER} is {}", text(PROVIDER)) } else { format!("{SERVER} is set") };
    if !is_cloud && text(SERVER).is_empty() {
        return Vec::new();
    }
    let of_cloud = (ZONE_ID, "name the zone as its cloud does");
    let last = if is_cloud { of_cloud } else { (KEY_FILE, "name the file with the key of the zone") };
    let missing = [(ZONE, "name the zone, such as example.com"), last];
    let missing = missing.into_iter().filter(|(name, _)| text(name).is_empty());
    let mut problems: Vec<Problem> =
        missing.map(|(name, what)| Problem::of(name, format!("{given}: {what}"))).collect();
    let (zone, domain) = (text(ZONE), text(DOMAIN));
    if !zone.is_empty() && !domain.is_empty() && domain != zone && !domain.ends_with(&format!(".{zone}")) {
        problems.push(Problem::of(DOMAIN, format!("{domain} is not in the zone {zone} ({ZONE})")));
    }
    problems.extend(find_second_writer(&text));
    problems
}

/// Terraform and the hosts would write one name in turn.
fn find_second_writer<'t>(text: &impl Fn(&str) -> &'t str) -> Option<Problem> {
    let cluster = text("phase1.cluster_name");
    let own = |given: &str, domain: String| if given.is_empty() { domain } else { given.to_owned() };
    let of_hosts = format!("api.{}", own(text(DOMAIN), format!("{cluster}.{}", text(ZONE))));
    let by_terraform = own(text("phase1.api.host"), format!("api.{cluster}.{}", text("phase1.dns.domain")));
    let writes = ![NO_ZONE, ""].contains(&text("phase1.dns.provider"));
    (writes && of_hosts == by_terraform).then(|| {
        Problem::of(
            "phase1.dns.provider",
            format!("Terraform writes {by_terraform} as well as the hosts ({PROVIDER}): set it to hosts, or choose another {DOMAIN}"),
        )
    })
}
