//! The lock file: every mistake in it is an error with its place, and what ships with the program
//! is complete.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use turnup::artifacts::{Digest, DigestOrigin, LARGEST, Lock, Platform, ResolvedArtifacts, Sources, Variant};

use crate::artifacts_support::{TOOL, pin, small_lock, small_selection};

fn complaint(from: &str, to: &str) -> String {
    let text = small_lock();
    assert!(text.contains(from), "the small lock file has no {from}");
    let text = text.replacen(from, to, 1);
    Lock::parse(&text, "cluster.lock.json").unwrap_err().render().replace(&Digest::of(TOOL).to_string(), "<tool>")
}

#[test]
fn every_mistake_has_a_place() {
    let digest = Digest::of(TOOL).to_string();
    let complaints = [
        complaint("\"toolchain\"", "\"toolchian\""),
        complaint("\"default\": \"1.0.0\",", ""),
        complaint("\"default\": \"1.0.0\"", "\"default\": \"1.0.1\""),
        complaint("turnup.lock/1", "turnup.lock/2"),
        complaint("\"schema\": \"turnup.lock/1\",", ""),
        complaint(&digest, &digest[1..]),
        complaint(&digest, &digest.to_uppercase()),
        complaint("\"linux/arm64\"", "\"linux/amd64\""),
        complaint("\"linux/arm64\"", "\"linux\""),
        complaint("[\"tool-1.0.0\"]", "[\"tool-2.0.0\"]"),
        complaint("\"1.0.0\": [", "\"one\": ["),
        complaint("\"package\": \"example.invalid/tool\",", "\"package\": 7,"),
        complaint("{\n", "{{\n"),
        complaint("\"sets\"", "\"registry_images\": {\"other\": {\"repository\": \"example.com/other\"}}, \"sets\""),
    ];
    insta::assert_snapshot!(complaints.join("\n\n"));
}

#[test]
fn an_image_is_made_or_pulled_and_not_both() {
    let image = serde_json::json!({
        "repository": "example.com/coredns", "tag": "v1", "sha256": Digest::of(TOOL), "origin": {"kind": "assembled"}
    });
    let mut lock = serde_json::to_value(&*Lock::embedded().unwrap()).unwrap();
    lock["registry_images"]["coredns"] = image;
    let error = Lock::parse(&lock.to_string(), "cluster.lock.json").unwrap_err();
    assert_eq!(error.message(), "cluster.lock.json: registry_images: coredns is an image of a module, too");
}

#[test]
fn an_unknown_version_is_answered_with_what_is_there() {
    let lock = Lock::embedded().unwrap();
    let wanted = ["1.36.4", "v1.36", "1.3.63", "2.0.0", "latest"];
    let answers: Vec<String> = wanted.iter().map(|version| lock.select(version).unwrap_err().render()).collect();
    insta::assert_snapshot!(answers.join("\n\n"));
}

#[test]
fn an_unknown_artifact_is_answered_with_a_suggestion() {
    let selection = small_selection();
    let answers: Vec<String> = ["tol", "kubernetes"].iter().map(|id| selection.get(id).unwrap_err().render()).collect();
    insta::assert_snapshot!(answers.join("\n\n"));
}

#[test]
fn what_is_not_recorded_is_refused_with_the_command_that_records_it() {
    let text = small_lock().replace(&pin(), "");
    let lock = Lock::parse(&text, "cluster.lock.json").unwrap();
    insta::assert_snapshot!(lock.select("1.0.0").unwrap_err().render());
    let other = Platform { os: "linux".into(), arch: "riscv64".into() };
    insta::assert_snapshot!("platform", lock.select_for("1.0.0", &other).unwrap_err().render());
}

#[test]
fn the_shipped_file_is_complete() {
    let lock = Lock::embedded().unwrap();
    let platform = Platform { os: "linux".into(), arch: "amd64".into() };
    assert_eq!(lock.default, "1.36.3");
    assert_eq!(lock.versions(), ["1.37.2", "1.36.3", "1.35.4"]);
    for version in lock.versions() {
        let selection = lock.select_for(version, &platform).unwrap();
        for name in [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kube-proxy",
            "kubelet",
            "kubectl",
            "kubeadm",
            "agnhost",
            "etcd",
            "etcdctl",
            "etcdutl",
            "containerd",
            "containerd-shim-runc-v2",
            "ctr",
            "runc",
            "bridge",
            "loopback",
            "host-local",
            "portmap",
            "coredns",
            "pause",
            "tofu",
        ] {
            assert!(selection.binary(name).unwrap().binary().is_some(), "{name}");
        }
        let images: Vec<&str> =
            selection.images().map(|artifact| artifact.image().unwrap().reference.as_str()).collect();
        let kubernetes = |name: &str| format!("turnup.local/{name}:v{version}");
        for name in ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "agnhost"] {
            assert!(images.contains(&kubernetes(name).as_str()), "{name}: {images:?}");
        }
        assert_eq!(images.len(), 19);
        let mut digests: Vec<Digest> =
            selection.artifacts.iter().flat_map(|artifact| artifact.pins.iter().map(|pin| pin.sha256)).collect();
        digests.sort();
        digests.dedup();
        let pins: usize = selection.artifacts.iter().map(|artifact| artifact.pins.len()).sum();
        assert_eq!(digests.len(), pins, "two artifacts with the same bytes");
        let optional: Vec<&str> =
            selection.artifacts.iter().filter(|artifact| artifact.optional).map(|artifact| &*artifact.name).collect();
        let of_addons = ["local-path-helper", "local-path-provisioner", "local-path-provisioner"];
        let of_addons = of_addons.into_iter().chain(["metrics-server", "metrics-server"]);
        let of_addons = of_addons.chain(["kube-state-metrics"; 2]).chain(["node_exporter", "node-exporter"]);
        let of_addons = of_addons.chain(["kube-network-policies"; 2]).chain(["snapshot-controller"; 2]);
        let of_addons = of_addons.chain(["acmesolver", "cert-manager", "cert-manager"]).chain(["traefik"; 2]);
        let of_addons = of_addons.chain(["otel-collector"; 2]);
        assert_eq!(
            optional,
            ["kubeadm"]
                .into_iter()
                .chain(of_addons)
                .chain(["tofu", "ecr-credential-provider"])
                .chain(["aws-cloud-controller-manager"; 2])
                .collect::<Vec<_>>()
        );
    }
}

/// Hosts are told to fetch exactly what was fetched here, also where several files are accepted.
#[test]
fn of_several_accepted_files_the_one_that_is_here_is_expected() {
    let scratch = crate::artifacts_support::Scratch::new();
    let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
    let runc = selection.binary("runc").unwrap();
    let [first, second] = [0, 1].map(|at| runc.pins[at].sha256);
    let upstream = runc.upstream_pins[0].sha256;
    let built = Sources::default();
    let both = Sources::parse("cache upstream source", "").unwrap();
    let expected = |sources: &Sources, known: Option<&ResolvedArtifacts>| {
        ResolvedArtifacts::expected(&selection, sources, known, Some(&scratch.cache)).sha256("runc").unwrap()
    };
    assert_eq!(expected(&built, None), first.to_string());
    let put = |digest: &Digest| fs_err::write(scratch.cache.blob_path(digest), "").unwrap();
    put(&second);
    assert_eq!(expected(&built, None), second.to_string());
    put(&upstream);
    assert_eq!(expected(&built, None), second.to_string(), "upstream is not among the sources");
    assert_eq!(expected(&both, None), upstream.to_string());
    let known = ResolvedArtifacts::expected(&selection, &built, None, None);
    assert_eq!(expected(&built, Some(&known)), first.to_string(), "what this cluster has stays");
    assert_eq!(expected(&both, Some(&known)), first.to_string());
}

#[test]
fn every_pin_says_how_large_the_file_is_and_how_its_digest_became_known() {
    let lock = Lock::embedded().unwrap();
    for artifact in lock.versions().into_iter().flat_map(|version| lock.select(version).unwrap().artifacts) {
        for pin in &artifact.pins {
            assert!(pin.size.is_some_and(|size| size > 100_000 && size < LARGEST), "{artifact}: {pin:?}");
            let has_c = artifact.binary().is_some_and(|binary| binary.cgo.is_some());
            let origin_is_right = match &pin.origin {
                DigestOrigin::SourceBuild { c_toolchain } => {
                    artifact.image().is_none() && c_toolchain.is_some() == has_c
                }
                DigestOrigin::Assembled => artifact.image().is_some(),
                _ => false,
            };
            assert!(origin_is_right, "{artifact}: {pin:?}");
        }
        for pin in &artifact.upstream_pins {
            assert!(!matches!(pin.origin, DigestOrigin::FirstDownload { .. }), "{artifact} is taken on trust: {pin:?}");
        }
    }
}

#[test]
fn templates_are_filled_in() {
    let lock = Lock::embedded().unwrap();
    let platform = Platform { os: "linux".into(), arch: "amd64".into() };
    let selection = lock.select_for("v1.36.3", &platform).unwrap();
    let kubelet = selection.binary("kubelet").unwrap();
    let binary = kubelet.binary().unwrap();
    assert!(binary.ldflags.contains("gitVersion=v1.36.3 ") && binary.ldflags.contains("gitMinor=36 "));
    assert!(binary.upstream_url.as_ref().unwrap().ends_with("/v1.36.3/bin/linux/amd64/kubelet"));
    assert_eq!(kubelet.pins(Variant::Upstream), []);
    for artifact in &selection.artifacts {
        let text = format!("{:?}", artifact.kind);
        assert!(!text.contains("{version}") && !text.contains("{m"), "{text}");
    }
}

#[test]
fn writing_and_reading_give_the_same() {
    let lock = Lock::embedded().unwrap();
    let text = lock.to_text().unwrap();
    assert_eq!(Lock::parse(&text, "cluster.lock.json").unwrap(), *lock);
    assert_eq!(text, include_str!("../../cluster.lock.json"), "the file in the repository is as the program writes it");
}
