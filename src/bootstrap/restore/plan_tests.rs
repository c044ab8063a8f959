//! Tests of what a restore takes, and of what is refused.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::*;

fn member(revision: Option<i64>, has_leader: bool) -> HostView {
    HostView::Member(MemberState {
        directory: "/var/lib/etcd".into(),
        has_data: true,
        is_running: revision.is_none() || has_leader,
        has_leader,
        revision,
    })
}

fn empty() -> HostView {
    HostView::Member(MemberState {
        directory: "/var/lib/etcd".into(),
        has_data: false,
        is_running: false,
        has_leader: false,
        revision: None,
    })
}

fn silent() -> HostView {
    HostView::Silent(Error::transient("cannot reach h2 over ssh").evidence("Connection timed out"))
}

fn manifest(second: i64, revision: i64) -> BackupManifest {
    BackupManifest {
        schema: "turnup.backup/1".into(),
        cluster: "kube".into(),
        cluster_id: "0123456789abcdef".into(),
        host: "h0".into(),
        time: Timestamp::from_second(second).unwrap(),
        reason: "interval".into(),
        kubernetes_version: "1.36.3".into(),
        etcd_version: "3.6.16".into(),
        etcd_cluster_id: "5b59e7e2".into(),
        revision,
        hash: "1a2b3c4d".into(),
        keys: 1200,
        sha256: "0".repeat(64),
        size: 0,
        encrypted: None,
    }
}

fn backup(name: &str, second: i64, revision: i64) -> ListedBackup {
    let manifest = manifest(second, revision);
    ListedBackup {
        name: name.into(),
        host: "h0".into(),
        time: manifest.time,
        bytes: 1,
        manifest: Some(manifest),
        damage: None,
    }
}

fn survey(hosts: Vec<HostView>, backups: Vec<ListedBackup>) -> Survey {
    Survey {
        hosts: hosts.into_iter().enumerate().map(|(at, view)| (format!("h{at}"), view)).collect(),
        backups,
        stored: Vec::new(),
        store_problem: None,
        file: None,
        cluster: ("kube".into(), "0123456789abcdef".into()),
        kubernetes_version: "1.36.3".into(),
        only_key_since: None,
        revision: 0,
    }
}

fn ask(survey: &Survey, source: RestoreSource) -> Result<RestorePlan> {
    plan(survey, &RestoreRequest { source, without: Vec::new(), older: false, identity: None, unsigned: false })
}

fn refused(result: Result<RestorePlan>) -> String {
    result.unwrap_err().render()
}

#[test]
fn one_of_three_is_taken_with_all_it_has() {
    let survey = survey(vec![empty(), member(Some(700), false), empty()], vec![backup("b", 100, 500)]);
    let plan = ask(&survey, RestoreSource::Best).unwrap();
    assert_eq!((plan.source, plan.hosts.len(), plan.known), (PlannedSource::Member(None), 3, 700));
    insta::assert_snapshot!(plan.lines.join("\n"));
}

#[test]
fn none_of_three_is_restored_from_the_newest_backup() {
    let backups = vec![backup("old", 100, 500), backup("new", 200, 600)];
    let plan = ask(&survey(vec![empty(), empty(), HostView::NoNode], backups), RestoreSource::Best).unwrap();
    assert_eq!((plan.source.describe().as_str(), plan.known), ("the backup new", 600));
    assert_eq!(plan.hosts, ["h0", "h1"], "what is no node has nothing to restart");
    insta::assert_snapshot!(plan.lines.join("\n"));
    insta::assert_snapshot!(refused(ask(&survey(vec![empty()], vec![]), RestoreSource::Best)));
    insta::assert_snapshot!(refused(ask(&survey(vec![HostView::NoNode], vec![]), RestoreSource::Best)));
}

#[test]
fn a_majority_is_not_taken_for_a_loss() {
    let backups = vec![backup("b", 100, 500)];
    let healthy = survey(vec![member(Some(900), true), member(Some(899), true), empty()], backups);
    insta::assert_snapshot!(refused(ask(&healthy, RestoreSource::Best)));
    assert!(ask(&healthy, RestoreSource::Member("h0".into())).is_err());
    let behind = survey(vec![member(Some(9), true), member(Some(9), true), member(Some(900), false)], vec![]);
    let behind = ask(&behind, RestoreSource::Member("h2".into())).unwrap();
    assert_eq!(behind.source, PlannedSource::Member(Some("h2".into())), "it may be the only one with the data");
    let back = ask(&healthy, RestoreSource::NewestBackup).unwrap();
    assert_eq!((back.source.describe().as_str(), back.known), ("the backup b", 900), "to go back is allowed");
}

#[test]
fn who_does_not_answer_is_given_up_in_words_alone() {
    let cut = survey(vec![member(Some(700), false), empty(), silent()], vec![]);
    insta::assert_snapshot!(refused(ask(&cut, RestoreSource::Best)));
    let without = |name: &str| RestoreRequest {
        source: RestoreSource::Best,
        without: vec![name.to_owned(), "h2".into()],
        older: false,
        identity: None,
        unsigned: false,
    };
    let given_up = RestoreRequest { without: vec!["h2".into()], ..without("h2") };
    let plan_without = plan(&cut, &given_up).unwrap();
    assert_eq!(plan_without.hosts, ["h0", "h1"]);
    assert!(plan_without.lines.iter().any(|line| line.starts_with("h2 is given up")), "{plan_without:?}");
    insta::assert_snapshot!(refused(plan(&cut, &without("h1"))));
    insta::assert_snapshot!(refused(plan(&cut, &without("h7"))));
}

#[test]
fn what_is_newer_is_not_lost_without_a_word() {
    let backups = vec![backup("old", 100, 500), backup("new", 200, 600)];
    let lost = survey(vec![empty()], backups.clone());
    let old = || RestoreSource::Backup("old".into());
    insta::assert_snapshot!(refused(ask(&lost, old())));
    let allowed = RestoreRequest { source: old(), without: vec![], older: true, identity: None, unsigned: false };
    assert_eq!(plan(&lost, &allowed).unwrap().known, 600, "its revision is passed over all the same");
    let survivor = survey(vec![empty(), member(Some(700), false)], backups.clone());
    insta::assert_snapshot!(refused(ask(&survivor, RestoreSource::NewestBackup)));
    assert!(ask(&survey(vec![member(None, false)], backups), RestoreSource::NewestBackup).is_err());
}

#[test]
fn what_cannot_be_read_is_refused_before_anything_stops() {
    let mut file = survey(vec![empty()], vec![]);
    let of = |file: &mut Survey, manifest: BackupManifest| {
        file.file = Some(("monday.tar".into(), manifest));
        refused(ask(file, RestoreSource::File("monday.tar".into())))
    };
    let foreign = BackupManifest { cluster_id: "ffff456789abcdef".into(), ..manifest(100, 500) };
    insta::assert_snapshot!(of(&mut file, foreign));
    let newer = BackupManifest { kubernetes_version: "1.37.0".into(), ..manifest(100, 500) };
    insta::assert_snapshot!(of(&mut file, newer));
    file.only_key_since = Some(Timestamp::from_second(150).unwrap());
    insta::assert_snapshot!(of(&mut file, manifest(100, 500)));
    file.file = Some(("monday.tar".into(), manifest(160, 500)));
    assert!(ask(&file, RestoreSource::File("monday.tar".into())).is_ok());
    let damaged = ListedBackup {
        manifest: None,
        damage: Some("it does not begin with a manifest".into()),
        ..backup("b", 100, 500)
    };
    let survey = survey(vec![empty()], vec![damaged]);
    insta::assert_snapshot!(refused(ask(&survey, RestoreSource::Backup("b".into()))));
    assert!(ask(&survey, RestoreSource::NewestBackup).is_err());
}

#[test]
fn what_only_the_store_has_counts_as_a_backup_and_is_fetched_first() {
    let stored = |name: &str, second| {
        let (name, place) = (name.to_owned(), "safe/ at https://s3".to_owned());
        StoredBackup { name, time: Timestamp::from_second(second).unwrap(), place }
    };
    let mut lost = survey(vec![empty()], vec![backup("here", 100, 500)]);
    lost.stored = vec![stored("older", 50), stored("newer", 200)];
    let meant = |survey: &Survey, source| survey.find_stored(&source).map(|stored| stored.name.clone());
    assert_eq!(meant(&lost, RestoreSource::Best).as_deref(), Some("newer"));
    assert_eq!(meant(&lost, RestoreSource::Backup("older".into())).as_deref(), Some("older"));
    assert_eq!(meant(&lost, RestoreSource::Backup("here".into())), None);
    insta::assert_snapshot!(refused(ask(&lost, RestoreSource::Backup("here".into()))));
    lost.file = Some(("fetched.tar".into(), manifest(200, 600)));
    let plan = ask(&lost, RestoreSource::NewestBackup).unwrap();
    assert_eq!((plan.source.describe().as_str(), plan.known), ("the backup newer", 600));
    insta::assert_snapshot!(plan.lines.join("\n"));
    lost.file = Some(("fetched.tar".into(), BackupManifest { cluster_id: "ff".into(), ..manifest(200, 600) }));
    assert!(refused(ask(&lost, RestoreSource::Best)).contains("newer is of another cluster"));
    // What a host has is as new, and a survivor comes before any backup.
    lost.stored = vec![stored("as new", 100)];
    assert_eq!(meant(&lost, RestoreSource::Best), None);
    let survivor = Survey { stored: vec![stored("newer", 200)], ..survey(vec![member(Some(7), false)], vec![]) };
    assert_eq!(meant(&survivor, RestoreSource::Best), None);
    lost.stored = Vec::new();
    lost.store_problem = Some("HTTP 403".into());
    assert!(refused(ask(&lost, RestoreSource::Backup("older".into()))).contains("does not tell what it has"));
    assert!(ask(&lost, RestoreSource::Best).unwrap().lines.iter().any(|line| line.contains("HTTP 403")));
}

#[test]
fn of_stopped_members_the_one_ahead_is_taken() {
    let state = |view: HostView| match view {
        HostView::Member(state) => state,
        _ => unreachable!(),
    };
    let stopped = vec![
        ("h0".to_owned(), state(member(Some(700), false))),
        ("h1".to_owned(), state(member(Some(701), false))),
        ("h2".to_owned(), state(member(Some(701), false))),
        ("h3".to_owned(), state(empty())),
    ];
    assert_eq!(choose_member(&stopped, None).unwrap(), ("h1".to_owned(), 701));
    assert_eq!(choose_member(&stopped, Some("h0")).unwrap(), ("h0".to_owned(), 700));
    assert!(choose_member(&stopped, Some("h3")).is_err());
    assert!(choose_member(&[], None).is_err());
}
