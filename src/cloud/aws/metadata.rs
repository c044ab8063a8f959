//! The metadata service of an EC2 machine (version 2): who the machine is, and what its role lends
//! it for some hours.

use serde_json::Value;
use zeroize::Zeroizing;

use crate::cloud::{LentKey, http};
use crate::error::{Error, Result};

const SERVICE: &str = "the metadata service";

/// Where a machine is, and which one it is.
#[derive(Clone, Debug)]
pub(super) struct MachinePlace {
    pub(super) instance: String,
    pub(super) region: String,
    pub(super) account: String,
}

/// The service, with the token that it wants to be asked with.
pub(super) struct Metadata<'e> {
    url: &'e str,
    session: Zeroizing<String>,
}

impl<'e> Metadata<'e> {
    pub(super) fn open(url: &'e str) -> Result<Self> {
        let lifetime = [("X-aws-ec2-metadata-token-ttl-seconds", "300")];
        let session = http::ask_metadata("PUT", &format!("{url}/latest/api/token"), &lifetime)?;
        Ok(Self { url, session: Zeroizing::new(session) })
    }

    pub(super) fn ask(&self, path: &str) -> Result<String> {
        let headers = [("X-aws-ec2-metadata-token", self.session.as_str())];
        http::ask_metadata("GET", &format!("{}/latest/{path}", self.url), &headers)
    }

    /// A document in JSON.
    pub(super) fn read(&self, path: &str) -> Result<Value> {
        http::parse(&Zeroizing::new(self.ask(path)?), SERVICE)
    }

    /// Which machine it is, as the cloud controller manager names it.
    pub(super) fn provider_id(&self) -> Result<String> {
        let [machine, zone] =
            ["instance-id", "placement/availability-zone"].map(|it| self.ask(&format!("meta-data/{it}")));
        let (machine, zone) = (machine?, zone?);
        let (machine, zone) = (machine.trim(), zone.trim());
        let is_word =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !machine.starts_with("i-") || zone.is_empty() || !is_word(machine) || !is_word(zone) {
            return Err(Error::transient(format!("{SERVICE} does not say which machine this is"))
                .evidence(format!("instance-id {machine:?}, availability-zone {zone:?}"))
                .hint(
                    "is this host a machine of Amazon EC2? turnup config set phase3.cloud_controller=n where it is not",
                ));
        }
        Ok(format!("aws:///{zone}/{machine}"))
    }

    /// Where the machine is.
    pub(super) fn place(&self) -> Result<MachinePlace> {
        let document = self.read("dynamic/instance-identity/document")?;
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        Ok(MachinePlace { instance: text("instanceId"), region: text("region"), account: text("accountId") })
    }

    /// How the names of all services of the partition end.
    pub(super) fn domain(&self) -> Result<String> {
        Ok(self.ask("meta-data/services/domain")?.trim().to_owned())
    }

    /// The partition, as ARNs name it.
    pub(super) fn partition(&self) -> Result<String> {
        Ok(self.ask("meta-data/services/partition")?.trim().to_owned())
    }

    /// What the machine's role lends it.
    pub(super) fn key(&self) -> Result<LentKey> {
        let roles = "meta-data/iam/security-credentials/";
        let role = self.ask(roles)?;
        let role = role.lines().next().unwrap_or_default();
        let lent = self.read(&format!("{roles}{role}"))?;
        let text = |name: &str| lent[name].as_str().unwrap_or_default().to_owned();
        let key = LentKey {
            id: text("AccessKeyId"),
            secret: Zeroizing::new(text("SecretAccessKey")),
            session: Zeroizing::new(text("Token")),
        };
        if key.id.is_empty() || key.secret.is_empty() {
            let said = lent["Code"].as_str().unwrap_or_default();
            return Err(Error::transient(format!("the role {role} of this machine lends no key"))
                .evidence(format!("{SERVICE} says {said:?}"))
                .hint("aws ec2 describe-iam-instance-profile-associations"));
        }
        Ok(key)
    }
}
