//! What applying the manifests would change: the lines of `turnup plan`. Changes nothing.

use crate::bootstrap::Kubectl;
use crate::error::Result;
use crate::exec::Failure;

use super::observed::Observed;
use super::prune;
use super::render::Rendered;

/// Lines of a server-side diff that are shown; the files themselves are there to read.
const LINES: usize = 120;

/// One line for each addon that changes, and the server's own diff of those that are there already.
pub(super) fn preview(kubectl: &Kubectl, manifests: &[Rendered]) -> Result<Vec<String>> {
    let there = prune::find_objects(kubectl)?;
    let mut lines = Vec::new();
    for manifest in manifests {
        match applied_version(&there, manifest) {
            Some((_, true)) => {}
            Some((version, false)) => {
                lines.push(format!("{}: {version} -> {}", manifest.name, manifest.version));
                lines.extend(diff(kubectl, manifest)?);
            }
            None => lines.push(format!("{}: new, {}", manifest.name, manifest.version)),
        }
    }
    let superfluous = prune::superfluous(&there.addon_objects, manifests);
    lines.extend(superfluous.iter().map(|object| format!("remove {object}")));
    Ok(lines)
}

/// The version that the cluster has, and whether it is this very manifest.
fn applied_version<'o>(there: &'o Observed, manifest: &Rendered) -> Option<(&'o str, bool)> {
    let workload = there.workloads.iter().find(|workload| workload.object == manifest.main)?;
    let version = workload.version.as_deref().unwrap_or("unknown");
    Some((version, workload.hash.as_ref() == Some(&manifest.hash)))
}

fn diff(kubectl: &Kubectl, manifest: &Rendered) -> Result<Vec<String>> {
    let args = ["diff", "--server-side", "--field-manager=turnup", "--force-conflicts", "--filename=-"];
    let text = match kubectl.command(&args).stdin(manifest.text.clone()).output() {
        Ok(output) => output.stdout,
        // Exit code 1 says that there are differences.
        Err(Failure::Exited { code: 1, ended }) => ended.stdout,
        Err(failure) => return Err(failure.into()),
    };
    let changed = |line: &&str| line.starts_with(['+', '-']) && !line.contains("generation:");
    let lines = text.lines().filter(changed).map(|line| line.split('\t').next().unwrap_or(line).to_owned());
    Ok(lines.filter(|line| !line.starts_with("--- ")).take(LINES).collect())
}
