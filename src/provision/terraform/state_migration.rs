//! Where the state of a cluster is, and how it gets to another place when the configuration says
//! so.
//!
//! A state that is kept outside of the working directory is remembered in a document of ours, so
//! that it is found whatever the configuration says by then. Before a state is moved there is a
//! copy of it here, and it is removed when the state has been read at its new place; killed at any
//! moment, the next run ends with the state at the new place. A state that is not this cluster's is
//! never overwritten.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

use super::backend::{BackendConfig, SavedBackend};
use super::{BACKEND, Init, Terraform, environment};
use crate::artifacts::Digest;
use crate::change::{Change, Verb};
use crate::cluster::{Backend, Cluster, find_document};
use crate::document::{Document, Fields, Found};
use crate::error::{Context as _, Error, Result};
use crate::input;
use crate::phase::Cx;
use crate::provision::step_ids::APPLY;
use crate::provision::terraform::{DIR, VARIABLES};
use crate::state::Store;
use crate::unknown;

/// Below the cluster's directory: where the state is, unless it is in the working directory.
const REMEMBERED: &str = "provision/place.json";
/// A copy of the state while it is moved.
const COPY: &str = "provision/before-move.tfstate";
/// What Terraform writes when it cannot reach the place of the state at the end of an apply.
const ERRORED: &str = "errored.tfstate";
/// The password of the backend, for as long as `init` runs.
const SECRET: &str = "backend-secret.json";
/// What the state is called in the working directory.
const STATE: &str = "terraform.tfstate";
/// Terraform's own memory of the backend.
const SAVED: &str = ".terraform/terraform.tfstate";

/// Where the state is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    schema: String,
    /// None for the working directory.
    place: Option<BackendConfig>,
    /// Where it is being moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving: Option<MigrationRecord>,
    /// Terraform's name of the state and the number of its version, as they were after the last
    /// apply.
    lineage: String,
    serial: u64,
}

impl Document for Remembered {
    const SCHEMA: &'static str = "turnup.place/1";
    const WHAT: &'static str = "the place of Terraform's state";
    const REMEDY: &'static str = "restore it from a backup: without it the place of the state is unknown";

    fn fields() -> Fields {
        let fields = Fields::new(&[("schema", "text"), ("lineage", "text")]);
        fields.with("place", BackendConfig::fields()).with("moving.to", BackendConfig::fields())
    }
}

/// A move that started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MigrationRecord {
    /// None for the working directory.
    to: Option<BackendConfig>,
}

/// Which state it is, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Label {
    lineage: String,
    serial: u64,
    /// All that it knows. At a place that had no state Terraform gives the same one another name,
    /// so this tells whether it is the same.
    resources: Value,
}

impl Label {
    fn is_empty(&self) -> bool {
        self.resources.as_array().is_none_or(Vec::is_empty)
    }

    fn of(state: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(state).context("Terraform's state is no JSON")?;
        Ok(Self {
            lineage: super::diagnostic::text(&value["lineage"]),
            serial: value["serial"].as_u64().unwrap_or(0),
            resources: value["resources"].clone(),
        })
    }
}

fn find(cluster: &Cluster) -> Result<Remembered> {
    match find_document(&cluster.store, REMEMBERED)? {
        Found::There(remembered) => Ok(remembered),
        Found::Missing => Ok(Remembered { schema: Remembered::SCHEMA.into(), ..Remembered::default() }),
        Found::Older(schema) => {
            Err(Error::permanent(format!("{REMEMBERED} is of an older turnup ({schema})")).hint(Remembered::REMEDY))
        }
    }
}

fn wanted(cluster: &Cluster) -> Option<BackendConfig> {
    BackendConfig::of(&cluster.settings.driver.backend, &cluster.settings.name)
}

/// The place of a state that is not in the working directory, as it is now.
pub(in crate::provision) fn remote(cluster: &Cluster) -> Result<Option<BackendConfig>> {
    find(cluster).map(|remembered| remembered.place)
}

/// What the inventory is made from: the state, or which version of it an apply left at its place.
pub(in crate::provision) fn identity(cluster: &Cluster) -> Result<Vec<u8>> {
    let local = cluster.store.read(format!("{DIR}/{STATE}"))?.unwrap_or_default();
    if unknown::is_in(&local) {
        return Ok(local);
    }
    let known = find(cluster)?;
    Ok(if known.place.is_some() { format!("{} {}", known.lineage, known.serial).into_bytes() } else { local })
}

/// In a plan: the state will be another one.
pub(in crate::provision) fn simulate_state(cluster: &Cluster) -> Result<()> {
    // It follows from what Terraform is given.
    let variables = cluster.store.read(VARIABLES)?.unwrap_or_default();
    let state = unknown::after_with(&APPLY, Digest::of(unknown::shown_bytes(&variables).as_ref()));
    cluster.store.write_file(format!("{DIR}/{STATE}"), state.as_bytes(), 0o600)
}

/// The move that the next apply begins with, as a plan shows it.
pub(in crate::provision) fn planned_move(cluster: &Cluster) -> Result<Option<Change>> {
    let known = find(cluster)?;
    let wanted = wanted(cluster);
    let has_state = known.place.is_some() || has_local_state(cluster)?;
    if !has_state || known.moving.is_none() && same(known.place.as_ref(), wanted.as_ref()) {
        return Ok(None);
    }
    let lines = vec![format!("- {}", describe(known.place.as_ref())), format!("+ {}", describe(wanted.as_ref()))];
    Ok(Some(Change::new(Verb::Update, "Terraform state", "place").with_lines(lines)))
}

fn same(one: Option<&BackendConfig>, other: Option<&BackendConfig>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        _ => false,
    }
}

fn describe(place: Option<&BackendConfig>) -> String {
    place.map_or_else(|| "local: the working directory".to_owned(), BackendConfig::describe)
}

fn has_local_state(cluster: &Cluster) -> Result<bool> {
    let state = cluster.store.read(format!("{DIR}/{STATE}"))?.unwrap_or_default();
    let label = Label::of(&String::from_utf8_lossy(&state)).unwrap_or_default();
    Ok(!label.is_empty() || cluster.store.read(COPY)?.is_some())
}

/// Makes the working directory ready for an apply, with the state where the configuration wants it.
pub(in crate::provision) fn ready(cluster: &Cluster, terraform: Terraform, cx: &Cx) -> Result<Terraform> {
    let mover = StateMigration::new(cluster, terraform, cx)?;
    let mut known = mover.finish_started(find(cluster)?)?;
    let wanted = wanted(cluster);
    let is_new = known.place.is_none() && !has_local_state(cluster)?;
    if is_new || same(known.place.as_ref(), wanted.as_ref()) {
        mover.init_at(wanted.as_ref())?;
    } else {
        known = mover.move_state(known, wanted.clone())?;
    }
    // Before the first resource is made: from here on the state is there.
    known.place = wanted;
    mover.write(&known)?;
    mover.recover()?;
    Ok(mover.terraform)
}

/// Makes the working directory ready to destroy what is in the state, wherever that is: the
/// configuration may say something else by now.
pub(in crate::provision) fn ready_to_destroy(cluster: &Cluster, terraform: Terraform, cx: &Cx) -> Result<Terraform> {
    let mut mover = StateMigration::new(cluster, terraform, cx)?;
    let known = mover.finish_started(find(cluster)?)?;
    if let Some(place) = known.place.as_ref().filter(|_| mover.secret.is_none()) {
        mover.recall_secret(place)?;
    }
    mover.init_at(known.place.as_ref())?;
    mover.recover()?;
    Ok(mover.terraform)
}

/// After an apply: which version of the state it left.
pub(in crate::provision) fn remember(cluster: &Cluster, terraform: &Terraform) -> Result<()> {
    let mut known = find(cluster)?;
    if known.place.is_none() {
        return Ok(());
    }
    let label = terraform.pull()?.map(|state| Label::of(&state)).transpose()?.unwrap_or_default();
    (known.lineage, known.serial) = (label.lineage, label.serial);
    cluster.write_document(REMEMBERED, &known, 0o600)
}

/// The state as it is now, to be looked at: from its place, without a lock and without a trace.
pub(in crate::provision) fn copy_state(cluster: &Cluster, terraform: &Terraform, cx: &Cx) -> Result<Option<Vec<u8>>> {
    let known = find(cluster)?;
    let local = cluster.store.read(format!("{DIR}/{STATE}"))?;
    if known.place.is_none() && known.moving.is_none() {
        return Ok(local);
    }
    // A move that was killed: the copy is the state.
    if let Some(copy) = cluster.store.read(COPY)? {
        return Ok(Some(copy));
    }
    let mover = StateMigration::new(cluster, terraform.at(&terraform.dir), cx)?;
    Ok(mover.read_at(known.place.as_ref())?.map(String::into_bytes))
}

/// Reads and writes states at their places.
struct StateMigration<'c> {
    cluster: &'c Cluster,
    terraform: Terraform,
    cx: &'c Cx,
    /// The password of the backend that is configured.
    secret: Option<Zeroizing<String>>,
}

impl<'c> StateMigration<'c> {
    fn new(cluster: &'c Cluster, terraform: Terraform, cx: &'c Cx) -> Result<Self> {
        let secret = read_secret(cluster)?;
        let mut terraform = terraform.with_secret(secret.as_ref().map(|secret| secret.as_str()));
        // Where the state is now, or was to go, may be another cloud than the one that is
        // configured.
        let known = find(cluster)?;
        let places = [known.place, known.moving.and_then(|moving| moving.to)];
        for place in places.iter().flatten() {
            let patterns = environment::of_place(&place.kind).iter().map(|pattern| (*pattern).to_owned());
            terraform.options.inherit.extend(patterns);
        }
        Ok(Self { cluster, terraform, cx, secret })
    }

    /// The password of the last time, as the program that ran then has kept it: the configuration
    /// may be gone, and this one need not be the same program.
    fn recall_secret(&mut self, place: &BackendConfig) -> Result<()> {
        let Some(saved) = self.saved()?.filter(|saved| place.is_saved_as(saved)) else { return Ok(()) };
        self.secret = saved.password().map(Zeroizing::new);
        self.terraform.options.secret = self.secret.as_ref().map(|secret| secret.to_string());
        Ok(())
    }

    fn path(file: &str) -> String {
        format!("{DIR}/{file}")
    }

    fn write(&self, known: &Remembered) -> Result<()> {
        if known.place.is_none() && known.moving.is_none() {
            return self.cluster.store.remove(REMEMBERED);
        }
        self.cluster.write_document(REMEMBERED, known, 0o600)
    }

    fn write_block(&self, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => self.cluster.store.write_file(Self::path(BACKEND), text.as_bytes(), 0o600),
            None => self.cluster.store.remove(Self::path(BACKEND)),
        }
    }

    fn saved(&self) -> Result<Option<SavedBackend>> {
        Ok(self.cluster.store.read(Self::path(SAVED))?.and_then(|bytes| SavedBackend::parse(&bytes)))
    }

    /// The state of an apply that could not write it to its place goes there now: it alone knows
    /// what that apply made. Terraform refuses it when the state there is another one or a newer
    /// version.
    fn recover(&self) -> Result<()> {
        let (store, file) = (&self.cluster.store, Self::path(ERRORED));
        if store.read(&file)?.is_none() {
            return Ok(());
        }
        self.cx.progress("writing the state that the last apply could not write");
        self.terraform.push(ERRORED, self.cx)?;
        store.remove(file)
    }

    /// Gives the password to a call that needs it, as a file that is gone afterwards.
    fn with_secret(&self, store: &Store, dir: &str, act: impl FnOnce(Option<PathBuf>) -> Result<()>) -> Result<()> {
        let Some(secret) = &self.secret else { return act(None) };
        let file = if dir.is_empty() { SECRET.to_owned() } else { format!("{dir}/{SECRET}") };
        let text = Zeroizing::new(serde_json::json!({"password": secret.as_str()}).to_string());
        store.write_file(&file, text.as_bytes(), 0o600)?;
        let done = act(Some(store.path(&file)));
        store.remove(&file)?;
        done
    }

    /// Makes the working directory ready for a state that is at this place already, or nowhere yet.
    fn init_at(&self, place: Option<&BackendConfig>) -> Result<()> {
        self.write_block(place.map(BackendConfig::render).as_deref())?;
        if place.is_none() && self.saved()?.is_none() {
            return self.terraform.init_as(Init::Plain, None, self.cx);
        }
        self.init_with_secret(Init::Reconfigure, place)
    }

    fn init_with_secret(&self, how: Init, place: Option<&BackendConfig>) -> Result<()> {
        if place.is_none_or(|place| place.kind != "http") {
            return self.terraform.init_as(how, None, self.cx);
        }
        self.with_secret(&self.cluster.store, DIR, |file| self.terraform.init_as(how, file.as_deref(), self.cx))
    }

    /// The state at a place, read in a directory of its own.
    fn read_at(&self, place: Option<&BackendConfig>) -> Result<Option<String>> {
        let Some(place) = place else {
            let bytes = self.cluster.store.read(Self::path(STATE))?.unwrap_or_default();
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.trim().is_empty()));
        };
        let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
        let store = Store::at(scratch.path());
        let saved = self.saved()?.filter(|saved| place.is_saved_as(saved));
        let terraform = self.terraform.at(scratch.path());
        match saved {
            // With the password that it had.
            Some(saved) if self.secret.is_none() || !same(Some(place), wanted(self.cluster).as_ref()) => {
                store.write_file(BACKEND, saved.render().as_bytes(), 0o600)?;
                terraform.init_as(Init::Plain, None, self.cx)?;
            }
            _ => {
                store.write_file(BACKEND, place.render().as_bytes(), 0o600)?;
                let init = |file: Option<PathBuf>| terraform.init_as(Init::Plain, file.as_deref(), self.cx);
                if place.kind == "http" { self.with_secret(&store, "", init)? } else { init(None)? }
            }
        }
        terraform.pull()
    }

    /// A move that started is brought to its end first, whatever the configuration wants by now.
    fn finish_started(&self, known: Remembered) -> Result<Remembered> {
        match known.moving.clone() {
            Some(moving) => self.move_state(known, moving.to),
            None => Ok(known),
        }
    }

    fn move_state(&self, mut known: Remembered, to: Option<BackendConfig>) -> Result<Remembered> {
        let (from_name, to_name) = (describe(known.place.as_ref()), describe(to.as_ref()));
        self.cx.progress(format!("moving Terraform's state: {from_name} -> {to_name}"));
        let store = &self.cluster.store;
        let state = match store.read(COPY)? {
            Some(copy) => String::from_utf8_lossy(&copy).into_owned(),
            None => self.read_at(known.place.as_ref())?.ok_or_else(|| {
                Error::permanent(format!("there is no state at {from_name}, and it cannot be moved"))
                    .hint("bring it back there, or set phase1.state to where it is")
            })?,
        };
        let label = Label::of(&state)?;
        self.refuse_other(&label, to.as_ref(), &to_name)?;
        store.write_file(COPY, state.as_bytes(), 0o600)?;
        known.moving = Some(MigrationRecord { to: to.clone() });
        self.write(&known)?;
        self.agree(known.place.as_ref(), to.as_ref())?;
        self.write_block(to.as_ref().map(BackendConfig::render).as_deref())?;
        self.init_with_secret(Init::Migrate, to.as_ref())?;
        let found = self.terraform.pull()?.map(|state| Label::of(&state)).transpose()?.unwrap_or_default();
        if found.resources != label.resources {
            let message = format!("the state was moved to {to_name}, and what is read there is not it");
            return Err(Error::permanent(message)
                .evidence(format!("a copy of it is {}", store.path(COPY).display()))
                .hint("look at both before anything else: terraform state pull"));
        }
        (known.place, known.moving) = (to, None);
        (known.lineage, known.serial) = (found.lineage, found.serial);
        self.write(&known)?;
        store.remove(COPY)?;
        self.cx
            .milestone(format!("Terraform's state is at {to_name}; what is left at {from_name} is not used any more"));
        Ok(known)
    }

    /// No foreign state is overwritten, nor a newer version of our own.
    fn refuse_other(&self, label: &Label, to: Option<&BackendConfig>, to_name: &str) -> Result<()> {
        let Some(found) = self.read_at(to)? else { return Ok(()) };
        let found = Label::of(&found)?;
        // Where there is nothing yet, or where a state was moved away, Terraform shows an empty
        // one.
        let moved_already = found.resources == label.resources;
        if found.is_empty() || moved_already || found.lineage == label.lineage && found.serial <= label.serial {
            return Ok(());
        }
        let what = if found.lineage == label.lineage {
            "a newer version of this state"
        } else {
            "the state of something else"
        };
        Err(Error::precondition(format!("Terraform's state cannot be moved: at {to_name} is {what}"))
            .evidence(format!("here: lineage {}, serial {}", label.lineage, label.serial))
            .evidence(format!("there: lineage {}, serial {}", found.lineage, found.serial))
            .hint("another place: turnup config get phase1.state; or remove that state there, when it is not needed"))
    }

    /// Terraform copies from where it believes the state to be: that has to be one of both.
    fn agree(&self, from: Option<&BackendConfig>, to: Option<&BackendConfig>) -> Result<()> {
        let saved = self.saved()?;
        let is = |place: Option<&BackendConfig>| match (place, &saved) {
            (None, None) => true,
            (Some(place), Some(saved)) => place.is_saved_as(saved),
            _ => false,
        };
        if is(from) || is(to) {
            return Ok(());
        }
        self.init_at(from)
    }
}

/// The first line of the file with the password, when the configuration names one.
fn read_secret(cluster: &Cluster) -> Result<Option<Zeroizing<String>>> {
    use std::os::unix::fs::PermissionsExt as _;
    let Backend::Http { password_file, .. } = &cluster.settings.driver.backend else { return Ok(None) };
    if password_file.is_empty() {
        return Ok(None);
    }
    let path = cluster.work_dir.join(password_file);
    let mode = fs_err::metadata(&path)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Error::precondition(format!("{} can be read by others, and a password is in it", path.display()))
            .hint(format!("chmod 600 {}", shell_words::quote(&path.display().to_string()))));
    }
    let text = Zeroizing::new(input::read_text(&path, input::KEYS)?);
    let first = text.lines().next().unwrap_or_default().trim();
    if first.is_empty() {
        return Err(Error::precondition(format!("{} has no password in its first line", path.display())));
    }
    Ok(Some(Zeroizing::new(first.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<Remembered>(&serde_json::json!({
            "schema": Remembered::SCHEMA, "lineage": "0-1", "serial": 1,
            "place": {"kind": "s3", "config": {"bucket": "b", "encrypt": true, "endpoints": {"s3": "https://s3.example"}}},
            "moving": {"to": {"kind": "gcs", "config": {"bucket": "b", "endpoints": {"s3": "https://s3.example"}}}},
        }));
    }
}
