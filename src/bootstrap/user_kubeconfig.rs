//! The operator's own kubeconfig, with the cluster in it (`phase2.kubeconfig.merge`). What was put
//! there is recorded, and only that is replaced or taken out.
//!
//! The file is replaced as a whole, under the lock that kubectl takes. It has a key in it, so only
//! its owner may read it, and enter kubectl's directory.

use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic_file::{self, FileMode};
use crate::cluster::Cluster;
use crate::error::{Context as _, Error, Result};
use crate::exec::signals;
use crate::input;

use super::kubeconfig_entries::{self as entries, Entries};

/// Below the cluster's directory: where the entries are.
const RECORD: &str = "outputs/kubeconfig-merge.json";
/// A kubeconfig is for people to read.
const LARGEST: u64 = 16 << 20;
/// How long another program may hold the lock.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The file's, whatever it was.
const MODE: u32 = 0o600;

/// Where the entries of a cluster are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Record {
    file: PathBuf,
    context: String,
}

/// Puts the entries of this kubeconfig into the operator's, or takes out what is there, as the
/// settings say.
pub(super) fn sync(cluster: &Cluster, own: &Value) -> Result<()> {
    if !cluster.settings.kubeconfig.merge {
        return take_out(cluster);
    }
    let known: Option<Record> = cluster.store.read_json(RECORD)?;
    let wanted = wanted(cluster, known.as_ref())?;
    if known.as_ref().is_some_and(|known| *known != wanted) {
        take_out(cluster)?;
    }
    let is_ours = known.as_ref() == Some(&wanted);
    let new = Entries::of(own, &wanted.context);
    change(&wanted.file, |text| {
        let taken = if is_ours { None } else { entries::find_section(text, &wanted.context)? };
        if let Some(section) = taken.filter(|_| !entries::has(text, &new)) {
            let (file, name) = (wanted.file.display(), &wanted.context);
            return Err(Error::precondition(format!(
                "{file} has another entry of this name in {section}: {name} (phase2.kube_context_name)"
            ))
            .hint("turnup config set phase2.kube_context_name=ANOTHER"));
        }
        // Before the file changes: what is recorded and not there is taken out for nothing.
        cluster.store.write_json(RECORD, &wanted, 0o600)?;
        entries::put(text, &new)
    })
}

/// Takes out what was put there; nothing where nothing was.
pub fn take_out(cluster: &Cluster) -> Result<()> {
    let Some(known) = cluster.store.read_json::<Record>(RECORD)? else { return Ok(()) };
    if known.file.is_file() {
        change(&known.file, |text| entries::take_out(text, &known.context))?;
    }
    cluster.store.remove(RECORD)
}

/// What is not as the settings say; nothing where all is.
pub(super) fn find_fault(cluster: &Cluster, own: &Value) -> Result<Option<String>> {
    let known: Option<Record> = cluster.store.read_json(RECORD)?;
    if !cluster.settings.kubeconfig.merge {
        return Ok(known.map(|known| format!("{} still has the cluster", known.file.display())));
    }
    let wanted = wanted(cluster, known.as_ref())?;
    let is_there =
        known.as_ref() == Some(&wanted) && entries::has(&read(&wanted.file)?, &Entries::of(own, &wanted.context));
    Ok((!is_there).then(|| format!("{} does not have the cluster", wanted.file.display())))
}

/// The file that kubectl would write to, and the name. Entries stay in the file where they are.
fn wanted(cluster: &Cluster, known: Option<&Record>) -> Result<Record> {
    let context = cluster.settings.kubeconfig.context.clone();
    if let Some(known) = known.filter(|known| known.file.is_file()) {
        return Ok(Record { file: known.file.clone(), context });
    }
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    // turnup's own is no place for a copy of itself.
    let listed: Vec<PathBuf> = std::env::split_paths(&listed)
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| cluster.work_dir.join(path))
        .filter(|path| !path.starts_with(cluster.store.dir()))
        .collect();
    if let Some(file) = listed.iter().find(|path| path.is_file()).or(listed.last()) {
        return Ok(Record { file: file.clone(), context });
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).ok_or_else(|| {
        Error::precondition("phase2.kubeconfig.merge: neither KUBECONFIG nor HOME says where your kubeconfig is")
            .hint("KUBECONFIG=FILE turnup up")
    })?;
    let file = PathBuf::from(home).join(".kube/config");
    Ok(Record { file, context })
}

fn read(file: &Path) -> Result<String> {
    if !file.exists() {
        return Ok(String::new());
    }
    input::read_text(file, LARGEST).map_err(|error| {
        Error::precondition(format!("phase2.kubeconfig.merge: {} cannot be read", file.display())).source(error)
    })
}

/// Replaces the file by what `edit` makes of it. A symbolic link stays one.
fn change(file: &Path, edit: impl FnOnce(&str) -> Result<String>) -> Result<()> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if let Some(directory) = file.parent() {
        make_directory(directory)?;
    }
    let _lock = FileLock::take(&file)?;
    let text = read(&file)?;
    let context = |error: Error| error.evidence(format!("in {}", file.display()));
    let edited = edit(&text).map_err(context)?;
    if edited == text && mode_of(&file).is_none_or(|mode| mode == MODE) {
        return Ok(());
    }
    atomic_file::replace(&file, edited.as_bytes(), FileMode::Exact(MODE))
        .context(format!("cannot write {}", file.display()))
}

/// Makes it, or closes it for others where it is kubectl's own.
fn make_directory(directory: &Path) -> Result<()> {
    const MODE: u32 = 0o700;
    if !directory.is_dir() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(MODE)
            .create(directory)
            .context(format!("cannot make {}", directory.display()))?;
    }
    if directory.ends_with(".kube") && mode_of(directory) != Some(MODE) {
        fs_err::set_permissions(directory, Permissions::from_mode(MODE))?;
    }
    Ok(())
}

fn mode_of(path: &Path) -> Option<u32> {
    fs_err::metadata(path).ok().map(|data| data.permissions().mode() & 0o7777)
}

/// The lock of kubectl: a file beside the kubeconfig that only one program can make.
struct FileLock(PathBuf);

impl FileLock {
    fn take(file: &Path) -> Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let (path, start) = (PathBuf::from(name), Instant::now());
        loop {
            match fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => return Ok(Self(path)),
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(Error::precondition(format!("cannot write beside {}", file.display())).source(error));
                }
                Err(_) if start.elapsed() < PATIENCE => signals::sleep(POLL_INTERVAL)?,
                Err(_) => {
                    let error = Error::transient(format!("{} is locked by another program", file.display()));
                    return Err(error.hint(format!("where none writes it: rm {}", path.display())));
                }
            }
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        drop(fs_err::remove_file(&self.0));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use serde_json::json;

    use super::*;

    fn entries() -> Entries {
        let own = json!({"clusters": [{"cluster": {"server": "https://a"}}], "users": [{"user": {"token": "t"}}]});
        Entries::of(&own, "prod")
    }

    #[test]
    fn only_its_owner_reads_the_file_and_other_contexts_stay() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".kube/config");
        change(&file, |text| entries::put(text, &entries())).unwrap();
        assert_eq!((mode_of(&file), mode_of(file.parent().unwrap())), (Some(0o600), Some(0o700)));
        let other = "apiVersion: v1\nkind: Config\n# mine\ncontexts:\n- context:\n    cluster: home\n  name: home\n";
        fs_err::write(&file, other).unwrap();
        for (path, mode) in [(file.as_path(), 0o644), (file.parent().unwrap(), 0o755)] {
            fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        change(&file, |text| entries::put(text, &entries())).unwrap();
        let text = read(&file).unwrap();
        assert!(text.contains("# mine") && text.contains("name: home") && text.contains("name: prod"), "{text}");
        assert_eq!((mode_of(&file), mode_of(file.parent().unwrap())), (Some(0o600), Some(0o700)));
        fs_err::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        change(&file, |text| entries::put(text, &entries())).unwrap();
        assert_eq!(mode_of(&file), Some(0o600), "nothing else was to change");
        change(&file, |text| entries::take_out(text, "prod")).unwrap();
        assert!(read(&file).unwrap().contains("name: home"));
    }

    #[test]
    fn a_directory_of_others_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        change(&dir.path().join("config"), |text| entries::put(text, &entries())).unwrap();
        assert_eq!(mode_of(dir.path()), Some(0o755));
    }
}
