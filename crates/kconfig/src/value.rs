//! Values: the three-valued logic, the types of symbols, and where a value came from.
//!
//! Nothing here knows a tree; see [`crate::Config`] for values of symbols.

use std::fmt;

use crate::ids::SymbolId;
use crate::source::Span;

/// No, module, yes: the truth values of Kconfig, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Tri {
    /// `n`
    #[default]
    N,
    /// `m`
    M,
    /// `y`
    Y,
}

impl Tri {
    /// `n`, `m` or `y`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::N => "n",
            Self::M => "m",
            Self::Y => "y",
        }
    }

    /// The value that a text stands for, as in `.config`: `n`, `m`, `y` and nothing else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "n" | "N" => Some(Self::N),
            "m" | "M" => Some(Self::M),
            "y" | "Y" => Some(Self::Y),
            _ => None,
        }
    }
}

impl std::ops::Not for Tri {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::N => Self::Y,
            Self::M => Self::M,
            Self::Y => Self::N,
        }
    }
}

impl fmt::Display for Tri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The type of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum SymbolType {
    /// Referenced but never given a type.
    #[default]
    Unknown,
    /// `n` or `y`.
    Bool,
    /// `n`, `m` or `y`.
    Tristate,
    /// A decimal number.
    Int,
    /// A hexadecimal number.
    Hex,
    /// Any text.
    String,
}

impl SymbolType {
    /// The keyword of the language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Bool => "bool",
            Self::Tristate => "tristate",
            Self::Int => "int",
            Self::Hex => "hex",
            Self::String => "string",
        }
    }

    /// Whether values are `n`, `m`, `y`.
    #[must_use]
    pub const fn is_logical(self) -> bool {
        matches!(self, Self::Bool | Self::Tristate)
    }

    /// Whether values are numbers.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        matches!(self, Self::Int | Self::Hex)
    }

    /// Whether `text` is a value of this type as a user may write it.
    #[must_use]
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::Unknown => false,
            Self::Bool => matches!(Tri::parse(text), Some(Tri::N | Tri::Y)),
            Self::Tristate => Tri::parse(text).is_some(),
            Self::Int => is_decimal(text),
            Self::Hex => is_hexadecimal(text),
            Self::String => true,
        }
    }

    /// The number that `text` stands for in this type.
    #[must_use]
    pub fn parse_number(self, text: &str) -> Option<i64> {
        match self {
            Self::Int if is_decimal(text) => text.parse().ok(),
            Self::Hex if is_hexadecimal(text) => parse_hexadecimal(text),
            _ => None,
        }
    }
}

impl fmt::Display for SymbolType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An optional minus, then digits without a leading zero: what the C tools accept.
fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'))
}

/// Hexadecimal digits with or without `0x`.
fn is_hexadecimal(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn parse_hexadecimal(text: &str) -> Option<i64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    i64::from_str_radix(digits, 16).ok()
}

/// A value with its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of a bool or tristate.
    Tri(Tri),
    /// Of an int, hex or string: the text as written.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tri(tri) => tri.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user set it.
    User,
    /// The first default whose condition holds.
    Default {
        /// The `default` line.
        span: Span,
    },
    /// Forced by a `select` of another symbol.
    Select {
        /// The symbol that selects.
        by: SymbolId,
        /// The `select` line.
        span: Span,
    },
    /// Suggested by an `imply` of another symbol.
    Imply {
        /// The symbol that implies.
        by: SymbolId,
        /// The `imply` line.
        span: Span,
    },
    /// A member of a choice: the choice decides.
    Choice,
    /// Nothing gave it a value.
    Unset,
}
