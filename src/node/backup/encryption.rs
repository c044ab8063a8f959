//! What is encrypted to the operator's keys, with age: a host has only the public ones, and cannot
//! read what it has written itself. `age --decrypt` reads all of it.

use std::io::{self, Read, Write};
use std::path::Path;

use age::armor::ArmoredReader;
use age::{Decryptor, Encryptor, Identity, IdentityFile, Recipient};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::input;

/// A public key, or what is wrong with it.
fn parse_recipient(text: &str) -> Result<age::x25519::Recipient, String> {
    text.parse()
        .map_err(|why| format!("`{text}` is no public key of age ({why}); expected age1…, as age-keygen prints it"))
}

/// Copies everything that is read to `out`, encrypted for each of these public keys; `out` comes
/// back unflushed, because what writes lines of text pads the last one then.
pub(crate) fn encrypt<W: Write>(recipients: &[String], mut source: impl Read, out: W) -> Result<W> {
    let keys = recipients.iter().map(|text| {
        parse_recipient(text).map_err(|why| Error::config(why).hint("turnup config set phase2.backup.recipients=KEY"))
    });
    let keys: Vec<age::x25519::Recipient> = keys.collect::<Result<_>>()?;
    let encryptor = Encryptor::with_recipients(keys.iter().map(|key| key as &dyn Recipient));
    let encryptor = encryptor.map_err(|why| Error::bug(format!("age does not encrypt: {why}")))?;
    let mut stream = encryptor.wrap_output(out)?;
    io::copy(&mut source, &mut stream)?;
    Ok(stream.finish()?)
}

/// The private keys of a file that the operator names.
pub(crate) struct Identities {
    all: Vec<Box<dyn Identity>>,
    /// The file, for errors.
    named: String,
}

impl std::fmt::Debug for Identities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identities").field("named", &self.named).finish_non_exhaustive()
    }
}

impl Identities {
    /// Reads what `age-keygen` has written.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let named = path.display().to_string();
        let bytes = input::read(path, input::KEYS).map(Zeroizing::new).map_err(|error| {
            Error::usage(format!("{named} cannot be read"))
                .source(error)
                .hint("name a file of age-keygen with --identity")
        })?;
        if [&b"age-encryption.org/"[..], b"-----BEGIN AGE ENCRYPTED FILE"].iter().any(|head| bytes.starts_with(head)) {
            return Err(Error::usage(format!("{named} is itself encrypted with a passphrase"))
                .hint(format!("age --decrypt {named} > /dev/shm/identity; then: --identity /dev/shm/identity")));
        }
        let refuse = || {
            // What is in the file is a secret, so it is not shown.
            Error::usage(format!("{named} is no identity of age"))
                .evidence("expected a line that begins with AGE-SECRET-KEY-1")
                .hint("name a file of age-keygen with --identity")
        };
        let file = IdentityFile::from_buffer(io::BufReader::new(bytes.as_slice())).map_err(|_| refuse())?;
        let all = file.into_identities().map_err(|_| refuse())?;
        if all.is_empty() {
            return Err(refuse());
        }
        Ok(Self { all, named })
    }

    /// What `source` was before it was encrypted; `what` names it in errors.
    pub(crate) fn decrypt<R: Read>(&self, what: &str, recipients: &[String], source: R) -> Result<impl Read + use<R>> {
        let damaged = |why: &dyn std::fmt::Display| {
            Error::precondition(format!("{what} is no file of age, or damaged")).evidence(why.to_string())
        };
        let decryptor = Decryptor::new(ArmoredReader::new(source)).map_err(|why| damaged(&why))?;
        decryptor.decrypt(self.all.iter().map(AsRef::as_ref)).map_err(|why| match why {
            age::DecryptError::NoMatchingKeys => {
                let error = Error::precondition(format!("{what} is not encrypted for a key in {}", self.named));
                let keys =
                    recipients.iter().fold(error, |error, key| error.evidence(format!("it is encrypted for {key}")));
                keys.hint("name the file of one of these keys with --identity")
            }
            why => damaged(&why),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use age::secrecy::ExposeSecret as _;

    use super::*;

    /// A new key: its public half, and a file with the private one.
    pub(crate) fn new_key(dir: &Path, name: &str) -> (String, std::path::PathBuf) {
        let key = age::x25519::Identity::generate();
        let path = dir.join(name);
        let text = format!("# created: today\n# public key: …\n{}\n", key.to_string().expose_secret());
        fs_err::write(&path, text).unwrap();
        (key.to_public().to_string(), path)
    }

    #[test]
    fn each_recipient_can_read_it_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two, other] = ["one", "two", "other"].map(|name| new_key(dir.path(), name));
        let recipients = [one.0, two.0];
        let mut sealed = Vec::new();
        encrypt(&recipients, &b"all that etcd has"[..], &mut sealed).unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("etcd has"));
        for path in [&one.1, &two.1] {
            let mut text = String::new();
            let identities = Identities::read(path).unwrap();
            identities.decrypt("a", &recipients, sealed.as_slice()).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "all that etcd has");
        }
        let identities = Identities::read(&other.1).unwrap();
        let refused = identities.decrypt("a", &recipients, sealed.as_slice()).map(drop).unwrap_err().render();
        assert!(refused.contains("not encrypted for a key in") && refused.contains(&recipients[1]), "{refused}");
        assert!(identities.decrypt("a", &recipients, &b"junk"[..]).is_err());
        sealed.truncate(sealed.len() - 1);
        let mut rest = Identities::read(&one.1).unwrap().decrypt("a", &[], sealed.as_slice()).unwrap();
        assert!(rest.read_to_end(&mut Vec::new()).is_err(), "a part is not taken for the whole");
    }

    #[test]
    fn what_is_no_key_is_named_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for text in ["", "# nothing\n", "AGE-SECRET-KEY-1WRONG\n", "-----BEGIN AGE ENCRYPTED FILE-----\n"] {
            fs_err::write(&path, text).unwrap();
            let error = Identities::read(&path).unwrap_err().render();
            assert!(error.contains("--identity") && !error.contains("WRONG"), "{error}");
        }
        assert!(Identities::read(&dir.path().join("none")).is_err());
        assert!(parse_recipient("age1qqqq").is_err() && parse_recipient("ssh-ed25519 AAAA").is_err());
        parse_recipient(&new_key(dir.path(), "k").0).unwrap();
    }
}
