//! What machines and clouds call things: login names, host keys, instances, devices, paths on
//! hosts.
//!
//! These texts become arguments of ssh, lines of `known_hosts`, words of units. Their forms leave
//! nothing that any of these would act on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::kind::{Format, HOST_KEYS};
use super::text::{expect, is_control};

/// How good the algorithm of a host key is, from 0 on: of several keys of one host the best counts.
pub(crate) fn host_key_rank(algorithm: &str) -> Option<usize> {
    HOST_KEYS.iter().position(|known| *known == algorithm)
}

/// A user of a host that turnup did not make: the portable names of POSIX (XBD 3.426), at most 64
/// letters.
pub(super) fn is_login_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=64).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with(['-', '.'])
}

/// `ALGORITHM BASE64 [COMMENT]`, one line.
pub(super) fn validate_host_key(text: &str) -> Result<(), String> {
    if text.contains(is_control) {
        return Err("it has a line break or another control character; write one line (Terraform: trimspace(…))".into());
    }
    let words: Vec<&str> = text.splitn(3, ' ').collect();
    match words.as_slice() {
        [kind, data, ..] if HOST_KEYS.contains(kind) => {
            if is_key_of(kind, data) {
                Ok(())
            } else {
                Err(format!("what stands behind {kind} is no key of it; expected {}", Format::HostKey))
            }
        }
        [name, kind, ..] if HOST_KEYS.contains(kind) => {
            Err(format!("it begins with the host's name; leave `{name}` out"))
        }
        _ => expect(false, text, &Format::HostKey),
    }
}

/// Whether this is the base64 of a public key that names the same algorithm (RFC 4253 section 6.6):
/// strings with their lengths before them, the first of which is the name, and nothing behind the
/// last.
fn is_key_of(kind: &str, data: &str) -> bool {
    let Ok(bytes) = STANDARD.decode(data) else { return false };
    let (mut rest, mut strings) = (bytes.as_slice(), Vec::new());
    while !rest.is_empty() {
        let Some((length, behind)) = rest.split_first_chunk::<4>() else { return false };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((string, behind)) = behind.split_at_checked(length) else { return false };
        strings.push(string);
        rest = behind;
    }
    match strings.as_slice() {
        [name, key] if kind == "ssh-ed25519" => *name == kind.as_bytes() && key.len() == 32,
        [name, _, key] => *name == kind.as_bytes() && !key.is_empty(),
        _ => false,
    }
}

/// What a cloud calls a machine or a volume: `i-0abc`, `projects/P/zones/Z/disks/D`, `key-0123`.
pub(super) fn is_id(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@+=()-".contains(&byte);
    (1..=512).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with(['-', '=', '@', '+'])
}

/// What a shell, a unit or a mount option acts on.
const NOT_PLAIN: &str = "\"'`$\\;&|<>*?!{}[]%^";

/// Absolute, in its shortest form, and of letters that mean themselves wherever the path goes.
pub(super) fn is_host_path(text: &str) -> bool {
    is_absolute(text) && !text.contains(|letter| NOT_PLAIN.contains(letter) || is_control(letter))
}

/// Below `/dev`, of the letters that udev leaves in names (`ALLOWED_CHARS` of systemd-udevd), and
/// of its own escape `\x20`.
pub(super) fn is_device(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"#+-.:=@_/\\".contains(&byte);
    let is_escape = |part: &str| part.len() >= 3 && part.starts_with('x') && !part[..3].contains('/');
    text.starts_with("/dev/")
        && is_absolute(text)
        && text.bytes().all(is_inner)
        && text.split('\\').skip(1).all(is_escape)
}

fn is_absolute(text: &str) -> bool {
    let is_step = |part: &str| !matches!(part, "" | "." | "..");
    text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_step))
}

pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
