//! The processes that the local target has on this machine: systemd-nspawn for each host, and the
//! service. There is no registry to ask where no systemd runs, so their command lines are read.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};

/// The nspawn process of this machine.
pub(super) fn find_leader(machine: &str) -> Result<Option<Pid>> {
    let wanted = format!("--machine={machine}");
    find(|words| {
        words
            .split_first()
            .is_some_and(|(program, args)| program.ends_with(b"systemd-nspawn") && args.contains(&wanted.as_bytes()))
    })
}

/// The service of this description.
pub(super) fn find_service(spec: &Path) -> Result<Option<Pid>> {
    let wanted = [&b"local"[..], b"serve", b"--spec", spec.as_os_str().as_encoded_bytes()];
    find(|words| words.get(1..).is_some_and(|args| args.starts_with(&wanted)))
}

/// The first process whose command line is one of these.
fn find(is_wanted: impl Fn(&[&[u8]]) -> bool) -> Result<Option<Pid>> {
    for entry in fs_err::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // A process may end between the listing and the read.
        let Ok(line) = fs_err::read(entry.path().join("cmdline")) else { continue };
        if is_wanted(&line.split(|byte| *byte == 0).collect::<Vec<_>>()) {
            return Ok(Pid::from_raw(pid));
        }
    }
    Ok(None)
}

/// Ends what is found, orderly, and by force after so long. `who` is for messages.
pub(super) fn stop(find: impl Fn() -> Result<Option<Pid>>, orderly: Duration, who: &str) -> Result<()> {
    let Some(pid) = find()? else { return Ok(()) };
    // The process may end by itself between the look and the signal; the loop sees that.
    let _ = kill_process(pid, Signal::TERM);
    let since = Instant::now();
    while find()?.is_some() {
        if since.elapsed() > orderly {
            let _ = kill_process(pid, Signal::KILL);
        }
        if since.elapsed() > orderly * 2 {
            return Err(Error::permanent(format!("{who} (process {}) does not end", pid.as_raw_nonzero())));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
