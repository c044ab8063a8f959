//! `turnup node machine-identity`: what shows which machine this is, in the form in which a
//! kubelet takes a credential. Written nowhere: the kubelet asks again when it has ended.

use serde_json::{Value, json};

use crate::cloud::{self, Endpoints, IdentityToken};
use crate::error::{Error, Result};

/// A token of this machine for this audience, as an `ExecCredential` of
/// `client.authentication.k8s.io/v1`.
pub(crate) fn fetch(cloud: &str, audience: &str) -> Result<Value> {
    Ok(credential(&fetch_token(cloud, audience, &Endpoints::default())?))
}

/// The token itself.
pub(super) fn fetch_token(cloud: &str, audience: &str, endpoints: &Endpoints) -> Result<IdentityToken> {
    let fetch = cloud::find(cloud).and_then(cloud::Cloud::fetch_identity);
    let none = || Error::precondition(format!("{cloud:?} says nothing that tells one machine from another"));
    fetch.ok_or_else(none)?(endpoints, audience)
}

fn credential(token: &IdentityToken) -> Value {
    let mut status = json!({"token": *token.text});
    if let Some(ends) = token.ends {
        status["expirationTimestamp"] = ends.strftime("%FT%TZ").to_string().into();
    }
    json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    /// A metadata service that answers once; what it was asked.
    fn ask(status: &str, body: &str) -> (Result<IdentityToken>, String) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let endpoints = Endpoints { metadata: format!("http://{}", listener.local_addr().unwrap()), api: None };
        let answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut asked, mut bytes) = (String::new(), [0; 4096]);
            while !asked.contains("\r\n\r\n") {
                let count = stream.read(&mut bytes).unwrap();
                asked += &String::from_utf8_lossy(&bytes[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            asked
        });
        let found = fetch_token("gce", "turnup.dev/gce/p-123456/shop", &endpoints);
        (found, server.join().unwrap())
    }

    #[test]
    fn a_kubelet_gets_what_the_metadata_service_says_and_until_when() {
        let claims = URL_SAFE_NO_PAD.encode(json!({"exp": 1_767_225_600}).to_string());
        let (token, asked) = ask("200 OK", &format!("e30.{claims}.c2ln\n"));
        let token = token.unwrap();
        assert_eq!(*token.text, format!("e30.{claims}.c2ln"));
        let path = "/computeMetadata/v1/instance/service-accounts/default/identity?audience=turnup.dev/gce/p-123456/shop&format=full";
        assert!(asked.starts_with(&format!("GET {path} ")), "{asked}");
        assert!(asked.to_lowercase().contains("metadata-flavor: google"), "{asked}");
        let credential = credential(&token);
        assert_eq!(credential["status"], json!({"token": *token.text, "expirationTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(
            super::credential(&IdentityToken { text: "a.b.c".to_owned().into(), ends: None })["status"],
            json!({"token": "a.b.c"}),
            "its end is the API server's to know"
        );
    }

    #[test]
    fn what_is_no_token_is_none() {
        for body in ["", "<html>login</html>", "a.b", "a.b.c d"] {
            let error = ask("200 OK", body).0.err().unwrap();
            assert_eq!(error.message(), "the metadata service of this host answers with no identity token", "{body}");
        }
        let error = ask("404 Not Found", "no service account").0.err().unwrap();
        assert!(error.message().contains("answered 404"), "{}", error.message());
        let error = fetch_token("azure", "a", &Endpoints::default()).err().unwrap();
        assert_eq!(error.message(), "\"azure\" says nothing that tells one machine from another");
    }
}
