//! Names of people and of their groups, as certificates tell them to the API, and how long these
//! may live. Pure.

use std::time::Duration;

/// The group of administrators: `templates/bootstrap/rbac.yaml` binds it to `cluster-admin`.
pub const ADMINISTRATORS: &str = "turnup:cluster-admins";
/// What X.509 lets a name have (RFC 5280, `ub-common-name`).
pub const LONGEST_NAME: usize = 64;
/// What begins the names of the cluster's own users.
const OWN_USERS: [&str; 3] = ["system:", "turnup:", "kube-"];
/// What begins the names of groups that Kubernetes and turnup know.
const OWN_GROUPS: [&str; 2] = ["system:", "turnup:"];

/// The shortest life of the administrator's certificate: a run works with the one that it begins
/// with.
pub const SHORTEST: Duration = Duration::from_hours(1);
/// The longest life of a certificate of people.
pub const LONGEST: Duration = Duration::from_hours(365 * 24);

/// Who runs turnup, as the login said.
#[must_use]
pub fn own_user() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|user| !user.is_empty());
    variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "root".to_owned())
}

/// Nothing, or what is wrong with this name for a user.
pub fn judge_user(name: &str) -> Result<(), String> {
    judge(name)?;
    match OWN_USERS.into_iter().find(|start| name.starts_with(start)) {
        Some(start) => Err(format!("`{name}`: users whose names begin with `{start}` are the cluster's own")),
        None => Ok(()),
    }
}

/// Nothing, or what is wrong with this name for a group of people.
pub fn judge_group(name: &str) -> Result<(), String> {
    judge(name)?;
    match OWN_GROUPS.into_iter().find(|start| name.starts_with(start) && name != ADMINISTRATORS) {
        Some(start) => Err(format!("`{name}`: groups whose names begin with `{start}` are the cluster's own")),
        None => Ok(()),
    }
}

fn judge(name: &str) -> Result<(), String> {
    let outer = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:+/".contains(&byte);
    if name.len() > LONGEST_NAME {
        return Err(format!("`{name}` has {} characters; at most {LONGEST_NAME} are allowed", name.len()));
    }
    let ends = (name.bytes().next(), name.bytes().next_back());
    if outer(ends.0) && outer(ends.1) && name.bytes().all(inner) {
        return Ok(());
    }
    Err(format!("`{name}` is no name; expected letters, digits and -_.@:+/, a letter or digit at both ends"))
}

/// The name of the operator: `user@machine`, made fit to be one.
#[must_use]
pub fn operator(user: &str, machine: &str) -> String {
    let name = fit(&format!("{user}@{machine}"));
    if judge_user(&name).is_ok() { name } else { fit(&format!("operator-{name}")) }
}

fn fit(text: &str) -> String {
    let fit = |letter: char| if letter.is_ascii_alphanumeric() || "-_.@".contains(letter) { letter } else { '-' };
    let name: String = text.chars().map(fit).take(LONGEST_NAME).collect();
    name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_the_clusters_own_are_refused() {
        for name in ["anne", "anne@laptop.example.com", "oidc:anne", "a", "Team/Dev+1"] {
            assert_eq!((judge_user(name), judge_group(name)), (Ok(()), Ok(())), "{name}");
        }
        for name in
            ["system:node:w0", "system:masters", "turnup:x", "", "-oX=y", "a b", "a\n", "é", "x-", &"a".repeat(65)]
        {
            assert!(judge_user(name).is_err() && judge_group(name).is_err(), "{name:?}");
        }
        assert!(judge_user("kube-apiserver-kubelet-client").is_err_and(|why| why.contains("the cluster's own")));
        assert!(judge_group(ADMINISTRATORS).is_ok() && judge_user(ADMINISTRATORS).is_err());
    }

    #[test]
    fn every_operator_has_a_name() {
        assert_eq!(operator("anne", "laptop"), "anne@laptop");
        assert_eq!(operator("an ne", "lap\ttop."), "an-ne@lap-top");
        for (user, machine) in [("", ""), ("kube-ops", "x"), ("system:admin", "y"), (&"u".repeat(99), "z"), ("é", "")]
        {
            let name = operator(user, machine);
            assert_eq!(judge_user(&name), Ok(()), "{user:?} {machine:?} {name:?}");
        }
    }
}
