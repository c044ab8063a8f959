//! `turnup node provider-id`: which machine of its cloud this host is, for the kubelet that starts
//! next and registers its Node with it. A Node keeps the one that it was registered with, so the
//! agent looks after those that were there before (`agent::machine`). It decides nothing else.

use std::path::Path;

use crate::atomic_file::{self, FileMode};
use crate::cloud::{self, Endpoints};
use crate::error::{Context as _, Error, Result};

/// Where it lies, as a variable for kubelet's unit, in the directory of the agent's. It is gone
/// with the boot: a disk can be given to another machine.
pub(crate) const FILE: &str = "/run/turnup/provider-id";
/// The variable.
pub(crate) const VARIABLE: &str = "PROVIDER_ID";

/// Asks the metadata service of this cloud, and writes down what it says.
pub(crate) fn write(cloud: &str) -> Result<()> {
    let provider_id = fetch(cloud, &Endpoints::default())?;
    let (file, text) = (Path::new(FILE), format!("{VARIABLE}={provider_id}\n"));
    // The agent, whose directory it is, starts after kubelet.
    fs_err::create_dir_all(atomic_file::directory_of(file))?;
    atomic_file::replace(file, text.as_bytes(), FileMode::Exact(0o644)).context(FILE)
}

fn fetch(cloud: &str, endpoints: &Endpoints) -> Result<String> {
    let fetch = cloud::find(cloud).and_then(cloud::Cloud::fetch_provider_id);
    let none = || Error::precondition(format!("turnup knows no provider IDs of {cloud:?}"));
    fetch.ok_or_else(none)?(endpoints)
}

/// What was written down at this boot; none on hosts whose kubelet is told none.
pub(super) fn find() -> Option<String> {
    parse(&fs_err::read_to_string(FILE).ok()?)
}

fn parse(text: &str) -> Option<String> {
    let (name, value) = text.trim().split_once('=')?;
    (name == VARIABLE && !value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::http_server::{LOOPBACK, send, serve};

    /// A metadata service that says this of the machine.
    fn ask(machine: &'static str, zone: &'static str) -> Result<String> {
        let metadata = serve(LOOPBACK, move |request, stream| {
            let session = request.headers.get("x-aws-ec2-metadata-token");
            let has_session = session.is_some_and(|session| session == "session");
            let body = match (request.method.as_str(), request.path.as_str()) {
                ("PUT", "/latest/api/token") => "session",
                ("GET", "/latest/meta-data/instance-id") if has_session => machine,
                ("GET", "/latest/meta-data/placement/availability-zone") if has_session => zone,
                _ => "",
            };
            send(stream, "200 OK", body.as_bytes())
        });
        fetch("aws", &Endpoints { metadata, api: None })
    }

    #[test]
    fn a_machine_is_named_as_its_cloud_controller_manager_names_it() {
        assert_eq!(ask("i-0123456789abcdef0", "us-east-1a").unwrap(), "aws:///us-east-1a/i-0123456789abcdef0");
        for (machine, zone) in
            [("", "us-east-1a"), ("i-0123", ""), ("<html>", "us-east-1a"), ("i-0 --v=9", "us-east-1a")]
        {
            let message = ask(machine, zone).unwrap_err().render();
            assert!(message.starts_with("error: the metadata service does not say which machine this is"), "{message}");
        }
        let message = fetch("custom", &Endpoints::default()).unwrap_err().render();
        assert!(message.contains("turnup knows no provider IDs of \"custom\""), "{message}");
    }

    #[test]
    fn what_was_written_for_kubelet_is_read_again() {
        assert_eq!(parse("PROVIDER_ID=aws:///us-east-1a/i-01\n").as_deref(), Some("aws:///us-east-1a/i-01"));
        assert_eq!(["", "PROVIDER_ID=\n", "OTHER=aws:///a/i-0"].map(parse), [None, None, None]);
    }
}
