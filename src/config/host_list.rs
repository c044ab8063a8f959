//! Hosts in the forms in which people have them, as `phase1.baremetal.hosts` lists them: lines,
//! CSV, inventories of Ansible (INI, YAML), what ssh-keyscan prints, and the setting's own JSON or
//! YAML.
//!
//! Pure: names are not resolved, and nothing is asked. What a value must look like is judged by the
//! setting's format afterwards.

use std::net::Ipv4Addr;

use serde_json::{Map, Value};

use crate::input::unify_line_ends;

/// The setting.
pub const HOSTS: &str = "phase1.baremetal.hosts";

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList {
    /// The hosts as the setting has them, but for roles that the text does not say.
    pub hosts: Vec<Value>,
    /// Host keys of addresses, as ssh-keyscan prints them.
    pub keys: Vec<(String, String)>,
}

type Host = Map<String, Value>;

/// Words for a field of a host, as other tools call it.
const FIELDS: [(&str, &[&str]); 11] = [
    ("name", &["name", "host", "hostname", "node", "inventory_hostname"]),
    ("address", &["address", "ip", "ipv4", "addr", "ansible_host", "ansible_ssh_host"]),
    ("role", &["role", "roles", "type"]),
    ("ssh_user", &["ssh_user", "user", "ansible_user", "ansible_ssh_user"]),
    ("ssh_port", &["ssh_port", "port", "ansible_port", "ansible_ssh_port"]),
    ("ssh_jump", &["ssh_jump", "jump", "bastion"]),
    ("host_key", &["host_key", "hostkey", "ssh_host_key"]),
    ("zone", &["zone", "rack"]),
    ("labels", &["labels"]),
    ("taints", &["taints"]),
    ("etcd_device", &["etcd_device", "etcd_disk"]),
];

/// Words for the roles.
const CONTROL_PLANE: [&str; 11] = [
    "control-plane",
    "controlplane",
    "control",
    "controller",
    "controllers",
    "master",
    "masters",
    "kube-master",
    "kube-control-plane",
    "server",
    "servers",
];
const WORKER: [&str; 8] = ["worker", "workers", "node", "nodes", "kube-node", "agent", "agents", "compute"];

/// Reads a list of hosts, whichever form it has.
pub fn read_hosts(text: &str) -> Result<HostList, String> {
    let text = unify_line_ends(text);
    let text = text.trim_start_matches('\u{feff}').trim();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| is_content(line)).collect();
    let Some(first) = lines.first() else { return Err("there is no host in it".to_owned()) };
    let json = first.starts_with(['{', '[']).then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    let mut list = if let Some(document) = &json {
        from_document(document)?
    } else if lines.iter().any(|line| is_section(line)) {
        from_ini(&lines)?
    } else if is_yaml(text) {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| format!("as YAML: {error}"))?;
        from_document(&value)?
    } else if let Some(columns) = header(first) {
        from_csv(&columns, &lines[1..])?
    } else {
        from_lines(&lines)?
    };
    finish(&mut list)?;
    Ok(list)
}

fn is_content(line: &str) -> bool {
    !line.is_empty() && !line.starts_with(['#', ';']) && line != "---"
}

/// `[group]` alone in its line.
fn is_section(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']') && !line.contains(['{', '"', ' '])
}

/// A key with nothing behind its colon, or a list of objects.
fn is_yaml(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| is_content(line.trim()));
    lines.next().is_some_and(|line| {
        let line = line.trim();
        line.starts_with("- ") || line.ends_with(':') || line.starts_with("hosts: ")
    })
}

/// The field that a word stands for.
fn field_of(word: &str) -> Option<&'static str> {
    let word = word.trim().trim_matches('"').to_lowercase().replace('-', "_");
    FIELDS.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(field, _)| *field)
}

/// The role that a word, or the name of a group, stands for.
fn role_of(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase().replace('_', "-");
    if CONTROL_PLANE.contains(&word.as_str()) {
        return Some("control-plane");
    }
    WORKER.contains(&word.as_str()).then_some("worker")
}

/// Sets a field from a text, in the type that it has in JSON.
fn put(host: &mut Host, field: &str, text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    let value = match field {
        "role" => role_of(text).ok_or_else(|| format!("`{text}` is no role: expected control-plane or worker"))?.into(),
        "ssh_port" => text.parse::<u16>().map_err(|_| format!("`{text}` is no port"))?.into(),
        "labels" => {
            let pairs = text.split([',', ';', ' ']).filter(|pair| !pair.is_empty());
            let pair = |pair: &str| {
                let (key, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is no label: KEY=VALUE"))?;
                Ok((key.to_owned(), Value::from(value)))
            };
            Value::Object(pairs.map(pair).collect::<Result<_, String>>()?)
        }
        "taints" => text.split([',', ';', ' ']).filter(|taint| !taint.is_empty()).collect(),
        "host_key" => text.split_whitespace().take(2).collect::<Vec<_>>().join(" ").into(),
        _ => text.into(),
    };
    host.insert(field.to_owned(), value);
    Ok(())
}

/// `name address role key=value …` in any order, one host in each line; `user@address`; lines of
/// /etc/hosts and of ssh-keyscan.
fn from_lines(lines: &[&str]) -> Result<HostList, String> {
    let mut list = HostList::default();
    for line in lines {
        match key_line(line) {
            Some(key) => list.keys.push(key),
            None => {
                list.hosts.push(Value::Object(host_of_line(line, false).map_err(|why| format!("`{line}`: {why}"))?));
            }
        }
    }
    Ok(list)
}

/// `ADDRESS TYPE KEY`, with `[ADDRESS]:PORT` for other ports than 22.
fn key_line(line: &str) -> Option<(String, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [place, kind, key, ..] = words.as_slice() else { return None };
    let address = place.strip_prefix('[').map_or(*place, |rest| rest.split(']').next().unwrap_or_default());
    (is_key_type(kind) && address.parse::<Ipv4Addr>().is_ok()).then(|| (address.to_owned(), format!("{kind} {key}")))
}

/// Whether a word is the type of an SSH key, which stands before the key.
fn is_key_type(word: &str) -> bool {
    word.starts_with("ssh-") || word.starts_with("ecdsa-")
}

/// A host of a line; in an inventory of Ansible variables for other tools are usual.
fn host_of_line(line: &str, of_ansible: bool) -> Result<Host, String> {
    let mut host = Host::new();
    let mut words = words(line);
    while let Some(word) = words.next() {
        if is_key_type(word) {
            let key = words.next().ok_or("the key is missing behind its type")?;
            put(&mut host, "host_key", &format!("{word} {key}"))?;
        } else if let Some((field, value)) = word.split_once('=') {
            put_variable(&mut host, field, value.trim_end_matches(','), of_ansible)?;
        } else {
            put_word(&mut host, word)?;
        }
    }
    Ok(host)
}

/// The words of a line: between blanks, or between commas where no value has one.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().flat_map(|word| {
        let is_value = word.split_once('=').is_some_and(|(field, _)| !field.contains(','));
        word.split(move |letter| letter == ',' && !is_value).filter(|part| !part.is_empty())
    })
}

/// A word that does not say what it is: an address, a role or the name.
fn put_word(host: &mut Host, word: &str) -> Result<(), String> {
    let (user, place) = word.split_once('@').map_or((None, word), |(user, place)| (Some(user), place));
    if place.parse::<Ipv4Addr>().is_ok() {
        user.map_or(Ok(()), |user| put(host, "ssh_user", user))?;
        return put(host, "address", place);
    }
    match role_of(word) {
        Some(role) if host.contains_key("name") || host.contains_key("address") => put(host, "role", role),
        _ if !host.contains_key("name") => put(host, "name", word),
        // Further names of /etc/hosts.
        _ if host.get("name").and_then(Value::as_str).is_some_and(|name| short_name(name) == short_name(word)) => {
            Ok(())
        }
        _ => Err(format!("`{word}` is neither an IPv4 address, a role nor FIELD=VALUE")),
    }
}

/// `FIELD=VALUE` of a line, as Ansible writes variables; those that say nothing of a host are left
/// out, and refused where they can only be a slip.
fn put_variable(host: &mut Host, field: &str, value: &str, of_ansible: bool) -> Result<(), String> {
    let value = value.trim_matches(['"', '\'']);
    match field_of(field) {
        Some(field) => put(host, field, value),
        None if of_ansible || field.starts_with("ansible_") => Ok(()),
        None => {
            let known = FIELDS.iter().flat_map(|(_, words)| words.iter().copied());
            let close = kconfig::suggest(field, known).map(|close| format!("; did you mean {close}?"));
            Err(format!("{field} is no field of a host{}", close.unwrap_or_default()))
        }
    }
}

/// The fields of a header line of CSV; none where the line is none.
fn header(line: &str) -> Option<Vec<Option<&'static str>>> {
    let columns: Vec<Option<&'static str>> = split(line).iter().map(|cell| field_of(cell)).collect();
    let has = |field| columns.contains(&Some(field));
    (columns.len() > 1 && has("name") && has("address")).then_some(columns)
}

/// The cells of a line: separated by tabs, semicolons or commas, quoted where they contain one.
fn split(line: &str) -> Vec<String> {
    let separator = ['\t', ';'].into_iter().find(|separator| line.contains(*separator)).unwrap_or(',');
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            letter if letter == separator && !quoted => cells.push(String::new()),
            letter => cells.last_mut().into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn from_csv(columns: &[Option<&'static str>], lines: &[&str]) -> Result<HostList, String> {
    let row = |line: &&str| {
        let mut host = Host::new();
        for (column, cell) in columns.iter().zip(split(line)) {
            if let Some(field) = column {
                put(&mut host, field, &cell).map_err(|why| format!("`{line}`: {why}"))?;
            }
        }
        Ok(Value::Object(host))
    };
    let hosts = lines.iter().map(row).collect::<Result<_, String>>()?;
    Ok(HostList { hosts, ..HostList::default() })
}

/// An inventory of Ansible in INI: groups are roles where their names say one.
fn from_ini(lines: &[&str]) -> Result<HostList, String> {
    let mut list = HostList::default();
    // Before the first section hosts are in no group.
    let mut group = "ungrouped";
    for line in lines {
        if is_section(line) {
            group = line.trim_matches(['[', ']']);
        } else if !group.contains(':') {
            let mut host = host_of_line(line, true).map_err(|why| format!("`{line}`: {why}"))?;
            mark(&mut host, group);
            add(&mut list, host);
        }
    }
    Ok(list)
}

/// Takes the role that a group's name says.
fn mark(host: &mut Host, group: &str) {
    if let Some(role) = role_of(group).filter(|_| !host.contains_key("role")) {
        host.insert("role".into(), role.into());
    }
}

/// Adds a host, or what another group says of one that is there: a control-plane host that is also
/// a worker is a control-plane host.
fn add(list: &mut HostList, host: Host) {
    let same =
        list.hosts.iter_mut().filter_map(Value::as_object_mut).find(|other| other.get("name") == host.get("name"));
    let Some(known) = same else { return list.hosts.push(Value::Object(host)) };
    for (field, value) in host {
        let stays = known.get(&field).is_some_and(|old| field != "role" || old == "control-plane");
        if !stays {
            known.insert(field, value);
        }
    }
}

/// The setting's own list, an inventory file, or an inventory of Ansible in YAML.
fn from_document(document: &Value) -> Result<HostList, String> {
    let mut list = HostList::default();
    match document {
        Value::Array(hosts) => hosts.iter().try_for_each(|host| add_object(&mut list, None, host))?,
        Value::Object(members) => match members.get("hosts") {
            Some(Value::Array(hosts)) => hosts.iter().try_for_each(|host| add_object(&mut list, None, host))?,
            _ => members.iter().try_for_each(|(name, group)| add_group(&mut list, name, group, 0))?,
        },
        _ => return Err("expected a list of hosts".to_owned()),
    }
    Ok(list)
}

/// A group of Ansible's inventory: `hosts` by name, and `children`, which are groups.
fn add_group(list: &mut HostList, name: &str, group: &Value, depth: usize) -> Result<(), String> {
    // An inventory of people is never that deep.
    if depth > 16 {
        return Err(format!("the group {name} is nested too deeply"));
    }
    let members = |key: &str| group.get(key).and_then(Value::as_object).into_iter().flatten();
    for (host, variables) in members("hosts") {
        let mut object = Host::new();
        object.insert("name".into(), host.as_str().into());
        for (field, value) in variables.as_object().into_iter().flatten() {
            if field_of(field) != Some("name") {
                object.insert(field.clone(), value.clone());
            }
        }
        add_object(list, Some(name), &Value::Object(object))?;
    }
    members("children").try_for_each(|(name, group)| add_group(list, name, group, depth + 1))
}

/// One object: fields by any of their names; the connection of an inventory file stands in `ssh`.
fn add_object(list: &mut HostList, group: Option<&str>, object: &Value) -> Result<(), String> {
    let Some(members) = object.as_object() else { return Err(format!("`{object}` is no host: expected an object")) };
    let mut host = Host::new();
    let ssh = members.get("ssh").and_then(Value::as_object);
    let ssh = ssh.into_iter().flatten().map(|(field, value)| (format!("ssh_{field}"), value));
    for (key, value) in members.iter().map(|(key, value)| (key.clone(), value)).chain(ssh) {
        let Some(field) = field_of(&key) else { continue };
        match value {
            Value::String(text) => put(&mut host, field, text)?,
            Value::Null => {}
            Value::Number(number) => put(&mut host, field, &number.to_string())?,
            other => drop(host.insert(field.to_owned(), other.clone())),
        }
    }
    if let Some(group) = group {
        mark(&mut host, group);
    }
    add(list, host);
    Ok(())
}

/// What the text leaves open: names.
fn finish(list: &mut HostList) -> Result<(), String> {
    for host in list.hosts.iter_mut().filter_map(Value::as_object_mut) {
        name_host(host)?;
    }
    require_distinct(&list.hosts)?;
    list.hosts = list.hosts.iter().map(ordered).collect();
    Ok(())
}

/// An error where two hosts have one name: the second one would replace the first.
fn require_distinct(hosts: &[Value]) -> Result<(), String> {
    for (at, host) in hosts.iter().enumerate() {
        if let Some(other) = hosts[..at].iter().find(|other| other["name"] == host["name"] && *other != host) {
            let text = |host: &Value, field: &str| host[field].as_str().unwrap_or_default().to_owned();
            let (name, one, two) = (text(host, "name"), text(other, "address"), text(host, "address"));
            return Err(format!("two hosts have the name {name}: {one} and {two}"));
        }
    }
    Ok(())
}

/// The same with its fields in the order of the setting.
pub(super) fn ordered(host: &Value) -> Value {
    let fields = FIELDS.iter().filter_map(|(field, _)| Some(((*field).to_owned(), host.get(*field)?.clone())));
    Value::Object(fields.collect())
}

/// The name as a node has it, and the address, which may be the name.
fn name_host(host: &mut Host) -> Result<(), String> {
    let text = |host: &Host, field: &str| host.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut name, mut address) = (text(host, "name"), text(host, "address"));
    if address.is_empty() && name.parse::<Ipv4Addr>().is_ok() {
        (name, address) = (String::new(), name);
    }
    if address.parse::<Ipv4Addr>().is_err() {
        let shown = if name.is_empty() { &address } else { &name };
        return Err(format!("{shown} has no IPv4 address; look with: getent ahostsv4 {shown}"));
    }
    if name.is_empty() {
        name = format!("host-{}", address.replace('.', "-"));
    }
    host.insert("name".into(), short_name(&name).into());
    host.insert("address".into(), address.into());
    Ok(())
}

/// The first label of a name, in letters that a node's name may have.
fn short_name(name: &str) -> String {
    name.split('.').next().unwrap_or_default().to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What all forms below say.
    fn expected() -> Vec<Value> {
        vec![
            json!({"name": "m1", "address": "192.0.2.11", "role": "control-plane", "ssh_user": "ops"}),
            json!({"name": "w1", "address": "192.0.2.21", "role": "worker", "ssh_user": "ops", "ssh_port": 2222}),
        ]
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        let why = |text: &str| read_hosts(text).unwrap_err();
        let slip = "`m1 192.0.2.11 ssh_usr=x`: ssh_usr is no field of a host; did you mean ssh_user?";
        assert_eq!(why("m1 192.0.2.11 ssh_usr=x"), slip);
        assert!(read_hosts("[workers]\nw1 ansible_host=192.0.2.21 etcd_member_name=e1\n").is_ok(), "of another tool");
        assert_eq!(
            why("m1 192.0.2.11\nM_1 192.0.2.12\nm-1 192.0.2.13"),
            "two hosts have the name m-1: 192.0.2.12 and 192.0.2.13"
        );
        for end in ["\r", "\r\n"] {
            let list = read_hosts(&format!("m1 192.0.2.11 control-plane{end}w1 192.0.2.21{end}")).unwrap();
            assert_eq!(list.hosts.len(), 2, "terminals paste such ends of lines");
        }
    }

    #[test]
    fn hosts_are_read_in_every_form_in_which_people_have_them() {
        for text in [
            "# ours\nm1 192.0.2.11 control-plane user=ops\n\nw1 192.0.2.21 worker user=ops port=2222\n",
            "m1,192.0.2.11,control-plane,user=ops\nw1, 192.0.2.21, worker, user=ops, port=2222\n",
            "ops@192.0.2.11 m1.example.com master\nops@192.0.2.21\tw1\tnode ssh_port=2222",
            "name,address,role,user,port\nm1,192.0.2.11,control-plane,ops,\nw1,192.0.2.21,worker,ops,2222\n",
            "Hostname;IP;Role;User;Port\nM1;192.0.2.11;master;ops;\n\"W1\";192.0.2.21;agent;ops;2222",
            "[kube_control_plane]\nm1 ansible_host=192.0.2.11 ansible_user=ops\n[etcd]\nm1\n[kube_node]\nm1\n\
             w1 ansible_host=192.0.2.21 ansible_user=ops ansible_port=2222 ansible_become=true\n[all:vars]\nx=y\n",
            "all:\n  children:\n    masters:\n      hosts:\n        m1: {ansible_host: 192.0.2.11, ansible_user: ops}\n    \
             workers:\n      hosts:\n        w1:\n          ansible_host: 192.0.2.21\n          ansible_user: ops\n          \
             ansible_port: 2222\n",
            "- name: m1\n  address: 192.0.2.11\n  role: control-plane\n  ssh_user: ops\n- {name: w1, address: 192.0.2.21, \
             role: worker, ssh_user: ops, ssh_port: 2222}\n",
            r#"{"schema": "turnup.inventory/1", "hosts": [{"name": "m1", "address": "192.0.2.11", "role": "control-plane",
                "ssh": {"user": "ops"}}, {"name": "w1", "address": "192.0.2.21", "role": "worker", "ssh": {"user": "ops",
                "port": 2222}}]}"#,
            &Value::from(expected()).to_string(),
        ] {
            let list = read_hosts(text).unwrap();
            assert_eq!(list.hosts, expected(), "{text}");
        }
    }

    #[test]
    fn labels_keep_their_commas() {
        let list = read_hosts("m1 192.0.2.11 master labels=rack=a,disk=ssd\n").unwrap();
        assert_eq!(list.hosts[0]["labels"], json!({"rack": "a", "disk": "ssd"}));
    }

    #[test]
    fn what_is_no_host_is_named() {
        for (text, why) in [
            ("", "there is no host in it"),
            ("m1 control-plane", "m1 has no IPv4 address; look with: getent ahostsv4 m1"),
            ("m1 192.0.2.11 boss", "`m1 192.0.2.11 boss`: `boss` is neither an IPv4 address, a role nor FIELD=VALUE"),
            (
                "name,address,role\nm1,192.0.2.11,boss",
                "`m1,192.0.2.11,boss`: `boss` is no role: expected control-plane or worker",
            ),
            ("m1 192.0.2.11 port=x", "`m1 192.0.2.11 port=x`: `x` is no port"),
            ("[\"m1\"]", "`\"m1\"` is no host: expected an object"),
        ] {
            assert_eq!(read_hosts(text).unwrap_err(), why, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\PC\\n\\[\\]{}:=,@\"-]{0,80}") {
            drop(read_hosts(&text));
        }

        #[test]
        fn what_was_read_is_read_again(names in proptest::collection::btree_set("[a-z][a-z0-9]{0,8}x", 1..6)) {
            let lines: Vec<String> =
                names.iter().enumerate().map(|(at, name)| format!("{name} 192.0.2.{} worker", at + 1)).collect();
            let list = read_hosts(&lines.join("\n")).unwrap();
            prop_assert_eq!(list.hosts.len(), names.len());
            prop_assert_eq!(read_hosts(&Value::from(list.hosts.clone()).to_string()).unwrap().hosts, list.hosts);
        }
    }
}
