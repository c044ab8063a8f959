//! Static pods: the same form as API objects, written where kubelet looks for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::component::Flags;
use crate::node::layout;
use crate::node::static_pod::FILES_VARIABLE;

/// One static pod of one container on the host's network.
pub(super) struct StaticPod {
    /// The pod's and its program's.
    pub(super) name: &'static str,
    pub(super) image: String,
    pub(super) flags: Flags,
    /// Host paths: path, read-only.
    pub(super) mounts: Vec<(String, bool)>,
    /// A directory of the host without which kubelet does not start the pod. It is a mount of its
    /// own also where it lies below another one, so that the pod cannot remove it.
    pub(super) required: Option<String>,
    pub(super) probe: PodProbe,
    /// What it requests, by resource.
    pub(super) requests: Map<String, Value>,
    /// A digest of the files that it reads when it starts.
    pub(super) files: String,
    /// The number of its user and group.
    pub(super) user: u32,
    pub(super) annotations: BTreeMap<&'static str, String>,
}

/// A GET at the host's loopback address that tells whether a pod lives: scheme, port, path.
pub(super) type PodProbe = (&'static str, u16, &'static str);

impl StaticPod {
    /// The path of its manifest.
    pub(super) fn path(&self) -> String {
        layout::manifest(self.name)
    }

    /// The manifest.
    pub(super) fn manifest(&self) -> Value {
        let mut command = vec![self.name.to_owned()];
        command.extend(self.flags.render());
        let volume = |path: &str| path.trim_matches('/').replace(['/', '.'], "-");
        let mut mounts: Vec<Value> = self
            .mounts
            .iter()
            .map(|(path, read_only)| json!({"name": volume(path), "mountPath": path, "readOnly": read_only}))
            .collect();
        let mut volumes: Vec<Value> =
            self.mounts.iter().map(|(path, _)| json!({"name": volume(path), "hostPath": {"path": path}})).collect();
        if let Some(path) = &self.required {
            mounts.push(json!({"name": volume(path), "mountPath": path, "readOnly": false}));
            volumes.push(json!({"name": volume(path), "hostPath": {"path": path, "type": "Directory"}}));
        }
        let (scheme, port, path) = self.probe;
        let get = json!({"scheme": scheme, "host": "127.0.0.1", "port": port, "path": path});
        let mut capabilities = json!({"drop": ["ALL"]});
        // A component is root only to bind a port below 1024.
        if self.user == 0 {
            capabilities["add"] = json!(["NET_BIND_SERVICE"]);
        }
        let container = json!({
            "name": self.name,
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": command,
            "resources": {"requests": self.requests},
            // The process shows from which files it was started.
            "env": [{"name": FILES_VARIABLE, "value": self.files}],
            "volumeMounts": mounts,
            // A slow start is not a dead process: two minutes before the liveness probe counts.
            "startupProbe": {"httpGet": get, "periodSeconds": 1, "failureThreshold": 120, "timeoutSeconds": 5},
            "livenessProbe": {"httpGet": get, "periodSeconds": 10, "failureThreshold": 8, "timeoutSeconds": 15},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": capabilities,
                "readOnlyRootFilesystem": true,
                "runAsUser": self.user,
                "runAsGroup": self.user,
                "runAsNonRoot": self.user != 0,
            },
        });
        let mut metadata = json!({
            "name": self.name,
            "namespace": "kube-system",
            "labels": {"component": self.name, "tier": "control-plane", "app.kubernetes.io/managed-by": "turnup"},
        });
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {
                "hostNetwork": true,
                "priorityClassName": "system-node-critical",
                "priority": 2_000_001_000,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
                "volumes": volumes,
            },
        })
    }
}
