//! User data as cloud-init reads it: `#cloud-config` in JSON, which is YAML as well; with the
//! user's own parts a MIME message around it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::cluster::user_data::{UserDataKind, UserDataPart};
use crate::error::{Context as _, Result};
use crate::node::layout;

use super::write_file::{Login, UserDataDocument, WriteFile, WrittenKind, pack};

/// The whole document: ASCII alone, so that no encoding of a cloud can harm it.
pub(super) fn render(document: &UserDataDocument) -> Result<String> {
    let config = cloud_config(document)?;
    if document.parts.is_empty() { Ok(config) } else { message(&document.parts, &config) }
}

fn cloud_config(document: &UserDataDocument) -> Result<String> {
    let files = document.write_files.iter().map(file).collect::<Result<Vec<_>>>()?;
    let units: Vec<&str> = document
        .write_files
        .iter()
        .filter(|file_entry| file_entry.kind == WrittenKind::Unit)
        .map(|file_entry| file_entry.path)
        .collect();
    let enable = ["systemctl", "enable", "--now", "--no-block"].iter().chain(&units).collect::<Vec<_>>();
    let config = json!({
        // The user's own parts come first and keep their values; lists are appended to.
        "merge_how": [{"name": "list", "settings": ["append"]}, {"name": "dict", "settings": ["no_replace", "recurse_list"]}],
        "users": [user(&document.login)],
        "disable_root": document.login.user != "root",
        "ssh_pwauth": false,
        "write_files": files,
        // Last, so that everything that the user's parts install is there before.
        "runcmd": [["systemctl", "daemon-reload"], enable],
    });
    Ok(format!("#cloud-config\n{}\n", escape(&in_lines(&config)?)))
}

/// One value a line, for people, and no indentation: Amazon takes few bytes.
fn in_lines(config: &Value) -> Result<String> {
    let mut bytes = Vec::new();
    let mut lines = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b""));
    config.serialize(&mut lines).context("the cloud-config is no JSON")?;
    String::from_utf8(bytes).context("the cloud-config is no text")
}

fn user(login: &Login) -> Value {
    if login.user == "root" {
        return json!({"name": "root", "ssh_authorized_keys": login.keys});
    }
    json!({
        "name": login.user,
        "ssh_authorized_keys": login.keys,
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "shell": "/bin/bash",
        "lock_passwd": true,
    })
}

fn file(file_entry: &WriteFile) -> Result<Value> {
    let entry = |path: &str, mode: u32, encoding: Option<&str>, content: &str| {
        let mut entry =
            json!({"path": path, "permissions": format!("{mode:04o}"), "owner": "root:root", "content": content});
        if let Some(encoding) = encoding {
            entry["encoding"] = json!(encoding);
        }
        entry
    };
    Ok(match file_entry.kind {
        WrittenKind::Packed(mode) => entry(file_entry.path, mode, Some("gz+b64"), &pack(&file_entry.bytes)?),
        WrittenKind::Plain(mode) => entry(file_entry.path, mode, None, file_entry.text()?),
        WrittenKind::Unit => entry(&layout::unit_file(file_entry.path), 0o644, None, file_entry.text()?),
    })
}

/// JSON's text in ASCII, by YAML's escapes: JSON's own for what is beyond the basic plane are two
/// halves, which YAML does not put together, and some letters that JSON leaves as they are end a
/// line in YAML or are refused.
pub(super) fn escape(json: &str) -> String {
    let escaped = |letter: char| match u32::from(letter) {
        0x0a | 0x20..=0x7e => letter.to_string(),
        code @ ..=0xff => format!("\\x{code:02X}"),
        code @ ..=0xffff => format!("\\u{code:04X}"),
        code => format!("\\U{code:08X}"),
    };
    json.chars().map(escaped).collect()
}

/// A MIME message: the user's parts in their order, and ours unencoded, because a placeholder in it
/// may have to be replaced.
fn message(parts: &[(UserDataPart, Vec<u8>)], config: &str) -> Result<String> {
    // The same document every time; no part has such a line, since one is ASCII of ours and the
    // others are base64.
    let boundary = format!("turnup-{}", &hex::encode(Sha256::digest(config))[..24]);
    let mut text = format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n");
    for (at, (part, bytes)) in parts.iter().enumerate() {
        let (ending, kind) = match part.kind {
            UserDataKind::ShellScript => ("sh", "text/x-shellscript"),
            UserDataKind::CloudConfig | UserDataKind::Ignition => ("yaml", "text/cloud-config"),
        };
        // Scripts run in the order of these names, and before cloud-init's own `runcmd`.
        let name = format!("part-{:03}-{}.{ending}", at + 1, part.name);
        let (kind, body) = if bytes.is_ascii() {
            ("application/gzip".to_owned(), pack(bytes)?)
        } else {
            // cloud-init 22.4 loses the letters beyond ASCII of what it unpacks.
            (format!("{kind}; charset=\"utf-8\""), STANDARD.encode(bytes))
        };
        text += &entry(&boundary, &kind, "base64", &name, &wrap(&body));
    }
    text += &entry(&boundary, "text/cloud-config; charset=\"us-ascii\"", "7bit", "turnup.yaml", config);
    Ok(text + &format!("--{boundary}--\n"))
}

fn entry(boundary: &str, kind: &str, encoding: &str, name: &str, body: &str) -> String {
    format!(
        "--{boundary}\nContent-Type: {kind}\nMIME-Version: 1.0\nContent-Transfer-Encoding: {encoding}\nContent-Disposition: attachment; filename=\"{name}\"\n\n{body}\n"
    )
}

/// Lines of 76 letters, as MIME has them.
fn wrap(base64: &str) -> String {
    let lines: Vec<&str> = base64.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    lines.join("\n")
}
