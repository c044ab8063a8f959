//! A cloud's module in a directory of its own, with real Terraform and a provider that the test
//! chooses.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
#![expect(clippy::disallowed_methods, reason = "it plays the person who applies a module without turnup")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use turnup::cloud;
use turnup::config::{Settings, TreeSource};

use crate::go_program;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE8Tn3uMkKfY0yXvX1yq0m3m0y4F1m3m0y4F1m3m0y4F turnup";

/// The stub, built once by all tests of this process.
static STUB: LazyLock<PathBuf> = LazyLock::new(|| go_program::build("stub-provider", "terraform/stub-provider"));

pub(crate) fn data(rel: &str) -> PathBuf {
    Path::new(ROOT).join("tests/terraform").join(rel)
}

/// A mirror of providers in this directory, with the stub in the place of one provider of the host
/// `example.org`: it knows that one's schema, and of the real one's rules these.
pub(crate) fn mirror_stub(dir: &Path, provider: &str, version: &str, rules: &Value) {
    let machine = if cfg!(target_arch = "aarch64") { "linux_arm64" } else { "linux_amd64" };
    let package = dir.join(format!("example.org/hashicorp/{provider}/{version}/{machine}"));
    fs_err::create_dir_all(&package).unwrap();
    fs_err::copy(&*STUB, package.join(format!("terraform-provider-{provider}_v{version}"))).unwrap();
    fs_err::copy(data(&format!("schemas/{provider}.json")), package.join("schema.json")).unwrap();
    fs_err::write(package.join("rules.json"), rules.to_string()).unwrap();
}

/// The variables of a target's module for these settings.
pub(crate) fn variables(settings: &Settings) -> Value {
    let spec = cloud::Spec::find(settings).unwrap().unwrap();
    spec.variables(vec![KEY.to_owned()]).unwrap()
}

/// The files of a target's module.
pub(crate) fn module_files(target: &str) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(Path::new(ROOT).join("templates/provision").join(target)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A join token.
const TOKEN: &str = "abcdef.0123456789abcdef";

/// A module in a directory of its own, with the variables of one configuration.
pub(crate) struct Module {
    target: String,
    env: BTreeMap<String, String>,
    dir: tempfile::TempDir,
}

impl Module {
    /// With the stub in the place of the provider.
    pub(crate) fn with_stub(target: &str, provider: &str, config: &Path) -> Self {
        let schema = data(&format!("schemas/{provider}.json"));
        Self::new(
            target,
            provider,
            &STUB,
            config,
            BTreeMap::from([("TFSTUB_SCHEMA".to_owned(), schema.display().to_string())]),
        )
    }

    /// The same, where the provider has these rules.
    pub(crate) fn with_rules(target: &str, provider: &str, config: &Path, rules: &Value) -> Self {
        let mut module = Self::with_stub(target, provider, config);
        fs_err::write(module.path("rules.json"), rules.to_string()).unwrap();
        module.env.insert("TFSTUB_RULES".to_owned(), module.path("rules.json").display().to_string());
        module
    }

    /// With this binary as the provider, and this environment.
    pub(crate) fn new(
        target: &str,
        provider: &str,
        binary: &Path,
        config: &Path,
        env: BTreeMap<String, String>,
    ) -> Self {
        let module = Self { target: target.to_owned(), env, dir: tempfile::tempdir().unwrap() };
        for path in module_files(target) {
            fs_err::copy(&path, module.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
        }
        let plugins = module.path("plugins");
        fs_err::create_dir(&plugins).unwrap();
        std::os::unix::fs::symlink(binary, plugins.join(format!("terraform-provider-{provider}"))).unwrap();
        let (name, dir) = (format!("hashicorp/{provider}"), plugins.display());
        let overrides = format!("provider_installation {{\n  dev_overrides {{ \"{name}\" = \"{dir}\" }}\n}}\n");
        fs_err::write(module.path("cli.tfrc"), overrides).unwrap();
        module.configure(&settings(config));
        module
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    pub(crate) fn path(&self, rel: &str) -> PathBuf {
        self.dir.path().join(rel)
    }

    pub(crate) fn configure(&self, settings: &Settings) {
        let spec = cloud::Spec::find(settings).unwrap().unwrap();
        fs_err::write(self.path("terraform.tfvars.json"), format!("{:#}", variables(settings))).unwrap();
        // A host that proves by its cloud who it is has no token.
        let token = if settings.get("phase1.user_data.identity").unwrap() == "cloud" { "" } else { TOKEN };
        self.tell_with(&spec, "#cloud-config\n# the API is at @turnup:api@\n", token);
    }

    /// Gives all hosts this user data.
    pub(crate) fn tell(&self, spec: &cloud::Spec, text: &str) {
        self.tell_with(spec, text, TOKEN);
    }

    /// The same with this token; none when it is empty.
    pub(crate) fn tell_with(&self, spec: &cloud::Spec, text: &str, token: &str) {
        let of_all = |text| spec.hosts_alike().map(|name| (name, text)).collect::<BTreeMap<&str, &str>>();
        let mut tokens = of_all(token);
        tokens.retain(|name, token| *name != cloud::CONTROL_PLANE && !token.is_empty());
        let variables = serde_json::json!({"user_data": of_all(text), "join_tokens": tokens});
        fs_err::write(self.path("user-data.auto.tfvars.json"), variables.to_string()).unwrap();
    }

    /// Runs Terraform; its exit code and standard output.
    pub(crate) fn run(&self, args: &[&str]) -> (i32, String, String) {
        let run = Command::new("terraform")
            .args(args)
            .current_dir(self.dir.path())
            .envs(&self.env)
            .env("NO_COLOR", "1")
            .env("TF_CLI_ARGS", "-no-color")
            .env("TF_CLI_CONFIG_FILE", self.path("cli.tfrc"))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (run.status.code().unwrap(), text(&run.stdout), text(&run.stderr))
    }

    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let (code, out, err) = self.run(args);
        assert_eq!(code, 0, "terraform {args:?}\n{out}\n{err}");
        out
    }

    /// What a plan would do, by address.
    pub(crate) fn changes(&self) -> BTreeMap<String, String> {
        self.changes_with(&[])
    }

    /// The same of a plan with these options.
    pub(crate) fn changes_with(&self, options: &[&str]) -> BTreeMap<String, String> {
        self.ok(&[&["plan", "-input=false", "-out=plan"], options].concat());
        let plan: Value = serde_json::from_str(&self.ok(&["show", "-json", "plan"])).unwrap();
        let changes = plan["resource_changes"].as_array().into_iter().flatten();
        let actions =
            |change: &Value| (change["address"].as_str().unwrap().to_owned(), change["change"]["actions"].to_string());
        changes.map(actions).filter(|(_, actions)| actions != "[\"no-op\"]" && actions != "[\"read\"]").collect()
    }

    /// All resources after an apply.
    pub(crate) fn resources(&self) -> Vec<Value> {
        let state: Value = serde_json::from_str(&self.ok(&["show", "-json"])).unwrap();
        state["values"]["root_module"]["resources"].as_array().unwrap().clone()
    }

    pub(crate) fn apply(&self) {
        self.ok(&["apply", "-input=false", "-auto-approve"]);
    }
}

pub(crate) fn settings(config: &Path) -> Settings {
    Settings::load(config, &TreeSource::embedded()).unwrap()
}

/// The same with other values.
pub(crate) fn settings_with(config: &Path, values: &[&str]) -> Settings {
    let mut settings = settings(config);
    for value in values {
        let (name, value) = value.split_once('=').unwrap();
        settings.set(name, value).unwrap();
    }
    settings
}

/// The configurations of a target by their names.
pub(crate) fn profiles(target: &str) -> BTreeMap<String, PathBuf> {
    let entries = fs_err::read_dir(data(target)).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".config.json")?.to_owned();
        Some((name, path))
    });
    named.collect()
}

/// The provider of a target's module.
pub(crate) fn provider(target: &str) -> &str {
    match target {
        "gce" => "google",
        "azure" => "azurerm",
        other => other,
    }
}

/// A directory from which Terraform installs the stub as if it were the real provider. `addresses`
/// are words: `NAME=ADDRESS` is that of a resource, and one without a name that of all others.
pub(crate) fn mirror(dir: &Path, target: &str, addresses: Option<&str>) {
    let name = provider(target);
    let version = match target {
        "gce" => "8.0.0",
        "aws" => "6.0.0",
        _ => "5.2.0",
    };
    let package = dir.join(registry()).join(format!("hashicorp/{name}/{version}/linux_{}", architecture()));
    fs_err::create_dir_all(&package).unwrap();
    let addresses = addresses.map(|words| format!("TFSTUB_ADDRESS='{words}' ")).unwrap_or_default();
    let schema = data(&format!("schemas/{name}.json"));
    let script = format!("#!/bin/sh\n{addresses}TFSTUB_SCHEMA={} exec {} \"$@\"\n", schema.display(), STUB.display());
    let file = package.join(format!("terraform-provider-{name}_v{version}"));
    fs_err::write(&file, script).unwrap();
    fs_err::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

/// The registry that Terraform takes a provider without a host from, as it tells itself.
fn registry() -> String {
    let dir = tempfile::tempdir().unwrap();
    let text = "terraform {\n  required_providers {\n    google = { source = \"hashicorp/google\" }\n  }\n}\n";
    fs_err::write(dir.path().join("main.tf"), text).unwrap();
    let told = Command::new("terraform").arg("providers").current_dir(dir.path()).output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let address = told.split_once("provider[").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    address.split('/').next().unwrap().to_owned()
}
