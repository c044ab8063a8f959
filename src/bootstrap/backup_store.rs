//! What hosts are told of the store of their backups: the settings, and the key in the file that
//! they name.

use zeroize::Zeroizing;

use crate::cloud::Cloud;
use crate::cluster::{BlobSettings, Cluster, S3Settings};
use crate::config::object_prefix;
use crate::error::{Context as _, Error, Result};
use crate::input;
use crate::node::backup::{BackupStore, BlobContainer, S3Bucket};

use super::runtime::read_certificates;

/// Where an account answers that has no address of its own.
const PUBLIC_CLOUD: &str = "blob.core.windows.net";

/// As JSON, with the key; none where backups stay on the hosts.
pub(super) fn read(cluster: &Cluster) -> Result<Option<String>> {
    let Some(settings) = &cluster.settings.backup else { return Ok(None) };
    let store = match (&settings.s3, &settings.azure) {
        (Some(s3), _) => BackupStore::S3(bucket(cluster, s3)?),
        (None, Some(azure)) => BackupStore::Blob(container(cluster, azure)?),
        (None, None) => return Ok(None),
    };
    serde_json::to_string(&store).map(Some).context("cannot write JSON")
}

fn bucket(cluster: &Cluster, s3: &S3Settings) -> Result<S3Bucket> {
    let (machine, (access_key, secret_key)) = S3_KEY.read(cluster, &s3.credentials_file)?;
    Ok(S3Bucket {
        endpoint: s3.endpoint.clone(),
        bucket: s3.bucket.clone(),
        region: s3.region.clone(),
        prefix: object_prefix(&s3.prefix),
        path_style: s3.path_style,
        authority: read_authority(cluster, S3Settings::AUTHORITY, &s3.ca_file)?,
        machine,
        access_key,
        secret_key,
    })
}

fn container(cluster: &Cluster, azure: &BlobSettings) -> Result<BlobContainer> {
    if azure.credentials_file.is_empty() && azure.endpoint.starts_with("http://") {
        let setting = "phase2.backup.azure.endpoint";
        let why = format!("{setting}: {} would get the token of the hosts' identity unencrypted", azure.endpoint);
        return Err(Error::config(why).hint(format!("turnup config set {setting}=https://…")));
    }
    let (machine, (account_key, sas_token)) = BLOB_KEY.read(cluster, &azure.credentials_file)?;
    let endpoint = match azure.endpoint.as_str() {
        "" => format!("https://{}.{PUBLIC_CLOUD}", azure.account),
        endpoint => endpoint.to_owned(),
    };
    Ok(BlobContainer {
        endpoint,
        account: azure.account.clone(),
        container: azure.container.clone(),
        prefix: object_prefix(&azure.prefix),
        authority: read_authority(cluster, BlobSettings::AUTHORITY, &azure.ca_file)?,
        machine,
        account_key,
        sas_token,
    })
}

fn read_authority(cluster: &Cluster, setting: &str, name: &str) -> Result<String> {
    if name.is_empty() { Ok(String::new()) } else { read_certificates(cluster, setting, name) }
}

/// By what a kind of store knows hosts.
struct StoreKey {
    /// The setting that names the file with the key.
    setting: &'static str,
    parse: fn(&str) -> Option<(String, String)>,
    /// What a file has not that cannot be read so, and what is expected.
    lacks: &'static str,
    expected: &'static str,
    /// Whether machines of a cloud have an identity that the store takes for a key.
    takes: fn(&dyn Cloud) -> bool,
}

const S3_KEY: StoreKey = StoreKey {
    setting: S3Settings::CREDENTIALS,
    parse,
    lacks: "no access key",
    expected: "expected the lines access_key_id = … and secret_access_key = …",
    takes: |cloud| cloud.bucket_key().is_some(),
};

const BLOB_KEY: StoreKey = StoreKey {
    setting: BlobSettings::CREDENTIALS,
    parse: parse_blob_key,
    lacks: "neither a key nor a SAS, or both",
    expected: "expected one of the lines account_key = … and sas_token = …",
    takes: |cloud| cloud.blob_token().is_some(),
};

impl StoreKey {
    /// The cloud whose machines need no key, where no file is named; or nothing, and the two parts
    /// of the key in the file.
    fn read(&self, cluster: &Cluster, name: &str) -> Result<(String, (String, String))> {
        if name.is_empty() {
            return Ok((self.find_identity(cluster)?, Default::default()));
        }
        let setting = self.setting;
        let text =
            input::read_text(&cluster.work_dir.join(name), input::KEYS).map(Zeroizing::new).map_err(|error| {
                Error::config(format!("{setting}: {name} cannot be read")).source(error).hint("turnup config check")
            })?;
        let key = (self.parse)(&text).ok_or_else(|| {
            Error::config(format!("{setting}: {name} has {}", self.lacks))
                .evidence(self.expected)
                .hint("turnup config check")
        })?;
        Ok((String::new(), key))
    }

    fn find_identity(&self, cluster: &Cluster) -> Result<String> {
        let (setting, target) = (self.setting, cluster.settings.target);
        let cloud = target.cloud().filter(|cloud| (self.takes)(*cloud));
        cloud.map(|cloud| cloud.name().to_owned()).ok_or_else(|| {
            Error::config(format!("{setting} is empty, and hosts of {target} have no identity that this store takes"))
                .hint(format!("turnup config set {setting}=FILE"))
        })
    }
}

/// The first key of a file of credentials. Clients write a word of their own before both names.
fn parse(text: &str) -> Option<(String, String)> {
    value_of(text, "access_key_id").zip(value_of(text, "secret_access_key"))
}

/// The account's key and nothing, or nothing and the SAS.
fn parse_blob_key(text: &str) -> Option<(String, String)> {
    match (value_of(text, "account_key"), value_of(text, "sas_token")) {
        (Some(key), None) => Some((key, String::new())),
        (None, Some(sas)) => Some((String::new(), sas.trim_start_matches('?').to_owned())),
        _ => None,
    }
}

/// The first value behind a name that ends so.
fn value_of(text: &str, wanted: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut found = lines.filter(|(name, _)| name.trim().ends_with(wanted)).map(|(_, value)| value.trim().to_owned());
    found.find(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_counts() {
        let text = "[default]\r\nmy_access_key_id = AK1\r\nsecret_access_key=s=1\n[b]\naccess_key_id=AK2\n";
        assert_eq!(parse(text), Some(("AK1".to_owned(), "s=1".to_owned())));
        assert_eq!(parse("access_key_id = AK1"), None);
    }

    #[test]
    fn an_account_has_a_key_or_a_sas() {
        let key = parse_blob_key("# of the portal\naccount_key = a+b/c==\n");
        assert_eq!(key, Some(("a+b/c==".to_owned(), String::new())));
        let sas = parse_blob_key("sas_token = ?sv=2021-12-02&sp=rwdl&sig=a%3D\n");
        assert_eq!(sas, Some((String::new(), "sv=2021-12-02&sp=rwdl&sig=a%3D".to_owned())));
        assert_eq!(parse_blob_key("account_key = a\nsas_token = b\n"), None);
        assert_eq!(parse_blob_key("key = a\n"), None);
    }
}
