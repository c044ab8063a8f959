//! Gets one file from an address or a directory into a file, hashing what comes.
//!
//! Whether the digest is the right one is for the caller to say. No source can fill the disk: what
//! a server announces, and what it sends, is held against the size that the file may have. A
//! connection that fails or stalls, and an answer that a server gives when it is busy, are
//! transient; everything else is not.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use super::digest::{Digest, Hasher};
use super::lock::Pin;
use super::progress::{Pace, Watch};
use super::proxy::DownloadProxy;
use super::size::Size;
use super::sources::{Location, blob_url, without_credentials};
use crate::{Class, Context as _, Error, Result};

/// Proxies come from the environment, as with every other tool.
static AGENT: LazyLock<ureq::Agent> = LazyLock::new(|| config().build().into());

fn config() -> ureq::config::ConfigBuilder<ureq::typestate::AgentScope> {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_mins(1)))
        .timeout_per_read(Some(Duration::from_mins(1)))
        // A compressed answer has another length than the file.
        .accept_encoding("identity")
        .user_agent(concat!("turnup/", env!("CARGO_PKG_VERSION")))
}

/// One that knows a proxy which no environment names.
fn agent_of(proxy: &DownloadProxy, url: &str) -> Result<ureq::Agent> {
    let (via, roots) = proxy.transport(url)?;
    let tls = ureq::tls::TlsConfig::builder().root_certs(roots).build();
    Ok(config().proxy(via).tls_config(tls).build().into())
}

/// Writes the blob of this pin, as the location has it, to a new file.
pub(super) fn fetch_blob(location: &Location, pin: &Pin, to: &Path, watch: &dyn Watch) -> Result<Digest> {
    let size = pin.limit();
    match location {
        Location::Http(url) => fetch_url(&blob_url(url, &pin.sha256.to_string()), size, to, watch),
        Location::Directory(dir) => {
            let path = dir.join("sha256").join(pin.sha256.to_string());
            let mut from = fs_err::File::open(&path)?;
            let total = from.metadata()?.len();
            copy(&mut from, &path.display().to_string(), total, pin, to, watch)
        }
        Location::Archive(path) => {
            let mut archive = tar::Archive::new(fs_err::File::open(path)?);
            let wanted = blob_name(pin);
            for entry in archive.entries_with_seek()? {
                let mut entry = entry?;
                if entry_name(&entry) == wanted && entry.header().entry_type().is_file() {
                    let total = entry.size();
                    return copy(&mut entry, &format!("{}: {wanted}", path.display()), total, pin, to, watch);
                }
            }
            Err(Error::permanent(format!("{} has no {wanted}", path.display())))
        }
    }
}

fn blob_name(pin: &Pin) -> String {
    format!("sha256/{}", pin.sha256)
}

/// The path of an entry of a tar file, whether it was written with `./` before it or not.
fn entry_name<R: Read>(entry: &tar::Entry<'_, R>) -> String {
    let path = entry.path_bytes();
    let text = String::from_utf8_lossy(&path).into_owned();
    text.strip_prefix("./").map(str::to_owned).unwrap_or(text)
}

fn copy(from: &mut dyn Read, place: &str, total: u64, pin: &Pin, to: &Path, watch: &dyn Watch) -> Result<Digest> {
    let size = pin.limit();
    size.require(place, total)?;
    let hasher = Hasher::new(fs_err::File::create(to)?);
    pour(from, hasher, &Flow { place, total, size, watch }, Error::from)
}

/// The names of the files with a digest that a bundle holds, without reading what is in them.
pub(super) fn list_blobs(location: &Location) -> Result<BTreeSet<String>> {
    let unreadable = |path: &Path| format!("the bundle {} cannot be read", path.display());
    match location {
        Location::Http(_) => Ok(BTreeSet::new()),
        Location::Directory(dir) => {
            let entries = fs_err::read_dir(dir.join("sha256")).context(unreadable(dir))?;
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
        }
        Location::Archive(path) => {
            let open = || -> std::io::Result<BTreeSet<String>> {
                let mut archive = tar::Archive::new(fs_err::File::open(path)?);
                let mut names = BTreeSet::new();
                for entry in archive.entries_with_seek()? {
                    names.extend(entry_name(&entry?).strip_prefix("sha256/").map(str::to_owned));
                }
                Ok(names)
            };
            open().context(unreadable(path))
        }
    }
}

/// Writes what is at this address to a file, going on with what an interrupted call left there.
pub(super) fn fetch_url(url: &str, size: Size, to: &Path, watch: &dyn Watch) -> Result<Digest> {
    resume_url(url, size, to, None, watch).map(|(digest, _)| digest)
}

/// Goes on with what an earlier call left of this file, or begins it; a server that cannot go on
/// sends all of it again. The digest is that of the whole file, and the count how many bytes of it
/// were there already. Without a proxy of its own it follows the environment.
pub fn resume_url(
    url: &str,
    size: Size,
    to: &Path,
    proxy: Option<&DownloadProxy>,
    watch: &dyn Watch,
) -> Result<(Digest, u64)> {
    let own = proxy.map(|proxy| agent_of(proxy, url)).transpose()?;
    // A part that is larger than the whole cannot be a part of it.
    let there = fs_err::metadata(to).map_or(0, |data| data.len());
    let there = if there > size.most() { 0 } else { there };
    let mut response = ask(own.as_ref().unwrap_or(&AGENT), url, there)?;
    let goes_on = response.status().as_u16() == 206;
    let there = if goes_on { there } else { 0 };
    let total = response.body().content_length().map(|rest| there + rest);
    let place = without_credentials(url);
    total.map_or(Ok(()), |total| size.require(&place, total))?;
    let mut hasher = Hasher::new(fs_err::OpenOptions::new().create(true).append(true).read(true).open(to)?);
    if goes_on {
        hasher.take_in(&mut fs_err::File::open(to)?)?;
    } else {
        fs_err::OpenOptions::new().write(true).truncate(true).open(to)?;
    }
    let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
    let flow = Flow { place: &place, total: total.unwrap_or(0), size, watch };
    let digest = pour(&mut body, hasher, &flow, |error| interrupted(url, error))?;
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

/// Whether a server has the blob with this digest (hexadecimal), below the address of a mirror. One
/// byte is asked for, in the way in which hosts fetch: not every server knows how to answer without
/// sending.
///
/// # Errors
/// The server does not answer, or answers neither with the file nor with a refusal.
pub fn find_blob(mirror: &str, digest: &str) -> Result<Presence> {
    let url = blob_url(mirror, digest);
    let status = call(&AGENT, &url, Some("bytes=0-0".into()))?.status();
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
fn ask(agent: &ureq::Agent, url: &str, from: u64) -> Result<ureq::http::Response<ureq::Body>> {
    let response = call(agent, url, (from > 0).then(|| format!("bytes={from}-")))?;
    let status = response.status();
    if status.as_u16() == 416 {
        // All of it is there already, or another file has this address now: without the range the
        // answer tells.
        return ask(agent, url, 0);
    }
    if status.is_success() { Ok(response) } else { Err(refusal(url, status)) }
}

/// Whatever the server answers.
fn call(agent: &ureq::Agent, url: &str, range: Option<String>) -> Result<ureq::http::Response<ureq::Body>> {
    let request = agent.get(url);
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

/// One file on its way.
struct Flow<'a> {
    /// For messages.
    place: &'a str,
    /// How many bytes were announced; 0 where none were.
    total: u64,
    size: Size,
    watch: &'a dyn Watch,
}

fn pour(
    from: &mut dyn Read,
    mut hasher: Hasher<fs_err::File>,
    flow: &Flow<'_>,
    explain: impl Fn(std::io::Error) -> Error,
) -> Result<Digest> {
    let Flow { place, total, size, watch } = *flow;
    let mut buffer = vec![0; 1 << 18];
    let mut pace = Pace::new(Duration::from_millis(200));
    loop {
        watch.check()?;
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) if hasher.count() + count as u64 > size.most() => {
                return Err(Error::permanent(format!(
                    "{place} sends more than the {} bytes that the file may have; the rest was not read",
                    size.most()
                )));
            }
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
