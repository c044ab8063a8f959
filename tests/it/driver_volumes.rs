//! What an apply must not do to the volumes of etcd, and what `turnup down` leaves: turnup's own
//! modules, by way of a module of one's own, with the real terraform and a provider that makes
//! nothing and has the real one's rules.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::{Value, json};

use turnup::config::Settings;

use crate::cli_support::TestEnv;
use crate::cloud_support::{mirror_stub, module_files, profiles, settings_with, variables};
use crate::driver_custom::{self, Program, each_program, has_terraform, use_module};

/// The rules of the real providers about disks of etcd and about protection.
fn rules(test_env: &TestEnv) -> Value {
    json!({
        "replace": {
            "google_compute_disk": ["name", "type", "zone"],
            "azurerm_managed_disk": ["name", "location", "resource_group_name", "zone"],
            "aws_ebs_volume": ["availability_zone", "encrypted", "kms_key_id", "snapshot_id"],
        },
        "replace_smaller": {"google_compute_disk": ["size"]},
        "protected": {"aws_lb": ["enable_deletion_protection"]},
        "drift_in": test_env.path("drift.json"),
    })
}

/// Beside the module, so that a host on paper is handed over: who made the hosts is not what this
/// is about.
const INVENTORY: &str = r#"
output "inventory" {
  value = {
    schema  = "turnup.provision/1"
    cluster = var.cluster.name
    target  = "custom"
    api     = { host = "192.0.2.10", port = 6443 }
    hosts = [{
      name     = "${var.cluster.name}-control-plane-0"
      role     = "control-plane"
      address  = "192.0.2.10"
      instance = "one"
      ssh      = { user = "admin", port = 22, host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIABEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }
    }]
  }
}
"#;

/// A test environment with the module of a cloud.
struct CloudTestEnv {
    test_env: TestEnv,
    target: &'static str,
    profile: &'static str,
}

impl CloudTestEnv {
    fn new(test_env: TestEnv, target: &'static str, provider: &str, version: &str, profile: &'static str) -> Self {
        let cloud = Self { test_env, target, profile };
        let test_env = &cloud.test_env;
        for path in module_files(target) {
            let text = fs_err::read_to_string(&path).unwrap();
            let text = text.replace("\"hashicorp/", "\"example.org/hashicorp/");
            let text = text.replace("output \"inventory\"", "output \"made\"");
            test_env.write(&format!("module/{}", path.file_name().unwrap().to_str().unwrap()), &text);
        }
        test_env.write("module/paper.tf", INVENTORY);
        mirror_stub(&test_env.path("mirror"), provider, version, &rules(test_env));
        use_module(test_env, &["phase2.api_port=6443", "phase1.terraform.provider_mirror=mirror"]);
        cloud.configure(&[]);
        cloud
    }

    fn settings(&self, values: &[&str]) -> Settings {
        let own = ["phase1.cluster_name=own", "phase2.api_port=6443"];
        settings_with(&profiles(self.target)[self.profile], &[&own, values].concat())
    }

    /// What the cloud's own configuration says from now on.
    fn configure(&self, values: &[&str]) {
        self.test_env.write("module/mine.auto.tfvars.json", &variables(&self.settings(values)).to_string());
    }

    /// The addresses in the state that have this word.
    fn made(&self, word: &str) -> Vec<String> {
        let state = fs_err::read_to_string(self.test_env.path(".turnup/own/provision/terraform.tfstate")).unwrap();
        let state: Value = serde_json::from_str(&state).unwrap();
        let mut found = Vec::new();
        for resource in state["resources"].as_array().unwrap() {
            for instance in resource["instances"].as_array().unwrap() {
                found.push(format!(
                    "{}.{}[{}]",
                    resource["type"].as_str().unwrap(),
                    resource["name"].as_str().unwrap(),
                    instance["index_key"]
                ));
            }
        }
        found.retain(|address| address.contains(word));
        found
    }
}

const GCE_DISKS: [&str; 3] = [
    "google_compute_disk.etcd[\"main-a\"]",
    "google_compute_disk.etcd[\"main-b\"]",
    "google_compute_disk.etcd[\"main-c\"]",
];

#[test]
fn an_apply_deletes_only_the_etcd_volumes_that_were_named() {
    each_program(|program| {
        takes_no_data(&CloudTestEnv::new(program.test_env(), "gce", "google", "8.0.0", "ha-private"));
    });
}

fn takes_no_data(cloud: &CloudTestEnv) {
    let test_env = &cloud.test_env;
    test_env.ok(&["provision"]);
    assert_eq!(cloud.made("google_compute_disk"), GCE_DISKS);
    let state = test_env.read(".turnup/own/provision/terraform.tfstate");

    // Another type, and smaller: the real provider would make other, empty disks.
    cloud.configure(&["phase1.gce.etcd_volume_type=pd-balanced", "phase1.etcd_volume.size_gb=10"]);
    let plan = test_env.ok(&["plan"]).out;
    assert!(plan.contains("-/+ resource google_compute_disk.etcd[\"main-a\"]"), "{plan}");
    assert!(plan.contains("! the data of etcd on it is lost: refused without --allow-volume-loss"), "{plan}");
    let refused = test_env.ends(4, &["provision"]).err;
    let told = refused[refused.find("error: ").unwrap()..].replace(&test_env.path("").display().to_string(), "[dir]/");
    insta::assert_snapshot!("replaced_volumes", told);
    assert_eq!(test_env.read(".turnup/own/provision/terraform.tfstate"), state, "nothing was applied");

    // Fewer hosts.
    cloud.configure(&["phase1.control_plane.count=1", "phase1.api.exposure=load-balancer"]);
    assert!(test_env.ok(&["plan"]).out.contains("-   resource google_compute_disk.etcd[\"main-c\"]"));
    let one = ["provision", "--allow-volume-loss", GCE_DISKS[1]];
    let refused = test_env.ends(4, &one).err;
    assert!(refused.contains("main-c") && refused.contains("phase1.control_plane.count"), "{refused}");
    assert!(!refused.contains("etcd[\"main-b\"] would be"), "this one was named: {refused}");
    assert_eq!(test_env.read(".turnup/own/provision/terraform.tfstate"), state, "nothing was applied");
    test_env.ok(&[&one[..], &["--allow-volume-loss", GCE_DISKS[2]]].concat());
    assert_eq!(cloud.made("google_compute_disk"), [GCE_DISKS[0]]);

    // Larger is no loss.
    cloud.configure(&[
        "phase1.control_plane.count=1",
        "phase1.api.exposure=load-balancer",
        "phase1.etcd_volume.size_gb=400",
    ]);
    let plan = test_env.ok(&["plan"]).out;
    assert!(
        plan.contains("~   resource google_compute_disk.etcd[\"main-a\"]") && !plan.contains("allow-volume-loss"),
        "{plan}"
    );
    test_env.ok(&["provision"]);
}

#[test]
fn a_volume_that_no_cloud_can_shrink_is_not_tried() {
    if !has_terraform() {
        return;
    }
    let cloud = CloudTestEnv::new(TestEnv::new(""), "aws", "aws", "6.0.0", "single");
    let test_env = &cloud.test_env;
    test_env.ok(&["provision"]);
    cloud.configure(&["phase1.etcd_volume.size_gb=10"]);
    let plan = test_env.ok(&["plan"]).out;
    assert!(plan.contains("~   resource aws_ebs_volume.etcd[\"main-a\"]"), "{plan}");
    assert!(plan.contains("! no cloud makes a disk smaller: refused"), "{plan}");
    for args in [&["provision"][..], &["provision", "--allow-volume-loss", "aws_ebs_volume.etcd[\"main-a\"]"]] {
        let refused = test_env.ends(4, args).err;
        assert!(refused.contains("volumes of etcd cannot be made smaller; nothing was applied"), "{refused}");
        assert!(refused.contains("next: turnup config set phase1.etcd_volume.size_gb=20 (as it was)"), "{refused}");
    }
}

/// A volume of a custom module; and a saved plan does not permit its loss.
#[test]
fn a_plan_that_was_looked_at_is_not_enough_to_lose_data() {
    if !has_terraform() {
        return;
    }
    let test_env = driver_custom::test_env();
    let module = test_env.read("module/main.tf");
    let since = |word: &str| {
        let resource = "resource \"terraform_data\" \"etcd_volume\" {";
        test_env.write(
            "module/main.tf",
            &module.replace(resource, &format!("{resource}\n  triggers_replace = \"{word}\"")),
        );
    };
    since("the first");
    test_env.ok(&["provision"]);
    since("another");
    test_env.ok(&["plan", "--out", "plan.json"]);
    assert!(test_env.read("plan.json").contains("the data of etcd on it is lost"));
    let refused = test_env.ends(4, &["up", "--plan", "plan.json"]).err;
    let volume = "terraform_data.etcd_volume[\"own-control-plane-0\"]";
    let why = format!("{volume} would be replaced by an empty one: triggers_replace \"the first\" -> \"another\"");
    assert!(refused.contains(&why), "{refused}");
    test_env.ok(&["provision", "--allow-volume-loss", volume]);
    assert!(test_env.ok(&["provision"]).err.contains("0 ran"));
}

/// Azure would delete the group with the volumes in it.
#[test]
fn a_volume_that_is_kept_keeps_the_group_that_it_is_in() {
    if !has_terraform() {
        return;
    }
    let group = "azurerm_resource_group.cluster[0]";
    for keep in [true, false] {
        let cloud = CloudTestEnv::new(TestEnv::new(""), "azure", "azurerm", "5.2.0", "single");
        let test_env = &cloud.test_env;
        test_env.ok(&["provision"]);
        if keep {
            test_env.ok(&["config", "set", "phase1.etcd_volume.keep=y"]);
        }
        // The cluster is gone: the operator confirms that it left no cloud resources that matter.
        test_env.write(".turnup/own/kubeconfig", "");
        let refused = test_env.ends(1, &["down", "--yes"]).err;
        assert!(refused.contains("the cluster cannot be asked what it made in its cloud or storage: "), "{refused}");
        assert!(refused.contains("turnup down --keep-cloud-resources"), "{refused}");
        let told = test_env.ok(&["down", "--yes", "--keep-cloud-resources"]).err;
        assert_eq!(told.contains(&format!("kept, no longer managed by turnup: {group} (stub-id-")), keep, "{told}");
        assert_eq!(
            told.contains("no longer managed by turnup: azurerm_managed_disk.etcd[\"main-a\"] (stub-id-"),
            keep,
            "{told}"
        );
        assert_eq!(told.contains(&format!("to be removed: {group}")), !keep, "{told}");
        assert_eq!(told.contains(&format!("{group}: delete")), !keep, "{told}");
        assert!(told.contains("azurerm_subnet.hosts: delete"), "all else goes: {told}");
    }
}

/// A module with one thing that its cloud protects.
fn protected_test_env(test_env: TestEnv, provider: &str, version: &str, resource: &str) -> TestEnv {
    mirror_stub(&test_env.path("mirror"), provider, version, &rules(&test_env));
    let source = format!("{{ source = \"example.org/hashicorp/{provider}\", version = \"{version}\" }}");
    let settings = format!("terraform {{\n  required_providers {{\n    {provider} = {source}\n  }}\n}}\n");
    let block = if provider == "azurerm" { "\n  features {}\n" } else { "" };
    let variable = "variable \"cluster\" {\n  type = object({ name = string, deletion_protection = bool })\n}\n";
    test_env.write(
        "module/main.tf",
        &format!("{settings}provider \"{provider}\" {{{block}}}\n{variable}{resource}\n{INVENTORY}"),
    );
    use_module(&test_env, &["phase1.terraform.provider_mirror=mirror", "phase1.deletion_protection=y"]);
    test_env.ok(&["provision"]);
    assert!(test_env.ends(3, &["down", "--yes"]).err.contains("protected from deletion"));
    test_env.ok(&["config", "set", "phase1.deletion_protection=n"]);
    test_env
}

const BALANCER: &str = r#"
resource "aws_lb" "api" {
  name                       = var.cluster.name
  enable_deletion_protection = var.cluster.deletion_protection
}
"#;

const LOCKED_DISK: &str = r#"
resource "azurerm_managed_disk" "etcd_volume" {
  name                 = var.cluster.name
  location             = "westeurope"
  resource_group_name  = "custom"
  create_option        = "Empty"
  disk_size_gb         = 20
  storage_account_type = "Premium_LRS"
}

resource "azurerm_management_lock" "etcd" {
  count      = var.cluster.deletion_protection ? 1 : 0
  name       = "etcd"
  scope      = azurerm_managed_disk.etcd_volume.id
  lock_level = "CanNotDelete"
}
"#;

/// `turnup down` lifts the cloud's deletion protection by itself.
#[test]
fn what_a_cloud_protects_is_let_go_before_it_is_destroyed() {
    each_program(is_let_go);
}

fn is_let_go(program: &Program) {
    let test_env = protected_test_env(program.test_env(), "aws", "6.0.0", BALANCER);
    assert!(test_env.ok(&["plan", "provision"]).out.starts_with("outside of turnup nothing was changed\n"));
    test_env.write("drift.json", &json!({"aws_lb": {"name": "another"}}).to_string());
    let drift = test_env.ok(&["plan", "provision"]).out;
    let told = "changed outside of turnup since the last apply:\n         ~   resource aws_lb.api\n               - name = \"own\"\n               + name = \"another\"\n";
    assert!(drift.starts_with(told), "{drift}");
    fs_err::remove_file(test_env.path("drift.json")).unwrap();
    let down = test_env.ok(&["down", "--yes"]).err;
    let lifted = down.find("aws_lb.api: update").unwrap();
    assert!(lifted < down.find("aws_lb.api: delete").unwrap(), "{down}");
    assert!(down.contains("lifting the protection of aws_lb.api"), "{down}");

    // Azure's locks hold for a while after they have gone: they go before anything else is tried.
    let test_env = protected_test_env(program.test_env(), "azurerm", "5.2.0", LOCKED_DISK);
    let down = test_env.ok(&["down", "--yes"]).err;
    let lifted = down.find("azurerm_management_lock.etcd[0]: delete").unwrap();
    assert!(lifted < down.find("azurerm_managed_disk.etcd_volume: delete").unwrap(), "{down}");
    assert!(down.contains("lifting the protection of azurerm_management_lock.etcd[0]"), "{down}");
}

#[test]
fn what_the_module_itself_protects_is_not_half_destroyed() {
    if !has_terraform() {
        return;
    }
    let test_env = protected_test_env(
        TestEnv::new(""),
        "aws",
        "6.0.0",
        &BALANCER.replace("var.cluster.deletion_protection", "true"),
    );
    let state = test_env.read(".turnup/own/provision/terraform.tfstate");
    let resources = |text: &str| serde_json::from_str::<Value>(text).unwrap()["resources"].clone();
    let refused = test_env.ends(4, &["down", "--yes"]).err;
    assert!(
        refused.contains("the module keeps protecting what is to be deleted; nothing was deleted\n  | aws_lb.api\n"),
        "{refused}"
    );
    assert_eq!(resources(&test_env.read(".turnup/own/provision/terraform.tfstate")), resources(&state));
    // Follows the advice of the refusal.
    let module = test_env.read("module/main.tf");
    test_env.write("module/main.tf", &module.replace("= true", "= var.cluster.deletion_protection"));
    test_env.ok(&["provision"]);
    test_env.ok(&["down", "--yes"]);
}
