//! User data as Ignition reads it, in version 3.1 of its form: the oldest that has compressed configurations to merge.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::error::{Context as _, Result};

use super::piece::{Guest, Kind, Piece, pack};

const VERSION: &str = "3.1.0";

/// The whole document. Parts of a person's own are merged into it, and ours counts where both say something.
pub(super) fn render(guest: &Guest) -> Result<String> {
    let merge = guest.parts.iter().map(|(_, bytes)| packed(bytes)).collect::<Result<Vec<_>>>()?;
    let login = &guest.login;
    let mut files = guest.pieces.iter().filter_map(|piece| file(piece).transpose()).collect::<Result<Vec<_>>>()?;
    if login.user != "root" {
        let rule = format!("{} ALL=(ALL) NOPASSWD:ALL\n", login.user);
        files.push(json!({"path": "/etc/sudoers.d/90-turnup", "mode": 0o440, "overwrite": true, "contents": {"source": data(rule.as_bytes())}}));
    }
    let units = guest.pieces.iter().filter(|piece| piece.kind == Kind::Unit).map(unit).collect::<Result<Vec<_>>>()?;
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

fn file(piece: &Piece) -> Result<Option<Value>> {
    let (mode, contents) = match piece.kind {
        Kind::Packed(mode) => (mode, packed(&piece.bytes)?),
        // In plain: the mark in it may have to be replaced. What comes in its place is a host's name, which needs no escape in a URL.
        Kind::Plain(mode) => (mode, json!({"source": format!("data:,{}", in_url(piece.text()?))})),
        Kind::Unit => return Ok(None),
    };
    Ok(Some(json!({"path": piece.path, "mode": mode, "overwrite": true, "contents": contents})))
}

fn unit(piece: &Piece) -> Result<Value> {
    Ok(json!({"name": piece.path, "enabled": true, "contents": piece.text()?}))
}

/// Text in a `data:` URL (RFC 2397): what is not plain there is escaped. The mark's own letters are.
fn in_url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@:._-~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
