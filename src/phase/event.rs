//! Everything that happens, as data. Terminal, JSON lines and logs are consumers of this one
//! stream.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Class;

/// Name and version of the stream; the first event carries it. It grows only by new kinds and new
/// fields.
pub const SCHEMA: &str = "turnup.events/1";

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Seconds since the start of the run.
    pub seconds: f64,
    /// What happened.
    pub event: What,
}

/// What happened. A step is named by its id: `<phase>/<step>` or `<phase>/<step>@<host>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the variants' docs say what their fields are; the names say the rest")]
pub enum What {
    /// The first event.
    RunStarted {
        schema: String,
        version: String,
        command: String,
        cluster: String,
        at: jiff::Timestamp,
        /// What of the working directory replaces what is built into turnup: `templates/`,
        /// `cluster.lock.json`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replaced: Vec<String>,
    },
    /// A phase begins with so many steps, hosts counted one by one; `tasks` says how many each step
    /// of `phase.toml` has.
    PhaseStarted {
        phase: String,
        steps: usize,
        #[serde(default)]
        tasks: Vec<Tasks>,
    },
    /// A step begins, why it is not skipped, the steps that had to end before, and how long it took
    /// to find out that it has to run.
    StepStarted {
        step: String,
        summary: String,
        why: String,
        #[serde(default)]
        needs: Vec<String>,
        #[serde(default)]
        look_seconds: f64,
    },
    /// What the step does now.
    StepProgress { step: String, message: String },
    /// How much of it is done.
    StepCount { step: String, done: u64, total: u64 },
    /// A part of the step that is worked on beside others, such as one resource of Terraform: what
    /// is done with it, for how long already, and whether that has ended, well or not.
    StepPart { step: String, part: String, doing: String, elapsed_seconds: f64, ended: bool },
    /// A try failed and there will be another one.
    StepRetry { step: String, attempt: u32, wait_seconds: f64, cause: String },
    /// The step is proven done; with the steps that had to end before, and how long the proof took.
    StepSkipped {
        step: String,
        #[serde(default)]
        needs: Vec<String>,
        #[serde(default)]
        look_seconds: f64,
    },
    /// The step ended well.
    StepDone { step: String, elapsed_seconds: f64 },
    /// The step failed for good.
    StepFailed { step: String, class: Class, message: String, evidence: Vec<String>, log: Option<String> },
    /// The step did not begin because of this: the id of a step that failed, or `--max-failures`.
    StepBlocked { step: String, because: String },
    /// The record of a step was dropped: its host is gone.
    StepForgotten { step: String },
    /// A milestone was reached.
    Milestone { step: String, name: String },
    /// A phase ended.
    PhaseDone { phase: String, ran: usize, skipped: usize, failed: usize, blocked: usize, elapsed_seconds: f64 },
    /// A remark outside of any step.
    Note { message: String },
    /// The last event: whether all went well and in time, and the chain that decided how long it
    /// took, whose parts add up to the whole.
    RunDone {
        ok: bool,
        elapsed_seconds: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_duration_seconds: Option<f64>,
        #[serde(default)]
        path: Vec<PathPart>,
    },
    /// A kind that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// How often one step of `phase.toml` is there: once, or once for each of its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    /// `<phase>/<step>`.
    pub step: String,
    /// How many.
    pub count: usize,
}

/// A part of the critical path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathPart {
    /// What kind of time this is.
    pub kind: PartKind,
    /// The step's id; of a time between phases, what it is.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// How long the same took in the last run of the same command that did any work; nothing when
    /// it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seconds: Option<f64>,
}

/// Kinds of parts of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// The step worked.
    Step,
    /// Whether the step is done was looked at.
    Proof,
    /// The step could have started, but as many as may run at once already did.
    Turn,
    /// Outside of any step.
    Between,
}

/// The JSON Schema of one line of the stream.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Event);
    schema.insert(
        "$id".into(),
        format!("urn:turnup:{}", SCHEMA.replace(['/', '.'], ":").trim_start_matches("turnup:")).into(),
    );
    schema.insert("title".into(), format!("One line of {SCHEMA}").into());
    let mut schema = schema.to_value();
    unwrap_descriptions(&mut schema);
    schema
}

/// Where comments in the code wrap is no part of the schema.
fn unwrap_descriptions(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(object) => {
            if let Some(serde_json::Value::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            object.values_mut().for_each(unwrap_descriptions);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(unwrap_descriptions),
        _ => {}
    }
}

/// Where events go. Cheap to clone; an event without a listener is dropped.
#[derive(Clone, Debug)]
pub struct Sink {
    sender: Sender<Event>,
    start: Instant,
}

impl Sink {
    /// A sink whose clock starts now, and the end where its events come out.
    #[must_use]
    pub fn channel() -> (Self, Receiver<Event>) {
        let (sender, receiver) = mpsc::channel();
        (Self { sender, start: Instant::now() }, receiver)
    }
    /// A sink into which events vanish.
    #[must_use]
    pub fn null() -> Self {
        Self::channel().0
    }
    /// Sends one event.
    pub fn emit(&self, what: What) {
        // A reporter that has gone away must not stop the work.
        drop(self.sender.send(Event { seconds: self.start.elapsed().as_secs_f64(), event: what }));
    }
}
