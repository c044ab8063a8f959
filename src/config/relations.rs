//! What a setting means for others, as its structured comments say: so that rules between settings
//! name no target, and a new target brings its own.
//!
//! Only read here; `check` holds a configuration to it.

/// The relations of one symbol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relations {
    /// Whose addresses the network of this setting has: `network = hosts`.
    pub network: Option<Addresses>,
    /// The setting lists zones of this region: `zones = SETTING SEPARATOR`.
    pub zones: Option<Zones>,
    /// With this value hosts have private addresses alone: `private = VALUE`.
    pub private: Option<Private>,
    /// Values that only some targets take: `only VALUE on TARGET, … = WHY`.
    pub only: Vec<Only>,
    /// The fields that records have on some targets: `fields FIELD, … on TARGET, … = WHY`.
    pub fields: Vec<OnlyFields>,
    /// Targets that take no value at all: `empty on TARGET, … = WHY`.
    pub empty: Vec<Empty>,
    /// Values that do not suffice alone: `notice VALUE = WHY`.
    pub notices: Vec<NoticeOf>,
}

/// Whose addresses a network has. Networks of different kinds share none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// The hosts'.
    Hosts,
    /// The pods'.
    Pods,
    /// The Services'.
    Services,
}

impl Addresses {
    /// As a message says it.
    pub(super) const fn describe(self) -> &'static str {
        match self {
            Self::Hosts => "the hosts' addresses",
            Self::Pods => "the pods' addresses",
            Self::Services => "the Services' addresses",
        }
    }
}

/// The region of zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zones {
    /// The setting that names the region.
    pub(super) region: String,
    /// What stands between its name and the zone's own letter.
    pub(super) separator: String,
}

/// Private addresses of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// The value that means it.
    pub(super) value: String,
    /// Control-plane hosts have public ones all the same where clients from outside use these:
    /// `private = VALUE unless exposed`.
    pub(super) unless_exposed: bool,
}

/// A value that only some targets take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only {
    pub(super) value: String,
    pub(super) targets: Vec<String>,
    /// Why another one does not, with `TARGET` for its name.
    pub(super) why: String,
}

/// The only fields that records have on these targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyFields {
    pub(super) fields: Vec<String>,
    pub(super) targets: Vec<String>,
    /// Why another one is refused, with `FIELD` for its name.
    pub(super) why: String,
}

/// A setting that some targets leave empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Empty {
    pub(super) targets: Vec<String>,
    /// Why, with `TARGET` for the target's name.
    pub(super) why: String,
}

/// A value that is right, and needs something besides that turnup does not bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeOf {
    pub(super) value: String,
    /// What is missing.
    pub(super) why: String,
}

impl Relations {
    /// Without any.
    pub(super) const NONE: Self = Self {
        network: None,
        zones: None,
        private: None,
        only: Vec::new(),
        fields: Vec::new(),
        empty: Vec::new(),
        notices: Vec::new(),
    };
    /// The structured comments that are read here.
    pub(super) const KEYS: [&'static str; 7] = ["network", "zones", "private", "only", "fields", "empty", "notice"];

    /// Reads a structured comment; whether it is one of these.
    pub(super) fn read(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "network" => self.network = Some(read_addresses(value)?),
            "zones" => {
                let (region, separator) = value.split_once(' ').unwrap_or((value, ""));
                self.zones = Some(Zones { region: region.to_owned(), separator: separator.trim().to_owned() });
            }
            "private" => {
                let (value, unless_exposed) =
                    value.strip_suffix(" unless exposed").map_or((value, false), |value| (value, true));
                self.private = Some(Private { value: value.to_owned(), unless_exposed });
            }
            other if other.starts_with("fields ") => {
                let rest = other.trim_start_matches("fields ");
                let (fields, targets) =
                    rest.split_once(" on ").ok_or("`fields FIELD, … on TARGET, … = WHY` names targets")?;
                self.fields.push(OnlyFields { fields: words(fields), targets: words(targets), why: value.to_owned() });
            }
            other if let Some(targets) = other.strip_prefix("empty on ") => {
                self.empty.push(Empty { targets: words(targets), why: value.to_owned() });
            }
            other if let Some(on) = other.strip_prefix("notice ") => {
                self.notices.push(NoticeOf { value: on.trim().to_owned(), why: value.to_owned() });
            }
            other => {
                let Some(rest) = other.strip_prefix("only ") else { return Ok(false) };
                let (only, targets) = rest.split_once(" on ").ok_or("`only VALUE on TARGET, … = WHY` names targets")?;
                self.only.push(Only { value: only.trim().to_owned(), targets: words(targets), why: value.to_owned() });
            }
        }
        Ok(true)
    }
}

fn read_addresses(text: &str) -> Result<Addresses, String> {
    match text {
        "hosts" => Ok(Addresses::Hosts),
        "pods" => Ok(Addresses::Pods),
        "services" => Ok(Addresses::Services),
        other => Err(format!("`{other}` is none of hosts, pods or services")),
    }
}

/// The words of a list, `a, b`.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn reads_what_a_setting_means_for_others() {
        let mut relations = Relations::default();
        for (key, value) in [
            ("network", "pods"),
            ("zones", "a.region -"),
            ("private", "n unless exposed"),
            ("only b on local, custom", "no b on TARGET"),
            ("fields name, size on local", "no FIELD here"),
            ("empty on local", "TARGET has none"),
            ("notice y", "something else is missing"),
        ] {
            assert_eq!(relations.read(key, value), Ok(true), "{key}");
        }
        assert_eq!(relations.network, Some(Addresses::Pods));
        assert_eq!(relations.zones, Some(Zones { region: "a.region".into(), separator: "-".into() }));
        assert_eq!(relations.private, Some(Private { value: "n".into(), unless_exposed: true }));
        assert_eq!(relations.only[0].targets, ["local", "custom"]);
        let fields = &relations.fields[0];
        assert_eq!(
            (&fields.fields[..], &fields.targets[..]),
            (&["name".into(), "size".into()][..], &["local".into()][..])
        );
        relations.read("fields name", "why").unwrap_err();
        assert_eq!((relations.empty[0].targets.len(), relations.empty[0].why.as_str()), (1, "TARGET has none"));
        assert_eq!((relations.notices[0].value.as_str(), &relations.notices[0].why[..9]), ("y", "something"));
        assert_eq!(relations.read("format", "text"), Ok(false));
        assert_eq!(relations.read("network", "host").unwrap_err(), "`host` is none of hosts, pods or services");
        relations.read("only b", "why").unwrap_err();
    }
}
