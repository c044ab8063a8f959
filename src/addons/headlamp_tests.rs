//! Headlamp as it is applied.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::object::Object;
use super::tests::{differences, render_set};

const ADDON: &str = "headlamp";
const ON: [(&str, &str); 1] = [("phase3.headlamp", "y")];

#[test]
fn headlamp_as_it_is_applied() {
    insta::assert_snapshot!(render_set(ADDON, &ON).unwrap());
}

#[test]
fn settings_of_headlamp_are_its_flags_and_its_environment() {
    let chosen = [
        ("phase2.apiserver.oidc_issuer_url", "https://login.example.com/realms/staff"),
        ("phase2.apiserver.oidc_client_id", "lab"),
        ("phase3.headlamp_replicas", "2"),
        ("phase3.headlamp_base_url", "/headlamp"),
        ("phase3.headlamp_plugins", "y"),
        ("phase3.headlamp_single_sign_on", "y"),
        ("phase3.headlamp_scopes", "profile,email,groups"),
        ("phase3.headlamp_memory_limit", "1Gi"),
    ];
    insta::assert_snapshot!(differences(ADDON, &ON, &[&ON[..], &chosen].concat()));
}

/// What a user may do there is what the user's own token may.
#[test]
fn headlamp_has_no_rights_of_its_own() {
    let objects = Object::read(&render_set(ADDON, &ON).unwrap()).unwrap();
    let kinds: Vec<&str> = objects.iter().map(|(object, _)| object.kind.as_str()).collect();
    assert_eq!(kinds, ["ServiceAccount", "Service", "Deployment"]);
}
