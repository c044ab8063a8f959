//! Builds from source: reproducible for real, refused when not, made once, and without a trace when
//! killed.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "a test starts the product from outside")]

use std::path::Path;
use std::process::Command;

use turnup::artifacts::{Digest, Lock, NoProgress, Sources};

use crate::artifacts_support::{Scratch, TOOL, list, stderr, wait_until};

/// Uses the lock file that ships with the program.
fn shipped() -> Scratch {
    let scratch = Scratch::new();
    fs_err::remove_file(scratch.dir.path().join("cluster.lock.json")).unwrap();
    scratch
}

/// Puts a `go` on PATH that is a shell script: `env` answers with this version, `build` does this
/// with `$out`.
fn fake_go(scratch: &Scratch, version: &str, build: &str) -> String {
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = env ]; then echo '{{\"GOVERSION\": \"{version}\"}}'; exit 0; fi\n\
         while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n{build}\n"
    );
    scratch.fake("go", &script)
}

fn fetch_pause(scratch: &Scratch, path: &str) -> Command {
    let mut command = scratch.turnup(&["fetch", "pause"]);
    command.env("PATH", path);
    command
}

#[test]
fn what_go_builds_here_is_what_the_lock_file_pins() {
    let scratch = shipped();
    let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
    let wanted = ["pause", "loopback", "image/pause"].map(|id| selection.get(id).unwrap());
    let blobs = scratch.cache.ensure_all(wanted, &Sources::default(), &NoProgress).unwrap();
    assert_eq!(blobs.len(), 3);
    let version = Command::new(&blobs[0].path).arg("-v").output().unwrap();
    assert_eq!(version.stdout, b"pause 1.0.0\n");
    assert!(scratch.work().is_empty());
}

#[test]
fn another_build_cache_gives_the_same_bytes() {
    let scratch = shipped();
    let gocache = scratch.dir.path().join("gocache");
    let mut fetch = scratch.turnup(&["fetch", "pause"]);
    // An empty cache compiles everything again; the user's own Go settings must not matter.
    let fetch =
        fetch.env("GOCACHE", &gocache).env("GOFLAGS", "-tags=other").env("GOAMD64", "v3").env("CGO_ENABLED", "1");
    let output = fetch.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(gocache.is_dir(), "the person's own GOCACHE was not used");
}

#[test]
fn runc_is_static_has_seccomp_and_is_what_the_lock_file_pins() {
    let scratch = shipped();
    let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
    let runc = selection.get("runc").unwrap();
    let path = scratch.cache.ensure(runc, &Sources::default(), &NoProgress).unwrap();
    let ask = |argument: &str| String::from_utf8(Command::new(&path).arg(argument).output().unwrap().stdout).unwrap();
    let version = ask("--version");
    assert!(version.starts_with(&format!("runc version {}\n", runc.version)), "{version}");
    assert!(version.contains("\nlibseccomp: 2."), "{version}");
    let features: serde_json::Value = serde_json::from_str(&ask("features")).unwrap();
    assert_eq!(features["linux"]["seccomp"]["enabled"], true, "{features}");
    let bytes = fs_err::read(&path).unwrap();
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(!has(b"/ld-linux"), "runc needs a loader of the host's");
    assert!(!has(scratch.dir.path().to_str().unwrap().as_bytes()), "the directory of the build is in the bytes");
}

#[test]
fn a_build_by_another_c_compiler_names_it_and_the_other_sources() {
    let scratch = shipped();
    let path = fake_go(&scratch, "go1.26.8", "echo other > \"$out/runc\"");
    let mut fetch = scratch.turnup(&["fetch", "runc"]);
    let output = fetch.env("PATH", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(scratch.blobs().is_empty());
    let here = turnup::exec::tools::describe_c_toolchain(&["libseccomp".to_owned()]);
    assert!(here.contains("libc6-dev ") && here.contains("libseccomp-dev "), "{here}");
    let text = scratch.redact(&stderr(&output));
    let error = &text[text.find("error:").unwrap()..];
    let error = error.replace(&format!("here with {here}"), "here with <c toolchain>");
    let log = error.find("runc-1.5.2-2").unwrap();
    let end = log + error[log..].find(".log").unwrap();
    insta::assert_snapshot!(format!("{}runc-<time>{}", &error[..log], &error[end..]));
}

#[test]
fn what_the_c_part_of_a_build_lacks_is_named_before_anything_is_built() {
    let scratch = Scratch::new();
    let lock = scratch.dir.path().join("cluster.lock.json");
    let cgo = r#""cgo": { "cflags": "", "libraries": ["libseccomp", "libnone"] }, "binaries""#;
    fs_err::write(&lock, fs_err::read_to_string(&lock).unwrap().replace("\"binaries\"", cgo)).unwrap();
    let output = scratch.turnup(&["fetch", "tool"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("tool-1.0.0 has to be built with a C compiler, and this machine lacks libnone.a"), "{said}");
    assert!(said.contains("turnup config set phase2.artifacts.upstream=y"), "{said}");
}

#[test]
fn two_processes_build_once() {
    let scratch = shipped();
    let (first, second) = (scratch.start(&["path", "pause"]), scratch.start(&["path", "pause"]));
    let (first, second) = (first.wait_with_output().unwrap(), second.wait_with_output().unwrap());
    let text = stderr(&first) + &stderr(&second);
    assert!(first.status.success() && second.status.success(), "{text}");
    assert_eq!(text.matches("building pause-1.0.0 with").count(), 1, "{text}");
    assert_eq!(list(&scratch.cache.root().join("logs")).len(), 1);
}

#[test]
fn a_build_with_another_digest_is_refused() {
    let scratch = shipped();
    let path = fake_go(&scratch, "go1.26.8", "echo other > \"$out/pause\"");
    let output = fetch_pause(&scratch, &path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(scratch.blobs().is_empty());
    let text = stderr(&output);
    let error = scratch.redact(&text[text.find("error:").unwrap()..]);
    let log = error.find("pause-1.0.0-2").unwrap();
    let end = log + error[log..].find(".log").unwrap();
    insta::assert_snapshot!(format!("{}pause-<time>{}", &error[..log], &error[end..]));
}

#[test]
fn a_toolchain_that_cannot_be_had_is_explained() {
    let scratch = shipped();
    let path = fake_go(&scratch, "go1.19.8", "exit 1");
    let old = fetch_pause(&scratch, &path).output().unwrap();
    assert_eq!(old.status.code(), Some(4));
    insta::assert_snapshot!(scratch.redact(&stderr(&old)));
    let none = fetch_pause(&scratch, "/nonexistent").output().unwrap();
    assert_eq!(none.status.code(), Some(4), "{}", stderr(&none));
    assert!(stderr(&none).contains("there is no Go toolchain"), "{}", stderr(&none));
}

#[test]
fn a_proxy_that_cannot_be_reached_is_worth_another_try() {
    let scratch = shipped();
    let path = fake_go(&scratch, "go1.26.8", "echo 'dial tcp 127.0.0.1:1: connection refused' >&2; exit 1");
    let output = fetch_pause(&scratch, &path).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
}

#[test]
fn a_process_killed_in_the_middle_of_a_build_leaves_nothing_that_looks_whole() {
    let scratch = shipped();
    let marker = scratch.dir.path().join("half");
    let build = format!("printf half > \"$out/pause\"; echo $$ > {}; exec sleep 60", marker.display());
    let path = fake_go(&scratch, "go1.26.8", &build);
    let mut child = fetch_pause(&scratch, &path).spawn().unwrap();
    wait_until("half a build", || fs_err::read_to_string(&marker).is_ok_and(|pid| pid.ends_with('\n')));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(scratch.blobs().is_empty());
    let go = fs_err::read_to_string(&marker).unwrap();
    wait_until("the compiler's end", || !Path::new("/proc").join(go.trim()).join("exe").exists());

    let again = scratch.turnup(&["fetch", "pause"]).output().unwrap();
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(scratch.work().is_empty(), "what the killed process left is still there");
}

#[test]
fn a_maintainer_adds_a_version_with_one_command() {
    let scratch = Scratch::new();
    let lock = scratch.dir.path().join("cluster.lock.json");
    let text = fs_err::read_to_string(&lock).unwrap().replace("tool-1.0.0", "kubernetes-1.0.0");
    fs_err::write(&lock, text).unwrap();
    let path = fake_go(&scratch, "go1.26.8", "echo new > \"$out/tool\"");
    let add = |scratch: &Scratch| {
        let mut command = scratch.turnup(&["lock", "--write", "--kubernetes", "v1.1.0"]);
        command.env("PATH", &path).output().unwrap()
    };
    let without_module = add(&scratch);
    assert_eq!(without_module.status.code(), Some(3));
    assert!(stderr(&without_module).contains("templates/artifacts/kubernetes-1.1.0"), "{}", stderr(&without_module));

    let module = scratch.dir.path().join("templates/artifacts/kubernetes-1.1.0");
    fs_err::create_dir_all(&module).unwrap();
    fs_err::write(module.join("go.mod"), "module x\n").unwrap();
    let added = add(&scratch);
    assert!(added.status.success(), "{}", stderr(&added));
    let lock = Lock::load(scratch.dir.path()).unwrap();
    assert_eq!(lock.versions(), ["1.1.0", "1.0.0"]);
    let tool = lock.select("1.1.0").unwrap().get("tool").unwrap().clone();
    assert_eq!(fs_err::read(scratch.cache.ensure(&tool, &Sources::default(), &NoProgress).unwrap()).unwrap(), b"new\n");
    assert_eq!(
        lock.select("1.0.0").unwrap().get("tool").unwrap().pins[0].sha256,
        Digest::of(TOOL),
        "the old version was touched"
    );
}
