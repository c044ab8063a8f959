//! A configuration for other programs. Secrets are left out of every form.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::Settings;

/// The form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A .config as kubernetes-anywhere had it: menus as comments, names behind a dot
    Dotconfig,
    /// Variables `TURNUP_SET_…` for a shell
    Env,
    /// JSON for terraform.tfvars.json: one variable `cluster`
    Tfvars,
}

impl Settings {
    /// All values in force in this form, with how many secrets were left out.
    #[must_use]
    pub fn export(&self, form: ExportFormat) -> (String, usize) {
        let all: Vec<_> = self.list().iter().filter(|setting| setting.written).collect();
        let secrets = all.iter().filter(|setting| setting.secret).count();
        let open = all.into_iter().filter(|setting| !setting.secret);
        let text = match form {
            ExportFormat::Dotconfig => {
                let is_open = |symbol| !self.schema().rule(symbol).secret;
                kconfig::dotconfig::write_without_ends(&self.config(), ".", &is_open)
            }
            ExportFormat::Env => open.fold(String::new(), |text, setting| {
                let (name, value) = (setting.name.replace('.', "__"), shell_words::quote(&setting.value));
                text + "export TURNUP_SET_" + &name + "=" + &value + "\n"
            }),
            ExportFormat::Tfvars => {
                let mut object = self.json().clone();
                for secret in self.list().iter().filter(|setting| setting.secret) {
                    remove(&mut object, &secret.name);
                }
                format!("{:#}\n", json!({ "cluster": object }))
            }
        };
        (text, secrets)
    }
}

fn remove(object: &mut Value, name: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match name.split_once('.') {
        None => {
            members.shift_remove(name);
        }
        Some((outer, rest)) => {
            if let Some(inner) = members.get_mut(outer) {
                remove(inner, rest);
            }
        }
    }
}
