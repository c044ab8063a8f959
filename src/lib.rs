//! turnup: turns up Kubernetes clusters from one configuration file.

pub mod addons;
pub mod artifacts;
pub mod bench;
pub mod bootstrap;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod doctor;
pub mod error;
pub mod exec;
pub mod node;
pub mod phase;
pub mod provision;
pub mod report;
pub mod state;
pub mod validate;
pub mod wizard;

pub use error::{Class, Context, Error, Result};
