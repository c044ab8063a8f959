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
pub(super) fn preview(
    kubectl: &Kubectl,
    there: &Observed,
    manifests: &[Rendered],
    changed: &[&Rendered],
) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for manifest in changed {
        let (name, version) = (manifest.name, &manifest.version);
        match find_version(there, manifest) {
            Some(found) if found == version => lines.push(format!("{name} {version}: restore or change")),
            Some(found) => lines.push(format!("{name}: {found} -> {version}")),
            None => {
                lines.push(format!("{name} {version}: new"));
                continue;
            }
        }
        lines.extend(diff(kubectl, manifest)?);
    }
    let superfluous = prune::superfluous(&there.addon_objects, manifests);
    lines.extend(superfluous.iter().map(|object| format!("remove {object}")));
    Ok(lines)
}

/// The version that the cluster has.
fn find_version<'o>(there: &'o Observed, manifest: &Rendered) -> Option<&'o str> {
    let workload = there.workloads.iter().find(|workload| workload.object == manifest.main)?;
    Some(workload.version.as_deref().unwrap_or("unknown"))
}

fn diff(kubectl: &Kubectl, manifest: &Rendered) -> Result<Vec<String>> {
    let args = ["diff", "--server-side", "--field-manager=turnup", "--force-conflicts", "--filename=-"];
    let text = match kubectl.command(&args).stdin(manifest.text.clone()).output() {
        Ok(output) => output.stdout,
        // Exit code 1 says that there are differences.
        Err(Failure::Exited { code: 1, ended }) => ended.stdout,
        Err(failure) => return Err(failure.into()),
    };
    let changed =
        |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("--- ") && !line.contains("generation:");
    Ok(text.lines().filter(changed).map(shorten).take(LINES).collect())
}

/// Of a file's headline only the object: `+++ v1.ConfigMap.kube-system.coredns`.
fn shorten(line: &str) -> String {
    let Some(file) = line.strip_prefix("+++ ") else { return line.to_owned() };
    let path = file.split('\t').next().unwrap_or(file);
    format!("+++ {}", path.rsplit('/').next().unwrap_or(path))
}
