//! The milestones that both sides pass, and when. Pure: events and lines go in, seconds come out.

use std::collections::BTreeMap;

use crate::phase::{Event, What};

/// The milestones of a turn-up, in the order in which they are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Milestone {
    /// All certificates and keys are there.
    Certificates,
    /// etcd answers on its health URL.
    Etcd,
    /// The API server answers.
    Api,
    /// The Node objects are there, with their roles.
    Registered,
    /// All nodes are Ready.
    Ready,
    /// The Deployment of `CoreDNS` is rolled out.
    Dns,
    /// A pod has asked the cluster's DNS for a Service and got an answer.
    Answer,
}

impl Milestone {
    /// All, in their order.
    pub(crate) const ALL: [Self; 7] =
        [Self::Certificates, Self::Etcd, Self::Api, Self::Registered, Self::Ready, Self::Dns, Self::Answer];

    /// Its name in tables, events and JSON.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Certificates => "certificates",
            Self::Etcd => "etcd healthy",
            Self::Api => "API server ready",
            Self::Registered => "node registered",
            Self::Ready => "node Ready",
            Self::Dns => "CoreDNS ready",
            Self::Answer => "first pod answers DNS",
        }
    }

    /// The milestone that an event names; those of nodes carry the node's name.
    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if let Some(node) = name.strip_prefix("node ") {
            return match node.rsplit_once(' ') {
                Some((_, "registered")) => Some(Self::Registered),
                Some((_, "Ready")) => Some(Self::Ready),
                _ => None,
            };
        }
        Self::ALL.into_iter().find(|milestone| milestone.name() == name)
    }
}

/// Seconds to each milestone.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times(BTreeMap<Milestone, f64>);

impl Times {
    /// The milestones among these events, counted from `zero`. What happens once a node has
    /// happened when the last node is there.
    #[must_use]
    pub(crate) fn read<'e>(events: impl IntoIterator<Item = &'e Event>, zero: f64) -> Self {
        let mut times = BTreeMap::new();
        for event in events {
            if let What::Milestone { name, .. } = &event.event
                && let Some(milestone) = Milestone::parse(name)
            {
                let seconds = (event.seconds - zero).max(0.0);
                times.entry(milestone).and_modify(|last: &mut f64| *last = last.max(seconds)).or_insert(seconds);
            }
        }
        Self(times)
    }

    /// Seconds to one milestone, when it was passed.
    #[must_use]
    pub(crate) fn get(&self, milestone: Milestone) -> Option<f64> {
        self.0.get(&milestone).copied()
    }
}

/// When a phase ended in this stream.
pub(super) fn end_of_phase(events: &[Event], wanted: &str) -> Option<f64> {
    let is_end = |what: &What| matches!(what, What::PhaseDone { phase, .. } if phase == wanted);
    events.iter().find(|event| is_end(&event.event)).map(|event| event.seconds)
}

/// The milestone that a line of `kubeadm init` stands for. kubeadm says what it begins, so the end
/// of the certificates is the first line about kubeconfigs, and the node has its role when the next
/// thing after the labels begins.
pub(super) fn of_kubeadm(line: &str) -> Option<Milestone> {
    if line.starts_with("[kubeconfig]") {
        return Some(Milestone::Certificates);
    }
    if line.starts_with("[control-plane-check] kube-apiserver is healthy") {
        return Some(Milestone::Api);
    }
    line.starts_with("[bootstrap-token]").then_some(Milestone::Registered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(seconds: f64, name: &str) -> Event {
        Event { seconds, event: What::Milestone { step: "s".into(), name: name.into() } }
    }

    #[test]
    fn every_name_is_read_back_and_a_node_may_be_called_anything() {
        for milestone in [Milestone::Certificates, Milestone::Etcd, Milestone::Api, Milestone::Dns, Milestone::Answer] {
            assert_eq!(Milestone::parse(milestone.name()), Some(milestone));
        }
        assert_eq!(Milestone::parse("node ready-0 registered"), Some(Milestone::Registered));
        assert_eq!(Milestone::parse("node a Ready"), Some(Milestone::Ready));
        assert_eq!(Milestone::parse("node a Confused"), None);
        assert_eq!(Milestone::parse("something new"), None);
    }

    #[test]
    fn the_last_node_counts_and_time_starts_at_zero() {
        let events = [reached(3.0, "certificates"), reached(9.0, "node a Ready"), reached(11.0, "node b Ready")];
        let times = Times::read(&events, 2.0);
        assert_eq!(times.get(Milestone::Certificates), Some(1.0));
        assert_eq!(times.get(Milestone::Ready), Some(9.0));
        assert_eq!(times.get(Milestone::Dns), None);
    }

    #[test]
    fn kubeadm_is_understood_in_its_own_words() {
        for (line, expected) in [
            ("[certs] Generating \"ca\" certificate and key", None),
            ("[kubeconfig] Using kubeconfig folder \"/etc/kubernetes\"", Some(Milestone::Certificates)),
            ("[control-plane-check] Checking kube-apiserver at https://10.0.0.1:6443/livez", None),
            ("[control-plane-check] kube-scheduler is healthy after 1.2s", None),
            ("[control-plane-check] kube-apiserver is healthy after 3.5s", Some(Milestone::Api)),
            ("[mark-control-plane] Marking the node a as control-plane by adding the labels", None),
            ("[bootstrap-token] Using token: abcdef.0123456789abcdef", Some(Milestone::Registered)),
        ] {
            assert_eq!(of_kubeadm(line), expected, "{line}");
        }
    }
}
