//! A machine of a cloud that is played by a local host: replaced as an instance group replaces it,
//! booted by the real cloud-init with what Terraform gave the group, and with a volume of etcd
//! that outlives it.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::cluster_disk::Disk;
use crate::cluster_reset::on_host;
use crate::cluster_support::Site;
use crate::user_data_boot::seed;

/// The name of the cloud's cluster.
const CLUSTER: &str = "far";

/// A file of the directory of the cloud's cluster.
pub(crate) fn far(site: &Site, file: &str) -> Value {
    site.json_of(&format!(".turnup/{CLUSTER}/{file}"))
}

/// One control-plane machine of the cloud.
pub(crate) struct Machine {
    /// The host that plays it.
    pub(crate) host: String,
    /// What the cloud's cluster calls it.
    pub(crate) node: String,
    /// Its volume of etcd, and the name that an attached one has on the machine.
    pub(crate) disk: Disk,
    pub(crate) device: String,
    /// How many machines there were before this one.
    generation: usize,
}

impl Machine {
    /// The machine of this number, with its volume plugged in.
    pub(crate) fn new(site: &Site, number: usize) -> Self {
        let member = ["a", "b", "c"][number];
        let host = format!("it-control-plane-{number}");
        let disk = Disk::new(site, &host);
        let device = format!("/dev/disk/by-id/google-{CLUSTER}-etcd-main-{member}");
        let machine = Self { host, node: format!("{CLUSTER}-control-plane-{number}"), disk, device, generation: 1 };
        machine.plug_in(site);
        machine
    }

    pub(crate) fn plug_in(&self, site: &Site) {
        self.disk.plug_in_as(site, &self.host, &self.device);
    }

    fn spec_path(&self, site: &Site) -> String {
        site.path(&format!("provision/hosts/{}.json", self.host)).display().to_string()
    }

    /// The facts of the host, which its user data takes for granted.
    pub(crate) fn facts(&self, site: &Site) -> Value {
        serde_json::from_str(&on_host(site, &self.host, "/opt/turnup/bin/turnup node facts")).unwrap()
    }

    /// The end of the machine, without a word to anything that runs on it.
    pub(crate) fn kill(&self, site: &Site) {
        site.cut_power(&self.host);
    }

    /// Its root is removed, and another machine made, as an instance group does: at the same
    /// addresses, which are reserved, with a name and a host key of its own. Its volume is for
    /// the caller to plug in.
    pub(crate) fn replace(&mut self, site: &Site, root: &str, facts: &Value) {
        let user_data = self.user_data(site, facts);
        let path = self.spec_path(site);
        let mut spec = site.spec(&self.host);
        site.ok(&["local", "host", "delete", "--spec", &path]);
        let nothing = site.dir.join("no-blobs");
        fs_err::create_dir_all(&nothing).unwrap();
        (spec["root"], spec["blobs"]) = (json!(root), json!(nothing));
        fs_err::write(&path, serde_json::to_vec_pretty(&spec).unwrap()).unwrap();
        self.generation += 1;
        let instance = format!("i-{}", self.generation);
        seed(site, &self.host, &user_data, (&instance, &format!("{}-x{}", self.node, self.generation)));
        site.ok(&["local", "host", "create", "--spec", &path]);
    }

    /// The user data with which the group of this machine makes the next one. It is for the virtual
    /// machines of the cloud; the one that plays them is a container, so what the image is and what
    /// is done to the machine before it is known which host it is come from its node config.
    fn user_data(&self, site: &Site, facts: &Value) -> PathBuf {
        let state = far(site, "provision/terraform.tfstate");
        let mut resources = state["resources"].as_array().unwrap().iter();
        let template = resources
            .find(|one| one["type"] == "google_compute_instance_template" && one["name"] == "control_plane")
            .unwrap();
        let mut instances = template["instances"].as_array().unwrap().iter();
        let instance = instances.find(|one| one["index_key"] == self.node.as_str()).unwrap();
        let text = instance["attributes"]["metadata"]["user-data"].as_str().unwrap();
        assert!(!text.contains("@turnup:") && !text.contains("PRIVATE KEY"), "{text}");
        let mut document: Value = serde_saphyr::from_str(text).unwrap();
        let mut files = document["write_files"].as_array_mut().unwrap().iter_mut();
        let file = files.find(|file| file["path"] == "/var/lib/turnup/boot-config.json").unwrap();
        let packed = STANDARD.decode(file["content"].as_str().unwrap().replace('\n', "")).unwrap();
        let mut boot: Value = serde_json::from_reader(GzDecoder::new(packed.as_slice())).unwrap();
        for name in ["arch", "cgroup", "container", "lowers_oom_score"] {
            boot["expects"][name] = facts[name].clone();
        }
        boot["node_config"] = machine_of(far(site, &format!("node-config/{}.json", self.node)));
        file["content"] = json!(boot.to_string());
        file.as_object_mut().unwrap().remove("encoding");
        let file = site.dir.join(format!("user-data-{}", self.node));
        fs_err::write(&file, format!("#cloud-config\n{document}")).unwrap();
        file
    }
}

/// The part of a node config that makes a machine ready: no secret, no disk, containerd alone.
fn machine_of(mut node_config: Value) -> Value {
    let parts = node_config.as_object_mut().unwrap();
    parts.remove("mounts");
    parts.insert("health".into(), json!([]));
    parts["files"].as_array_mut().unwrap().retain(|file| file["content"].get("text").is_some());
    let units = parts["units"].as_array_mut().unwrap();
    let early = units.iter().position(|unit| unit["name"] == "containerd.service").unwrap();
    units.truncate(early + 1);
    node_config
}
