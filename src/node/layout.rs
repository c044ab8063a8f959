//! The paths of turnup's and Kubernetes' files on a host, each of them here and nowhere else. They
//! are kubeadm's where kubeadm has one, because kube-bench, runbooks and people look there. This
//! file reads and writes nothing.

use std::path::{Path, PathBuf};

/// What turnup installs on a host, and nothing else.
pub(crate) const INSTALLED: &str = "/opt/turnup";
/// The programs of turnup and Kubernetes.
pub(crate) const BIN: &str = "/opt/turnup/bin";
/// turnup itself.
pub(crate) const TURNUP: &str = "/opt/turnup/bin/turnup";
/// The client of containerd.
pub(crate) const CTR: &str = "/opt/turnup/bin/ctr";
/// The client of etcd, on the hosts of the control plane.
pub(crate) const ETCDCTL: &str = "/opt/turnup/bin/etcdctl";
/// What reads snapshots of etcd and restores them, on the same hosts.
pub(crate) const ETCDUTL: &str = "/opt/turnup/bin/etcdutl";
/// Where the member of etcd of a control-plane host answers that host.
pub(crate) const ETCD_ENDPOINT: &str = "https://127.0.0.1:2379";
/// The authority of its certificate.
pub(crate) const ETCD_AUTHORITY: &str = "/etc/kubernetes/etcd/ca.crt";
/// The certificate of the member itself, by which clients on the host are believed.
pub(crate) const ETCD_CERTIFICATE: &str = "/etc/kubernetes/etcd/server.crt";
/// Its key.
pub(crate) const ETCD_KEY: &str = "/etc/kubernetes/etcd/server.key";
/// The same for etcdctl.
pub(crate) const ETCD_CLIENT: [&str; 3] = [
    "--cacert=/etc/kubernetes/etcd/ca.crt",
    "--cert=/etc/kubernetes/etcd/server.crt",
    "--key=/etc/kubernetes/etcd/server.key",
];

/// Where the names of `phase2.host.extra_hosts` are.
pub(crate) const HOSTS_FILE: &str = "/etc/hosts";
/// The systemd units of ours.
pub(crate) const UNITS: &str = "/etc/systemd/system";
/// The configuration of Kubernetes.
pub(crate) const KUBERNETES: &str = "/etc/kubernetes";
/// The directory of static pods.
pub(crate) const MANIFESTS: &str = "/etc/kubernetes/manifests";
/// The certificates and keys of kubelet, and the CA certificate. All of it belongs to root (CIS
/// 1.1.19).
pub(crate) const PKI: &str = "/etc/kubernetes/pki";
/// The certificate of the cluster's CA.
pub(crate) const CA: &str = "/etc/kubernetes/pki/ca.crt";
/// Two authorities with which a control-plane host signs its certificates, without their endings;
/// the cluster's is the controller manager's.
pub(crate) const ETCD_CA: &str = "/etc/kubernetes/pki/etcd-ca";
/// See [`ETCD_CA`].
pub(crate) const FRONT_PROXY_CA: &str = "/etc/kubernetes/pki/front-proxy-ca";
/// The certificate and key of the CSR approver, without their endings.
pub(crate) const CSR_APPROVER_CLIENT: &str = "/etc/kubernetes/csr-approver/client";
/// The certificate by which a host asks for what its kubelet needs, and the key of it.
pub(crate) const HOST_CERTIFICATE: &str = "/etc/kubernetes/pki/host.crt";
/// See [`HOST_CERTIFICATE`].
pub(crate) const HOST_KEY: &str = "/etc/kubernetes/pki/host.key";
/// The certificate with which kubelet serves.
pub(crate) const KUBELET_CERTIFICATE: &str = "/etc/kubernetes/pki/kubelet.crt";
/// Its key.
pub(crate) const KUBELET_KEY: &str = "/etc/kubernetes/pki/kubelet.key";
/// The client certificate and key that a control-plane host's kubelet starts with. Its current one
/// is a link, to this file until kubelet has renewed it: it renews no file.
pub(crate) const KUBELET_CLIENT: &str = "/var/lib/kubelet/pki/kubelet-client-turnup.pem";
/// Where kubelet keeps its certificates.
pub(crate) const KUBELET_PKI: &str = "/var/lib/kubelet/pki";
/// What a machine needs to be the host again that this volume of etcd belongs to: a file in the
/// volume's root.
pub(crate) const IDENTITY: &str = ".turnup-identity";
/// The configuration of kubelet.
pub(crate) const KUBELET_CONFIG: &str = "/var/lib/kubelet/config.yaml";
/// kube-scheduler's configuration file.
pub(crate) const SCHEDULER_CONFIG: &str = "/etc/kubernetes/kube-scheduler/scheduler.yaml";
/// The kubeconfig of kubelet.
pub(crate) const KUBELET_KUBECONFIG: &str = "/etc/kubernetes/kubelet.conf";
/// The API servers before which the balancer of a node is.
pub(crate) const API_SERVERS: &str = "/etc/kubernetes/api-servers.json";
/// The names that a control-plane host keeps in a DNS zone, with the key of that.
pub(crate) const DNS: &str = "/etc/kubernetes/dns.json";
/// The kubeconfig of the addon-manager.
pub(crate) const ADDON_MANAGER_KUBECONFIG: &str = "/etc/kubernetes/addon-manager.conf";
/// The kubeconfig with the join token, which a worker's first start uses.
pub(crate) const BOOTSTRAP_KUBECONFIG: &str = "/etc/kubernetes/bootstrap-kubelet.conf";

/// Which cluster of etcd a control-plane host belongs to: on its own disk, apart from etcd's data.
pub(crate) const ETCD_RECORD: &str = "/var/lib/turnup/etcd.json";
/// The container, and its cgroup, in which a member of etcd gets its data again.
pub(crate) const ETCD_JOINER: &str = "turnup-etcd-joiner";
/// What turnup itself keeps on a host, for root alone.
pub(crate) const STATE: &str = "/var/lib/turnup";
/// What a control-plane host is given for its backups.
pub(crate) const BACKUP: &str = "/etc/kubernetes/backup";
/// The key there that signs them.
pub(crate) const BACKUP_KEY: &str = "signing.key";
/// The bucket there to which it copies them.
pub(crate) const BACKUP_STORE: &str = "store.json";
/// The cluster's keys and configuration there, encrypted for the operator.
pub(crate) const BACKUP_CLUSTER: &str = "directory.tar.age";

/// Programs that get passwords for registries: turnup's own, and those that the user brings.
pub(crate) const CREDENTIAL_PROVIDERS: &str = "/usr/libexec/kubernetes/credential-providers";

/// The file of a systemd unit of ours.
#[must_use]
pub(crate) fn unit_file(name: &str) -> String {
    format!("{UNITS}/{name}")
}

/// The mark that an image with this digest is imported whole. It lies in containerd's own
/// root directory, so that it is gone with it.
#[must_use]
pub(crate) fn import_stamp(containerd: &str, sha256: &str) -> PathBuf {
    Path::new(containerd).join("turnup").join(sha256)
}

/// The passwords for registries, which kubelet looks for in its root directory.
#[must_use]
pub(crate) fn registry_credentials(kubelet: &str) -> String {
    format!("{kubelet}/config.json")
}

/// The program with this name.
#[must_use]
pub(crate) fn program(name: &str) -> String {
    format!("{BIN}/{name}")
}
/// What the health check of the API server reads.
pub(crate) const HEALTHCHECK: &str = "/etc/kubernetes/healthcheck";
/// The certificate that it shows to the API server.
pub(crate) const HEALTHCHECK_CERTIFICATE: &str = "/etc/kubernetes/healthcheck/client.crt";
/// Its key.
pub(crate) const HEALTHCHECK_KEY: &str = "/etc/kubernetes/healthcheck/client.key";

/// What the machine authenticator reads.
pub(crate) const MACHINE_AUTHENTICATOR: &str = "/etc/kubernetes/machine-authenticator";
/// The certificate that it shows to the API server.
pub(crate) const MACHINE_AUTHENTICATOR_CERTIFICATE: &str = "/etc/kubernetes/machine-authenticator/server.crt";
/// Its key.
pub(crate) const MACHINE_AUTHENTICATOR_KEY: &str = "/etc/kubernetes/machine-authenticator/server.key";

/// What the names of the API server in DNS are kept with, beside [`DNS`].
pub(crate) const DNS_CERTIFICATE: &str = "/etc/kubernetes/dns/client.crt";
/// Its key.
pub(crate) const DNS_KEY: &str = "/etc/kubernetes/dns/client.key";

/// The manifest of a static pod.
#[must_use]
pub(crate) fn manifest(pod: &str) -> String {
    format!("{MANIFESTS}/{pod}.yaml")
}

/// The directory of a control-plane component. It holds every file that the component reads.
#[must_use]
pub(crate) fn component_dir(component: &str) -> String {
    format!("{KUBERNETES}/{component}")
}

/// A file in the directory of a component.
#[must_use]
pub(crate) fn component_file(component: &str, file: &str) -> String {
    format!("{KUBERNETES}/{component}/{file}")
}

/// The name of the static pod whose manifest has this path.
#[must_use]
pub(crate) fn static_pod(path: &str) -> Option<&str> {
    path.strip_prefix(MANIFESTS)?.strip_prefix('/')?.strip_suffix(".yaml")
}

/// The kubeconfig with this name: `scheduler`, `admin`.
#[must_use]
pub(crate) fn kubeconfig(name: &str) -> String {
    format!("{KUBERNETES}/{name}.conf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_pod_is_known_by_its_manifest() {
        assert_eq!(static_pod(&manifest("etcd")), Some("etcd"));
        for other in ["/etc/kubernetes/manifests", "/etc/kubernetes/manifests/readme", "/etc/kubernetes/admin.conf"] {
            assert_eq!(static_pod(other), None, "{other}");
        }
    }
}
