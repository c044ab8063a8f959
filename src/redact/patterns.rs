//! Secrets that are known by their own form: tokens of services, JSON web tokens, bootstrap tokens,
//! passwords in addresses, headers. Pure.
//!
//! Each pattern has one group or is its whole match; the rest of the match stays, so that a reader
//! sees what was removed.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use regex::bytes::Regex;

use super::matching::{Match, pattern};

/// A form, and what else has to hold of what it found in which text.
struct SecretPattern {
    what: &'static str,
    pattern: LazyLock<Regex>,
    holds: fn(&[u8], &std::ops::Range<usize>) -> bool,
}

/// Tokens by the prefixes that their makers gave them for this purpose.
const SERVICES: [&str; 20] = [
    r"gh[oprsu]_[A-Za-z0-9]{36,}",
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-[A-Za-z0-9_.-]{20,}",
    r"xox[abdeoprs]-[A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{20,}",
    // Google: access tokens, API keys, OAuth clients, refresh tokens.
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"AIza[A-Za-z0-9_-]{35,64}",
    r"GOCSPX-[A-Za-z0-9_-]{20,64}",
    r"1//0[A-Za-z0-9_-]{20,}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,}",
    r"dckr_[op]at_[A-Za-z0-9_-]{20,}",
    r"do[opr]_v1_[a-f0-9]{64}",
    // HashiCorp: Vault, HCP Terraform.
    r"hv[brs]\.[A-Za-z0-9_-]{20,}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}",
    r"(?:[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{40,})",
    r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
    r"glsa_[A-Za-z0-9_]{32,64}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{58,64}",
    // A secret of an application in Microsoft Entra ID.
    r"[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,40}",
];

/// What comes before the scheme, in a header of HTTP or in a log of one.
const AUTHORIZATION: &str = r#"(?i)authorization\\*["']?\s*[:=]\s*(?:\[\s*)?\\*["']?"#;

static FORMS: [SecretPattern; 12] = [
    SecretPattern {
        what: "a token of a service",
        pattern: LazyLock::new(|| pattern(&SERVICES.join("|"))),
        holds: begins_a_word,
    },
    SecretPattern {
        what: "the address of a web hook",
        pattern: LazyLock::new(|| pattern(r"hooks\.slack\.com/(?:services|triggers|workflows)/([A-Za-z0-9/_-]{20,})")),
        holds: always,
    },
    SecretPattern {
        what: "a JSON web token",
        pattern: LazyLock::new(|| {
            pattern(r"eyJ[A-Za-z0-9_=-]{5,}\.[A-Za-z0-9_=-]{8,}\.[A-Za-z0-9_=-]{8,}[A-Za-z0-9_=.~-]*")
        }),
        holds: always,
    },
    // A request to STS in base64, which its bearer may send.
    SecretPattern {
        what: "a machine's token",
        pattern: LazyLock::new(|| pattern(r"k8s-aws-v1\.[A-Za-z0-9_-]{20,}")),
        holds: always,
    },
    SecretPattern {
        what: "a bootstrap token",
        pattern: LazyLock::new(|| pattern(r"[a-z0-9]{6}\.[a-z0-9]{16}")),
        holds: is_bootstrap_token,
    },
    // Up to the last @ before the path.
    SecretPattern {
        what: "a password in an address",
        pattern: LazyLock::new(|| pattern(r#":(?:\\?/){2}[^\s/?#"'<>@:\\]*:([^\s/?#"'<>\\]+)@"#)),
        holds: is_no_digest,
    },
    SecretPattern {
        what: "a token in an address",
        pattern: LazyLock::new(|| pattern(r":(?:\\?/){2}([A-Za-z0-9_-]{20,})(?::x-oauth-basic|:)?@")),
        holds: |bytes, range| looks_random(&bytes[range.clone()]),
    },
    SecretPattern {
        what: "the credentials of a header",
        pattern: LazyLock::new(|| {
            let schemes = "apikey|basic|bearer|negotiate|ntlm|sharedkey|sharedkeylite|token";
            pattern(&format!(r#"{AUTHORIZATION}(?:{schemes})\s+([^\s,"'\\]+)"#))
        }),
        holds: always,
    },
    SecretPattern {
        what: "the credentials of a header",
        pattern: LazyLock::new(|| {
            let schemes = "aws4-hmac-sha256|digest|sharedaccesssignature";
            pattern(&format!(r#"{AUTHORIZATION}(?:{schemes})\s+([^\r\n"'\\]+)"#))
        }),
        holds: always,
    },
    SecretPattern {
        what: "the credentials of a header",
        pattern: LazyLock::new(|| pattern(r"(?i)\b(?:bearer|basic)(?:\s+|%20|\+)([A-Za-z0-9+/_.~-]{8,}=*)")),
        holds: are_credentials,
    },
    SecretPattern {
        what: "the signature of an address",
        pattern: LazyLock::new(|| {
            pattern(r"(?:[?&;]|\\u0026)(?:sig|X-Amz-Signature|X-Goog-Signature)=([A-Za-z0-9%+/=_-]{16,})")
        }),
        holds: always,
    },
    SecretPattern {
        what: "a password of a command line",
        pattern: LazyLock::new(|| {
            let (curl, netrc) =
                (r#"\bcurl\s[^\r\n]*?\s(?:-u|--user)[ =]?["']?[^\s:"']+:"#, r"\blogin\s+\S+\s+password\s+");
            pattern(&format!(r#"(?:{curl}|{netrc})([^\s"']+)"#))
        }),
        holds: always,
    },
];

/// An access key of Amazon's, which is a name, and what may be its secret.
static ACCESS_KEY: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}"));
static SECRET_KEY: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z0-9/+]{40,}"));
/// How far from its name the secret of an access key may stand.
const NEAR: usize = 256;

/// Every secret that has a form of its own.
pub(super) fn find(bytes: &[u8]) -> Vec<Match> {
    let mut hits = secret_keys(bytes);
    for form in &FORMS {
        for found in form.pattern.captures_iter(bytes) {
            let Some(secret) = found.get(1).or_else(|| found.get(0)) else { continue };
            if (form.holds)(bytes, &secret.range()) {
                hits.push(Match::new(secret.range(), form.what));
            }
        }
    }
    hits
}

/// Words of 40 letters near the name of an access key.
fn secret_keys(bytes: &[u8]) -> Vec<Match> {
    let mut hits = Vec::new();
    let mut from = 0;
    for name in ACCESS_KEY.find_iter(bytes) {
        let start = from.max(name.start().saturating_sub(NEAR));
        let end = bytes.len().min(name.end() + NEAR);
        if start >= end {
            continue;
        }
        for word in SECRET_KEY.find_iter(&bytes[start..end]) {
            if word.len() == 40 && looks_random(word.as_bytes()) && !word.as_bytes().iter().all(u8::is_ascii_hexdigit) {
                hits.push(Match::new(start + word.start()..start + word.end(), "a secret access key"));
            }
        }
        // No place is looked at for two names.
        from = end.saturating_sub(40).max(start);
    }
    hits
}

const fn always(_: &[u8], _: &std::ops::Range<usize>) -> bool {
    true
}

/// Whether what is in front of it is no part of the same word.
fn begins_a_word(bytes: &[u8], range: &std::ops::Range<usize>) -> bool {
    range.start.checked_sub(1).is_none_or(|before| !bytes[before].is_ascii_alphanumeric())
}

/// A token stands alone between anything that is no letter of it. Words have no digits: one of
/// 1,200 tokens has none either.
fn is_bootstrap_token(bytes: &[u8], range: &std::ops::Range<usize>) -> bool {
    let letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let alone = !letter(range.start.checked_sub(1).and_then(|at| bytes.get(at))) && !letter(bytes.get(range.end));
    alone && bytes[range.clone()].iter().any(u8::is_ascii_digit)
}

/// Not `nginx:1.25@sha256:…`, which is an image.
fn is_no_digest(bytes: &[u8], range: &std::ops::Range<usize>) -> bool {
    !["@sha256:", "@sha512:"].iter().any(|digest| bytes[range.end..].starts_with(digest.as_bytes()))
}

/// What stands behind `Bearer` or `Basic`, and no word of a sentence.
fn are_credentials(bytes: &[u8], range: &std::ops::Range<usize>) -> bool {
    let text = &bytes[range.clone()];
    let head = &bytes[range.start.saturating_sub(12)..range.start];
    if head.to_ascii_lowercase().windows(6).any(|word| word == b"bearer") {
        return text.len() >= 12 && (looks_random(text) || text.len() >= 24);
    }
    is_pair_in_base64(text)
}

/// Whether this is the base64 of `user:password`.
pub(super) fn is_pair_in_base64(text: &[u8]) -> bool {
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'=').collect();
    let decoded = STANDARD_NO_PAD.decode(text).unwrap_or_default();
    decoded.contains(&b':') && decoded.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
}

/// Letters and digits, as no word of a language has them.
pub(super) fn looks_random(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic)
}
