//! The files of a session: the configuration itself, others that are loaded and written, and the
//! draft that survives a crash.

use std::cell::RefCell;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kconfig::history::Said;
use kconfig::{ChoiceId, Config, SymbolId, dotconfig};

use super::model::Model;
use super::msg::{Effect, Merge, Msg};
use super::preview::changed_lines;
use super::verdict::{ConfigurationCheck, Job};
use crate::config::{
    Privacy, ProblemLevel, Profile, Schema, Settings, TreeSource, is_same_file, read_file, replace_file,
};
use crate::error::{Class, Error, Result};

/// What is said of another wizard that is at work on the same file.
pub(super) const OTHERS: &str =
    "another wizard is open on this file: where both change it, who saves last is asked what to do with both";

/// What the loop asks for.
pub(super) trait Files {
    /// Carries out an effect on files; what came of it.
    fn carry_out(&mut self, model: &Model, effect: &Effect) -> Option<Msg>;
    /// Keeps the answers where a crash does not reach them, or says what the user must know.
    fn keep_draft(&self, model: &Model) -> Result<(), String>;
    /// There is nothing to keep any more of this session.
    fn forget_draft(&self);
    /// What the draft of a session that was cut off would change; nothing when there is none, or
    /// when it says the same.
    fn draft(&self, model: &Model) -> Option<Vec<String>>;
    /// Whether another wizard is open on the same file.
    fn has_others(&self) -> bool;
    /// The one check of the answers as they are; none where there is no such check.
    fn check(&self, model: &Model) -> Option<Job>;
}

/// How a form of file is read and written.
pub(super) trait FileForm {
    /// Writes the configuration's own file.
    fn save(&mut self, path: &Path, config: &Config<'static>, overwrite: bool) -> Result<()>;
    /// Writes any file.
    fn write(&self, path: &Path, config: &Config<'static>, minimal: bool) -> Result<()>;
    /// Reads the configuration's own file again: what it has now may be replaced.
    fn reread(&mut self, path: &Path) -> Result<(Said, Vec<String>)>;
    /// Reads any file: the answers in it, and remarks about what is not right.
    fn read(&self, path: &Path) -> Result<(Said, Vec<String>)>;
    /// Reads a profile.
    fn read_profile(&self, name: &str) -> Result<Said>;
    /// The check of these answers, where this form has one.
    fn check(&self, config: &Config<'static>) -> Option<Job>;
}

/// The files of one session.
pub(super) struct Session<F> {
    form: F,
    path: PathBuf,
    /// The answers that were read or written last.
    base: Said,
    drafts: RefCell<Drafts>,
    /// The file as it was read or written last, with a lock that wizards share: so others see that
    /// this one is open.
    presence: Option<fs_err::File>,
}

/// Unsaved answers beside the file. Each session has a draft of its own, locked as long as the
/// session lives: an unlocked one is what a session that was cut off left.
#[derive(Default)]
struct Drafts {
    /// Our own, once there is one.
    own: Option<PathBuf>,
    lock: Option<fs_err::File>,
    /// That of a session that was cut off, which the user was asked about.
    offered: Option<PathBuf>,
}

/// So many wizards at most keep drafts of one file.
const MOST_DRAFTS: usize = 99;

/// What is locked by a process that lives.
fn is_locked(path: &Path) -> bool {
    let file = fs_err::File::open(path).ok();
    // Without locks, as on some network file systems, nothing is.
    file.is_some_and(|file| matches!(file.file().try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Opens a file and locks it as all may do at once; nothing where there is none.
fn share(path: &Path) -> Option<fs_err::File> {
    let file = fs_err::File::open(path).ok()?;
    file.file().try_lock_shared().ok()?;
    Some(file)
}

/// Whether others hold the lock of this file, too.
fn is_shared(file: &fs_err::File) -> bool {
    let is_shared = matches!(file.file().try_lock(), Err(TryLockError::WouldBlock));
    // In place of the lock for one alone, or of the one that was let go for it.
    file.file().try_lock_shared().ok();
    is_shared
}

impl<F: FileForm> Session<F> {
    /// Over this file, which has these answers.
    pub(super) fn new(form: F, path: &Path, base: Said) -> Self {
        Self { form, path: path.to_owned(), base, drafts: RefCell::default(), presence: share(path) }
    }

    /// Beside the file, so that they are found again with it.
    fn draft_paths(&self) -> impl Iterator<Item = PathBuf> {
        (1..=MOST_DRAFTS).map(|number| {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(".unsaved");
            if number > 1 {
                name.push(format!(".{number}"));
            }
            self.path.with_file_name(name)
        })
    }

    /// Drafts of others that live, or of sessions that were cut off; the newest first.
    fn find_drafts(&self, locked: bool) -> Vec<PathBuf> {
        let own = self.drafts.borrow().own.clone();
        let others = self.draft_paths().filter(|path| Some(path) != own.as_ref() && path.exists());
        let mut found: Vec<PathBuf> = others.filter(|path| is_locked(path) == locked).collect();
        found.sort_by_key(|path| std::cmp::Reverse(fs_err::metadata(path).and_then(|file| file.modified()).ok()));
        found
    }

    fn write_draft(&self, config: &Config<'static>) -> Result<()> {
        let own = self.drafts.borrow().own.clone();
        let mut free = self.draft_paths().filter(|path| !path.exists());
        let path = own.or_else(|| free.next());
        let path = path.ok_or_else(|| Error::precondition("there are too many drafts beside the file"))?;
        self.form.write(&path, config, false)?;
        self.hold_draft(path);
        Ok(())
    }

    /// The answers of the configuration's own file now, and what differs there and here from those
    /// that both began with.
    fn conflict(&self, model: &Model, why: &str) -> Msg {
        let (mut lines, mut meets) = (vec![why.to_owned()], false);
        if let Ok((disk, _)) = self.form.read(&self.path) {
            let (base, disk) = (model.with(&self.base), model.with(&disk));
            meets = !Answered::both_ways(&base, &disk, &model.config).is_empty();
            for (title, changed) in [
                ("Changed in the file:", changed_lines(model, &base, &disk)),
                ("Changed here:", changed_lines(model, &base, &model.config)),
            ] {
                lines.extend([String::new(), title.to_owned()]);
                lines.extend(if changed.is_empty() { vec!["nothing".to_owned()] } else { changed });
            }
        }
        Msg::Conflict { lines, meets }
    }

    /// Takes the file as it is now for what this session began with.
    fn reread(&mut self, model: &Model, merge: Merge) -> Result<Msg> {
        let (disk, remarks) = self.form.reread(&self.path)?;
        let theirs = model.with(&disk);
        let mut config = theirs.clone();
        if merge != Merge::Nothing {
            config.redo(&self.base.delta(&model.config.said()));
        }
        if merge == Merge::Theirs {
            for answered in Answered::both_ways(&model.with(&self.base), &theirs, &model.config) {
                answered.give(&mut config);
            }
        }
        self.base = disk.clone();
        self.presence = share(&self.path);
        Ok(Msg::Taken { disk: Box::new(disk), answers: Box::new(config.said()), merge, remarks })
    }

    /// Whether a name is that of the configuration's own file.
    fn is_own(&self, name: &str) -> bool {
        is_same_file(Path::new(name), &self.path)
    }

    fn load(&self, path: &Path, name: &str) -> Msg {
        match self.form.read(path) {
            Ok((said, remarks)) => Msg::Loaded(name.to_owned(), Box::new(said), remarks),
            Err(error) => not_done(&error),
        }
    }
}

/// The file's answer to what was answered otherwise here.
enum Answered {
    Symbol(SymbolId, String),
    Choice(ChoiceId, SymbolId),
}

impl Answered {
    /// All of which two changes of one configuration made different things. What only follows from
    /// answers is none.
    fn both_ways(base: &Config<'_>, theirs: &Config<'_>, mine: &Config<'_>) -> Vec<Self> {
        let tree = base.tree();
        let symbols = tree.symbols().filter(|(symbol, about)| {
            let (was, there, here) = (base.value(*symbol), theirs.value(*symbol), mine.value(*symbol));
            let is_said = [theirs, mine].iter().all(|config| config.user_value(*symbol).is_some());
            about.choice.is_none() && is_said && was != there && was != here && there != here
        });
        let choices = tree.choices().filter_map(|(choice, _)| {
            let (was, there, here) = (base.selection(choice), theirs.selection(choice)?, mine.selection(choice));
            (was != Some(there) && was != here && Some(there) != here).then_some(Self::Choice(choice, there))
        });
        let symbols = symbols.map(|(symbol, _)| Self::Symbol(symbol, theirs.value(symbol).to_owned()));
        symbols.chain(choices).collect()
    }

    fn give(self, config: &mut Config<'_>) {
        let given = match &self {
            Self::Symbol(symbol, value) => config.set(*symbol, value),
            Self::Choice(choice, member) => config.set_choice(*choice, *member),
        };
        debug_assert!(given.is_ok(), "an answer that was read can be given");
    }
}

impl<F: FileForm> Files for Session<F> {
    fn carry_out(&mut self, model: &Model, effect: &Effect) -> Option<Msg> {
        Some(match effect {
            Effect::Save { overwrite } => match self.form.save(&self.path, &model.config, *overwrite) {
                Ok(()) => {
                    self.base = model.config.said();
                    // Saving puts another file in its place.
                    self.presence = share(&self.path);
                    self.forget_draft();
                    Msg::Saved
                }
                Err(error) if error.class() == Class::Transient => self.conflict(model, error.message()),
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
            Effect::Reread(merge) => self.reread(model, *merge).unwrap_or_else(|error| not_done(&error)),
            // The draft is ours from now on: there is no moment without.
            Effect::Recover => {
                let offered = self.drafts.borrow_mut().offered.take()?;
                let loaded = self.load(&offered, "the session that was cut off");
                self.hold_draft(offered);
                loaded
            }
            Effect::Forget => {
                // It may be gone by now.
                self.drafts.borrow_mut().offered.take().map(fs_err::remove_file);
                return None;
            }
            Effect::Check { then } => {
                let problems = self.check(model).map_or_else(|| model.problems.clone(), |check| check());
                Msg::Checked { problems, then: then.clone() }
            }
            Effect::Suspend | Effect::Interrupt | Effect::Leave | Effect::Redraw => return None,
        })
    }

    fn keep_draft(&self, model: &Model) -> Result<(), String> {
        self.write_draft(&model.config)
            .map_err(|why| format!("unsaved answers cannot be kept for the next start: {}", why.message()))
    }

    fn forget_draft(&self) {
        let Drafts { own, lock, .. } = std::mem::take(&mut *self.drafts.borrow_mut());
        // Another process may have removed it.
        own.map(fs_err::remove_file);
        drop(lock);
    }

    fn draft(&self, model: &Model) -> Option<Vec<String>> {
        for path in self.find_drafts(false) {
            let Ok((said, _)) = self.form.read(&path) else { continue };
            let lines = changed_lines(model, &model.config, &model.with(&said));
            if !lines.is_empty() {
                self.drafts.borrow_mut().offered = Some(path);
                return Some(lines);
            }
            // It says nothing that the file does not say.
            fs_err::remove_file(&path).ok();
        }
        None
    }

    fn has_others(&self) -> bool {
        self.presence.as_ref().is_some_and(is_shared) || !self.find_drafts(true).is_empty()
    }

    fn check(&self, model: &Model) -> Option<Job> {
        self.form.check(&model.config)
    }
}

impl<F> Session<F> {
    fn hold_draft(&self, path: PathBuf) {
        let lock = fs_err::File::open(&path).ok();
        // Without locks, as on some network file systems, drafts are kept all the same.
        lock.as_ref().map(|file| file.file().try_lock());
        let mut drafts = self.drafts.borrow_mut();
        (drafts.own, drafts.lock) = (Some(path), lock);
    }
}

fn missing(path: &Path) -> Error {
    Error::config(format!("{} is not there", path.display()))
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
pub(super) struct ObjectFile {
    pub(super) settings: Settings,
    pub(super) schema: Arc<Schema>,
    pub(super) source: TreeSource,
    pub(super) check: ConfigurationCheck,
}

impl ObjectFile {
    fn open(&self, path: &Path) -> Result<Settings> {
        Settings::open(path, Arc::clone(&self.schema))?.ok_or_else(|| missing(path))
    }
}

/// The answers of a file, and what is wrong in it.
fn answers_of(settings: &Settings, path: &Path) -> (Said, Vec<String>) {
    let errors = settings.check().into_iter().filter(|problem| problem.level == ProblemLevel::Error);
    (settings.config().said(), errors.map(|problem| problem.line(path)).collect())
}

impl FileForm for ObjectFile {
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

    fn reread(&mut self, path: &Path) -> Result<(Said, Vec<String>)> {
        self.settings = self.open(path)?;
        Ok(answers_of(&self.settings, path))
    }

    fn read(&self, path: &Path) -> Result<(Said, Vec<String>)> {
        Ok(answers_of(&self.open(path)?, path))
    }

    fn read_profile(&self, name: &str) -> Result<Said> {
        let settings = Profile::find(&self.source, name)?.settings(Arc::clone(&self.schema))?;
        Ok(settings.config().said())
    }

    fn check(&self, config: &Config<'static>) -> Option<Job> {
        let (mut settings, config, check) = (self.settings.clone(), config.clone(), Arc::clone(&self.check));
        Some(Box::new(move || {
            settings.adopt(&config);
            check(&settings)
        }))
    }
}

/// `.config` of Kconfig's own tools.
pub(super) struct DotConfig {
    pub(super) schema: Arc<Schema>,
    pub(super) prefix: String,
    /// What the file had when it was read or written last.
    pub(super) original: Option<String>,
}

impl DotConfig {
    /// The answers of a file's text, and what is wrong in it.
    fn answers_of(&self, text: &str, path: &Path) -> (Said, Vec<String>) {
        let mut config = self.schema.config();
        let found = dotconfig::read(&mut config, text, &self.prefix);
        let remarks = found.iter().map(|(line, finding)| format!("{}:{line}: {finding}", path.display())).collect();
        (config.said(), remarks)
    }
}

fn open_text(path: &Path) -> Result<String> {
    read_file(path)?.ok_or_else(|| missing(path))
}

impl FileForm for DotConfig {
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

    fn reread(&mut self, path: &Path) -> Result<(Said, Vec<String>)> {
        let text = open_text(path)?;
        let read = self.answers_of(&text, path);
        self.original = Some(text);
        Ok(read)
    }

    fn read(&self, path: &Path) -> Result<(Said, Vec<String>)> {
        Ok(self.answers_of(&open_text(path)?, path))
    }

    fn read_profile(&self, name: &str) -> Result<Said> {
        Err(Error::bug(format!("a tree of .config files has no profile {name}")))
    }

    fn check(&self, _: &Config<'static>) -> Option<Job> {
        None
    }
}
