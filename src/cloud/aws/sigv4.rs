//! AWS Signature Version 4 of a request whose path and query are plain: letters, digits, `-_.~/`
//! and what is escaped already.
//!
//! As the "IAM User Guide: Signature Version 4 for API requests" has it; the tests are of Amazon's
//! published suite.

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::cloud::LentKey;
use crate::cloud::http::{self, HttpAnswer};
use crate::error::Result;

/// What is signed, and for whom.
pub(super) struct SignedRequest<'a> {
    pub(super) method: &'a str,
    /// `https://HOST`.
    pub(super) endpoint: &'a str,
    pub(super) path: &'a str,
    /// `NAME=VALUE&…`, escaped, in the order of the names.
    pub(super) query: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    /// The type of the body; it is one of the headers that are signed.
    pub(super) content_type: &'a str,
    pub(super) body: &'a str,
    pub(super) moment: Timestamp,
}

/// A body `NAME=VALUE&…`, escaped.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

impl SignedRequest<'_> {
    /// Signs it and sends it.
    pub(super) fn send(&self, lent: &LentKey) -> Result<HttpAnswer> {
        let signed = self.sign(lent);
        let headers: Vec<(&str, &str)> = signed.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let body = Some(self.body).filter(|body| !body.is_empty());
        http::ask(self.method, &format!("{}{}{query}", self.endpoint, self.path), &headers, body)
    }

    fn host(&self) -> &str {
        self.endpoint.split_once("://").map_or(self.endpoint, |(_, host)| host)
    }

    /// The headers to send besides those that every request has, the last of them the signature.
    fn sign(&self, lent: &LentKey) -> Vec<(&'static str, Zeroizing<String>)> {
        let moment = stamp(self.moment);
        let plain = |text: &str| Zeroizing::new(text.to_owned());
        // In the order of their names, as they are signed.
        let mut headers = vec![
            ("content-type", plain(self.content_type)),
            ("host", plain(self.host())),
            ("x-amz-date", plain(&moment)),
        ];
        if !lent.session.is_empty() {
            headers.push(("x-amz-security-token", lent.session.clone()));
        }
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines = headers.iter().map(|(name, value)| [*name, ":", value.as_str(), "\n"].concat());
        let lines = Zeroizing::new(lines.collect::<String>());
        let digest = hex::encode(Sha256::digest(self.body));
        let canonical = Zeroizing::new(format!(
            "{}\n{}\n{}\n{}\n{names}\n{digest}",
            self.method,
            self.path,
            self.query,
            lines.as_str()
        ));
        let scope = scope_of(&moment, self.region, self.service);
        let signature = sign(&canonical, &moment, &scope, lent);
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", lent.id);
        headers.retain(|(name, _)| *name != "host");
        headers.push(("authorization", Zeroizing::new(authorization)));
        headers
    }
}

/// A GET of `/` whose signature is a part of its query: its bearer may send it, for a while.
pub(super) struct PresignedRequest<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    /// Names and values, in the order of the names, which come before `X-Amz-`.
    pub(super) query: &'a [(&'a str, &'a str)],
    /// What has to be sent with it, in the order of the names.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// For how many seconds.
    pub(super) expires: u32,
    pub(super) moment: Timestamp,
}

impl PresignedRequest<'_> {
    /// The query, escaped, with the signature behind it.
    pub(super) fn sign(&self, lent: &LentKey) -> Zeroizing<String> {
        let moment = stamp(self.moment);
        let scope = scope_of(&moment, self.region, self.service);
        let names = self.headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let (credential, expires) = (format!("{}/{scope}", lent.id), self.expires.to_string());
        let mut pairs = self.query.to_vec();
        pairs.extend([
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &moment),
            ("X-Amz-Expires", &expires),
        ]);
        if !lent.session.is_empty() {
            pairs.push(("X-Amz-Security-Token", &lent.session));
        }
        pairs.push(("X-Amz-SignedHeaders", &names));
        let pairs = pairs.into_iter().map(|(name, value)| Zeroizing::new(format!("{name}={}", escape(value))));
        let pairs: Vec<Zeroizing<String>> = pairs.collect();
        let query = Zeroizing::new(pairs.iter().map(|pair| pair.as_str()).collect::<Vec<_>>().join("&"));
        let lines: String = self.headers.iter().map(|(name, value)| [*name, ":", *value, "\n"].concat()).collect();
        let digest = hex::encode(Sha256::digest(""));
        let canonical = Zeroizing::new(format!("GET\n/\n{}\n{lines}\n{names}\n{digest}", query.as_str()));
        let signature = sign(&canonical, &moment, &scope, lent);
        Zeroizing::new(format!("{}&X-Amz-Signature={signature}", query.as_str()))
    }
}

fn stamp(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn scope_of(moment: &str, region: &str, service: &str) -> String {
    format!("{}/{region}/{service}/aws4_request", &moment[..8])
}

/// The signature of a canonical request.
fn sign(canonical: &str, moment: &str, scope: &str, lent: &LentKey) -> String {
    let text = format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{}", hex::encode(Sha256::digest(canonical.as_bytes())));
    let secret = Zeroizing::new(format!("AWS4{}", lent.secret.as_str()));
    let first = Zeroizing::new(secret.as_bytes().to_vec());
    let key = scope.split('/').fold(first, |key, word| Zeroizing::new(hash(&key, word.as_bytes())));
    hex::encode(hash(&key, text.as_bytes()))
}

/// As a form has it (RFC 3986: letters, digits and `-._~` are themselves).
pub(super) fn escape(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}

fn hash(key: &[u8], text: &[u8]) -> Vec<u8> {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn key(session: &str) -> LentKey {
        LentKey {
            id: "AKIDEXAMPLE".into(),
            secret: Zeroizing::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into()),
            session: Zeroizing::new(session.into()),
        }
    }

    fn authorization(session: &str) -> String {
        let moment = "2015-08-30T12:36:00Z".parse().unwrap();
        let (host, region, service) = ("example.amazonaws.com", "us-east-1", "service");
        let form = SignedRequest {
            method: "POST",
            endpoint: host,
            path: "/",
            query: "",
            region,
            service,
            content_type: FORM,
            body: "Param1=value1",
            moment,
        };
        let headers = form.sign(&key(session));
        assert!(headers.iter().any(|(name, value)| *name == "x-amz-date" && value.as_str() == "20150830T123600Z"));
        headers.last().unwrap().1.as_str().to_owned()
    }

    #[test]
    fn amazons_own_example_has_amazons_signature() {
        // post-x-www-form-urlencoded of the suite.
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
            SignedHeaders=content-type;host;x-amz-date, \
            Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        assert_eq!(authorization(""), expected);
        let with_session = authorization("lent");
        assert!(
            with_session.contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "),
            "{with_session}"
        );
        assert!(!with_session.contains("ff11897932"), "the session is signed as well");
    }
}
