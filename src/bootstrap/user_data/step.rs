//! The step `user-data` of the provision phase: what hosts are told at their first boot is a file
//! before Terraform hands it to a cloud.
//!
//! Where the API server will be and the group's join token are left open in it, so that another
//! token is another launch template and no other machine. The token lies beside it. This step makes
//! the cluster's authority where it is missing, and the next token when the current one has less
//! than a third of its life left; the API of a cluster that runs knows it before any machine has
//! it. Groups whose hosts join by their cloud's word have no token. It asks no host and no cloud;
//! whether the place that hosts fetch from has what they are told to fetch, it checks before
//! Terraform makes a host that would wait for it.

use std::sync::Arc;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::artifacts::ResolvedArtifacts;
use crate::change::{Change, Preview, Verb};
use crate::cluster::Cluster;
use crate::error::Result;
use crate::inventory::Role;
use crate::phase::{Action, Check, Cx, Inputs, Phase};
use crate::provision::step_ids::USER_DATA;
use crate::provision::{self, Hooks, RunOptions};
use crate::unknown;

use super::super::api::KUBECONFIG;
use super::super::api::kubectl;
use super::super::credentials::write_kubeconfig;
use super::super::etcd_step;
use super::super::group_tokens::{self, GroupTokens};
use super::super::groups::{groups, joins_by_identity};
use super::super::node_target::Group;
use super::super::steps::expected_artifacts;
use super::super::template_id;
use super::{GroupUserData, JoinParams, find_authority, machine_facts, render_group, render_with, source};

/// The provision phase with nothing ordered beside the configuration.
pub fn provision_phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    provision_phase_with(cluster, &RunOptions::default())
}

/// The provision phase as far as it tells which hosts there are: without what they are told at
/// their first boot.
pub fn hosts_phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    let hooks = Hooks { add_user_data: |phase, _| phase, before_host_removal: etcd_step::before_host_removal };
    provision::phase(cluster, &RunOptions::default(), hooks)
}

/// The provision phase. Hosts that it takes away leave etcd first.
pub fn provision_phase_with(cluster: &Arc<Cluster>, options: &RunOptions) -> Result<Phase> {
    let hooks = Hooks {
        add_user_data: |phase, cluster| phase.with("user-data", UserData(Arc::clone(cluster))),
        before_host_removal: etcd_step::before_host_removal,
    };
    provision::phase(cluster, options, hooks)
}

fn file_of(cluster: &Cluster, group: &Group) -> String {
    cluster.settings.user_data.form.file_of(&group.name)
}

/// The files of a group with their texts: the template id comes last, so that no one is there
/// without its user data.
fn written<'m>(cluster: &Cluster, group: &Group, made: &'m GroupUserData) -> Vec<(String, &'m str)> {
    let template = (group.role == Role::Worker).then(|| (template_id::file_of(&group.name), made.template.as_str()));
    [(file_of(cluster, group), made.text.as_str())].into_iter().chain(template).collect()
}

fn write(cluster: &Cluster, group: &Group, made: &GroupUserData) -> Result<()> {
    let files = written(cluster, group, made);
    files.into_iter().try_for_each(|(file, text)| cluster.store.write_file(file, text.as_bytes(), 0o600))
}

/// With this authority, from what is there or expected of everything else.
fn render_expected(cluster: &Cluster, group: &Group, authority: &str) -> Result<GroupUserData> {
    let artifacts = expected_artifacts(cluster)?;
    render_with(cluster, &artifacts, &machine_facts(cluster)?, group, JoinParams::placeholders(cluster), authority)
}

/// Whether the hosts of the group join with a token.
fn has_token(cluster: &Cluster, group: &Group) -> Result<bool> {
    Ok(group.role == Role::Worker && !joins_by_identity(cluster, &group.name)?)
}

/// A token of this group that is left from before its hosts joined by their cloud's word.
fn has_left_token(cluster: &Cluster, group: &Group) -> Result<bool> {
    Ok(joins_by_identity(cluster, &group.name)?
        && (group_tokens::find(&cluster.store, &group.name)?.is_some()
            || cluster.store.read(provision::token_file(&group.name))?.is_some()))
}

/// The tokens of a group of workers; none where the next one is due, or there is none at all.
fn find_fresh(cluster: &Cluster, group: &Group) -> Result<Option<GroupTokens>> {
    let life = cluster.settings.user_data.token_lifetime;
    let tokens = group_tokens::find(&cluster.store, &group.name)?;
    Ok(tokens.filter(|tokens| !tokens.is_due(life, Timestamp::now()) && tokens.name_prefix() == group.name_prefix))
}

/// Makes the API know these tokens, where there is one already: a machine that has a token joins at
/// once.
fn publish(cluster: &Cluster, group: &Group, tokens: &GroupTokens) -> Result<()> {
    let is_up = cluster.store.read(KUBECONFIG)?.is_some() && cluster.store.read(ResolvedArtifacts::FILE)?.is_some();
    let Some(inventory) = cluster.find_inventory()?.filter(|_| is_up) else { return Ok(()) };
    // The one that is there may have ended.
    write_kubeconfig(cluster, &inventory)?;
    group_tokens::register(&kubectl(cluster)?, &group.name, Some(tokens))
}

struct UserData(Arc<Cluster>);

impl UserData {
    /// Writes the token that new hosts of the group are given to where Terraform's variables take
    /// it from.
    fn ensure_token(&self, group: &Group, cx: &Cx) -> Result<()> {
        let (cluster, life) = (&self.0, self.0.settings.user_data.token_lifetime);
        let names = (group.name.as_str(), group.name_prefix.as_str());
        let publish = |tokens: &GroupTokens| publish(cluster, group, tokens);
        let (tokens, failure) = group_tokens::ensure(&cluster.store, names, life, publish)?;
        if let Some(error) = failure {
            let why = error.message();
            cx.progress(format!("{}: the API cannot be told of the next join token: {why}", group.name));
        }
        cluster.store.write_file(provision::token_file(&group.name), tokens.current().as_bytes(), 0o600)
    }
}

impl Action for UserData {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let mut inputs = Inputs::new();
        for group in groups(&self.0)? {
            let name = format!("user data of the group {}", group.name);
            // Without the authority, which only a run makes.
            inputs.insert(name, render_expected(&self.0, &group, "")?.text.as_bytes());
        }
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Check> {
        for group in groups(&self.0)? {
            let file = file_of(&self.0, &group);
            let authority = find_authority(&self.0.store)?;
            let expected = authority.map(|authority| render_expected(&self.0, &group, &authority)).transpose()?;
            let Some(expected) = expected else {
                return Ok(Check::Drifted(format!("{file} is missing, or was changed")));
            };
            for (file, text) in written(&self.0, &group, &expected) {
                if self.0.store.read(&file)?.as_deref() != Some(text.as_bytes()) {
                    return Ok(Check::Drifted(format!("{file} is missing, or was changed")));
                }
            }
            if has_left_token(&self.0, &group)? {
                return Ok(Check::Drifted(format!("the group {} has a join token left", group.name)));
            }
            if !has_token(&self.0, &group)? {
                continue;
            }
            let Some(tokens) = find_fresh(&self.0, &group)? else {
                return Ok(Check::Drifted(format!("the next join token of the group {} is due", group.name)));
            };
            if self.0.store.read(provision::token_file(&group.name))?.as_deref() != Some(tokens.current().as_bytes()) {
                return Ok(Check::Drifted(format!(
                    "{} is missing, or was changed",
                    provision::token_file(&group.name)
                )));
            }
        }
        Ok(Check::Ok)
    }

    fn preview(&self, _host: Option<&str>) -> Result<Preview> {
        let mut changes = Vec::new();
        for group in groups(&self.0)?.into_iter().filter(|group| group.role == Role::Worker) {
            if !has_token(&self.0, &group)? {
                if has_left_token(&self.0, &group)? {
                    let line = "machines stay; new ones join by their cloud's word".to_owned();
                    changes.push(Change::new(Verb::Delete, "join token", &group.name).with_lines(vec![line]));
                }
                continue;
            }
            if find_fresh(&self.0, &group)?.is_some() {
                continue;
            }
            let known = group_tokens::find(&self.0.store, &group.name)?.and_then(|tokens| tokens.summary());
            let verb = if known.is_some() { Verb::Replace } else { Verb::Create };
            let until = known.map(|known| known.expires.strftime("%Y-%m-%d").to_string());
            let line = |until: String| format!("machines stay, and hosts with the old one may join until {until}");
            changes
                .push(Change::new(verb, "join token", &group.name).with_lines(until.into_iter().map(line).collect()));
        }
        Ok(changes.into())
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0;
        let artifacts = expected_artifacts(cluster)?;
        for group in groups(cluster)? {
            let made =
                render_group(cluster, &artifacts, &machine_facts(cluster)?, &group, JoinParams::placeholders(cluster))?;
            write(cluster, &group, &made)?;
            if has_token(cluster, &group)? {
                self.ensure_token(&group, cx)?;
            } else if group.role == Role::Worker {
                group_tokens::forget(&cluster.store, &group.name)?;
                cluster.store.remove(provision::token_file(&group.name))?;
            }
            cx.progress(format!("{}: {} bytes", group.name, made.text.len()));
        }
        // This machine serves its own hosts, once there are any.
        if cluster.settings.local_hosts.replaces_hosts { Ok(()) } else { source::require_all(cluster, &artifacts, cx) }
    }

    fn simulate(&self, _host: Option<&str>) -> Result<bool> {
        let placeholder = || unknown::after(&USER_DATA);
        for group in groups(&self.0)? {
            let authority = find_authority(&self.0.store)?.unwrap_or_else(placeholder);
            write(&self.0, &group, &render_expected(&self.0, &group, &authority)?)?;
            if has_token(&self.0, &group)? {
                let token = find_fresh(&self.0, &group)?.map_or_else(placeholder, |tokens| tokens.current().to_owned());
                self.0.store.write_file(provision::token_file(&group.name), Zeroizing::new(token).as_bytes(), 0o600)?;
            }
        }
        Ok(true)
    }
}
