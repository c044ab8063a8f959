//! Numbers as C's `strtoll` reads them, and comparisons of values.
//!
//! Knows texts and types only, no tree.

use std::cmp::Ordering;

use crate::value::SymbolType;

pub(crate) const fn base_of(kind: SymbolType) -> u32 {
    if matches!(kind, SymbolType::Hex) { 16 } else { 10 }
}

/// How two values compare: as numbers when both read as such, as texts otherwise.
pub(crate) fn compare(left: (&str, SymbolType), right: (&str, SymbolType)) -> Ordering {
    if left.1 == SymbolType::String && right.1 == SymbolType::String {
        return left.0.cmp(right.0);
    }
    match (parse_operand(left.0, left.1), parse_operand(right.0, right.1)) {
        (Some(left), Some(right)) => left.order(right),
        _ => left.0.cmp(right.0),
    }
}

/// A side of a comparison that reads as a number.
#[derive(Clone, Copy)]
enum Operand {
    Signed(i64),
    Unsigned(u64),
}

impl Operand {
    /// One unsigned side makes the comparison unsigned, as in C.
    fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Signed(a), Self::Signed(b)) => a.cmp(&b),
            _ => self.bits().cmp(&other.bits()),
        }
    }

    fn bits(self) -> u64 {
        match self {
            Self::Signed(value) => value.cast_unsigned(),
            Self::Unsigned(value) => value,
        }
    }
}

fn parse_operand(text: &str, kind: SymbolType) -> Option<Operand> {
    match kind {
        SymbolType::Bool | SymbolType::Tristate => Some(Operand::Signed(match text {
            "n" => 0,
            "m" => 1,
            "y" => 2,
            _ => -1,
        })),
        SymbolType::Int => parse_whole(text, 10).and_then(|number| i64::try_from(number).ok()).map(Operand::Signed),
        SymbolType::Hex => {
            let number = parse_whole(text, 16)?;
            // `strtoull` wraps negative numbers around.
            let bits = u64::try_from(number).ok().or_else(|| i64::try_from(number).ok().map(i64::cast_unsigned))?;
            Some(Operand::Unsigned(bits))
        }
        SymbolType::String | SymbolType::Unknown => {
            let digits = text.trim_start_matches(['-', '+']);
            let base = match digits.as_bytes() {
                [b'0', b'x' | b'X', ..] => 16,
                [b'0', _, ..] => 8,
                _ => 10,
            };
            parse_whole(text, base).and_then(|number| i64::try_from(number).ok()).map(Operand::Signed)
        }
    }
}

/// The number that a whole text is, read as `strtoll` reads it.
pub(crate) fn parse_whole(text: &str, base: u32) -> Option<i128> {
    let (number, rest) = split_number(text, base)?;
    rest.is_empty().then_some(number)
}

/// The number at the start of a text, 0 when there is none, at most what 64 bits hold.
pub(crate) fn parse_prefix(text: &str, base: u32) -> i64 {
    let number = split_number(text, base).map_or(0, |(number, _)| number);
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

fn split_number(text: &str, base: u32) -> Option<(i128, &str)> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) if base == 16 && rest.starts_with(|c: char| c.is_ascii_hexdigit()) => rest,
        _ => digits,
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let number = i128::from_str_radix(&digits[..end], base).unwrap_or(i128::MAX);
    Some((if negative { -number } else { number }, &digits[end..]))
}

#[cfg(test)]
mod tests {
    use super::{parse_prefix, parse_whole};

    #[test]
    fn numbers_read_as_c_reads_them() {
        assert_eq!(parse_whole("0x1f", 16), Some(31));
        assert_eq!(parse_whole("1f", 10), None);
        assert_eq!(parse_whole("-5", 10), Some(-5));
        assert_eq!(parse_whole("", 10), None);
        assert_eq!(parse_prefix("12abc", 10), 12);
        assert_eq!(parse_prefix("", 10), 0);
        assert_eq!(parse_prefix("99999999999999999999", 10), i64::MAX);
        assert_eq!(parse_prefix("0x", 16), 0);
    }
}
