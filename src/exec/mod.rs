//! The only room that spawns a process.
//!
//! Every child gets its own process group, a working directory that somebody chose, an environment from an allow-list, a bounded memory
//! and a log. No shell is ever involved. This room knows no Terraform, no Kubernetes and no cluster; it never decides what to run.

pub mod signals;
pub mod ssh;
pub mod tools;

mod run;

pub use run::{Ended, Failure, OnDeath, Output, Run, Stream};
pub use ssh::Ssh;
