//! Steps, graph, plan and engine.
//!
//! A phase is a list of steps (`phase.toml`), the actions behind them, and hosts. The engine runs what is not proven done, in order, in
//! parallel, and can be killed at any instant. This room knows no Terraform, no SSH and no Kubernetes, and prints nothing: it emits events.

mod action;
mod bound;
mod custom;
mod engine;
mod event;
mod failure;
mod graph;
mod inputs;
mod manifest;
mod plan;
mod review;
mod surroundings;

pub use action::{Action, Cx, Proof};
pub use bound::Bound;
pub use engine::{Engine, Host, Phase, Summary};
pub use event::{Event, PartKind, PathPart, SCHEMA, Sink, Tasks, What, schema};
pub use inputs::Inputs;
pub use manifest::{Manifest, Place, Scope, Step, parse_duration};
pub use plan::{Decision, Foretold, Planned, plan};
pub use review::{Condition, Standing, review};
pub use surroundings::{HostFacts, Surroundings};
