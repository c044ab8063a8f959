//! The step `user-data` of the provision phase: what hosts are told at their first boot is a file before Terraform hands it to a cloud.
//!
//! The file holds what the cluster has one of for ever, its authority and the groups' tokens, which this step makes where they are
//! missing. Where the API server will be is left open in it. It asks no host and no cloud; whether the place that hosts fetch from has what they
//! are told to fetch, it looks at before Terraform makes one that would wait for it in vain.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::artifacts::{Lock, Obtained};
use crate::change;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::phase::{Action, Cx, Inputs, Phase, Proof};
use crate::provision::{self, Orders, Role};
use crate::state::Store;

use super::super::membership;
use super::super::outfit::Group;
use super::{API_HOST, Pass, groups, image_facts, render, render_with, source};

/// The provision phase with nothing ordered beside the configuration.
pub fn provision_phase(cluster: &Arc<Cluster>) -> Result<Phase> {
    ordered_provision_phase(cluster, &Orders::default())
}

/// The provision phase; with this step where hosts get user data. Hosts that it takes away leave etcd first.
pub fn ordered_provision_phase(cluster: &Arc<Cluster>, orders: &Orders) -> Result<Phase> {
    let phase = provision::phase(cluster, orders, membership::take_leave)?;
    let is_cloud = cluster.settings.cloud.is_some();
    Ok(if is_cloud { phase.with("user-data", UserData(Arc::clone(cluster))) } else { phase })
}

/// The files in an imagined directory; what is known of the authority and the tokens is taken over. Whether something else stands in for
/// any of these, which nobody sees: it is packed.
pub fn forecast(cluster: &Cluster, real: &Store) -> Result<bool> {
    if cluster.settings.cloud.is_none() {
        return Ok(false);
    }
    let mut has_blanks = false;
    provision::forecast_key(cluster, real)?;
    for group in groups(cluster)? {
        let known = Pass::find(real, &group)?;
        has_blanks |= known.is_none() && group.role == Role::Worker;
        let pass = known.or_else(|| Pass::blank(&group));
        let text = render_with(cluster, &pinned(cluster)?, &image_facts(), &group, API_HOST, pass.as_ref())?;
        cluster.store.write_file(file_of(cluster, &group), text.as_bytes(), 0o600)?;
    }
    Ok(has_blanks)
}

fn file_of(cluster: &Cluster, group: &Group) -> String {
    cluster.settings.user_data.form.file_of(&group.name)
}

/// What the lock file pins; nothing needs to be here for hosts to fetch it.
fn pinned(cluster: &Cluster) -> Result<Obtained> {
    let selection = Lock::load(&cluster.work_dir)?.select(&cluster.settings.kubernetes_version)?;
    Ok(Obtained::pinned(&selection))
}

/// With nothing in it that only a run makes.
fn render_blank(cluster: &Cluster, group: &Group) -> Result<Zeroizing<String>> {
    render_with(cluster, &pinned(cluster)?, &image_facts(), group, API_HOST, Pass::blank(group).as_ref())
}

/// With what is there; none where something is missing that only a run makes.
fn render_known(cluster: &Cluster, group: &Group) -> Result<Option<Zeroizing<String>>> {
    let pass = Pass::find(&cluster.store, group)?;
    let is_unknown = cluster.authorized_keys()?.iter().any(|key| change::is_unknown(key));
    if is_unknown || pass.is_none() && group.role == Role::Worker {
        return Ok(None);
    }
    render_with(cluster, &pinned(cluster)?, &image_facts(), group, API_HOST, pass.as_ref()).map(Some)
}

struct UserData(Arc<Cluster>);

impl Action for UserData {
    fn inputs(&self, _host: Option<&str>) -> Result<Inputs> {
        let mut inputs = Inputs::new();
        for group in groups(&self.0)? {
            let name = format!("user data of the group {}", group.name);
            match self.0.authorized_keys()?.iter().find(|key| change::is_unknown(key)) {
                Some(unknown) => inputs.insert(name, unknown),
                None => inputs.insert(name, render_blank(&self.0, &group)?.as_bytes()),
            }
        }
        Ok(inputs)
    }

    fn verify(&self, _host: Option<&str>) -> Result<Proof> {
        for group in groups(&self.0)? {
            let file = file_of(&self.0, &group);
            let expected = render_known(&self.0, &group)?;
            if expected.is_none() || self.0.store.read(&file)?.as_deref() != expected.as_deref().map(String::as_bytes) {
                return Ok(Proof::Gone(format!("{file} is missing, or was changed")));
            }
        }
        Ok(Proof::Holds)
    }

    fn run(&self, _host: Option<&str>, cx: &Cx) -> Result<()> {
        let cluster = &self.0;
        let artifacts = pinned(cluster)?;
        for group in groups(cluster)? {
            let text = render(cluster, &artifacts, &image_facts(), &group, API_HOST)?;
            cluster.store.write_file(file_of(cluster, &group), text.as_bytes(), 0o600)?;
            cx.progress(format!("{}: {} bytes", group.name, text.len()));
        }
        source::require_all(cluster, &artifacts, cx)
    }

    fn foresee(&self, _host: Option<&str>) -> Result<bool> {
        for group in groups(&self.0)? {
            let mark = || Zeroizing::new(change::known_after("provision/user-data"));
            let text = render_known(&self.0, &group)?.unwrap_or_else(mark);
            self.0.store.write_file(file_of(&self.0, &group), text.as_bytes(), 0o600)?;
        }
        Ok(true)
    }
}
