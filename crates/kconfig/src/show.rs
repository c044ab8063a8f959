//! Expressions and constants as people write them in Kconfig.

use crate::expr::{Atom, Expr, ExprId};
use crate::tree::Tree;
use crate::value::SymbolType;

impl Tree {
    /// An expression as people write it.
    #[must_use]
    pub fn show(&self, id: ExprId) -> String {
        let mut text = String::new();
        self.write_expr(id, 0, &mut text);
        text
    }

    /// What a range is limited by, as people write it.
    #[must_use]
    pub fn show_atom(&self, atom: Atom) -> String {
        let mut text = String::new();
        self.write_atom(atom, &mut text);
        text
    }

    /// `level` is how tightly the surroundings bind: 0 or, 1 and, 2 not.
    fn write_expr(&self, id: ExprId, level: u8, text: &mut String) {
        let (terms, own, operator) = match self.expr(id) {
            Expr::Atom(atom) => return self.write_atom(atom, text),
            Expr::Compare(operator, left, right) => {
                let parenthesised = level == 2;
                text.push_str(if parenthesised { "(" } else { "" });
                self.write_atom(left, text);
                text.extend([" ", operator.as_str(), " "]);
                self.write_atom(right, text);
                text.push_str(if parenthesised { ")" } else { "" });
                return;
            }
            Expr::Not(a) => {
                text.push('!');
                return self.write_expr(a, 2, text);
            }
            Expr::And(..) => (self.exprs.conjuncts(id), 1, " && "),
            Expr::Or(..) => (self.exprs.disjuncts(id), 0, " || "),
        };
        text.push_str(if own < level { "(" } else { "" });
        for (index, term) in terms.into_iter().enumerate() {
            text.push_str(if index == 0 { "" } else { operator });
            self.write_expr(term, own + 1, text);
        }
        text.push_str(if own < level { ")" } else { "" });
    }

    fn write_atom(&self, atom: Atom, text: &mut String) {
        match atom {
            Atom::Tri(tri) => text.push_str(tri.as_str()),
            Atom::Symbol(symbol) => text.push_str(&self.get(symbol).name),
            Atom::Text(id) => text.push_str(&quote(self.text(id))),
            Atom::Choice(choice) => match &self.choice(choice).name {
                Some(name) => text.push_str(name),
                None => text.push_str("<choice>"),
            },
        }
    }
}

/// A constant as it is written in Kconfig: numbers bare, texts in quotes.
fn quote(text: &str) -> String {
    if SymbolType::Int.accepts(text) || (text.starts_with("0x") && SymbolType::Hex.accepts(text)) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
