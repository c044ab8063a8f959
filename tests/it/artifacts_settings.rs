//! What settings say of artifacts, from the configuration to the requests of a server and the
//! arguments of Go: attempts, downloads at once, processors, the cache, bundles.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "a test starts the product from outside")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use turnup::artifacts::{Cache, Digest, Location, Lock, NoProgress, Source, Sources};

use crate::artifacts_support::{Scratch, list, stderr};
use crate::http_server::{LOOPBACK, send, send_head, serve};

/// The version that a configuration has without an answer.
const VERSION: &str = "1.36.3";

fn bytes_of(number: usize) -> Vec<u8> {
    format!("tool {number} as the lock file pins it\n").into_bytes()
}

/// A lock file with so many binaries of one Go module, which is one that turnup has.
fn write_lock(scratch: &Scratch, count: usize) {
    let mut binaries = serde_json::Map::new();
    for number in 0..count {
        let bytes = bytes_of(number);
        let pin = serde_json::json!({"sha256": Digest::of(&bytes).to_string(), "size": bytes.len(), "origin": {"kind": "source-build"}});
        binaries.insert(
            format!("tool{number}"),
            serde_json::json!({"package": format!("example.invalid/tool{number}"), "pins": {"linux/amd64": [pin], "linux/arm64": [pin]}}),
        );
    }
    let lock = serde_json::json!({
        "schema": "turnup.lock/1", "toolchain": "go1.26.8", "default": VERSION, "sets": {VERSION: ["tool-1.0.0"]},
        "modules": {"tool-1.0.0": {"version": "1.0.0", "directory": "pause", "ldflags": "-s -w", "binaries": binaries}},
    });
    fs_err::write(scratch.dir.path().join("cluster.lock.json"), lock.to_string()).unwrap();
}

fn turnup(scratch: &Scratch, args: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("turnup"));
    command.args(args).current_dir(scratch.dir.path()).env("TURNUP_CACHE", scratch.cache.root());
    command.env("PATH", format!("{}:{}", scratch.dir.path().join("bin").display(), std::env::var("PATH").unwrap()));
    command.stdin(Stdio::null()).output().unwrap()
}

fn set(scratch: &Scratch, pairs: &[&str]) {
    let output = turnup(scratch, &[&["config", "set"], pairs].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A mirror of the lock file above, whose every first answer breaks off in the middle. Gives its
/// URL, and how many requests there are at once and by path.
fn flaky_mirror() -> (String, &'static Seen) {
    let seen: &'static Seen = Box::leak(Box::default());
    let url = serve(LOOPBACK, move |request, stream| {
        let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most.fetch_max(now, Ordering::SeqCst);
        let asked = {
            let mut asked = seen.first_bytes.lock().unwrap();
            let asked = asked.entry(request.path.clone()).or_default();
            asked.push(request.first_byte());
            asked.len()
        };
        std::thread::sleep(Duration::from_millis(300));
        let bytes = (0..9).map(bytes_of).find(|bytes| request.path.ends_with(&Digest::of(bytes).to_string()));
        let from = request.first_byte();
        let sent = match bytes {
            None => send(stream, "404 Not Found", b""),
            Some(bytes) => {
                send_head(stream, if from > 0 { "206 x" } else { "200 x" }, Some((bytes.len() - from) as u64))
                    .and_then(|()| stream.write_all(if asked == 1 { &bytes[..5] } else { &bytes[from..] }))
            }
        };
        seen.now.fetch_sub(1, Ordering::SeqCst);
        sent
    });
    (url, seen)
}

#[derive(Default)]
struct Seen {
    now: AtomicUsize,
    most: AtomicUsize,
    first_bytes: Mutex<BTreeMap<String, Vec<usize>>>,
}

#[test]
fn downloads_are_tried_again_several_at_once_and_kept_where_the_settings_say() {
    let scratch = Scratch::new();
    write_lock(&scratch, 6);
    let (url, seen) = flaky_mirror();
    let mirror = format!("phase2.artifacts.mirror={url}");
    set(
        &scratch,
        &[&mirror, "phase2.artifacts.source=n", "phase2.artifacts.cache_dir=own", "phase2.artifacts.retries=1"],
    );
    let refused = turnup(&scratch, &["artifacts", "bundle", "bundle.tar"]);
    assert!(!refused.status.success() && stderr(&refused).contains("stopped in the middle"), "{}", stderr(&refused));
    assert!(!scratch.dir.path().join("bundle.tar").exists());

    seen.first_bytes.lock().unwrap().clear();
    seen.most.store(0, Ordering::SeqCst);
    set(&scratch, &["phase2.artifacts.retries=2", "phase2.artifacts.parallel=3"]);
    let made = turnup(&scratch, &["artifacts", "bundle", "bundle.tar"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(stderr(&made).contains("trying again in 1 s"), "{}", stderr(&made));
    let most = seen.most.load(Ordering::SeqCst);
    assert!((2..=3).contains(&most), "{most} at once");
    for (path, first_bytes) in &*seen.first_bytes.lock().unwrap() {
        assert_eq!(first_bytes, &[0, 5], "{path}: what came is not asked for again");
    }
    assert_eq!(list(&scratch.dir.path().join("own/blobs/sha256")).len(), 6);
    assert_eq!(scratch.blobs(), Vec::<std::path::PathBuf>::new(), "the user's cache is not used");
    assert_eq!(
        list(scratch.dir.path()).iter().filter(|path| path.to_string_lossy().contains(".turnup-bundle")).count(),
        0
    );

    // A machine with nothing but the bundle.
    for place in ["bundle.tar", "bundle"] {
        let place = &scratch.dir.path().join(place);
        if !place.exists() {
            let made = turnup(&scratch, &["artifacts", "bundle", "bundle"]);
            assert!(made.status.success(), "{}", stderr(&made));
        }
        let (cache, sources) = (Cache::at(&scratch.dir.path().join("empty")).unwrap(), bundle(place));
        let selection = Lock::load(scratch.dir.path()).unwrap().select(VERSION).unwrap();
        sources.require_complete(&Location::of_bundle(place), &selection).unwrap();
        let blobs = cache.ensure_all(selection.required(), &sources, &NoProgress).unwrap();
        assert_eq!(fs_err::read(&blobs[5].path).unwrap(), bytes_of(5));
        fs_err::remove_dir_all(scratch.dir.path().join("empty")).unwrap();
    }
}

fn bundle(place: &Path) -> Sources {
    Sources::new(vec![Source::Cache, Source::Bundle(Location::of_bundle(place))])
}

/// The mirror gives both artifacts where it comes first; where Go does, which cannot build them
/// here, the mirror is not asked.
#[test]
fn sources_are_asked_in_the_order_of_the_settings() {
    let scratch = Scratch::new();
    write_lock(&scratch, 2);
    let log = scratch.dir.path().join("go.log");
    scratch.fake("go", &format!("#!/bin/sh\necho asked >>{}\nexit 1\n", log.display()));
    let (url, seen) = flaky_mirror();
    set(&scratch, &[&format!("phase2.artifacts.mirror={url}"), "phase2.artifacts.source=y"]);
    for (order, from_mirror) in [("bundle,mirror,upstream,source", true), ("source,upstream,mirror,bundle", false)] {
        let dir = format!("phase2.artifacts.cache_dir=cache-{from_mirror}");
        set(&scratch, &[&format!("phase2.artifacts.order={order}"), &dir]);
        seen.first_bytes.lock().unwrap().clear();
        let made = turnup(&scratch, &["artifacts", "bundle", &format!("made-{from_mirror}")]);
        assert_eq!(made.status.success(), from_mirror, "{order}: {}", stderr(&made));
        assert_eq!(seen.first_bytes.lock().unwrap().len(), if from_mirror { 2 } else { 0 }, "{order}");
        assert_eq!(log.exists(), !from_mirror, "{order}: whether Go was asked");
    }
}

#[test]
fn a_bundle_that_lacks_something_is_refused_with_all_that_it_lacks() {
    let scratch = Scratch::new();
    write_lock(&scratch, 3);
    let selection = Lock::load(scratch.dir.path()).unwrap().select(VERSION).unwrap();
    let blobs = scratch.dir.path().join("bundle/sha256");
    fs_err::create_dir_all(&blobs).unwrap();
    fs_err::write(blobs.join(Digest::of(&bytes_of(0)).to_string()), bytes_of(0)).unwrap();
    let place = Location::of_bundle(&scratch.dir.path().join("bundle"));
    let error = Sources::default().require_complete(&place, &selection).unwrap_err();
    insta::assert_snapshot!(scratch.redact(&error.render()), @r"
    error: the bundle <dir>/bundle lacks 2 artifacts, tool1 1.0.0 among them
      | tool2 1.0.0
    next: make it with this turnup and this configuration: turnup artifacts bundle PLACE
    ");
    let nowhere = Location::of_bundle(&scratch.dir.path().join("nowhere.tar"));
    let error = Sources::default().require_complete(&nowhere, &selection).unwrap_err();
    assert!(error.render().contains("nowhere.tar cannot be read"), "{}", error.render());
    // Before the first host is made.
    set(&scratch, &["phase2.artifacts.bundle=bundle"]);
    let found = turnup(&scratch, &["doctor"]);
    let said = String::from_utf8_lossy(&found.stdout).into_owned() + &stderr(&found);
    assert!(!found.status.success() && said.contains("lacks 2 artifacts"), "{said}");
}

#[test]
fn go_gets_the_proxy_and_the_processors_of_the_settings() {
    let scratch = Scratch::new();
    write_lock(&scratch, 1);
    let out = scratch.dir.path().join("go.log");
    scratch.fake(
        "go",
        &format!(
            "#!/bin/sh\nif [ \"$1\" = env ]; then echo \"{{\\\"GOVERSION\\\": \\\"go1.26.8\\\", \\\"GOPROXY\\\": \\\"$GOPROXY\\\"}}\"; exit 0; fi\n\
             echo \"$* GOMAXPROCS=$GOMAXPROCS GOPROXY=$GOPROXY\" >>{}\nexit 1\n",
            out.display()
        ),
    );
    let build = || {
        let failed = turnup(&scratch, &["artifacts", "bundle", "bundle"]);
        assert!(!failed.status.success(), "{}", stderr(&failed));
        let said = fs_err::read_to_string(&out).unwrap_or_else(|_| stderr(&failed));
        drop(fs_err::remove_file(&out));
        said
    };
    set(&scratch, &["phase2.artifacts.upstream=n"]);
    let usual = build();
    assert!(!usual.contains(" -p=") && usual.contains("GOMAXPROCS= "), "{usual}");
    set(&scratch, &["phase2.artifacts.go_proxy=https://goproxy.example.com", "phase2.artifacts.build_jobs=2"]);
    let changed = build();
    assert!(
        changed.contains(" -p=2 ") && changed.contains("GOMAXPROCS=2 GOPROXY=https://goproxy.example.com"),
        "{changed}"
    );
}
