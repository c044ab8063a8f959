//! What the tests of artifacts share: a small lock file, a web server on loopback that misbehaves
//! on demand, the program as a process.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "a test starts the product from outside")]

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use turnup::Result;
use turnup::artifacts::{Cache, Digest, Lock, Selection, Watch};

use crate::http_server::{self, LOOPBACK, send, send_endless, send_head};

/// The bytes of the only binary in the small lock file.
pub(crate) const TOOL: &[u8] = b"#!/bin/true\nthis is what the lock file pins\n";

/// What the lock file says of [`TOOL`].
pub(crate) fn pin() -> String {
    format!(r#"{{ "sha256": "{}", "size": {}, "origin": {{ "kind": "source-build" }} }}"#, Digest::of(TOOL), TOOL.len())
}

/// A lock file with one binary, `tool`, whose bytes are [`TOOL`], and whose Go module does not
/// exist.
pub(crate) fn small_lock() -> String {
    let pin = pin();
    format!(
        r#"{{
  "schema": "turnup.lock/1",
  "toolchain": "go1.26.8",
  "default": "1.0.0",
  "sets": {{ "1.0.0": ["tool-1.0.0"] }},
  "modules": {{
    "tool-1.0.0": {{
      "version": "1.0.0",
      "directory": "no-such-module",
      "ldflags": "-s -w",
      "binaries": {{
        "tool": {{
          "package": "example.invalid/tool",
          "pins": {{ "linux/amd64": [{pin}], "linux/arm64": [{pin}] }},
          "upstream": {{ "url": "http://127.0.0.1:1/{{version}}/{{os}}/{{arch}}/tool", "pins": {{ "linux/amd64": [] }} }}
        }}
      }}
    }}
  }}
}}
"#
    )
}

pub(crate) fn small_selection() -> Selection {
    Lock::parse(&small_lock(), "cluster.lock.json").unwrap().select("1.0.0").unwrap()
}

/// A cache in a directory that lives as long as this.
pub(crate) struct Scratch {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) cache: Cache,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        fs_err::write(dir.path().join("cluster.lock.json"), small_lock()).unwrap();
        Self { dir, cache }
    }

    /// Every file in the cache that could pass for an artifact.
    pub(crate) fn blobs(&self) -> Vec<PathBuf> {
        list(&self.cache.root().join("blobs/sha256"))
    }

    pub(crate) fn work(&self) -> Vec<PathBuf> {
        list(&self.cache.root().join("work"))
    }

    /// `turnup artifacts …` in the directory of the lock file.
    pub(crate) fn turnup(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("turnup"));
        command.arg("artifacts").args(args).current_dir(self.dir.path());
        command.env("TURNUP_CACHE", self.cache.root()).stdin(Stdio::null());
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.turnup(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Puts a shell script in front of PATH as a program; returns the search path with it.
    pub(crate) fn fake(&self, name: &str, script: &str) -> String {
        let bin = self.dir.path().join("bin");
        fs_err::create_dir_all(&bin).unwrap();
        fs_err::write(bin.join(name), script).unwrap();
        fs_err::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
    }

    /// The text with everything in it that differs from run to run replaced.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.replace(self.dir.path().to_str().unwrap(), "<dir>");
        for digest in hex_words(&text) {
            let name = if digest == Digest::of(TOOL).to_string() { "<tool>" } else { "<digest>" };
            text = text.replace(&digest, name);
        }
        text
    }
}

fn hex_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| word.parse::<Digest>().is_ok()).map(str::to_owned).collect()
}

pub(crate) fn list(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs_err::read_dir(dir)
        .map_or_else(|_| Vec::new(), |entries| entries.map(|entry| entry.unwrap().path()).collect());
    paths.sort();
    paths
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Waits until something has happened in another process.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_mins(1), "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Collects progress messages.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Watch for Heard {
    fn progress(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }

    fn count(&self, _done: u64, _total: u64) {}

    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// The file.
    Bytes(Vec<u8>),
    /// Half of the file, then the connection is closed.
    Half(Vec<u8>),
    /// Half of the file, then nothing more, for as long as the client waits.
    Stall(Vec<u8>),
    /// The file, after a while.
    Slow(Vec<u8>, Duration),
    /// A status and no file.
    Status(&'static str),
    /// Bytes without end and without a content length.
    Endless,
    /// A content length of this many bytes, and none of them.
    Announced(u64),
    /// Depends on the path.
    By(fn(&str) -> Reply),
    /// The first for paths like that, else the second.
    Either(fn(&str) -> bool, Box<Reply>, Box<Reply>),
}

/// A web server on loopback that gives the same reply to every request.
pub(crate) struct Server {
    pub(crate) url: String,
    /// Requests whose reply has started.
    pub(crate) hits: Arc<AtomicUsize>,
    pub(crate) paths: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn new(reply: Reply) -> Self {
        let (hits, paths) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (hit, asked) = (Arc::clone(&hits), Arc::clone(&paths));
        let url = http_server::serve(LOOPBACK, move |request, stream| {
            asked.lock().unwrap().push(request.path.clone());
            answer(stream, &reply, &request.path, &hit)
        });
        Self { url, hits, paths }
    }

    pub(crate) fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }
}

fn answer(stream: &mut TcpStream, reply: &Reply, path: &str, hits: &AtomicUsize) -> io::Result<()> {
    let (bytes, sent) = match reply {
        Reply::By(choose) => return answer(stream, &choose(path), path, hits),
        Reply::Either(is_first, first, second) => {
            return answer(stream, if is_first(path) { first } else { second }, path, hits);
        }
        Reply::Status(status) => {
            hits.fetch_add(1, Ordering::SeqCst);
            return send(stream, status, b"");
        }
        Reply::Endless => {
            hits.fetch_add(1, Ordering::SeqCst);
            return send_endless(stream);
        }
        Reply::Announced(length) => {
            hits.fetch_add(1, Ordering::SeqCst);
            return send_head(stream, "200 OK", Some(*length));
        }
        Reply::Bytes(bytes) | Reply::Slow(bytes, _) => (bytes, bytes.len()),
        Reply::Half(bytes) | Reply::Stall(bytes) => (bytes, bytes.len() / 2),
    };
    send_head(stream, "200 OK", Some(bytes.len() as u64))?;
    stream.flush()?;
    hits.fetch_add(1, Ordering::SeqCst);
    if let Reply::Slow(_, pause) = reply {
        std::thread::sleep(*pause);
    }
    stream.write_all(&bytes[..sent])?;
    if matches!(reply, Reply::Stall(_)) {
        std::thread::sleep(Duration::from_mins(2));
    }
    Ok(())
}

/// A program among this user's artifacts. In CI, where nothing is left out, it is built.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let lock = Lock::embedded().unwrap();
    let pin = lock.select(&lock.default).unwrap().binary(name).unwrap().pins[0].sha256;
    let blob = Cache::locate().unwrap().blob_path(&pin);
    if !blob.exists() && std::env::var_os("CI").is_some() {
        #[expect(clippy::disallowed_methods, reason = "with all of the environment that builds need")]
        let built = Command::new(env!("CARGO_BIN_EXE_turnup")).args(["artifacts", "fetch", name]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    blob.exists().then_some(blob)
}
