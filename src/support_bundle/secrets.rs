//! Every secret that a cluster has on this machine, and what looks like one and is not: public keys
//! and certificates. Held in memory only.

use std::ffi::OsStr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::pem::Pem;
use zeroize::Zeroizing;

use crate::config::Settings;
use crate::error::Result;
use crate::redact::{self, Known};
use crate::state::Store;

/// What of a cluster's directory holds no secret, or is too large to hold one: logs and events are
/// what is searched, not what is known.
const PASSED_OVER: [&str; 6] = ["hosts", "logs", "events", ".terraform", "bin", "node-config"];
/// A longer file is none of ours.
const LONGEST: u64 = 4 << 20;
/// The members of a kubeconfig, and of others' files, that are secrets.
const MEMBERS: [&str; 5] = ["client-key-data", "token", "password", "client_secret", "secret_access_key"];

/// Everything in the cluster's directory and in its configuration.
pub(super) fn gather(store: &Store, settings: Option<&Settings>) -> Result<Known> {
    let mut reader = Reader::default();
    reader.read_dir(store.dir(), "")?;
    for setting in settings.map(Settings::list).unwrap_or_default() {
        if setting.secret && !setting.value.is_empty() {
            reader.known.add(&setting.name, setting.value.clone().into_bytes(), false);
        }
    }
    Ok(reader.known)
}

#[derive(Default)]
struct Reader {
    known: Known,
}

impl Reader {
    fn read_dir(&mut self, dir: &Path, rel: &str) -> Result<()> {
        let Ok(entries) = fs_err::read_dir(dir) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let rel = if rel.is_empty() { name.clone() } else { format!("{rel}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && !PASSED_OVER.contains(&name.as_str()) {
                self.read_dir(&entry.path(), &rel)?;
            } else if kind.is_file() && entry.metadata()?.len() <= LONGEST {
                let bytes = Zeroizing::new(fs_err::read(entry.path())?);
                self.read_file(&rel, &bytes);
            }
        }
        Ok(())
    }

    fn read_file(&mut self, rel: &str, bytes: &[u8]) {
        let text = Zeroizing::new(String::from_utf8_lossy(bytes).into_owned());
        // PEM stands as it is in files of keys, and escaped in JSON.
        for text in [text.as_str(), Zeroizing::new(text.replace("\\n", "\n")).as_str()] {
            self.read_pem(rel, text);
        }
        let end = Path::new(rel).extension().and_then(OsStr::to_str).unwrap_or_default();
        if end == "pub" {
            let blob = text.split_whitespace().nth(1).and_then(|word| STANDARD.decode(word).ok());
            self.known.public.extend(blob);
        } else if end == "key" && !text.contains("-----BEGIN") {
            let plain = text.trim().as_bytes().to_vec();
            if let Ok(decoded) = STANDARD.decode(&plain) {
                self.known.add(rel, decoded, true);
            }
            self.known.add(rel, plain, true);
        }
        match serde_json::from_str(&text) {
            Ok(value) => self.read_json(rel, &value),
            // A kubeconfig in YAML: one name and value a line.
            Err(_) if text.contains("kind: Config") => {
                for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
                    self.read_value(rel, name.trim_start_matches([' ', '-']), value.trim().trim_matches('"'));
                }
            }
            Err(_) => {}
        }
    }

    fn read_pem(&mut self, rel: &str, text: &str) {
        for pem in Pem::iter_from_buffer(text.as_bytes()).flatten() {
            if pem.label.contains("PRIVATE KEY") {
                self.known.add(rel, pem.contents, true);
            } else {
                self.known.public.push(pem.contents);
            }
        }
    }

    fn read_json(&mut self, rel: &str, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.read_json(rel, item)),
            Value::Object(members) => {
                for (name, value) in members {
                    match value.as_str() {
                        Some(text) => self.read_value(rel, name, text),
                        None => self.read_json(rel, value),
                    }
                }
            }
            _ => {}
        }
    }

    fn read_value(&mut self, rel: &str, name: &str, text: &str) {
        if MEMBERS.contains(&name) {
            self.read_member(rel, text);
        } else if redact::is_sensitive(name) && text.len() >= 16 {
            // A short word under such a name may be any word.
            self.known.add(rel, text.as_bytes().to_vec(), false);
        } else if name.ends_with("-data") {
            let pem = STANDARD.decode(text).unwrap_or_default();
            self.read_pem(rel, &String::from_utf8_lossy(&pem));
        }
    }

    fn read_member(&mut self, rel: &str, text: &str) {
        if let Ok(decoded) = STANDARD.decode(text) {
            self.read_pem(rel, &String::from_utf8_lossy(&Zeroizing::new(decoded)));
        }
        self.known.add(rel, text.as_bytes().to_vec(), false);
    }
}
