//! The formats that structured comments name (`#: format = cidr`).
//!
//! The same formats hold for the texts of documents: what the user writes into the configuration
//! and what a file of another party says is judged here and nowhere else.
//!
//! - `kind`: which there are. `parse`: their small language. `text`, `machine`: what single words
//!   must look like. `shape`: lists, maps and records, in text and in JSON. `schema`: all of it as
//!   JSON Schema. `samples`: valid values.
//!
//! Pure: a format judges text alone. It must not read files, resolve names or look at other
//! settings.

mod kind;
mod machine;
mod parse;
mod quantity;
mod samples;
mod schema;
mod shape;
mod taint;
mod text;

pub(crate) use kind::{Field, Format};
pub(crate) use machine::host_key_rank;
pub use quantity::parse_quantity;
pub use taint::Taint;
use text::expect;
pub use text::parse_duration;
pub(crate) use text::split_package;

impl Format {
    /// Nothing, or one sentence about what is wrong and what is expected.
    pub fn validate(&self, text: &str) -> Result<(), String> {
        match self {
            Self::Empty => expect(text.is_empty(), text, self),
            Self::DnsLabel => text::validate_label(text),
            Self::DnsName => text::validate_name(text),
            Self::UserName => expect(text::is_user_name(text), text, self),
            Self::LoginName => expect(machine::is_login_name(text), text, self),
            Self::HostKey => machine::validate_host_key(text),
            Self::Id => expect(machine::is_id(text), text, self),
            Self::HostPath => expect(machine::is_host_path(text), text, self),
            Self::Device => expect(machine::is_device(text), text, self),
            Self::Sha256 => expect(machine::is_sha256(text), text, self),
            Self::Ip => expect(text.parse::<std::net::IpAddr>().is_ok(), text, self),
            Self::Ipv4 => expect(text.parse::<std::net::Ipv4Addr>().is_ok(), text, self),
            Self::Cidr(shortest, longest) => text::validate_network(text, *shortest, *longest),
            Self::Cidr6(shortest, longest) => text::validate_network6(text, *shortest, *longest),
            Self::Host => text::validate_host(text),
            Self::Semver => text::validate_version(text),
            Self::Path | Self::File => text::validate_path(text),
            Self::Url => text::validate_url(text),
            Self::Duration => expect(parse_duration(text).is_some(), text, self),
            Self::Quantity => expect(text::is_quantity(text), text, self),
            Self::Enum(words) => text::validate_word(text, words),
            Self::List(element) => shape::validate_list(text, element),
            Self::Map(key, value) => shape::validate_map(text, key, value),
            Self::Any(formats) => text::validate_any(text, formats),
            Self::Text => expect(!text.contains(text::is_control), text, self),
            Self::Content => Ok(()),
            Self::Word => expect(text::is_plain(text), text, self),
            Self::LabelKey => expect(text::is_label_key(text), text, self),
            Self::LabelValue => expect(text::is_label_value(text), text, self),
            Self::Taint => text.parse::<Taint>().map(drop),
            Self::Int(low, high) => text::validate_number(text, *low, *high),
            Self::Bool => expect(matches!(text, "true" | "false"), text, self),
            Self::Records(fields) => shape::validate_records(text, fields),
        }
    }
}

#[cfg(test)]
mod tests;
