//! Who has the lock of Terraform's state, as its diagnostics tell, and whether they can still be at
//! work. It never breaks a lock.

use std::path::Path;

use crate::error::{Class, Error};

/// The programs that could hold a lock here.
const PROGRAMS: [&str; 2] = ["terraform", "tofu"];

/// Who has a lock: what Terraform writes as `Lock Info`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StateHolder {
    id: String,
    operation: String,
    /// `user@host`; it names no process.
    who: String,
    created: String,
}

impl StateHolder {
    /// From the detail of the diagnostic, or from what `init` prints; none when it has no such
    /// part.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (before, info) = text.split_once("Lock Info:")?;
        let mut holder = Self::default();
        for line in info.lines() {
            // In a box on a terminal each line begins with its frame.
            let Some((name, value)) = line.trim_start_matches(['│', ' ', '\t']).split_once(':') else { continue };
            let place = match name {
                "ID" => &mut holder.id,
                "Operation" => &mut holder.operation,
                "Who" => &mut holder.who,
                "Created" => &mut holder.created,
                _ => continue,
            };
            value.trim().clone_into(place);
        }
        // The backend http describes in `Lock Info` the client that asked for the lock, which is
        // us, and of the holder it gives the ID alone.
        let held = before.split_once("already locked: ID=").and_then(|(_, rest)| rest.split_whitespace().next());
        match held {
            Some(id) if id != holder.id => Some(Self { id: id.to_owned(), ..Self::default() }),
            _ => Some(holder),
        }
    }

    /// The error of a run that has to wait. `dir` is Terraform's working directory.
    pub(super) fn into_error(self, name: &str, dir: &Path) -> Error {
        let here = self.is_of(&own_host());
        let working = if here { workers() } else { Vec::new() };
        self.tell(name, dir, here, &working)
    }

    fn tell(self, name: &str, dir: &Path, here: bool, working: &[String]) -> Error {
        let known = |text: &str| if text.is_empty() { "an unknown owner".to_owned() } else { text.to_owned() };
        let mut error = Error::new(Class::Locked, format!("{name}: the state is locked by {}", known(&self.who)));
        for (what, value) in [("since", &self.created), ("doing", &self.operation), ("lock", &self.id)] {
            if !value.is_empty() {
                error = error.evidence(format!("{what}: {value}"));
            }
        }
        if !here || self.id.is_empty() {
            let more = match self.id.as_str() {
                "" => String::new(),
                id => format!("; only if they are gone for sure: cd {} && {name} force-unlock {id}", quote(dir)),
            };
            return error.hint(format!("wait for them, then the same command again{more}"));
        }
        if !working.is_empty() {
            let error = working.iter().fold(error, |error, one| error.evidence(format!("running here: {one}")));
            return error.hint("wait until it has ended, then the same command again");
        }
        error
            .evidence("no terraform or tofu runs on this machine any more: the process that locked it has died")
            .hint(format!("cd {} && {name} force-unlock {}, then the same command again", quote(dir), self.id))
    }

    fn is_of(&self, host: &str) -> bool {
        self.who.rsplit_once('@').is_some_and(|(_, at)| at == host) && !host.is_empty()
    }
}

fn quote(dir: &Path) -> String {
    shell_words::quote(&dir.display().to_string()).into_owned()
}

fn own_host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Every terraform and tofu on this machine that can be seen, with its process and what it does.
fn workers() -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else { continue };
        let Ok(command) = fs_err::read_to_string(entry.path().join("comm")) else { continue };
        if !PROGRAMS.contains(&command.trim_end()) {
            continue;
        }
        // Its subcommand alone: arguments may be anything.
        let arguments = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
        let word = arguments.split(|byte| *byte == 0).nth(1).map(|word| String::from_utf8_lossy(word).into_owned());
        found.push(format!("process {pid}, {} {}", command.trim_end(), word.unwrap_or_default()));
    }
    found
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    const DETAIL: &str = "Error message: the state is already locked by another terraform client\nLock Info:\n  ID:        545e1e3c-a3c5\n  Path:      \n  Operation: OperationTypeApply\n  Who:       root@alibaba-cs\n  Version:   1.0.2\n  Created:   2021-07-13 12:50:09.335850704 +0000 UTC\n  Info:      \n\n\nTerraform acquires a state lock to protect the state.";

    #[test]
    fn the_holder_is_named_and_keeps_the_lock() {
        let holder = || StateHolder::parse(DETAIL).unwrap();
        assert!(holder().is_of("alibaba-cs") && !holder().is_of("alibaba") && !holder().is_of(""));
        let dir = Path::new("/work/.turnup/c/provision");
        let texts = [
            holder().tell("terraform", dir, false, &[]),
            holder().tell("terraform", dir, true, &["process 7, terraform apply".into()]),
            holder().tell("tofu", dir, true, &[]),
            StateHolder::default().tell("terraform", dir, false, &[]),
        ];
        assert!(texts.iter().all(|error| error.class() == Class::Locked));
        insta::assert_snapshot!(texts.map(|error| error.render()).join("\n\n"));
        assert_eq!(StateHolder::parse("Error message: resource not found"), None);
    }

    #[test]
    fn the_backend_http_describes_us_and_not_the_holder() {
        let detail = DETAIL.replace("the state is already", "HTTP remote state already locked: ID=7b6c-4000\nit is");
        let holder = StateHolder::parse(&detail).unwrap();
        assert_eq!(holder, StateHolder { id: "7b6c-4000".into(), ..StateHolder::default() });
        let told = holder.tell("terraform", Path::new("/state/provision"), false, &[]).render();
        assert!(!told.contains("alibaba") && told.contains("force-unlock 7b6c-4000"), "{told}");
    }

    #[test]
    fn the_same_in_the_box_that_init_draws() {
        let boxed: String = DETAIL.lines().flat_map(|line| ["│ ", line, "\n"]).collect();
        assert_eq!(StateHolder::parse(&boxed), StateHolder::parse(DETAIL));
    }
}
