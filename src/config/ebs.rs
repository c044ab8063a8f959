//! What Amazon EBS would not make of the settings of volumes: the limits are those of its
//! documentation ("Amazon EBS volume types"). Without this, claims would wait and only events of
//! the cluster would say why.
//!
//! Pure: it judges values.

use super::problem::Problem;
use super::values::Values;

const IOPS: &str = "phase3.ebs_iops";
const KEY: &str = "phase3.ebs_kms_key";
const REGION: &str = "phase1.aws.region";
/// What each volume of gp3 has in its price.
const GP3_IOPS: i64 = 3000;

/// Everything that is wrong with the settings of volumes.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    [check_iops(facts), check_throughput(facts), check_key(facts)].into_iter().flatten().collect()
}

fn check_iops(facts: &Values<'_, '_>) -> Option<Problem> {
    let (kind, iops) = (facts.text("phase3.ebs_type")?, facts.number(IOPS)?);
    let (least, most) = match kind {
        "gp3" if iops == 0 => return None,
        "gp3" => (GP3_IOPS, 80_000),
        "io1" => (100, 64_000),
        "io2" => (100, 256_000),
        _ => return None,
    };
    let wrong = !(least..=most).contains(&iops);
    wrong.then(|| Problem::of(IOPS, format!("{iops}: a volume of {kind} has from {least} to {most}")))
}

fn check_throughput(facts: &Values<'_, '_>) -> Option<Problem> {
    const LEAST: i64 = 125;
    let name = "phase3.ebs_throughput";
    let throughput = facts.number(name).filter(|throughput| *throughput > 0)?;
    if throughput < LEAST {
        return Some(Problem::of(
            name,
            format!("{throughput} is less than the {LEAST} that each volume has; 0 means those"),
        ));
    }
    let iops = facts.number(IOPS).filter(|iops| *iops > 0).unwrap_or(GP3_IOPS);
    let most = iops / 4;
    let why = format!("{throughput} need {} IOPS, and {iops} carry {most} ({IOPS})", throughput * 4);
    (throughput > most).then(|| Problem::of(name, why))
}

/// The right to a key is one to its own ARN: an alias may lead to another key tomorrow.
fn check_key(facts: &Values<'_, '_>) -> Option<Problem> {
    let arn = facts.text(KEY).filter(|arn| !arn.is_empty())?;
    let parts: Vec<&str> = arn.split(':').collect();
    let [start, _, "kms", region, _, key] = parts[..] else {
        return Some(Problem::of(KEY, format!("{arn} is not arn:aws:kms:REGION:ACCOUNT:key/ID")));
    };
    if start != "arn" || !key.starts_with("key/") {
        return Some(Problem::of(KEY, format!("{arn} is not arn:aws:kms:REGION:ACCOUNT:key/ID")));
    }
    let own = facts.text(REGION)?;
    (region != own).then(|| Problem::of(KEY, format!("the key is in {region}, and volumes in {own} ({REGION})")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use crate::config::{Settings, TreeSource};

    fn said(pairs: &[(&str, &str)]) -> String {
        let mut settings = Settings::defaults(&TreeSource::embedded()).unwrap();
        let on = [("phase1.cloud_provider", "aws"), ("phase3.cloud_storage", "y")];
        settings.set_all(&[&on, pairs].concat()).err().map_or_else(String::new, |error| error.message().to_owned())
    }

    #[test]
    fn what_ebs_would_not_make_is_refused() {
        let (kind, iops, throughput) = ("phase3.ebs_type", "phase3.ebs_iops", "phase3.ebs_throughput");
        let key = "phase3.ebs_kms_key";
        for (pairs, why) in [
            (&[(iops, "2999")][..], "phase3.ebs_iops: 2999: a volume of gp3 has from 3000 to 80000"),
            (&[(kind, "io2")], "phase3.ebs_iops: 0: a volume of io2 has from 100 to 256000"),
            (&[(kind, "io1"), (iops, "64001")], "phase3.ebs_iops: 64001: a volume of io1 has from 100 to 64000"),
            (
                &[(throughput, "100")],
                "phase3.ebs_throughput: 100 is less than the 125 that each volume has; 0 means those",
            ),
            (
                &[(throughput, "1000")],
                "phase3.ebs_throughput: 1000 need 4000 IOPS, and 3000 carry 750 (phase3.ebs_iops)",
            ),
            (&[(key, "alias/disks")], "phase3.ebs_kms_key: alias/disks is not arn:aws:kms:REGION:ACCOUNT:key/ID"),
            (
                &[(key, "arn:aws:kms:us-east-1:123456789012:alias/disks")],
                "phase3.ebs_kms_key: arn:aws:kms:us-east-1:123456789012:alias/disks is not arn:aws:kms:REGION:ACCOUNT:key/ID",
            ),
            (
                &[(key, "arn:aws:kms:eu-central-1:123456789012:key/1")],
                "phase3.ebs_kms_key: the key is in eu-central-1, and volumes in us-east-1 (phase1.aws.region)",
            ),
            (
                &[("phase3.cloud_storage_memory_limit", "32Mi")],
                "phase3.cloud_storage_memory_limit: 32Mi is less than the 64Mi that the CSI driver requests",
            ),
            (&[("phase2.api_port", "9809")], "phase2.api_port: port 9809 is taken by the CSI driver on the same host"),
        ] {
            assert_eq!(said(pairs), why);
        }
        for pairs in [
            &[(iops, "4000"), (throughput, "1000")][..],
            &[(kind, "io2"), (iops, "100")],
            &[(kind, "st1")],
            &[(key, "arn:aws:kms:us-east-1:123456789012:key/1")],
        ] {
            assert_eq!(said(pairs), "", "{pairs:?}");
        }
    }
}
