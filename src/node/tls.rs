//! Certificates and keys in PEM as the HTTP client takes them. Nothing here connects.

use std::path::Path;

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, parse_pem};

use crate::error::{Context as _, Result};
use crate::input;

/// All certificates of a text; what is none is left out.
pub(super) fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    parse_pem(pem).filter_map(certificate).collect()
}

/// Who a client is, by the files of its certificate and key.
pub(super) fn client(certificate: &Path, key: &Path) -> Result<ClientCert> {
    let no_pem = |path: &Path| format!("{} is no PEM", path.display());
    let read = |path: &Path| input::read(path, input::KEYS);
    let of_client = Certificate::from_pem(&read(certificate)?).context(no_pem(certificate))?;
    let key = PrivateKey::from_pem(&read(key)?).context(no_pem(key))?;
    Ok(ClientCert::new_with_certs(&[of_client], key))
}
