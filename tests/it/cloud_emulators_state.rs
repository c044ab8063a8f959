//! Terraform's state in the clouds' own stores, against emulators of them on loopback, with
//! Terraform and `OpenTofu`: `make test-clouds`.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it installs and starts emulators, as a user would")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::cli_support::TestEnv;
use crate::cloud_emulators::{Emulator, cache};
use crate::cloud_support::data;
use crate::driver_custom::{each_program, own_module};

/// A lock of another process, as both programs write it.
const LOCK: &str = r#"{"ID":"7b6c2d5e-0000-4000-8000-000000000000","Operation":"OperationTypeApply","Info":"","Who":"ann@elsewhere","Version":"1.11.4","Created":"2026-01-02T03:04:05Z","Path":"state"}"#;
/// The emulator demands credentials and accepts any.
const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request";

/// From here to the store and back, and taken down from there. `lock` creates another process's
/// lock, or removes it.
fn lives(test_env: &TestEnv, place: &[&str], told: &str, mut lock: impl FnMut(bool)) {
    test_env.ok(&["provision"]);
    let inventory = test_env.read(".turnup/own/outputs/provision.json");
    let there = [&["config", "set", "phase1.terraform.lock_timeout=0s"], place].concat();
    test_env.ok(&there);
    let plan = test_env.ok(&["plan"]).out;
    assert!(plan.contains(&format!("- local: the working directory\n               + {told}\n")), "{plan}");
    test_env.ok(&["provision"]);
    assert_eq!(test_env.read(".turnup/own/outputs/provision.json"), inventory, "no host is another one");
    assert!(test_env.ok(&["provision"]).err.contains("0 ran"));

    lock(true);
    test_env.ok(&["config", "set", "phase1.num_nodes=2"]);
    assert!(test_env.ok(&["plan"]).out.contains("+   resource terraform_data.host[\"own-workers-1\"]"));
    let refused = test_env.ends(6, &["provision"]).err;
    assert!(refused.contains("the state is locked by ") && refused.contains("doing: OperationTypeApply"), "{refused}");
    assert!(!refused.contains("locked by an unknown owner"), "{refused}");
    lock(false);
    test_env.ok(&["provision"]);

    test_env.ok(&["config", "set", "phase1.state.backend=local"]);
    test_env.ok(&["provision"]);
    let local: Value = serde_json::from_str(&test_env.read(".turnup/own/provision/terraform.tfstate")).unwrap();
    assert_eq!(local["resources"].as_array().unwrap().len(), 2);
    assert!(test_env.ok(&["provision"]).err.contains("0 ran"));

    test_env.ok(&there);
    test_env.ok(&["provision"]);
    test_env.ok(&["down", "--yes"]);
}

/// A Python that has an emulator of Amazon's APIs.
pub(crate) fn moto() -> Command {
    let python = reference::Python::with_moto().unwrap();
    let mut command = Command::new(python.program());
    command.env("PYTHONPATH", python.packages());
    command
}

#[test]
#[ignore = "a part of make test-clouds"]
fn a_state_lives_in_s3() {
    each_program(|program| {
        let emulator = Emulator::listen(moto(), &["-m", "moto.server", "-p"], &[]);
        let address = format!("http://127.0.0.1:{}", emulator.port);
        ureq::put(format!("{address}/states")).header("Authorization", SIGNED).send_empty().unwrap();
        let test_env = program.test_env().with_env("AWS_ACCESS_KEY_ID", "k").with_env("AWS_SECRET_ACCESS_KEY", "s");
        let endpoint = format!("phase1.state.s3.endpoint={address}");
        let place = [
            "phase1.state.backend=s3",
            "phase1.state.s3.bucket=states",
            "phase1.state.s3.region=us-east-1",
            endpoint.as_str(),
        ];
        let lock = format!("{address}/states/turnup/own/terraform.tfstate.tflock");
        lives(&own_module(test_env), &place, &format!("s3 {address}/states/turnup/own/terraform.tfstate"), |there| {
            if there {
                let put = ureq::put(&lock).header("Authorization", SIGNED).content_type("application/json");
                put.send(LOCK.as_bytes()).unwrap();
            } else {
                ureq::delete(&lock).header("Authorization", SIGNED).call().unwrap();
            }
        });
    });
}

#[test]
#[ignore = "a part of make test-clouds"]
fn a_state_lives_in_google_cloud_storage() {
    each_program(|program| {
        let emulator = Emulator::start("gcs.py", &[]);
        let address = format!("http://127.0.0.1:{}", emulator.port);
        let test_env = program.test_env().with_env("GOOGLE_OAUTH_ACCESS_TOKEN", "none");
        let test_env = test_env.with_env("GOOGLE_STORAGE_CUSTOM_ENDPOINT", &format!("{address}/storage/v1/"));
        let test_env = test_env.with_env("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", &format!("{address}/storage/v1/"));
        let place = ["phase1.state.backend=gcs", "phase1.state.gcs.bucket=states"];
        lives(&own_module(test_env), &place, "gcs states/turnup/own", |there| {
            if there {
                let named = r#"{"name": "turnup/own/default.tflock"}"#;
                let body = format!("--x\r\n\r\n{named}\r\n--x\r\n\r\n{LOCK}\r\n--x--\r\n");
                let put = ureq::post(format!("{address}/upload/storage/v1/b/states/o"));
                put.content_type("multipart/related; boundary=x").send(body.as_bytes()).unwrap();
            } else {
                ureq::delete(format!("{address}/storage/v1/b/states/o/turnup%2Fown%2Fdefault.tflock")).call().unwrap();
            }
        });
    });
}

/// An emulator of Azure's blobs from Node's registry, installed once.
fn azurite() -> PathBuf {
    let dir = cache().join("turnup-providers/azurite-3.35.0");
    let server = dir.join("node_modules/.bin/azurite-blob");
    if !server.exists() {
        fs_err::create_dir_all(&dir).unwrap();
        let npm = Command::new("npm").args(["install", "--silent", "azurite@3.35.0"]).current_dir(&dir).status();
        assert!(npm.unwrap().success());
    }
    server
}

const ACCOUNT: &str = "turnupstates";
/// Not a secret: the emulator is given the same one.
const KEY: &str = "dHVybnVwLXR1cm51cC10dXJudXAtdHVybnVwLWtleSE=";

/// The emulator behind a tunnel, because the backend insists on the cloud's own name: itself, the
/// tunnel, and the authorities to trust.
fn azure(dir: &Path) -> (Emulator, Emulator, PathBuf) {
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=states", "-addext"];
    let mut openssl = Command::new("openssl");
    openssl.args(request).arg(format!("subjectAltName=DNS:{ACCOUNT}.blob.core.windows.net")).current_dir(dir);
    assert!(openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]).output().unwrap().status.success());
    let mut server = Command::new(azurite());
    server.env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}")).current_dir(dir);
    server.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", "--cert"]);
    server.arg(&certificate).arg("--key").arg(&key);
    let emulator = Emulator::listen(server, &["--blobPort"], &[]);
    let port = emulator.port.to_string();
    let tunnel = Emulator::start("tunnel.py", &[Path::new(&port)]);
    let mut container = Command::new("python3");
    container.arg(data("emulators/container.py")).arg(&port).arg(&certificate).args([ACCOUNT, KEY, "states"]);
    assert!(container.status().unwrap().success());
    let bundle = dir.join("bundle.pem");
    let system = fs_err::read_to_string("/etc/ssl/certs/ca-certificates.crt").unwrap();
    fs_err::write(&bundle, system + &fs_err::read_to_string(&certificate).unwrap()).unwrap();
    (emulator, tunnel, bundle)
}

/// A program that waits for an answer, and what it says.
type Holder = (Child, BufReader<ChildStdout>);

/// Another process that has started an apply with the same state and waits for its confirmation.
fn hesitate(program: &Path, block: &str, dir: &Path, env: &[(&str, String)]) -> Holder {
    fs_err::write(dir.join("backend.tf.json"), block).unwrap();
    let command = |word: &str| {
        let mut command = Command::new(program);
        command.arg(word).current_dir(dir).envs(env.iter().map(|(name, value)| (name, value)));
        command.stderr(Stdio::null());
        command
    };
    assert!(command("init").stdout(Stdio::null()).status().unwrap().success());
    let mut child = command("apply").arg("-no-color").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    while !said.ends_with(b"Enter a value:") {
        assert!(output.read_until(b':', &mut said).unwrap() > 0, "{}", String::from_utf8_lossy(&said));
    }
    (child, output)
}

#[test]
#[ignore = "a part of make test-clouds"]
fn a_state_lives_in_azure() {
    each_program(|program| {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (_emulator, tunnel, bundle) = azure(dir.path());
        let env = [
            ("ARM_ACCESS_KEY", KEY.to_owned()),
            ("HTTPS_PROXY", format!("http://127.0.0.1:{}", tunnel.port)),
            ("SSL_CERT_FILE", bundle.display().to_string()),
        ];
        let test_env = env.iter().fold(program.test_env(), |test_env, (name, value)| test_env.with_env(name, value));
        let test_env = own_module(test_env);
        let account = format!("phase1.state.azurerm.storage_account={ACCOUNT}");
        let place = [
            "phase1.state.backend=azurerm",
            "phase1.state.azurerm.resource_group=group",
            account.as_str(),
            "phase1.state.azurerm.container=states",
        ];
        let mut holder: Option<Holder> = None;
        lives(&test_env, &place, &format!("azurerm {ACCOUNT}/states/own.tfstate"), |there| {
            if there {
                let block = test_env.read(".turnup/own/provision/backend.tf.json");
                holder = Some(hesitate(&program.file(), &block, elsewhere.path(), &env));
            } else if let Some((mut child, _output)) = holder.take() {
                // It gets no confirmation, gives up, and releases the lock.
                drop(child.stdin.take());
                child.wait().unwrap();
            }
        });
    });
}
