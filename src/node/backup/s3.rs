//! A bucket that speaks S3: Amazon's, Google's with HMAC keys, `MinIO`, Ceph.
//!
//! What is signed stands in the address, so no address is ever shown.

use std::path::Path;
use std::time::Duration;

use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use serde::{Deserialize, Serialize};

use crate::cloud::{self, Cloud, Endpoints};
use crate::error::{Error, Result};

use super::store_http::{ListNames, StoreConnection, StoreWords, StoredObject, text_of};

/// How long a signed address is good: the clocks of both sides may differ by less than 15 minutes.
const GOOD: Duration = Duration::from_mins(15);

const WORDS: StoreWords = StoreWords {
    endpoint: "phase2.backup.s3.endpoint",
    wrong_certificate: "its certificate has to be of a public authority or of phase2.backup.s3.ca_file, and for the name in phase2.backup.s3.endpoint",
    no_certificate: "phase2.backup.s3.ca_file has no certificate in PEM",
    advise,
};

/// Where the bucket is, and with which key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct S3Bucket {
    /// `https://…` without the bucket.
    pub endpoint: String,
    /// Its name.
    pub bucket: String,
    /// The region that requests are signed for.
    pub region: String,
    /// What stands before each name; with its slash, or empty.
    pub prefix: String,
    /// Whether the bucket stands in the path, and not before the host's name.
    pub path_style: bool,
    /// The certificates of its authority in PEM; empty for one of the public authorities.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub authority: String,
    /// The cloud whose machines' own identity is the key; empty where that is the one below.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The public part of the key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub access_key: String,
    /// The secret one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret_key: String,
}

impl S3Bucket {
    /// The bucket in words, without a secret.
    pub(super) fn shown(&self) -> String {
        format!("{}/{} at {}", self.bucket, self.prefix, self.endpoint)
    }

    pub(super) fn connection(&self) -> StoreConnection<'_> {
        StoreConnection { place: self.shown(), authority: &self.authority, words: &WORDS }
    }

    fn bucket(&self) -> Result<Bucket> {
        let style = if self.path_style { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let wrong = |why: &dyn std::fmt::Display| {
            Error::config(format!("phase2.backup.s3.endpoint: {} is no address: {why}", self.endpoint))
                .hint("turnup config set phase2.backup.s3.endpoint=https://…")
        };
        let endpoint = self.endpoint.parse().map_err(|why| wrong(&why))?;
        Bucket::new(endpoint, style, self.bucket.clone(), self.region.clone()).map_err(|why| wrong(&why))
    }

    fn key(&self) -> Result<Credentials> {
        self.key_of(&Endpoints::default())
    }

    pub(super) fn key_of(&self, endpoints: &Endpoints) -> Result<Credentials> {
        if self.machine.is_empty() {
            return Ok(Credentials::new(self.access_key.clone(), self.secret_key.clone()));
        }
        let ask = cloud::find(&self.machine).and_then(Cloud::bucket_key).ok_or_else(|| {
            Error::config(format!("machines of {} have no key for {}", self.machine, self.shown())).hint("turnup up")
        })?;
        let lent = ask(endpoints)?;
        Ok(Credentials::new_with_token(lent.id, lent.secret.to_string(), lent.session.to_string()))
    }

    fn object(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Copies this file there.
    pub(super) fn put(&self, name: &str, path: &Path) -> Result<()> {
        let (bucket, key, object) = (self.bucket()?, self.key()?, self.object(name));
        let file = fs_err::File::open(path)?;
        let length = file.metadata()?.len();
        let url = bucket.put_object(Some(&key), &object).sign(GOOD);
        let http = self.connection();
        let request = http.agent()?.put(url.as_str()).header("content-length", length.to_string());
        http.answer(&format!("copying {name}"), request.send(ureq::SendBody::from_owned_reader(file))).map(drop)
    }

    /// The objects whose names begin so.
    pub(super) fn list(&self, begin: &str) -> Result<Vec<StoredObject>> {
        let (bucket, key, what, http) = (self.bucket()?, self.key()?, "listing backups", self.connection());
        let names = ListNames { entry: "Contents", next: "NextContinuationToken", prefix: &self.prefix, begin };
        let (mut found, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut list = bucket.list_objects_v2(Some(&key));
            list.with_prefix(self.object(begin));
            if let Some(token) = token.take() {
                list.with_continuation_token(token);
            }
            let text = http.answer(what, http.agent()?.get(list.sign(GOOD).as_str()).call())?;
            let (objects, next) = http.read_list(what, &text, &names, |node| {
                text_of(node, "Key").zip(text_of(node, "Size").and_then(|size| size.parse().ok()))
            })?;
            found.extend(objects);
            token = next;
            if token.is_none() {
                return Ok(found);
            }
        }
    }

    /// A part of an object from this byte on; empty behind its end.
    pub(super) fn read_part(&self, name: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        let (bucket, key, object) = (self.bucket()?, self.key()?, self.object(name));
        let range = format!("bytes={offset}-{}", offset + most - 1);
        let url = bucket.get_object(Some(&key), &object).sign(GOOD);
        let http = self.connection();
        let response = http.agent()?.get(url.as_str()).header("range", range).call();
        http.part(&format!("reading {name}"), response, most)
    }

    /// Deletes an object.
    pub(super) fn delete(&self, name: &str) -> Result<()> {
        let (bucket, key, object) = (self.bucket()?, self.key()?, self.object(name));
        let url = bucket.delete_object(Some(&key), &object).sign(GOOD);
        let http = self.connection();
        http.answer(&format!("deleting {name}"), http.agent()?.delete(url.as_str()).call()).map(drop)
    }
}

fn advise(code: &str, status: u16) -> &'static str {
    match (code, status) {
        ("RequestTimeTooSkewed" | "RequestExpired", _) => "set the clock of this host (timedatectl): it is minutes off",
        ("NoSuchBucket", _) => "make the bucket, or correct phase2.backup.s3.bucket; then: turnup up",
        ("NoSuchKey", _) => "turnup backup list",
        ("InvalidAccessKeyId" | "SignatureDoesNotMatch", _) => {
            "correct the keys in phase2.backup.s3.credentials_file; then: turnup up"
        }
        ("AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException", _)
        | (_, 301 | 307) => {
            "correct phase2.backup.s3.region and phase2.backup.s3.endpoint: the bucket is elsewhere; then: turnup up"
        }
        ("QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage", _) | (_, 507) => {
            "make room in the store, or lower phase2.backup.keep_recent; then: turnup up"
        }
        (_, 401 | 403) => "allow this key to list, read, write and delete below the prefix (docs/backup.md)",
        (_, 404) => "correct phase2.backup.s3.endpoint, bucket and path_style; then: turnup up",
        _ => "turnup backup now (tries again)",
    }
}
