//! Tests of what a token is, and of all that is none.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use proptest::prelude::*;

use super::*;

const CLUSTER: &str = "turnup.dev/aws/eu-central-1/shop";

fn place() -> StsPlace {
    StsPlace { region: "eu-central-1".into(), domain: "amazonaws.com".into() }
}

fn key() -> LentKey {
    LentKey {
        id: "ASIAIOSFODNN7EXAMPLE".into(),
        secret: Zeroizing::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into()),
        session: Zeroizing::new("IQoJb3JpZ2luX2VjE+a/b==".into()),
    }
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn url() -> String {
    let (token, ends) = make(&place(), CLUSTER, &key(), now());
    assert_eq!(ends.to_string(), "2026-01-02T03:05:05Z");
    String::from_utf8(URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX).unwrap()).unwrap()).unwrap()
}

fn token_of(url: &str) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(url))
}

fn judge(url: &str) -> Result<String, String> {
    read(&token_of(url), &place(), now()).map(|query| query.to_string())
}

#[test]
fn a_token_is_what_amazons_own_library_signs() {
    // What botocore makes of the same request (`SigV4QueryAuth`), in the order in which it signs.
    let expected = [
        "https://sts.eu-central-1.amazonaws.com/?Action=GetCallerIdentity",
        "Version=2011-06-15",
        "X-Amz-Algorithm=AWS4-HMAC-SHA256",
        "X-Amz-Credential=ASIAIOSFODNN7EXAMPLE%2F20260102%2Feu-central-1%2Fsts%2Faws4_request",
        "X-Amz-Date=20260102T030405Z",
        "X-Amz-Expires=60",
        "X-Amz-Security-Token=IQoJb3JpZ2luX2VjE%2Ba%2Fb%3D%3D",
        "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id",
        "X-Amz-Signature=b9639da0dc0735175fdd5b098197ee1640ff6d03bf601a03637048b45b84c0f4",
    ];
    assert_eq!(url(), expected.join("&"));
}

#[test]
fn what_a_machine_makes_is_sent_as_it_is() {
    let url = url();
    assert_eq!(judge(&url).unwrap(), url.split_once('?').unwrap().1);
    let china = StsPlace { region: "cn-north-1".into(), domain: "amazonaws.com.cn".into() };
    let (token, _) = make(&china, CLUSTER, &key(), now());
    assert!(read(&token, &china, now()).is_ok());
    let to = format!("it is no request to https://{}/?", place().host());
    assert_eq!(read(&token, &place(), now()).unwrap_err(), to);
}

#[test]
fn every_other_request_is_refused_before_anything_is_sent() {
    let good = url();
    let (host, date) = (place().host(), "X-Amz-Date=20260102T030405Z");
    let signature = good.rsplit_once('=').unwrap().1.to_owned();
    let session = "&X-Amz-Security-Token=IQoJb3JpZ2luX2VjE%2Ba%2Fb%3D%3D";
    let changes: Vec<(&str, &str, String)> = vec![
        ("another region", host.as_str(), "sts.eu-west-1.amazonaws.com".into()),
        ("the global one", host.as_str(), "sts.amazonaws.com".into()),
        ("a longer name", host.as_str(), format!("{host}.evil.example")),
        ("the other partition", host.as_str(), format!("{host}.cn")),
        ("another service", host.as_str(), "ec2.eu-central-1.amazonaws.com".into()),
        ("the metadata service", host.as_str(), "169.254.169.254".into()),
        ("a user", host.as_str(), format!("{host}@evil.example")),
        ("a user before", host.as_str(), format!("evil@{host}")),
        ("a port", host.as_str(), format!("{host}:8443")),
        ("in capitals", host.as_str(), host.to_uppercase()),
        ("a trailing dot", host.as_str(), format!("{host}.")),
        ("no TLS", "https://", "http://".into()),
        ("a path", "/?", "/latest?".into()),
        ("a path that ends", "/?", "//?".into()),
        ("no path", "/?", "?".into()),
        ("a fragment", signature.as_str(), format!("{signature}#")),
        ("a space", signature.as_str(), format!("{signature} ")),
        ("a line", signature.as_str(), format!("{signature}\r\nx: y")),
        ("another action", "GetCallerIdentity", "GetSessionToken".into()),
        ("an action more", "Action=GetCallerIdentity", "Action=GetCallerIdentity&Action=AssumeRole".into()),
        ("the same twice", "Action=GetCallerIdentity", "Action=GetCallerIdentity&Action=GetCallerIdentity".into()),
        ("a parameter more", "Action=GetCallerIdentity", "Action=GetCallerIdentity&RoleArn=a".into()),
        ("a parameter in capitals", "Action=", "ACTION=".into()),
        ("no action", "Action=GetCallerIdentity&", String::new()),
        ("an empty parameter", "Action=", "&Action=".into()),
        ("a semicolon", "&Version", ";Version".into()),
        ("another version", "2011-06-15", "2010-05-08".into()),
        ("another algorithm", "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256".into()),
        ("another credential", "%2Fsts%2F", "%2Fec2%2F".into()),
        ("a credential of another region", "%2Feu-central-1%2F", "%2Fus-east-1%2F".into()),
        ("a credential of another day", "%2F20260102%2F", "%2F20260101%2F".into()),
        ("no key", "ASIAIOSFODNN7EXAMPLE", String::new()),
        ("a credential with more", "aws4_request", "aws4_request%2Fx".into()),
        ("the header of the cluster not signed", "host%3Bx-k8s-aws-id", "host".into()),
        ("the host not signed", "host%3Bx-k8s-aws-id", "x-k8s-aws-id".into()),
        ("a header more", "host%3Bx-k8s-aws-id", "host%3Bx-a%3Bx-k8s-aws-id".into()),
        ("no session", session, String::new()),
        ("an escape too many", "GetCallerIdentity", "%47etCallerIdentity".into()),
        ("an escape too few", "%2Fsts%2F", "/sts/".into()),
        ("an escape in small letters", "%2Fsts%2F", "%2fsts%2f".into()),
        ("half an escape", session, format!("{session}%")),
        ("an escape that is none", session, format!("{session}%+1")),
        ("an escape that is no text", session, format!("{session}%FF")),
        ("no date", date, "X-Amz-Date=".into()),
        ("a date that is none", date, "X-Amz-Date=20261302T030405Z".into()),
        ("a date of another form", date, "X-Amz-Date=2026-01-02T03%3A04%3A05Z".into()),
        ("a life that never ends", "X-Amz-Expires=60", "X-Amz-Expires=901".into()),
        ("a life that overflows", "X-Amz-Expires=60", "X-Amz-Expires=4294967297".into()),
        ("a life below zero", "X-Amz-Expires=60", "X-Amz-Expires=-1".into()),
        ("no life", "X-Amz-Expires=60", "X-Amz-Expires=0".into()),
        ("a short signature", signature.as_str(), signature[1..].to_owned()),
        ("a signature in capitals", signature.as_str(), "A".repeat(64)),
    ];
    let said = changes.iter().map(|(what, from, to)| {
        assert!(good.contains(from), "{what}: {from}");
        let said = judge(&good.replacen(from, to, 1));
        assert!(said.is_err(), "{what}");
        let said = said.unwrap_err();
        assert!(!said.contains(&signature) && !said.contains("IQoJ"), "{said}");
        format!("{what}: {said}")
    });
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"));
    let mut others = vec![String::new(), PREFIX.into(), token_of(""), token_of(&good).replacen("v1", "v2", 1)];
    others.extend([format!("{}=", token_of(&good)), format!("{} ", token_of(&good)), token_of(&good)[1..].into()]);
    for other in others {
        assert!(read(&other, &place(), now()).is_err(), "{other:?}");
    }
    let long = good.replace(session, &format!("{session}{}", "a".repeat(LONGEST)));
    assert_eq!(judge(&long).unwrap_err(), "it has more than 8192 bytes");
}

#[test]
fn a_token_is_good_for_a_minute_and_what_clocks_differ() {
    let token = token_of(&url());
    let after = |seconds: i64| read(&token, &place(), now() + SignedDuration::from_secs(seconds)).map(drop);
    assert_eq!([-60, 0, 60, 120].map(after), [const { Ok(()) }; 4]);
    assert_eq!(after(121).unwrap_err(), "it has ended");
    assert_eq!(after(-61).unwrap_err(), "it is of a time to come: do the clocks differ?");
}

proptest! {
    #[test]
    fn no_bytes_make_another_request(url in "https://sts[.]eu-central-1[.]amazonaws[.]com/[?].{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(judge(&url).is_err());
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&bytes));
        prop_assert!(read(&token, &place(), now()).is_err());
    }

    #[test]
    fn what_passes_is_the_one_question(at in 0..2000_usize, byte in any::<u8>()) {
        let mut url = url().into_bytes();
        let at = at % url.len();
        url[at] = byte;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(&url));
        if let Ok(query) = read(&token, &place(), now()) {
            let start = "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=";
            prop_assert!(query.starts_with(start));
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%&=".contains(&byte);
            prop_assert!(query.bytes().all(plain));
        }
    }
}
