//! Artifacts that this host lacks, by their sha256 from a place that need not be trusted. What stopped in the middle is gone on with, what has
//! other bytes is thrown away; nothing comes to its place before all of it is right.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::artifacts::{Digest, Quiet, resume_url};
use crate::crowd;
use crate::error::{Class, Context as _, Error, Result};
use crate::exec::signals;

use super::complete::{Complete, HOST_BLOBS};
use super::up::Report;

/// At a time: the servers of a whole group that boots share one place.
const AT_ONCE: usize = 4;
/// How long one boot keeps trying; the unit then begins anew.
const BUDGET: Duration = Duration::from_mins(30);
/// Between two tries: twice as long each time, up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_mins(1);

/// Fetches what the configuration needs and none of its folders has, writing a [`Report`] a line to `out`.
pub(super) fn fetch_missing(complete: &Complete, url: &str, out: &mut dyn Write) -> Result<()> {
    let mut missing: Vec<&str> = complete.artifacts().filter(|sha256| !complete.has_blob(sha256)).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let place = Place { url, dir: HOST_BLOBS.into(), since: Instant::now(), budget: BUDGET };
    fs_err::create_dir_all(&place.dir)?;
    let fetched = crowd::map(&missing, AT_ONCE, |sha256| place.fetch(sha256));
    // Every one that fails is named: a mirror that lacks one usually lacks several.
    let mut failed: Option<Error> = None;
    for (sha256, result) in missing.iter().zip(fetched) {
        match result {
            Ok(()) => {
                let line = serde_json::to_string(&Report::Changed(format!("{HOST_BLOBS}/{sha256}")));
                writeln!(out, "{}", line.context("cannot write a report")?)?;
            }
            Err(error) => {
                let more = format!("{}: {}", name_of(complete, sha256), error.message());
                failed = Some(failed.unwrap_or(error).evidence(more));
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn name_of<'c>(complete: &'c Complete, sha256: &str) -> &'c str {
    let binary = complete.binaries.iter().find(|binary| binary.sha256 == sha256).map(|binary| binary.name.as_str());
    let image = || complete.images.iter().find(|image| image.sha256 == sha256).map(|image| image.reference.as_str());
    binary.or_else(image).unwrap_or_default()
}

/// Where artifacts come from and go to.
struct Place<'a> {
    url: &'a str,
    dir: PathBuf,
    since: Instant,
    budget: Duration,
}

impl Place<'_> {
    fn fetch(&self, sha256: &str) -> Result<()> {
        let wanted: Digest = sha256.parse().context("the complete configuration names an artifact by no sha256")?;
        let url = format!("{}/sha256/{sha256}", self.url.trim_end_matches('/'));
        let part = self.dir.join(format!(".part-{sha256}"));
        let mut pause = FIRST_PAUSE;
        loop {
            match fetch_once(&url, &wanted, &part) {
                Ok(()) => break,
                Err(error) if error.class() != Class::Transient || self.since.elapsed() + pause > self.budget => {
                    return Err(error);
                }
                Err(_) => signals::sleep(pause)?,
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
        fs_err::File::open(&part)?.sync_all()?;
        fs_err::rename(&part, self.dir.join(sha256))?;
        fs_err::File::open(&self.dir)?.sync_all()?;
        Ok(())
    }
}

/// One try. A file that was gone on with and is wrong may have been wrong before, so it is begun anew.
fn fetch_once(url: &str, wanted: &Digest, part: &Path) -> Result<()> {
    let (found, there) = resume_url(url, part, &Quiet)?;
    if found == *wanted {
        return Ok(());
    }
    fs_err::remove_file(part)?;
    let class = if there > 0 { Class::Transient } else { Class::Permanent };
    Err(Error::new(class, format!("{url} has other bytes than those with this sha256"))
        .evidence(format!("they have {found}"))
        .hint("turnup artifacts export DIR, and serve that directory at phase1.user_data.artifacts_url"))
}
