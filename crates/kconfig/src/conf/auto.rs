//! What the build reads: `auto.conf`, `autoconf.h`, `rustc_cfg`, and files that are touched when a
//! symbol changes.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io;

use super::order::Vertex;
use super::session::Session;
use crate::dialect::Rule;
use crate::dotconfig::{Line, Strictness, lines, push_escaped, unquote};
use crate::text;
use crate::tree::SymbolId;
use crate::value::{SymbolType, Tri};

impl Session<'_, '_> {
    /// Writes all of them; without `overwrite` only when there is no `auto.conf` yet.
    pub(super) fn write_auto(&mut self, overwrite: bool) -> io::Result<()> {
        let name = self.named("KCONFIG_AUTOCONFIG", "include/config/auto.conf");
        if !overwrite && self.console.outside.entry(&name).is_some() {
            return Ok(());
        }
        let command = self.dependencies(&name);
        self.replace_file(&format!("{name}.cmd"), &format!("{name}.cmd.tmp"), &command)?;
        self.compute_all();
        self.touch_changed(&name)?;
        let written: Vec<SymbolId> = self.written_symbols();
        let header = self.named("KCONFIG_AUTOHEADER", "include/generated/autoconf.h");
        let is_old = self.tree.dialect().has(Rule::OldBuildFiles);
        let (open, close) = if is_old { ("/*\n *\n", " *\n */\n") } else { ("/*\n", " */\n") };
        let text = self.join_lines(&written, open, " *", close, Self::push_c);
        self.replace_file(&header, &format!("{header}.tmp"), &text)?;
        if self.tree.dialect().has(Rule::RustcCfg) {
            let rust = self.named("KCONFIG_RUSTCCFG", "include/generated/rustc_cfg");
            let mut text = String::new();
            for symbol in &written {
                self.push_rust(*symbol, &mut text);
            }
            self.replace_file(&rust, &format!("{rust}.tmp"), &text)?;
        }
        if self.tree.dialect().has(Rule::TristateConf) {
            let tristate = self.named("KCONFIG_TRISTATE", "include/config/tristate.conf");
            let text = self.join_lines(&written, "#\n", "#", "#\n", Self::push_tristate);
            self.replace_file(&tristate, ".tmpconfig_tristate", &text)?;
        }
        // Last, because the build takes it as the sign that all others are complete.
        let text = self.join_lines(&written, "#\n", "#", "#\n", Self::push_make);
        self.replace_file(&name, &format!("{name}.tmp"), &text)
    }

    fn named(&self, variable: &str, default: &str) -> String {
        self.variable(variable).unwrap_or_else(|| default.to_owned())
    }

    fn compute_all(&mut self) {
        for vertex in &self.order {
            match vertex {
                Vertex::Symbol(symbol) => {
                    self.config.evaluator().answer(*symbol);
                }
                Vertex::Choice(choice) => {
                    self.config.evaluator().choice_answer(*choice);
                }
            }
        }
    }

    fn written_symbols(&self) -> Vec<SymbolId> {
        let symbols = self.order.iter().filter_map(|vertex| match vertex {
            Vertex::Symbol(symbol) => Some(*symbol),
            Vertex::Choice(_) => None,
        });
        symbols.filter(|symbol| self.config.is_written(*symbol)).collect()
    }

    fn replace_file(&mut self, name: &str, temporary: &str, text: &str) -> io::Result<()> {
        self.make_parents(name)?;
        self.console
            .outside
            .write(temporary, &text::to_bytes(text))
            .inspect_err(|error| self.complain("fopen", error))?;
        self.console.outside.rename(temporary, name).inspect_err(|error| self.complain("rename", error))
    }

    fn join_lines(
        &self,
        symbols: &[SymbolId],
        open: &str,
        middle: &str,
        close: &str,
        push: impl Fn(&Self, SymbolId, &mut String),
    ) -> String {
        let title = self.tree.node(self.tree.root()).prompt.as_ref().map_or("", |prompt| &*prompt.text);
        let mut text = format!("{open}{middle} Automatically generated file; DO NOT EDIT.\n{middle} {title}\n{close}");
        for symbol in symbols {
            push(self, *symbol, &mut text);
        }
        text
    }

    /// Make's file of what `auto.conf` depends on: the Kconfig files and the environment variables
    /// that they name.
    fn dependencies(&self, name: &str) -> String {
        let old = self.tree.dialect().has(Rule::ChoiceModes);
        let mut text = if old { String::new() } else { format!("autoconfig := {name}\n\n") };
        text.push_str("deps_config := \\\n");
        let mut known = HashSet::new();
        let mut files: Vec<&str> = self.tree.files().filter(|file| known.insert(*file)).collect();
        if old {
            files.reverse();
        }
        for file in files {
            let _ = writeln!(text, "\t{file} \\");
        }
        let variables = &self.variables;
        if old {
            if self.tree.dialect().has(Rule::OldBuildFiles) {
                text.truncate(text.len() - " \\\n".len());
                let _ = write!(text, "\n\n{name}: \\\n\t$(deps_config)\n\n");
            } else {
                let _ = write!(text, "\n{name}: $(deps_config)\n\n");
            }
            for (variable, value) in variables {
                let _ = write!(text, "ifneq \"$({variable})\" \"{value}\"\n{name}: FORCE\nendif\n");
            }
            text.push_str("\n$(deps_config): ;\n");
        } else {
            text.push_str("\n$(autoconfig): $(deps_config)\n$(deps_config): ;\n");
            for (variable, value) in variables {
                let _ = write!(text, "\nifneq \"$({variable})\" \"{value}\"\n$(autoconfig): FORCE\nendif\n");
            }
        }
        text
    }

    /// Touches the file of every symbol whose value is not the one in the old `auto.conf`.
    fn touch_changed(&mut self, name: &str) -> io::Result<()> {
        let directory = name.rfind('/').map_or("", |at| &name[..=at]).to_owned();
        let mut old: Vec<Option<Box<str>>> = vec![None; self.tree.symbols.len()];
        if let Some(bytes) = self.console.find_file(name) {
            self.read_old(name, &text::from_bytes(bytes), &directory, &mut old);
        }
        if self.tree.dialect().has(Rule::ChoiceModes) {
            self.compute_all();
        }
        for index in 0..self.order.len() {
            let Vertex::Symbol(symbol) = self.order[index] else { continue };
            let definition = self.tree.get(symbol);
            let (written, old) = (self.config.is_written(symbol), &old[symbol.index()]);
            let same = match old {
                _ if definition.kind == SymbolType::Unknown => old.is_none() || !written,
                Some(old) if written => **old == *self.config.value(symbol),
                Some(_) => false,
                None if written => definition.kind.is_logical() && self.config.tri(symbol) == Tri::N,
                None => true,
            };
            if !same {
                self.touch(&directory, &definition.name)?;
            }
        }
        Ok(())
    }

    fn touch(&mut self, directory: &str, name: &str) -> io::Result<()> {
        if !self.tree.dialect().has(Rule::LowerCaseFiles) {
            return self.console.outside.write(&[directory, name].concat(), b"");
        }
        let path = format!("{directory}{}.h", name.to_ascii_lowercase().replace('_', "/"));
        self.make_parents(&path)?;
        self.console.outside.write(&path, b"")
    }

    /// The values in an old `auto.conf`; symbols that are gone are touched at once.
    fn read_old(&mut self, name: &str, text: &str, directory: &str, old: &mut [Option<Box<str>>]) {
        self.warnings = 0;
        if self.tree.dialect().has(Rule::ChoiceModes) {
            self.report_unmet();
            self.config.forget();
        }
        for (number, line) in lines(text).enumerate() {
            // What is not set has no line here.
            let (symbol, value) = match Line::read(line, &self.prefix, Strictness::Whole) {
                Line::Value(symbol, value) => (symbol, value),
                Line::Nothing | Line::Unset(_) => continue,
                Line::Unexpected(data) => {
                    self.warn(name, number + 1, &format!("unexpected data: {data}"));
                    continue;
                }
            };
            let Some(id) = self.tree.names.find_symbol(symbol) else {
                // The symbol may not be touched because the directory is read-only; the next step
                // says so.
                self.touch(directory, symbol).ok();
                continue;
            };
            let value = match (self.tree.get(id).kind, value.as_bytes().first()) {
                (SymbolType::Tristate, Some(b'm')) => "m",
                (SymbolType::Bool | SymbolType::Tristate, Some(b'y')) => "y",
                (SymbolType::Bool | SymbolType::Tristate, Some(b'n')) => "n",
                (SymbolType::Bool | SymbolType::Tristate | SymbolType::Unknown, _) => continue,
                (SymbolType::String, _) if self.tree.dialect().has(Rule::OldBuildFiles) => {
                    old[id.index()] = unquote(value, false).map(Into::into);
                    continue;
                }
                (kind, _) if kind == SymbolType::String || kind.accepts(value) => value,
                _ => continue,
            };
            old[id.index()] = Some(value.into());
        }
    }

    fn push_make(&self, symbol: SymbolId, text: &mut String) {
        let (definition, value) = (self.tree.get(symbol), self.config.value(symbol));
        if definition.kind == SymbolType::String && self.tree.dialect().has(Rule::OldBuildFiles) {
            text.extend([&*self.prefix, &*definition.name, "=\"", &escape(value), "\"\n"]);
        } else if definition.kind != SymbolType::Unknown && !(definition.kind.is_logical() && value == "n") {
            text.extend([&*self.prefix, &*definition.name, "=", value, "\n"]);
        }
    }

    fn push_tristate(&self, symbol: SymbolId, text: &mut String) {
        let (definition, value) = (self.tree.get(symbol), self.config.value(symbol));
        if definition.kind == SymbolType::Tristate && value != "n" {
            text.extend([&*self.prefix, &*definition.name, "=", &value.to_ascii_uppercase(), "\n"]);
        }
    }

    fn push_c(&self, symbol: SymbolId, text: &mut String) {
        let (definition, value) = (self.tree.get(symbol), self.config.value(symbol));
        let name = &*definition.name;
        match definition.kind {
            SymbolType::Unknown => {}
            SymbolType::Bool | SymbolType::Tristate => match value {
                "n" => {}
                "m" => text.extend(["#define ", &self.prefix, name, "_MODULE 1\n"]),
                _ => text.extend(["#define ", &self.prefix, name, " 1\n"]),
            },
            SymbolType::Hex => text.extend(["#define ", &self.prefix, name, " ", hex_mark(value), value, "\n"]),
            SymbolType::Int => text.extend(["#define ", &self.prefix, name, " ", value, "\n"]),
            SymbolType::String => {
                text.extend(["#define ", &self.prefix, name, " \"", &escape(value), "\"\n"]);
            }
        }
    }

    fn push_rust(&self, symbol: SymbolId, text: &mut String) {
        let (definition, value) = (self.tree.get(symbol), self.config.value(symbol));
        let name = &*definition.name;
        let mark = match definition.kind {
            SymbolType::Unknown => return,
            SymbolType::Bool | SymbolType::Tristate if value == "n" => return,
            SymbolType::Bool | SymbolType::Tristate => {
                text.extend(["--cfg=", &self.prefix, name, "\n"]);
                ""
            }
            SymbolType::Hex => hex_mark(value),
            SymbolType::Int | SymbolType::String => "",
        };
        text.extend(["--cfg=", &self.prefix, name, "=\"", mark, &escape(value), "\"\n"]);
    }

    fn complain(&mut self, what: &str, error: &io::Error) {
        self.error(&format!("{what}: {error}\n"));
    }
}

fn hex_mark(value: &str) -> &'static str {
    if value.starts_with("0x") || value.starts_with("0X") { "" } else { "0x" }
}

fn escape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    push_escaped(value, &mut text);
    text
}
