//! Lowers what the grammar matched to the syntax tree, and says what it expected where it did not match.

use pest::Parser as _;
use pest::error::{Error, ErrorVariant, InputLocation};
use pest::iterators::{Pair, Pairs};

use super::ast::{Expression, Located, Word};
use super::reader::LogicalLine;
use crate::diagnostic::Diagnostic;
use crate::expr::Compare;

/// What pest makes of the grammar.
mod grammar {
    /// The parser.
    #[derive(pest_derive::Parser)]
    #[grammar = "syntax/kconfig.pest"]
    pub(crate) struct Grammar;
}

pub(crate) use grammar::Rule;

/// How deep parentheses and negations may nest; real trees stay below ten.
const MAX_NESTING: usize = 200;

/// The parts of one line that matched its rule, in order.
pub(crate) struct Parts<'l, 's> {
    line: &'l LogicalLine<'s>,
    pairs: Pairs<'l, Rule>,
}

/// Matches a line against the rule of its keyword.
pub(crate) fn parse_line<'l, 's>(line: &'l LogicalLine<'s>, rule: Rule) -> Result<Parts<'l, 's>, Diagnostic> {
    if let Some(at) = find_excessive_nesting(&line.text) {
        let message = format!("this expression nests more than {MAX_NESTING} levels deep");
        return Err(Diagnostic::error("K010", line.span(at, at + 1), message));
    }
    match grammar::Grammar::parse(rule, &line.text) {
        Ok(mut matched) => {
            let mut pairs = matched.next().map_or(matched, Pair::into_inner);
            // The words that only say what the line is.
            while pairs.peek().is_some_and(|pair| is_punctuation(pair.as_rule())) {
                pairs.next();
            }
            Ok(Parts { line, pairs })
        }
        Err(error) => Err(explain_mismatch(line, &error)),
    }
}

impl Parts<'_, '_> {
    /// The next part when it is a word or a text.
    pub(crate) fn word(&mut self) -> Option<Word> {
        let pair = self.pairs.peek().filter(|pair| matches!(pair.as_rule(), Rule::word | Rule::text))?;
        self.pairs.next();
        Some(lower_word(self.line, &pair))
    }

    /// The next part when it is an expression.
    pub(crate) fn expression(&mut self) -> Option<Located> {
        let pair = self.pairs.peek().filter(|pair| pair.as_rule() == Rule::expression)?;
        self.pairs.next();
        Some(lower_located(self.line, pair))
    }

    /// The next part when it is an `if` with its expression.
    pub(crate) fn condition(&mut self) -> Option<Located> {
        let pair = self.pairs.peek().filter(|pair| pair.as_rule() == Rule::condition)?;
        self.pairs.next();
        let mut inner = pair.into_inner().filter(|pair| !is_punctuation(pair.as_rule()));
        inner.next().map(|expression| lower_located(self.line, expression))
    }
}

/// Parts that are in the tree only so that messages can name them.
fn is_punctuation(rule: Rule) -> bool {
    matches!(rule, Rule::close | Rule::if_word | Rule::on_word)
}

/// The position at which parentheses and negations go too deep; counting all of them is enough for the common case.
fn find_excessive_nesting(text: &str) -> Option<usize> {
    if text.len() <= MAX_NESTING {
        return None;
    }
    let (mut depth, mut negations) = (0_usize, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'!' => negations += 1,
            b' ' | b'\t' => continue,
            _ => negations = 0,
        }
        if depth + negations > MAX_NESTING {
            return Some(at);
        }
    }
    None
}

fn lower_located(line: &LogicalLine<'_>, pair: Pair<'_, Rule>) -> Located {
    let span = pair.as_span();
    let span = line.span(span.start(), span.end());
    Located { expression: lower_expression(line, pair), span }
}

fn lower_expression(line: &LogicalLine<'_>, pair: Pair<'_, Rule>) -> Expression {
    match pair.as_rule() {
        Rule::expression => lower_chain(line, pair, Expression::Or),
        Rule::conjunction => lower_chain(line, pair, Expression::And),
        Rule::negation => {
            let operand = pair.into_inner().next().map_or_else(no_operand, |inner| lower_expression(line, inner));
            Expression::Not(Box::new(operand))
        }
        _ => lower_comparison(line, pair),
    }
}

/// Terms with operators between them; one term alone stays itself.
fn lower_chain(line: &LogicalLine<'_>, pair: Pair<'_, Rule>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    let is_term = |inner: &Pair<'_, Rule>| !matches!(inner.as_rule(), Rule::and | Rule::or | Rule::close);
    let mut terms = pair.into_inner().filter(is_term).map(|inner| lower_expression(line, inner));
    let first = terms.next().unwrap_or_else(no_operand);
    match terms.next() {
        None => first,
        Some(second) => join([first, second].into_iter().chain(terms).collect()),
    }
}

fn lower_comparison(line: &LogicalLine<'_>, pair: Pair<'_, Rule>) -> Expression {
    let mut inner = pair.into_inner();
    let Some(left) = inner.next().map(|atom| lower_word(line, &atom)) else { return no_operand() };
    match (inner.next().and_then(|operator| lower_operator(operator.as_str())), inner.next()) {
        (Some(operator), Some(right)) => Expression::Compare(operator, left, lower_word(line, &right)),
        _ => Expression::Word(left),
    }
}

/// Stands where the grammar guarantees an operand; a constant rather than a panic.
fn no_operand() -> Expression {
    Expression::Or(Vec::new())
}

fn lower_operator(text: &str) -> Option<Compare> {
    Some(match text {
        "=" => Compare::Equal,
        "!=" => Compare::Unequal,
        "<" => Compare::Less,
        "<=" => Compare::LessEqual,
        ">" => Compare::Greater,
        ">=" => Compare::GreaterEqual,
        _ => return None,
    })
}

fn lower_word(line: &LogicalLine<'_>, pair: &Pair<'_, Rule>) -> Word {
    let place = pair.as_span();
    let span = line.span(place.start(), place.end());
    if pair.as_rule() == Rule::text {
        let raw = pair.as_str();
        Word { text: unescape(&raw[1..raw.len() - 1]).into(), quoted: true, span }
    } else {
        Word { text: pair.as_str().into(), quoted: false, span }
    }
}

/// A backslash stands for the character after it.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    text
}

/// Turns pest's position and expectations into a finding.
fn explain_mismatch(line: &LogicalLine<'_>, error: &Error<Rule>) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let rest = &line.text[at..];
    let skipped = rest.len() - rest.trim_start().len();
    let (at, rest) = (at + skipped, rest.trim_start());
    if rest.starts_with(['"', '\'']) && is_unclosed(rest) {
        let finding = Diagnostic::error("K003", line.span(at, line.text.len()), "this text is not closed");
        return finding.with_help("texts end on the line on which they start, with the quote that opens them");
    }
    let found = describe_found(rest);
    let message = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } if !positives.is_empty() => {
            format!("expected {}, found {found}", join_expectations(positives))
        }
        _ => format!("unexpected {found}"),
    };
    let len = rest.find(char::is_whitespace).unwrap_or(rest.len()).max(usize::from(!rest.is_empty()));
    let span = line.span(at, at + len);
    let finding = Diagnostic::error("K002", span, message);
    match &error.variant {
        ErrorVariant::ParsingError { positives, .. } if positives == &[Rule::text] && !rest.is_empty() => {
            finding.with_help(format!("put the text in quotes: \"{}\"", rest.trim_end()))
        }
        ErrorVariant::ParsingError { positives, .. } if positives == &[Rule::word] && rest.starts_with(['"', '\'']) => {
            finding.with_help("names of symbols stand without quotes")
        }
        _ => finding,
    }
}

fn is_unclosed(rest: &str) -> bool {
    let mut chars = rest.chars();
    let open = chars.next();
    while let Some(c) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if Some(c) == open {
            return false;
        }
    }
    true
}

fn describe_found(rest: &str) -> String {
    match rest.split_whitespace().next() {
        None => "the end of the line".to_owned(),
        Some(word) if word.chars().count() <= 40 => format!("`{word}`"),
        Some(word) => format!("`{}…`", word.chars().take(40).collect::<String>()),
    }
}

fn join_expectations(rules: &[Rule]) -> String {
    let mut names: Vec<&str> = rules.iter().map(|rule| describe_rule(*rule)).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => "something else".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// How a rule is called in messages.
fn describe_rule(rule: Rule) -> &'static str {
    match rule {
        Rule::word => "a name",
        Rule::text => "a text in quotes",
        Rule::operator => "a comparison (=, !=, <, <=, >, >=)",
        Rule::and => "`&&`",
        Rule::or => "`||`",
        Rule::negation | Rule::comparison | Rule::conjunction | Rule::expression => "an expression",
        Rule::close => "`)`",
        Rule::condition | Rule::if_word => "`if`",
        Rule::on_word => "`on`",
        Rule::EOI => "the end of the line",
        _ => "something else",
    }
}
