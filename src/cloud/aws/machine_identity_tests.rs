//! Tests of what STS and EC2 may say of a machine, and of the questions to them.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use super::super::emulator::{EmulatedMachine, caller, failure, instances, ok, serve};
use super::*;
use crate::error::Class;

const ID: &str = "i-0123456789abcd007";
const ACCOUNT: &str = "111122223333";
const ARN: &str = "arn:aws:sts::111122223333:assumed-role/shop-eu-central-1-node/i-0123456789abcd007";

fn here() -> JudgeSite {
    JudgeSite {
        sts: StsPlace { region: "eu-central-1".into(), domain: "amazonaws.com".into() },
        session: "arn:aws:sts::111122223333:assumed-role/shop-eu-central-1-node/".into(),
        account: ACCOUNT.into(),
    }
}

const NAME: &str = "ip-172-20-1-7.eu-central-1.compute.internal";

fn machine() -> EmulatedMachine {
    EmulatedMachine::new("shop", "web", 7)
}

fn proven() -> ProvenMachine {
    ProvenMachine { id: ID.into(), group: "web".into(), host: NAME.into() }
}

#[test]
fn only_a_machine_of_the_workers_role_is_one() {
    let user = format!("AROAEXAMPLE:{ID}");
    assert_eq!(read_caller(&caller(ACCOUNT, ARN, &user), &here()).unwrap(), ID);
    let other = |from: &str, to: &str| ARN.replace(from, to);
    let cases = [
        ("another account", caller("999900001111", &other(ACCOUNT, "999900001111"), &user)),
        ("another account in the ARN", caller(ACCOUNT, &other(ACCOUNT, "999900001111"), &user)),
        ("another partition", caller(ACCOUNT, &other("arn:aws:", "arn:aws-cn:"), &user)),
        ("the control plane", caller(ACCOUNT, &other("-node/", "-control-plane/"), &user)),
        ("a role that begins so", caller(ACCOUNT, &other("-node/", "-nodes/"), &user)),
        ("another cluster", caller(ACCOUNT, &other("shop-", "shop2-"), &user)),
        ("a user", caller(ACCOUNT, "arn:aws:iam::111122223333:user/shop-eu-central-1-node", "AIDAEXAMPLE")),
        ("a session by hand", caller(ACCOUNT, &other(ID, "deploy"), "AROAEXAMPLE:deploy")),
        ("a session that is no id", caller(ACCOUNT, &other(ID, "i-0123456789ABCD007"), &user)),
        ("a longer session", caller(ACCOUNT, &format!("{ARN}0"), &user)),
        ("a session with a path", caller(ACCOUNT, &other(ID, &format!("{ID}/x")), &user)),
        ("another session in the user", caller(ACCOUNT, ARN, "AROAEXAMPLE:i-0123456789abcd008")),
        ("an answer to another question", "<GetSessionTokenResponse/>".into()),
        ("no answer", "{}".into()),
    ];
    let said = cases.map(|(what, text)| {
        let error = read_caller(&text, &here()).unwrap_err();
        assert_ne!(error.class(), Class::Transient, "{what}");
        format!("{what}: {}", error.message())
    });
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn only_a_machine_of_a_group_of_the_cluster_that_lives_is_one() {
    let read = |text: &str| read_machine(text, ID, "shop");
    let one = |change: &dyn Fn(&mut EmulatedMachine)| {
        let mut machine = machine();
        change(&mut machine);
        instances(&[&machine])
    };
    let state = |state: &'static str| one(&move |machine| machine.state = state.into());
    for lives in ["pending", "running"] {
        assert_eq!(read(&state(lives)).unwrap(), proven());
    }
    let tagged = |key: &'static str, value: &'static str| one(&move |machine| machine.tag(key, value));
    let without = |key: &'static str| one(&move |machine| machine.tags.retain(|(name, _)| name != key));
    let cases = [
        ("ended", state("terminated")),
        ("ending", state("shutting-down")),
        ("stopped", state("stopped")),
        ("another cluster", tagged("KubernetesCluster", "shop2")),
        ("no cluster", without("KubernetesCluster")),
        ("no group", without("k8s.io/group")),
        ("of the control plane", tagged("k8s.io/role/control-plane", "1")),
        ("no name", one(&|machine| machine.name.clear())),
        ("another machine", one(&|machine| machine.id = "i-0123456789abcd008".into())),
        ("none", instances(&[])),
        ("two", instances(&[&machine(), &machine()])),
    ];
    let said = cases.map(|(what, text)| {
        let error = read(&text).unwrap_err();
        format!("{what}: {}{}", error.message(), if error.is_passing() { " (asked again)" } else { "" })
    });
    insta::assert_snapshot!(said.join("\n"));
}

fn judge(sts: &str, ec2: &str, change: impl Fn(&str) -> String) -> (Result<ProvenMachine>, Vec<String>) {
    let (sts, ec2) = (sts.to_owned(), ec2.to_owned());
    let (url, asked) = serve(&[machine()], move |_| sts.clone(), move |_| ec2.clone());
    let endpoints = Endpoints { metadata: format!("{url}/machine/0"), api: Some(url) };
    let workers = role("shop", "eu-central-1", "shop-eu-central-1-node");
    let token = fetch(&endpoints, &workers.audience).unwrap().text;
    let judge = AwsJudge::new(endpoints, workers);
    asked.lock().unwrap().clear();
    let found = judge.judge(&change(&token));
    let asked = asked.lock().unwrap().clone();
    (found, asked.into_iter().filter(|text| text.contains("Action=")).collect())
}

fn good() -> (String, String) {
    let user = format!("AROAEXAMPLE:{ID}");
    (ok(&caller(ACCOUNT, ARN, &user)), ok(&instances(&[&machine()])))
}

#[test]
fn sts_and_ec2_are_asked_once_each() {
    let (sts, ec2) = good();
    let (found, asked) = judge(&sts, &ec2, str::to_owned);
    assert_eq!(found.unwrap(), proven());
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].starts_with("GET /?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-"), "{}", asked[0]);
    let headers = asked[0].lines().filter(|line| line.to_lowercase().starts_with("x-")).collect::<Vec<_>>();
    assert_eq!(
        headers,
        ["x-k8s-aws-id: turnup.dev/aws/eu-central-1/shop"],
        "this cluster's, whatever the token is for"
    );
    assert!(
        asked[1].ends_with(&format!("Action=DescribeInstances&Version=2016-11-15&InstanceId.1={ID}")),
        "{}",
        asked[1]
    );
}

#[test]
fn what_is_no_token_is_asked_of_no_api() {
    let (sts, ec2) = good();
    let (found, asked) = judge(&sts, &ec2, |token| format!("{token}AA"));
    let error = found.unwrap_err();
    assert!(error.message().starts_with("a token that no machine of this cluster makes: "), "{}", error.message());
    assert!(asked.is_empty() && !error.is_passing(), "{asked:?}");
}

#[test]
fn what_an_api_answers_otherwise_lets_no_machine_in() {
    let (good_sts, good_ec2) = good();
    let to = "HTTP/1.1 302 Found\r\nLocation: /?Action=Elsewhere\r\nContent-Length: 0\r\n\r\n".to_owned();
    let huge = ok(&" ".repeat((1 << 20) + 1));
    let cases = [
        ("a signature for another cluster", failure("403 Forbidden", "SignatureDoesNotMatch"), good_ec2.clone()),
        ("an end", failure("403 Forbidden", "ExpiredToken"), good_ec2.clone()),
        ("a code that is none", failure("403 Forbidden", "a b&#10;c"), good_ec2.clone()),
        ("a redirect", to, good_ec2.clone()),
        ("a huge answer", huge, good_ec2.clone()),
        ("STS is away", failure("503 Service Unavailable", "ServiceUnavailable"), good_ec2.clone()),
        ("STS is busy", failure("429 Too Many Requests", "Throttling"), good_ec2),
        ("no right to look", good_sts.clone(), failure("403 Forbidden", "UnauthorizedOperation")),
        ("a machine that EC2 does not know yet", good_sts, failure("400 Bad Request", "InvalidInstanceID.NotFound")),
    ];
    let said = cases.map(|(what, sts, ec2)| {
        let (found, asked) = judge(&sts, &ec2, str::to_owned);
        let error = found.unwrap_err();
        assert!(!asked.iter().any(|text| text.contains("Elsewhere")), "{asked:?}");
        let again = if error.is_passing() { " (asked again)" } else { "" };
        let message = error.message();
        let message = message.find(" answers with more").map_or(message, |at| &message[at + 1..]);
        format!("{what}: {message}{again}")
    });
    insta::assert_snapshot!(said.join("\n"));
}
