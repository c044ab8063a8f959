//! A kubelet's certificate request (PKCS #10, RFC 2986), read byte for byte.
//! The signer reads the request with another parser. So nothing passes that two parsers could read
//! differently: the request has to equal, byte for byte, the one that says what was judged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521};
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension};
use x509_parser::public_key::PublicKey;

/// The group of all kubelets: the organization of their certificates.
pub(super) const NODES: &str = "system:nodes";
/// What the user name of a kubelet begins with: the common name of its certificate.
pub(super) const NODE_USER: &str = "system:node:";
/// Bits: the shortest that NIST SP 800-131A accepts.
const SHORTEST_RSA: usize = 2048;

/// The DER of a request.
pub(super) struct Der(Vec<u8>);

/// A request that can be read.
pub(super) struct Request<'d> {
    csr: X509CertificationRequest<'d>,
    has_more: bool,
}

impl Der {
    /// From what `spec.request` of a `CertificateSigningRequest` holds: one block of PEM, in
    /// base64.
    pub(super) fn decode(text: &str) -> Result<Self, String> {
        decode(text).map(Self).ok_or_else(|| "its request is not one block of PEM".to_owned())
    }

    pub(super) fn read(&self) -> Result<Request<'_>, String> {
        let (rest, csr) =
            X509CertificationRequest::from_der(&self.0).map_err(|_| "its request cannot be read".to_owned())?;
        Ok(Request { csr, has_more: !rest.is_empty() })
    }
}

impl Request<'_> {
    /// The name of the Node that its common name says; what else is in the subject is not looked
    /// at.
    pub(super) fn node(&self) -> Option<&str> {
        let subject = &self.csr.certification_request_info.subject;
        subject.iter_common_name().next()?.as_str().ok()?.strip_prefix(NODE_USER)
    }

    /// The subject as text.
    pub(super) fn subject(&self) -> String {
        self.csr.certification_request_info.subject.to_string()
    }

    /// The names and addresses that it asks for.
    pub(super) fn sans(&self) -> Vec<&GeneralName<'_>> {
        let extensions = self.csr.requested_extensions().into_iter().flatten();
        let names = extensions.filter_map(|extension| match extension {
            ParsedExtension::SubjectAlternativeName(alternative) => Some(&alternative.general_names),
            _ => None,
        });
        names.flatten().collect()
    }

    /// An error unless the key is ECDSA on one of NIST's curves, or RSA of 2048 bits or more.
    pub(super) fn check_key(&self) -> Result<(), String> {
        let key = &self.csr.certification_request_info.subject_pki;
        let curve = key.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
        let is_good = match key.parsed() {
            Ok(PublicKey::EC(_)) => {
                curve.is_some_and(|curve| [OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521].contains(&curve))
            }
            Ok(PublicKey::RSA(key)) => key.key_size() >= SHORTEST_RSA,
            _ => false,
        };
        if is_good { Ok(()) } else { Err("its key is neither ECDSA nor RSA of 2048 bits or more".to_owned()) }
    }

    /// Whether its bytes are those of a kubelet of this name that asks for exactly these names and
    /// addresses with this key.
    pub(super) fn is_exactly(&self, node: &str, sans: &[&GeneralName<'_>]) -> bool {
        let info = &self.csr.certification_request_info;
        let is_expected = |tag: &u8| expected(*tag, node, info.subject_pki.raw, sans) == info.raw;
        !self.has_more && [PRINTABLE, UTF8].iter().any(is_expected)
    }
}

/// The one block of PEM, without headers, and nothing before or behind it.
fn decode(text: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    let body = text.strip_prefix("-----BEGIN CERTIFICATE REQUEST-----\n")?;
    let body = body.trim_end().strip_suffix("\n-----END CERTIFICATE REQUEST-----")?;
    STANDARD.decode(body.replace(['\n', '\r'], "")).ok()
}

const PRINTABLE: u8 = 0x13;
const UTF8: u8 = 0x0c;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// What a kubelet of this name signs when it asks for these names with this key: RFC 2986 4.1, in
/// DER. `tag` is the type of its texts. A client's asks for none, so it has no attribute.
fn expected(tag: u8, node: &str, key: &[u8], names: &[&GeneralName<'_>]) -> Vec<u8> {
    let part = |kind: u8, text: &str| {
        let pair = der(SEQUENCE, &[&[0x06, 0x03, 0x55, 0x04, kind], &der(tag, &[text.as_bytes()])]);
        der(SET, &[&pair])
    };
    // organizationName and commonName.
    let subject = der(SEQUENCE, &[&part(0x0a, NODES), &part(0x03, &format!("{NODE_USER}{node}"))]);
    let name = |name: &&GeneralName<'_>| match name {
        GeneralName::DNSName(dns) => der(0x82, &[dns.as_bytes()]),
        GeneralName::IPAddress(bytes) => der(0x87, &[bytes]),
        // `judge` has refused others; nothing equals this.
        _ => Vec::new(),
    };
    if names.is_empty() {
        return der(SEQUENCE, &[&[0x02, 0x01, 0x00], &subject, key, &der(0xa0, &[])]);
    }
    let names: Vec<u8> = names.iter().flat_map(name).collect();
    // subjectAltName, as the only extension in the only attribute: extensionRequest.
    let value = der(0x04, &[&der(SEQUENCE, &[&names])]);
    let extensions = der(SEQUENCE, &[&der(SEQUENCE, &[&[0x06, 0x03, 0x55, 0x1d, 0x11], &value])]);
    let kind = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
    let attributes = der(0xa0, &[&der(SEQUENCE, &[&kind, &der(SET, &[&extensions])])]);
    der(SEQUENCE, &[&[0x02, 0x01, 0x00], &subject, key, &attributes])
}

/// One element: tag, length in its shortest form, content.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut all = vec![tag];
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count().min(length.len() - 1)..];
    if content.len() >= 0x80 {
        all.extend(u8::try_from(length.len()).map(|count| 0x80 | count));
    }
    all.extend(length);
    all.extend(content);
    all
}
