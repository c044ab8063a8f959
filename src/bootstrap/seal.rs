//! Encrypts a credential for the safe with the real `age`. The plain text goes through a file in
//! memory and touches no disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::exec::{Run, tools};

/// What may begin a recipient: age's own and plugins' (`age1…`), and public keys of OpenSSH.
const RECIPIENTS: [&str; 3] = ["age1", "ssh-ed25519 ", "ssh-rsa "];
const HEAD: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
/// age needs milliseconds; a plugin may ask a token.
const LIMIT: Duration = Duration::from_mins(1);

/// Nothing, or what is wrong with this recipient.
pub fn judge_recipient(text: &str) -> Result<(), String> {
    let is_one = RECIPIENTS.iter().any(|start| text.starts_with(start)) && !text.chars().any(char::is_control);
    if is_one { Ok(()) } else { Err("expected age1…, ssh-ed25519 … or ssh-rsa …".to_owned()) }
}

/// The text, encrypted for all of these recipients and for those in the files, as lines of ASCII
/// that `age --decrypt` reads.
pub fn seal(plain: &str, recipients: &[String], files: &[PathBuf], work_dir: &Path) -> Result<String> {
    let age = tools::find("age")?;
    let named = recipients.iter().map(|recipient| format!("--recipient={recipient}"));
    let listed = files.iter().map(|file| format!("--recipients-file={}", file.display()));
    let run = Run::new(age).args(["--encrypt", "--armor"]).args(named.chain(listed)).dir(work_dir);
    let sealed = run.stdin(plain.as_bytes()).label("age").timeout(LIMIT).succeed()?.stdout;
    if !sealed.starts_with(HEAD) || sealed.contains(plain) {
        return Err(Error::bug("age printed something else than an encrypted file"));
    }
    Ok(sealed)
}
