//! User data as Ignition reads it, in version 3.1 of its form: the oldest that has compressed
//! configurations to merge.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::error::{Context as _, Result};

use super::write_file::{UserDataDocument, WriteFile, WrittenKind, pack};

const VERSION: &str = "3.1.0";

/// The whole document. The user's own parts are merged into it; ours wins where both set a value.
pub(super) fn render(document: &UserDataDocument) -> Result<String> {
    let merge = document.parts.iter().map(|(_, bytes)| packed(bytes)).collect::<Result<Vec<_>>>()?;
    let login = &document.login;
    let mut files = document
        .write_files
        .iter()
        .filter_map(|file_entry| file(file_entry).transpose())
        .collect::<Result<Vec<_>>>()?;
    if login.user != "root" {
        let rule = format!("{} ALL=(ALL) NOPASSWD:ALL\n", login.user);
        files.push(json!({"path": "/etc/sudoers.d/90-turnup", "mode": 0o440, "overwrite": true, "contents": {"source": data(rule.as_bytes())}}));
    }
    let units = document
        .write_files
        .iter()
        .filter(|file_entry| file_entry.kind == WrittenKind::Unit)
        .map(unit)
        .collect::<Result<Vec<_>>>()?;
    let mut config = json!({
        "ignition": {"version": VERSION},
        "passwd": {"users": [{"name": login.user, "sshAuthorizedKeys": login.keys}]},
        "storage": {"files": files},
        "systemd": {"units": units},
    });
    if !merge.is_empty() {
        config["ignition"]["config"] = json!({"merge": merge});
    }
    let text = serde_json::to_string_pretty(&config).context("the Ignition configuration is no JSON")?;
    Ok(text + "\n")
}

fn data(bytes: &[u8]) -> String {
    format!("data:;base64,{}", STANDARD.encode(bytes))
}

fn packed(bytes: &[u8]) -> Result<Value> {
    Ok(json!({"compression": "gzip", "source": format!("data:;base64,{}", pack(bytes)?)}))
}

fn file(file_entry: &WriteFile) -> Result<Option<Value>> {
    let (mode, contents) = match file_entry.kind {
        WrittenKind::Packed(mode) => (mode, packed(&file_entry.bytes)?),
        // In plain: the placeholder in it may have to be replaced. What comes in its place is a
        // host's name or the line of all API servers, which need no escape in a URL.
        WrittenKind::Plain(mode) => (mode, json!({"source": format!("data:,{}", in_url(file_entry.text()?))})),
        WrittenKind::Unit => return Ok(None),
    };
    Ok(Some(json!({"path": file_entry.path, "mode": mode, "overwrite": true, "contents": contents})))
}

fn unit(file_entry: &WriteFile) -> Result<Value> {
    Ok(json!({"name": file_entry.path, "enabled": true, "contents": file_entry.text()?}))
}

/// Text in a `data:` URL (RFC 2397): what is not plain there is escaped. The placeholder's own
/// letters are.
fn in_url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@:._-~=,".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
