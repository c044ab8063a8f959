//! EC2 in miniature for tests: the metadata services of machines, an STS that verifies signatures,
//! and `DescribeInstances`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use zeroize::Zeroizing;

use super::sigv4::PresignedRequest;
use crate::cloud::{Endpoints, LentKey};

/// Where all its machines are.
const REGION: &str = "eu-central-1";
const ACCOUNT: &str = "111122223333";

/// What was asked, the head and the body of each request.
pub(super) type Requests = Arc<Mutex<Vec<String>>>;

/// A machine, with what may be changed of it.
#[derive(Clone, Debug)]
pub(crate) struct EmulatedMachine {
    pub(crate) id: String,
    pub(crate) account: String,
    pub(crate) role: String,
    /// The name of the session, which EC2 makes the machine's id.
    pub(crate) session: String,
    pub(crate) state: String,
    pub(crate) name: String,
    pub(crate) tags: Vec<(String, String)>,
}

impl EmulatedMachine {
    /// One of the group of the cluster, at an address that ends so.
    pub(crate) fn new(cluster: &str, group: &str, number: u8) -> Self {
        let id = format!("i-0123456789abcd{number:03x}");
        let tags = [("KubernetesCluster", cluster), ("k8s.io/group", group), ("k8s.io/role/node", "1")];
        Self {
            session: id.clone(),
            id,
            account: ACCOUNT.into(),
            role: format!("{cluster}-{REGION}-node"),
            state: "running".into(),
            name: format!("ip-172-20-1-{number}.{REGION}.compute.internal"),
            tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        }
    }

    pub(crate) fn tag(&mut self, key: &str, value: &str) {
        self.tags.retain(|(name, _)| name != key);
        self.tags.push((key.to_owned(), value.to_owned()));
    }

    fn arn(&self) -> String {
        format!("arn:aws:sts::{}:assumed-role/{}/{}", self.account, self.role, self.session)
    }

    fn describe(&self) -> String {
        let tags = self.tags.iter().map(|(key, value)| format!("<item><key>{key}</key><value>{value}</value></item>"));
        let Self { id, state, name, .. } = self;
        format!(
            "<item><instanceId>{id}</instanceId><instanceState><code>16</code><name>{state}</name></instanceState>\
            <privateDnsName>{name}</privateDnsName><networkInterfaceSet><item><privateDnsName>ip-9-9-9-9</privateDnsName>\
            <tagSet><item><key>k8s.io/group</key><value>other</value></item></tagSet></item></networkInterfaceSet>\
            <tagSet>{}</tagSet></item>",
            tags.collect::<String>()
        )
    }
}

/// The answer of STS to who signed.
pub(super) fn caller(account: &str, arn: &str, user: &str) -> String {
    format!(
        r#"<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
        <Arn>{arn}</Arn><UserId>{user}</UserId><Account>{account}</Account></GetCallerIdentityResult>
        <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></GetCallerIdentityResponse>"#
    )
}

/// The answer of EC2 with these machines.
pub(super) fn instances(all: &[&EmulatedMachine]) -> String {
    let sets = all.iter().map(|one| format!("<item><instancesSet>{}</instancesSet></item>", one.describe()));
    format!(
        r#"<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet>{}</reservationSet></DescribeInstancesResponse>"#,
        sets.collect::<String>()
    )
}

/// A success.
pub(super) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// An error as both APIs give it.
pub(super) fn failure(status: &str, code: &str) -> String {
    let said = "<Message>the X-Amz-Security-Token t</Message>";
    let body = format!("<ErrorResponse><Error><Code>{code}</Code>{said}</Error></ErrorResponse>");
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// The key that the metadata service of a machine lends.
fn key(number: usize) -> LentKey {
    LentKey {
        id: format!("ASIAIOSFODNN7EXAMPL{number}"),
        secret: Zeroizing::new(format!("secret{number}")),
        session: Zeroizing::new(format!("session/+={number}")),
    }
}

/// All of it, with answers of STS and EC2 to requests; `/machine/NUMBER` is where the metadata
/// service of each of these machines answers.
pub(super) fn serve(
    machines: &[EmulatedMachine],
    sts: impl Fn(&str) -> String + Send + 'static,
    ec2: impl Fn(&str) -> String + Send + 'static,
) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, machines) = (Requests::default(), machines.to_vec());
    let heard = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut text, mut bytes) = (String::new(), [0; 8192]);
            while !text.contains("\r\n\r\n") || (text.starts_with("POST") && !text.contains("Action=")) {
                match stream.read(&mut bytes) {
                    Ok(count) if count > 0 => text += &String::from_utf8_lossy(&bytes[..count]),
                    _ => break,
                }
            }
            heard.lock().unwrap().push(text.clone());
            let path = text.split(' ').nth(1).unwrap_or_default();
            let answer = match path.strip_prefix("/machine/") {
                Some(rest) => metadata(&machines, rest),
                None if path.starts_with("/?") => sts(&text),
                None => ec2(&text),
            };
            let answer = answer.replacen("\r\n", "\r\nConnection: close\r\n", 1);
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    (url, asked)
}

fn metadata(machines: &[EmulatedMachine], path: &str) -> String {
    let (number, path) = path.split_once('/').unwrap();
    let number: usize = number.parse().unwrap();
    match path {
        "latest/api/token" => ok("session"),
        "latest/dynamic/instance-identity/document" => {
            let machine = &machines[number];
            let text = serde_json::json!({"instanceId": machine.id, "region": REGION, "accountId": ACCOUNT});
            ok(&text.to_string())
        }
        "latest/meta-data/services/domain" => ok("amazonaws.com"),
        "latest/meta-data/services/partition" => ok("aws"),
        "latest/meta-data/iam/security-credentials/" => ok("role"),
        "latest/meta-data/iam/security-credentials/role" => {
            let LentKey { id, secret, session } = key(number);
            let text = serde_json::json!({"AccessKeyId": id, "SecretAccessKey": *secret, "Token": *session});
            ok(&text.to_string())
        }
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    }
}

/// These machines; STS knows the keys that they are lent.
pub(crate) struct AwsEmulator {
    url: String,
}

impl AwsEmulator {
    pub(crate) fn start(machines: &[EmulatedMachine]) -> Self {
        let (signers, known) = (machines.to_vec(), machines.to_vec());
        let ec2 = move |text: &str| {
            let found = known.iter().find(|machine| text.ends_with(&format!("InstanceId.1={}", machine.id)));
            found.map_or_else(|| failure("400 Bad Request", "InvalidInstanceID.NotFound"), |one| ok(&instances(&[one])))
        };
        let (url, _) = serve(machines, move |text| answer_sts(&signers, text), ec2);
        Self { url }
    }

    /// What a host with this number is told to ask.
    pub(crate) fn endpoints(&self, number: usize) -> Endpoints {
        Endpoints { metadata: format!("{}/machine/{number}", self.url), api: Some(self.url.clone()) }
    }
}

/// As STS verifies: it makes the signature of the request that it gets, with the key that is named.
fn answer_sts(machines: &[EmulatedMachine], text: &str) -> String {
    let query = text.split(' ').nth(1).unwrap().strip_prefix("/?").unwrap();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap();
    let header = text.lines().find_map(|line| line.strip_prefix("x-k8s-aws-id: ")).unwrap_or_default();
    let signer = (0..machines.len()).find(|number| value("X-Amz-Credential").starts_with(&key(*number).id));
    let Some(signer) = signer else { return failure("403 Forbidden", "InvalidClientTokenId") };
    let made: DateTime = DateTime::strptime("%Y%m%dT%H%M%SZ", value("X-Amz-Date")).unwrap();
    let moment: Timestamp = made.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let request = PresignedRequest {
        region: REGION,
        service: "sts",
        query: &[("Action", "GetCallerIdentity"), ("Version", "2011-06-15")],
        headers: &[("host", "sts.eu-central-1.amazonaws.com"), ("x-k8s-aws-id", header)],
        expires: value("X-Amz-Expires").parse().unwrap(),
        moment,
    };
    if request.sign(&key(signer)).as_str() != query {
        return failure("403 Forbidden", "SignatureDoesNotMatch");
    }
    let machine = &machines[signer];
    ok(&caller(&machine.account, &machine.arn(), &format!("AROAEXAMPLE:{}", machine.session)))
}
