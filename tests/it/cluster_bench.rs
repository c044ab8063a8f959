//! `turnup bench` for real, one small round: both sides reach every milestone, and nothing of
//! either is left. How fast they are, no test judges.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::Value;

use crate::cluster_support::Site;

#[test]
#[ignore = "two more clusters: make test-bench"]
fn turnup_and_kubeadm_reach_every_milestone() {
    let Some(site) = Site::of_cluster("bench", "10.124.9.0/24", 0) else { return };
    let subnets = ["--subnet", "10.124.9.0/24", "--peer-subnet", "10.124.10.0/24"];
    let round = ["bench", "--runs", "1", "--workers", "1", "--start", "preloaded", "--output", "json"];
    let report: Value = serde_json::from_str(&site.ok(&[&round[..], &subnets].concat()).out).unwrap();
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8, "seven milestones and the time for the hosts: {report}");
    for row in rows {
        for side in ["turnup", "kubeadm"] {
            assert!(row[side]["median"].as_f64() > Some(0.0), "{side} did not reach {}", row["name"]);
        }
    }
    assert!(!site.dir.join(".turnup-bench").exists(), "the clusters are gone");
}
