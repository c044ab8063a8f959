//! What all tests share: trees from text, values by name.

use kconfig::{Config, Diagnostics, Env, MemoryFiles, SetError, SymbolId, Tree};

/// A tree of one file; panics with its diagnostics when it is refused.
pub(crate) fn tree(text: &str) -> Tree {
    files(&[("Kconfig", text)])
}

/// A tree of several files.
pub(crate) fn files(files: &[(&str, &str)]) -> Tree {
    try_files(files).unwrap_or_else(|found| panic!("{}", found.render(true)))
}

pub(crate) fn try_files(files: &[(&str, &str)]) -> Result<Tree, Diagnostics> {
    let env = Env::new(|name| (name == "REGION").then(|| "eu-\"west\"".to_owned()));
    Tree::load("Kconfig", &MemoryFiles::new(files.iter().copied()), &env)
}

/// The picture of everything that is found in one file, errors or warnings.
pub(crate) fn findings(text: &str) -> String {
    findings_of(&[("Kconfig", text)])
}

pub(crate) fn findings_of(files: &[(&str, &str)]) -> String {
    match try_files(files) {
        Ok(tree) => tree.warnings().render(true),
        Err(found) => found.render(true),
    }
}

pub(crate) fn symbol(tree: &Tree, name: &str) -> SymbolId {
    tree.symbol(name).unwrap_or_else(|| panic!("{name} is not defined"))
}

/// Values by name.
pub(crate) trait ByName {
    fn get(&self, name: &str) -> &str;
    fn put(&mut self, name: &str, value: &str) -> Result<(), SetError>;
}

impl ByName for Config<'_> {
    fn get(&self, name: &str) -> &str {
        self.value(symbol(self.tree(), name))
    }

    fn put(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        let id = symbol(self.tree(), name);
        self.set(id, value)
    }
}
