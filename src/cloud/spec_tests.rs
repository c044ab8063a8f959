//! What every cloud refuses, and how names are made to fit.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use crate::config::TreeSource;

use super::*;

const SEVERAL: (&str, &str) = ("phase1.control_plane.count", "3");

fn spec(target: &str, changes: &[(&str, &str)]) -> Result<Spec> {
    let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
    settings.set("phase1.cloud_provider", target).unwrap();
    if target == "gce" {
        settings.set("phase1.gce.project", "a-project").unwrap();
    }
    settings.set_all(changes).unwrap();
    Spec::find(&settings).map(Option::unwrap)
}

#[test]
fn a_way_to_the_api_server_that_leads_nowhere_is_refused() {
    const OWN: (&str, &str) = ("phase1.dns.private_zone", "y");
    const ZONE: (&str, &str) = ("phase1.dns.zone", "k8s-example-com");
    const INSIDE: (&str, &str) = ("phase1.api.external", "n");
    const ELSEWHERE: (&str, &str) = ("phase1.api.host", "api.example.com");
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("gce", &[("phase1.api.exposure", "dns")]),
        ("aws", &[("phase1.api.exposure", "dns"), SEVERAL]),
        ("azure", &[("phase1.api.exposure", "dns"), ("phase1.dns.domain", "k8s.example.com")]),
        ("aws", &[("phase1.api.exposure", "dns"), ("phase1.dns.provider", "route53"), OWN, INSIDE, ELSEWHERE]),
        ("gce", &[("phase1.api.exposure", "dns"), ("phase1.dns.provider", "clouddns"), OWN, INSIDE, ELSEWHERE]),
        ("gce", &[("phase1.api.exposure", "dns"), ("phase1.dns.provider", "clouddns"), OWN]),
    ];
    let told = cases.map(|(target, changes)| spec(target, changes).unwrap_err().render());
    insta::assert_snapshot!(told.join("\n"));
    for target in crate::cloud::CLOUDS.iter().map(|cloud| cloud.name()) {
        let named = [("phase1.api.exposure", "dns"), ("phase1.api.host", "api.example.com")];
        assert_eq!(spec(target, &named).unwrap().api.host, "api.example.com", "their own record");
        let without = spec(target, &[SEVERAL, ("phase1.api.internal_load_balancer", "n")]).unwrap();
        assert!(without.has_outer_balancer() && !without.has_inner_balancer(), "nodes have balancers of their own");
        // Without an outer one the inner load balancer is made whatever the setting says.
        spec(target, &[SEVERAL, ("phase1.api.internal_load_balancer", "n"), ("phase1.api.external", "n")]).unwrap();
        spec(target, &[("phase1.api.exposure", "load-balancer"), ("phase1.api.internal_load_balancer", "n")]).unwrap();
    }
    // Nodes do not come by the name, so its clients are the only ones to let in.
    let office = ("phase1.api.allowed_cidrs", "203.0.113.0/24");
    let by_name = [("phase1.api.exposure", "dns"), ("phase1.dns.provider", "clouddns"), ZONE, SEVERAL, office];
    spec("gce", &by_name).unwrap();
}

#[test]
fn a_name_that_is_too_long_stays_its_own() {
    assert_eq!(fit("prod", 10), "prod");
    let (one, two) = (fit("a-cluster-with-a-name-one", 20), fit("a-cluster-with-a-name-two", 20));
    assert!(one.len() <= 20 && two.len() <= 20 && one != two && one.starts_with("a-cluster-"), "{one} {two}");
    assert_eq!(fit("a-cluster-with-a-name-one", 20), one);
}
