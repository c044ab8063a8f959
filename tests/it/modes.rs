//! What turnup and the programs that it runs leave in `.turnup` is its user's alone, whatever the
//! umask: every file 0600, every directory
//! 0700. The hosts and tools are made up, but for Terraform where it is here.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::simulation::Simulation;

const UMASKS: [&str; 3] = ["000", "022", "077"];

/// Every entry below a directory, itself included, with its mode. A link has none.
fn modes(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
    let metadata = fs_err::symlink_metadata(path).unwrap();
    if metadata.is_symlink() {
        return;
    }
    found.push((path.to_owned(), metadata.permissions().mode() & 0o7777));
    if metadata.is_dir() {
        for entry in fs_err::read_dir(path).unwrap() {
            modes(&entry.unwrap().path(), found);
        }
    }
}

/// Fails with everything below it that another user could read or change; returns how many files
/// there are.
pub(crate) fn all_private(dir: &Path) -> usize {
    let mut found = Vec::new();
    modes(dir, &mut found);
    let open: Vec<String> = found
        .iter()
        .filter(|(path, mode)| *mode != if path.is_dir() { 0o700 } else { 0o600 })
        .map(|(path, mode)| format!("{mode:04o} {}", path.strip_prefix(dir).unwrap().display()))
        .collect();
    assert!(open.is_empty(), "{}: {open:#?}", dir.display());
    found.len()
}

/// Through a shell with this umask: the program itself has no option for it.
fn with_umask(umask: &str) -> Vec<String> {
    ["sh", "-c", &format!("umask {umask} && exec \"$@\""), "sh"].map(str::to_owned).into()
}

#[test]
fn a_whole_run_leaves_nothing_for_others_to_read_under_any_umask() {
    for umask in UMASKS {
        let mut simulation = Simulation::new(2);
        let module = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/custom/main.tf");
        fs_err::create_dir(simulation.path("work/module")).unwrap();
        fs_err::copy(module, simulation.path("work/module/main.tf")).unwrap();
        simulation.ok(&["config", "set", "phase1.cloud_provider=custom", "phase1.custom.module=module"]);
        simulation.wrapper = with_umask(umask);
        simulation.ok(&["up"]);
        simulation.ok(&["support-bundle", "--to", "bundle.tar.gz"]);
        simulation.ok(&["kubeconfig"]);
        for file in ["provision/terraform.tfstate", "provision/terraform.tfstate.backup", "provision/turnup.tfplan"] {
            assert!(simulation.state(file).is_file(), "{file} is part of the test");
        }
        assert!(all_private(&simulation.path("work/.turnup")) > 60, "umask {umask}");
        assert_eq!(
            fs_err::metadata(simulation.path("work/bundle.tar.gz")).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[test]
fn open_modes_are_closed_by_the_next_command_that_works_on_the_cluster() {
    let simulation = Simulation::new(1);
    simulation.ok(&["up"]);
    let status = simulation.shell("chmod -R a+rX .turnup").status().unwrap();
    assert!(status.success());
    simulation.ok(&["kubeconfig"]);
    // The directory of all clusters is shared.
    all_private(&simulation.state(""));
}

#[test]
fn terraform_itself_leaves_nothing_for_others_to_read() {
    if !crate::driver_custom::has_terraform() {
        return;
    }
    for umask in UMASKS {
        let test_env = crate::driver_custom::test_env();
        let wrapper = with_umask(umask);
        let turnup = test_env.command(&["provision"]);
        let mut command = assert_cmd::Command::new(&wrapper[0]);
        command.args(&wrapper[1..]).arg(turnup.get_program()).args(turnup.get_args()).current_dir(test_env.dir.path());
        command.env_clear().env("HOME", test_env.dir.path());
        let done = crate::cli_support::finish(&mut command);
        assert_eq!(done.code, 0, "{}", json!([done.out, done.err]));
        let state = test_env.path(".turnup/own/provision/terraform.tfstate");
        assert!(state.is_file());
        all_private(&test_env.path(".turnup"));
    }
}
