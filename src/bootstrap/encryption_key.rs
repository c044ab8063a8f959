//! The encryption key of etcd's Secrets in a rotation: whether every API server has loaded it, and
//! the rewriting of what an earlier key has encrypted.
//!
//! All of it happens on control-plane hosts: no object and no key leaves them.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::exec::signals;
use crate::inventory::{Host, Inventory};
use crate::node::layout;

/// An API server looks at its file once a minute
/// (`k8s.io/apiserver/pkg/server/options/encryptionconfig/controller`).
const LOADED: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// For one look at an API server.
const ANSWER: Duration = Duration::from_secs(30);
/// Some ten thousand objects are written, or read, within it.
const REWRITE: Duration = Duration::from_mins(15);
/// An object that changes meanwhile is left to the next round.
const ROUNDS: usize = 4;
/// What is encrypted where the configuration names nothing.
const SECRETS: &str = "secrets";

/// Prints the sha256 of the file, then that of the one that the API server has loaded
/// (`apiserver_encryption_config_controller_last_config_info`). `$1` is the file, `$2` the API
/// server's port; the certificate is not verified, because 127.0.0.1 is this host.
const ASK_LOADED: &str = r#"sha256sum "$1"
/opt/turnup/bin/kubectl --kubeconfig=/etc/kubernetes/admin.conf --server="https://127.0.0.1:$2" \
  --insecure-skip-tls-verify --request-timeout=10s get --raw /metrics |
  sed -n 's/^apiserver_encryption_config_controller_last_config_info{.*[,{]hash="sha256:\([0-9a-f]*\)".*/\1/p'"#;

/// Writes every object of these kinds as it is: the API server writes what another key has
/// encrypted, and skips the rest. A kind with a star stands for all that can be written.
const REWRITE_KINDS: &str = r#"kubectl() { /opt/turnup/bin/kubectl --kubeconfig=/etc/kubernetes/admin.conf "$@"; }
case " $* " in *"*"*) set -- $(kubectl api-resources --verbs=get,list,update --output=name) ;; esac
for kind; do
  kubectl get "$kind" --all-namespaces --output=json | kubectl replace --filename=- >/dev/null
done
true"#;

/// Prints a mark for each value in etcd with this beginning (`$1`), and one more at the end of all.
/// Behind it is etcdctl with its flags.
const FIND_VALUES: &str = r#"beginning=$1
shift
{ "$@" --command-timeout=10m get --prefix /registry/ --print-value-only && echo 'turnup: all read'; } |
  grep --text --fixed-strings --only-matching --regexp="$beginning" --regexp='turnup: all read' | sort | uniq --count"#;
const ALL_READ: &str = "turnup: all read";

/// Waits until each API server encrypts with the keys that were written for it.
pub(super) fn wait_until_loaded(cluster: &Cluster, inventory: &Inventory, tell: &dyn Fn(&str)) -> Result<()> {
    let since = Instant::now();
    let mut is_told = false;
    loop {
        let mut behind = Vec::new();
        for host in inventory.control_planes() {
            if let Some(why) = find_unloaded(cluster, host)? {
                behind.push(format!("{}: {why}", host.name));
            }
        }
        if behind.is_empty() {
            return Ok(());
        }
        if since.elapsed() > LOADED {
            let error = Error::transient("an API server has not loaded its encryption keys");
            return Err(error.evidence_of(behind).hint("turnup status; then the same command again"));
        }
        if !is_told {
            tell("waiting until each API server has loaded its encryption keys, up to a minute");
            is_told = true;
        }
        signals::sleep(POLL_INTERVAL)?;
    }
}

fn find_unloaded(cluster: &Cluster, host: &Host) -> Result<Option<&'static str>> {
    let file = layout::component_file("kube-apiserver", "encryption.yaml");
    let port = cluster.settings.api_port.to_string();
    let ssh = cluster.ssh(host)?.timeout(ANSWER);
    Ok(judge_loaded(&ssh.run(&["sh", "-c", ASK_LOADED, "sh", &file, &port])?.stdout))
}

fn judge_loaded(said: &str) -> Option<&'static str> {
    let mut hashes = said.lines().filter_map(|line| line.split_whitespace().next());
    match (hashes.next(), hashes.next()) {
        (Some(file), Some(loaded)) if file == loaded => None,
        (Some(_), Some(_)) => Some("its API server has loaded an earlier file"),
        (Some(_), None) => Some("its API server does not tell"),
        (None, _) => Some("it has no encryption keys"),
    }
}

/// Encrypts with the primary what an earlier item has encrypted, until etcd holds nothing of it.
pub(super) fn rewrite(cluster: &Cluster, inventory: &Inventory, id: u32, tell: &dyn Fn(&str)) -> Result<()> {
    let Some(host) = inventory.control_planes().next() else { return Ok(()) };
    let beginning = format!("k8s:enc:secretbox:v1:key{id}:");
    let mut said = String::new();
    for _ in 0..ROUNDS {
        let count = count_values(cluster, host, &beginning)?;
        if count == 0 {
            return Ok(());
        }
        tell(&format!("writing {count} objects again that item {id} has encrypted"));
        let kinds = kinds(cluster);
        let words = ["sh", "-c", REWRITE_KINDS, "sh"].into_iter().chain(kinds.iter().map(String::as_str));
        let words: Vec<&str> = words.collect();
        said = cluster.ssh(host)?.timeout(REWRITE).run(&words)?.stderr;
    }
    let left = count_values(cluster, host, &beginning)?;
    if left == 0 {
        return Ok(());
    }
    let error = Error::transient(format!("{left} objects in etcd are still encrypted with item {id}"));
    let error = said.lines().rev().take(5).fold(error, Error::evidence);
    Err(error.hint("the same command again; objects of a kind that phase2.security.encryption_resources names no longer: write them with kubectl replace"))
}

fn kinds(cluster: &Cluster) -> Vec<String> {
    let of = &cluster.settings.control_plane;
    if of.encryption_at_rest { of.encryption_resources.clone() } else { vec![SECRETS.to_owned()] }
}

fn count_values(cluster: &Cluster, host: &Host, beginning: &str) -> Result<u64> {
    let script = ["sh", "-c", FIND_VALUES, "sh", beginning, layout::ETCDCTL, "--endpoints", layout::ETCD_ENDPOINT];
    let output = cluster.ssh(host)?.timeout(REWRITE).run(&[&script[..], &layout::ETCD_CLIENT].concat())?;
    read_count(&output.stdout, beginning).ok_or_else(|| {
        let error = Error::transient(format!("etcd of {} does not show its values", host.name));
        let error = output.stderr.lines().rev().take(3).fold(error, Error::evidence);
        error.hint("turnup status; then the same command again")
    })
}

/// The number in front of the beginning; none when the answer breaks off.
fn read_count(said: &str, beginning: &str) -> Option<u64> {
    let count = |what: &str| said.lines().find_map(|line| line.trim().strip_suffix(what)?.trim().parse::<u64>().ok());
    count(ALL_READ)?;
    Some(count(beginning).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_has_loaded_the_file_whose_hash_it_tells() {
        let file = "aa11  /etc/kubernetes/kube-apiserver/encryption.yaml\n";
        assert_eq!(judge_loaded(&format!("{file}aa11\n")), None);
        assert!(judge_loaded(&format!("{file}bb22\n")).is_some_and(|why| why.contains("earlier")));
        assert!(judge_loaded(file).is_some_and(|why| why.contains("does not tell")));
        assert!(judge_loaded("").is_some());
    }

    #[test]
    fn an_answer_of_etcd_that_breaks_off_counts_nothing() {
        let beginning = "k8s:enc:secretbox:v1:key1:";
        let all = format!("      1 {ALL_READ}\n");
        assert_eq!(read_count(&all, beginning), Some(0));
        assert_eq!(read_count(&format!("     17 {beginning}\n{all}"), beginning), Some(17));
        assert_eq!(read_count(&format!("     17 {beginning}\n"), beginning), None, "it may have had more");
        assert_eq!(read_count(&format!("      3 k8s:enc:secretbox:v1:key21:\n{all}"), beginning), Some(0));
    }
}
