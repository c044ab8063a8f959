//! What hosts are told of the store of their backups: the settings, and the key in the file that
//! they name.

use zeroize::Zeroizing;

use crate::cluster::{Cluster, S3Settings};
use crate::config::object_prefix;
use crate::error::{Context as _, Error, Result};
use crate::input;
use crate::node::backup::BackupStore;

use super::runtime::read_certificates;

/// As JSON, with the key; none where backups stay on the hosts.
pub(super) fn read(cluster: &Cluster) -> Result<Option<String>> {
    let Some(s3) = cluster.settings.backup.as_ref().and_then(|backup| backup.s3.as_ref()) else { return Ok(None) };
    let (machine, (access_key, secret_key)) = match s3.credentials_file.as_str() {
        "" => (require_identity(cluster)?, Default::default()),
        name => (String::new(), read_key(cluster, name)?),
    };
    let authority = match s3.ca_file.as_str() {
        "" => String::new(),
        name => read_certificates(cluster, S3Settings::AUTHORITY, name)?,
    };
    let store = BackupStore {
        endpoint: s3.endpoint.clone(),
        bucket: s3.bucket.clone(),
        region: s3.region.clone(),
        prefix: object_prefix(&s3.prefix),
        path_style: s3.path_style,
        authority,
        machine,
        access_key,
        secret_key,
    };
    serde_json::to_string(&store).map(Some).context("cannot write JSON")
}

fn read_key(cluster: &Cluster, name: &str) -> Result<(String, String)> {
    let setting = S3Settings::CREDENTIALS;
    let text = input::read_text(&cluster.work_dir.join(name), input::KEYS).map(Zeroizing::new).map_err(|error| {
        Error::config(format!("{setting}: {name} cannot be read")).source(error).hint("turnup config check")
    })?;
    parse(&text).ok_or_else(|| {
        Error::config(format!("{setting}: {name} has no access key"))
            .evidence("expected the lines access_key_id = … and secret_access_key = …")
            .hint("turnup config check")
    })
}

/// The cloud whose machines need no key; an error for hosts without an identity that stores take.
fn require_identity(cluster: &Cluster) -> Result<String> {
    let target = cluster.settings.target;
    let cloud = target.cloud().filter(|cloud| cloud.bucket_key().is_some());
    cloud.map(|cloud| cloud.name().to_owned()).ok_or_else(|| {
        let setting = S3Settings::CREDENTIALS;
        Error::config(format!("{setting} is empty, and hosts of {target} have no role that is a key for a bucket"))
            .hint(format!("turnup config set {setting}=FILE"))
    })
}

/// The first key of a file of credentials. Clients write a word of their own before both names.
fn parse(text: &str) -> Option<(String, String)> {
    let value = |wanted: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let mut found =
            lines.filter(|(name, _)| name.trim().ends_with(wanted)).map(|(_, value)| value.trim().to_owned());
        found.find(|value| !value.is_empty())
    };
    value("access_key_id").zip(value("secret_access_key"))
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
}
