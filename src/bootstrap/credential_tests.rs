//! Where kubelet gets passwords for registries from.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use super::tests::{facts, with_configs};
use crate::cluster::ECR_PROVIDER;
use crate::node::NodeConfig;
use crate::node::node_config::Content;

#[test]
fn kubelet_asks_turnups_program_for_passwords_of_ecr() {
    let file = "/etc/kubernetes/kubelet/image-credential-provider";
    let parts = |node_config: &NodeConfig| {
        let kubelet = node_config.units.iter().find(|unit| unit.name == "kubelet.service").unwrap();
        let provider = node_config.binaries.iter().find(|binary| binary.name == ECR_PROVIDER);
        let config = node_config.files.iter().find(|found| found.path == file);
        let content = config.map(|file| match &file.content {
            Content::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        });
        (kubelet.clone(), provider.map(|binary| binary.path.clone()), content)
    };
    with_configs(&[("phase2.runtime.ecr_credentials", "y")], |configs| {
        for host in &configs.inventory.hosts {
            let (kubelet, provider, content) = parts(&configs.node_config(host, &facts()).unwrap().0);
            assert_eq!(
                provider.as_deref(),
                Some("/usr/libexec/kubernetes/credential-providers/ecr-credential-provider")
            );
            assert!(kubelet.text.contains(&format!("--image-credential-provider-config={file}")), "{}", kubelet.text);
            assert!(kubelet.text.contains("--image-credential-provider-bin-dir=/usr/libexec/kubernetes/"));
            assert!(kubelet.restart_on.contains(&file.to_owned()));
            let content = content.unwrap();
            assert!(content.contains(&format!("- name: {ECR_PROVIDER}\n")), "{content}");
            assert!(content.contains("- \"*.dkr.ecr.*.amazonaws.com\"\n"), "{content}");
        }
    });
    with_configs(&[], |configs| {
        let (kubelet, provider, content) =
            parts(&configs.node_config(&configs.inventory.hosts[0], &facts()).unwrap().0);
        assert!(provider.is_none() && content.is_none() && !kubelet.text.contains("image-credential-provider"));
    });
}
