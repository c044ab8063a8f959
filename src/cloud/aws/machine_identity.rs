//! Who a machine of EC2 is: it shows a request to STS that is signed with what its role lends it
//! (`presigned`), and a control-plane host sends that request and asks EC2 for the machine.
//!
//! STS tells the role and the name of its session, which is the machine's id where EC2 lends the
//! role to a machine. EC2 tells of which cluster and group the machine is, by tags that no role of
//! the cluster may change, and its name.

use std::sync::OnceLock;

use jiff::Timestamp;
use roxmltree::{Document, Node};

use super::ec2::Ec2Api;
use super::metadata::{MachinePlace, Metadata};
use super::presigned::{self, CLUSTER_HEADER, StsPlace};
use super::xml::{child, is_named, read_error};
use crate::cloud::http;
use crate::cloud::{Endpoints, IdentityJudge, IdentityToken, MachineRole, ProvenMachine};
use crate::error::{Context as _, Error, Result};

/// The tags of machines: their cluster, their group, and the mark of control planes.
const CLUSTER_TAG: &str = "KubernetesCluster";
const GROUP_TAG: &str = "k8s.io/group";
const CONTROL_PLANE_TAG: &str = "k8s.io/role/control-plane";

/// The token of this machine for this cluster.
pub(super) fn fetch(endpoints: &Endpoints, audience: &str) -> Result<IdentityToken> {
    let metadata = Metadata::open(&endpoints.metadata)?;
    let place = StsPlace { region: metadata.place()?.region, domain: metadata.domain()? };
    let (text, ends) = presigned::make(&place, audience, &metadata.key()?, Timestamp::now());
    Ok(IdentityToken { text, ends: Some(ends) })
}

/// As what the workers of this cluster are known, whose role this is.
pub(super) fn role(cluster: &str, region: &str, role: &str) -> MachineRole {
    let audience = format!("turnup.dev/aws/{region}/{cluster}");
    MachineRole { audience, cluster: cluster.to_owned(), role: role.to_owned() }
}

/// Asks STS and EC2 of the region of this host.
pub(super) struct AwsJudge {
    endpoints: Endpoints,
    workers: MachineRole,
    here: OnceLock<JudgeSite>,
}

/// Where this host is, which never changes.
struct JudgeSite {
    sts: StsPlace,
    /// What the ARN of a session of the workers' role begins with.
    session: String,
    account: String,
}

impl AwsJudge {
    pub(super) fn new(endpoints: Endpoints, workers: MachineRole) -> Self {
        Self { endpoints, workers, here: OnceLock::new() }
    }

    fn here(&self, metadata: &Metadata<'_>) -> Result<&JudgeSite> {
        if let Some(here) = self.here.get() {
            return Ok(here);
        }
        let MachinePlace { region, account, .. } = metadata.place()?;
        if region.is_empty() || account.is_empty() {
            return Err(Error::transient("the metadata service does not say in which region and account this host is"));
        }
        let session = format!("arn:{}:sts::{account}:assumed-role/{}/", metadata.partition()?, self.workers.role);
        let here = JudgeSite { sts: StsPlace { region, domain: metadata.domain()? }, session, account };
        Ok(self.here.get_or_init(|| here))
    }

    /// The id of the machine whose role signed this request.
    fn ask_sts(&self, here: &JudgeSite, query: &str) -> Result<String> {
        let own = format!("https://{}", here.sts.host());
        let url = format!("{}/?{query}", self.endpoints.api.as_ref().unwrap_or(&own));
        let answer = http::ask_strictly(&url, &[(CLUSTER_HEADER, &self.workers.audience)])?;
        answer.require(|status, text| {
            let (code, _) = read_error(text);
            // What STS says beside its code may repeat the request.
            let code = if code.bytes().all(|byte| byte.is_ascii_alphanumeric()) { code } else { String::new() };
            let class = if http::is_refusal(status) { crate::Class::Permanent } else { http::class_of(status) };
            Error::new(class, format!("STS answers {status} {code}").trim_end())
        })?;
        read_caller(&answer.text, here)
    }

    fn ask_ec2(&self, here: &JudgeSite, metadata: &Metadata<'_>, id: &str) -> Result<ProvenMachine> {
        let api = Ec2Api::open(metadata, &here.sts.region, &self.endpoints)?;
        let answer = api.call("DescribeInstances", &[("InstanceId.1", id)])?;
        answer.require(|status, text| {
            let (code, said) = read_error(text);
            let error = Error::transient(format!("EC2 refuses DescribeInstances of {id}: {code}")).evidence(said);
            let rights = "the role of control-plane machines needs ec2:DescribeInstances (docs/aws.md)";
            if http::is_refusal(status) { error.hint(rights) } else { error }
        })?;
        read_machine(&answer.text, id, &self.workers.cluster)
    }
}

impl IdentityJudge for AwsJudge {
    fn prefix(&self) -> &'static str {
        presigned::PREFIX
    }

    fn judge(&self, token: &str) -> Result<ProvenMachine> {
        let metadata = Metadata::open(&self.endpoints.metadata)?;
        let here = self.here(&metadata)?;
        let query = presigned::read(token, &here.sts, Timestamp::now())
            .map_err(|why| Error::permanent(format!("a token that no machine of this cluster makes: {why}")))?;
        let id = self.ask_sts(here, &query)?;
        self.ask_ec2(here, &metadata, &id)
    }
}

/// The machine to which EC2 lent the workers' role of this cluster, by the answer of STS.
fn read_caller(text: &str, here: &JudgeSite) -> Result<String> {
    let document = Document::parse(text).context("STS answered with no XML")?;
    let result = document.descendants().find(|node| is_named(*node, "GetCallerIdentityResult"));
    let result = result.ok_or_else(|| Error::permanent("STS does not say who signed"))?;
    let [account, arn, user] = ["Account", "Arn", "UserId"].map(|name| child(result, name));
    if account != here.account {
        return Err(Error::permanent(format!("{arn:?} is of another account than {}", here.account)));
    }
    let id = arn.strip_prefix(&here.session);
    let id = id.ok_or_else(|| Error::permanent(format!("{arn:?} is not the role of this cluster's workers")))?;
    if !is_instance(id) || !user.ends_with(&format!(":{id}")) {
        return Err(Error::permanent(format!("{arn:?} is no machine that has the role")));
    }
    Ok(id.to_owned())
}

/// `i-` and 8 or 17 hexadecimal digits.
fn is_instance(id: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    id.strip_prefix("i-").is_some_and(|digits| matches!(digits.len(), 8 | 17) && digits.bytes().all(is_digit))
}

/// The machine of this id, when it is one of this cluster's workers and runs, or is about to.
fn read_machine(text: &str, id: &str, cluster: &str) -> Result<ProvenMachine> {
    let document = Document::parse(text).context("EC2 answered with no XML")?;
    let sets = document.descendants().filter(|node| is_named(*node, "instancesSet"));
    let mut found = sets.flat_map(|set| set.children().filter(|node| is_named(*node, "item")));
    let (Some(machine), None) = (found.next(), found.next()) else {
        return Err(Error::transient(format!("EC2 does not know the machine {id}, or not yet")));
    };
    let refused = |why: String| Err(Error::permanent(format!("the machine {id} {why}")));
    if child(machine, "instanceId") != id {
        return refused("is not the one that EC2 tells of".into());
    }
    let state = machine.children().find(|node| is_named(*node, "instanceState"));
    let state = state.map(|state| child(state, "name")).unwrap_or_default();
    if !["pending", "running"].contains(&state) {
        return refused(format!("is {state}"));
    }
    if tag(machine, CLUSTER_TAG) != Some(cluster) {
        return refused("is of another cluster".into());
    }
    let (Some(group), None) = (tag(machine, GROUP_TAG), tag(machine, CONTROL_PLANE_TAG)) else {
        return refused("is of no node group".into());
    };
    let host = child(machine, "privateDnsName");
    if host.is_empty() {
        return refused("has no name of its own".into());
    }
    Ok(ProvenMachine { id: id.to_owned(), group: group.to_owned(), host: host.to_owned() })
}

fn tag<'d>(machine: Node<'d, '_>, key: &str) -> Option<&'d str> {
    let set = machine.children().find(|node| is_named(*node, "tagSet"))?;
    let mut tags = set.children().filter(|item| is_named(*item, "item"));
    tags.find(|item| child(*item, "key") == key).map(|item| child(item, "value"))
}

#[cfg(test)]
#[path = "machine_identity_tests.rs"]
mod tests;
