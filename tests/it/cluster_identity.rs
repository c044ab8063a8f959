//! Join tokens and health checks on real clusters, which other tests bring up.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, date_time_ymd};
use serde_json::{Value, json};

use crate::cluster_agent::without_agents;
use crate::cluster_support::Site;

const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The port of the health check.
const HEALTH: u16 = 3990;
/// For what has to happen, on a machine with other work.
const TIMEOUT: Duration = Duration::from_mins(3);

/// Probes as kubelet does until the answer is yes.
const WAIT_UNTIL_WELL: &str = r"bash -s <<'END'
for i in $(seq 300); do
  (exec 3<>/dev/tcp/127.0.0.1/3990; printf 'GET /livez HTTP/1.0\r\n\r\n' >&3; head -1 <&3 | grep -q ' 200 ') 2>/dev/null && exit 0
  sleep 0.2
done
echo it does not come back
exit 1
END";

fn params(organization: &str, name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Asks for the certificate of a kubelet, as the bearer of a join token whose groups these are.
pub(crate) fn ask_to_be(site: &Site, request: &str, groups: &[&str], (organization, name): (&str, &str)) {
    let pem = params(organization, name).serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": request},
        "spec": {"signerName": CLIENT, "usages": ["digital signature", "client auth"],
            "request": STANDARD.encode(pem.replace("\r\n", "\n"))},
    });
    let file = site.dir.join(format!("{request}.json"));
    fs_err::write(&file, object.to_string()).unwrap();
    let groups: Vec<String> = groups.iter().map(|group| format!("--as-group={group}")).collect();
    let file = file.display().to_string();
    let mut words = vec!["create", "--as=system:bootstrap:abcdef", "--filename", &file];
    words.extend(groups.iter().map(String::as_str));
    site.kubectl(&words);
}

fn request(site: &Site, name: &str) -> Value {
    let selector = format!("--field-selector=spec.signerName={CLIENT}");
    let mut all = site.get(&["certificatesigningrequests", &selector]).into_iter();
    all.find(|request| request["metadata"]["name"] == name).unwrap()
}

/// Waits until a request is denied, and returns the reason and the message.
pub(crate) fn wait_until_denied(site: &Site, name: &str) -> (String, String) {
    let since = Instant::now();
    loop {
        let request = request(site, name);
        if let Some(condition) = request["status"]["conditions"].get(0) {
            assert_eq!(condition["type"], "Denied", "{request:#}");
            assert!(request["status"]["certificate"].is_null(), "{request:#}");
            let text = |field: &str| condition[field].as_str().unwrap().to_owned();
            return (text("reason"), text("message"));
        }
        assert!(since.elapsed() < TIMEOUT, "{name} is not denied: {request:#}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Does not wait: the request had to be left alone all the time.
pub(crate) fn is_left_alone(site: &Site, name: &str) {
    let request = request(site, name);
    assert!(request["status"]["conditions"].is_null(), "{request:#}");
}

/// The worker has joined with a token of its own, of which nothing is left; a host's token gets no
/// certificate for another node.
pub(crate) fn a_host_joined_and_its_token_is_gone(site: &Site, control_plane: &str, worker: &str) {
    // An attacker with a host's token could wait for Kubernetes to approve this.
    let user = format!("system:node:{control_plane}");
    ask_to_be(site, "attacker-of-host", &["system:bootstrappers:turnup"], ("system:nodes", &user));
    let own = site.get(&["certificatesigningrequests"]).into_iter().find(|request| {
        let messages = request["status"]["conditions"].as_array().into_iter().flatten();
        messages.clone().any(|condition| condition["message"].as_str().unwrap_or_default().contains(worker))
    });
    let own = own.unwrap_or_else(|| json!("no request that turnup approved"));
    assert_eq!(own["status"]["conditions"][0]["reason"], "TurnupApproved", "{own:#}");
    assert!(own["spec"]["username"].as_str().unwrap().starts_with("system:bootstrap:"), "{own:#}");
    let tokens = ["secrets", "--namespace=kube-system", "--field-selector=type=bootstrap.kubernetes.io/token"];
    assert!(site.get(&tokens).is_empty());
    site.in_host(worker, "test -z \"$(ls /etc/kubernetes | grep bootstrap)\"");
}

/// Clients without a certificate get yes or no, and no fault of the health check restarts the API
/// server.
pub(crate) fn health_is_yes_or_no(site: &Site, control_plane: &str) {
    let address = site.spec(control_plane)["address"].as_str().unwrap().to_owned();
    let before = restarts(site, control_plane);
    for path in ["/livez", "/livez?verbose", "/readyz?verbose", "/healthz", "/version", "/api", "/metrics"] {
        assert_eq!(anonymous(&address, path), 401, "{path}");
    }
    for (path, status) in [("/readyz", 200), ("/livez", 200), ("/readyz?verbose", 404), ("/version", 404)] {
        assert_eq!(ask(&address, path), Some(status), "{path}");
    }
    let own_user = "test \"$(stat -c %u /proc/$(systemctl show -p MainPID --value turnup-healthcheck))\" = 3990";
    site.in_host(control_plane, own_user);
    site.in_host(control_plane, "systemctl kill --signal=KILL turnup-healthcheck");
    site.in_host(control_plane, WAIT_UNTIL_WELL);
    // A certificate that has ended.
    let dir = "/etc/kubernetes/healthcheck";
    let key = KeyPair::from_pem(&site.read("pki/healthcheck.key")).unwrap();
    let issuer =
        Issuer::from_ca_cert_pem(&site.read("pki/ca.crt"), KeyPair::from_pem(&site.read("pki/ca.key")).unwrap());
    let mut ended = params("x", "turnup:healthcheck");
    (ended.not_before, ended.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let ended = ended.signed_by(&key, &issuer.unwrap()).unwrap().pem().replace("\r\n", "\n");
    without_agents(site, &[control_plane], || {
        let replace = format!("cp -a {dir}/client.crt /var/tmp/kept && echo '{ended}' > {dir}/client.crt");
        site.in_host(control_plane, &replace);
        assert_eq!((ask(&address, "/livez"), ask(&address, "/readyz")), (Some(200), Some(200)));
        let told = "journalctl -u turnup-healthcheck | grep -q 'status 401 it does not accept the certificate'";
        site.in_host(control_plane, told);
        site.in_host(control_plane, &format!("cp -a /var/tmp/kept {dir}/client.crt"));
    });
    assert_eq!(ask(&address, "/readyz"), Some(200));
    assert_eq!(restarts(site, control_plane), before);
}

fn restarts(site: &Site, control_plane: &str) -> Value {
    let pods = site.get(&["pods", "--namespace=kube-system", "--selector=component=kube-apiserver"]);
    let name = format!("kube-apiserver-{control_plane}");
    let pod = pods.into_iter().find(|pod| pod["metadata"]["name"] == name).unwrap();
    pod["status"]["containerStatuses"][0]["restartCount"].clone()
}

/// The API server's status for an anonymous request.
fn anonymous(address: &str, path: &str) -> u16 {
    let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
    let config = ureq::Agent::config_builder().tls_config(tls).http_status_as_error(false).proxy(None).build();
    config.new_agent().get(format!("https://{address}:6443{path}")).call().unwrap().status().as_u16()
}

/// The status that the health check answers at the host's own address.
fn ask(address: &str, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect((address, HEALTH)).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}
