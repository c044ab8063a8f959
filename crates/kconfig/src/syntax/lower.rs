//! What a line says behind its keyword, and whether it may say so where it stands.

use super::ast::{Attribute, Item, ItemKind, PendingLine, RangeLine};
use super::reader::LogicalLine;
use super::shape::{Parts, Rule as Shape, join};
use super::token::Keyword;
use crate::diagnostic::Diagnostic;
use crate::dialect::{Dialect, Family, Rule, Version};
use crate::load::Loader;
use crate::source::Span;
use crate::suggest::suggest;
use crate::value::SymbolType;

/// A word that other programs have, and which.
pub(super) fn explain_foreign(word: &str, rule: Rule, dialect: Dialect, span: Span) -> Diagnostic {
    let finding = Diagnostic::error("K034", span, format!("`{word}` is no word of {dialect}"));
    let (first, last) = rule.linux();
    let linux = if last == Version::NEWEST {
        Some(format!("linux-{first} has it"))
    } else if last > Version::new(0, 0) {
        Some(format!("Linux had it before {last}"))
    } else {
        None
    };
    let forks = Family::ALL.into_iter().filter(|family| *family != Family::Linux);
    let forks: Vec<&str> = forks.filter(|family| Dialect::newest(*family).has(rule)).map(Family::name).collect();
    let forks = (!forks.is_empty())
        .then(|| format!("{} {} it", forks.join(", "), if forks.len() == 1 { "has" } else { "have" }));
    let help: Vec<String> = linux.into_iter().chain(forks).collect();
    finding.with_help(help.join("; "))
}

pub(super) fn rule_of(keyword: Keyword) -> Option<Shape> {
    use Keyword as K;
    Some(match keyword {
        K::Bool | K::Boolean | K::Tristate | K::Int | K::Hex | K::String => Shape::type_line,
        K::DefBool | K::DefTristate | K::DefInt | K::DefHex | K::DefString | K::Default => Shape::default_line,
        K::Prompt => Shape::prompt_line,
        K::Depends => Shape::depends_line,
        K::Select | K::Imply => Shape::select_line,
        K::Range => Shape::range_line,
        K::Visible => Shape::visible_line,
        K::Option => Shape::option_line,
        K::Modules | K::Optional | K::Transitional => Shape::bare_line,
        _ => return None,
    })
}

fn type_of(keyword: Keyword) -> SymbolType {
    match keyword {
        Keyword::Bool | Keyword::Boolean | Keyword::DefBool => SymbolType::Bool,
        Keyword::Tristate | Keyword::DefTristate => SymbolType::Tristate,
        Keyword::Int | Keyword::DefInt => SymbolType::Int,
        Keyword::Hex | Keyword::DefHex => SymbolType::Hex,
        Keyword::String | Keyword::DefString => SymbolType::String,
        _ => SymbolType::Unknown,
    }
}

/// What a line says, its words known by now; the second of two is a prompt or a default.
pub(crate) fn lower_pending(
    loader: &mut Loader<'_>,
    pending: &PendingLine,
    entry: &Item,
) -> Result<[Option<Attribute>; 2], Diagnostic> {
    let Some(rule) = rule_of(pending.keyword) else { return Ok([None, None]) };
    let mut tokens = pending.tokens.clone();
    loader.resolve_tokens(&mut tokens)?;
    let dialect = loader.dialect();
    let parts = loader.parts(rule, &tokens, &pending.line)?;
    let kinds = lower_attribute(pending.keyword, pending.line.keyword(), parts, &pending.line, dialect)?;
    for kind in kinds.iter().flatten() {
        refuse_in(entry, kind, pending.line.whole(), pending.keyword, dialect)?;
    }
    Ok(kinds)
}

/// What a line says; `at` is the place of its keyword.
pub(super) fn lower_attribute(
    keyword: Keyword,
    at: Span,
    mut parts: Parts<'_>,
    line: &LogicalLine<'_>,
    dialect: Dialect,
) -> Result<[Option<Attribute>; 2], Diagnostic> {
    use Keyword as K;
    let kind = || Attribute::Type(type_of(keyword), at);
    let one = match keyword {
        K::Bool | K::Boolean | K::Tristate | K::Int | K::Hex | K::String => {
            let prompt = parts.word().map(|text| Attribute::Prompt { text, condition: parts.condition() });
            return Ok([Some(kind()), prompt]);
        }
        K::Default | K::DefBool | K::DefTristate | K::DefInt | K::DefHex | K::DefString => {
            let value = required(parts.expression(), line)?;
            let default = Some(Attribute::Default { value, condition: parts.condition() });
            return Ok([(keyword != K::Default).then(kind), default]);
        }
        K::Prompt => Attribute::Prompt { text: required(parts.word(), line)?, condition: parts.condition() },
        K::Depends => {
            let expression = required(parts.expression(), line)?;
            Attribute::DependsOn { expression, condition: parts.condition() }
        }
        K::Select | K::Imply => {
            let (target, span) = required(parts.symbol(), line)?;
            let condition = parts.condition();
            match keyword {
                K::Select => Attribute::Select { target, span, condition },
                _ => Attribute::Imply { target, span, condition },
            }
        }
        K::Range => {
            let (low, from) = required(parts.atom(), line)?;
            let (high, to) = required(parts.atom(), line)?;
            let (span, condition) = (join(from, to), parts.condition());
            Attribute::Range(Box::new(RangeLine { low, high, span, condition }))
        }
        K::Visible => Attribute::VisibleIf(required(parts.expression(), line)?),
        K::Option => lower_option(&mut parts, line, dialect)?,
        K::Modules => Attribute::Modules,
        K::Optional => Attribute::Optional,
        _ => Attribute::Transitional,
    };
    Ok([Some(one), None])
}

fn lower_option(parts: &mut Parts<'_>, line: &LogicalLine<'_>, dialect: Dialect) -> Result<Attribute, Diagnostic> {
    let name = required(parts.word(), line)?;
    let value = parts.word();
    let rule = if parts.text(name) == "env" { Rule::EnvOption } else { Rule::Options };
    if !dialect.has(rule) {
        return Err(explain_foreign(&format!("option {}", parts.text(name)), rule, dialect, name.span));
    }
    match (parts.text(name), value) {
        ("modules", None) => Ok(Attribute::Modules),
        ("env", Some(variable)) => Ok(Attribute::Env(variable)),
        ("allnoconfig_y", None) => Ok(Attribute::AllnoconfigY),
        ("defconfig_list", None) => Ok(Attribute::Ignored),
        ("env", None) => {
            Err(Diagnostic::error("K002", name.span, "`option env` needs a variable: option env=\"NAME\""))
        }
        (other, _) => {
            let finding = Diagnostic::error("K001", name.span, format!("there is no option `{other}`"));
            let known = ["modules", "env", "defconfig_list", "allnoconfig_y"];
            Err(match suggest(other, known.into_iter()) {
                Some(near) => finding.with_help(format!("did you mean `{near}`?")),
                None => finding,
            })
        }
    }
}

/// The finding that an attribute does not belong where it stands.
#[inline]
pub(super) fn refuse_in(
    item: &Item,
    attribute: &Attribute,
    span: Span,
    keyword: Keyword,
    dialect: Dialect,
) -> Result<(), Diagnostic> {
    match refuse(&item.kind, attribute) {
        Some(place) if !is_menu_help(item, attribute, dialect) => Err(explain_place(item, place, span, keyword)),
        _ => Ok(()),
    }
}

/// A help text of a menu, which some dialects have.
fn is_menu_help(item: &Item, attribute: &Attribute, dialect: Dialect) -> bool {
    matches!((&item.kind, attribute), (ItemKind::Menu(_), Attribute::Help(_))) && dialect.has(Rule::MenuHelp)
}

#[cold]
fn explain_place(item: &Item, place: &str, span: Span, keyword: Keyword) -> Diagnostic {
    let finding = Diagnostic::error("K006", span, format!("`{}` is not allowed in {place}", keyword.as_str()));
    finding.with_label(item.span, "this entry")
}

/// Where an attribute may not stand, as words for a message.
#[inline]
fn refuse(item: &ItemKind, attribute: &Attribute) -> Option<&'static str> {
    use Attribute as A;
    if matches!(attribute, A::Pending(_)) {
        return None;
    }
    match item {
        ItemKind::Config { .. } => matches!(attribute, A::VisibleIf(_) | A::Optional).then_some("a config"),
        ItemKind::Choice { .. } => {
            let allowed = matches!(
                attribute,
                A::Type(..) | A::Prompt { .. } | A::Default { .. } | A::DependsOn { .. } | A::Optional | A::Help(_)
            );
            (!allowed).then_some("a choice")
        }
        ItemKind::Menu(_) => (!matches!(attribute, A::DependsOn { .. } | A::VisibleIf(_))).then_some("a menu"),
        ItemKind::Comment(_) => (!matches!(attribute, A::DependsOn { .. })).then_some("a comment"),
        ItemKind::MainMenu(_) | ItemKind::If(_) | ItemKind::Source => Some("this place"),
    }
}

/// The grammar guarantees the part; a finding rather than a panic if it were not there.
pub(super) fn required<T>(part: Option<T>, line: &LogicalLine<'_>) -> Result<T, Diagnostic> {
    part.ok_or_else(|| Diagnostic::error("K002", line.whole(), "this line is not complete"))
}
