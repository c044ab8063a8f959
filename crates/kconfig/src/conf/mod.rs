//! `conf`: what Linux's `scripts/kconfig/conf` does with the same command line, environment,
//! questions, messages and exit codes.
//!
//! Touches nothing itself: files, terminal, environment and clock are the caller's [`Outside`]. The
//! rules follow the tree's [`crate::Dialect`], as far as the versions of the C tool differ in what
//! they write and ask.

mod ask;
mod auto;
mod change;
mod help;
mod modes;
mod options;
mod order;
mod outside;
mod random;
mod read;
mod recursion;
mod refuse;
mod session;
mod show;
mod unmet;
mod write;

pub use outside::{Entry, Outside};

use crate::dialect::Rule;
use crate::env::Env;
use crate::source::Files;
use options::{Command, Mode};
use session::{Exit, Session, Step};

/// Runs one command line and returns the exit code.
///
/// `program` is how messages call the program; `arguments` are those after it. `files` and `env`
/// are for the Kconfig tree: files that are not found are looked for below the directory that the
/// variable `srctree` names.
pub fn run(program: &str, arguments: &[String], files: &dyn Files, env: &Env<'_>, outside: &mut dyn Outside) -> u8 {
    let mut console = session::Console::new(outside);
    match start(program, arguments, files, env, &mut console) {
        Ok(code) | Err(Exit(code)) => {
            console.flush();
            code
        }
    }
}

fn start(
    program: &str,
    arguments: &[String],
    files: &dyn Files,
    env: &Env<'_>,
    console: &mut session::Console<'_>,
) -> Step<u8> {
    let command = options::parse(program, arguments, console)?;
    let tree = refuse::load(&command, files, env, console)?;
    let mut session = Session::new(&tree, console, command.silent);
    session.variables = env.used();
    let result = execute(&mut session, &command);
    session.report_unmet();
    let code = result.map_or_else(|Exit(code)| code, |()| 0);
    session.console.end(code);
    Ok(code)
}

fn execute(session: &mut Session<'_, '_>, command: &Command) -> Step {
    read_input(session, command)?;
    let strict = session.tree.dialect().has(Rule::UnknownSymbolsWarning) && session.has_variable("KCONFIG_WERROR");
    if session.warnings > 0 && strict {
        return Err(Exit(1));
    }
    let mut keep = false;
    if command.sync && session.variable("KCONFIG_NOSILENTUPDATE").is_some_and(|value| !value.is_empty()) {
        if session.changed {
            session.error("\n*** The configuration requires explicit update.\n\n");
            return Err(Exit(1));
        }
        keep = true;
    }
    modes::apply(session, command)?;
    session.report_unmet();
    if session.unmet > 0 && strict {
        return Err(Exit(1));
    }
    write_output(session, command, keep)
}

fn read_input(session: &mut Session<'_, '_>, command: &Command) -> Step {
    match command.mode {
        Mode::Defconfig => {
            let name = command.file.as_deref().unwrap_or_default();
            if !session.read_config(Some(name)) {
                session.error(&format!("***\n*** Can't find default configuration \"{name}\"!\n***\n"));
                return Err(Exit(1));
            }
            Ok(())
        }
        Mode::Allno | Mode::Allyes | Mode::Allmod | Mode::Alldef | Mode::Rand
            if !session.tree.dialect().has(Rule::AllModesReadConfig) =>
        {
            read_seed(session, command.mode)
        }
        _ => {
            session.read_config(None);
            Ok(())
        }
    }
}

/// What `KCONFIG_ALLCONFIG` fixes before all the others get a value.
fn read_seed(session: &mut Session<'_, '_>, mode: Mode) -> Step {
    let Some(name) = session.variable("KCONFIG_ALLCONFIG") else { return Ok(()) };
    if !name.is_empty() && name != "1" {
        if !session.read_values(Some(&name)) {
            session.error(&format!("*** Can't read seed configuration \"{name}\"!\n"));
            return Err(Exit(1));
        }
        return Ok(());
    }
    let name = match mode {
        Mode::Allno => "allno.config",
        Mode::Allyes => "allyes.config",
        Mode::Allmod => "allmod.config",
        Mode::Rand => "allrandom.config",
        _ => "alldef.config",
    };
    if !session.read_values(Some(name)) && !session.read_values(Some("all.config")) {
        session.error(&format!("*** KCONFIG_ALLCONFIG set, but no \"{name}\" or \"all.config\" file found\n"));
        return Err(Exit(1));
    }
    Ok(())
}

fn write_output(session: &mut Session<'_, '_>, command: &Command, keep: bool) -> Step {
    match command.mode {
        Mode::Savedefconfig => {
            let name = command.file.as_deref().unwrap_or_default();
            if session.write_minimal(name).is_err() {
                session.error(&format!("n*** Error while saving defconfig to: {name}\n\n"));
                return Err(Exit(1));
            }
        }
        Mode::Listnew | Mode::Helpnew => {}
        _ => {
            if !keep && session.write_config().is_err() {
                session.error("\n*** Error during writing of the configuration.\n\n");
                return Err(Exit(1));
            }
            let wanted = command.sync || session.tree.dialect().has(Rule::AutoConfMade);
            if wanted && session.write_auto(command.sync).is_err() && command.sync {
                session.error("\n*** Error during sync of the configuration.\n\n");
                return Err(Exit(1));
            }
        }
    }
    Ok(())
}
