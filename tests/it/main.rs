//! The one integration crate: one link, shared ways to start things. A file `tests/it/x.rs` is a
//! module here.

mod artifacts_build;
mod artifacts_cache;
mod artifacts_image;
mod artifacts_lock;
mod artifacts_mirror;
mod artifacts_root;
mod artifacts_settings;
mod artifacts_support;
#[cfg(feature = "test-fakes")]
mod backup_cli;
mod balancer;
#[cfg(feature = "test-fakes")]
mod bare_hosts;
mod bench_cli;
mod cis;
mod cis_rules;
mod cli_json;
mod cli_status;
mod cli_support;
mod cloud_azure;
mod cloud_dual;
mod cloud_emulators;
mod cloud_emulators_state;
mod cloud_machine;
mod cloud_modules;
mod cloud_promises;
mod cloud_provision;
mod cloud_support;
mod cluster_addon_manager;
mod cluster_addons;
mod cluster_agent;
mod cluster_assets;
mod cluster_backup;
mod cluster_bare;
mod cluster_bench;
mod cluster_certificates;
mod cluster_cis;
mod cluster_cloud;
#[cfg(feature = "failpoints")]
mod cluster_crash;
mod cluster_disk;
mod cluster_dns;
mod cluster_exporters;
mod cluster_faults;
mod cluster_firewall;
mod cluster_gates;
mod cluster_gateway;
mod cluster_ha;
mod cluster_heal;
mod cluster_identity;
mod cluster_kernel;
mod cluster_kubelets;
mod cluster_lent;
mod cluster_life;
mod cluster_logs;
mod cluster_machines;
mod cluster_manifests;
mod cluster_members;
mod cluster_metrics;
mod cluster_names;
mod cluster_orphan;
mod cluster_places;
mod cluster_policies;
mod cluster_power;
mod cluster_quota;
mod cluster_random;
mod cluster_renew;
mod cluster_renewal;
mod cluster_replaced;
mod cluster_reset;
mod cluster_restore;
mod cluster_rotate;
mod cluster_rotate_kills;
mod cluster_settings;
mod cluster_snapshots;
mod cluster_static;
mod cluster_status;
mod cluster_storage;
mod cluster_support;
mod cluster_systems;
mod cluster_traefik;
mod cluster_upgrade;
mod cluster_upgrade_skew;
mod cluster_webhooks;
mod completions;
mod component_reference;
mod config_agree;
mod config_cli;
mod config_explain;
mod config_mistakes;
mod config_poison;
mod config_reach;
mod config_schema;
#[cfg(feature = "failpoints")]
mod crash_chain;
#[cfg(feature = "failpoints")]
mod crash_picture;
mod dns_annotations;
mod dns_names;
mod dns_support;
mod documents;
mod down_snapshots;
mod driver_custom;
mod driver_state;
mod driver_volumes;
#[cfg(all(feature = "test-fakes", feature = "failpoints"))]
mod engine_crash;
mod engine_doctor;
#[cfg(all(feature = "test-fakes", feature = "failpoints"))]
mod engine_lock;
mod engine_phase;
mod engine_plan;
mod engine_run;
#[cfg(all(feature = "test-fakes", feature = "failpoints"))]
mod engine_signals;
mod engine_ssh;
mod engine_state;
mod engine_steps;
mod etcd_outage;
#[cfg(feature = "test-fakes")]
mod exec_cli;
mod fault_cluster;
#[cfg(feature = "test-fakes")]
mod fault_hosts;
#[cfg(feature = "test-fakes")]
mod fault_machine;
#[cfg(feature = "test-fakes")]
mod fault_matrix;
#[cfg(feature = "test-fakes")]
mod fault_root;
mod firewall_rules;
mod glossary;
mod go_program;
mod healthcheck;
mod history;
mod hostile_inputs;
#[cfg(feature = "test-fakes")]
mod hostile_output;
mod http_server;
mod input_owners;
mod inventory_cli;
mod kconfig_cli;
#[cfg(feature = "test-fakes")]
mod keyset_cli;
#[cfg(feature = "test-fakes")]
mod kubeconfig_cli;
#[cfg(feature = "test-fakes")]
mod modes;
mod plan_unknown;
mod prober;
mod redaction;
mod reference;
#[cfg(all(feature = "test-fakes", feature = "failpoints"))]
mod report_bars;
#[cfg(all(feature = "test-fakes", feature = "failpoints"))]
mod report_events;
mod report_logs;
#[cfg(feature = "test-fakes")]
mod restore_cli;
mod settings_elsewhere;
mod settings_flipped;
mod settings_places;
#[cfg(feature = "test-fakes")]
#[path = "../fakes/simulation.rs"]
mod simulation;
mod skip;
mod state_server;
mod tidy;
mod tidy_circles;
mod tidy_files;
mod user_data_boot;
mod user_data_schema;
mod wizard_cli;
mod wizard_guide;
mod wizard_pty;
mod wizard_tmux;

/// From now on a failure is also reported when it happens: output that stops early, or is kept in
/// part, has it as well.
pub(crate) fn tell_failures_at_once() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let told = info.to_string();
            let lines: Vec<&str> = told.lines().collect();
            let (first, rest) = lines.split_at(1.min(lines.len()));
            for line in first.iter().chain(&rest[rest.len().saturating_sub(20)..]) {
                cluster_support::say(&format!("failed: {}", line.chars().take(300).collect::<String>()));
            }
            usual(info);
        }));
    });
}

/// Waits until no other test has real hosts, also one of another checkout on this machine: their
/// subnets are the same. Only tests that the Makefile starts with `HOSTS` may: another one would
/// stand in the way of all that run beside those.
#[expect(clippy::expect_used, reason = "a test that panics has failed")]
pub(crate) fn take_turn() -> fs_err::File {
    let makefile = include_str!("../../Makefile");
    let hosts =
        makefile.lines().find_map(|line| line.strip_prefix("HOSTS := ")).expect("a list of names in the Makefile");
    let thread = std::thread::current();
    let test = thread.name().filter(|name| name.contains("::")).unwrap_or_default();
    let is_named = test.is_empty() || hosts.split_whitespace().any(|word| test.contains(word));
    assert!(is_named, "{test} takes turns with hosts: name it in the Makefile's HOSTS");
    let turn =
        fs_err::OpenOptions::new().create(true).append(true).open("/tmp/turnup-it.lock").expect("a file in /tmp");
    turn.file().lock().expect("a lock");
    turn
}
