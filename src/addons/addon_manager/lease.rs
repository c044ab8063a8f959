//! Who may apply addons now: one Lease of the cluster, which a run of turnup and the addon-managers
//! of all control-plane hosts share. It is held while something is applied, and by nothing else.

use std::time::{Duration, Instant};

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use crate::bootstrap::Kubectl;
use crate::error::{Class, Error, Result};
use crate::phase::Cx;

use super::super::object::{LEASE, MANAGER, SYSTEM};

/// The name of the Lease.
const NAME: &str = "turnup-addons";
/// Between two looks of a run that waits for its turn.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A claim to apply addons.
pub(super) struct ApplyLease {
    holder: String,
    /// The form of the Lease that another one holds, and since when it is known to be in it: a
    /// holder that died leaves it so. By the clock of this host alone, as client-go does it.
    seen: Option<(String, Instant)>,
}

/// What the Lease lets a claimant do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LeaseTurn {
    /// It is free, its own, or of one that died.
    Take,
    /// It is this one's.
    Wait(String),
}

impl ApplyLease {
    pub(super) const fn new(holder: String) -> Self {
        Self { holder, seen: None }
    }

    /// Takes the Lease for so long, unless another one has it; the Lease as it is then.
    pub(super) fn acquire(&mut self, kubectl: &Kubectl, life: Duration) -> Result<Result<HeldLease, String>> {
        let args = ["lease", NAME, "--ignore-not-found", "--output=json"];
        let namespace = format!("--namespace={SYSTEM}");
        let said = kubectl.run(&[&["get", &namespace], &args[..]].concat())?;
        if said.trim().is_empty() {
            let new = self.claim(&Value::Null, life);
            return written(kubectl.run_with(&["create", "--output=json", "--filename=-"], &new.to_string()));
        }
        let found: Value = serde_json::from_str(&said).unwrap_or_default();
        match self.judge(&found, Instant::now()) {
            LeaseTurn::Wait(holder) => Ok(Err(holder)),
            LeaseTurn::Take => {
                let new = self.claim(&found, life);
                written(kubectl.run_with(&["replace", "--output=json", "--filename=-"], &new.to_string()))
            }
        }
    }

    fn judge(&mut self, found: &Value, now: Instant) -> LeaseTurn {
        let spec = &found["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        if holder.is_empty() || holder == self.holder {
            return LeaseTurn::Take;
        }
        let form = found["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let since = match &self.seen {
            Some((known, since)) if known == form => *since,
            _ => now,
        };
        self.seen = Some((form.to_owned(), since));
        let life = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default());
        if now.saturating_duration_since(since) > life { LeaseTurn::Take } else { LeaseTurn::Wait(holder.to_owned()) }
    }

    /// The Lease in our hands; a form of it that is no longer the newest is refused by the server.
    fn claim(&self, found: &Value, life: Duration) -> Value {
        let now = micro_time();
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": LEASE,
            "metadata": {
                "name": NAME,
                "namespace": SYSTEM,
                "labels": {"app.kubernetes.io/managed-by": "turnup", MANAGER: "lease"},
                "resourceVersion": found["metadata"]["resourceVersion"],
            },
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": life.as_secs().clamp(1, 24 * 3600),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": found["spec"]["leaseTransitions"].as_u64().unwrap_or_default() + 1,
            },
        })
    }
}

/// The Lease, held.
pub(in super::super) struct HeldLease(Value);

impl HeldLease {
    /// Waits until no addon-manager applies; for a step, which holds the Lease no longer than it
    /// may take.
    pub(in super::super) fn acquire(kubectl: &Kubectl, cx: &Cx) -> Result<Self> {
        // A run that died is followed by the next one of the same machine at once.
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut lease = ApplyLease::new(format!("turnup@{machine}"));
        let mut told = false;
        loop {
            let holder = match lease.acquire(kubectl, cx.remaining())? {
                Ok(held) => return Ok(held),
                Err(holder) => holder,
            };
            if !std::mem::replace(&mut told, true) {
                cx.progress(format!("waiting: {holder} applies addons"));
            }
            if cx.remaining() < Duration::from_secs(10) {
                let message = format!("{holder} holds the lease {NAME} in {SYSTEM}, and does not let go of it");
                return Err(Error::transient(message)
                    .hint("turnup addons; when nothing applies addons: kubectl delete lease turnup-addons --namespace=kube-system"));
            }
            cx.sleep(POLL_INTERVAL)?;
        }
    }

    /// Lets go of it; one that another one took meanwhile is left alone.
    pub(in super::super) fn release(mut self, kubectl: &Kubectl) -> Result<()> {
        self.0["spec"]["holderIdentity"] = Value::Null;
        self.0["spec"]["renewTime"] = micro_time().into();
        written(kubectl.run_with(&["replace", "--output=json", "--filename=-"], &self.0.to_string())).map(drop)
    }
}

/// The Lease as it was written, or that another one was faster.
fn written(answer: Result<String>) -> Result<Result<HeldLease, String>> {
    let is_lost = |error: &Error| ["(AlreadyExists)", "(Conflict)", "(NotFound)"].iter().any(|why| error.says(why));
    match answer {
        Ok(said) => Ok(Ok(HeldLease(serde_json::from_str(&said).unwrap_or_default()))),
        Err(error) if error.class() != Class::Interrupted && is_lost(&error) => Ok(Err("another one".to_owned())),
        Err(error) => Err(error),
    }
}

/// Now as Kubernetes' `MicroTime` has it.
fn micro_time() -> String {
    let now = Timestamp::now().round(Unit::Microsecond).unwrap_or_default();
    format!("{now:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(by: &str, form: &str) -> Value {
        json!({"metadata": {"resourceVersion": form}, "spec": {"holderIdentity": by, "leaseDurationSeconds": 60}})
    }

    #[test]
    fn a_lease_is_taken_when_it_is_free_or_its_holder_is_dead() {
        let (start, mut lease) = (Instant::now(), ApplyLease::new("cp-0".into()));
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(lease.judge(&held("", "1"), start), LeaseTurn::Take);
        assert_eq!(lease.judge(&json!({}), start), LeaseTurn::Take);
        assert_eq!(lease.judge(&held("cp-0", "2"), start), LeaseTurn::Take, "its own, of a life before");

        let wait = LeaseTurn::Wait("cp-1".into());
        assert_eq!(lease.judge(&held("cp-1", "3"), start), wait);
        assert_eq!(lease.judge(&held("cp-1", "3"), after(60)), wait);
        assert_eq!(lease.judge(&held("cp-1", "4"), after(61)), wait, "its holder has written it meanwhile");
        assert_eq!(lease.judge(&held("cp-1", "4"), after(121)), wait);
        assert_eq!(lease.judge(&held("cp-1", "4"), after(122)), LeaseTurn::Take);
    }

    #[test]
    fn a_time_is_one_that_the_api_server_reads() {
        let now = micro_time();
        assert!(now.ends_with('Z') && now.len() == "2026-01-02T03:04:05.000000Z".len(), "{now}");
    }
}
