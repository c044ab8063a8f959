//! `turnup certificates`: every certificate that the cluster's directory knows of.

use crate::error::{Context as _, Result};
use crate::report::Table;
use crate::status::{CertificateLife, CertificateList, ListedCertificate};

use super::run::open_cluster;
use super::{Global, Printer};

/// Below the options.
const NOTES: &str = "\
It reads the cluster's directory and asks no host. The client certificates of kubelets on workers are on their
hosts alone: turnup status shows them. docs/certificates.md says how each kind is renewed.";

/// How much to show.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Below each one its names, and where it is on hosts
    #[arg(long)]
    details: bool,
}

/// Lists them.
pub(super) fn run(args: Args, global: &Global, printer: &Printer) -> Result<()> {
    let list = CertificateList::read(open_cluster(global)?.as_ref())?;
    if printer.is_json() {
        return printer.json(&serde_json::to_value(&list).context("cannot write the list as JSON")?);
    }
    if list.certificates.is_empty() {
        printer.remark("there is no certificate yet: turnup up makes them");
        return Ok(());
    }
    let mut table = Table::new(&["OWNER", "HOST", "SUBJECT", "ISSUER", "ENDS", "RENEWED", "FILE"]);
    for one in &list.certificates {
        table.row(row(one));
    }
    let text = table.render();
    let mut lines = text.lines();
    lines.next().map_or(Ok(()), |headings| printer.line(headings))?;
    for (line, one) in lines.zip(&list.certificates) {
        printer.line(line)?;
        if args.details {
            details(one).iter().try_for_each(|line| printer.line(line))?;
        }
    }
    for rotation in &list.rotations {
        printer.remark(&rotation.describe(list.at));
    }
    Ok(())
}

fn row(one: &ListedCertificate) -> [String; 7] {
    let mark = match one.level {
        CertificateLife::Ok => "",
        CertificateLife::Ending => " (ending)",
        CertificateLife::Ended => " (ended)",
    };
    let from = one.renewed_from.map_or_else(String::new, |from| format!(" from {}", from.strftime("%Y-%m-%d")));
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    [
        one.owner.clone(),
        or_dash(&one.host),
        one.subject.clone(),
        or_dash(&one.issuer),
        format!("{}{mark}", one.ends.strftime("%Y-%m-%d")),
        format!("{}{from}", one.renewed_by),
        or_dash(&one.file),
    ]
}

fn details(one: &ListedCertificate) -> Vec<String> {
    let mut lines = Vec::new();
    if !one.groups.is_empty() {
        lines.push(format!("  groups: {}", one.groups.join(", ")));
    }
    if !one.sans.is_empty() {
        lines.push(format!("  names: {}", one.sans.join(", ")));
    }
    lines.extend(one.on_hosts.iter().map(|place| format!("  on {}: {}", place.host, place.path)));
    lines
}
