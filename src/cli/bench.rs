//! `turnup bench`: how long a cluster takes, milestone by milestone, next to kubeadm on the same
//! machine.

use std::path::PathBuf;

use crate::bench::{self, BenchPlan, Start};
use crate::config::{Network, TreeSource};
use crate::error::{Context as _, Error, Result};

use super::{Global, Printer};

/// What to measure. Clusters of its own are made on this machine, one after another, and removed
/// again.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many clusters of each kind
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
    /// How many workers beside the one control-plane host
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=9))]
    workers: u32,
    /// From where the clock runs
    #[arg(long, value_enum, default_value = "both")]
    start: From,
    /// Whom to compare with
    #[arg(long, value_enum, default_value = "kubeadm")]
    peer: Peer,
    /// Fail unless turnup is ahead at the last milestone
    #[arg(long)]
    assert: bool,
    /// Addresses of turnup's hosts
    #[arg(long, value_name = "CIDR", default_value = "10.125.0.0/24")]
    subnet: Network,
    /// Addresses of kubeadm's hosts
    #[arg(long, value_name = "CIDR", default_value = "10.126.0.0/24")]
    peer_subnet: Network,
    /// Where the clusters are made, on a disk like that of real ones [default: .turnup-bench]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum From {
    /// Binaries are in place, images imported
    Preloaded,
    /// Hosts have nothing but the artifact cache's files
    Scratch,
    /// One table of each
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Peer {
    /// kubeadm of the same version, from the same artifacts
    Kubeadm,
    /// No comparison
    None,
}

/// Measures and prints.
pub(super) fn run(args: &Args, global: &Global, printer: &Printer) -> Result<()> {
    if args.assert && args.peer == Peer::None {
        return Err(Error::usage("--assert compares with kubeadm, and --peer none leaves it out"));
    }
    let work_dir = std::env::current_dir().context("the working directory is gone")?;
    let source = TreeSource::find(&work_dir);
    let settings = global.settings_or_default(&source)?;
    let plan = BenchPlan {
        runs: args.runs.into(),
        workers: args.workers,
        starts: match args.start {
            From::Preloaded => vec![Start::Preloaded],
            From::Scratch => vec![Start::Scratch],
            From::Both => vec![Start::Preloaded, Start::Scratch],
        },
        peer: args.peer == Peer::Kubeadm,
        subnet: args.subnet.to_string(),
        peer_subnet: args.peer_subnet.to_string(),
        dir: work_dir.join(args.dir.clone().unwrap_or_else(|| ".turnup-bench".into())),
    };
    let report = bench::run(&plan, &settings, &source, &|text| printer.remark(text))?;
    if printer.is_json() {
        printer.json(&report.json())?;
    } else {
        printer.line(report.text().trim_end())?;
    }
    if args.assert { report.assert_ahead() } else { Ok(()) }
}
