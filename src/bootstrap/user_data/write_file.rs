//! What user data consists of, before it has a form: files, a unit, who may log in, the user's own
//! parts. And how bytes become text.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use zeroize::Zeroizing;

use crate::cluster::user_data::UserDataPart;
use crate::error::{Context as _, Result};
use crate::unknown;

/// Everything that one host is told.
pub(super) struct UserDataDocument {
    pub(super) write_files: Vec<WriteFile>,
    pub(super) login: Login,
    /// In the order of the configuration.
    pub(super) parts: Vec<(UserDataPart, Vec<u8>)>,
}

impl UserDataDocument {
    /// How many bytes of the document each piece and part takes, about.
    pub(super) fn sizes(&self) -> Vec<(String, usize)> {
        let write_files = self.write_files.iter().map(|file_entry| (file_entry.what.to_owned(), file_entry.size()));
        let packed = |bytes: &[u8]| pack(bytes).map_or(0, |text| text.len());
        let parts =
            self.parts.iter().map(|(part, bytes)| (format!("part {} ({})", part.name, part.file), packed(bytes)));
        let keys = self.login.keys.iter().map(String::len).sum();
        write_files.chain(parts).chain([("SSH keys".to_owned(), keys)]).collect()
    }
}

/// Who logs in.
pub(super) struct Login {
    pub(super) user: String,
    /// Lines of `authorized_keys`.
    pub(super) keys: Vec<String>,
}

/// A file or unit of ours.
pub(super) struct WriteFile {
    /// Explains to the user why the document is so large.
    pub(super) what: &'static str,
    /// Absolute; of a unit its name.
    pub(super) path: &'static str,
    pub(super) kind: WrittenKind,
    pub(super) bytes: Zeroizing<Vec<u8>>,
}

/// How a piece comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenKind {
    /// A file whose bytes are compressed.
    Packed(u32),
    /// A file that stands in the document as it is: it has a placeholder that is replaced there.
    Plain(u32),
    /// A unit of systemd, which is enabled.
    Unit,
}

impl WriteFile {
    pub(super) const fn packed(what: &'static str, path: &'static str, mode: u32, bytes: Zeroizing<Vec<u8>>) -> Self {
        Self { what, path, kind: WrittenKind::Packed(mode), bytes }
    }

    pub(super) const fn plain(what: &'static str, path: &'static str, mode: u32, bytes: Zeroizing<Vec<u8>>) -> Self {
        Self { what, path, kind: WrittenKind::Plain(mode), bytes }
    }

    pub(super) const fn unit(what: &'static str, name: &'static str, bytes: Zeroizing<Vec<u8>>) -> Self {
        Self { what, path: name, kind: WrittenKind::Unit, bytes }
    }

    /// Its text; only of what turnup writes itself.
    pub(super) fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.bytes).context(format!("{} is no text", self.what))
    }

    fn size(&self) -> usize {
        match self.kind {
            WrittenKind::Packed(_) => pack(&self.bytes).map_or(0, |text| text.len()),
            WrittenKind::Plain(_) | WrittenKind::Unit => self.bytes.len(),
        }
    }
}

/// gzip without a time or name, so that the same bytes give the same text, in base64. What is not
/// known yet cannot be found in it, so it stands before it.
pub(super) fn pack(bytes: &[u8]) -> Result<String> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(&unknown::shown_bytes(bytes))?;
    let packed = STANDARD.encode(encoder.finish()?);
    let step = unknown::step_of(&String::from_utf8_lossy(bytes));
    Ok(step.map_or_else(|| packed.clone(), |step| unknown::after(&step) + &packed))
}
