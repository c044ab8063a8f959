//! What applying the manifests would change in the cluster, object by object. Changes nothing.

use crate::bootstrap::Kubectl;
use crate::change::{Change, Verb};
use crate::error::Result;
use crate::exec::Failure;

use super::object::{HELD, Object};
use super::observed::Observed;
use super::render::Rendered;
use super::replacement::{Replacement, find_replacements, without};

/// Lines of the server's diff of one object that are shown; the files themselves are there to read.
const LINES: usize = 120;

/// The objects that would be made, changed and removed; of those that are there already with the
/// server's own diff.
pub(super) fn find_changes(
    kubectl: &Kubectl,
    there: &Observed,
    wanted: &[&Rendered],
    superfluous: &[Object],
) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for manifest in wanted {
        let (known, new): (Vec<&Object>, Vec<&Object>) =
            manifest.objects.iter().partition(|object| there.addon_objects.contains_key(object));
        // What differs in a Lease is what its holder wrote.
        let known: Vec<&Object> = known.into_iter().filter(|object| !HELD.contains(&object.kind.as_str())).collect();
        changes.extend(new.into_iter().map(|object| Change::new(Verb::Create, "object", object.to_string())));
        if !known.is_empty() {
            let known: Vec<String> = known.into_iter().map(ToString::to_string).collect();
            let (found, replacements) = compare(kubectl, &manifest.text)?;
            changes.extend(found.into_iter().filter(|change| known.contains(&change.name)));
            changes.extend(replacements.iter().map(|one| one.change(one.object.short())));
        }
    }
    changes.extend(superfluous.iter().map(|object| Change::new(Verb::Delete, "object", object.to_string())));
    Ok(changes)
}

/// What applying a manifest would change, and what it would replace.
pub(super) fn compare(kubectl: &Kubectl, manifest: &str) -> Result<(Vec<Change>, Vec<Replacement>)> {
    let error = match diff(kubectl, manifest) {
        Ok(changes) => return Ok((changes, Vec::new())),
        Err(error) if error.is_passing() => return Err(error),
        Err(error) => error,
    };
    let replacements = find_replacements(kubectl, manifest, &error)?;
    if replacements.is_empty() {
        return Err(error);
    }
    let others = without(manifest, &replacements)?;
    let changes = others.map_or_else(|| Ok(Vec::new()), |others| diff(kubectl, &others))?;
    Ok((changes, replacements))
}

/// With all of each object around what differs, so that [`parse_diff`] sees which part of it a line
/// belongs to.
const DIFF: &str = "diff --unified=1000000 --new-file";

/// What the server would make of a manifest, as `kubectl diff` tells it.
pub(super) fn diff(kubectl: &Kubectl, manifest: &str) -> Result<Vec<Change>> {
    let args = ["diff", "--server-side", "--field-manager=turnup", "--force-conflicts", "--filename=-"];
    let text = match kubectl.command(&args).env("KUBECTL_EXTERNAL_DIFF", DIFF).stdin(manifest).output() {
        Ok(output) => output.stdout,
        // Exit code 1 says that there are differences.
        Err(Failure::Exited { code: 1, ended }) => ended.stdout,
        Err(failure) => return Err(failure.into()),
    };
    Ok(parse_diff(&text))
}

/// One change for each object that differs in what a manifest can say. A file's headline names its
/// object: `+++ DIR/apps.v1.Deployment.kube-system.coredns`.
///
/// kubectl reads an object and asks the server for the changed one after each other; what the
/// cluster itself writes in between differs as well.
fn parse_diff(text: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    // The field that a line belongs to, before and after: diff tells all that goes before all that
    // comes.
    let (mut old, mut new) = ("", "");
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("+++ ") {
            let path = file.split('\t').next().unwrap_or(file);
            let name = object_name(path.rsplit('/').next().unwrap_or(path));
            changes.push(Change::new(Verb::Update, "object", name));
        } else if let Some(change) = changes.last_mut()
            && let Some((sign @ (" " | "+" | "-"), rest)) = line.split_at_checked(1)
            && !line.starts_with("--- ")
        {
            if rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
                let field = rest.split(':').next().unwrap_or_default();
                (old, new) = (if sign == "+" { old } else { field }, if sign == "-" { new } else { field });
            }
            let field = if sign == "-" { old } else { new };
            if sign != " " && !is_of_the_server(field, rest) && change.lines.len() < LINES {
                change.lines.push(format!("{sign} {rest}"));
            }
        }
    }
    changes.retain(|change| !change.lines.is_empty());
    changes
}

/// Whether a line below a field of the object is written by the cluster alone, never by a manifest.
fn is_of_the_server(field: &str, line: &str) -> bool {
    let counters = ["  generation:", "  resourceVersion:", "    deployment.kubernetes.io/revision:"];
    field == "status" || field == "metadata" && counters.iter().any(|counter| line.starts_with(counter))
}

/// `Deployment coredns` of `apps.v1.Deployment.kube-system.coredns`; the group and the name may
/// have dots of their own.
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

    /// What `kubectl diff` printed of objects that were written to in the middle of it, cut to the
    /// lines that matter here.
    const DIFFERENT: &str = "\
diff --unified=1000000 --new-file /tmp/LIVE-1/apps.v1.Deployment.kube-system.coredns /tmp/MERGED-2/apps.v1.Deployment.kube-system.coredns
--- /tmp/LIVE-1/apps.v1.Deployment.kube-system.coredns\t2026-01-01 00:00:00.000000000 +0000
+++ /tmp/MERGED-2/apps.v1.Deployment.kube-system.coredns\t2026-01-01 00:00:00.000000000 +0000
@@ -1,163 +1,163 @@
 apiVersion: apps/v1
 metadata:
   annotations:
-    deployment.kubernetes.io/revision: \"1\"
+    deployment.kubernetes.io/revision: \"2\"
-  generation: 1
+  generation: 2
   name: coredns
-  resourceVersion: \"705\"
+  resourceVersion: \"706\"
 spec:
-  replicas: 1
+  replicas: 2
   template:
     metadata:
-      generation: ours
-status: {}
+  revisionHistoryLimit: 3
+status:
   conditions:
-  - lastTransitionTime: \"2026-01-01T00:00:00Z\"
-    type: Available
+  readyReplicas: 1
diff --unified=1000000 --new-file /tmp/LIVE-1/v1.Service.kube-system.kube-dns /tmp/MERGED-2/v1.Service.kube-system.kube-dns
--- /tmp/LIVE-1/v1.Service.kube-system.kube-dns\tx
+++ /tmp/MERGED-2/v1.Service.kube-system.kube-dns\tx
@@ -1,1 +1,1 @@
 metadata:
-  resourceVersion: \"7\"
+  resourceVersion: \"8\"
diff --unified=1000000 --new-file /tmp/LIVE-1/x /tmp/MERGED-2/x
--- /tmp/LIVE-1/rbac.authorization.k8s.io.v1.ClusterRole..system:coredns\tx
+++ /tmp/MERGED-2/rbac.authorization.k8s.io.v1.ClusterRole..system:coredns\tx
@@ -1,1 +1,1 @@
+status: x
+rules: y
";

    #[test]
    fn the_servers_diff_becomes_one_change_an_object_without_what_the_cluster_writes_itself() {
        let shown: Vec<String> =
            parse_diff(DIFFERENT).iter().map(|change| format!("{change}: {}", change.lines.join("|"))).collect();
        assert_eq!(
            shown,
            [
                "change object Deployment coredns: -   replicas: 1|+   replicas: 2|-       generation: ours|+   revisionHistoryLimit: 3",
                "change object ClusterRole system:coredns: + rules: y"
            ]
        );
    }
}
