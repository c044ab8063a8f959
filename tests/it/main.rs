//! The integration tests: one crate, so that it is linked once.

mod config_cli;
mod wizard_pty;
