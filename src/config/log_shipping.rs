//! Settings of log shipping that no single format judges: the server for each protocol, and what
//! needs TLS. Pure.

use super::format::{Format, parse_quantity};
use super::problem::Problem;
use super::values::Values;

const ENDPOINT: &str = "phase3.log_shipping_endpoint";
const OUTPUT: &str = "phase3.log_shipping_output";
const CA_FILE: &str = "phase3.log_shipping_ca_file";
const QUEUE: &str = "phase3.log_shipping_queue";
const MEMORY: &str = "phase3.log_shipping_memory_limit";
/// A collector without work has about half of it.
const LEAST_MEMORY: &str = "128Mi";
/// A queue holds some requests at least, and the file that it is in becomes little larger.
const QUEUES: [&str; 2] = ["16Mi", "100Gi"];

/// Where logs go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogServer {
    /// Whether by TLS.
    pub tls: bool,
    /// A name or an address; one of IPv6 in brackets.
    pub host: String,
    /// None where the protocol has one of its own.
    pub port: Option<u16>,
}

impl LogServer {
    /// The server that `phase3.log_shipping_endpoint` names for this protocol.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for people.
    pub fn parse(output: &str, endpoint: &str) -> Result<Self, String> {
        let ([plain, tls], example) = match output {
            "syslog" => (["tcp", "tls"], "tls://logs.example.com:6514"),
            "otlp-grpc" => (["http", "https"], "https://logs.example.com:4317"),
            _ => (["http", "https"], "https://loki.example.com/otlp"),
        };
        let wrong = |why: &str| format!("{endpoint}: {why}; expected for {output} such as {example}");
        let (scheme, rest) = endpoint.split_once("://").ok_or_else(|| wrong("it does not begin with a scheme"))?;
        if ![plain, tls].contains(&scheme) {
            return Err(wrong(&format!("its scheme is neither {plain} nor {tls}")));
        }
        if rest.contains('@') {
            // Not shown: it may have a password.
            return Err(format!(
                "a user name or password is in it; {}",
                match output {
                    "syslog" => "syslog has none".to_owned(),
                    _ => "put a header into phase3.log_shipping_headers_file".to_owned(),
                }
            ));
        }
        let (address, path) = rest.split_once('/').map_or((rest, None), |(address, path)| (address, Some(path)));
        let is_url = matches!(output, "otlp-http" | "otlp-http-json");
        if path.is_some_and(|path| !is_url || !path.bytes().all(is_of_a_path)) {
            return Err(wrong(if is_url {
                "its path has other letters than A-Z a-z 0-9 - . _ ~ / %"
            } else {
                "it has a path"
            }));
        }
        if path.is_some_and(|path| path.trim_end_matches('/').ends_with("v1/logs")) {
            return Err(wrong("/v1/logs is added to it"));
        }
        let (host, port) = split_port(address).ok_or_else(|| wrong("its host or its port is wrong"))?;
        if port.is_none() && !is_url {
            return Err(wrong("it has no port"));
        }
        Ok(Self { tls: scheme == tls, host, port })
    }
}

fn is_of_a_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)
}

fn split_port(address: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
        _ => (address, None),
    };
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_good = match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => Format::Host.validate(host).is_ok(),
    };
    is_good.then(|| (host.to_owned(), port))
}

/// Everything that is wrong with these settings.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let text = |name: &str| facts.text(name).filter(|text| !text.is_empty());
    if let (Some(output), Some(endpoint)) = (text(OUTPUT), text(ENDPOINT)) {
        match LogServer::parse(output, endpoint) {
            Err(why) => problems.push(Problem::of(ENDPOINT, why)),
            Ok(server) if !server.tls && text(CA_FILE).is_some() => {
                let why = format!(
                    "{endpoint} is without TLS ({ENDPOINT}) and has no certificate; leave the file out, or take TLS"
                );
                problems.push(Problem::of(CA_FILE, why));
            }
            Ok(_) => {}
        }
    }
    if let Some(limit) = text(MEMORY).filter(|limit| parse_quantity(limit) < parse_quantity(LEAST_MEMORY)) {
        let why = format!("{limit} is less than {LEAST_MEMORY}: a collector would read nothing for want of memory");
        problems.push(Problem::of(MEMORY, why));
    }
    if let Some(queue) = text(QUEUE) {
        let [least, most] = QUEUES.map(parse_quantity);
        let size = parse_quantity(queue);
        if size < least || size > most {
            problems.push(Problem::of(QUEUE, format!("{queue} is not from {} to {}", QUEUES[0], QUEUES[1])));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;
    use crate::config::{Settings, TreeSource};

    fn server(tls: bool, host: &str, port: impl Into<Option<u16>>) -> LogServer {
        LogServer { tls, host: host.into(), port: port.into() }
    }

    #[test]
    fn a_server_is_what_its_protocol_takes() {
        for (output, endpoint, expected) in [
            ("otlp-http", "https://loki.example.com/otlp", server(true, "loki.example.com", None)),
            ("otlp-http-json", "http://10.0.0.1:4318", server(false, "10.0.0.1", 4318)),
            ("otlp-http", "http://[2001:db8::1]:4318/", server(false, "[2001:db8::1]", 4318)),
            ("otlp-http", "http://[2001:db8::1]", server(false, "[2001:db8::1]", None)),
            ("otlp-grpc", "https://otel.monitoring.svc:4317", server(true, "otel.monitoring.svc", 4317)),
            ("syslog", "tls://logs.example.com:6514", server(true, "logs.example.com", 6514)),
            ("syslog", "tcp://192.0.2.7:514", server(false, "192.0.2.7", 514)),
        ] {
            assert_eq!(LogServer::parse(output, endpoint), Ok(expected), "{output} {endpoint}");
        }
        for (output, endpoint, why) in [
            ("otlp-http", "loki.example.com", "it does not begin with a scheme"),
            ("otlp-http", "tcp://loki.example.com", "its scheme is neither http nor https"),
            ("otlp-http", "https://loki.example.com/v1/logs", "/v1/logs is added to it"),
            ("otlp-http", "https://loki.example.com/a?b=${env:PATH}", "its path has other letters"),
            ("otlp-http", "https://loki.example.com:0", "its host or its port is wrong"),
            ("otlp-http", "https://", "its host or its port is wrong"),
            ("otlp-http", "https://$host", "its host or its port is wrong"),
            ("otlp-grpc", "https://otel.example.com", "it has no port"),
            ("otlp-grpc", "https://otel.example.com:4317/x", "it has a path"),
            ("syslog", "udp://logs.example.com:514", "its scheme is neither tcp nor tls"),
            (
                "syslog",
                "tls://logs.example.com",
                "it has no port; expected for syslog such as tls://logs.example.com:6514",
            ),
        ] {
            let said = LogServer::parse(output, endpoint).unwrap_err();
            assert!(said.contains(why), "{output} {endpoint}: {said}");
        }
        let said = LogServer::parse("otlp-http", "https://me:word@loki.example.com").unwrap_err();
        assert_eq!(said, "a user name or password is in it; put a header into phase3.log_shipping_headers_file");
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let source = TreeSource::embedded();
        let refused = |more: &[(&str, &str)]| {
            let mut settings = Settings::defaults(&source).unwrap();
            settings.set_all(&[("phase3.log_shipping", "y"), (ENDPOINT, "http://192.0.2.7:4318")]).unwrap();
            settings.set_all(more).map_or_else(|error| error.message().to_owned(), |_| String::new())
        };
        assert_eq!(refused(&[]), "");
        for (name, value, why) in [
            (OUTPUT, "syslog", "its scheme is neither tcp nor tls"),
            (CA_FILE, "ca.crt", "http://192.0.2.7:4318 is without TLS"),
            (QUEUE, "1Mi", "1Mi is not from 16Mi to 100Gi"),
            (QUEUE, "1Ti", "1Ti is not from 16Mi to 100Gi"),
            (MEMORY, "64Mi", "64Mi is less than 128Mi: a collector would read nothing"),
        ] {
            let said = refused(&[(name, value)]);
            assert!(said.contains(why), "{name}: {said}");
        }
        assert_eq!(refused(&[(ENDPOINT, "https://192.0.2.7:4318"), (CA_FILE, "ca.crt")]), "");
    }
}
