//! What applying the manifests would change in the cluster, object by object. Changes nothing.

use crate::bootstrap::Kubectl;
use crate::change::{Change, Verb};
use crate::error::Result;
use crate::exec::Failure;

use super::object::Object;
use super::observed::Observed;
use super::prune;
use super::render::Rendered;

/// Lines of the server's diff of one object that are shown; the files themselves are there to read.
const LINES: usize = 120;

/// The objects that would be made, changed and removed; of those that are there already with the server's own diff.
pub(super) fn find_changes(
    kubectl: &Kubectl,
    there: &Observed,
    manifests: &[Rendered],
    wanted: &[&Rendered],
) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for manifest in wanted {
        let (known, new): (Vec<&Object>, Vec<&Object>) =
            manifest.objects.iter().partition(|object| there.addon_objects.contains_key(object));
        changes.extend(new.into_iter().map(|object| Change::new(Verb::Create, "object", object.to_string())));
        if !known.is_empty() {
            let known: Vec<String> = known.into_iter().map(ToString::to_string).collect();
            changes.extend(diff(kubectl, manifest)?.into_iter().filter(|change| known.contains(&change.name)));
        }
    }
    let superfluous = prune::superfluous(&there.addon_objects, manifests);
    changes.extend(superfluous.iter().map(|object| Change::new(Verb::Delete, "object", object.to_string())));
    Ok(changes)
}

/// What the server would make of a manifest, as `kubectl diff` tells it.
fn diff(kubectl: &Kubectl, manifest: &Rendered) -> Result<Vec<Change>> {
    let args = ["diff", "--server-side", "--field-manager=turnup", "--force-conflicts", "--filename=-"];
    let text = match kubectl.command(&args).stdin(manifest.text.clone()).output() {
        Ok(output) => output.stdout,
        // Exit code 1 says that there are differences.
        Err(Failure::Exited { code: 1, ended }) => ended.stdout,
        Err(failure) => return Err(failure.into()),
    };
    Ok(parse_diff(&text))
}

/// One change for each object. A file's headline names its object: `+++ DIR/apps.v1.Deployment.kube-system.coredns`.
fn parse_diff(text: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("+++ ") {
            let path = file.split('\t').next().unwrap_or(file);
            let name = object_name(path.rsplit('/').next().unwrap_or(path));
            changes.push(Change::new(Verb::Update, "object", name));
        } else if let Some(change) = changes.last_mut()
            && let Some((sign, rest)) = line.split_at_checked(1).filter(|(sign, _)| ["+", "-"].contains(sign))
            && !line.starts_with("--- ")
            && !rest.trim_start().starts_with("generation:")
            && change.lines.len() < LINES
        {
            change.lines.push(format!("{sign} {rest}"));
        }
    }
    changes
}

/// `Deployment coredns` of `apps.v1.Deployment.kube-system.coredns`; the group and the name may have dots of their own.
fn object_name(file: &str) -> String {
    let parts: Vec<&str> = file.split('.').collect();
    let kind = parts.iter().position(|part| part.starts_with(|c: char| c.is_ascii_uppercase()));
    match kind {
        Some(at) if parts.len() > at + 2 => format!("{} {}", parts[at], parts[at + 2..].join(".")),
        _ => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_diff_becomes_one_change_an_object() {
        let text = "diff -u -N /tmp/LIVE-1/v1.ConfigMap.kube-system.coredns /tmp/MERGED-2/v1.ConfigMap.kube-system.coredns\n\
            --- /tmp/LIVE-1/v1.ConfigMap.kube-system.coredns\t2026-01-01\n\
            +++ /tmp/MERGED-2/v1.ConfigMap.kube-system.coredns\t2026-01-01\n\
            @@ -1,3 +1,3 @@\n data:\n-  a: b\n+  a: c\n-  generation: 1\n+  generation: 2\n\
            +++ /tmp/MERGED-2/rbac.authorization.k8s.io.v1.ClusterRole..system:coredns\tx\n+x: y\n";
        let shown: Vec<String> =
            parse_diff(text).iter().map(|change| format!("{change}: {}", change.lines.join("|"))).collect();
        assert_eq!(
            shown,
            ["change object ConfigMap coredns: -   a: b|+   a: c", "change object ClusterRole system:coredns: + x: y"]
        );
    }
}
