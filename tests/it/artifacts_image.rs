//! Images: the same binaries give the same bytes, and the layout is what `ctr images import` and a
//! node expect.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "it runs containerd beside turnup, and kills its client")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use turnup::artifacts::{Artifact, Digest, Lock, Platform, image_tar};

use crate::artifacts_support::wait_until;
use crate::cluster_support::can_make_hosts;

fn image(name: &str) -> Artifact {
    let platform = Platform { os: "linux".into(), arch: "amd64".into() };
    Lock::embedded().unwrap().select_for("1.36.3", &platform).unwrap().image(name).unwrap().clone()
}

/// The archive of an image whose binaries hold only their own names.
fn archive(name: &str) -> Vec<u8> {
    archive_with(name, 1)
}

/// The same with the names repeated this many times.
fn archive_with(name: &str, times: usize) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let artifact = image(name);
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for binary in &artifact.image().unwrap().binaries {
        let path = dir.path().join(&binary.name);
        fs_err::write(&path, binary.name.repeat(times)).unwrap();
        files.insert(binary.name.clone(), path);
    }
    let mut bytes = Vec::new();
    image_tar(&artifact, &files, &mut bytes).unwrap();
    bytes
}

fn members(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().display().to_string(), content)
    };
    archive.entries().unwrap().map(read).collect()
}

/// One line an entry, as `tar tv` would show them.
fn listing(layer: &[u8]) -> String {
    let mut text = String::new();
    for entry in tar::Archive::new(layer).entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        let link = entry.link_name().unwrap().map(|target| format!(" -> {}", target.display())).unwrap_or_default();
        writeln!(
            text,
            "{:?} {:o} {}:{} @{} {}{link}",
            header.entry_type(),
            header.mode().unwrap(),
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap(),
            entry.path().unwrap().display(),
        )
        .unwrap();
    }
    text
}

#[test]
fn the_same_binaries_give_the_same_bytes() {
    for name in ["pause", "kube-proxy", "etcd"] {
        assert_eq!(Digest::of(&archive(name)), Digest::of(&archive(name)));
    }
}

#[test]
fn an_archive_is_what_containerd_imports() {
    let members = members(&archive("kube-proxy"));
    let by_name: BTreeMap<&str, &[u8]> = members.iter().map(|(name, content)| (name.as_str(), &content[..])).collect();
    let manifest: serde_json::Value = serde_json::from_slice(by_name["manifest.json"]).unwrap();
    assert_eq!(manifest[0]["RepoTags"][0], "turnup.local/kube-proxy:v1.36.3");
    let layer_name = manifest[0]["Layers"][0].as_str().unwrap();
    let layer = Digest::of(by_name[layer_name]);
    assert_eq!(layer_name, format!("{layer}/layer.tar"), "containerd goes on with a layer by its name");
    let config_name = manifest[0]["Config"].as_str().unwrap();
    let config = by_name[config_name];
    assert_eq!(config_name, format!("{}.json", Digest::of(config)));
    let config: serde_json::Value = serde_json::from_slice(config).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{layer}"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&config["config"]).unwrap());
    assert_eq!((&config["os"], &config["architecture"]), (&"linux".into(), &"amd64".into()));
}

#[test]
fn layers_hold_what_the_lock_file_says_and_no_more() {
    let layers: Vec<String> = ["kube-proxy", "etcd", "pause", "agnhost"]
        .iter()
        .map(|name| {
            let members = members(&archive(name));
            let (_, layer) = members.iter().find(|(member, _)| member.ends_with("/layer.tar")).unwrap();
            format!("{name}\n{}", listing(layer))
        })
        .collect();
    insta::assert_snapshot!(layers.join("\n"));
}

/// A private containerd with the content and image services only.
struct Containerd {
    dir: tempfile::TempDir,
    child: Child,
    ctr: PathBuf,
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Containerd {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [root, state, config] = ["root", "state", "config.toml"].map(|name| dir.path().join(name));
        // What would reach beyond these directories.
        let others = ["grpc.v1.cri", "cri.v1.images", "cri.v1.runtime", "internal.v1.opt", "nri.v1.nri"];
        let others = others.map(|name| format!("\"io.containerd.{name}\"")).join(", ");
        fs_err::write(&config, format!("version = 3\ndisabled_plugins = [{others}]\n")).unwrap();
        let child = Command::new(program("containerd"))
            .args([Path::new("--config"), &config, Path::new("--root"), &root, Path::new("--state"), &state])
            .args([Path::new("--address"), &dir.path().join("socket")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let containerd = Self { dir, child, ctr: program("ctr") };
        wait_until("containerd answers", || containerd.ctr(&["images", "list"]).output().unwrap().status.success());
        containerd
    }

    fn ctr(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.ctr);
        command.arg("--address").arg(self.dir.path().join("socket")).args(args);
        command
    }

    fn import(&self, image: &[u8]) -> Output {
        let file = self.dir.path().join("archive");
        fs_err::write(&file, image).unwrap();
        self.ctr(&["images", "import", "--local", "--no-unpack", file.to_str().unwrap()]).output().unwrap()
    }

    /// Kills the client once so many bytes of a layer have come.
    fn import_until(&self, image: &[u8], bytes: u64) {
        let ingests = self.dir.path().join("root/io.containerd.content.v1.content/ingest");
        let mut client = self
            .ctr(&["images", "import", "--local", "--no-unpack", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        client.stdin.as_mut().unwrap().write_all(&image[..image.len() - 4096]).unwrap();
        wait_until("a part of the layer has come", || {
            let ingests = fs_err::read_dir(&ingests).into_iter().flatten();
            let sizes = ingests.filter_map(|ingest| fs_err::metadata(ingest.ok()?.path().join("data")).ok());
            sizes.map(|data| data.len()).any(|size| size >= bytes)
        });
        client.kill().unwrap();
        client.wait().unwrap();
    }
}

/// Where a program of the lock file is.
fn program(name: &str) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_turnup")).args(["artifacts", "path", name]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

#[test]
fn an_interrupted_import_does_not_block_other_images() {
    if !can_make_hosts() {
        return;
    }
    let containerd = Containerd::start();
    let (long, short) = (archive_with("kube-apiserver", 1_000_000), archive_with("kube-scheduler", 100_000));
    assert!(long.len() > 8 * short.len());
    containerd.import_until(&long, short.len() as u64);
    for image in [&short, &long] {
        let done = containerd.import(image);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let names = containerd.ctr(&["images", "list", "--quiet"]).output().unwrap();
    insta::assert_snapshot!(String::from_utf8(names.stdout).unwrap(), @"
    turnup.local/kube-apiserver:v1.36.3
    turnup.local/kube-scheduler:v1.36.3
    ");
}
