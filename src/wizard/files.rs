//! The files of a session: the configuration itself, others that are loaded and written, and the
//! draft that survives a crash.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kconfig::history::Said;
use kconfig::{Config, dotconfig};

use super::model::Model;
use super::msg::{Effect, Msg};
use super::preview::changed_lines;
use crate::config::{Privacy, ProblemLevel, Profile, Schema, Settings, TreeSource, read_file, replace_file};
use crate::error::{Class, Error, Result};

/// What the loop asks for.
pub(super) trait Files {
    /// Carries out an effect on files; what came of it.
    fn carry_out(&mut self, model: &Model, effect: &Effect) -> Option<Msg>;
    /// Keeps the answers where a crash does not reach them.
    fn keep_draft(&self, model: &Model) -> Result<()>;
    /// There is nothing to keep any more.
    fn forget_draft(&self);
    /// What the draft of an earlier session would change; nothing when there is none, or when it
    /// says the same.
    fn draft(&self, model: &Model) -> Option<Vec<String>>;
}

/// How a form of file is read and written.
pub(super) trait Form {
    /// Writes the configuration's own file.
    fn save(&mut self, path: &Path, config: &Config<'static>, overwrite: bool) -> Result<()>;
    /// Writes any file.
    fn write(&self, path: &Path, config: &Config<'static>, minimal: bool) -> Result<()>;
    /// Reads any file: the answers in it, and remarks about what is not right.
    fn read(&self, path: &Path) -> Result<(Said, Vec<String>)>;
    /// Reads a profile.
    fn read_profile(&self, name: &str) -> Result<Said>;
}

/// The files of one session.
pub(super) struct Session<F> {
    form: F,
    path: PathBuf,
    /// Our own draft, locked as long as we live: another wizard then knows that it is in use.
    held: RefCell<Option<fs_err::File>>,
}

impl<F: Form> Session<F> {
    /// Over this file.
    pub(super) fn new(form: F, path: &Path) -> Self {
        Self { form, path: path.to_owned(), held: RefCell::new(None) }
    }

    /// Whether the draft is that of another wizard that still runs.
    fn is_taken(&self) -> bool {
        let open = || fs_err::File::open(self.draft_path()).ok();
        self.held.borrow().is_none() && open().is_some_and(|file| file.try_lock().is_err())
    }

    /// Beside the file, so that it is found again with it.
    fn draft_path(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".unsaved");
        self.path.with_file_name(name)
    }

    /// Whether a name, perhaps by way of a link, is that of the configuration's own file.
    fn is_own(&self, name: &str) -> bool {
        let real = |path: &Path| fs_err::canonicalize(path).ok();
        Path::new(name) == self.path || real(Path::new(name)).is_some_and(|path| Some(path) == real(&self.path))
    }

    fn load(&self, path: &Path, name: &str) -> Msg {
        match self.form.read(path) {
            Ok((said, remarks)) => Msg::Loaded(name.to_owned(), Box::new(said), remarks),
            Err(error) => not_done(&error),
        }
    }
}

impl<F: Form> Files for Session<F> {
    fn carry_out(&mut self, model: &Model, effect: &Effect) -> Option<Msg> {
        Some(match effect {
            Effect::Save { overwrite } => match self.form.save(&self.path, &model.config, *overwrite) {
                Ok(()) => {
                    self.forget_draft();
                    Msg::Saved
                }
                Err(error) if error.class() == Class::Transient => Msg::Conflict(error.message().to_owned()),
                Err(error) => not_done(&error),
            },
            Effect::Write { path, .. } if self.is_own(path) => Msg::NotSaved(vec![
                format!("{path} is the wizard's own file."),
                "s saves it, and asks when another process has changed it.".to_owned(),
            ]),
            Effect::Write { path, minimal } => match self.form.write(Path::new(path), &model.config, *minimal) {
                Ok(()) => Msg::Written(path.clone()),
                Err(error) => not_done(&error),
            },
            Effect::Load(path) => self.load(Path::new(path), path),
            Effect::LoadProfile(name) => match self.form.read_profile(name) {
                Ok(said) => Msg::Loaded(format!("the profile {name}"), Box::new(said), Vec::new()),
                Err(error) => not_done(&error),
            },
            Effect::Complete(begin) => Msg::Completed(complete(begin)),
            // The draft stays until the next one replaces it: there is no moment without.
            Effect::Recover => self.load(&self.draft_path(), "the session that was cut off"),
            Effect::Forget => {
                self.forget_draft();
                return None;
            }
            Effect::Suspend | Effect::Leave => return None,
        })
    }

    fn keep_draft(&self, model: &Model) -> Result<()> {
        if self.is_taken() {
            return Err(Error::precondition("another wizard works on this file"));
        }
        self.form.write(&self.draft_path(), &model.config, false)?;
        let file = fs_err::File::open(self.draft_path())?;
        // Without locks, as on some network file systems, drafts are kept all the same.
        file.try_lock().ok();
        *self.held.borrow_mut() = Some(file);
        Ok(())
    }

    fn forget_draft(&self) {
        if self.is_taken() {
            return;
        }
        *self.held.borrow_mut() = None;
        // It may never have been there.
        fs_err::remove_file(self.draft_path()).ok();
    }

    fn draft(&self, model: &Model) -> Option<Vec<String>> {
        let path = self.draft_path();
        if !path.exists() || self.is_taken() {
            return None;
        }
        let (said, _) = self.form.read(&path).ok()?;
        let mut kept = model.config.clone();
        kept.say(&said);
        let lines = changed_lines(model, &model.config, &kept);
        if lines.is_empty() {
            self.forget_draft();
            return None;
        }
        Some(lines)
    }
}

fn not_done(error: &Error) -> Msg {
    Msg::NotSaved(error.render().lines().map(ToOwned::to_owned).collect())
}

/// The files and directories that begin so, directories with a slash at their end.
fn complete(begin: &str) -> Vec<String> {
    let (dir, name) = begin.rsplit_once('/').map_or(("", begin), |(dir, name)| (&begin[..=dir.len()], name));
    let entries = fs_err::read_dir(if dir.is_empty() { "." } else { dir }).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let hidden = file.starts_with('.') && !name.starts_with('.');
            let slash = if entry.path().is_dir() { "/" } else { "" };
            (file.starts_with(name) && !hidden).then(|| format!("{dir}{file}{slash}"))
        })
        .collect();
    found.sort();
    found.truncate(100);
    found
}

/// Our JSON object.
pub(super) struct Object {
    pub(super) settings: Settings,
    pub(super) schema: Arc<Schema>,
    pub(super) source: TreeSource,
}

impl Form for Object {
    fn save(&mut self, path: &Path, config: &Config<'static>, overwrite: bool) -> Result<()> {
        self.settings.adopt(config);
        if overwrite { self.settings.overwrite(path) } else { self.settings.save(path) }
    }

    fn write(&self, path: &Path, config: &Config<'static>, minimal: bool) -> Result<()> {
        let mut settings = self.settings.clone();
        settings.adopt(config);
        if minimal {
            settings.make_minimal();
        }
        settings.overwrite(path)
    }

    fn read(&self, path: &Path) -> Result<(Said, Vec<String>)> {
        let settings = Settings::open(path, Arc::clone(&self.schema))?;
        let settings = settings.ok_or_else(|| Error::config(format!("{} is not there", path.display())))?;
        let errors = settings.check().into_iter().filter(|problem| problem.level == ProblemLevel::Error);
        Ok((settings.config().said(), errors.map(|problem| problem.line(path)).collect()))
    }

    fn read_profile(&self, name: &str) -> Result<Said> {
        let settings = Profile::find(&self.source, name)?.settings(Arc::clone(&self.schema))?;
        Ok(settings.config().said())
    }
}

/// `.config` of Kconfig's own tools.
pub(super) struct DotConfig {
    pub(super) schema: Arc<Schema>,
    pub(super) prefix: String,
    /// What the file had when it was read or written last.
    pub(super) original: Option<String>,
}

impl Form for DotConfig {
    fn save(&mut self, path: &Path, config: &Config<'static>, overwrite: bool) -> Result<()> {
        let text = dotconfig::write(config, &self.prefix);
        let now = read_file(path)?;
        if !overwrite && now != self.original && now.as_ref() != Some(&text) {
            return Err(Error::new(
                Class::Transient,
                format!("{} was changed by another process meanwhile", path.display()),
            ));
        }
        if let Some(old) = now.filter(|old| *old != text) {
            // As the C tools, which keep the last one.
            let mut aside = path.as_os_str().to_owned();
            aside.push(".old");
            replace_file(Path::new(&aside), &old, Privacy::Shared)?;
            fs_err::set_permissions(&aside, fs_err::metadata(path)?.permissions())?;
        }
        replace_file(path, &text, Privacy::Shared)?;
        self.original = Some(text);
        Ok(())
    }

    fn write(&self, path: &Path, config: &Config<'static>, minimal: bool) -> Result<()> {
        let write = if minimal { dotconfig::write_minimal } else { dotconfig::write };
        replace_file(path, &write(config, &self.prefix), Privacy::Shared)
    }

    fn read(&self, path: &Path) -> Result<(Said, Vec<String>)> {
        let text = read_file(path)?.ok_or_else(|| Error::config(format!("{} is not there", path.display())))?;
        let mut config = self.schema.config();
        let found = dotconfig::read(&mut config, &text, &self.prefix);
        let remarks = found.iter().map(|(line, finding)| format!("{}:{line}: {finding}", path.display())).collect();
        Ok((config.said(), remarks))
    }

    fn read_profile(&self, name: &str) -> Result<Said> {
        Err(Error::bug(format!("a tree of .config files has no profile {name}")))
    }
}
