//! Certificates and keys in PEM as the HTTP client takes them. Nothing here connects.

use std::path::Path;

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

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

/// Both ends of a connection, by files in PEM: the authorities that the server's certificate is of,
/// and who the client is.
pub(super) fn connect(authority: &Path, certificate: &Path, key: &Path) -> Result<TlsConfig> {
    let authorities = certificates(&input::read(authority, input::KEYS)?);
    let roots = RootCerts::Specific(authorities.into());
    Ok(TlsConfig::builder().root_certs(roots).client_cert(Some(client(certificate, key)?)).build())
}

/// Who a client is, by the files of its certificate and key.
pub(super) fn client(certificate: &Path, key: &Path) -> Result<ClientCert> {
    let no_pem = |path: &Path| format!("{} is no PEM", path.display());
    let read = |path: &Path| input::read(path, input::KEYS);
    let of_client = Certificate::from_pem(&read(certificate)?).context(no_pem(certificate))?;
    let key = PrivateKey::from_pem(&read(key)?).context(no_pem(key))?;
    Ok(ClientCert::new_with_certs(&[of_client], key))
}
