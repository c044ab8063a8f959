//! Tasks of a node: each finds what is there, compares it with what is wanted, and changes only the difference.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::exec::Run;

use super::complete::{Binary, Complete, Content, Directory, File, User};

/// Secrets by name, as they came over standard input.
pub(super) type Secrets = BTreeMap<String, Zeroizing<Vec<u8>>>;

/// The file of an artifact on this host.
pub(super) fn find_blob(complete: &Complete, sha256: &str) -> Option<PathBuf> {
    complete.blobs.iter().map(|dir| Path::new(dir).join(sha256)).find(|path| path.is_file())
}

/// Makes a user and its group.
pub(super) fn ensure_user(user: &User) -> Result<bool> {
    let known = |file: &str| -> Result<bool> {
        Ok(fs_err::read_to_string(file)?.lines().any(|line| line.split(':').nth(2) == Some(&user.id.to_string())))
    };
    if known("/etc/passwd")? && known("/etc/group")? {
        return Ok(false);
    }
    let line = format!("u {} {}:{} \"{}\" /nonexistent /usr/sbin/nologin\n", user.name, user.id, user.id, user.name);
    let file = format!("/etc/sysusers.d/turnup-{}.conf", user.name);
    // sysusers takes a group for granted only when it exists, so it is asked for first.
    write_atomic(Path::new(&file), format!("g {} {}\n{line}", user.name, user.id).as_bytes(), 0o644, 0)?;
    Run::new("systemd-sysusers").arg(&file).dir("/").succeed()?;
    Ok(true)
}

/// Makes a directory with its mode and owner.
pub(super) fn ensure_directory(directory: &Directory) -> Result<bool> {
    let path = Path::new(&directory.path);
    if !path.exists() {
        fs_err::create_dir_all(path)?;
    }
    ensure_attributes(path, directory.mode, directory.owner)
}

/// Puts a binary in place, its bytes verified on the way.
pub(super) fn ensure_binary(complete: &Complete, binary: &Binary) -> Result<bool> {
    let path = Path::new(&binary.path);
    if path.exists() && digest_of(path)? == binary.sha256 {
        return ensure_attributes(path, 0o755, 0);
    }
    let blob = find_blob(complete, &binary.sha256).ok_or_else(|| missing(&binary.name, &binary.sha256, complete))?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs_err::create_dir_all(dir)?;
    let mut temporary = tempfile::NamedTempFile::new_in(dir)?;
    let digest = copy_hashed(&blob, temporary.as_file_mut())?;
    if digest != binary.sha256 {
        return Err(Error::permanent(format!("{} on this host has the sha256 {digest}", binary.name))
            .evidence(format!("expected {} in {}", binary.sha256, blob.display()))
            .hint("turnup artifacts verify"));
    }
    fs_err::set_permissions(temporary.path(), PermissionsExt::from_mode(0o755))?;
    temporary.persist(path).map_err(|error| Error::from(error.error))?;
    Ok(true)
}

/// Writes a file when its content differs, and sets its mode and owner.
pub(super) fn ensure_file(file: &File, secrets: &Secrets) -> Result<bool> {
    let path = Path::new(&file.path);
    if file.initial && path.exists() {
        return Ok(false);
    }
    let wanted = match &file.content {
        Content::Text(text) => hex::encode(Sha256::digest(text)),
        Content::Secret { sha256, .. } => sha256.clone(),
    };
    if path.exists() && digest_of(path)? == wanted {
        return ensure_attributes(path, file.mode, file.owner);
    }
    let bytes = match &file.content {
        Content::Text(text) => text.as_bytes(),
        Content::Secret { name, .. } => secrets.get(name).ok_or_else(|| unsent(&file.path, name))?.as_slice(),
    };
    write_atomic(path, bytes, file.mode, file.owner)?;
    Ok(true)
}

/// Loads a kernel module unless it is loaded or built in.
pub(super) fn ensure_module(module: &str) -> Result<bool> {
    let directory = format!("/lib/modules/{}", release());
    if !Path::new(&directory).exists() {
        // A kernel without loadable modules has what it has.
        return Ok(false);
    }
    let built_in = fs_err::read_to_string(format!("{directory}/modules.builtin")).unwrap_or_default();
    let loaded = Path::new("/sys/module").join(module).exists();
    let filesystem = fs_err::read_to_string("/proc/filesystems")?.lines().any(|line| line.ends_with(&format!("\t{module}")));
    if loaded || filesystem || built_in.contains(&format!("/{module}.ko")) {
        return Ok(false);
    }
    Run::new("modprobe").arg(module).dir("/").succeed()?;
    Ok(true)
}

/// Writes one kernel setting when it differs.
pub(super) fn ensure_sysctl(name: &str, value: &str) -> Result<bool> {
    let path = PathBuf::from(format!("/proc/sys/{}", name.replace('.', "/")));
    if fs_err::read_to_string(&path)?.trim() == value {
        return Ok(false);
    }
    fs_err::write(&path, value)?;
    Ok(true)
}

/// Writes a whole file or leaves the old one: a temporary file beside it, synced, then a rename.
pub(super) fn write_atomic(path: &Path, bytes: &[u8], mode: u32, owner: u32) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs_err::create_dir_all(dir)?;
    // The name begins with a dot: kubelet passes such files over in its manifest directory.
    let mut temporary = tempfile::Builder::new().prefix(".turnup-").tempfile_in(dir)?;
    fs_err::set_permissions(temporary.path(), PermissionsExt::from_mode(mode))?;
    std::os::unix::fs::chown(temporary.path(), Some(owner), Some(owner))?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| Error::from(error.error))?;
    Ok(())
}

fn ensure_attributes(path: &Path, mode: u32, owner: u32) -> Result<bool> {
    let found = fs_err::metadata(path)?;
    let mut changed = false;
    if found.mode() & 0o7777 != mode {
        fs_err::set_permissions(path, PermissionsExt::from_mode(mode))?;
        changed = true;
    }
    if found.uid() != owner || found.gid() != owner {
        std::os::unix::fs::chown(path, Some(owner), Some(owner))?;
        changed = true;
    }
    Ok(changed)
}

pub(super) fn digest_of(path: &Path) -> Result<String> {
    copy_hashed(path, &mut std::io::sink())
}

fn copy_hashed(from: &Path, to: &mut dyn std::io::Write) -> Result<String> {
    let mut reader = fs_err::File::open(from)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            return Ok(hex::encode(hash.finalize()));
        }
        hash.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
    }
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

pub(super) fn missing(name: &str, sha256: &str, complete: &Complete) -> Error {
    Error::permanent(format!("{name} ({sha256}) is in none of {}", complete.blobs.join(", "))).hint("turnup bootstrap")
}

fn unsent(path: &str, name: &str) -> Error {
    Error::permanent(format!("{path} is missing or was changed, and the secret {name} was not sent with this run"))
        .hint("turnup bootstrap")
}
