//! Rows of the fault matrix: the API server and what runs in the cluster.

use serde_json::{Value, json};
use turnup::Class;

use crate::fault_matrix::Fault;

/// What kubectl says in place of an answer to such a call.
fn refuse(words: &[&str], said: &str) -> Vec<Value> {
    vec![json!({"tool": "kubectl", "when": words, "exit": 1, "stderr": format!("{said}\n")})]
}

/// The same, twice; then kubectl works.
fn refuse_twice(words: &[&str], said: &str) -> Vec<Value> {
    vec![json!({"tool": "kubectl", "when": words, "times": 2, "exit": 1, "stderr": format!("{said}\n")})]
}

const BUSY: &str =
    "Error from server (InternalError): an error on the server (\"\") has prevented the request from succeeding";
const TIMEOUT: &str =
    "Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded while awaiting headers)";
const CLOCK: &str = "Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired or is not yet \
    valid: current time 2026-01-01T09:00:00Z is before 2026-01-01T10:00:00Z";

pub(crate) fn faults() -> Vec<Fault> {
    vec![
        Fault::new("the API server never becomes ready")
            .script(refuse(&["--raw=/readyz"], "The connection to the server 10.125.0.1:6443 was refused"))
            .fails(Class::Transient, &["bootstrap/api failed", "does not become ready", "was refused"]),
        Fault::new("the API server waits for etcd")
            .script(refuse(&["--raw=/readyz"], "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed"))
            .fails(Class::Transient, &["bootstrap/api failed", "does not become ready", "[-]etcd failed"]),
        Fault::new("clocks differ by an hour or more")
            .script(refuse(&["--raw=/readyz"], CLOCK))
            .fails(Class::Precondition, &["bootstrap/api failed", "not yet valid", "clock"]),
        Fault::new("something else answers at the address of the API")
            .script(refuse(&["--raw=/readyz"], "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority"))
            .fails(Class::Precondition, &["bootstrap/api failed", "unknown authority", "turnup kubeconfig"]),
        Fault::new("the API server does not know the administrator any more")
            .script(refuse(&["apply", "addons"], "error: You must be logged in to the server (Unauthorized)"))
            .fails(Class::Precondition, &["addons/apply failed", "Unauthorized", "turnup kubeconfig"]),
        Fault::new("kubectl has no answer in time")
            .script(refuse(&["apply", "addons"], TIMEOUT))
            .fails(Class::Transient, &["addons/apply failed", "Client.Timeout exceeded", "gave up after"]),
        Fault::new("kubectl hangs")
            .script(vec![json!({"tool": "kubectl", "when": ["apply", "addons"], "sleep_ms": 120_000})])
            .fails(Class::Transient, &["addons/apply failed", "did not end within"]),
        Fault::new("the API answers 500 and is well after a moment")
            .script(refuse_twice(&["apply", "addons"], BUSY))
            .recovers(&["InternalError"]),
        Fault::new("etcd elects a new leader")
            .script(refuse_twice(&["apply", "--filename=-"], "Error from server: etcdserver: leader changed"))
            .recovers(&["etcdserver"]),
        Fault::new("the network to the API breaks for a moment")
            .script(refuse_twice(&["get", "nodes"], "Unable to connect to the server: read tcp 10.0.0.1:5->10.125.0.1:6443: connection reset by peer"))
            .recovers(&["connection reset"]),
        Fault::new("the API answers that we may not")
            .script(refuse(&["apply", "addons"], "Error from server (Forbidden): daemonsets.apps \"flannel\" is forbidden: User \"admin\" cannot patch resource"))
            .fails(Class::Permanent, &["addons/apply failed", "Forbidden"]),
        Fault::new("the API refuses a manifest")
            .script(refuse(&["apply", "addons"], "Error from server (Invalid): DaemonSet.apps \"flannel\" is invalid: spec.template: Required value"))
            .fails(Class::Permanent, &["addons/apply failed", "is invalid"]),
        Fault::new("a node is not found while it is labelled")
            .script(refuse(&["apply", "turnup-register"], "Error from server (NotFound): nodes \"h1\" not found"))
            .fails(Class::Permanent, &["bootstrap/label-nodes failed", "not found"]),
        Fault::new("a join token cannot be written")
            .script(refuse(&["create --filename=-"], BUSY))
            .fails(Class::Transient, &["join failed on h1", "InternalError", "gave up after"]),
        Fault::new("kubectl crashes")
            .script(vec![json!({"tool": "kubectl", "when": ["apply", "addons"], "signal": "ABRT"})])
            .fails(Class::Permanent, &["addons/apply failed", "SIGABRT"]),
        Fault::new("kubectl answers garbage")
            .script(vec![json!({"tool": "kubectl", "when": ["get", "clusterroles"], "exit": 0, "stdout": "{\"items\":"})])
            .fails(Class::Permanent, &["addons/apply failed", "did not print JSON"]),
        Fault::new("probe pods are not answered")
            .script(vec![json!({"tool": "kubectl", "when": ["create", "probes.yaml"], "exit": 1,
                "stderr": "Error from server (Forbidden): pods is forbidden: exceeded quota\n"})])
            .fails(Class::Permanent, &["exceeded quota", "next: "]),
        Fault::new("an addon was deleted")
            .when_up()
            .made(|simulation| drop(fs_err::remove_file(simulation.world("api/daemonset/flannel.json"))))
            .recovers(&["addons/apply begins"]),
        Fault::new("the role binding of administrators was deleted")
            .when_up()
            .made(|simulation| {
                let binding = simulation.world("api/clusterrolebinding/turnup:cluster-admins.json");
                drop(fs_err::remove_file(binding));
            })
            .recovers(&["bootstrap/rbac begins"]),
        Fault::new("the Node of a host was deleted")
            .when_up()
            .made(|simulation| {
                let node = simulation.world("api/nodes/h1.json");
                let kept = fs_err::read(&node).unwrap_or_default();
                let text = String::from_utf8_lossy(&kept).replace("node-role.kubernetes.io/worker", "lost");
                drop(fs_err::write(node, text));
            })
            .recovers(&["bootstrap/label-nodes@h1 begins"]),
    ]
}
