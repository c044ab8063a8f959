//! `KubeProxyConfiguration`: the one file that kube-proxy reads on every node. The addon's manifest
//! carries it; that, and everything else of the addon, is the matter of `addons`.

use serde_json::json;

use crate::cluster::ClusterSettings;
use crate::component::OverrideSubject;
use crate::config::ComponentName;
use crate::error::Result;
use crate::node::yaml;

use super::configuration::{self, Configuration};

/// The configuration (`kubeproxy.config.k8s.io/v1alpha1`) with what turnup decides, what settings
/// assign, and the user's own fields, as YAML.
///
/// # Errors
///
/// A field of the user's that turnup decides itself.
pub fn kube_proxy_config(settings: &ClusterSettings) -> Result<String> {
    let mut config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": "/etc/kube-proxy/kubeconfig.yaml"},
        "clusterCIDR": settings.pod_cidr.to_string(),
        // Where the readiness probe asks.
        "healthzBindAddress": "0.0.0.0:10256",
    });
    let decided = config.clone();
    let own_defaults = json!({
        "metricsBindAddress": "127.0.0.1:10249",
        // A node's main address, in every mode.
        "nodePortAddresses": ["primary"],
        // A container that is not privileged may not let the host's loopback be routed, as this
        // would need.
        "iptables": {"localhostNodePorts": false},
        // Nor change the kernel's times.
        "conntrack": {"tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    });
    configuration::merge(&mut config, own_defaults);
    // One configuration for all nodes, so that no host, role or group is meant.
    let subject = OverrideSubject { host: "", role: "", group: "" };
    let of = Configuration { settings, component: ComponentName::KubeProxy, subject };
    of.set_fields(&mut config, true);
    of.set_fields(&mut config, false);
    of.set_own_fields(&mut config, &decided)?;
    Ok(yaml::render(&config))
}
