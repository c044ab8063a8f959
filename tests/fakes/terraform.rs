//! A terraform that makes nothing: it plans one resource, writes a state file, and outputs the
//! simulated inventory. The script has its faults.

mod world;

use std::process::ExitCode;

use serde_json::{Value, json};
use world::{World, fail, say};

const STATE: &str = "terraform.tfstate";

fn main() -> ExitCode {
    let world = World::find();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(end) = world.trouble("terraform", &words.join(" ")).and_then(|trouble| trouble.play()) {
        return end;
    }
    let hook = json!({"resource": {"addr": "terraform_data.host[\"simulated\"]"}, "action": "create"});
    let is_made = std::path::Path::new(STATE).exists();
    match words.first().map_or("", String::as_str) {
        "version" => say("{\"terraform_version\": \"1.14.0\"}\n"),
        // The output of `state pull`; empty before there is a state.
        "state" if is_made => say(
            r#"{"version": 4, "resources": [{"mode": "managed", "type": "terraform_data", "name": "host", "instances": [{"index_key": "simulated"}]}]}"#,
        ),
        "init" | "state" => {}
        "plan" => {
            // With the modes of the real one: 0666 minus the umask.
            words
                .iter()
                .filter_map(|word| word.strip_prefix("-out="))
                .for_each(|file| drop(fs_err::write(file, "plan")));
            if !is_made {
                say(&format!("{}\n", json!({"type": "planned_change", "change": hook})));
            }
        }
        "apply" => {
            say(&format!("{}\n", json!({"type": "apply_start", "hook": hook})));
            drop(fs_err::write(format!("{STATE}.backup"), "{}\n"));
            drop(fs_err::create_dir_all(".terraform"));
            drop(fs_err::write(STATE, "{\"version\": 4}\n"));
            say(&format!("{}\n", json!({"type": "apply_complete", "hook": hook})));
        }
        "destroy" => drop(fs_err::remove_file(STATE)),
        "output" => {
            let inventory: Value = world.json("inventory.json").unwrap_or_default();
            say(&json!({"inventory": {"value": inventory}}).to_string());
        }
        other => return fail(&format!("Terraform has no command named {other:?}."), 1),
    }
    ExitCode::SUCCESS
}
