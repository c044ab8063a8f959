//! Files of ours that take the place of single files of a Go module: repairs that the project has
//! not released.
//!
//! They lie in `overlay/<package>/<file>` of the module that is built. Beside each,
//! `<file>.replaces` has the sha256 of the file that it was written for: another version of the
//! module with other code there is an error, so that no update loses a repair or undoes a change of
//! the project's. The go command's own `-overlay` refuses files of the module cache; so a copy of
//! the module takes its place, by a `replace` in go.mod. `go version -m` shows that.
//!
//! What the overlay says is in the bytes of what is built, and so in the pins of the lock file. The
//! module cache is only read.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::digest::Digest;
use super::tree;
use crate::{Context, Error, Result};

const OVERLAY: &str = "overlay";
/// Where the copies of modules are. The path relative to go.mod is in the bytes that are built.
const COPIES: &str = "overlaid";
const RECORD: &str = ".replaces";

/// A module as the go command names it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct GoModule {
    #[serde(rename = "Path")]
    path: String,
    #[serde(rename = "Version", default)]
    version: String,
    #[serde(rename = "Dir")]
    dir: PathBuf,
}

/// The overlay of one module that is built.
#[derive(Debug)]
pub(super) struct Overlay {
    source: PathBuf,
    files: Vec<ReplacingFile>,
}

#[derive(Debug)]
struct ReplacingFile {
    /// The import path.
    package: String,
    name: String,
    /// Of the file that it was written for.
    replaces: Digest,
}

impl ReplacingFile {
    /// The path below the directory of the module that is built.
    fn place(&self) -> String {
        format!("{OVERLAY}/{}/{}", self.package, self.name)
    }
}

impl Overlay {
    /// The overlay in the directory of a module; most have none.
    pub(super) fn read(source: &Path) -> Result<Self> {
        let mut overlay = Self { source: source.to_owned(), files: Vec::new() };
        if source.join(OVERLAY).exists() {
            overlay.read_package("")?;
            overlay.files.sort_by_key(ReplacingFile::place);
        }
        Ok(overlay)
    }

    fn read_package(&mut self, package: &str) -> Result<()> {
        let dir = self.source.join(OVERLAY).join(package);
        for entry in fs_err::read_dir(&dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                let below = if package.is_empty() { name } else { format!("{package}/{name}") };
                self.read_package(&below)?;
            } else if let Some(replacing) = name.strip_suffix(RECORD) {
                if !dir.join(replacing).exists() {
                    let place = format!("{OVERLAY}/{package}/{name}");
                    return Err(Error::config(format!("{place} belongs to no file: {replacing} is missing")));
                }
            } else {
                let place = format!("{OVERLAY}/{package}/{name}");
                let replaces = read_record(&dir.join(format!("{name}{RECORD}"))).map_err(|error| {
                    Error::config(format!("{place} does not say which file it replaces"))
                        .source(error)
                        .hint(format!("write the sha256 of the module's own {name} into {place}{RECORD}"))
                })?;
                self.files.push(ReplacingFile { package: package.to_owned(), name, replaces });
            }
        }
        Ok(())
    }

    /// Puts copies of the modules in place of them, with our files in place of theirs. `locate`
    /// finds the module of a package.
    pub(super) fn apply(&self, mut locate: impl FnMut(&str) -> Result<GoModule>) -> Result<()> {
        let mut copies = BTreeSet::new();
        for file in &self.files {
            let module = locate(&file.package)?;
            let inner = file.judge(&module)?;
            let copy = self.source.join(COPIES).join(&module.path);
            if copies.insert(module.path) {
                fs_err::create_dir_all(&copy)?;
                tree::copy_files(&module.dir, &copy)?;
            }
            let target = copy.join(inner);
            // A file of the module cache is read-only, and so is its copy.
            fs_err::remove_file(&target)?;
            fs_err::copy(self.source.join(file.place()), target)?;
        }
        self.replace_modules(copies.iter())
    }

    fn replace_modules<'a>(&self, paths: impl Iterator<Item = &'a String>) -> Result<()> {
        let path = self.source.join("go.mod");
        let mut text = fs_err::read_to_string(&path)?;
        for module in paths {
            write!(text, "\nreplace {module} => ./{COPIES}/{module}\n").context("cannot write text")?;
        }
        Ok(fs_err::write(path, text)?)
    }
}

impl ReplacingFile {
    /// The path below the module's directory of the file that is to be replaced, if it is the one
    /// that ours was written for.
    fn judge(&self, module: &GoModule) -> Result<PathBuf> {
        let below = self.package.strip_prefix(&module.path).unwrap_or_default().trim_start_matches('/');
        let inner = Path::new(below).join(&self.name);
        let (place, GoModule { path, version, .. }) = (self.place(), module);
        let original = module.dir.join(&inner);
        if !original.is_file() {
            return Err(Error::config(format!("{place} replaces a file that {path} {version} does not have"))
                .evidence(format!("there is no {}", original.display()))
                .hint(format!("find out where {path} has this code now and move the file there, or delete it if the project made the repair")));
        }
        let found = Digest::of_file(&original)?;
        if found == self.replaces {
            return Ok(inner);
        }
        Err(Error::config(format!("{place} was written for another {} than that of {path} {version}", self.name))
            .evidence(format!("expected sha256 {}", self.replaces))
            .evidence(format!("got      sha256 {found}"))
            .hint(format!(
                "compare it with {}: delete ours if the project made the repair, else adapt it and write this sha256 into {place}{RECORD}",
                original.display()
            )))
    }
}

fn read_record(path: &Path) -> Result<Digest> {
    let text = fs_err::read_to_string(path)?;
    text.trim().parse().map_err(|error| Error::config(format!("{} has no sha256", path.display())).source(error))
}

/// The module in the answer of `go list -json=Module` of one package.
pub(super) fn read_module(package: &str, answer: &str) -> Result<GoModule> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "Module")]
        module: Option<GoModule>,
    }
    let answer: Answer = serde_json::from_str(answer).context("`go list -json` did not answer with JSON")?;
    answer.module.ok_or_else(|| Error::config(format!("{OVERLAY}/{package}: no module has this package")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;
    use crate::Class;

    const FILE: &str = "overlay/example.invalid/tool/v3/wire/dial.go";

    /// A module with one dependency, `example.invalid/tool/v3`, and an overlay for its package
    /// `wire`.
    struct Place {
        dir: TempDir,
    }

    impl Place {
        fn make() -> Self {
            let place = Self { dir: tempfile::tempdir().unwrap() };
            place.write("cache/wire/dial.go", "theirs");
            place.write("cache/wire/other.go", "other");
            place.write("cache/go.mod", "module example.invalid/tool/v3\n");
            let original = place.dir.path().join("cache/wire/dial.go");
            fs_err::set_permissions(&original, std::fs::Permissions::from_mode(0o444)).unwrap();
            place.write("module/go.mod", "module x\n");
            place.write(&format!("module/{FILE}"), "ours");
            place.write(&format!("module/{FILE}.replaces"), &format!("{}\n", Digest::of(b"theirs")));
            place
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.dir.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }

        fn text(&self, name: &str) -> String {
            fs_err::read_to_string(self.dir.path().join(name)).unwrap()
        }

        fn remove(&self, name: &str) {
            fs_err::remove_file(self.dir.path().join(name)).unwrap();
        }

        fn apply(&self) -> Result<()> {
            let dir = serde_json::to_string(&self.dir.path().join("cache")).unwrap();
            let answer =
                format!(r#"{{"Module": {{"Path": "example.invalid/tool/v3", "Version": "v3.1.0", "Dir": {dir}}}}}"#);
            Overlay::read(&self.dir.path().join("module"))?.apply(|package| {
                assert_eq!(package, "example.invalid/tool/v3/wire");
                read_module(package, &answer)
            })
        }

        #[track_caller]
        fn refuse(&self, message: &str, hint: &str) {
            let error = self.apply().unwrap_err();
            assert_eq!(error.class(), Class::Config);
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.next().unwrap_or_default().contains(hint), "{:?}", error.next());
            assert_eq!(self.text("module/go.mod"), "module x\n", "the module was replaced nevertheless");
        }
    }

    #[test]
    fn our_file_is_in_a_copy_of_the_module_and_the_cache_stays_as_it_is() {
        let place = Place::make();
        place.apply().unwrap();
        let copy = "module/overlaid/example.invalid/tool/v3";
        assert_eq!(place.text(&format!("{copy}/wire/dial.go")), "ours");
        assert_eq!(place.text(&format!("{copy}/wire/other.go")), "other");
        let replace = "replace example.invalid/tool/v3 => ./overlaid/example.invalid/tool/v3\n";
        assert_eq!(place.text("module/go.mod"), format!("module x\n\n{replace}"));
        assert_eq!(place.text("cache/wire/dial.go"), "theirs");
    }

    #[test]
    fn two_files_of_one_module_share_its_copy() {
        let place = Place::make();
        place.write("module/overlay/example.invalid/tool/v3/wire/other.go", "ours too");
        let record = "module/overlay/example.invalid/tool/v3/wire/other.go.replaces";
        place.write(record, &Digest::of(b"other").to_string());
        place.apply().unwrap();
        for (name, text) in [("dial.go", "ours"), ("other.go", "ours too")] {
            assert_eq!(place.text(&format!("module/overlaid/example.invalid/tool/v3/wire/{name}")), text);
        }
        assert_eq!(place.text("module/go.mod").matches("replace").count(), 1);
    }

    #[test]
    fn a_file_that_the_module_has_no_more_is_refused() {
        let place = Place::make();
        place.remove("cache/wire/dial.go");
        place.refuse("replaces a file that example.invalid/tool/v3 v3.1.0 does not have", "has this code now");
    }

    #[test]
    fn a_file_that_the_project_has_changed_is_refused() {
        let place = Place::make();
        place.remove("cache/wire/dial.go");
        place.write("cache/wire/dial.go", "theirs, changed");
        place.refuse("was written for another dial.go than that of example.invalid/tool/v3 v3.1.0", "compare it");
    }

    #[test]
    fn a_file_says_which_one_it_replaces() {
        let place = Place::make();
        place.write(&format!("module/{FILE}.replaces"), "theirs");
        place.refuse("does not say which file it replaces", "sha256 of the module's own dial.go");
        place.remove(&format!("module/{FILE}.replaces"));
        place.refuse("does not say which file it replaces", "sha256 of the module's own dial.go");
    }

    #[test]
    fn a_record_without_its_file_is_refused() {
        let place = Place::make();
        place.remove(&format!("module/{FILE}"));
        place.refuse("dial.go.replaces belongs to no file", "");
    }

    #[test]
    fn a_package_of_no_module_is_refused() {
        let error = read_module("fmt", "{}").unwrap_err();
        assert_eq!(error.to_string(), "overlay/fmt: no module has this package");
    }

    #[test]
    fn a_module_without_an_overlay_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("go.mod"), "module x\n").unwrap();
        Overlay::read(dir.path()).unwrap().apply(|_| Err(Error::bug("nothing is to be located"))).unwrap();
        assert_eq!(fs_err::read_to_string(dir.path().join("go.mod")).unwrap(), "module x\n");
    }
}
