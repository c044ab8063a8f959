//! The end of a join: once kubelet has its certificate, the join token has no use on this host and
//! is removed from kubelet's configuration.
//!
//! It waits and removes; it asks the API server nothing but whether the token, or what shows
//! which machine this is, is good, to say why nothing comes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use zeroize::Zeroizing;

use crate::cloud::Endpoints;
use crate::error::{Error, Result};
use crate::exec::signals;

use super::layout::{BOOTSTRAP_KUBECONFIG, KUBELET_KUBECONFIG};
use super::node_config::NodeConfig;
use super::{facts, machine_identity, task};

/// How long a host that joins by itself waits before it says why; it goes on waiting then. Its name
/// may have to become free first.
pub(super) const APPROVED: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// For the one question about the token.
const ANSWER: Duration = Duration::from_secs(5);

/// Waits until kubelet has a client certificate that is valid, removes the kubeconfig with the
/// token, and puts the kubeconfig of the node config in the place of the one that kubelet has
/// written: from then on a changed address of the API reaches kubelet.
pub(crate) fn finish(limit: Duration) -> Result<()> {
    finish_at(Path::new(facts::CLIENT_CERTIFICATE), Path::new(BOOTSTRAP_KUBECONFIG), limit, settle_kubeconfig)
}

/// The kubeconfig of the node config, where one was applied.
fn settle_kubeconfig() -> Result<()> {
    let Some(node_config) = NodeConfig::read_applied()? else { return Ok(()) };
    let mut files = node_config.files.iter();
    let Some(file) = files.find(|file| file.path == KUBELET_KUBECONFIG) else { return Ok(()) };
    // The running kubelet has the same server and the same certificate from its own.
    task::ensure_file(&node_config, file, &BTreeMap::new()).map(drop)
}

/// The token goes last: while it is there, the host's agent leaves the join alone.
fn finish_at(certificate: &Path, token: &Path, limit: Duration, settle: impl Fn() -> Result<()>) -> Result<()> {
    let since = Instant::now();
    while !facts::is_valid_certificate(certificate) {
        if since.elapsed() > limit {
            return Err(late(&fs_err::read_to_string(token).unwrap_or_default()));
        }
        signals::sleep(POLL_INTERVAL)?;
    }
    settle()?;
    if token.exists() {
        fs_err::remove_file(token)?;
    }
    Ok(())
}

/// Whether the kubeconfig with the token is still there, although kubelet has its certificate.
pub(super) fn is_token_left() -> bool {
    Path::new(BOOTSTRAP_KUBECONFIG).exists() && facts::is_valid_certificate(Path::new(facts::CLIENT_CERTIFICATE))
}

/// Why kubelet has no certificate, as far as one question tells.
fn late(kubeconfig: &str) -> Error {
    let kubeconfig: Value = serde_saphyr::from_str(kubeconfig).unwrap_or_default();
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default();
    let token = match find_token(&kubeconfig, &Endpoints::default()) {
        Ok(token) => token,
        Err(error) => {
            return Error::transient("this host cannot prove which machine it is")
                .source(error)
                .hint("journalctl -u kubelet (on this host)");
        }
    };
    match token.and_then(|token| ask(&kubeconfig, server, &token)) {
        Some(401) if program_of(&kubeconfig).is_some() => Error::transient(format!("{server} does not take this machine's proof"))
            .hint("turnup up (tells the control plane which machines are of a node group); on a control-plane host: journalctl -u turnup-machine-authenticator, where there is such a unit, else the log of kube-apiserver says why"),
        Some(401) => Error::transient(format!("{server} refuses the join token of this host: it has ended, or was revoked"))
            .hint("turnup up (makes the next token, for machines that are made from then on); for this one: put a token that is good into /var/lib/turnup/join-token, then: systemctl restart turnup-node"),
        Some(_) => Error::transient("the request of this host's kubelet for its certificate is not approved")
            .hint("turnup status (says why); on a control-plane host: journalctl -u turnup-csr-approver"),
        None => Error::transient(format!("this host does not reach the API server at {server}"))
            .hint("journalctl -u kubelet (on this host)"),
    }
}

/// The arguments of `turnup node machine-identity`, where kubelet shows what it says.
fn program_of(kubeconfig: &Value) -> Option<&Vec<Value>> {
    kubeconfig["users"][0]["user"]["exec"]["args"].as_array()
}

/// What kubelet shows the API server; none where there is no kubeconfig.
fn find_token(kubeconfig: &Value, endpoints: &Endpoints) -> Result<Option<Zeroizing<String>>> {
    let Some(words) = program_of(kubeconfig) else {
        let token = kubeconfig["users"][0]["user"]["token"].as_str();
        return Ok(token.map(|token| Zeroizing::new(token.to_owned())));
    };
    let flag = |name: &str| words.iter().filter_map(Value::as_str).find_map(|word| word.strip_prefix(name));
    let (cloud, audience) = (flag("--cloud="), flag("--audience="));
    machine_identity::fetch_token(cloud.unwrap_or_default(), audience.unwrap_or_default(), endpoints)
        .map(|token| Some(token.text))
}

/// The status with which the API server answers the bearer of the token; none when it does not.
fn ask(kubeconfig: &Value, server: &str, token: &str) -> Option<u16> {
    let authority = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str()?;
    let authority = Certificate::from_pem(&STANDARD.decode(authority).ok()?).ok()?;
    let roots = RootCerts::new_with_certs(&[authority]);
    let config = ureq::Agent::config_builder()
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .timeout_global(Some(ANSWER))
        .http_status_as_error(false)
        .proxy(None)
        .build();
    let request =
        config.new_agent().get(format!("{server}/healthz")).header("Authorization", format!("Bearer {token}"));
    Some(request.call().ok()?.status().as_u16())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use serde_json::json;

    use super::*;
    use crate::node::yaml;

    #[test]
    fn the_answer_is_asked_for_with_what_kubelet_shows() {
        let nowhere = Endpoints { metadata: "http://127.0.0.1:1".into(), api: None };
        let of = |user: Value| find_token(&json!({"users": [{"user": user}]}), &nowhere);
        assert_eq!(of(json!({"token": "a.b"})).unwrap().unwrap().as_str(), "a.b");
        assert!(of(json!({})).unwrap().is_none() && find_token(&Value::Null, &nowhere).unwrap().is_none());
        let program = |cloud: &str| json!({"exec": {"args": ["node", "machine-identity", cloud, "--audience=a"]}});
        let error = of(program("--cloud=gce")).unwrap_err();
        assert_eq!(error.message(), "127.0.0.1:1 does not answer");
        assert!(of(program("--cloud=azure")).unwrap_err().message().starts_with("\"azure\" says nothing"));
    }

    #[test]
    fn a_token_goes_when_the_certificate_is_there_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, token) = (dir.path().join("current.pem"), dir.path().join("token"));
        let write = |until: i32| {
            let mut params = CertificateParams::default();
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
            let signed = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            fs_err::write(&certificate, signed.pem()).unwrap();
        };
        let kubeconfig = json!({"clusters": [{"cluster": {"server": "https://10.0.0.1:6443"}}], "users": []});
        fs_err::write(&token, yaml::render(&kubeconfig)).unwrap();
        let finish = || finish_at(&certificate, &token, Duration::ZERO, || Ok(()));
        let error = finish().unwrap_err();
        let expected = "this host does not reach the API server at https://10.0.0.1:6443";
        assert!(error.message() == expected && token.exists(), "{}", error.message());
        write(2021);
        assert!(finish().is_err() && token.exists(), "one that has ended is none: the host has to join again");
        write(2999);
        finish().unwrap();
        assert!(!token.exists());
        finish().unwrap();
    }
}
