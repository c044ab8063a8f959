//! The public keys that may log in to hosts: turnup's own, and those of the files that the settings
//! name.

use std::path::Path;

use crate::error::{Error, Result};
use crate::input;

use super::{Cluster, SSH_KEY};

impl Cluster {
    /// The public keys that may log in to hosts that are made for this cluster, as lines of
    /// `authorized_keys`: the one that turnup itself uses, and those of people. The first is
    /// missing as long as the provision phase has not made it.
    pub fn authorized_keys(&self) -> Result<Vec<String>> {
        let access = &self.settings.access;
        let mut keys = match &access.key {
            Some(key) => own_public_key(key)?,
            None => match self.store.read(format!("{SSH_KEY}.pub"))? {
                Some(bytes) => public_keys(&format!("{SSH_KEY}.pub"), &String::from_utf8_lossy(&bytes))?,
                None => Vec::new(),
            },
        };
        for file in &access.authorized_key_files {
            let shown = format!("phase1.ssh.authorized_key_files: {}", file.display());
            let text = input::read_text(file, input::KEYS).map_err(|error| {
                Error::config(format!("{shown} cannot be read")).source(error).hint("turnup config check")
            })?;
            keys.extend(public_keys(&shown, &text)?);
        }
        let mut seen = std::collections::BTreeSet::new();
        keys.retain(|key| seen.insert(key.clone()));
        Ok(keys)
    }
}

/// The public half of the user's own key, which lies beside it.
fn own_public_key(key: &Path) -> Result<Vec<String>> {
    const NAME: &str = "phase1.ssh.private_key_file";
    let (key, public) = (key.display(), format!("{}.pub", key.display()));
    let text = input::read_text(Path::new(&public), input::KEYS).map_err(|error| {
        Error::config(format!("{NAME}: {public} is needed, so that hosts let in this key"))
            .source(error)
            .hint(format!("ssh-keygen -y -f {key} > {public}"))
    })?;
    public_keys(&format!("{NAME}: {public}"), &text)
}

/// The lines of a file of public keys. One that holds a private key was meant to stay where it is.
fn public_keys(file: &str, text: &str) -> Result<Vec<String>> {
    if text.contains("PRIVATE KEY") {
        return Err(Error::config(format!("{file} holds a private key, and what hosts are told can be read by many"))
            .hint("name the public half of it, which ends in .pub"));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<String> = lines.map(str::to_owned).collect();
    let is_key = |line: &String| line.split_whitespace().count() >= 2 && !line.chars().any(char::is_control);
    match keys.iter().position(|line| !is_key(line)) {
        Some(at) => Err(Error::config(format!("{file}: line {} of its keys is no public key", at + 1))
            .hint("a line is: ssh-ed25519 AAAA… comment")),
        None => Ok(keys),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::config::{Settings, TreeSource};

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE8Tn3uMkKfY0yXvX1yq0m3m0y4F1m3m0y4F1m3m0y4F turnup";

    #[test]
    fn a_file_of_keys_is_read_and_a_private_one_refused() {
        let text = format!("# people\n\n{KEY}\n  ssh-rsa AAAA \"o'neill\" \n");
        assert_eq!(public_keys("f", &text).unwrap(), [KEY, "ssh-rsa AAAA \"o'neill\""]);
        for (text, expected) in [
            ("-----BEGIN OPENSSH PRIVATE KEY-----\n", "holds a private key"),
            ("ssh-ed25519\n", "line 1 of its keys is no public key"),
        ] {
            let error = public_keys("f", text).unwrap_err();
            assert!(error.message().contains(expected), "{}", error.message());
        }
    }

    #[test]
    fn the_keys_that_log_in_are_the_one_in_use_and_those_of_people() {
        let dir = tempfile::tempdir().unwrap();
        let source = TreeSource::embedded();
        let mut cluster = Cluster::open(&Settings::defaults(&source).unwrap(), source, dir.path()).unwrap();
        assert!(cluster.authorized_keys().unwrap().is_empty(), "not made yet");
        cluster.store.create_dir("ssh").unwrap();
        cluster.store.write_file(format!("{SSH_KEY}.pub"), KEY.as_bytes(), 0o600).unwrap();
        let people = dir.path().join("people");
        fs_err::write(&people, format!("ssh-rsa AAAA anne\n{KEY}\n")).unwrap();
        cluster.settings.access.authorized_key_files = vec![people];
        assert_eq!(cluster.authorized_keys().unwrap(), [KEY, "ssh-rsa AAAA anne"]);
        let own = dir.path().join("own");
        cluster.settings.access.key = Some(own.clone());
        let error = cluster.authorized_keys().unwrap_err().render();
        assert!(error.contains(&format!("ssh-keygen -y -f {0} > {0}.pub", own.display())), "{error}");
        fs_err::write(dir.path().join("own.pub"), "ssh-rsa OWN me\n").unwrap();
        assert_eq!(cluster.authorized_keys().unwrap(), ["ssh-rsa OWN me", "ssh-rsa AAAA anne", KEY]);
    }
}
