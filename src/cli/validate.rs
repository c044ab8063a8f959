//! Stub.
use super::{Global, Printer};
/// x
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}
/// x
pub(super) fn run(_: &Args, _: &Global, _: &Printer) -> crate::Result<()> { Ok(()) }
