//! The encryption key rotated while API servers, agents and turnup itself are killed: no value of
//! etcd is ever unreadable, and the same command goes on.
//!
//! `TURNUP_TEST_ROUNDS=50` kills as often; `TURNUP_TEST_SEED` repeats a choice.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cluster_agent::wait_for_nothing_to_do;
use crate::cluster_crash::{Random, seed};
use crate::cluster_machines::rounds_or;
use crate::cluster_rotate::{CONTROL_PLANES, encrypted_with, fill, look, prepare, states};
use crate::cluster_support::{Running, Site, TIMEOUT, say};

const KEYSET: &str = "encryption-key";
const SECRETS: usize = 1000;
/// Longer than most steps of a rotation take.
const LONGEST_PAUSE: u64 = 12_000;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Turnup,
    ApiServer(&'static str),
    Agent(&'static str),
}

impl Victim {
    fn choose(random: &mut Random) -> Self {
        let host = CONTROL_PLANES[usize::try_from(random.below(3)).unwrap()];
        match random.below(3) {
            0 => Self::Turnup,
            1 => Self::ApiServer(host),
            _ => Self::Agent(host),
        }
    }

    fn kill(self, site: &Site, turnup: &Running) {
        match self {
            Self::Turnup => drop(kill_process(Pid::from_child(&turnup.child), Signal::KILL)),
            // One that is being started again is none.
            Self::ApiServer(host) => site.in_host(host, "pkill -KILL -x kube-apiserver || true"),
            Self::Agent(host) => site.in_host(host, "systemctl kill --signal=KILL turnup-agent"),
        }
    }
}

/// The item that encrypts.
fn primary(site: &Site) -> u64 {
    states(site, KEYSET).into_iter().find(|(_, state)| state == "primary").unwrap().0
}

/// Every value is readable, and all are encrypted with the primary item.
fn check(site: &Site, before: &(Vec<String>, Vec<String>)) {
    assert_eq!(look(site), *before);
    let primary = primary(site);
    let counts: Vec<usize> = (1..=primary).map(|item| encrypted_with(site, item)).collect();
    let expected: Vec<usize> = (1..=primary).map(|item| if item == primary { SECRETS } else { 0 }).collect();
    assert_eq!(counts, expected);
}

#[test]
#[ignore = "a cluster with four hosts: make test-rotate"]
fn cluster_rotate_an_encryption_key_through_kills() {
    let Some(site) = prepare("rotate-kills", "10.125.118.0/24") else { return };
    let (mut random, kills) = (Random(seed()), rounds_or(8));
    site.ok(&["up"]);
    fill(&site, SECRETS);
    let before = look(&site);
    let (mut done, mut rotations, mut stopped) = (0, 0, 0);
    while done < kills {
        let mut turnup = site.start(&["keyset", "rotate", KEYSET]);
        let mut next = Instant::now() + Duration::from_millis(random.below(LONGEST_PAUSE));
        while turnup.child.try_wait().unwrap().is_none() && done < kills {
            if Instant::now() >= next {
                let victim = Victim::choose(&mut random);
                victim.kill(&site, &turnup);
                done += 1;
                say(&format!("kill {done}: {victim:?}"));
                next = Instant::now() + Duration::from_millis(random.below(LONGEST_PAUSE));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let ended = turnup.wait(TIMEOUT);
        match ended.code {
            Some(0) => {
                rotations += 1;
                check(&site, &before);
            }
            _ => stopped += 1,
        }
    }
    // Whatever was begun is finished by the same command.
    site.ok(&["keyset", "rotate", KEYSET]);
    check(&site, &before);
    wait_for_nothing_to_do(&site);
    say(&format!("{done} kills, {rotations} rotations finished beside them, {stopped} were stopped and gone on with"));
    site.ok(&["down", "--yes"]);
}
