//! Which program drives the module, and whether it is new enough.

use std::path::PathBuf;

use crate::cluster::{Backend, Program};
use crate::error::{Error, Result};
use crate::exec::tools;

/// The oldest that our modules and calls work with: `terraform_data`, `-json`, `plantimestamp`.
const OLDEST: (u64, u64) = (1, 5);
/// The lock file beside the state in S3 is newer, in both programs.
const OLDEST_WITH_S3: (u64, u64) = (1, 10);

/// The names on PATH in the order in which they are tried.
pub(super) const fn names(program: Program) -> &'static [&'static str] {
    match program {
        Program::Auto => &["terraform", "tofu"],
        Program::Terraform => &["terraform"],
        Program::Tofu => &["tofu"],
    }
}

/// The program on PATH; none when it is not there.
pub(super) fn find(program: Program) -> Option<PathBuf> {
    names(program).iter().find_map(|name| tools::find(name).ok())
}

/// Refuses a program that is too old.
pub(super) fn require(name: &str, version: &str, backend: &Backend) -> Result<()> {
    let (oldest, why) = match backend {
        Backend::S3 { .. } => (OLDEST_WITH_S3, " to lock a state in S3"),
        _ => (OLDEST, ""),
    };
    let Some(found) = parse(version) else {
        return Err(Error::permanent(format!("{name} gives no version that can be read: {version:?}"))
            .hint(format!("{name} version -json")));
    };
    if found >= oldest {
        return Ok(());
    }
    let message = format!("{name} {version} is too old: turnup needs {}.{} or newer{why}", oldest.0, oldest.1);
    Err(Error::precondition(message).hint(format!(
        "install a newer {name}, or choose the other one: turnup config set phase1.terraform.program={}",
        if name == "tofu" { "terraform" } else { "tofu" }
    )))
}

/// Major and minor of `1.11.4` or `1.12.0-beta1`.
fn parse(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.trim_start_matches('v').split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn an_old_program_is_refused_with_the_way_out() {
        let s3 = || {
            let text = String::new;
            Backend::S3 { bucket: text(), prefix: text(), region: text(), endpoint: text(), kms_key: text() }
        };
        for (version, backend, fine) in [
            ("1.5.0", Backend::Local, true),
            ("1.4.7", Backend::Local, false),
            ("0.15.5", Backend::Local, false),
            ("2.0.0-beta1", Backend::Local, true),
            ("1.9.8", s3(), false),
            ("1.10.0", s3(), true),
            ("", Backend::Local, false),
        ] {
            assert_eq!(require("terraform", version, &backend).is_ok(), fine, "{version} {backend:?}");
        }
        insta::assert_snapshot!(require("tofu", "1.9.8", &s3()).unwrap_err().render());
    }

    #[test]
    fn the_configuration_decides_which_program() {
        assert_eq!(names(Program::Auto), ["terraform", "tofu"]);
        assert_eq!(names(Program::Tofu), ["tofu"]);
    }
}
