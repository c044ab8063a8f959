//! What is taken out of texts, to the letter, and what is left in them: real logs of a cluster stay
//! as they are.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

/// Logs and answers of a real cluster: kubelet, containerd, pods of the control plane, systemd,
/// kubectl, turnup itself.
const CORPUS: [(&str, &str); 8] = [
    ("api.txt", include_str!("../../tests/fixtures/logs/api.txt")),
    ("node-config.json", include_str!("../../tests/fixtures/logs/node-config.json")),
    ("containerd.log", include_str!("../../tests/fixtures/logs/containerd.log")),
    ("host.txt", include_str!("../../tests/fixtures/logs/host.txt")),
    ("journal.log", include_str!("../../tests/fixtures/logs/journal.log")),
    ("kubelet.log", include_str!("../../tests/fixtures/logs/kubelet.log")),
    ("pods.log", include_str!("../../tests/fixtures/logs/pods.log")),
    ("turnup.log", include_str!("../../tests/fixtures/logs/turnup.log")),
];

/// Lines with what must go between « and », and nothing else. None of them is in use.
const PLANTED: &[&str] = &[
    // The eighteen of the review that found them, and their like.
    "joined with «abcdef.0123456789abcdef», waiting",
    "token=«abcdef.0123456789abcdef»,x",
    "pulling https://robot:«hunter2»@registry.example.com/v2/x",
    "https://robot:«p@ss:w0rd!»@registry.example.com:5000",
    r#"{"remote":"https:\/\/robot:«hunter2»@registry.example.com\/v2"}"#,
    "postgres://app:«s3cr3t%2Fpw»@db.example.com/app?sslmode=require",
    "git clone https://«0123456789abcdefABCDEF»:«x-oauth-basic»@git.example.com/a/b",
    "connecting with user=app password=«hunter2» host=db",
    "connecting with password=«hunter2»,x=y,host=db",
    "db_password = \"«correct horse/battery»\"",
    "    password: «correct horse battery staple»",
    "12:00:00.000 |   - passwd: «correct horse»  # from the vault",
    r#"{"user":"app","password":"«hunter2»","n":1}"#,
    r#"msg="{\"user\":\"app\",\"password\":\"«hunter2»\",\"n\":1}""#,
    r#"{"message":"{\\\"password\\\":\\\"«hun\\\\\"ter2»\\\"}"}"#,
    "Server=db;User Id=sa;Password=«hunter2»;Encrypt=yes",
    "DB_PASSWORD=«hunter2» ./run",
    "GET /login?user=app&password=«hunter2»&next=/",
    "./tool --password «hunter2» --verbose",
    "./tool --db-password=«hunter2» --verbose",
    r#"exec ["tool","--password","«hunter2»","--verbose"]"#,
    "<user>app</user><password>«hunter2»</password>",
    r#"{"name":"DB_PASSWORD","value":"«hunter2»"},{"name":"MODE","value":"fast"}"#,
    "    - name: DB_PASSWORD\n      value: «hunter2»\n    - name: MODE\n      value: fast",
    "password: |\n  «hunter2\n  and more»\nnext: 1",
    "MYSQL_PWD=«hunter2» mysql",
    "client_secret: «Zm9vYmFyYmF6cXV1eA»",
    r#"{"clientSecret": "«hunter2»"}"#,
    "secret=«hunter2»",
    "Authorization: Basic «cm9ib3Q6aHVudGVyMg==»",
    r#"{"headers":{"Authorization":["Bearer «0123456789abcdefXYZ»"]}}"#,
    "curl -H 'Authorization: Bearer «0123456789abcdefXYZ»' https://api",
    "authorization=token «0123456789abcdefXYZ»",
    "headers={Authorization: Basic «cm9ib3Q6aHVudGVyMg==», Host: api}",
    "Authorization: Digest «username=x, realm=y, response=0123»",
    "> proxy-authorization: Basic «cm9ib3Q6aHVudGVyMg==»",
    "sent header bearer «0123456789abcdefXYZ» to it",
    "curl -s -u robot:«hunter2» https://registry",
    "machine git.example.com login robot password «hunter2»",
    r#"{"auths":{"registry.example.com":{"auth":"«cm9ib3Q6aHVudGVyMg==»"}}}"#,
    r#"{"auths":{"registry.example.com":{"identitytoken":"«0f1e2d3c4b5a69788796a5b4c3d2e1f0»"}}}"#,
    "_authToken=«npm_0123456789abcdefghijABCDEFGHIJ012345»",
    "aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»",
    "AKIAIOSFODNN7EXAMPLE:«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY» in us-east-1",
    "AKIAIOSFODNN7EXAMPLE,«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»",
    r#"{"AccessKeyId":"ASIAIOSFODNN7EXAMPLE","SecretAccessKey":"«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»"}"#,
    r#"{"type":"service_account","private_key_id":"0123456789abcdef0123456789abcdef01234567","private_key":"«-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----»\n"}"#,
    "gcloud says «ya29.a0AfH6SMBx0123456789abcdefghij»",
    "key=«AIzaSyA0123456789abcdefghijklmnopqrstuvw» for maps",
    "remote: «ghp_0123456789abcdefghijABCDEFGHIJ012345»",
    "remote: «github_pat_11ABCDEFG0123456789_abcdefghijklmnop»",
    "remote: «glpat-0123456789abcdefghij»",
    "slack «xoxb-123456789012-abcdefABCDEF»",
    "post to https://hooks.slack.com/services/«T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX»",
    "vault «hvs.CAESIJ0123456789abcdefghij»",
    "https://acct.blob.core.windows.net/c/b?sv=2022-11-02&se=2026-01-01&sr=b&sig=«aB3%2FdE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC8%3D»&sp=r",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC8aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC8==»;EndpointSuffix=core.windows.net",
    "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey=«aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC8=»",
    "ARM_CLIENT_SECRET is «abc8Q~dEfGhIjKlMnOpQrStUvWxYz0123456789.ab»",
    "signed https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=«0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef»",
    "shows «k8s-aws-v1.aHR0cHM6Ly9zdHMuZXUtY2VudHJhbC0xLmFtYXpvbmF3cy5jb20» to it",
    "cookie «eyJhbGciOiJSUzI1NiIsImtpZCI6Ing.eyJpc3MiOiJrdWJlcm5ldGVzL3Nl.c2lnbmF0dXJlLXNpZ25hdHVyZQ» sent",
    "identity «AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ»",
    "PrivateKey = «yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=»",
    "invalid token: «abc123def456» is not known",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "«-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\nMIIEpAIBAAKCAQEA7bq3\n-----END RSA PRIVATE KEY-----»",
    "«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF0123456789abcdefgh\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----»",
    "«---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"x\"\nP2/56wAAA0123456789abcdef\n---- END SSH2 ENCRYPTED PRIVATE KEY ----»",
    "Public-Lines: 1\nAAAAC3NzaC1lZDI1NTE5AAAAIE8T\n«Private-Lines: 1\nAAAAIE8Tn3uMkKfY0yXvX1yq0m3m0y4F1m3m»\nPrivate-MAC: 00",
    "body=«-----BEGIN+PRIVATE+KEY-----%0AMIIEvQIBADAN%0A-----END+PRIVATE+KEY-----»&x=1",
];

/// Lines that look like some of these and are none.
const INNOCENT: &[&str] = &[
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "/var/log/pods/kube-system_etcd-it-control-plane-0_0123456789abcdef0123456789abcdef/etcd/0.log",
    "version 1.36.3 of 10.124.0.10 bearer of news, kubelet.service containerd.service",
    "no private key was found; a PEM block begins with -----BEGIN",
    "uid 3f2504e0-4f89-11d3-9a0c-0305e82c3301, commit 0123456789abcdef0123456789abcdef01234567",
    "image docker-pullable://nginx:1.25@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "GET https://proxy.golang.org:443/k8s.io/api/@v/list, https://10.0.0.1:6443/livez, ssh://git@github.com/a/b",
    "--initial-cluster=a=https://10.0.0.1:2380,b=https://10.0.0.2:2380 --initial-cluster-token=turnup-prod-01",
    r#"{"level":"info","initial-cluster-token":"etcd-cluster-1","auth-token":"simple","quota":2147483648}"#,
    r#"FLAG: --token-auth-file="" --service-account-private-key-file="/etc/kubernetes/pki/sa.key" --authentication-token-webhook="true""#,
    r#""MountVolume.SetUp succeeded" pod="kube-system/coredns-0" secret="kube-system/bootstrap-token-abc123" err=<nil>"#,
    "I1123 authentication.go:73] could not get token: Get \"https://10.0.0.1\": EOF; invalid password: try again",
    "        secret:\n          secretName: certs-3f2a1b\n        token: null\n        password: \"\"\n        auth: {}",
    "automountServiceAccountToken: false, serviceAccountToken: {expirationSeconds: 3607, path: token}",
    "password = (sensitive value), token = (known after apply), secret_key: <redacted>, api_key: ${API_KEY}, passwd=***",
    "PWD=/srv/www OLDPWD=/tmp; systemd-ask-password-console.path: Started; PasswordAuthentication no",
    "pam_unix(sshd:auth): authentication failure; Failed password for invalid user admin from 192.0.2.7 port 22 ssh2",
    "usage: tool [--password FILE] [--token TOKEN] --password is read from a file; rpassword::prompt_password(secret)",
    "docker run -u 1000:1000 --user root:root; basic types; Basic authentication is off; Authorization: RBAC, Node",
    "plugin/auth: cache hit ratio 0.5; config.cluster.informersfactorys; object.persistentvolume",
    "subject CN=turnup:break-glass, X509SHA256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE8Tn3uMkKfY0yXvX1yq0m3m0y4F1m3m0y4F1m3m0y4F turnup",
    "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
];

fn nothing_known() -> Redactor {
    Redactor::new(&Known::default()).unwrap()
}

fn knowing(secrets: &[&[u8]]) -> Redactor {
    let mut known = Known::default();
    for (index, secret) in secrets.iter().enumerate() {
        known.add(&format!("secret {index}"), secret.to_vec(), false);
    }
    Redactor::new(&known).unwrap()
}

/// The text with marks as it is written, and as it has to become.
fn unmarked(text: &str) -> (String, String) {
    let (mut written, mut expected) = (String::new(), String::new());
    for (index, part) in text.split(['«', '»']).enumerate() {
        written += part;
        expected += if index % 2 == 0 { part } else { "[removed]" };
    }
    (written, expected)
}

fn cleaned(redactor: &Redactor, text: &str) -> String {
    let (clean, _) = redactor.clean(text.as_bytes().to_vec());
    assert_eq!(redactor.find(&clean), [], "what is left of {text}");
    String::from_utf8(clean).unwrap()
}

#[test]
fn exactly_what_is_secret_goes() {
    let redactor = nothing_known();
    let mut wrong = String::new();
    for text in PLANTED {
        let (written, expected) = unmarked(text);
        let found = cleaned(&redactor, &written);
        if found != expected {
            writeln!(wrong, "{written}\n  became  {found}\n  not     {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn ordinary_lines_and_real_logs_stay_as_they_are() {
    let redactor = nothing_known();
    let lines = INNOCENT.iter().map(|line| ("a line", *line));
    for (name, text) in CORPUS.into_iter().chain(lines) {
        let hits = redactor.find(text.as_bytes());
        let shown: Vec<String> = hits
            .iter()
            .map(|hit| format!("{}: {}", hit.what, String::from_utf8_lossy(&text.as_bytes()[hit.range.clone()])))
            .collect();
        assert!(hits.is_empty(), "{name}: {shown:#?}");
        for line in text.lines() {
            assert!(matches!(clean_line(line), Cow::Borrowed(_)), "{name}: {line}");
        }
    }
}

#[test]
fn a_line_of_a_log_is_cleaned_while_it_is_written() {
    for text in PLANTED.iter().filter(|text| !text.contains('\n')) {
        let (written, expected) = unmarked(text);
        assert_eq!(clean_line(&written), expected);
    }
}

#[test]
fn what_is_encoded_is_read() {
    let redactor = nothing_known();
    for text in PLANTED.iter().filter(|text| text.contains('«')) {
        let (written, _) = unmarked(text);
        // Something long enough to be a run of base64.
        let written = format!("{written}\n# and so on and so forth");
        for encoded in [STANDARD.encode(&written), STANDARD.encode(STANDARD.encode(&written)), hex::encode(&written)] {
            let found = cleaned(&redactor, &format!("data: {encoded}\nnext: 1"));
            assert!(
                !found.contains(&encoded[..encoded.len().min(40)]) && found.ends_with("\nnext: 1"),
                "{written}: {found}"
            );
        }
    }
}

#[test]
fn private_keys_without_a_part_of_their_armour_go() {
    let redactor = nothing_known();
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = key.serialize_pem();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let head = pem.split("-----END").next().unwrap();
    let tail = pem.split_once('\n').unwrap().1;
    let indented = pem.replace('\n', "\n      ");
    let in_log = pem.replace('\n', "\n12:00:00.000 | ");
    let der = key.serialize_der();
    for secret in
        [pem.as_str(), head, tail, &indented, &in_log, &pem.replace('\n', "\\n"), &pem.replace('\n', "\\\\n"), &body]
    {
        for text in [format!("before {secret} after"), STANDARD.encode(format!("before {secret} after"))] {
            let found = cleaned(&redactor, &text);
            assert!(!found.contains(&body[20..50]) && !found.contains("PRIVATE KEY"), "{text}: {found}");
        }
    }
    assert_eq!(cleaned(&redactor, &format!("key: {} end", URL_SAFE_NO_PAD.encode(&der))), "key: [removed] end");
    assert_eq!(cleaned(&redactor, &format!("key: {} end", hex::encode(&der))), "key: [removed] end");
    let public = STANDARD.encode(rcgen::PublicKeyData::subject_public_key_info(&key));
    assert_eq!(cleaned(&redactor, &public), public);
    // The word alone takes nothing with it.
    let text =
        "found -----BEGIN RSA PRIVATE KEY----- in a file\nE1123 server.go:123] PersistentVolumeClaimTemplate is gone";
    assert_eq!(cleaned(&redactor, text), text.replace("-----BEGIN RSA PRIVATE KEY-----", "[removed]"));
}

#[test]
fn a_known_secret_goes_in_every_form_and_in_halves() {
    let (token, other) = ("q7x0zt.4m1k9d2p8s5v3w6y", "x-K9f2.Lq81_Zr47pT");
    let password = "correct horse/battery";
    let redactor = knowing(&[token.as_bytes(), other.as_bytes(), password.as_bytes()]);
    let half = token.split_once('.').unwrap().1;
    for secret in [token, half, &half[..8], &half[8..], other, &other[..9], &other[9..], password] {
        for text in [
            secret.to_owned(),
            STANDARD_NO_PAD.encode(secret),
            URL_SAFE_NO_PAD.encode(format!("some more in front of {secret} and behind it")),
            hex::encode(secret),
            serde_json::Value::from(secret).to_string(),
            STANDARD.encode(format!("{{\"data\": \"{}\"}}", STANDARD.encode(secret))),
        ] {
            // Of eight letters alone no more is known than these letters.
            if secret.len() < 10 && text != secret {
                continue;
            }
            let found = cleaned(&redactor, &format!("a line\nx {text} y\nanother line"));
            let is_gone =
                found.starts_with("a line\nx ") && found.ends_with(" y\nanother line") && found.contains("[removed]");
            assert!(is_gone && !found.contains(secret), "{secret} as {text}: {found}");
        }
    }
    for secret in [token, half, other, password] {
        for at in 1..secret.len() {
            for end in ["\n", "\r\n", "\\n", "\n      ", "\n12:00:00.000 | "] {
                let (first, second) = secret.split_at(at);
                // A blank at the end of a line is not seen.
                if first.ends_with(' ') || second.starts_with(' ') {
                    continue;
                }
                let found = cleaned(&redactor, &format!("x {first}{end}{second} y"));
                assert_eq!(found, "x [removed] y", "{secret} with {end:?} at {at}");
            }
        }
    }
    let text = "correct horses have batteries";
    assert_eq!(cleaned(&redactor, text), text, "a part of a chosen password is a word of any text");
}

/// A secret of some kind: chosen by people, and made by machines.
fn any_secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z][A-Za-z0-9!#%+=_.~-]{6,20}[0-9][A-Za-z0-9]",
        "[a-z0-9]{6}\\.[a-z][a-z0-9]{14}[0-9]",
        "ghp_[A-Za-z0-9]{36}",
        "glpat-[A-Za-z0-9_-]{19}[A-Za-z0-9]",
        "xoxb-[0-9]{12}-[A-Za-z0-9]{24}",
        "[A-Za-z]{2}[0-9][A-Za-z0-9/+]{36}[A-Za-z0-9]",
    ]
}

/// Where it stands; § is the secret.
const PLACES: &[&str] = &[
    "password=§",
    "db_password: \"§\"",
    "\"clientSecret\":\"§\",",
    "export API_TOKEN='§'",
    "{\\\"password\\\":\\\"§\\\"}",
    "  - name: DB_PASSWORD\n    value: \"§\"",
    "https://robot:§@example.com/x",
    "Authorization: Bearer §",
    "  secret: §",
    "tool --password \"§\" --more",
    "AZURE_CLIENT_SECRET=§",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_secret_in_its_place_in_a_real_log_goes_and_all_else_stays(
        secret in any_secret(), place in 0..PLACES.len(), file in 0..CORPUS.len(), line in 0..60_usize,
    ) {
        let in_url = PLACES[place].contains("://");
        // In an address these end or divide it.
        prop_assume!(!in_url || !secret.contains(['/', '#', '%']));
        let lines: Vec<&str> = CORPUS[file].1.lines().take(61).collect();
        let planted = |what: &str| {
            let place = PLACES[place].replace('§', what);
            [&lines[..line], &[place.as_str()], &lines[line..]].concat().join("\n")
        };
        prop_assert_eq!(cleaned(&nothing_known(), &planted(&secret)), planted("[removed]"));
    }

    #[test]
    fn what_is_clean_stays_clean(words in proptest::collection::vec(
        prop_oneof![
            "[ -~]{0,12}", "[\\x00-\\xff]{0,6}", any_secret(),
            Just("password".to_owned()), Just("token: ".to_owned()), Just("secret=".to_owned()), Just("\"".to_owned()), Just("\\\"".to_owned()),
            Just("://".to_owned()), Just(":x@".to_owned()), Just("Authorization: Basic ".to_owned()), Just("\n".to_owned()), Just("\\n".to_owned()),
            Just("-----BEGIN PRIVATE KEY-----".to_owned()), Just("-----END PRIVATE KEY-----".to_owned()), Just("[removed]".to_owned()),
        ], 0..24)) {
        let redactor = knowing(&[b"q7x0zt.4m1k9d2p8s5v3w6y"]);
        let (clean, _) = redactor.clean(words.concat().into_bytes());
        prop_assert_eq!(redactor.find(&clean), []);
    }
}

/// The processor's time of this thread for a search: what else the machine does is not in it.
fn measure(redactor: &Redactor, text: &[u8]) -> Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let start = now();
    std::hint::black_box(redactor.find(text));
    now().checked_sub(start).unwrap()
}

/// This text again and again, until it is so long.
fn repeated(text: &str, length: usize) -> Vec<u8> {
    text.bytes().cycle().take(length).collect()
}

#[test]
fn eight_times_as_much_of_anything_takes_about_eight_times_as_long() {
    let token = "q7x0zt.4m1k9d2p8s5v3w6y";
    let redactor = knowing(&[token.as_bytes(), b"0f1E2d3C4b5A69788796a5B4c3D2e1F0"]);
    let mut texts: Vec<String> = PLANTED.iter().map(|text| unmarked(text).0).collect();
    texts.extend(
        [
            "a",
            "A0",
            "a b ",
            "\n",
            "\\",
            "\"",
            "://",
            "://a:",
            "://a:b@",
            "@",
            ":",
            "=",
            "password",
            "password=",
            "password: ",
            "password: |\n  a\n",
            "token,",
            "--password ",
            "--password,",
            "\\\"password\\\":\\\"",
            "name: password ",
            "name\":\"password\",",
            "\"password\",\"value",
            "eyJ",
            "eyJaaaaaa.",
            "eyJaaaaaaaa.aaaaaaaaa.",
            "abcdef.",
            "abcdef.0123456789abcde",
            "AKIAIOSFODNN7EXAMPLE",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "-----BEGIN ",
            "PRIVATE KEY",
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
            "Private-Lines: 1\nAA",
            "Authorization: Basic ",
            "bearer ",
            "curl -u ",
            "login a password ",
            "?sig=",
            "0f1E2d3C4b5A",
            "4m1k9d2p8s5v",
            "4m1k9d2p\n",
            "0123456789abcdef",
            "glpat-",
            "sk-",
            "ghp_aaaa",
        ]
        .map(str::to_owned),
    );
    let size = 32 << 10;
    for text in texts {
        // Without a line's end, and with.
        for text in [text.replace('\n', " "), format!("{text}\n")] {
            let (short, long) = (repeated(&text, size), repeated(&text, 8 * size));
            let is_linear = (0..5).any(|_| measure(&redactor, &long) < measure(&redactor, &short) * 24);
            assert!(is_linear, "{text:?} takes much longer where there is more of it");
        }
    }
}

#[test]
fn a_hundred_megabytes_of_logs_take_ten_times_as_long_as_ten() {
    let redactor = knowing(&[b"q7x0zt.4m1k9d2p8s5v3w6y"]);
    let all: String = CORPUS.iter().map(|(_, text)| *text).collect();
    let long = repeated(&all, 100 << 20);
    let ten = measure(&redactor, &long[..10 << 20]);
    let hundred = measure(&redactor, &long);
    assert!(hundred < ten * 30, "{hundred:?} for 100 MiB, {ten:?} for 10 MiB");
    assert_eq!(redactor.find(&long[..1 << 20]), []);
}
