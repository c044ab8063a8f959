//! Ports of this machine that a cluster wants, and who has them.

use std::path::Path;

use super::{Finding, FindingLevel};

/// What the local target listens on, on this machine itself. Its hosts have addresses of their own.
const LOCAL: &[(u16, &str)] = &[(6443, "the API server, where it is published on this machine")];

/// State `LISTEN` in `/proc/net/tcp`.
const LISTEN: &str = "0A";

pub(super) fn inspect() -> Vec<Finding> {
    LOCAL.iter().map(|(port, why)| look(*port, why)).collect()
}

fn look(port: u16, why: &str) -> Finding {
    let name = format!("port {port}");
    let Some(inode) = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|file| listener(&fs_err::read_to_string(file).unwrap_or_default(), port))
    else {
        return Finding::new(&name, FindingLevel::Ok, "free", why);
    };
    let owner = owner(&inode).unwrap_or_else(|| "a process that this user may not see".into());
    Finding::new(&name, FindingLevel::Warning, format!("in use by {owner}"), why)
        .fix(format!("look with: ss -ltnp 'sport = :{port}'"))
}

/// The inode of the socket that listens on this port.
fn listener(table: &str, port: u16) -> Option<String> {
    let end = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(1)?.ends_with(&end) && *fields.get(3)? == LISTEN;
        listens.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

/// "containerd (process 123)".
fn owner(inode: &str) -> Option<String> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs_err::read_dir("/proc").ok()?.flatten();
    processes.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())).find_map(
        |entry| {
            let holds = |fd: &Path| fs_err::read_link(fd).is_ok_and(|target| target.as_os_str() == wanted.as_str());
            let mut files = fs_err::read_dir(entry.path().join("fd")).ok()?.flatten();
            files.any(|fd| holds(&fd.path())).then(|| {
                let name = fs_err::read_to_string(entry.path().join("comm")).unwrap_or_default();
                format!("{} (process {})", name.trim(), entry.file_name().to_string_lossy())
            })
        },
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_listener_is_found_with_its_owner() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let finding = look(port, "this test");
        assert_eq!(finding.level, FindingLevel::Warning);
        assert!(finding.found.contains(&format!("(process {})", std::process::id())), "{}", finding.found);
        drop(socket);
        assert_eq!(look(port, "this test").level, FindingLevel::Ok);
    }
}
