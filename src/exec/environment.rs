//! What a child inherits of our environment: an allow-list, so that a run does not depend on the
//! shell that it was typed into.

use std::collections::HashMap;
use std::ffi::OsString;

use crate::failpoint;

/// The names that every child inherits. A trailing `*` stands for any ending; proxies (`*_PROXY`)
/// come in both cases.
///
/// Credentials of clouds are not in it on purpose: `Run::inherit` gives them to the one program
/// that needs them.
pub const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_*",
    "TZ",
    "TERM",
    "TMPDIR",
    "XDG_*",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "*_PROXY",
    "*_proxy",
    "TF_*",
    // Go's own, name by name: `GO*` would let GOOGLE_* through.
    "GOAUTH",
    "GOCACHE",
    "GODEBUG",
    "GOENV",
    "GOFLAGS",
    "GOINSECURE",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOMODCACHE",
    "GONOPROXY",
    "GONOSUMDB",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "GOTMPDIR",
    "GOTOOLCHAIN",
    "GOVCS",
];

/// Our environment without everything that neither the allow-list nor these additional patterns
/// name.
pub(super) fn inherited(more: &[String]) -> HashMap<OsString, OsString> {
    let names = || ALLOWED.iter().copied().chain(failpoint::VARIABLE).chain(more.iter().map(String::as_str));
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|name| names().any(|pattern| matches(pattern, name))))
        .collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    if let Some(start) = pattern.strip_suffix('*') {
        return name.starts_with(start);
    }
    if let Some(end) = pattern.strip_prefix('*') {
        return name.ends_with(end);
    }
    pattern == name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(name: &str) -> bool {
        ALLOWED.iter().any(|pattern| matches(pattern, name))
    }

    #[test]
    fn what_tools_need_passes_and_credentials_do_not() {
        for name in ["PATH", "LC_ALL", "https_proxy", "NO_PROXY", "TF_LOG", "GOPROXY", "XDG_RUNTIME_DIR"] {
            assert!(allowed(name), "{name}");
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "GOOGLE_CREDENTIALS", "LD_PRELOAD", "BASH_ENV", "GITHUB_TOKEN", "PATHS"] {
            assert!(!allowed(name), "{name}");
        }
    }

    #[test]
    fn more_patterns_widen_the_list() {
        assert!(matches("AWS_*", "AWS_PROFILE"));
        assert!(!matches("AWS_*", "MY_AWS_PROFILE"));
    }
}
