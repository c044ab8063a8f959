//! Where backups of etcd go, how often and how many, as typed values.

use std::time::Duration;

use crate::config::Settings;
use crate::error::Result;

/// Backups in a directory of each control-plane host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct BackupSettings {
    pub interval: Duration,
    pub keep_recent: usize,
    pub keep_daily: usize,
    pub before_change: bool,
    pub directory: String,
    pub recipients: Vec<String>,
    /// The bucket to which hosts copy them; none where they do not.
    pub s3: Option<S3Settings>,
    /// The container to which hosts copy them; none where they do not.
    pub azure: Option<BlobSettings>,
}

/// A bucket that speaks S3.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct S3Settings {
    pub endpoint: String,
    pub bucket: String,
    pub region: String,
    pub prefix: String,
    pub path_style: bool,
    pub ca_file: String,
    pub credentials_file: String,
}

/// A container of Azure Blob Storage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the Kconfig symbol of the same name, whose help is its documentation")]
pub struct BlobSettings {
    pub account: String,
    pub container: String,
    pub prefix: String,
    pub endpoint: String,
    pub ca_file: String,
    pub credentials_file: String,
}

impl BackupSettings {
    /// The setting that switches backups on.
    pub const STORE: &'static str = "phase2.backup.store";
    /// The setting that takes one before each change.
    pub const BEFORE_CHANGE: &'static str = "phase2.backup.before_change";

    /// The public keys of those who may read them.
    pub const RECIPIENTS: &'static str = "phase2.backup.recipients";

    /// What the settings say; nothing where no backups are taken.
    pub(super) fn read(settings: &Settings) -> Result<Option<Self>> {
        if settings.get(Self::STORE)? == "none" {
            return Ok(None);
        }
        Ok(Some(Self {
            interval: settings.get_duration("phase2.backup.interval")?.unwrap_or(Duration::from_hours(1)),
            keep_recent: settings.get_number("phase2.backup.keep_recent")?,
            keep_daily: settings.get_number("phase2.backup.keep_daily")?,
            before_change: settings.get_bool(Self::BEFORE_CHANGE)?,
            directory: settings.get("phase2.backup.directory")?,
            recipients: settings.get_list(Self::RECIPIENTS)?,
            s3: S3Settings::read(settings)?,
            azure: BlobSettings::read(settings)?,
        }))
    }

    /// Whether hosts copy them to a store.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.s3.is_some() || self.azure.is_some()
    }
}

impl S3Settings {
    /// The file with the key.
    pub const CREDENTIALS: &'static str = "phase2.backup.s3.credentials_file";
    /// The file with the authority of its certificate.
    pub const AUTHORITY: &'static str = "phase2.backup.s3.ca_file";

    fn read(settings: &Settings) -> Result<Option<Self>> {
        if settings.get(BackupSettings::STORE)? != "s3" {
            return Ok(None);
        }
        Ok(Some(Self {
            endpoint: settings.get("phase2.backup.s3.endpoint")?,
            bucket: settings.get("phase2.backup.s3.bucket")?,
            region: settings.get("phase2.backup.s3.region")?,
            prefix: settings.get("phase2.backup.s3.prefix")?,
            path_style: settings.get_bool("phase2.backup.s3.path_style")?,
            ca_file: settings.get(Self::AUTHORITY)?,
            credentials_file: settings.get(Self::CREDENTIALS)?,
        }))
    }
}

impl BlobSettings {
    /// The file with the key or the SAS.
    pub const CREDENTIALS: &'static str = "phase2.backup.azure.credentials_file";
    /// The file with the authority of its certificate.
    pub const AUTHORITY: &'static str = "phase2.backup.azure.ca_file";

    fn read(settings: &Settings) -> Result<Option<Self>> {
        if settings.get(BackupSettings::STORE)? != "azure" {
            return Ok(None);
        }
        Ok(Some(Self {
            account: settings.get("phase2.backup.azure.account")?,
            container: settings.get("phase2.backup.azure.container")?,
            prefix: settings.get("phase2.backup.azure.prefix")?,
            endpoint: settings.get("phase2.backup.azure.endpoint")?,
            ca_file: settings.get(Self::AUTHORITY)?,
            credentials_file: settings.get(Self::CREDENTIALS)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::cluster::tests::assert_reads;

    const KEY: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";

    #[test]
    fn each_setting_reaches_its_field() {
        let changes = [
            ("phase2.backup.store", "s3"),
            ("phase2.backup.s3.endpoint", "https://minio.example.com"),
            ("phase2.backup.s3.bucket", "backups"),
            ("phase2.backup.s3.region", "eu-central-1"),
            ("phase2.backup.s3.prefix", "etcd"),
            ("phase2.backup.s3.path_style", "y"),
            ("phase2.backup.s3.ca_file", "ca.crt"),
            ("phase2.backup.s3.credentials_file", "s3.key"),
            ("phase2.backup.interval", "30m"),
            ("phase2.backup.keep_recent", "5"),
            ("phase2.backup.keep_daily", "7"),
            ("phase2.backup.before_change", "n"),
            ("phase2.backup.directory", "/srv/etcd"),
            ("phase2.backup.recipients", KEY),
        ];
        let expected = BackupSettings {
            interval: Duration::from_mins(30),
            keep_recent: 5,
            keep_daily: 7,
            before_change: false,
            directory: "/srv/etcd".into(),
            recipients: vec![KEY.into()],
            s3: Some(S3Settings {
                endpoint: "https://minio.example.com".into(),
                bucket: "backups".into(),
                region: "eu-central-1".into(),
                prefix: "etcd".into(),
                path_style: true,
                ca_file: "ca.crt".into(),
                credentials_file: "s3.key".into(),
            }),
            azure: None,
        };
        let mut settings = assert_reads(BackupSettings::read, &None, &changes, &Some(expected));
        let changes = [
            ("phase2.backup.store", "azure"),
            ("phase2.backup.azure.account", "mybackups"),
            ("phase2.backup.azure.container", "etcd"),
            ("phase2.backup.azure.prefix", "prod"),
            ("phase2.backup.azure.endpoint", "https://mybackups.blob.core.chinacloudapi.cn"),
            ("phase2.backup.azure.ca_file", "ca.crt"),
            ("phase2.backup.azure.credentials_file", "azure.key"),
        ];
        settings.set_all(&changes).unwrap();
        let read = BackupSettings::read(&settings).unwrap().unwrap();
        let expected = BlobSettings {
            account: "mybackups".into(),
            container: "etcd".into(),
            prefix: "prod".into(),
            endpoint: "https://mybackups.blob.core.chinacloudapi.cn".into(),
            ca_file: "ca.crt".into(),
            credentials_file: "azure.key".into(),
        };
        assert_eq!((read.s3.is_none(), read.has_store(), read.azure), (true, true, Some(expected)));
        settings.set_all(&[("phase2.backup.store", "none")]).unwrap();
        assert_eq!(BackupSettings::read(&settings).unwrap(), None);
    }
}
