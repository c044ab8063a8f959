//! A step that a user added: a command of their own in `phase.toml`.

use std::path::{Path, PathBuf};

use super::manifest::unknown;
use super::{Action, Cx, Inputs, Phase, Proof, Step};
use crate::change::{Change, Preview, Verb};
use crate::{Error, Result};

/// The command, and what it depends on.
pub(super) struct CustomCommand {
    argv: Vec<String>,
    inputs: Inputs,
    work_dir: PathBuf,
    cluster_dir: PathBuf,
}

impl CustomCommand {
    pub(super) fn new(phase: &Phase, step: &Step, cluster_dir: &Path) -> Result<Self> {
        let mut inputs = Inputs::new().with("run", shell_words::join(&step.run));
        for path in &step.inputs {
            let below = format!("{path}.");
            let known = phase.settings.fingerprints();
            let found: Vec<_> = known.iter().filter(|(name, _)| *name == path || name.starts_with(&below)).collect();
            if found.is_empty() {
                let what = unknown("configuration path", path, known.keys().map(String::as_str));
                return Err(Error::config(format!("step `{}/{}`: {what}", phase.name, step.name)));
            }
            inputs.extend(found);
        }
        Ok(Self { argv: step.run.clone(), inputs, work_dir: phase.work_dir.clone(), cluster_dir: cluster_dir.into() })
    }
}

impl Action for CustomCommand {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let mut inputs = self.inputs.clone();
        // A script of the user's own: another content is another command.
        for word in self.argv.iter().filter(|word| word.contains('/')) {
            let path = self.work_dir.join(word);
            if path.is_file() {
                inputs.insert(format!("file {word}"), fs_err::read(path)?);
            }
        }
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        // The engine cannot know what somebody else's command makes; its inputs are all that counts.
        Ok(Proof::Holds)
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        Ok(vec![Change::new(Verb::Run, "command", shell_words::join(&self.argv))].into())
    }

    fn run(&self, host: Option<&str>, cx: &Cx) -> Result<()> {
        let Some((program, arguments)) = self.argv.split_first() else { return Ok(()) };
        let run = cx.command(program).args(arguments).dir(&self.work_dir);
        run.env("TURNUP_CLUSTER_DIR", &self.cluster_dir)
            .env("TURNUP_HOST", host.unwrap_or_default())
            .succeed()
            .map(drop)
    }
}
