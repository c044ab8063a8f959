//! Gets one file from an address or a directory into a file, hashing what comes.
//!
//! Whether the digest is the right one is for the caller to say. A connection that fails or stalls, and an answer that a server
//! gives when it is busy, are transient; everything else is not.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use super::digest::{Digest, Hasher};
use super::sources::{Location, blob_url, without_credentials};
use super::watch::{Pace, Watch};
use crate::{Class, Error, Result};

/// Proxies come from the environment, as with every other tool.
static AGENT: LazyLock<ureq::Agent> = LazyLock::new(|| {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_mins(1)))
        .timeout_per_read(Some(Duration::from_mins(1)))
        // A compressed answer has another length than the file.
        .accept_encoding("identity")
        .user_agent(concat!("turnup/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
});

/// Writes the blob with this digest, as the location has it, to a new file.
pub(super) fn fetch_blob(location: &Location, digest: &Digest, to: &Path, watch: &dyn Watch) -> Result<Digest> {
    match location {
        Location::Http(url) => fetch_url(&blob_url(url, &digest.to_string()), to, watch),
        Location::Directory(dir) => {
            let path = dir.join("sha256").join(digest.to_string());
            let mut from = fs_err::File::open(&path)?;
            let total = from.metadata()?.len();
            pour(&mut from, to, total, watch, Error::from)
        }
    }
}

/// Writes what is at this address to a new file.
pub(super) fn fetch_url(url: &str, to: &Path, watch: &dyn Watch) -> Result<Digest> {
    let mut response = ask(url, 0)?;
    let total = response.body().content_length().unwrap_or(0);
    let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
    pour(&mut body, to, total, watch, |error| interrupted(url, error))
}

/// Goes on with what an earlier call left of this file, or begins it; a server that cannot go on sends all of it again. The digest is
/// that of the whole file, and the count how many bytes of it were there already.
pub fn resume_url(url: &str, to: &Path, watch: &dyn Watch) -> Result<(Digest, u64)> {
    let there = fs_err::metadata(to).map_or(0, |data| data.len());
    let mut response = ask(url, there)?;
    let goes_on = response.status().as_u16() == 206;
    let there = if goes_on { there } else { 0 };
    let mut hasher = Hasher::new(fs_err::OpenOptions::new().create(true).append(true).read(true).open(to)?);
    if goes_on {
        hasher.take_in(&mut fs_err::File::open(to)?)?;
    } else {
        fs_err::OpenOptions::new().write(true).truncate(true).open(to)?;
    }
    let total = response.body().content_length().map_or(0, |rest| there + rest);
    let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
    let digest = pour_into(&mut body, hasher, total, watch, |error| interrupted(url, error))?;
    Ok((digest, there))
}

/// What a server says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It gives it away.
    Served,
    /// It does not have it.
    Missing,
    /// It does not say: who asks may not know. Some answer so for what they do not have.
    Denied,
}

/// Whether a server has the blob with this digest (hexadecimal), below the address of a mirror. One byte is asked for, in the way in which
/// hosts fetch: not every server knows how to answer without sending.
///
/// # Errors
/// That nobody answers, or neither with the file nor with a refusal.
pub fn find_blob(mirror: &str, digest: &str) -> Result<Presence> {
    let url = blob_url(mirror, digest);
    let status = call(&url, Some("bytes=0-0".into()))?.status();
    match status.as_u16() {
        404 | 410 => Ok(Presence::Missing),
        401 | 403 => Ok(Presence::Denied),
        _ if status.is_success() => Ok(Presence::Served),
        _ => Err(refusal(&url, status)),
    }
}

fn interrupted(url: &str, error: std::io::Error) -> Error {
    Error::transient(format!("{} stopped in the middle", without_credentials(url))).source(error)
}

/// The answer, from this byte on if the server can.
fn ask(url: &str, from: u64) -> Result<ureq::http::Response<ureq::Body>> {
    let response = call(url, (from > 0).then(|| format!("bytes={from}-")))?;
    let status = response.status();
    if status.as_u16() == 416 {
        // All of it is there already, or another file has this address now: without the range the answer tells.
        return ask(url, 0);
    }
    if status.is_success() { Ok(response) } else { Err(refusal(url, status)) }
}

/// Whatever the server answers.
fn call(url: &str, range: Option<String>) -> Result<ureq::http::Response<ureq::Body>> {
    let request = AGENT.get(url);
    let request = range.into_iter().fold(request, |request, range| request.header("Range", range));
    let away =
        |error| Error::new(class_of(&error), format!("{} cannot be reached", without_credentials(url))).source(error);
    request.call().map_err(away)
}

fn refusal(url: &str, status: ureq::http::StatusCode) -> Error {
    let busy = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
    let class = if busy { Class::Transient } else { Class::Permanent };
    Error::new(class, format!("{} answered {status}", without_credentials(url)))
}

fn pour(
    from: &mut dyn Read,
    to: &Path,
    total: u64,
    watch: &dyn Watch,
    explain: impl Fn(std::io::Error) -> Error,
) -> Result<Digest> {
    pour_into(from, Hasher::new(fs_err::File::create(to)?), total, watch, explain)
}

fn pour_into(
    from: &mut dyn Read,
    mut hasher: Hasher<fs_err::File>,
    total: u64,
    watch: &dyn Watch,
    explain: impl Fn(std::io::Error) -> Error,
) -> Result<Digest> {
    let mut buffer = vec![0; 1 << 18];
    let mut pace = Pace::new(Duration::from_millis(200));
    loop {
        watch.check()?;
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hasher.write_all(&buffer[..count])?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(explain(error)),
        }
        if pace.is_due() {
            watch.count(hasher.count(), total);
        }
    }
    watch.count(hasher.count(), total);
    if total != 0 && hasher.count() != total {
        let message = format!("only {} of {total} bytes came", hasher.count());
        return Err(explain(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, message)));
    }
    Ok(hasher.finish().1)
}

fn class_of(error: &ureq::Error) -> Class {
    use ureq::Error as E;
    match error {
        E::Io(_) | E::Timeout(_) | E::ConnectionFailed | E::HostNotFound | E::Protocol(_) => Class::Transient,
        E::BadUri(_) | E::InvalidProxyUrl => Class::Config,
        _ => Class::Permanent,
    }
}
