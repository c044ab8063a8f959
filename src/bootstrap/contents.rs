//! Collects the files of a node config with their owners and modes, and the secrets that they name.
//! `node_config` decides what is in them.

use std::collections::BTreeMap;

use serde_json::Value;
use zeroize::Zeroizing;

use crate::cluster::ClusterSettings;
use crate::error::Result;
use crate::node::node_config::{Content, File};
use crate::unknown;

use super::component::Component;
use super::pki::{Authority, Pki};

/// Secrets of a node by name.
pub(super) type SecretTexts = BTreeMap<String, Zeroizing<String>>;

/// The files and secrets so far. A file belongs to root unless its owner is given.
pub(super) struct Contents<'a> {
    pub(super) pki: Pki<'a>,
    pub(super) list: Vec<File>,
    pub(super) secrets: SecretTexts,
}

impl<'a> Contents<'a> {
    pub(super) const fn new(pki: Pki<'a>) -> Self {
        Self { pki, list: Vec::new(), secrets: SecretTexts::new() }
    }

    /// Adds to the directory of a component.
    pub(super) fn of<'f>(&'f mut self, component: &'f Component, settings: &ClusterSettings) -> ComponentFiles<'f, 'a> {
        ComponentFiles { owner: component.user(settings), all: self, component }
    }

    pub(super) fn yaml(&mut self, path: &str, value: Value) {
        self.push(path, 0o600, 0, Content::Yaml(value));
    }

    /// A file of `pki/` that every user of the host may read.
    pub(super) fn public(&mut self, path: &str, file: &str) -> Result<()> {
        let text = self.pki_text(file)?;
        self.push(path, 0o644, 0, Content::Text(text));
        Ok(())
    }

    /// All certificates by which an authority's signatures are verified.
    pub(super) fn bundle(&mut self, path: &str, authority: Authority) -> Result<()> {
        let text = self.pki.bundle(authority)?;
        self.push(path, 0o644, 0, Content::Text(text));
        Ok(())
    }

    /// A private key of `pki/`.
    pub(super) fn key(&mut self, path: &str, file: &str, owner: u32) -> Result<()> {
        let text = self.pki_text(file)?;
        self.secret(path, file, text, owner);
        Ok(())
    }

    pub(super) fn secret(&mut self, path: &str, name: &str, text: String, owner: u32) {
        let sha256 = unknown::digest(&text);
        self.secrets.insert(name.to_owned(), Zeroizing::new(text));
        self.push(path, 0o600, owner, Content::Secret { name: name.to_owned(), sha256 });
    }

    /// A symbolic link, which the host itself changes later.
    pub(super) fn initial_link(&mut self, path: &str, target: &str) {
        let file = File::new(path, 0o600, 0, Content::Symlink(target.to_owned()));
        self.list.push(File { initial: true, ..file });
    }

    fn pki_text(&self, file: &str) -> Result<String> {
        let (name, ending) = file.rsplit_once('.').unwrap_or((file, ""));
        self.pki.text(name, ending)
    }

    fn push(&mut self, path: &str, mode: u32, owner: u32, content: Content) {
        self.list.push(File::new(path, mode, owner, content));
    }
}

/// Adds files to the directory of a component. Secrets and configuration belong to its user.
pub(super) struct ComponentFiles<'f, 'a> {
    pub(super) all: &'f mut Contents<'a>,
    pub(super) component: &'f Component,
    owner: u32,
}

impl ComponentFiles<'_, '_> {
    pub(super) fn push(&mut self, name: &str, content: Content) {
        self.all.push(&self.component.file(name), 0o600, self.owner, content);
    }

    /// A certificate or public key of `pki/`.
    pub(super) fn public(&mut self, name: &str, file: &str) -> Result<()> {
        self.all.public(&self.component.file(name), file)
    }

    /// All certificates by which an authority's signatures are verified.
    pub(super) fn bundle(&mut self, name: &str, authority: Authority) -> Result<()> {
        self.all.bundle(&self.component.file(name), authority)
    }

    /// A private key of `pki/`.
    pub(super) fn key(&mut self, name: &str, file: &str) -> Result<()> {
        self.all.key(&self.component.file(name), file, self.owner)
    }

    /// A certificate of `pki/` and its key, both named without their endings.
    pub(super) fn pair(&mut self, name: &str, file: &str) -> Result<()> {
        self.public(&format!("{name}.crt"), &format!("{file}.crt"))?;
        self.key(&format!("{name}.key"), &format!("{file}.key"))
    }

    /// A secret with the name of its file.
    pub(super) fn secret(&mut self, name: &str, text: String) {
        self.all.secret(&self.component.file(name), name, text, self.owner);
    }
}
