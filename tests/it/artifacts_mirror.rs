//! Mirrors and upstream over HTTP: wrong, truncated and unreachable ones, concurrent runs, and a
//! process that is killed.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use turnup::artifacts::{Digest, DigestOrigin, Location, Lock, NoProgress, Pin, Source, Sources};
use turnup::{Class, Error};

use crate::artifacts_support::{Heard, Reply, Scratch, Server, TOOL, small_lock, small_selection, stderr, wait_until};

fn mirror(server: &Server) -> Sources {
    Sources::new(vec![Source::Mirror(Location::parse(&server.url).unwrap())])
}

fn fail(scratch: &Scratch, reply: Reply) -> (Error, String) {
    let server = Server::new(reply);
    let selection = small_selection();
    let error = scratch.cache.ensure(selection.binary("tool").unwrap(), &mirror(&server), &NoProgress).unwrap_err();
    assert!(scratch.blobs().is_empty() && scratch.work().is_empty());
    let text = scratch.redact(&error.render()).replace(&server.url, "<mirror>");
    (error, text)
}

#[test]
fn a_mirror_gives_what_the_lock_file_names() {
    let (scratch, server) = (Scratch::new(), Server::new(Reply::Bytes(TOOL.to_vec())));
    let selection = small_selection();
    let path = scratch.cache.ensure(selection.binary("tool").unwrap(), &mirror(&server), &NoProgress).unwrap();
    assert_eq!(fs_err::read(path).unwrap(), TOOL);
    assert_eq!(*server.paths.lock().unwrap(), [format!("/sha256/{}", Digest::of(TOOL))]);
    scratch.cache.ensure(selection.binary("tool").unwrap(), &mirror(&server), &NoProgress).unwrap();
    assert_eq!(server.hits(), 1, "what is in the cache was fetched again");
}

#[test]
fn wrong_bytes_from_a_mirror_are_refused() {
    let scratch = Scratch::new();
    let (error, text) = fail(&scratch, Reply::Bytes(b"something else".to_vec()));
    assert_eq!(error.class(), Class::Permanent);
    insta::assert_snapshot!(text);
}

#[test]
fn a_mirror_cannot_fill_the_disk() {
    let scratch = Scratch::new();
    let size = TOOL.len();
    // Without a length: what comes is counted.
    let (error, text) = fail(&scratch, Reply::Endless);
    assert_eq!(error.class(), Class::Permanent, "{text}");
    assert!(text.contains(&format!("sends more than the {size} bytes that the file may have")), "{text}");
    // With one: nothing of it is read.
    let (error, text) = fail(&scratch, Reply::Announced(1 << 40));
    assert_eq!(error.class(), Class::Permanent, "{text}");
    assert!(text.contains(&format!("has 1099511627776 bytes and not the {size} that it must have")), "{text}");
    let bundle = scratch.dir.path().join("bundle/sha256");
    fs_err::create_dir_all(&bundle).unwrap();
    let huge = fs_err::File::create(bundle.join(Digest::of(TOOL).to_string())).unwrap();
    huge.set_len(1 << 40).unwrap();
    let sources = Sources::new(vec![Source::Mirror(Location::Directory(bundle.parent().unwrap().into()))]);
    let error = scratch.cache.ensure(small_selection().binary("tool").unwrap(), &sources, &NoProgress).unwrap_err();
    assert!(error.render().contains("has 1099511627776 bytes"), "{}", error.render());
    assert!(scratch.blobs().is_empty() && scratch.work().is_empty());
}

#[test]
fn other_bytes_of_the_right_length_are_refused() {
    let (_, text) = fail(&Scratch::new(), Reply::Bytes(vec![b'x'; TOOL.len()]));
    assert!(text.contains("has other bytes for tool 1.0.0 than the lock file; they were refused"), "{text}");
}

#[test]
fn a_truncated_download_is_transient_and_leaves_nothing() {
    let scratch = Scratch::new();
    let (error, text) = fail(&scratch, Reply::Half(TOOL.to_vec()));
    assert_eq!(error.class(), Class::Transient, "{text}");
    assert!(text.contains("stopped in the middle"), "{text}");
}

#[test]
fn what_is_missing_is_permanent_and_what_is_busy_is_not() {
    let scratch = Scratch::new();
    let (error, text) = fail(&scratch, Reply::Status("404 Not Found"));
    assert_eq!(error.class(), Class::Permanent);
    insta::assert_snapshot!(text, @r"
    error: tool 1.0.0 cannot be had from mirror <mirror>
      caused by: <mirror>/sha256/<tool> answered 404 Not Found
    next: put it there, or choose another source: turnup config
    ");
    let (error, _) = fail(&scratch, Reply::Status("503 Service Unavailable"));
    assert_eq!(error.class(), Class::Transient);
}

#[test]
fn an_unreachable_mirror_is_transient_and_passwords_are_not_shown() {
    let scratch = Scratch::new();
    let selection = small_selection();
    // No server listens on port 1.
    let sources = Sources::parse("mirror", "http://user:secret@127.0.0.1:1/artifacts").unwrap();
    let error = scratch.cache.ensure(selection.binary("tool").unwrap(), &sources, &NoProgress).unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    let text = error.render();
    assert!(text.contains("http://127.0.0.1:1/artifacts/sha256/") && !text.contains("secret"), "{text}");
}

#[test]
fn the_next_source_is_tried_and_all_of_them_are_named_at_the_end() {
    let (scratch, heard) = (Scratch::new(), Heard::default());
    let (broken, good) = (Server::new(Reply::Status("500 Oops")), Server::new(Reply::Bytes(TOOL.to_vec())));
    let selection = small_selection();
    let tool = selection.binary("tool").unwrap();
    let sources = Sources::parse("cache upstream mirror", &format!("{},{}", broken.url, good.url)).unwrap();
    scratch.cache.ensure(tool, &sources, &heard).unwrap();
    assert!(heard.lines().iter().any(|line| line.contains("answered 500")), "{:?}", heard.lines());

    let empty = Scratch::new();
    let sources = Sources::parse("cache,mirror,upstream", &broken.url).unwrap();
    let error = empty.cache.ensure(tool, &sources, &NoProgress).unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    insta::assert_snapshot!(empty.redact(&error.render()).replace(&broken.url, "<mirror>"));
}

#[test]
fn sources_are_parsed_strictly() {
    let complaints: Vec<String> = [("cache mirorr", ""), ("mirror", " "), ("mirror", "ftp://host/x"), ("bundle", "")]
        .iter()
        .map(|(order, mirrors)| Sources::parse(order, mirrors).unwrap_err().render())
        .collect();
    insta::assert_snapshot!(complaints.join("\n\n"));
}

#[test]
fn two_processes_download_once() {
    let scratch = Scratch::new();
    // Long enough for a second process that is slow to begin.
    let server = Server::new(Reply::Slow(TOOL.to_vec(), Duration::from_secs(10)));
    let args = ["path", "tool", "--sources", "mirror", "--mirror", &server.url];
    let first = scratch.start(&args);
    wait_until("the first request", || server.hits() == 1);
    let second = scratch.start(&args);
    let pid = first.id();
    let (first, second) = (first.wait_with_output().unwrap(), second.wait_with_output().unwrap());
    assert!(first.status.success() && second.status.success(), "{}{}", stderr(&first), stderr(&second));
    assert_eq!(server.hits(), 1);
    assert_eq!(first.stdout, second.stdout);
    let waited = format!("waiting for process {pid}, which is getting tool 1.0.0");
    assert!(stderr(&second).contains(&waited), "{}", stderr(&second));
}

#[test]
fn a_process_killed_in_the_middle_of_a_download_leaves_nothing_that_looks_whole() {
    let scratch = Scratch::new();
    let stalled = Server::new(Reply::Stall(TOOL.to_vec()));
    let mut child = scratch.start(&["fetch", "tool", "--sources", "mirror", "--mirror", &stalled.url]);
    wait_until("half a file", || {
        let file = scratch.work().first().map(|dir| dir.join("file"));
        file.and_then(|file| fs_err::metadata(file).ok()).is_some_and(|metadata| metadata.len() > 0)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(scratch.blobs().is_empty());

    let good = Server::new(Reply::Bytes(TOOL.to_vec()));
    let again = scratch.turnup(&["fetch", "tool", "--sources", "mirror", "--mirror", &good.url]).output().unwrap();
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(scratch.work().is_empty(), "what the killed process left is still there");
}

/// A lock file whose upstream is this server, and what it says of the pinned file afterwards.
fn pin_from(scratch: &Scratch, url: &str, checksums: bool) -> (std::process::Output, Vec<Pin>) {
    let lock = scratch.dir.path().join("cluster.lock.json");
    let list =
        if checksums { format!(r#""checksums": "{url}/{{version}}/SHA256SUMS", "pins""#) } else { "\"pins\"".into() };
    let text = small_lock().replace("http://127.0.0.1:1", url);
    let at = text.rfind("\"pins\"").unwrap();
    fs_err::write(&lock, format!("{}{list}{}", &text[..at], &text[at + "\"pins\"".len()..])).unwrap();
    let output = scratch.turnup(&["pin", "--source", "upstream"]).output().unwrap();
    let selection = Lock::load(scratch.dir.path()).unwrap().select("1.0.0").unwrap();
    (output, selection.binary("tool").unwrap().upstream_pins.clone())
}

const THEIRS: &[u8] = b"compiled by the project  ";

#[test]
fn a_pin_says_whether_anything_vouches_for_it() {
    let scratch = Scratch::new();
    let server = Server::new(Reply::Bytes(THEIRS.to_vec()));
    let (output, pins) = pin_from(&scratch, &server.url, false);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("tool: nothing but this connection vouches for"), "{said}");
    let url = format!("{}/1.0.0/linux/amd64/tool", server.url);
    assert!(matches!(&pins[0].origin, DigestOrigin::FirstDownload { url: from, .. } if *from == url), "{pins:?}");
    assert_eq!((pins[0].sha256, pins[0].size), (Digest::of(THEIRS), Some(THEIRS.len() as u64)));

    let list_of = |bytes: &[u8]| Reply::Bytes(format!("{}  tool\n", Digest::of(bytes)).into_bytes());
    let is_list = |path: &str| path.ends_with("SHA256SUMS");
    let with_list = |bytes: &[u8]| {
        Server::new(Reply::Either(is_list, Box::new(list_of(bytes)), Box::new(Reply::Bytes(THEIRS.to_vec()))))
    };
    let server = with_list(THEIRS);
    let (output, pins) = pin_from(&scratch, &server.url, true);
    assert!(output.status.success() && !stderr(&output).contains("vouches"), "{}", stderr(&output));
    let list = format!("{}/1.0.0/SHA256SUMS", server.url);
    assert!(matches!(&pins[0].origin, DigestOrigin::ChecksumFile { url, .. } if *url == list), "{pins:?}");

    let (output, pins) = pin_from(&scratch, &with_list(TOOL).url, true);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("SHA256SUMS names; nothing was recorded"), "{}", stderr(&output));
    assert_eq!(pins, [], "what the project does not name was recorded");
    let (output, _) = pin_from(&scratch, &Server::new(Reply::Endless).url, true);
    assert!(stderr(&output).contains("sends more than the 1048576 bytes"), "{}", stderr(&output));
}

#[test]
fn upstream_is_pinned_once_and_then_held_to_it() {
    let scratch = Scratch::new();
    let theirs = THEIRS;
    let server = Server::new(Reply::Bytes(theirs.to_vec()));
    let lock = scratch.dir.path().join("cluster.lock.json");
    let text = fs_err::read_to_string(&lock).unwrap().replace("http://127.0.0.1:1", &server.url);
    fs_err::write(&lock, text).unwrap();

    let fetch = ["path", "tool", "--sources", "upstream"];
    let unpinned = scratch.turnup(&fetch).output().unwrap();
    // Behind the line about the lock file of this directory, and the progress.
    insta::assert_snapshot!(stderr(&unpinned).lines().skip(2).collect::<Vec<_>>().join("\n"));
    let pin = scratch.turnup(&["pin", "--source", "upstream"]).output().unwrap();
    assert!(pin.status.success(), "{}", stderr(&pin));
    let pinned = scratch.turnup(&fetch).output().unwrap();
    assert!(pinned.status.success(), "{}", stderr(&pinned));
    let path = String::from_utf8(pinned.stdout).unwrap();
    assert_eq!(fs_err::read(path.trim()).unwrap(), theirs);

    let moved = Server::new(Reply::Bytes(b"changed later, same lengt".to_vec()));
    let text = fs_err::read_to_string(&lock).unwrap().replace(&server.url, &moved.url);
    fs_err::write(&lock, text).unwrap();
    fs_err::remove_file(path.trim()).unwrap();
    let changed = scratch.turnup(&fetch).output().unwrap();
    assert_eq!(changed.status.code(), Some(1));
    assert!(stderr(&changed).contains("they were refused"), "{}", stderr(&changed));
}
