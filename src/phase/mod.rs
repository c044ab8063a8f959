//! Steps, graph, plan and engine.
//!
//! A phase is a list of steps (`phase.toml`), the actions behind them, and hosts. The engine runs
//! what is not proven done, in order, in parallel, and can be killed at any instant. This module
//! knows no Terraform, no SSH and no Kubernetes, and prints nothing: it emits events.

mod action;
mod clock;
mod custom;
mod definition;
mod engine;
mod event;
mod failure;
mod graph;
mod host_access;
mod inputs;
mod manifest;
mod plan;
mod plan_guard;
mod review;
mod step_runner;
mod turns;

pub use action::{Action, Check, Cx};
pub use definition::{Limits, Phase, PhaseHost};
pub use engine::{Engine, Summary};
pub use event::{Event, PartKind, PathPart, SCHEMA, Sink, Tasks, What, schema};
pub use host_access::{HostAccess, HostFacts};
pub use inputs::Inputs;
pub use manifest::{Manifest, RunsOn, Scope, Step};
pub use plan::{Decision, PhasePlan, PlannedStep, is_up_to_date, plan};
pub use plan_guard::ApprovedPlan;
pub use review::{Condition, StepStatus, review};
pub use turns::Turns;

pub use crate::step_id::{StepId, split_host};
