//! The names of Azure's machine sizes: what they say of a machine ("Azure virtual machine sizes
//! naming conventions"). Which of them a location really has, only Azure knows.

use std::fmt;

use crate::error::Result;

use crate::cloud::refused;

/// Families of sizes.
const FAMILIES: [&str; 25] = [
    "A", "B", "D", "DC", "DS", "E", "EC", "F", "FS", "FX", "G", "GS", "H", "HB", "HC", "HX", "L", "LS", "M", "NC",
    "ND", "NG", "NP", "NV", "NVA",
];
/// Sizes that people take most, for advice.
const COMMON: [&str; 12] = [
    "Standard_B2s",
    "Standard_B2s_v2",
    "Standard_B4ms",
    "Standard_D2s_v5",
    "Standard_D4s_v5",
    "Standard_D8s_v5",
    "Standard_D16s_v5",
    "Standard_D2as_v5",
    "Standard_D4as_v5",
    "Standard_E2s_v5",
    "Standard_E4s_v5",
    "Standard_F4s_v2",
];

/// A size: `Standard_D4s_v5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VmSize {
    name: String,
    family: String,
    cpus: u32,
    features: String,
    /// The generation, of sizes since the second one.
    version: u32,
}

impl VmSize {
    /// The size of this name; an error names the key of the setting and the size that was meant.
    pub(super) fn parse(key: &str, name: &str) -> Result<Self> {
        if let Some(size) = Self::read(name) {
            return Ok(size);
        }
        let error = refused(key, format!("{name} is no machine size of Azure"));
        let whole = format!("Standard_{name}");
        let near = Self::read(&whole).map(|_| whole).or_else(|| kconfig::suggest(name, COMMON.into_iter()));
        Err(match near {
            Some(near) => error.hint(format!("did you mean {near}? (az vm list-skus --resource-type virtualMachines)")),
            None => error.hint("a size is Standard_, a family, a number of processors and features: Standard_D4s_v5"),
        })
    }

    fn read(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("Standard_")?.split('_');
        let first = parts.next()?;
        let (family, rest) = first.split_at(first.find(|letter: char| letter.is_ascii_digit())?);
        let (cpus, rest) = split_number(rest)?;
        // Sizes with fewer processors than their memory is for: E4-2s_v5.
        let (_, features) = rest.strip_prefix('-').map_or(Some((cpus, rest)), split_number)?;
        let parts: Vec<&str> = parts.collect();
        let plain = |part: &&str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_alphanumeric());
        let known = FAMILIES.contains(&family) && features.bytes().all(|letter| letter.is_ascii_lowercase());
        let version = parts.last().and_then(|part| part.strip_prefix('v')).and_then(|number| number.parse().ok());
        (known && parts.iter().all(plain)).then(|| Self {
            name: name.to_owned(),
            family: family.to_owned(),
            cpus,
            features: features.to_owned(),
            version: version.unwrap_or(1),
        })
    }

    /// Whether disks of the kinds Premium can be attached.
    pub(super) fn takes_premium(&self) -> bool {
        self.features.contains('s') || ["DS", "FS", "GS", "LS"].contains(&self.family.as_str())
    }

    /// Whether its processor is an arm64 one.
    pub(super) fn is_arm(&self) -> bool {
        self.features.contains('p')
    }

    /// Not the sizes A, nor the small ones of the first generation of B.
    pub(super) fn takes_accelerated_networking(&self) -> bool {
        self.family != "A" && !(self.family == "B" && self.version == 1 && self.cpus < 12)
    }
}

fn split_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    Some((number.parse().ok()?, rest))
}

impl fmt::Display for VmSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn says_what_a_machine_can() {
        for (name, premium, arm, accelerated) in [
            ("Standard_D2s_v5", true, false, true),
            ("Standard_D2_v5", false, false, true),
            ("Standard_DS2_v2", true, false, true),
            ("Standard_D2ps_v5", true, true, true),
            ("Standard_B1s", true, false, false),
            ("Standard_B2ts_v2", true, false, true),
            ("Standard_B16ms", true, false, true),
            ("Standard_A2_v2", false, false, false),
            ("Standard_E4-2s_v5", true, false, true),
            ("Standard_NC4as_T4_v3", true, false, true),
            ("Standard_M176ds_4_v3", true, false, true),
            ("Standard_NP10s", true, false, true),
        ] {
            let size = VmSize::parse("key", name).unwrap();
            let said = (size.takes_premium(), size.is_arm(), size.takes_accelerated_networking());
            assert_eq!(said, (premium, arm, accelerated), "{name}");
        }
    }

    #[test]
    fn a_size_that_cannot_be_is_refused_with_the_one_that_was_meant() {
        for (name, hint) in [
            ("D2s_v5", "Standard_D2s_v5"),
            ("standard_d2s_v5", "Standard_D2s_v5"),
            ("Standard_D2sv5", "Standard_D2s_v5"),
            ("Standard_Q2s_v5", "Standard_"),
            ("Standard_Ds_v5", "Standard_"),
            ("e2-medium", "Standard_, a family"),
        ] {
            let error = VmSize::parse("phase1.azure.node_vm_size", name).unwrap_err();
            let shown = format!("{error:?}");
            assert!(error.message().starts_with("phase1.azure.node_vm_size: "), "{shown}");
            assert!(shown.contains(hint), "{name}: {shown}");
        }
    }
}
