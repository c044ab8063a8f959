//! Machine types of EC2: what their names say of a machine. Which of them a region really has, only
//! Amazon knows.

use crate::error::{Error, Result};

use crate::cloud::{host, refused};

/// Classes of machine types; a family is a class, its generation and its attributes.
const CLASSES: [&str; 22] = [
    "a", "c", "d", "dl", "f", "g", "gr", "h", "hpc", "i", "im", "inf", "is", "m", "p", "r", "t", "trn", "u", "vt", "x",
    "z",
];
/// Families to be reminded of when none is as written.
const FAMILIES: [&str; 32] = [
    "t3", "t3a", "t4g", "m5", "m5a", "m6a", "m6g", "m6i", "m7a", "m7g", "m7i", "m7i-flex", "m8g", "c5", "c6a", "c6g",
    "c6i", "c7a", "c7g", "c7i", "r5", "r6g", "r6i", "r7a", "r7g", "r7i", "g4dn", "g5", "g6", "p5", "i4i", "i7ie",
];
/// Sizes of machine types by name; others are a number before `xlarge`, or `metal` with a number
/// behind it.
const SIZES: [&str; 7] = ["nano", "micro", "small", "medium", "large", "xlarge", "metal"];

/// A machine type for which turnup has programs.
pub(super) fn check_processor(key: &str, machine: &str) -> Result<()> {
    // A group has its type in the list of groups.
    let good = if key.contains(' ') { "m7i.large".to_owned() } else { format!("turnup config set {key}=m7i.large") };
    let hint = format!("{good}, or another type of Intel or AMD");
    host::check_processor(key, is_arm(machine), &format!("{machine} has an ARM processor"), hint)
}

/// A machine type that exists and that a node fits on.
pub(super) fn check_machine(key: &str, machine: &str) -> Result<()> {
    check_bastion(key, machine)?;
    let size = machine.split_once('.').map_or("", |(_, size)| size);
    if matches!(size, "nano" | "micro") {
        return Err(refused(key, format!("{machine} has 1 GB of memory at most, and a node needs 2"))
            .hint(format!("{} or larger", machine.replace(size, "small"))));
    }
    Ok(())
}

/// A machine type whose parts exist.
pub(super) fn check_bastion(key: &str, machine: &str) -> Result<()> {
    let wrong = |near: Option<String>| -> Error {
        let error = refused(key, format!("{machine} is no machine type of EC2"));
        match near {
            Some(near) => error.hint(format!("did you mean {near}? (aws ec2 describe-instance-types)")),
            None => error.hint("FAMILY.SIZE, for instance m7i.large (aws ec2 describe-instance-types)"),
        }
    };
    let Some((family, size)) = machine.split_once('.') else { return Err(wrong(None)) };
    if !is_family(family) {
        let near = kconfig::suggest(family, FAMILIES.into_iter());
        return Err(wrong(near.map(|near| format!("{near}.{size}"))));
    }
    let count = size.strip_suffix("xlarge").or_else(|| size.strip_prefix("metal-")?.strip_suffix("xl"));
    let counted = count.is_some_and(|count| count.parse::<u16>().is_ok_and(|count| count > 1));
    if !SIZES.contains(&size) && !counted {
        let near = kconfig::suggest(size, SIZES.into_iter());
        return Err(wrong(near.map(|near| format!("{family}.{near}"))));
    }
    Ok(())
}

/// A class, one digit of generation, letters of attributes, and for some a variant behind a hyphen.
fn is_family(family: &str) -> bool {
    let (name, variant) = family.split_once('-').unwrap_or((family, ""));
    // Machines with memory by the terabyte.
    if name.starts_with('u') && variant.contains("tb") {
        return true;
    }
    let Some(at) = name.find(|letter: char| letter.is_ascii_digit()) else { return false };
    let (class, rest) = name.split_at(at);
    let attributes = &rest[1..];
    CLASSES.contains(&class)
        && attributes.chars().all(|letter| "abdefghinqsz".contains(letter))
        && variant.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
}

/// Amazon's own processors: a g among the attributes; the first ones were a1.
pub(super) fn is_arm(machine: &str) -> bool {
    let family = machine.split(['.', '-']).next().unwrap_or_default();
    let attributes = family.split_once(|letter: char| letter.is_ascii_digit()).map_or("", |(_, attributes)| attributes);
    family == "a1" || attributes.contains('g')
}
