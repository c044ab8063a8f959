//! `turnup config picture`: the cluster that the configuration describes, drawn in the terminal, as
//! SVG or as JSON.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::context::ConfigContext;
use crate::config::Settings;
use crate::error::{Class, Context as _, Result};
use crate::input;
use crate::inventory::Inventory;
use crate::picture::{Glyphs, Picture};
use crate::terminal;

/// The width of the picture in the terminal.
const COLUMNS: usize = 80;

/// How it is drawn.
#[derive(Debug, clap::Args)]
pub(super) struct PictureArgs {
    /// Write it as SVG into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(super) fn draw(context: &ConfigContext<'_>, args: &PictureArgs) -> Result<()> {
    let (settings, printer) = (context.settings()?, context.printer);
    let picture = Picture::of(&settings, find_inventory(context, &settings)?.as_ref())?;
    if let Some(path) = &args.svg {
        let refused = || format!("cannot write the picture to {}", path.display());
        fs_err::write(path, picture.svg()).context_class(Class::Config, refused())?;
    }
    if printer.is_json() {
        return printer.json(&json!({"schema": Picture::SCHEMA, "picture": picture}));
    }
    if let Some(path) = &args.svg {
        return printer.line(&format!("picture in {}", path.display()));
    }
    let glyphs = if terminal::is_ascii_only() { Glyphs::ASCII } else { Glyphs::UNICODE };
    printer.line(&picture.lines(COLUMNS, glyphs).join("\n"))
}

/// The inventory that the settings name for hosts that exist; none where it is yet to be written.
fn find_inventory(context: &ConfigContext<'_>, settings: &Settings) -> Result<Option<Inventory>> {
    let file = settings.get("phase1.baremetal.hosts_file")?;
    let listed: Vec<serde_json::Value> = settings.get_records("phase1.baremetal.hosts")?;
    if file.is_empty() || !listed.is_empty() {
        return Ok(None);
    }
    if !Path::new(&file).exists() {
        context.printer.remark(&format!("{file} (phase1.baremetal.hosts_file) does not exist: no host is drawn"));
        return Ok(None);
    }
    let text = input::read_text(Path::new(&file), input::DOCUMENT).context_class(Class::Config, file.clone())?;
    Inventory::parse(&file, &text).map(Some)
}
