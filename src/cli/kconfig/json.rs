//! `turnup kconfig json`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}
pub(super) fn run(_: &Args, _: &super::Printer) -> crate::error::Result<()> { Ok(()) }
