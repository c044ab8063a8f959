//! What the hosts themselves are asked: how their agents and turnup's other services stand, their
//! certificates, and whether they have this turnup. One question a host, all at once.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::error::Result;
use crate::inventory::Host;
use crate::parallel;

use super::agents::HostAgent;
use super::certificates::{self, Certificate};
use super::gap::Gap;
use super::services::HostService;

/// A host that has not answered by then does not answer. Reading all of turnup takes a slow disk
/// some seconds.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Prints whether the agent of a node runs and its status, each on a line, the digest of turnup,
/// then what systemd knows of turnup's services, then each certificate behind the name of its file.
/// Never a key, also where both are in one file.
const QUESTION: &str = r#"if [ -e /var/lib/turnup/node-config.json ]; then
  echo "agent $(systemctl is-active turnup-agent.service)"
  echo "agent-status $(cat /run/turnup/agent.json 2>/dev/null)"
fi
sha256sum /opt/turnup/bin/turnup 2>/dev/null
echo services
systemctl show --property=Id,ActiveState,SubState,StatusText 'turnup-*.service'
for file in /etc/kubernetes/*/*.crt /var/lib/kubelet/pki/kubelet-client-current.pem; do
  [ -f "$file" ] || continue
  echo "file $file"
  sed -n '/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p' "$file"
done"#;

/// What the hosts said.
#[derive(Debug, Default)]
pub(super) struct HostAnswers {
    pub(super) agents: Vec<HostAgent>,
    pub(super) services: Vec<HostService>,
    pub(super) certificates: Vec<Certificate>,
    pub(super) same_turnup: BTreeMap<String, bool>,
    pub(super) gaps: Vec<Gap>,
}

/// Asks every host that was handed over; none before that.
pub(super) fn ask(cluster: &Cluster) -> HostAnswers {
    let hosts = match cluster.find_inventory() {
        Ok(inventory) => inventory.map(|inventory| inventory.hosts).unwrap_or_default(),
        Err(error) => return HostAnswers { gaps: vec![Gap::new("the hosts", error)], ..HostAnswers::default() },
    };
    let answers = parallel::map(&hosts, parallel::HOSTS, |host| ask_one(cluster, host));
    let mut found = HostAnswers::default();
    for (host, answer) in hosts.iter().zip(answers) {
        match answer {
            Ok(said) => found.add(&host.name, &said, cluster.version()),
            Err(error) => found.gaps.push(Gap::new(&host.name, error)),
        }
    }
    found
}

fn ask_one(cluster: &Cluster, host: &Host) -> Result<String> {
    Ok(cluster.ssh(host)?.timeout(TIMEOUT).run(&["sh", "-c", QUESTION])?.stdout)
}

impl HostAnswers {
    fn add(&mut self, host: &str, said: &str, version: &str) {
        let mut parts = said.split("\nfile /");
        let head = parts.next().unwrap_or_default();
        let (head, services) = head.split_once("\nservices\n").unwrap_or((head, ""));
        self.services.extend(HostService::read_all(host, services));
        let head: Vec<&str> = head.lines().collect();
        let of_agent = |word: &str| head.iter().find_map(|line| line.strip_prefix(word));
        let agent = of_agent("agent ").map(|state| (state, of_agent("agent-status ").unwrap_or_default()));
        match agent.map(|(state, status)| HostAgent::read(host, state, status)).transpose() {
            Ok(agent) => self.agents.extend(agent),
            Err(error) => self.gaps.push(Gap::new(host, error)),
        }
        let turnup = head.iter().filter(|line| !line.starts_with("agent")).find_map(|line| line.split(' ').next());
        if let Some(digest) = turnup {
            self.same_turnup.insert(host.to_owned(), digest == version);
        }
        for part in parts {
            let (file, pem) = part.split_once('\n').unwrap_or((part, ""));
            self.certificates.extend(certificates::read(host, &format!("/{file}"), pem.as_bytes(), Timestamp::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::facts::CLIENT_CERTIFICATE;
    use crate::node::layout;
    use crate::node::node_config::{AGENT_UNIT, HOST_FILE};

    #[test]
    fn the_question_names_what_node_puts_on_a_host() {
        for name in [HOST_FILE, AGENT_UNIT, layout::TURNUP, layout::KUBERNETES, CLIENT_CERTIFICATE] {
            assert!(QUESTION.contains(name), "{name}");
        }
    }

    #[test]
    fn the_answer_of_a_host_is_taken_apart() {
        let status = r#"{"schema":"turnup.agent-status/1","state":"as-declared","problems":[],"repairs":[{"at":"2026-01-02T03:04:05Z","losses":["file /etc/a is missing"]}]}"#;
        let mut answers = HostAnswers::default();
        let unit = "Id=turnup-dns.service\nActiveState=failed\nSubState=failed\nStatusText=\n";
        let said = format!("agent active\nagent-status {status}\nabc  /opt/turnup/bin/turnup\nservices\n{unit}");
        answers.add("w0", &format!("{said}file /etc/kubernetes/pki/ca.crt\n"), "abc");
        assert_eq!(
            answers.services.iter().map(|service| service.unit.as_str()).collect::<Vec<_>>(),
            ["turnup-dns.service"]
        );
        answers.add("w1", "abd  /opt/turnup/bin/turnup\nfile /etc/kubernetes/pki/ca.crt\n", "abc");
        answers.add("w2", "agent inactive\nagent-status \n", "abc");
        answers.add("w3", "agent active\nagent-status {}\n", "abc");
        let runs: Vec<(&str, bool)> = answers.agents.iter().map(|agent| (agent.host.as_str(), agent.runs)).collect();
        assert_eq!(runs, [("w0", true), ("w2", false)]);
        assert_eq!(answers.same_turnup, BTreeMap::from([("w0".to_owned(), true), ("w1".to_owned(), false)]));
        assert_eq!(answers.gaps.len(), 1, "what w3 says is no status");
    }
}
