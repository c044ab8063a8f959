//! Values of a format, to try what changes with a setting. Every one of them is valid; they need
//! not make sense for a cluster.

use serde_json::{Map, Value};

use super::kind::Format;

impl Format {
    /// Some valid values, at least two where the format has as many.
    #[must_use]
    pub fn samples(&self) -> Vec<String> {
        match self {
            Self::Cidr(shortest, longest) => {
                let prefix = (*longest).min(16).max(*shortest);
                // The lowest bits of these are those of the network alone, whatever the prefix.
                ["64.0.0.0", "128.0.0.0"].map(|network| format!("{network}/{prefix}")).into()
            }
            Self::Cidr6(_, longest) => {
                let prefix = (*longest).min(64);
                ["8000::", "4000::"].map(|network| format!("{network}/{prefix}")).into()
            }
            Self::Enum(words) => words.clone(),
            Self::List(element) => element.samples(),
            Self::Map(key, value) => {
                let values = value.samples();
                key.samples().iter().zip(values.iter().cycle()).map(|(key, value)| format!("{key}={value}")).collect()
            }
            Self::Any(formats) => formats.iter().flat_map(Self::samples).collect(),
            Self::Int(low, high) => [low, high].map(ToString::to_string).into(),
            Self::Records(fields) => {
                let record = |at: usize| -> Option<Map<String, Value>> {
                    let value = |format: &Self| Some(format.to_json(format.samples().get(at)?));
                    fields.iter().map(|field| Some((field.name.clone(), value(&field.format)?))).collect()
                };
                [0, 1].into_iter().filter_map(record).map(|record| Value::from(vec![record]).to_string()).collect()
            }
            _ => self.plain_samples().iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    const fn plain_samples(&self) -> &'static [&'static str] {
        match self {
            Self::DnsName | Self::Host => &["one.example", "two.example"],
            Self::HostKey => &[
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC two",
            ],
            Self::HostPath => &["/one", "/two/a b"],
            Self::Device => &["/dev/one", "/dev/disk/by-id/two"],
            Self::Sha256 => &[
                "1111111111111111111111111111111111111111111111111111111111111111",
                "2222222222222222222222222222222222222222222222222222222222222222",
            ],
            Self::Ip => &["10.254.0.10", "2001:db8::2"],
            Self::Ipv4 => &["10.254.0.10", "10.253.0.10"],
            Self::Semver => &["1.0.0", "2.0.0"],
            Self::Path | Self::File => &["/one", "/two"],
            Self::Url => &["https://one.example/", "https://two.example/"],
            Self::Duration => &["7m", "9m"],
            Self::Quantity => &["7Gi", "9Gi"],
            Self::LabelKey => &["one.example/one", "two.example/two"],
            Self::Taint => &["one:NoSchedule", "two=2:NoExecute"],
            Self::Bool => &["true", "false"],
            Self::Empty => &[""],
            _ => &["one", "two"],
        }
    }
}
