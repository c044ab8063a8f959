//! Where the Kconfig tree, the phases and the templates come from: the working directory when it is
//! a tree of its own, else the copy inside the binary. Reads only; it must not cache a directory's
//! files, so that a digest always speaks of them as they are.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use include_dir::{Dir, include_dir};
use sha2::{Digest as _, Sha256};

use crate::error::{Class, Error, Result};
use crate::input;

static PHASES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/phases");
static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");
/// The files in both and `Kconfig`, by their paths: a forecast reads them tens of thousands of
/// times.
static EMBEDDED: LazyLock<BTreeMap<String, &'static [u8]>> = LazyLock::new(index_embedded);

/// What files of the copy inside the binary say, by their place in memory and its type.
type Parsed = HashMap<(usize, TypeId), Arc<dyn Any + Send + Sync>>;
static PARSED: LazyLock<Mutex<Parsed>> = LazyLock::new(Mutex::default);

/// The files that describe what turnup asks and does. Paths are relative to the tree's root, with
/// `/`.
///
/// A directory with `Kconfig` and `phases` of its own replaces the embedded tree; `templates` and
/// `cluster.lock.json` are each replaced when they exist there too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSource {
    own: Option<PathBuf>,
}

impl TreeSource {
    /// The tree in this directory, or the embedded one when there is none.
    #[must_use]
    pub fn find(dir: &Path) -> Self {
        let complete = dir.join("Kconfig").is_file() && dir.join("phases").is_dir();
        Self { own: complete.then(|| dir.to_owned()) }
    }

    /// The tree inside the binary.
    #[must_use]
    pub const fn embedded() -> Self {
        Self { own: None }
    }

    /// Where the tree is, for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.own {
            Some(dir) => dir.join("Kconfig").display().to_string(),
            None => "the Kconfig tree inside turnup".to_owned(),
        }
    }

    /// What of the tree inside the binary this directory replaces: `Kconfig`, `phases/`,
    /// `templates/`.
    #[must_use]
    pub fn replaced(&self) -> Vec<&'static str> {
        let replaces = |root: &&str| self.own_for(root.trim_end_matches('/')).is_some();
        ["Kconfig", "phases/", "templates/"].into_iter().filter(replaces).collect()
    }

    /// The content of one file.
    pub fn read(&self, path: &str) -> Result<Cow<'static, [u8]>> {
        self.read_bytes(path).map_err(|error| {
            Error::new(Class::Config, format!("cannot read {path} of {}", self.describe())).source(error)
        })
    }

    /// The content of one text file.
    pub fn read_text(&self, path: &str) -> Result<String> {
        text_of(path, self.read(path)?)
    }

    /// What a text file says. One inside the binary is parsed once: a forecast asks hundreds of
    /// times.
    pub fn parse<T: Any + Send + Sync>(&self, path: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Arc<T>> {
        let bytes = self.read(path)?;
        let Cow::Borrowed(embedded) = bytes else { return parse(&text_of(path, bytes)?).map(Arc::new) };
        let key = (embedded.as_ptr() as usize, TypeId::of::<T>());
        let known = PARSED.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return Ok(known);
        }
        let parsed = Arc::new(parse(&text_of(path, bytes)?)?);
        PARSED.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::<T>::clone(&parsed));
        Ok(parsed)
    }

    /// All files below a directory (or the one file of this name), sorted. What cannot be listed is
    /// left out: reading it reports why.
    #[must_use]
    pub fn files(&self, prefix: &str) -> Vec<String> {
        let prefix = prefix.trim_end_matches('/');
        let mut found = Vec::new();
        match self.own_for(prefix) {
            Some(dir) => list_directory(&dir.join(prefix), prefix, &mut found),
            None => list_embedded(prefix, &mut found),
        }
        found.sort();
        found
    }

    /// A digest of names and contents of all files below the prefix.
    #[must_use]
    pub fn digest(&self, prefix: &str) -> String {
        let mut hash = Sha256::new();
        for path in self.files(prefix) {
            // An unreadable file counts as its own kind of content: reading it for use reports the
            // reason.
            let content = self.read_bytes(&path).unwrap_or(Cow::Borrowed(b"unreadable"));
            for part in [path.as_bytes(), content.as_ref()] {
                hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                hash.update(part);
            }
        }
        hex::encode(hash.finalize())
    }

    fn read_bytes(&self, path: &str) -> io::Result<Cow<'static, [u8]>> {
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path} leaves the tree")));
        }
        match self.own_for(path) {
            Some(dir) => input::read(&dir.join(path), input::DOCUMENT).map(Cow::Owned),
            None => EMBEDDED
                .get(path)
                .map(|bytes| Cow::Borrowed(*bytes))
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file in the tree")),
        }
    }

    /// The own directory, when it is the one that holds this path.
    fn own_for(&self, path: &str) -> Option<&Path> {
        let dir = self.own.as_deref()?;
        let root = path.split('/').next().unwrap_or(path);
        let replaced = matches!(root, "Kconfig" | "phases") || dir.join(root).exists();
        replaced.then_some(dir)
    }
}

impl kconfig::Files for TreeSource {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.read_bytes(path).map(Cow::into_owned)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = self
            .files(directory)
            .iter()
            .filter_map(|path| path.strip_prefix(directory)?.trim_start_matches('/').split('/').next())
            .map(ToOwned::to_owned)
            .collect();
        names.dedup();
        Ok(names)
    }
}

fn text_of(path: &str, bytes: Cow<'static, [u8]>) -> Result<String> {
    String::from_utf8(bytes.into_owned())
        .map_err(|error| Error::new(Class::Config, format!("{path} is not UTF-8 text")).source(error))
}

fn index_embedded() -> BTreeMap<String, &'static [u8]> {
    let mut files = BTreeMap::from([("Kconfig".to_owned(), &include_bytes!("../../Kconfig")[..])]);
    for (root, dir) in [("phases", &PHASES), ("templates", &TEMPLATES)] {
        index_directory(dir, root, &mut files);
    }
    files
}

fn index_directory(dir: &Dir<'static>, root: &str, files: &mut BTreeMap<String, &'static [u8]>) {
    for inner in dir.dirs() {
        index_directory(inner, root, files);
    }
    files.extend(dir.files().map(|file| (format!("{root}/{}", file.path().display()), file.contents())));
}

fn list_embedded(prefix: &str, found: &mut Vec<String>) {
    let below = |path: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let paths = EMBEDDED.range(prefix.to_owned()..).map(|(path, _)| path);
    found.extend(paths.take_while(|path| path.starts_with(prefix)).filter(|path| below(path)).cloned());
}

fn list_directory(path: &Path, name: &str, found: &mut Vec<String>) {
    if path.is_file() {
        found.push(name.to_owned());
        return;
    }
    let Ok(entries) = fs_err::read_dir(path) else { return };
    for entry in entries.flatten() {
        let file_name = entry.file_name();
        let Some(text) = file_name.to_str() else { continue };
        // Editors leave hidden files beside the ones they edit.
        if !text.starts_with('.') {
            list_directory(&entry.path(), &format!("{name}/{text}"), found);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn own_tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(dir.path().join("phases/provision")).unwrap();
        fs_err::write(dir.path().join("Kconfig"), "mainmenu \"own\"\n").unwrap();
        fs_err::write(dir.path().join("phases/provision/Kconfig"), "# own\n").unwrap();
        dir
    }

    #[test]
    fn the_embedded_tree_is_the_repository() {
        let embedded = TreeSource::embedded();
        let repository = TreeSource::find(Path::new(env!("CARGO_MANIFEST_DIR")));
        assert!(repository.own.is_some());
        for prefix in ["Kconfig", "phases", "phases/provision/"] {
            assert_eq!(embedded.files(prefix), repository.files(prefix));
            assert_eq!(embedded.digest(prefix), repository.digest(prefix));
        }
        assert!(embedded.files("phases").contains(&"phases/provision/Kconfig".to_owned()));
    }

    #[test]
    fn an_own_tree_replaces_the_embedded_one() {
        let dir = own_tree();
        let source = TreeSource::find(dir.path());
        assert_eq!(source.read_text("Kconfig").unwrap(), "mainmenu \"own\"\n");
        assert_eq!(source.files("phases"), ["phases/provision/Kconfig"]);
        assert!(source.read("phases/addons/Kconfig").is_err(), "no silent mixture of two trees");
        assert!(!source.files("templates").is_empty(), "templates were not replaced");
        assert_eq!(source.replaced(), ["Kconfig", "phases/"]);
        assert!(TreeSource::embedded().replaced().is_empty());
    }

    #[test]
    fn half_a_tree_does_not_count() {
        let dir = own_tree();
        fs_err::remove_dir_all(dir.path().join("phases")).unwrap();
        assert_eq!(TreeSource::find(dir.path()), TreeSource::embedded());
    }

    #[test]
    fn a_digest_sees_contents_and_names() {
        let dir = own_tree();
        let source = TreeSource::find(dir.path());
        let before = source.digest("phases");
        fs_err::write(dir.path().join("phases/provision/.Kconfig.swp"), "x").unwrap();
        assert_eq!(source.digest("phases"), before, "an editor's hidden file changes nothing");
        fs_err::rename(dir.path().join("phases/provision/Kconfig"), dir.path().join("phases/provision/kconfig"))
            .unwrap();
        assert_ne!(source.digest("phases"), before);
    }

    #[test]
    fn nothing_outside_the_tree_is_read() {
        let dir = own_tree();
        let source = TreeSource::find(&dir.path().join("phases/.."));
        for path in ["../etc/passwd", "/etc/passwd", "phases/../../x"] {
            assert!(source.read(path).is_err(), "{path}");
        }
    }
}
