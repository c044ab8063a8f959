//! What may follow what on a line: matches the shapes of lines against the grammar, and says what
//! was expected where one does not fit.
//!
//! Every distinct shape is parsed once; all lines of that shape are lowered by the same template.

use std::collections::HashMap;

use pest::Parser as _;
use pest::error::{Error, ErrorVariant, InputLocation};
use pest::iterators::{Pair, Pairs};

use super::ast::{Located, Word};
use super::reader::{LogicalLine, narrow};
use super::token::{Token, kind};
use crate::diagnostic::Diagnostic;
use crate::expr::{Atom, Compare, ExprId, Exprs};
use crate::ids::SymbolId;
use crate::names::Names;
use crate::source::{FastHash, Span};

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

/// One step of an expression in postfix order; numbers are positions of tokens, or how many values
/// are joined.
#[derive(Clone, Copy, Debug)]
enum Op {
    Atom(u32),
    Compare(Compare, u32, u32),
    Not,
    And(u32),
    Or(u32),
}

/// An expression of a shape.
#[derive(Debug, Default)]
struct Program {
    ops: Vec<Op>,
    first: u32,
    last: u32,
}

/// What the lines of one shape consist of.
#[derive(Debug, Default)]
struct Template {
    /// Words and texts outside expressions.
    words: Vec<u32>,
    expression: Option<Program>,
    condition: Option<Program>,
}

/// Where a shape does not fit, and what was expected there.
#[derive(Debug)]
struct Mismatch {
    at: usize,
    expected: Vec<Rule>,
}

/// The shapes seen so far.
#[derive(Debug)]
pub(crate) struct Shapes {
    templates: Vec<Result<Template, Mismatch>>,
    /// The numbers of templates by the rule and the shape.
    numbers: HashMap<Vec<u8>, usize, FastHash>,
    /// The rule and shape of one line, as they are looked up.
    key: Vec<u8>,
    /// Shapes of so few tokens that they are a number, those that were looked up last.
    short: Vec<(u64, u32)>,
    stack: Vec<ExprId>,
}

/// How many letters fit into a number beside that of the rule.
const SHORT: usize = 7;
/// How many short shapes are remembered; a power of two.
const SLOTS: usize = 1 << 10;

impl Default for Shapes {
    fn default() -> Self {
        // No rule has the number of these keys.
        let short = vec![(u64::MAX, 0); SLOTS];
        Self { templates: Vec::new(), numbers: HashMap::default(), key: Vec::new(), short, stack: Vec::new() }
    }
}

/// The parts of one line that fits its rule.
pub(crate) struct Parts<'x> {
    template: &'x Template,
    tokens: &'x [Token],
    names: &'x mut Names,
    exprs: &'x mut Exprs,
    stack: &'x mut Vec<ExprId>,
    words: usize,
}

impl Shapes {
    /// Matches the tokens behind the keyword of a line against the rule of that keyword.
    pub(crate) fn match_line<'x>(
        &'x mut self,
        rule: Rule,
        tokens: &'x [Token],
        names: &'x mut Names,
        exprs: &'x mut Exprs,
        line: &LogicalLine<'_>,
    ) -> Result<Parts<'x>, Diagnostic> {
        let number = self.number_of(rule, tokens);
        match &self.templates[number] {
            Err(mismatch) => Err(explain_mismatch(mismatch, tokens, names, line)),
            Ok(template) => Ok(Parts { template, tokens, names, exprs, stack: &mut self.stack, words: 0 }),
        }
    }

    /// The number of a template, which is made when it is wanted for the first time.
    #[inline]
    fn number_of(&mut self, rule: Rule, tokens: &[Token]) -> usize {
        if tokens.len() > SHORT {
            return self.number_of_long(rule, tokens);
        }
        let key = tokens.iter().fold(rule as u64, |key, token| key << 8 | u64::from(token.kind));
        let slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % SLOTS;
        let (known, number) = self.short[slot];
        if known == key {
            return number as usize;
        }
        let number = self.number_of_long(rule, tokens);
        self.short[slot] = (key, narrow(number));
        number
    }

    fn number_of_long(&mut self, rule: Rule, tokens: &[Token]) -> usize {
        self.key.clear();
        self.key.extend([rule as u8, b'k']);
        self.key.extend(tokens.iter().map(|token| token.kind));
        if let Some(number) = self.numbers.get(&self.key) {
            return *number;
        }
        let number = self.templates.len();
        self.templates.push(parse_shape(rule, &self.key[1..]));
        self.numbers.insert(self.key.clone(), number);
        number
    }
}

impl Parts<'_> {
    /// The next token that stands outside expressions.
    pub(crate) fn token(&mut self) -> Option<Token> {
        let position = *self.template.words.get(self.words)?;
        self.words += 1;
        self.tokens.get(position as usize).copied()
    }

    /// The next of them as a word.
    pub(crate) fn word(&mut self) -> Option<Word> {
        self.token().map(|token| Word { text: token.text, span: token.span })
    }

    /// The next of them as a symbol.
    pub(crate) fn symbol(&mut self) -> Option<(SymbolId, Span)> {
        let token = self.token()?;
        Some((self.names.symbol(token.text, token.span), token.span))
    }

    /// What a word says.
    pub(crate) fn text(&self, word: Word) -> &str {
        self.names.text(word.text)
    }

    /// The next of them as what it means in expressions.
    pub(crate) fn atom(&mut self) -> Option<(Atom, Span)> {
        let token = self.token()?;
        Some((lower_atom(self.names, token), token.span))
    }

    /// The line's expression.
    pub(crate) fn expression(&mut self) -> Option<Located> {
        let program = self.template.expression.as_ref()?;
        let span = join(self.tokens.get(program.first as usize)?.span, self.tokens.get(program.last as usize)?.span);
        Some(Located { expr: self.run(program), span })
    }

    /// What stands behind the line's `if`; `y` without one.
    pub(crate) fn condition(&mut self) -> ExprId {
        self.template.condition.as_ref().map_or(ExprId::YES, |program| self.run(program))
    }

    fn run(&mut self, program: &Program) -> ExprId {
        self.stack.clear();
        for op in &program.ops {
            let value = match *op {
                Op::Atom(at) => {
                    let atom = lower_atom(self.names, self.tokens[at as usize]);
                    self.exprs.atom(atom)
                }
                Op::Compare(operator, left, right) => {
                    let left = lower_atom(self.names, self.tokens[left as usize]);
                    let right = lower_atom(self.names, self.tokens[right as usize]);
                    self.exprs.compare(operator, left, right)
                }
                Op::Not => {
                    let operand = self.stack.pop().unwrap_or(ExprId::NO);
                    self.exprs.not(operand)
                }
                Op::And(count) => self.fold(count, ExprId::YES, Exprs::and),
                Op::Or(count) => self.fold(count, ExprId::NO, Exprs::or),
            };
            self.stack.push(value);
        }
        self.stack.pop().unwrap_or(ExprId::YES)
    }

    fn fold(&mut self, count: u32, start: ExprId, join: fn(&mut Exprs, ExprId, ExprId) -> ExprId) -> ExprId {
        let from = self.stack.len().saturating_sub(count as usize);
        let mut value = start;
        for term in self.stack.drain(from..) {
            value = join(self.exprs, value, term);
        }
        value
    }
}

/// What a token means in an expression.
fn lower_atom(names: &mut Names, token: Token) -> Atom {
    if token.kind == kind::TEXT { names.quoted(token.text) } else { names.bare(token.text, token.span) }
}

/// From the first place to the last; cut at the end of the first one's line.
pub(crate) fn join(first: Span, last: Span) -> Span {
    if first.line != last.line || first.file != last.file || last.col < first.col {
        return first;
    }
    Span { len: (last.col - first.col).saturating_add(last.len), ..first }
}

fn parse_shape(rule: Rule, shape: &[u8]) -> Result<Template, Mismatch> {
    if let Some(at) = find_excessive_nesting(shape) {
        return Err(Mismatch { at: at.saturating_sub(1), expected: Vec::new() });
    }
    // Letters only: a shape is always text.
    let shape = str::from_utf8(shape).unwrap_or("?");
    match grammar::Grammar::parse(rule, shape) {
        Ok(mut matched) => Ok(lower_line(matched.next().map_or(matched, Pair::into_inner))),
        Err(error) => Err(lower_mismatch(&error)),
    }
}

/// The position at which parentheses and negations go too deep.
fn find_excessive_nesting(shape: &[u8]) -> Option<usize> {
    let (mut depth, mut negations) = (0_usize, 0_usize);
    shape.iter().position(|letter| {
        match letter {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'!' => negations += 1,
            _ => negations = 0,
        }
        depth + negations > MAX_NESTING
    })
}

fn lower_line(pairs: Pairs<'_, Rule>) -> Template {
    let mut template = Template::default();
    for pair in pairs {
        match pair.as_rule() {
            Rule::word | Rule::text => template.words.push(position(&pair)),
            Rule::expression => template.expression = Some(lower_program(pair)),
            Rule::condition => {
                template.condition =
                    pair.into_inner().find(|inner| inner.as_rule() == Rule::expression).map(lower_program);
            }
            _ => {}
        }
    }
    template
}

/// One letter is one token, behind that of the keyword.
fn position(pair: &Pair<'_, Rule>) -> u32 {
    u32::try_from(pair.as_span().start().saturating_sub(1)).unwrap_or(u32::MAX)
}

fn lower_program(pair: Pair<'_, Rule>) -> Program {
    let span = pair.as_span();
    let last = u32::try_from(span.end().saturating_sub(2)).unwrap_or(u32::MAX);
    let mut program = Program { ops: Vec::new(), first: position(&pair), last };
    lower_expression(pair, &mut program.ops);
    program
}

/// Recurses as deep as the shape nests, which is limited.
fn lower_expression(pair: Pair<'_, Rule>, ops: &mut Vec<Op>) {
    match pair.as_rule() {
        Rule::expression => lower_chain(pair, ops, Op::Or),
        Rule::conjunction => lower_chain(pair, ops, Op::And),
        Rule::negation => {
            for inner in pair.into_inner().filter(|inner| inner.as_rule() != Rule::close) {
                lower_expression(inner, ops);
            }
            ops.push(Op::Not);
        }
        Rule::comparison => {
            let mut inner = pair.into_inner();
            let Some(left) = inner.next().map(|atom| position(&atom)) else { return };
            match (inner.next().and_then(|operator| operator_of(operator.as_str())), inner.next()) {
                (Some(operator), Some(right)) => ops.push(Op::Compare(operator, left, position(&right))),
                _ => ops.push(Op::Atom(left)),
            }
        }
        _ => {}
    }
}

/// Terms with operators between them; one term alone stays itself.
fn lower_chain(pair: Pair<'_, Rule>, ops: &mut Vec<Op>, join: fn(u32) -> Op) {
    let mut terms = 0;
    for inner in pair.into_inner() {
        if !matches!(inner.as_rule(), Rule::and | Rule::or | Rule::close) {
            lower_expression(inner, ops);
            terms += 1;
        }
    }
    if terms > 1 {
        ops.push(join(terms));
    }
}

/// The operator that a letter of a shape stands for.
fn operator_of(letter: &str) -> Option<Compare> {
    Some(match letter {
        "=" => Compare::Equal,
        "~" => Compare::Unequal,
        "<" => Compare::Less,
        "[" => Compare::LessEqual,
        ">" => Compare::Greater,
        "]" => Compare::GreaterEqual,
        _ => return None,
    })
}

fn lower_mismatch(error: &Error<Rule>) -> Mismatch {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let expected = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.clone(),
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    Mismatch { at: at.saturating_sub(1), expected }
}

/// Turns pest's position and expectations into a finding.
fn explain_mismatch(mismatch: &Mismatch, tokens: &[Token], names: &Names, line: &LogicalLine<'_>) -> Diagnostic {
    let found = tokens.get(mismatch.at);
    let span = found.map_or_else(|| line.end(), |token| token.span);
    if find_excessive_nesting(&tokens.iter().map(|token| token.kind).collect::<Vec<_>>()).is_some() {
        let message = format!("this expression nests more than {MAX_NESTING} levels deep");
        return Diagnostic::error("K010", span, message);
    }
    let shown = found.map_or_else(|| "the end of the line".to_owned(), |token| describe_token(line, *token));
    let finding = if mismatch.expected.is_empty() {
        Diagnostic::error("K002", span, format!("unexpected {shown}"))
    } else {
        let expected = join_expectations(&mismatch.expected);
        Diagnostic::error("K002", span, format!("expected {expected}, found {shown}"))
    };
    match (mismatch.expected.as_slice(), found) {
        ([Rule::text], Some(_)) => {
            finding.with_help(format!("put the text in quotes: \"{}\"", line.rest_from(span).trim_end()))
        }
        ([Rule::word], Some(token)) if token.kind == kind::TEXT => {
            let name = names.text(token.text);
            finding.with_help(format!("names of symbols stand without quotes: {name}"))
        }
        _ => finding,
    }
}

/// A token as it stands in the line, in backquotes.
pub(crate) fn describe_token(line: &LogicalLine<'_>, token: Token) -> String {
    let rest = line.rest_from(token.span);
    let text = rest.get(..usize::from(token.span.len)).unwrap_or(rest);
    if text.chars().count() <= 40 {
        return format!("`{text}`");
    }
    format!("`{}…`", text.chars().take(40).collect::<String>())
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
        Rule::operator | Rule::equal => "a comparison (=, !=, <, <=, >, >=)",
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
