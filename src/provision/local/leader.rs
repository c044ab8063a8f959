//! The process that is a host of this machine: systemd-nspawn, by its command line. It is looked at
//! and never signalled here.

use rustix::process::Pid;

use crate::error::Result;

/// The nspawn process of this machine. There is no registry to ask where no systemd runs, so the
/// command lines are read.
pub(super) fn find_leader(machine: &str) -> Result<Option<Pid>> {
    let wanted = format!("--machine={machine}");
    for entry in fs_err::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // A process may end between the listing and the read.
        let Ok(line) = fs_err::read(entry.path().join("cmdline")) else { continue };
        let mut args = line.split(|byte| *byte == 0);
        let program = args.next().unwrap_or_default();
        if program.ends_with(b"systemd-nspawn") && args.any(|arg| arg == wanted.as_bytes()) {
            return Ok(Pid::from_raw(pid));
        }
    }
    Ok(None)
}
