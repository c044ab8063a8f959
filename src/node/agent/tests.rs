//! Tests of the loop of the agent, with a host that is told what it sees.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;

/// A host of these losses whose repairs end so; it notes what is done to it.
#[derive(Default)]
struct FakeHost {
    seen: Vec<Result<Observation>>,
    repaired: Vec<Result<()>>,
    cared: Vec<Care>,
    renewed: Vec<Result<Vec<String>>>,
    revived: Vec<Result<bool>>,
    awaits: bool,
    powered_off: Vec<Result<bool>>,
    done: Vec<&'static str>,
}

impl Host for FakeHost {
    fn observe(&mut self) -> Result<Observation> {
        self.done.push("observe");
        self.seen.remove(0)
    }

    fn note_machine(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    fn repair(&mut self) -> Result<()> {
        self.done.push("repair");
        self.repaired.remove(0)
    }

    fn renew_certificates(&mut self) -> Option<Result<Vec<String>>> {
        if self.renewed.is_empty() { None } else { Some(self.renewed.remove(0)) }
    }

    fn revive_kubelet(&mut self) -> Result<bool> {
        if self.revived.is_empty() { Ok(false) } else { self.revived.remove(0) }
    }

    fn awaits_certificate(&self) -> bool {
        self.awaits
    }

    fn care_for_etcd(&mut self, _clock: Timestamp) -> Care {
        if self.cared.is_empty() { Care::Well } else { self.cared.remove(0) }
    }

    fn is_rejoining(&self) -> bool {
        matches!(self.cared.first(), Some(Care::Going(_)))
    }

    fn has_lost_data(&self) -> bool {
        false
    }

    fn take_news(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn is_to_end(&mut self) -> bool {
        !self.powered_off.is_empty()
    }

    fn power_off(&mut self) -> Result<bool> {
        self.done.push("power off");
        self.powered_off.remove(0)
    }

    fn release(&mut self) {
        self.done.push("release");
    }
}

fn lost(what: &str) -> Observation {
    Observation::Losses(vec![what.to_owned()])
}

/// The status after each look, a minute apart, and what was told.
fn run_over(mut host: FakeHost) -> (Vec<AgentStatus>, String, Vec<&'static str>) {
    let (looks, mut out) = (host.seen.len(), Vec::new());
    let mut agent = Agent::over(&mut host, &mut out);
    let look = |look: usize| {
        let minutes = u64::try_from(look).unwrap();
        let clock = Timestamp::from_second(i64::try_from(minutes).unwrap() * 60).unwrap();
        agent.look_after(Duration::from_mins(minutes), clock).unwrap();
        agent.status.clone()
    };
    let statuses = (0..looks).map(look).collect();
    (statuses, String::from_utf8(out).unwrap(), host.done)
}

#[test]
fn a_loss_is_repaired_once_and_nothing_is_said_of_a_host_that_stays_as_it_is() {
    let well = || Ok(Observation::Losses(Vec::new()));
    let seen = vec![well(), well(), Ok(lost("file /etc/a is missing")), well(), well()];
    let (statuses, told, done) = run_over(FakeHost { seen, repaired: vec![Ok(())], ..FakeHost::default() });
    assert_eq!(statuses[0], statuses[1]);
    assert_eq!(statuses[2], statuses[4]);
    assert_eq!(statuses[2].repairs[0].losses, ["file /etc/a is missing"]);
    assert_eq!(told, "as its node config says\nfound: file /etc/a is missing\nrepaired\n");
    assert_eq!(done.iter().filter(|done| **done == "repair").count(), 1);
}

#[test]
fn a_machine_that_is_told_to_end_is_powered_off_as_soon_as_nothing_works_on_it() {
    let failed = Err(Error::transient("systemctl failed"));
    let mut host = FakeHost { powered_off: vec![Ok(false), failed, Ok(true)], ..FakeHost::default() };
    let mut out = Vec::new();
    let mut agent = Agent::over(&mut host, &mut out);
    while agent.host.is_to_end() {
        agent.retire().unwrap();
    }
    assert_eq!(host.done, ["power off"; 3]);
    let told = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = told.lines().filter(|line| !line.starts_with("its Node says")).collect();
    assert_eq!(lines, ["not yet: turnup works on it", "it cannot be powered off: systemctl failed", "powering off"]);
}

#[test]
fn the_lock_is_released_after_every_look_whatever_came_of_it() {
    let failed = || Error::permanent("ca.key was not sent");
    let seen = vec![Ok(Observation::Busy), Err(failed()), Ok(lost("file /etc/ca.key is missing"))];
    let (statuses, told, done) = run_over(FakeHost { seen, repaired: vec![Err(failed())], ..FakeHost::default() });
    assert_eq!(done, ["observe", "release", "observe", "release", "observe", "repair", "release"]);
    let last = &statuses[2];
    assert_eq!((last.state, last.repairs.len()), (HostState::Unrepaired, 0));
    assert_eq!(last.problems, ["file /etc/ca.key is missing", "a repair failed: ca.key was not sent"]);
    assert!(told.contains("the host cannot be looked at: ca.key was not sent\n"), "{told}");
}

#[test]
fn what_is_wrong_with_etcd_is_named_until_it_is_not_and_its_repair_is_remembered() {
    let seen = (0..4).map(|_| Ok(Observation::Losses(Vec::new()))).collect();
    let (full, freed) = ("etcd is full".to_owned(), "etcd was full".to_owned());
    let cared = vec![Care::Problem(full.clone()), Care::Problem(full.clone()), Care::Repaired(freed.clone())];
    let (statuses, told, _) = run_over(FakeHost { seen, cared, ..FakeHost::default() });
    assert_eq!((statuses[1].state, &statuses[1].problems), (HostState::EtcdUnwell, &vec![full]));
    assert_eq!((statuses[2].state, &statuses[2].repairs[0].losses), (HostState::AsDeclared, &vec![freed]));
    assert_eq!(statuses[2], statuses[3]);
    assert_eq!(told.matches("etcd is full").count(), 1, "{told}");
}

#[test]
fn certificates_that_cannot_be_renewed_are_named_until_they_are() {
    let seen = (0..4).map(|_| Ok(Observation::Losses(Vec::new()))).collect();
    let path = "/etc/kubernetes/etcd/server.crt".to_owned();
    let failed = Err(Error::permanent("the key of /a.crt is another one's"));
    let renewed = vec![Ok(Vec::new()), failed, Ok(vec![path])];
    let (statuses, told, _) = run_over(FakeHost { seen, renewed, ..FakeHost::default() });
    assert_eq!(statuses[0].state, HostState::AsDeclared);
    let why = "certificates are not renewed: the key of /a.crt is another one's";
    assert_eq!((statuses[1].state, &statuses[1].problems[..]), (HostState::Unrepaired, &[why.to_owned()][..]));
    assert_eq!((statuses[2].state, &statuses[2]), (HostState::AsDeclared, &statuses[3]));
    assert!(told.contains("renewed the certificate /etc/kubernetes/etcd/server.crt\n"), "{told}");
}

#[test]
fn a_kubelet_whose_certificate_has_ended_is_revived_before_it_counts_as_lost() {
    let seen = vec![Ok(lost("service kubelet is not running")), Ok(Observation::Losses(Vec::new()))];
    let revived = vec![Ok(false), Ok(true)];
    let (statuses, told, done) = run_over(FakeHost { seen, revived, awaits: true, ..FakeHost::default() });
    assert!(!done.contains(&"repair"), "{done:?}");
    assert_eq!(statuses[0].problems, ["the API is asked for a certificate"]);
    assert_eq!(statuses[1].state, HostState::AsDeclared);
    assert!(told.contains("kubelet got another client certificate: its own had ended\n"), "{told}");
    // Where the API cannot be asked, all else is put right meanwhile.
    let failed = Err(Error::transient("the API server does not answer"));
    let seen = vec![Ok(lost("file /etc/a is missing")), Ok(Observation::Losses(Vec::new()))];
    let host = FakeHost { seen, revived: vec![failed], repaired: vec![Ok(())], ..FakeHost::default() };
    let (statuses, _, done) = run_over(host);
    assert!(done.contains(&"repair"), "{done:?}");
    assert_eq!(statuses[1].state, HostState::AsDeclared);
}

#[test]
fn why_a_kubelet_is_not_revived_is_named_until_it_is() {
    let seen = (0..3).map(|_| Ok(Observation::Losses(Vec::new()))).collect();
    let failed = Err(Error::permanent("the request turnup-a for a certificate is denied"));
    let (statuses, ..) = run_over(FakeHost { seen, revived: vec![failed, Ok(true)], ..FakeHost::default() });
    let why =
        "kubelet's client certificate has ended and is not renewed: the request turnup-a for a certificate is denied";
    assert_eq!((statuses[0].state, &statuses[0].problems[..]), (HostState::Unrepaired, &[why.to_owned()][..]));
    assert_eq!((statuses[1].state, &statuses[1]), (HostState::AsDeclared, &statuses[2]));
}

#[test]
fn what_does_not_last_is_named() {
    let seen = (0..3).map(|_| Ok(lost("kernel setting a.b is not as it should be"))).collect();
    let (statuses, told, done) = run_over(FakeHost { seen, repaired: vec![Ok(()), Ok(())], ..FakeHost::default() });
    assert_eq!(done.iter().filter(|done| **done == "repair").count(), 2);
    assert_eq!(statuses[1].state, HostState::AsDeclared);
    assert_eq!(statuses[2].state, HostState::Unrepaired);
    assert!(statuses[2].problems[1].contains("lost again"), "{:?}", statuses[2].problems);
    assert_eq!(told.matches("lost again").count(), 1, "{told}");
}

#[test]
fn a_run_of_the_operator_does_not_hide_what_was_wrong_before() {
    let seen = vec![Ok(Observation::Unfinished), Ok(Observation::Busy)];
    let (statuses, ..) = run_over(FakeHost { seen, ..FakeHost::default() });
    assert_eq!(statuses[1].state, HostState::Unfinished);
    let seen = vec![Ok(Observation::Busy), Ok(Observation::DiskMissing("/var/lib/etcd".into()))];
    let (statuses, ..) = run_over(FakeHost { seen, ..FakeHost::default() });
    assert_eq!(statuses[0].state, HostState::Busy);
    assert_eq!(statuses[1].problems, ["/var/lib/etcd is not mounted"]);
}
