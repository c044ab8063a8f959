//! The metadata service of a machine of Compute Engine: which machine it is, and what its service
//! account is lent. It decides nothing.

use zeroize::Zeroizing;

use crate::cloud::Endpoints;
use crate::cloud::http::{self, Bearer};
use crate::error::{Error, Result};

/// How errors name it.
const SERVICE: &str = "the metadata service";

/// What it says of this, a path below `computeMetadata/v1/`.
pub(super) fn ask(endpoints: &Endpoints, what: &str) -> Result<String> {
    let url = format!("{}/computeMetadata/v1/{what}", endpoints.metadata);
    http::ask_metadata("GET", &url, &[("Metadata-Flavor", "Google")])
}

/// What the machine's service account is lent.
pub(super) fn lend_token(endpoints: &Endpoints) -> Result<Bearer> {
    Bearer::parse(&Zeroizing::new(ask(endpoints, "instance/service-accounts/default/token")?))
}

/// Which machine it is, as the cloud controller manager names it.
pub(super) fn provider_id(endpoints: &Endpoints) -> Result<String> {
    let ask = |what: &str| ask(endpoints, what);
    let (project, zone, machine) = (ask("project/project-id")?, ask("instance/zone")?, ask("instance/name")?);
    // `projects/NUMBER/zones/ZONE`
    let zone = zone.trim().rsplit('/').next().unwrap_or_default();
    let (project, machine) = (project.trim(), machine.trim());
    let is_word = |text: &str, also: &[u8]| {
        let fits =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || also.contains(&byte);
        !text.is_empty() && text.bytes().all(fits)
    };
    // Projects of a domain: `example.com:project`.
    if !is_word(project, b".:") || !is_word(zone, b"") || !is_word(machine, b"") {
        return Err(Error::transient(format!("{SERVICE} does not say which machine this is"))
            .evidence(format!("project {project:?}, zone {zone:?}, name {machine:?}"))
            .hint(
                "is this host a machine of Compute Engine? turnup config set phase3.cloud_controller=n where it is not",
            ));
    }
    Ok(format!("gce://{project}/{zone}/{machine}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::http_server::{LOOPBACK, send, serve};

    /// A metadata service that says this of the machine, to those who ask as Google wants it.
    fn ask(project: &'static str, zone: &'static str, machine: &'static str) -> Result<String> {
        let metadata = serve(LOOPBACK, move |request, stream| {
            let is_google = request.headers.get("metadata-flavor").is_some_and(|flavor| flavor == "Google");
            let body = match request.path.as_str() {
                "/computeMetadata/v1/project/project-id" if is_google => project,
                "/computeMetadata/v1/instance/zone" if is_google => zone,
                "/computeMetadata/v1/instance/name" if is_google => machine,
                _ => "",
            };
            send(stream, "200 OK", body.as_bytes())
        });
        provider_id(&Endpoints { metadata, api: None })
    }

    #[test]
    fn a_machine_is_named_as_its_cloud_controller_manager_names_it() {
        let zone = "projects/123456789012/zones/us-central1-a";
        assert_eq!(ask("a-project", zone, "c1-web-x7k2").unwrap(), "gce://a-project/us-central1-a/c1-web-x7k2");
        let of_domain = ask("example.com:p", zone, "c1-web-x7k2").unwrap();
        assert_eq!(of_domain, "gce://example.com:p/us-central1-a/c1-web-x7k2");
        for (project, zone, machine) in [
            ("", zone, "c1"),
            ("a-project", "", "c1"),
            ("a-project", zone, ""),
            ("a/b", zone, "c1"),
            ("p", zone, "c --v=9"),
        ] {
            let message = ask(project, zone, machine).unwrap_err().render();
            assert!(message.starts_with("error: the metadata service does not say which machine this is"), "{message}");
        }
    }
}
