//! What the hosts themselves are asked: their certificates, and whether they have this turnup. One
//! question a host, all at once.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::error::Result;
use crate::inventory::Host;
use crate::parallel;

use super::certificates::{self, Certificate};
use super::gap::Gap;

/// A host that has not answered by then does not answer. Reading all of turnup takes a slow disk
/// some seconds.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Prints the digest of turnup, then each certificate behind the name of its file. Never a key,
/// also where both are in one file.
const QUESTION: &str = r#"sha256sum /opt/turnup/bin/turnup 2>/dev/null
for file in /etc/kubernetes/*/*.crt /var/lib/kubelet/pki/kubelet-client-current.pem; do
  [ -f "$file" ] || continue
  echo "file $file"
  sed -n '/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p' "$file"
done"#;

/// What the hosts said.
#[derive(Debug, Default)]
pub(super) struct HostAnswers {
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
        let mut parts = said.split("file /");
        let turnup = parts.next().unwrap_or_default().split_whitespace().next();
        if let Some(digest) = turnup {
            self.same_turnup.insert(host.to_owned(), digest == version);
        }
        for part in parts {
            let (file, pem) = part.split_once('\n').unwrap_or((part, ""));
            self.certificates.extend(certificates::read(host, &format!("/{file}"), pem.as_bytes(), Timestamp::now()));
        }
    }
}
