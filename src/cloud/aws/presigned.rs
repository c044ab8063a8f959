//! The token by which a machine proves its role: a request to Amazon's STS, `GetCallerIdentity`,
//! signed in its query, that its bearer may send for a minute. The form is that of
//! aws-iam-authenticator (<https://github.com/kubernetes-sigs/aws-iam-authenticator>); the header
//! `x-k8s-aws-id`, which is signed too, names the one cluster that it is for.
//!
//! Pure. What is read is sent to STS, so nothing passes that another request could be made of.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use zeroize::Zeroizing;

use super::sigv4::{PresignedRequest, escape};
use crate::cloud::LentKey;

/// How every token begins.
pub(super) const PREFIX: &str = "k8s-aws-v1.";
/// The header that says for which cluster it is.
pub(super) const CLUSTER_HEADER: &str = "x-k8s-aws-id";
/// How long one is good. A kubelet asks with it at once, and makes another one for the next time.
const LIFE: u32 = 60;
/// The longest life that is taken: Amazon's own for such requests.
const LONGEST_LIFE: u32 = 15 * 60;
/// By so much the clocks of two hosts may differ.
const SKEW: SignedDuration = SignedDuration::from_secs(60);
/// Bytes of a token. What a role lends has a session of one to two kilobytes.
const LONGEST: usize = 8 << 10;

const ACTION: (&str, &str) = ("Action", "GetCallerIdentity");
const VERSION: (&str, &str) = ("Version", "2011-06-15");
const ALGORITHM: (&str, &str) = ("X-Amz-Algorithm", "AWS4-HMAC-SHA256");
const SIGNED: (&str, &str) = ("X-Amz-SignedHeaders", "host;x-k8s-aws-id");
const CREDENTIAL: &str = "X-Amz-Credential";
const DATE: &str = "X-Amz-Date";
const EXPIRES: &str = "X-Amz-Expires";
const SIGNATURE: &str = "X-Amz-Signature";
/// All parameters of such a request; each comes once.
const PARAMETERS: [&str; 9] =
    [ACTION.0, VERSION.0, ALGORITHM.0, CREDENTIAL, DATE, EXPIRES, "X-Amz-Security-Token", SIGNATURE, SIGNED.0];

/// The STS of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StsPlace {
    pub(super) region: String,
    /// `amazonaws.com`, elsewhere in the partition of China.
    pub(super) domain: String,
}

impl StsPlace {
    pub(super) fn host(&self) -> String {
        format!("sts.{}.{}", self.region, self.domain)
    }
}

/// The token of who has this key, for this cluster, and when it ends.
pub(super) fn make(
    place: &StsPlace,
    cluster: &str,
    key: &LentKey,
    moment: Timestamp,
) -> (Zeroizing<String>, Timestamp) {
    let host = place.host();
    let request = PresignedRequest {
        region: &place.region,
        service: "sts",
        query: &[ACTION, VERSION],
        headers: &[("host", host.as_str()), (CLUSTER_HEADER, cluster)],
        expires: LIFE,
        moment,
    };
    let url = Zeroizing::new(format!("https://{host}/?{}", request.sign(key).as_str()));
    let token = Zeroizing::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(url.as_bytes())));
    (token, moment + SignedDuration::from_secs(i64::from(LIFE)))
}

/// The query of the request to STS that the token is, as it has to be sent; else why it is none.
pub(super) fn read(token: &str, place: &StsPlace, now: Timestamp) -> Result<Zeroizing<String>, String> {
    let text = token.strip_prefix(PREFIX).ok_or("it begins otherwise")?;
    if token.len() > LONGEST {
        return Err(format!("it has more than {LONGEST} bytes"));
    }
    let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).map_err(|_| "it is no base64")?);
    let url = std::str::from_utf8(&bytes).map_err(|_| "it is no text")?;
    // Nothing stands between the scheme and this host, or between the host and the query: no user,
    // no port, no path.
    let start = format!("https://{}/?", place.host());
    let query = url.strip_prefix(&start).ok_or_else(|| format!("it is no request to {start}"))?;
    let parameters = split(query)?;
    let is = |(name, value): (&'static str, &str)| {
        let fits = parameters.get(name).is_some_and(|found| found == value);
        if fits { Ok(()) } else { Err(format!("its {name} is not {value}")) }
    };
    [ACTION, VERSION, ALGORITHM, SIGNED].into_iter().try_for_each(is)?;
    let text = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
    let signature = text(SIGNATURE);
    if signature.len() != 64 || !signature.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return Err(format!("its {SIGNATURE} is none"));
    }
    require_time(text(DATE), text(EXPIRES), now)?;
    require_scope(text(CREDENTIAL), text(DATE), &place.region)?;
    Ok(Zeroizing::new(query.to_owned()))
}

/// Names and values of the parameters, as they were before they were escaped in the one way that
/// signatures are made of.
fn split(query: &str) -> Result<BTreeMap<&'static str, String>, String> {
    let mut all = BTreeMap::new();
    for pair in query.split('&') {
        let (name, escaped) = pair.split_once('=').ok_or("it has a parameter without a value")?;
        let name = PARAMETERS.into_iter().find(|known| *known == name).ok_or("it has a parameter of another kind")?;
        let value = unescape(escaped).filter(|value| escape(value) == escaped);
        let value = value.ok_or_else(|| format!("its {name} is not escaped as it has to be"))?;
        if all.insert(name, value).is_some() {
            return Err(format!("it has two {name}"));
        }
    }
    match PARAMETERS.into_iter().find(|name| !all.contains_key(name)) {
        Some(missing) => Err(format!("it has no {missing}")),
        None => Ok(all),
    }
}

/// None for what is no text, or not escaped.
fn unescape(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

fn require_time(date: &str, expires: &str, now: Timestamp) -> Result<(), String> {
    let made = DateTime::strptime("%Y%m%dT%H%M%SZ", date).ok().and_then(|made| made.to_zoned(TimeZone::UTC).ok());
    let made = made.map(|made| made.timestamp()).ok_or_else(|| format!("its {DATE} is none"))?;
    let life = expires.parse::<u32>().ok().filter(|life| (1..=LONGEST_LIFE).contains(life));
    let life = life.ok_or_else(|| format!("its {EXPIRES} is not from 1 to {LONGEST_LIFE}"))?;
    let age = now.duration_since(made);
    if age < -SKEW {
        return Err("it is of a time to come: do the clocks differ?".into());
    }
    if age > SignedDuration::from_secs(i64::from(life)) + SKEW {
        return Err("it has ended".into());
    }
    Ok(())
}

/// `KEY/DAY/REGION/sts/aws4_request`.
fn require_scope(credential: &str, date: &str, region: &str) -> Result<(), String> {
    let parts: Vec<&str> = credential.split('/').collect();
    let day = date.get(..8).unwrap_or_default();
    let fits = matches!(&parts[..], [key, rest @ ..] if is_key(key) && rest == [day, region, "sts", "aws4_request"]);
    if fits { Ok(()) } else { Err(format!("its {CREDENTIAL} is not for the STS of {region}")) }
}

fn is_key(key: &str) -> bool {
    (16..=128).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
#[path = "presigned_tests.rs"]
mod tests;
