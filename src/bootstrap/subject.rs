//! Certificates of users in several groups. rcgen's names have one organization at most, and
//! Kubernetes takes each organization of a subject as a group: so the subject of a finished
//! certificate is exchanged, and the certificate signed again. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::SigningKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::{Context as _, Result};

/// Tags of DER (X.690), and the types of the two attributes (X.520): organizationName and
/// commonName.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const BIT_STRING: u8 = 0x03;
const UTF8: u8 = 0x0c;
const ORGANIZATION: [u8; 5] = [0x06, 3, 0x55, 4, 10];
const COMMON_NAME: [u8; 5] = [0x06, 3, 0x55, 4, 3];

/// The certificate in DER with this user and these groups as its subject, signed by the same
/// authority again.
pub(super) fn with_groups(
    certificate: &[u8],
    user: &str,
    groups: &[String],
    authority: &impl SigningKey,
) -> Result<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).context("a new certificate is unreadable")?;
    let body = parsed.tbs_certificate.as_ref();
    let subject = parsed.subject().as_raw();
    let (start, end) = (offset(body, subject), offset(body, subject) + subject.len());
    let names = groups.iter().map(|group| attribute(ORGANIZATION, group)).chain([attribute(COMMON_NAME, user)]);
    let names: Vec<u8> = names.flatten().collect();
    let body_start = header(body);
    let content = [&body[body_start..start], &encode(SEQUENCE, &names), &body[end..]].concat();
    let signed = encode(SEQUENCE, &content);
    let signature = authority.sign(&signed).context("cannot sign a certificate")?;
    // The algorithm stands between what is signed and the signature, and is short.
    let algorithm = &certificate[offset(certificate, body) + body.len()..];
    let algorithm = &algorithm[..header(algorithm) + usize::from(algorithm[1])];
    // No unused bits at its end.
    let signature = encode(BIT_STRING, &[&[0], signature.as_slice()].concat());
    Ok(encode(SEQUENCE, &[&signed, algorithm, &signature].concat()))
}

/// The certificate in PEM.
pub(super) fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Where a part of these bytes begins.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// How long tag and length are.
fn header(element: &[u8]) -> usize {
    2 + if element[1] < 0x80 { 0 } else { usize::from(element[1] & 0x7f) }
}

/// A relative distinguished name with one attribute.
fn attribute(kind: [u8; 5], value: &str) -> Vec<u8> {
    encode(SET, &encode(SEQUENCE, &[&kind, encode(UTF8, value.as_bytes()).as_slice()].concat()))
}

/// An element: tag, length, content.
fn encode(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut element = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => element.push(short),
        // At most eight bytes.
        _ => element.extend([0x80 | u8::try_from(digits.len()).unwrap_or_default()].iter().chain(digits)),
    }
    element.extend_from_slice(content);
    element
}
