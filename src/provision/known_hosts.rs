//! The host keys in the user's own `known_hosts` file, which is never written. Plain names are read
//! here, a thousand in no time; ssh-keygen is asked where names may be hashed or patterns.

use std::path::Path;

use crate::error::{Class, Error, Result};
use crate::exec::Run;
use crate::format::host_key_rank;
use crate::input;

/// The public key of the host at this address and port: `ssh-ed25519 AAAA…`. None when the file
/// does not have it.
pub(super) fn find(file: &Path, address: &str, port: u16) -> Result<Option<String>> {
    if !file.is_file() {
        let message = format!("{}: the file of known hosts is missing", file.display());
        return Err(Error::config(message).hint("turnup config set phase1.ssh.known_hosts_file=FILE"));
    }
    let name = if port == 22 { address.to_owned() } else { format!("[{address}]:{port}") };
    let text = input::read_text(file, input::DOCUMENT)?;
    let names = |line: &&str| line.split(' ').next().is_some_and(|names| names.split(',').any(|one| one == name));
    let plain: Vec<&str> = text.lines().filter(names).collect();
    if !plain.is_empty() || !text.contains(['|', '*', '?']) {
        return Ok(best(&plain.join("\n")));
    }
    let run = Run::new("ssh-keygen").arg("-F").arg(&name).arg("-f").arg(file).dir("/");
    match run.output() {
        Ok(output) => Ok(best(&output.stdout)),
        // It says nothing and exits with 1 for a host that is not there.
        Err(failure) if failure.code() == Some(1) && failure.stderr().trim().is_empty() => Ok(None),
        Err(failure) => Err(failure.into_error(Class::Precondition)),
    }
}

/// The best key of what ssh-keygen found. Revoked keys and those of authorities (`@…`) are no
/// host's.
fn best(found: &str) -> Option<String> {
    let lines = found.lines().filter(|line| !line.starts_with(['#', '@']));
    let keys = lines.filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (kind, key) = (words.next()?, words.next()?);
        Some((host_key_rank(kind)?, format!("{kind} {key}")))
    });
    keys.min().map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    const FILE: &str = "192.0.2.1 ssh-rsa UlNB\n192.0.2.1 ssh-ed25519 RUQ=\n[192.0.2.1]:2222 ssh-ed25519 T1RIRVI=\n\
        @revoked 192.0.2.3 ssh-ed25519 R09ORQ==\n\
        |1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ssh-ed25519 SEFTSEVE\n";

    #[test]
    fn the_best_key_of_the_right_port_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("known hosts");
        fs_err::write(&file, FILE).unwrap();
        let key = |address: &str, port| find(&file, address, port).unwrap();
        assert_eq!(key("192.0.2.1", 22).unwrap(), "ssh-ed25519 RUQ=");
        assert_eq!(key("192.0.2.1", 2222).unwrap(), "ssh-ed25519 T1RIRVI=");
        assert_eq!(key("192.168.1.61", 22).unwrap(), "ssh-ed25519 SEFTSEVE", "the name is hashed");
        assert_eq!([key("192.0.2.2", 22), key("192.0.2.3", 22)], [None, None], "not there, and revoked");
        let missing = find(&dir.path().join("no"), "192.0.2.1", 22).unwrap_err();
        assert!(missing.message().ends_with("the file of known hosts is missing"), "{}", missing.message());
    }
}
