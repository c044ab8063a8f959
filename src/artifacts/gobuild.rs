//! Builds the commands of one Go module, so that the same bytes come out on every machine.
//!
//! Everything that reaches the bytes is set here: toolchain, flags, target. What only says where Go
//! keeps and gets its files (proxy, checksum database, caches) is the operator's own. A module with
//! a C part is the exception: compiler, linker and static libraries are the machine's, no directory
//! or variable of it reaches the bytes, but versions of these packages do. Whether the bytes are
//! right is for the caller to say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::lock::Cgo;
use super::overlay::{self, Overlay};
use super::platform::Platform;
use super::progress::{Pace, Watch};
use super::selection::BinaryArtifact;
use super::sources::Effort;
use super::tree;
use crate::exec::{Failure, OnDeath, Run, tools};
use crate::{Class, Context, Error, Result};

/// Settings of the user's Go that have no effect on what is built.
const PERSONAL: [&str; 12] = [
    "GOAUTH",
    "GOCACHE",
    "GOINSECURE",
    "GOMODCACHE",
    "GONOPROXY",
    "GONOSUMDB",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GOSUMDB",
    "GOVCS",
    "GOENV",
];
const LIMIT: Duration = Duration::from_hours(3);

/// One call of `go build`.
pub(super) struct Order<'a> {
    /// Any of the binaries: module, toolchain and flags are the same for all.
    pub(super) binary: &'a BinaryArtifact,
    pub(super) platform: &'a Platform,
    pub(super) packages: Vec<&'a str>,
    /// Packages of `templates/artifacts/reference` that become part of the module.
    pub(super) reference: &'a [&'a str],
    /// Where modules come from, and how many processors are kept busy.
    pub(super) effort: &'a Effort,
}

/// The file that `go build -o <dir>/` makes of a package: its last element that is not a major
/// version.
pub(super) fn executable_name(package: &str) -> &str {
    let is_major = |element: &str| {
        element.strip_prefix('v').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut elements = package.rsplit('/');
    let last = elements.next().unwrap_or(package);
    if is_major(last) { elements.next().unwrap_or(last) } else { last }
}

impl Order<'_> {
    /// Builds below the work directory and gives the directory with the executables.
    pub(super) fn build(&self, work: &Path, log: &Path, watch: &dyn Watch) -> Result<PathBuf> {
        if let Some(cgo) = &self.binary.cgo {
            self.require_c(cgo)?;
        }
        let (source, out, scratch) = (work.join("module"), work.join("out"), work.join("tmp"));
        for dir in [&source, &out, &scratch] {
            fs_err::create_dir(dir)?;
        }
        tree::write_module(&self.binary.directory, &source)?;
        for package in self.reference {
            tree::write_reference(package, &source)?;
        }
        let go = tools::find("go").map_err(|error| {
            Error::new(error.class(), format!("{} has to be built, and there is no Go toolchain", self.binary.module))
                .source(error)
                .hint("install Go 1.21 or newer (Debian: golang-go from backports), or add a mirror to the artifact sources")
        })?;
        let personal = self.ask_personal(&go, &source)?;
        Overlay::read(&source)?.apply(|package| {
            let run = self.with_settings(Run::new(&go).args(["list", "-find", "-json=Module", package]), &personal);
            let run = run.dir(&source).label(format!("go list of {package}")).timeout(Duration::from_mins(15));
            overlay::read_module(package, &run.output().map_err(explain_failure)?.stdout)
        })?;
        watch.progress(&format!("building {} with {}", self.binary.module, self.binary.toolchain));
        let mut run = Run::new(&go)
            .args(["build", "-v", "-trimpath", "-buildvcs=false"])
            .args(self.jobs())
            .args(&self.binary.flags)
            .args(["-ldflags", &self.binary.ldflags, "-o"])
            .arg(format!("{}/", out.display()))
            .args(&self.packages)
            .dir(&source)
            .env("GOTMPDIR", &scratch)
            .log(log)
            .label(format!("go build of {}", self.binary.module))
            .timeout(LIMIT)
            .on_death(OnDeath::Kill);
        if self.effort.build_jobs > 0 {
            // The compiler itself works on several functions at once.
            run = run.env("GOMAXPROCS", self.effort.build_jobs.to_string());
        }
        run = self.with_settings(run, &personal);
        let (mut packages, mut pace) = (0, Pace::new(Duration::from_secs(2)));
        let built = run.stream(|_, line| {
            // Comments are the headings of compiler messages; every other line names a package that
            // is being compiled.
            packages += u32::from(!line.starts_with('#'));
            if pace.is_due() {
                watch.progress(&format!("building {}: {packages} packages, now {line}", self.binary.module));
            }
        });
        built.map_err(explain_failure)?;
        Ok(out)
    }

    /// How many programs the build runs at once, where it is not as many as there are processors.
    /// The bytes are the same.
    fn jobs(&self) -> Option<String> {
        (self.effort.build_jobs > 0).then(|| format!("-p={}", self.effort.build_jobs))
    }

    /// An error that names all of C that is not here, and the command that installs it.
    fn require_c(&self, cgo: &Cgo) -> Result<()> {
        let missing: Vec<String> = cgo.needs().into_iter().filter(|name| tools::find(name).is_err()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let error = Error::precondition(format!(
            "{} has to be built with a C compiler, and this machine lacks {}",
            self.binary.module,
            missing.join(", ")
        ));
        let names: Vec<&str> = missing.iter().map(String::as_str).collect();
        let install = tools::install_command(&names).unwrap_or_else(|| format!("install {}", missing.join(", ")));
        Err(error.hint(format!(
            "{install}; or take the project's own release: turnup config set phase2.artifacts.upstream=y"
        )))
    }

    fn with_settings(&self, run: Run, personal: &BTreeMap<String, String>) -> Run {
        let personal = personal.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        personal.chain(self.fixed()).fold(run, |run, (name, value)| run.env(name, value))
    }

    /// Everything that has a say in the bytes.
    fn fixed(&self) -> Vec<(&str, &str)> {
        let mut fixed = vec![
            // The user's go.env must not add flags; the settings allowed from it were read before.
            ("GOENV", "off"),
            ("GOTOOLCHAIN", &self.binary.toolchain),
            ("GOOS", &self.platform.os),
            ("GOARCH", &self.platform.arch),
            ("GOAMD64", "v1"),
            ("GOARM64", "v8.0"),
            ("CGO_ENABLED", if self.binary.cgo.is_some() { "1" } else { "0" }),
            ("GOFLAGS", "-mod=readonly"),
            ("GOWORK", "off"),
            ("GOFIPS140", "off"),
            ("GO111MODULE", "on"),
        ];
        if let Some(cgo) = &self.binary.cgo {
            let flags = [("CGO_CFLAGS", cgo.cflags.as_str()), ("CGO_CPPFLAGS", ""), ("CGO_LDFLAGS", "")];
            fixed.extend(flags.into_iter().chain([("CC", "gcc"), ("PKG_CONFIG", "pkg-config")]));
        }
        fixed
    }

    /// Where Go's files come from and go to on this machine; also finds out whether the toolchain
    /// can be had.
    fn ask_personal(&self, go: &Path, dir: &Path) -> Result<BTreeMap<String, String>> {
        let toolchain = &self.binary.toolchain;
        let mut run = Run::new(go).args(["env", "-json", "GOVERSION"]).args(PERSONAL).dir(dir);
        for (name, value) in PERSONAL.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))) {
            run = run.env(name, value);
        }
        if !self.effort.go_proxy.is_empty() {
            run = run.env("GOPROXY", &self.effort.go_proxy);
        }
        let run =
            run.env("GOTOOLCHAIN", toolchain).env("GOWORK", "off").label("go env").timeout(Duration::from_mins(15));
        let output = run.output().map_err(explain_failure)?;
        let mut answers: BTreeMap<String, String> =
            serde_json::from_str(&output.stdout).context("`go env -json` did not answer with JSON")?;
        let version = answers.remove("GOVERSION").unwrap_or_default();
        if version != *toolchain {
            return Err(Error::precondition(format!(
                "{} has to be built with {toolchain}; here is {version}",
                self.binary.module
            ))
            .evidence(format!("{} cannot switch to another toolchain by itself", go.display()))
            .hint("install Go 1.21 or newer, which gets the right toolchain itself"));
        }
        answers.retain(|name, value| name != "GOENV" && !value.is_empty());
        Ok(answers)
    }
}

/// A build that could not reach the module proxy is worth another try; a compiler's error is not.
fn explain_failure(failure: Failure) -> Error {
    const NETWORK: [&str; 9] = [
        "dial tcp",
        "i/o timeout",
        "no such host",
        "TLS handshake timeout",
        "connection reset",
        "connection refused",
        "unexpected EOF",
        "502 Bad Gateway",
        "503 Service Unavailable",
    ];
    let network = NETWORK.iter().any(|mark| failure.ended().stderr.contains(mark));
    let error = Error::from(failure);
    if !network || error.class() != Class::Permanent {
        return error;
    }
    let transient =
        Error::transient(error.message()).hint("check GOPROXY and the network, then run the same command again");
    error.evidence_lines().iter().fold(transient, Error::evidence)
}

#[cfg(test)]
mod tests {
    use super::executable_name;

    #[test]
    fn names_executables_as_go_does() {
        for (package, name) in [
            ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
            ("go.etcd.io/etcd/server/v3", "server"),
            ("github.com/coredns/coredns", "coredns"),
            ("example.org/v3x", "v3x"),
            ("example.org/tool/v", "v"),
        ] {
            assert_eq!(executable_name(package), name);
        }
    }
}
