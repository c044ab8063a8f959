//! The metadata service of a machine of Compute Engine: which machine it is. It decides nothing.

use crate::cloud::{Endpoints, http};
use crate::error::{Error, Result};

/// How errors name it.
const SERVICE: &str = "the metadata service";

/// Which machine it is, as the cloud controller manager names it.
pub(super) fn provider_id(endpoints: &Endpoints) -> Result<String> {
    let ask = |what: &str| {
        let url = format!("{}/computeMetadata/v1/{what}", endpoints.metadata);
        http::ask_metadata("GET", &url, &[("Metadata-Flavor", "Google")])
    };
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
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A metadata service that says this of the machine, to those who ask as Google wants it.
    fn ask(project: &'static str, zone: &'static str, machine: &'static str) -> Result<String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let endpoints = Endpoints { metadata: format!("http://{}", listener.local_addr().unwrap()), api: None };
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(std::result::Result::ok);
                let first = lines.next().unwrap_or_default();
                let is_google = lines
                    .take_while(|line| !line.is_empty())
                    .any(|line| line.eq_ignore_ascii_case("metadata-flavor: google"));
                let body = match first.split(' ').nth(1).unwrap_or_default() {
                    "/computeMetadata/v1/project/project-id" if is_google => project,
                    "/computeMetadata/v1/instance/zone" if is_google => zone,
                    "/computeMetadata/v1/instance/name" if is_google => machine,
                    _ => "",
                };
                let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        });
        provider_id(&endpoints)
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
