//! A real etcd and a real API server for tests of what is said to one, with the programs of the
//! cache, and clients that show a token as a kubelet or a pod does. They end with the test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "servers that run until the test ends")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use serde_json::{Value, json};

use super::api::Kubectl;
use super::certificate_request;
use super::kubeconfig::{self, Identity};
use super::pki::{Authority, Leaf};
use crate::artifacts::{Cache, Lock, NoProgress, Sources};
pub(crate) use crate::node::emulator::free_port;

pub(crate) fn authority() -> (String, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.self_signed(&key).unwrap().pem(), Issuer::new(params, key))
}

pub(crate) fn signed(issuer: &Issuer<'_, KeyPair>, name: &str, group: Option<&str>) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    (params.signed_by(&key, issuer).unwrap(), key)
}

/// etcd and an API server.
pub(crate) struct ApiServer {
    running: Vec<Child>,
    /// Where its files are, and those of its clients.
    pub(crate) dir: tempfile::TempDir,
    port: u16,
    authority: String,
    kubectl: PathBuf,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        for child in self.running.iter_mut().rev() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl ApiServer {
    /// With these flags besides what it needs; `{dir}` in them is the directory of these files.
    pub(crate) fn start(version: &str, own_flags: &[&str], files: &[(&str, &Value)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let write = |name: &str, text: &str| fs_err::write(file(name), text).unwrap();
        let selection = Lock::embedded().unwrap().select(version).unwrap();
        let wanted = ["etcd", "kube-apiserver", "kubectl"].map(|name| selection.binary(name).unwrap());
        let programs = Cache::open().unwrap().ensure_all(wanted, &Sources::default(), &NoProgress).unwrap();
        let (authority, own) = authority();
        let (server, server_key) = signed(&own, "kube-apiserver", None);
        let (admin, admin_key) = signed(&own, "admin", Some("system:masters"));
        let [port, etcd, peer] = [free_port(), free_port(), free_port()];
        write("ca.crt", &authority);
        write("server.crt", &server.pem());
        write("server.key", &server_key.serialize_pem());
        write("server.pub", &server_key.public_key_pem());
        for (name, content) in files {
            write(name, &content.to_string());
        }
        let url = format!("https://127.0.0.1:{port}");
        let (certificate, key) = (&admin.pem(), &admin_key.serialize_pem());
        write(
            "admin",
            &kubeconfig::render("shop", &url, &authority, "admin", &Identity::Embedded { certificate, key }),
        );
        let start = |program: &Path, log: &str, flags: &[String]| {
            let log = fs_err::File::create(file(log)).unwrap().into_file();
            let out = Stdio::from(log.try_clone().unwrap());
            Command::new(program).args(flags).stdout(out).stderr(log).spawn().unwrap()
        };
        let etcd_url = format!("http://127.0.0.1:{etcd}");
        let etcd_flags = [
            format!("--data-dir={}", file("etcd")),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        ];
        let flags = [
            format!("--etcd-servers={etcd_url}"),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            "--authorization-mode=Node,RBAC".into(),
            "--anonymous-auth=false".into(),
            "--enable-bootstrap-token-auth=true".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--service-account-signing-key-file={}", file("server.key")),
            format!("--service-account-key-file={}", file("server.pub")),
        ];
        let own = own_flags.iter().map(|flag| flag.replace("{dir}", &dir.path().display().to_string()));
        let flags: Vec<String> = flags.into_iter().chain(own).collect();
        let running =
            vec![start(&programs[0].path, "etcd.log", &etcd_flags), start(&programs[1].path, "api.log", &flags)];
        let kubectl = programs[2].path.clone();
        let mut api = Self { running, dir, port, authority, kubectl };
        api.wait();
        api
    }

    pub(crate) fn log(&self) -> String {
        fs_err::read_to_string(self.dir.path().join("api.log")).unwrap()
    }

    fn wait(&mut self) {
        let (admin, since) = (self.admin(), Instant::now());
        while admin.command(&["get", "--raw=/readyz"]).succeed().is_err() {
            let ended = self.running[1].try_wait().unwrap();
            assert!(ended.is_none() && since.elapsed() < Duration::from_mins(3), "{ended:?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    pub(crate) fn admin(&self) -> Kubectl {
        Kubectl::new(self.kubectl.clone(), self.dir.path().join("admin"))
    }

    /// The kubeconfig of a `ServiceAccount` of kube-system, with a token of an hour.
    pub(crate) fn service_account(&self, name: &str) -> PathBuf {
        let words = ["create", "token", name, "--namespace=kube-system", "--duration=1h"];
        let token = self.admin().run(&words).unwrap();
        let (url, file) = (format!("https://127.0.0.1:{}", self.port), self.dir.path().join(name));
        let token = Identity::Token(token.trim());
        fs_err::write(&file, kubeconfig::render("shop", &url, &self.authority, name, &token)).unwrap();
        file
    }

    /// A kubelet whose program says this.
    pub(crate) fn kubelet(&self, token: &str) -> Kubectl {
        let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}});
        let (said, file) = (self.dir.path().join("said"), self.dir.path().join("kubelet"));
        fs_err::write(&said, credential.to_string()).unwrap();
        let (url, said) = (format!("https://127.0.0.1:{}", self.port), said.display().to_string());
        let program = Identity::Program(&["/bin/cat", &said]);
        fs_err::write(&file, kubeconfig::render("shop", &url, &self.authority, "bootstrap", &program)).unwrap();
        Kubectl::new(self.kubectl.clone(), file)
    }

    /// Asks with this token to be this node; what the API server says where it refuses.
    pub(crate) fn ask(&self, token: &str, request: &str, node: &str) -> Result<(), String> {
        let leaf = Leaf::client("", Authority::Cluster, &format!("system:node:{node}"), Some("system:nodes"));
        let mut csr = certificate_request::object(&leaf, &KeyPair::generate().unwrap()).unwrap();
        csr["metadata"] = json!({"name": request});
        let kubelet = self.kubelet(token);
        let run = kubelet.command(&["create", "--validate=false", "--filename=-"]).stdin(csr.to_string());
        run.output().map(drop).map_err(|failure| failure.stderr().to_owned())
    }
}
