//! The archive: written, searched once more as it is on the disk, and only then given its name.

use std::io::{Read as _, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::gathered::Item;
use crate::atomic_file::{AtomicFile, FileMode, directory_of};
use crate::error::{Context as _, Error, Result};
use crate::redact::Redactor;

/// Writes these files; an error, and no file, where the redactor finds anything in what was
/// written.
pub(super) fn write(items: &[Item], redactor: &Redactor, to: &Path) -> Result<()> {
    let dir = directory_of(to);
    // Without its name until it is known to be clean; dropped, it is gone.
    let mut file = AtomicFile::create(to, FileMode::Exact(0o600))
        .map_err(|error| Error::precondition(format!("cannot write to {}", dir.display())).source(error))?;
    pack(items, &mut file).context(format!("cannot write {}", to.display()))?;
    verify(file.temporary(), redactor)?;
    file.commit().map_err(|error| Error::precondition(format!("cannot write {}", to.display())).source(error))
}

fn pack(items: &[Item], file: &mut AtomicFile) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    for item in items {
        let mut header = tar::Header::new_gnu();
        header.set_size(item.bytes.len() as u64);
        header.set_mode(0o600);
        header.set_entry_type(tar::EntryType::Regular);
        tar.append_data(&mut header, format!("support-bundle/{}", item.path), item.bytes.as_slice())?;
    }
    tar.into_inner()?.finish()?.flush()
}

fn verify(path: &Path, redactor: &Redactor) -> Result<()> {
    let mut tar = tar::Archive::new(GzDecoder::new(fs_err::File::open(path)?));
    for entry in tar.entries()? {
        let mut entry = entry?;
        let name = entry.path_bytes().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        for (place, bytes) in [("the name of", &name), ("the content of", &bytes)] {
            if let Some(hit) = redactor.find(bytes).first() {
                // The name of the secret and of the file, never a byte of it.
                let shown = redactor.clean_text(&String::from_utf8_lossy(&name));
                return Err(Error::bug("a secret was still in the support bundle, so it was not kept")
                    .evidence(format!("{} in {place} {shown}", hit.what))
                    .hint("report this; look into the file by hand before you send anything"));
            }
        }
    }
    Ok(())
}
