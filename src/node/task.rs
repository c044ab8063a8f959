//! Tasks of a node: each finds what is there, compares it with what is wanted, and changes only the
//! difference.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::atomic_file::{self, AtomicFile, FileMode};
use crate::error::{Error, Result};
use crate::exec::Run;
use crate::failpoint;

use super::node_config::{Binary, Content, Directory, File, NodeConfig, User};
use super::{attributes, own_place, yaml};

/// Where systemd-sysusers looks for the users that we ask for.
pub(super) const USERS: &str = "/etc/sysusers.d";

/// Secrets by name, as they came over standard input.
pub(super) type Secrets = BTreeMap<String, Zeroizing<Vec<u8>>>;

/// The file of an artifact on this host.
pub(super) fn find_blob(node_config: &NodeConfig, sha256: &str) -> Option<PathBuf> {
    node_config.blobs.iter().map(|dir| Path::new(dir).join(sha256)).find(|path| path.is_file())
}

/// An error when the host has a user or group with the same name and another number, or the same
/// number and another name: it could read the node's keys.
pub(super) fn require_user(user: &User) -> Result<()> {
    for (kind, file) in [("user", "/etc/passwd"), ("group", "/etc/group")] {
        if let Some((name, id)) = find_other(&fs_err::read_to_string(file)?, user) {
            let message = format!("the {kind} {name} of this host has the number {id}");
            return Err(Error::precondition(message)
                .evidence(format!("the node needs the {kind} {} with the number {}", user.name, user.id))
                .hint(format!("remove it or give it another name and number on the host: {kind}mod --help")));
        }
    }
    Ok(())
}

/// The name and number of the account that has either of the user's, and not both. `accounts` has
/// the format of `/etc/passwd` or `/etc/group`.
fn find_other(accounts: &str, user: &User) -> Option<(String, String)> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        let is_other = (name == user.name) != (id == user.id.to_string());
        is_other.then(|| (name.to_owned(), id.to_owned()))
    })
}

/// Makes a user and its group.
pub(super) fn ensure_user(user: &User) -> Result<bool> {
    if has_id("/etc/passwd", user.id)? && has_id("/etc/group", user.id)? {
        return Ok(false);
    }
    let line = format!("u {} {}:{} \"{}\" /nonexistent /usr/sbin/nologin\n", user.name, user.id, user.id, user.name);
    let file = sysusers_file(&user.name);
    // sysusers takes a group for granted only when it exists, so it is asked for first.
    write_atomic(Path::new(&file), format!("g {} {}\n{line}", user.name, user.id).as_bytes(), 0o644, 0)?;
    Run::new("systemd-sysusers").arg(&file).dir("/").succeed()?;
    Ok(true)
}

/// Whether a file in the form of `/etc/passwd` has a line with this number.
pub(super) fn has_id(file: &str, id: u32) -> Result<bool> {
    Ok(fs_err::read_to_string(file)?.lines().any(|line| line.split(':').nth(2) == Some(&id.to_string())))
}

/// From what systemd-sysusers makes a user of ours.
pub(super) fn sysusers_file(user: &str) -> String {
    format!("{USERS}/turnup-{user}.conf")
}

/// An error when something listens on a port that the node needs; it names the process.
pub(super) fn require_port(port: u16) -> Result<()> {
    if TcpListener::bind(("0.0.0.0", port)).is_ok() {
        return Ok(());
    }
    let filter = format!("sport = :{port}");
    let listing = Run::new("ss")
        .args(["--no-header", "--listening", "--tcp", "--processes", "--numeric", &filter])
        .dir("/")
        .output();
    let listing = listing.map(|output| output.stdout).unwrap_or_default();
    let error = Error::precondition(format!("port {port} of this host is in use, and the node needs it"));
    let hint = "stop that process on the host";
    Err(listing.lines().fold(error, |error, line| error.evidence(line.trim())).hint(hint))
}

/// Makes a directory with its mode and owner.
pub(super) fn ensure_directory(directory: &Directory) -> Result<bool> {
    let path = Path::new(&directory.path);
    if !path.exists() {
        own_place::make_directory(path)?;
    }
    attributes::ensure(path, directory.mode, (directory.owner, directory.owner))
}

/// Puts a binary in place, its bytes verified on the way.
pub(super) fn ensure_binary(node_config: &NodeConfig, binary: &Binary) -> Result<bool> {
    let path = Path::new(&binary.path);
    if path.exists() && digest_of(path)? == binary.sha256 {
        return attributes::ensure(path, 0o755, (0, 0));
    }
    let blob =
        find_blob(node_config, &binary.sha256).ok_or_else(|| missing(&binary.name, &binary.sha256, node_config))?;
    copy_verified(&blob, binary, 0o755)?;
    Ok(true)
}

/// Copies an artifact beside its place, and puts it there only when its bytes are the right ones.
fn copy_verified(blob: &Path, binary: &Binary, mode: u32) -> Result<()> {
    let path = Path::new(&binary.path);
    let dir = path.parent().unwrap_or(Path::new("/"));
    failpoint::pass(format_args!("binary {}: before", binary.path));
    fs_err::create_dir_all(dir)?;
    let mut file = AtomicFile::create(path, FileMode::Exact(mode))?;
    let (digest, _) = copy_hashed(fs_err::File::open(blob)?, &mut file)?;
    if digest != binary.sha256 {
        return Err(Error::permanent(format!("{} on this host has the sha256 {digest}", binary.name))
            .evidence(format!("expected {} in {}", binary.sha256, blob.display()))
            .hint("turnup artifacts verify"));
    }
    failpoint::pass(format_args!("binary {}: half", binary.path));
    file.commit_unsynced()?;
    failpoint::pass(format_args!("binary {}: after", binary.path));
    Ok(())
}

/// Writes a file when its content differs, and sets its mode and owner.
pub(super) fn ensure_file(node_config: &NodeConfig, file: &File, secrets: &Secrets) -> Result<bool> {
    let path = Path::new(&file.path);
    match &file.content {
        Content::Symlink(target) => return own_place::ensure_link(path, Path::new(target), file.initial),
        Content::Directory {} => return own_place::ensure_directory(file),
        _ => {}
    }
    if file.initial && path.exists() {
        return Ok(false);
    }
    let owner = attributes::owner_of(file)?;
    // A link in its place is not it, whatever that leads to.
    if path.exists() && !path.is_symlink() && digest_of(path)? == wanted_digest(file)? {
        return attributes::ensure_file(path, file.mode, owner);
    }
    match &file.content {
        Content::Text(text) => write_atomic(path, text.as_bytes(), file.mode, owner.0)?,
        Content::Yaml(value) => write_atomic(path, yaml::render(value).as_bytes(), file.mode, owner.0)?,
        Content::Base64(text) => write_atomic(path, &decode(file, text)?, file.mode, owner.0)?,
        Content::Secret { name, .. } => {
            let bytes = secrets.get(name).ok_or_else(|| unsent(&file.path, name))?;
            write_atomic(path, bytes, file.mode, owner.0)?;
        }
        Content::Symlink(_) | Content::Directory {} => {}
        Content::Url { url, sha256 } => {
            let blob = find_blob(node_config, sha256).ok_or_else(|| missing(url, sha256, node_config))?;
            let fetched = Binary { name: url.clone(), sha256: sha256.clone(), size: None, path: file.path.clone() };
            copy_verified(&blob, &fetched, file.mode)?;
        }
    }
    // A group of another number than its user's is set now; what was fetched is root's until now.
    attributes::ensure_file(path, file.mode, owner)?;
    Ok(true)
}

fn decode(file: &File, text: &str) -> Result<Vec<u8>> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    bytes.map_err(|error| Error::permanent(format!("the content of {} is not base64", file.path)).source(error))
}

/// The sha256 that a file's content must have.
pub(super) fn wanted_digest(file: &File) -> Result<String> {
    Ok(match &file.content {
        Content::Text(text) => hex::encode(Sha256::digest(text)),
        Content::Yaml(value) => hex::encode(Sha256::digest(yaml::render(value))),
        Content::Base64(text) => hex::encode(Sha256::digest(decode(file, text)?)),
        Content::Secret { sha256, .. } | Content::Url { sha256, .. } => sha256.clone(),
        Content::Symlink(target) => hex::encode(Sha256::digest(target)),
        Content::Directory {} => String::new(),
    })
}

/// Loads a kernel module unless it is loaded or built in.
pub(super) fn ensure_module(module: &str) -> Result<bool> {
    if has_module(module)? {
        return Ok(false);
    }
    let loaded = Run::new("modprobe").args(["--", module]).dir("/").succeed();
    if loaded.is_ok() && !has_module(module)? {
        let message = format!("{module} is another name of a kernel module, and turnup looks for the module's own");
        let hint = format!("name what this shows on the host: modprobe --resolve-alias {module}");
        return Err(Error::precondition(message).hint(hint));
    }
    loaded.map(|_| true).map_err(|error| {
        let message = format!("the kernel of this host ({}) cannot load the module {module}", release());
        let hint = "on the host: modinfo NAME; phase2.host.packages can install a package with more modules";
        error.evidence_lines().iter().fold(Error::precondition(message), Error::evidence).hint(hint)
    })
}

/// Unloads a module that turnup loaded. Another program may use it by now; a loaded one does no
/// harm.
pub(super) fn remove_module(module: &str) {
    drop(Run::new("modprobe").args(["--remove", "--quiet", "--", module]).dir("/").output());
}

/// Whether a kernel module is loaded or built in, or cannot be loaded at all.
pub(super) fn has_module(module: &str) -> Result<bool> {
    let directory = format!("/lib/modules/{}", release());
    if !Path::new(&directory).exists() {
        // A kernel without loadable modules has what it has.
        return Ok(true);
    }
    let built_in = fs_err::read_to_string(format!("{directory}/modules.builtin")).unwrap_or_default();
    let filesystem =
        fs_err::read_to_string("/proc/filesystems")?.lines().any(|line| line.ends_with(&format!("\t{module}")));
    // The kernel takes - and _ for the same in the name of a module, and shows _ alone.
    let (name, built_in) = (module.replace('-', "_"), built_in.replace('-', "_"));
    let loaded = Path::new("/sys/module").join(&name).exists();
    Ok(loaded || filesystem || built_in.contains(&format!("/{name}.ko")))
}

/// Writes one kernel setting when it differs.
pub(super) fn ensure_sysctl(name: &str, value: &str) -> Result<bool> {
    if is_same_setting(&read_sysctl(name)?, value) {
        return Ok(false);
    }
    failpoint::around(format_args!("sysctl {name}"), || fs_err::write(sysctl_path(name), value)).map_err(|error| {
        let message = format!("the kernel of this host does not take {value} for {name}");
        let hint = match error.kind() {
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                "the setting belongs to the machine around this host; leave it out of phase2.host.sysctls"
            }
            _ => "correct its value in phase2.host.sysctls",
        };
        Error::precondition(message).source(error).hint(hint)
    })?;
    Ok(true)
}

/// Whether two texts are the same value of a kernel setting: the kernel shows numbers with tabs
/// between them.
pub(super) fn is_same_setting(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// The names in a directory; none when it is not there.
pub(super) fn names_in(path: &str) -> Result<Option<BTreeSet<String>>> {
    if !Path::new(path).is_dir() {
        return Ok(None);
    }
    let mut names = BTreeSet::new();
    for entry in fs_err::read_dir(path)? {
        names.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(Some(names))
}

/// One kernel setting as it is.
pub(super) fn read_sysctl(name: &str) -> Result<String> {
    let text = fs_err::read_to_string(sysctl_path(name)).map_err(|error| {
        let message = format!("the kernel of this host ({}) has no setting {name}", release());
        let hint = "correct its name in phase2.host.sysctls, or name the module that brings it in \
                    phase2.host.kernel_modules";
        Error::precondition(message).source(error).hint(hint)
    })?;
    Ok(text.trim().to_owned())
}

fn sysctl_path(name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/{}", name.replace('.', "/")))
}

/// The result of a thread.
pub(super) fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Error::bug("a thread of `turnup node` panicked")))
}

/// Writes a whole file or leaves the old one.
pub(super) fn write_atomic(path: &Path, bytes: &[u8], mode: u32, owner: u32) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    failpoint::pass(format_args!("file {}: before", path.display()));
    fs_err::create_dir_all(dir)?;
    let mut file = AtomicFile::create(path, FileMode::Exact(mode))?;
    std::os::unix::fs::chown(file.temporary(), Some(owner), Some(owner))?;
    file.write_all(bytes)?;
    failpoint::pass(format_args!("file {}: half", path.display()));
    file.commit()?;
    failpoint::pass(format_args!("file {}: after", path.display()));
    Ok(())
}

/// Removes temporary files of an earlier, killed run in the directories of these files. Only for
/// the holder of this host's lock.
pub(super) fn remove_temporary<'p>(files: impl Iterator<Item = &'p Path>) -> Result<()> {
    let dirs: BTreeSet<&Path> = files.filter_map(Path::parent).collect();
    for entry in dirs.into_iter().flat_map(|dir| fs_err::read_dir(dir).into_iter().flatten()) {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(atomic_file::PREFIX) && !entry.file_type()?.is_dir() {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

pub(super) fn digest_of(path: &Path) -> Result<String> {
    Ok(copy_hashed(fs_err::File::open(path)?, &mut std::io::sink())?.0)
}

/// The sha256 of what is copied, and how many bytes it has.
pub(super) fn copy_hashed(mut from: impl Read, to: &mut dyn Write) -> std::io::Result<(String, u64)> {
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok((hex::encode(hash.finalize()), size));
        }
        hash.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
        size += count as u64;
    }
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

pub(super) fn missing(name: &str, sha256: &str, node_config: &NodeConfig) -> Error {
    Error::permanent(format!("{name} ({sha256}) is in none of {}", node_config.blobs.join(", ")))
        .hint("turnup bootstrap")
}

fn unsent(path: &str, name: &str) -> Error {
    Error::permanent(format!("{path} is missing or was changed, and the secret {name} was not sent with this run"))
        .hint("turnup bootstrap")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

    use super::*;

    fn owner() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn ensure(file: &File, secrets: &Secrets) -> Result<bool> {
        ensure_file(&node_config(Path::new("/nowhere")), file, secrets)
    }

    /// A node with nothing; its artifacts would lie there.
    fn node_config(blobs: &Path) -> NodeConfig {
        let node_config = serde_json::json!({
            "schema": crate::node::node_config::SCHEMA, "node": "a", "role": "worker", "kubernetes_version": "1.36.3",
            "blobs": [blobs], "users": [], "ports": [], "modules": [], "sysctls": {}, "directories": [], "binaries": [],
            "files": [], "images": [], "units": [], "health": [],
        });
        serde_json::from_value(node_config).unwrap()
    }

    fn file(path: &Path, content: Content) -> File {
        File::new(&path.display().to_string(), 0o600, owner(), content)
    }

    #[test]
    fn a_file_is_written_once_and_mended_when_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.json");
        let wanted = file(&path, Content::Text("one".into()));
        assert!(ensure(&wanted, &Secrets::new()).unwrap());
        assert!(!ensure(&wanted, &Secrets::new()).unwrap(), "nothing to do");
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(ensure(&wanted, &Secrets::new()).unwrap(), "the mode was changed");
        assert_eq!(fs_err::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs_err::write(&path, "two").unwrap();
        assert!(ensure(&wanted, &Secrets::new()).unwrap(), "the content was changed");
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "one");
        assert_eq!(fs_err::read_dir(dir.path().join("a")).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn an_initial_file_belongs_to_the_host_once_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("client.pem");
        let wanted = File { initial: true, ..file(&path, Content::Text("first".into())) };
        assert!(ensure(&wanted, &Secrets::new()).unwrap());
        fs_err::write(&path, "renewed by kubelet").unwrap();
        assert!(!ensure(&wanted, &Secrets::new()).unwrap());
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "renewed by kubelet");
    }

    #[test]
    fn a_secret_is_needed_only_when_the_file_differs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        let sha256 = hex::encode(Sha256::digest("key"));
        let wanted = file(&path, Content::Secret { name: "ca.key".into(), sha256 });
        let error = ensure(&wanted, &Secrets::new()).unwrap_err();
        assert!(error.message().contains("ca.key was not sent"), "{}", error.message());
        assert!(!path.exists());
        let secrets = Secrets::from([("ca.key".to_owned(), Zeroizing::new(b"key".to_vec()))]);
        assert!(ensure(&wanted, &secrets).unwrap());
        assert!(!ensure(&wanted, &Secrets::new()).unwrap());
    }

    #[test]
    fn bytes_come_along_or_from_what_was_fetched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tool");
        let wanted = file(&path, Content::Base64("/wA=".into()));
        assert!(ensure(&wanted, &Secrets::new()).unwrap() && !ensure(&wanted, &Secrets::new()).unwrap());
        assert_eq!(fs_err::read(&path).unwrap(), [0xff, 0]);
        let sha256 = hex::encode(Sha256::digest("fetched"));
        let fetched = Content::Url { url: "https://example.com/tool".into(), sha256: sha256.clone() };
        let wanted = File { mode: 0o755, ..file(&path, fetched) };
        let node_config = node_config(dir.path());
        let error = ensure_file(&node_config, &wanted, &Secrets::new()).unwrap_err();
        assert!(error.message().starts_with("https://example.com/tool ("), "{}", error.message());
        fs_err::write(dir.path().join(&sha256), "fetched").unwrap();
        assert!(ensure_file(&node_config, &wanted, &Secrets::new()).unwrap());
        assert!(!ensure_file(&node_config, &wanted, &Secrets::new()).unwrap());
        assert_eq!(fs_err::read(&path).unwrap(), b"fetched");
        assert_eq!(fs_err::metadata(&path).unwrap().mode() & 0o7777, 0o755);
    }

    #[test]
    fn another_user_of_the_name_or_number_is_found() {
        let user = User { name: "etcd".into(), id: 2379 };
        let other = |accounts: &str| find_other(&format!("root:x:0:0::/root:/bin/sh\n{accounts}"), &user);
        assert_eq!(other(""), None);
        assert_eq!(other("etcd:x:2379:\n"), None);
        assert_eq!(other("alice:x:2379:\n"), Some(("alice".into(), "2379".into())));
        assert_eq!(other("etcd:x:998:\n"), Some(("etcd".into(), "998".into())));
        let root = User { name: "kube-apiserver".into(), id: 0 };
        assert!(require_user(&root).unwrap_err().message().contains("root of this host has the number 0"));
    }

    #[test]
    fn a_flipped_byte_never_reaches_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let sha256 = hex::encode(Sha256::digest("kubelet"));
        fs_err::write(dir.path().join(&sha256), "kubelEt").unwrap();
        let place = dir.path().join("bin/kubelet");
        let binary = Binary { name: "kubelet".into(), sha256, size: None, path: place.display().to_string() };
        let error = copy_verified(&dir.path().join(&binary.sha256), &binary, 0o755).unwrap_err();
        assert!(error.message().contains("kubelet on this host has the sha256"), "{}", error.message());
        assert!(!place.exists());
        assert_eq!(fs_err::read_dir(dir.path().join("bin")).unwrap().count(), 0);
    }

    #[test]
    fn what_was_half_written_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".part-7-Ab12", ".hidden", "file"] {
            fs_err::write(dir.path().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("/nowhere", dir.path().join(".part-link-a")).unwrap();
        let files = [dir.path().join("file"), dir.path().join("nowhere/file")];
        remove_temporary(files.iter().map(PathBuf::as_path)).unwrap();
        assert!(!dir.path().join(".part-7-Ab12").exists() && !dir.path().join(".part-link-a").is_symlink());
        assert!(dir.path().join(".hidden").exists() && dir.path().join("file").exists());
    }

    #[test]
    fn a_kernel_setting_that_is_not_there_or_takes_no_such_value_is_named() {
        let error = ensure_sysctl("net.core.no_such_setting", "1").unwrap_err();
        assert!(error.message().ends_with("has no setting net.core.no_such_setting"), "{}", error.message());
        // Read only even for root.
        let error = ensure_sysctl("kernel.ngroups_max", "1").unwrap_err();
        assert_eq!(error.message(), "the kernel of this host does not take 1 for kernel.ngroups_max");
        let now = read_sysctl("kernel.ngroups_max").unwrap();
        assert!(!ensure_sysctl("kernel.ngroups_max", &format!(" {now}")).unwrap());
        assert!(is_same_setting("32768\t60999", "32768 60999") && !is_same_setting("1", "2"));
    }

    #[test]
    fn a_port_in_use_is_named() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = require_port(port).unwrap_err();
        assert_eq!(error.message(), format!("port {port} of this host is in use, and the node needs it"));
        drop(listener);
        require_port(port).unwrap();
    }
}
