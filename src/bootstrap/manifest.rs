//! Static pods: the same form as API objects, written where kubelet looks for them.

use serde_json::{Value, json};

use super::component::Flags;

/// Below it only who has the right to binds: a container has none of root's rights but those it is given.
const FIRST_FREE_PORT: u16 = 1024;

/// Where kubelet looks.
pub(super) const DIR: &str = "/etc/kubernetes/manifests";

/// One static pod of one container on the host's network.
pub(super) struct StaticPod {
    pub(super) name: &'static str,
    pub(super) image: String,
    pub(super) command: &'static str,
    pub(super) flags: Flags,
    /// Host paths: path, read-only.
    pub(super) mounts: Vec<(&'static str, bool)>,
    /// A GET on the host itself that tells whether it lives: scheme, address, port, path.
    pub(super) probe: (&'static str, String, u16, &'static str),
    pub(super) cpu: &'static str,
    /// The numeric user, when it is not root.
    pub(super) user: Option<u32>,
}

impl StaticPod {
    /// The path of its manifest.
    pub(super) fn path(&self) -> String {
        format!("{DIR}/{}.json", self.name)
    }

    /// The manifest's text.
    pub(super) fn render(&self) -> String {
        let mut command = vec![self.command.to_owned()];
        command.extend(self.flags.render());
        let volume = |path: &str| path.trim_matches('/').replace(['/', '.'], "-");
        let mounts: Vec<Value> = self
            .mounts
            .iter()
            .map(|(path, read_only)| json!({"name": volume(path), "mountPath": path, "readOnly": read_only}))
            .collect();
        let volumes: Vec<Value> =
            self.mounts.iter().map(|(path, _)| json!({"name": volume(path), "hostPath": {"path": path}})).collect();
        let (scheme, host, port, path) = &self.probe;
        let get = json!({"scheme": scheme, "host": host, "port": port, "path": path});
        let mut capabilities = json!({"drop": ["ALL"]});
        if *port < FIRST_FREE_PORT {
            capabilities["add"] = json!(["NET_BIND_SERVICE"]);
        }
        let mut container = json!({
            "name": self.name,
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": command,
            "resources": {"requests": {"cpu": self.cpu}},
            "volumeMounts": mounts,
            // A slow start is not a dead process: two minutes before the liveness probe counts.
            "startupProbe": {"httpGet": get, "periodSeconds": 1, "failureThreshold": 120, "timeoutSeconds": 5},
            "livenessProbe": {"httpGet": get, "periodSeconds": 10, "failureThreshold": 8, "timeoutSeconds": 15},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": capabilities, "readOnlyRootFilesystem": true},
        });
        if let Some(user) = self.user {
            container["securityContext"]["runAsUser"] = json!(user);
            container["securityContext"]["runAsGroup"] = json!(user);
            container["securityContext"]["runAsNonRoot"] = json!(true);
        }
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": "kube-system",
                "labels": {"component": self.name, "tier": "control-plane", "app.kubernetes.io/managed-by": "turnup"},
            },
            "spec": {
                "hostNetwork": true,
                "priorityClassName": "system-node-critical",
                "priority": 2_000_001_000,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
                "volumes": volumes,
            },
        });
        format!("{pod:#}\n")
    }
}
