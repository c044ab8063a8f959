//! The only module that spawns a process.
//!
//! Every child gets its own process group, an explicit working directory, an environment from an
//! allow-list, a bounded memory and a log. No shell is ever involved, but for the commands that a
//! Kconfig tree contains ([`Shell`]). This module knows no Terraform, no Kubernetes and no cluster;
//! it never decides what to run. As a service it tells systemd how it stands ([`UnitStatus`]).
//!
//! No child outlives us, as far as safe code can promise it. On SIGINT and SIGTERM each running
//! child's group gets the signal once, then time to end, then SIGKILL ([`signals`]). When turnup
//! itself is killed with SIGKILL, the kernel signals the children that were started through
//! `setpriv --pdeathsig` ([`OnDeath`]); where util-linux's setpriv is missing they end when they
//! next write to a closed pipe.

pub mod detach;
pub mod signals;
pub mod ssh;
pub mod tools;

mod capture;
mod environment;
mod failure;
mod log;
mod memory;
mod program;
mod remote_error;
mod run;
mod service;
mod shell;
mod socket;
mod spawner;
mod unit_status;

pub use environment::ALLOWED;
pub use failure::{Ended, Failure};
pub use memory::MemoryFile;
pub use run::{OnDeath, Output, Run, Stream};
pub use service::Service;
pub use shell::Shell;
pub use ssh::{Jump, Ssh};
pub use unit_status::UnitStatus;
