//! The nftables table of this host as the kernel has it, compared with what its unit loaded; and
//! from where turnup is logged in. Looks only: the unit loads the rules, and what they are is
//! decided in `bootstrap::firewall`.

use std::net::IpAddr;
use std::path::Path;

use crate::exec::Run;

use super::line_diff::line_diff;
use super::node_config::{FIREWALL_UNIT, Unit};

/// Where the unit keeps what nft lists after it has loaded the rules. Gone with a restart of the
/// host, like the rules.
pub(crate) const LOADED: &str = "/run/turnup-firewall";

/// The lines that are other ones in the kernel than when this unit loaded them: `- as it is`, `+ as
/// it was loaded`; none for a unit that loads no rules.
pub(super) fn find_drift(unit: &Unit) -> Option<Vec<String>> {
    if unit.name != FIREWALL_UNIT {
        return None;
    }
    let loaded = fs_err::read_to_string(LOADED).unwrap_or_default();
    let list = Run::new("nft").args(["--stateless", "list", "table", "inet", "turnup"]).dir("/").output();
    // Where there is no such table, nft fails.
    let found = list.map(|output| output.stdout).unwrap_or_default();
    (loaded.is_empty() || found != loaded).then(|| line_diff(&found, &loaded))
}

/// The address from which this process was started over ssh, in the words of sshd; none where it
/// was not. sudo passes no variable of sshd's on, so those of the processes above count as well.
pub(super) fn find_client() -> Option<IpAddr> {
    const MOST: usize = 64;
    let parent = |pid: &u32| {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may have blanks and parentheses in it.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 1)
    };
    std::iter::successors(Some(std::process::id()), parent).take(MOST).find_map(|pid| {
        let environment = fs_err::read(Path::new("/proc").join(pid.to_string()).join("environ")).ok()?;
        environment.split(|byte| *byte == 0).find_map(client_of)
    })
}

/// `SSH_CONNECTION=CLIENT PORT SERVER PORT`.
fn client_of(variable: &[u8]) -> Option<IpAddr> {
    let connection = std::str::from_utf8(variable).ok()?.strip_prefix("SSH_CONNECTION=")?;
    let client = connection.split(' ').next()?;
    client.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_what_sshd_says() {
        let client = |text: &str| client_of(text.as_bytes()).map(|address| address.to_string());
        assert_eq!(client("SSH_CONNECTION=203.0.113.9 50000 10.0.0.1 22").as_deref(), Some("203.0.113.9"));
        assert_eq!(client("SSH_CONNECTION=fe80::1%eth0 50000 fe80::2%eth0 22").as_deref(), Some("fe80::1"));
        assert_eq!(client("SSH_CLIENT=203.0.113.9 50000 22"), None);
        assert_eq!(client("SSH_CONNECTION=UNKNOWN 65535 UNKNOWN 65535"), None);
    }
}
