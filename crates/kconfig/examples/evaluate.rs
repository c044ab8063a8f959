//! Loads a Kconfig tree from a directory and prints its `.config`: the defaults, or what follows
//! from a given one.
//!
//! `cargo run -p kconfig --example evaluate -- DIRECTORY [CONFIG]`

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "an example does without the crates of turnup, and speaks to its terminal"
)]

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use kconfig::{Config, Env, Files, Tree, dotconfig, text};

struct Directory(PathBuf);

impl Files for Directory {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.0.join(path))
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        std::fs::read_dir(self.0.join(directory))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }
}

fn main() -> ExitCode {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    match Tree::load(
        "Kconfig",
        &Directory(directory.into()),
        &Env::new(|name| std::env::var(name).ok()).with_detection(),
    ) {
        Ok(tree) => {
            if std::env::var_os("KCONFIG_WARNINGS").is_some() {
                eprint!("{}", tree.warnings());
            }
            if std::env::var_os("KCONFIG_PARSE_ONLY").is_some() {
                std::process::exit(0);
            }
            let mut config = Config::new(&tree);
            if let Some(path) = std::env::args().nth(2) {
                let text = match std::fs::read(&path) {
                    Ok(bytes) => text::from_bytes(bytes),
                    Err(error) => {
                        eprintln!("cannot read {path}: {error}");
                        return ExitCode::FAILURE;
                    }
                };
                for (line, finding) in dotconfig::read(&mut config, &text, "CONFIG_").iter() {
                    eprintln!("{path}:{line}: {finding}");
                }
            }
            let written = dotconfig::write(&config, "CONFIG_");
            match io::stdout().write_all(&text::to_bytes(&written)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(found) => {
            eprintln!("{found}");
            ExitCode::FAILURE
        }
    }
}
