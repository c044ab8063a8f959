//! Artifacts that this host lacks, by their sha256 from a place that need not be trusted. What
//! stopped in the middle is gone on with, what has other bytes is thrown away; nothing comes to its
//! place before all of it is right.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::artifacts::{self, Digest, LARGEST, NoProgress, Size, blob_url, resume_url};
use crate::atomic_file::sync_directory;
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::signals;
use crate::parallel;

use super::event::NodeEvent;
use super::node_config::{Content, File, HOST_BLOBS, NodeConfig, PROXY_AUTHORITY, Proxy};
use super::task;

/// At a time: the servers of a whole group that boots share one place.
const AT_ONCE: usize = 4;
/// How long one boot keeps trying; systemd then restarts the unit.
const TIMEOUT: Duration = Duration::from_mins(30);
/// How long downloads of the user's own files are retried: a step waits for them.
const FILES_TIMEOUT: Duration = Duration::from_mins(5);
/// Between two tries: twice as long each time, up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_mins(1);

/// Fetches what the configuration needs and none of its folders has, writing a [`NodeEvent`] a line
/// to `out`.
pub(super) fn fetch_missing(node_config: &NodeConfig, url: &str, out: &mut dyn Write) -> Result<()> {
    let mut missing: Vec<&str> = node_config.artifacts().filter(|sha256| !node_config.has_blob(sha256)).collect();
    missing.sort_unstable();
    missing.dedup();
    let wanted = |sha256: &str| Wanted {
        name: node_config.name_of(sha256).to_owned(),
        url: blob_url(url, sha256),
        sha256: sha256.to_owned(),
        size: node_config.size_of(sha256).map_or(Size::AtMost(LARGEST), Size::Exactly),
    };
    let missing: Vec<Wanted> = missing.into_iter().map(wanted).collect();
    let hint = "turnup artifacts export DIR, and serve that directory at phase1.user_data.artifacts_url";
    let proxy = proxy_of(node_config);
    fetch_all(
        &missing,
        &Destination { dir: HOST_BLOBS.into(), since: Instant::now(), timeout: TIMEOUT, proxy, hint },
        out,
    )
}

/// Fetches the user's own files that this host lacks, each from its own URL, writing a
/// [`NodeEvent`] a line to `out`.
pub(super) fn fetch_files(node_config: &NodeConfig, out: &mut dyn Write) -> Result<()> {
    let wanted = node_config.files.iter().filter_map(|file| match &file.content {
        Content::Url { url, sha256 } => Some((file, url, sha256)),
        _ => None,
    });
    let is_missing = |file: &File, sha256: &String| {
        !node_config.has_blob(sha256) && !task::digest_of(Path::new(&file.path)).is_ok_and(|found| found == *sha256)
    };
    let missing: Vec<Wanted> = wanted
        .filter(|(file, _, sha256)| is_missing(file, sha256))
        .map(|(file, url, sha256)| Wanted {
            name: file.path.clone(),
            url: url.clone(),
            sha256: sha256.clone(),
            size: Size::AtMost(LARGEST),
        })
        .collect();
    let hint = "look at its url and sha256 in phase2.host.file_assets";
    let proxy = proxy_of(node_config);
    fetch_all(
        &missing,
        &Destination { dir: HOST_BLOBS.into(), since: Instant::now(), timeout: FILES_TIMEOUT, proxy, hint },
        out,
    )
}

/// The way out that the node config names, with the authority that it brings along. It is not yet
/// among those that the host trusts when the first file is fetched.
fn proxy_of(node_config: &NodeConfig) -> Option<artifacts::DownloadProxy> {
    let Proxy { http, https, direct } = node_config.proxy.clone()?;
    let authority = node_config.files.iter().find(|file| file.path == PROXY_AUTHORITY);
    let authorities = authority.and_then(|file| match &file.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    });
    Some(artifacts::DownloadProxy { http, https, direct, authorities: authorities.unwrap_or_default() })
}

fn fetch_all(missing: &[Wanted], place: &Destination, out: &mut dyn Write) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    fs_err::create_dir_all(&place.dir)?;
    let fetched = parallel::map(missing, AT_ONCE, |wanted| place.fetch(wanted));
    // Every one that fails is named: a mirror that lacks one usually lacks several.
    let mut failed: Option<Error> = None;
    for (wanted, result) in missing.iter().zip(fetched) {
        match result {
            Ok(()) => NodeEvent::Changed(format!("{HOST_BLOBS}/{}", wanted.sha256)).write(out)?,
            Err(error) => {
                let more = format!("{}: {}", wanted.name, error.message());
                failed = Some(failed.unwrap_or(error).evidence(more));
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// What is to be fetched.
struct Wanted {
    /// For messages.
    name: String,
    url: String,
    sha256: String,
    size: Size,
}

/// Where what was fetched goes.
struct Destination {
    dir: PathBuf,
    since: Instant,
    timeout: Duration,
    proxy: Option<artifacts::DownloadProxy>,
    /// The advice when the bytes differ from the expected ones.
    hint: &'static str,
}

impl Destination {
    fn fetch(&self, Wanted { url, sha256, size, .. }: &Wanted) -> Result<()> {
        let wanted: Digest = sha256.parse().context("the node config names an artifact by no sha256")?;
        let part = self.dir.join(format!(".part-{sha256}"));
        let mut pause = FIRST_PAUSE;
        loop {
            match fetch_once(url, &wanted, *size, &part, self) {
                Ok(()) => break,
                Err(error) if error.class() != Class::Transient || self.since.elapsed() + pause > self.timeout => {
                    return Err(error);
                }
                Err(_) => signals::sleep(pause)?,
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
        fs_err::File::open(&part)?.sync_all()?;
        fs_err::rename(&part, self.dir.join(sha256))?;
        Ok(sync_directory(&self.dir)?)
    }
}

/// One attempt. A resumed download with a wrong digest may have been wrong before, so it restarts
/// from zero.
fn fetch_once(url: &str, wanted: &Digest, size: Size, part: &Path, place: &Destination) -> Result<()> {
    let (found, there) = resume_url(url, size, part, place.proxy.as_ref(), &NoProgress)?;
    if found == *wanted {
        return Ok(());
    }
    fs_err::remove_file(part)?;
    let class = if there > 0 { Class::Transient } else { Class::Permanent };
    Err(Error::new(class, format!("{url} has other bytes than those with this sha256"))
        .evidence(format!("they have {found}"))
        .hint(place.hint))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::net::TcpStream;
    use std::sync::{Arc, Mutex};

    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::http_server::{self, LOOPBACK, send_endless, send_head};

    /// What the server does with one request.
    #[derive(Clone, Copy)]
    enum Turn {
        /// Answers as a server that knows ranges.
        Good,
        /// Promises everything and ends in the middle.
        Cut,
        /// Sends all of it, whatever was asked for.
        NoRanges,
        /// Says this.
        Status(&'static str),
        /// Sends other bytes of the same length.
        Wrong,
        /// Sends for ever, and does not say how much.
        Endless,
        /// Promises more than the file has.
        Longer,
    }

    /// Serves these bytes, one turn a request; returns where, and what ranges are asked for. A turn
    /// that is not asked for blocks nothing.
    fn serve(bytes: Vec<u8>, turns: &[Turn]) -> (String, Arc<Mutex<Vec<usize>>>) {
        let (turns, asked) = (Mutex::new(Vec::from(turns).into_iter()), Arc::<Mutex<Vec<usize>>>::default());
        let told = Arc::clone(&asked);
        let url = http_server::serve(LOOPBACK, move |request, stream| {
            let Some(turn) = turns.lock().unwrap().next() else { return Ok(()) };
            told.lock().unwrap().push(request.first_byte());
            answer(stream, &bytes, turn, request.first_byte())
        });
        (url, asked)
    }

    fn answer(stream: &mut TcpStream, bytes: &[u8], turn: Turn, from: usize) -> std::io::Result<()> {
        let wrong = vec![b'x'; bytes.len()];
        let part = if from > 0 { "206 x" } else { "200 x" };
        let (status, body, length) = match turn {
            Turn::Endless => return send_endless(stream),
            Turn::Good => (part, &bytes[from..], bytes.len() - from),
            Turn::NoRanges => ("200 x", bytes, bytes.len()),
            Turn::Cut => (part, &bytes[from..from + 3], bytes.len() - from),
            Turn::Status(status) => (status, &b""[..], 0),
            Turn::Longer => ("200 x", bytes, bytes.len() + 1),
            Turn::Wrong => (part, &wrong[from..], wrong.len() - from),
        };
        send_head(stream, status, Some(length as u64))?;
        stream.write_all(body)
    }

    fn fetch(turns: &[Turn], timeout: Duration) -> (Result<()>, Vec<usize>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let (url, asked) = serve(b"kubelet".to_vec(), turns);
        let sha256 = hex::encode(Sha256::digest("kubelet"));
        let place = Destination { dir: dir.path().into(), since: Instant::now(), timeout, proxy: None, hint: "" };
        let size = Size::Exactly(b"kubelet".len() as u64);
        let result = place.fetch(&Wanted { name: String::new(), url, sha256: sha256.clone(), size });
        let names: Vec<String> = fs_err::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        match &result {
            Ok(()) => {
                assert_eq!(fs_err::read(dir.path().join(&sha256)).unwrap(), b"kubelet");
                assert_eq!(names, [sha256], "nothing is left beside it");
            }
            Err(_) => assert!(!names.contains(&sha256), "{names:?}"),
        }
        let asked = asked.lock().unwrap().clone();
        (result, asked, dir)
    }

    #[test]
    fn what_stopped_is_gone_on_with_and_a_busy_server_waited_for() {
        let minute = Duration::from_mins(1);
        let (result, asked, _dir) = fetch(&[Turn::Cut, Turn::Status("503 x"), Turn::Good], minute);
        result.unwrap();
        assert_eq!(asked, [0, 3, 3]);
        let (result, asked, _dir) = fetch(&[Turn::Cut, Turn::NoRanges], minute);
        result.unwrap();
        assert_eq!(asked, [0, 3], "a server without ranges sends all of it again");
        let (result, asked, _dir) = fetch(&[Turn::Cut, Turn::Status("416 x"), Turn::Good], minute);
        result.unwrap();
        assert_eq!(asked, [0, 3, 0]);
    }

    #[test]
    fn other_bytes_are_thrown_away() {
        let (result, _, dir) = fetch(&[Turn::Wrong], Duration::from_mins(1));
        let error = result.unwrap_err();
        assert_eq!(error.class(), Class::Permanent);
        assert!(error.message().ends_with("has other bytes than those with this sha256"), "{}", error.message());
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 0);
        // The first half may have been the wrong one.
        let (result, asked, _dir) = fetch(&[Turn::Cut, Turn::Wrong, Turn::Good], Duration::from_mins(1));
        result.unwrap();
        assert_eq!(asked, [0, 3, 0]);
    }

    #[test]
    fn more_bytes_than_the_artifact_has_never_reach_the_disk() {
        let (result, _, dir) = fetch(&[Turn::Endless], Duration::from_mins(1));
        let error = result.unwrap_err();
        assert_eq!(error.class(), Class::Permanent);
        assert!(error.message().contains("sends more than the 7 bytes"), "{}", error.message());
        let left: u64 =
            fs_err::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert!(left <= 7, "{left} bytes");
        let (result, asked, _dir) = fetch(&[Turn::Longer], Duration::from_mins(1));
        assert!(result.unwrap_err().message().contains("has 8 bytes and not the 7"), "{asked:?}");
        assert_eq!(asked, [0]);
    }

    #[test]
    fn what_will_not_pass_is_not_tried_again_and_the_timeout_ends_the_rest() {
        let (result, asked, _dir) = fetch(&[Turn::Status("404 x")], Duration::from_mins(1));
        assert_eq!((result.unwrap_err().class(), asked.len()), (Class::Permanent, 1));
        // A second to wait, and then two more, which do not fit: the last turn is never asked for.
        let (result, asked, _dir) = fetch(&[Turn::Status("503 x"), Turn::Cut, Turn::Good], Duration::from_millis(2900));
        assert_eq!(result.unwrap_err().class(), Class::Transient);
        // One where the first try itself took long.
        assert!((1..=2).contains(&asked.len()), "{asked:?}");
    }
}
