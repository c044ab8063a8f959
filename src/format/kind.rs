//! Which formats there are, and how each is called in a message. Data: judging is for the others.

use std::fmt;

/// The algorithms of host keys, the best first (sshd(8), "`SSH_KNOWN_HOSTS` FILE FORMAT").
pub(super) const HOST_KEYS: [&str; 5] =
    ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"];

/// What the text of a string setting must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Nothing at all; makes sense as one side of `or`.
    Empty,
    /// One label of a DNS name (RFC 1123), lower case.
    DnsLabel,
    /// Labels joined by dots, lower case.
    DnsName,
    /// A login name of a Linux system.
    UserName,
    /// A user of a host that turnup did not make: letters, digits, dots, `_` and `-`.
    LoginName,
    /// The public key of a host, as in `known_hosts`.
    HostKey,
    /// What a cloud calls a machine or a volume.
    Id,
    /// The absolute path of a file on a host.
    HostPath,
    /// The path of a disk on a host, below `/dev`.
    Device,
    /// A sha256 in hexadecimal digits.
    Sha256,
    /// An IPv4 or IPv6 address.
    Ip,
    /// An IPv4 address.
    Ipv4,
    /// An IPv4 network whose prefix length lies between the two bounds.
    Cidr(u8, u8),
    /// An IPv6 network whose prefix length lies between the two bounds.
    Cidr6(u8, u8),
    /// An IPv4 address or a DNS name.
    Host,
    /// A version: MAJOR.MINOR.PATCH.
    Semver,
    /// A path of a file system.
    Path,
    /// An http or https URL without credentials.
    Url,
    /// A duration as Go writes it: 1h30m.
    Duration,
    /// A quantity as Kubernetes writes it: 500m, 2Gi.
    Quantity,
    /// One of these words.
    Enum(Vec<String>),
    /// Elements of one format, separated by commas.
    List(Box<Format>),
    /// KEY=VALUE pairs separated by commas.
    Map(Box<Format>, Box<Format>),
    /// Any of these.
    Any(Vec<Format>),
    /// Any text in one line.
    Text,
    /// Anything: the content of a file, or what a program said. It is only ever stored, and shown
    /// with its control characters escaped.
    Content,
    /// A word without blanks, commas and quotes.
    Word,
    /// The key of a label or annotation of Kubernetes: PREFIX/NAME or NAME.
    LabelKey,
    /// The value of a label.
    LabelValue,
    /// A taint: KEY=VALUE:EFFECT or KEY:EFFECT.
    Taint,
    /// A file of this machine, which must exist when it is used.
    File,
    /// A whole number between the two bounds.
    Int(i64, i64),
    /// true or false.
    Bool,
    /// A list of objects with these fields, as JSON. The first field is the key: no two objects
    /// have it in common.
    Records(Vec<Field>),
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its key in the object.
    pub name: String,
    /// Whether every object has it.
    pub required: bool,
    /// What its value must look like.
    pub format: Format,
}

impl Format {
    /// The words to choose from, for an `enum`.
    #[must_use]
    pub fn words(&self) -> Option<&[String]> {
        match self {
            Self::Enum(words) => Some(words),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    /// What is expected, as it completes "expected …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing"),
            Self::DnsLabel => f.write_str("lower-case letters, digits and hyphens, at most 63"),
            Self::DnsName => f.write_str("a DNS name such as cluster.local"),
            Self::UserName => f.write_str("a user name: lower-case letters, digits, _ and -, at most 32"),
            Self::LoginName => f.write_str("a login name: letters, digits, dots, _ and -, not a - first, at most 64"),
            Self::HostKey => {
                f.write_str("the public key of a host, such as `ssh-ed25519 AAAAC3Nza…` (ssh-keyscan shows it)")
            }
            Self::Id => f.write_str("an id: letters, digits and ._:/@+=()-, not a - first, at most 512"),
            Self::HostPath => {
                f.write_str("an absolute path without .., quotes, $ and other letters that a shell acts on")
            }
            Self::Device => f.write_str("the path of a disk, such as /dev/disk/by-id/nvme-eui.0123"),
            Self::Sha256 => f.write_str("a sha256: 64 digits, 0-9 and a-f"),
            Self::Ip => f.write_str("an IP address such as 10.0.0.1"),
            Self::Ipv4 => f.write_str("an IPv4 address such as 10.0.0.1"),
            Self::Cidr(0, 32) => f.write_str("an IPv4 network such as 10.1.0.0/16"),
            Self::Cidr(shortest, longest) => {
                write!(
                    f,
                    "an IPv4 network from /{shortest} to /{longest}, such as 10.1.0.0/{}",
                    (*longest).min(16).max(*shortest)
                )
            }
            Self::Cidr6(0, 128) => f.write_str("an IPv6 network such as 2001:db8::/32"),
            Self::Cidr6(shortest, longest) => {
                write!(f, "an IPv6 network from /{shortest} to /{longest}, such as 2001:db8::/{longest}")
            }
            Self::Host => f.write_str("an IPv4 address or a DNS name"),
            Self::Semver => f.write_str("a version such as 1.2.3"),
            Self::Path => f.write_str("a path"),
            Self::File => f.write_str("the path of a file"),
            Self::Text => f.write_str("text in one line, without control characters"),
            Self::Content => f.write_str("anything"),
            Self::Word => f.write_str("a word without blanks, commas and quotes"),
            Self::LabelKey => f.write_str("the key of a label, such as example.com/pool"),
            Self::LabelValue => f.write_str("the value of a label: letters, digits, -, _ and dots, at most 63"),
            Self::Taint => f.write_str("a taint such as dedicated=gpu:NoSchedule"),
            Self::Int(low, high) => write!(f, "a whole number from {low} to {high}"),
            Self::Bool => f.write_str("true or false"),
            Self::Records(fields) => {
                let names = |required: bool| -> Vec<&str> {
                    fields.iter().filter(|field| field.required == required).map(|field| field.name.as_str()).collect()
                };
                write!(f, "a list of records (objects in JSON): {}", names(true).join(", "))?;
                match names(false).as_slice() {
                    [] => Ok(()),
                    optional => write!(f, "; may be left out: {}", optional.join(", ")),
                }
            }
            Self::Url => f.write_str("a URL that begins with http:// or https://"),
            Self::Duration => f.write_str("a duration such as 90s, 10m or 1h30m"),
            Self::Quantity => f.write_str("a quantity such as 500m, 2 or 4Gi"),
            Self::Enum(words) => f.write_str(&join_words(words)),
            Self::List(element) => write!(f, "a list separated by commas, each {element}"),
            Self::Map(key, value) => write!(f, "KEY=VALUE pairs separated by commas; key: {key}; value: {value}"),
            Self::Any(formats) => {
                let all: Vec<String> = formats.iter().map(ToString::to_string).collect();
                f.write_str(&join_words(&all))
            }
        }
    }
}

/// "a", "a or b", "a, b or c".
pub(super) fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
