//! The command line, read as `getopt_long` reads it.

use super::random::Random;
use super::session::{Console, Exit, Step};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Oldask,
    Sync,
    Old,
    Allno,
    Allyes,
    Allmod,
    Alldef,
    Rand,
    Defconfig,
    Savedefconfig,
    Listnew,
    Helpnew,
    Olddef,
    Yes2mod,
    Mod2yes,
    Mod2no,
}

/// A command line that was understood.
#[derive(Debug)]
pub(super) struct Command {
    pub mode: Mode,
    /// The file of `--defconfig` and `--savedefconfig`.
    pub file: Option<String>,
    pub silent: bool,
    /// `--syncconfig` was given, even when another mode came later.
    pub sync: bool,
    pub random: Option<Random>,
    /// What to say about the seed.
    pub seed: String,
    pub kconfig: String,
}

/// What one option means.
#[derive(Clone, Copy)]
enum Meaning {
    Help,
    Silent,
    Set(Mode),
}

const OPTIONS: [(&str, Meaning); 18] = [
    ("help", Meaning::Help),
    ("silent", Meaning::Silent),
    ("oldaskconfig", Meaning::Set(Mode::Oldask)),
    ("oldconfig", Meaning::Set(Mode::Old)),
    ("syncconfig", Meaning::Set(Mode::Sync)),
    ("defconfig", Meaning::Set(Mode::Defconfig)),
    ("savedefconfig", Meaning::Set(Mode::Savedefconfig)),
    ("allnoconfig", Meaning::Set(Mode::Allno)),
    ("allyesconfig", Meaning::Set(Mode::Allyes)),
    ("allmodconfig", Meaning::Set(Mode::Allmod)),
    ("alldefconfig", Meaning::Set(Mode::Alldef)),
    ("randconfig", Meaning::Set(Mode::Rand)),
    ("listnewconfig", Meaning::Set(Mode::Listnew)),
    ("helpnewconfig", Meaning::Set(Mode::Helpnew)),
    ("olddefconfig", Meaning::Set(Mode::Olddef)),
    ("yes2modconfig", Meaning::Set(Mode::Yes2mod)),
    ("mod2yesconfig", Meaning::Set(Mode::Mod2yes)),
    ("mod2noconfig", Meaning::Set(Mode::Mod2no)),
];

/// Options may stand anywhere; those that are wrong are complained about and skipped.
pub(super) fn parse(program: &str, arguments: &[String], console: &mut Console<'_>) -> Step<Command> {
    let mut command = Command {
        mode: Mode::Oldask,
        file: None,
        silent: false,
        sync: false,
        random: None,
        seed: String::new(),
        kconfig: String::new(),
    };
    let mut operands = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            operands.extend(rest.by_ref());
        } else if let Some(long) = argument.strip_prefix("--") {
            take_long(program, long, &mut rest, &mut command, console)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            for letter in argument[1..].chars() {
                match letter {
                    'h' => return Err(print_usage(program, console)),
                    's' => command.silent = true,
                    _ => console.error(&format!("{program}: invalid option -- '{letter}'\n")),
                }
            }
        } else {
            operands.push(argument);
        }
    }
    let Some(kconfig) = operands.first() else {
        console.error(&format!("{program}: Kconfig file missing\n"));
        return Err(print_usage(program, console));
    };
    command.kconfig.clone_from(kconfig);
    Ok(command)
}

fn take_long(
    program: &str,
    long: &str,
    rest: &mut std::slice::Iter<'_, String>,
    command: &mut Command,
    console: &mut Console<'_>,
) -> Step {
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    let exact = OPTIONS.iter().find(|(option, _)| *option == name);
    let near: Vec<&(&str, Meaning)> = OPTIONS.iter().filter(|(option, _)| option.starts_with(name)).collect();
    let (option, meaning) = match (exact, &*near) {
        (Some(found), _) => *found,
        (None, [found]) => **found,
        (None, []) => {
            console.error(&format!("{program}: unrecognized option '--{long}'\n"));
            return Ok(());
        }
        (None, several) => {
            let names: Vec<String> = several.iter().map(|(option, _)| format!(" '--{option}'")).collect();
            console.error(&format!("{program}: option '--{long}' is ambiguous; possibilities:{}\n", names.concat()));
            return Ok(());
        }
    };
    let takes_file = matches!(meaning, Meaning::Set(Mode::Defconfig | Mode::Savedefconfig));
    let file = match (takes_file, value) {
        (true, Some(value)) => Some(value.to_owned()),
        (true, None) => {
            let Some(value) = rest.next() else {
                console.error(&format!("{program}: option '--{option}' requires an argument\n"));
                return Ok(());
            };
            Some(value.clone())
        }
        (false, Some(_)) => {
            console.error(&format!("{program}: option '--{option}' doesn't allow an argument\n"));
            return Ok(());
        }
        (false, None) => None,
    };
    match meaning {
        Meaning::Help => return Err(print_usage(program, console)),
        Meaning::Silent => command.silent = true,
        Meaning::Set(mode) => set_mode(command, mode, file, console),
    }
    Ok(())
}

fn set_mode(command: &mut Command, mode: Mode, file: Option<String>, console: &mut Console<'_>) {
    command.mode = mode;
    match mode {
        Mode::Sync => {
            command.silent = true;
            command.sync = true;
        }
        Mode::Rand => {
            let seed = choose_seed(console);
            command.random = Some(Random::new(seed));
            command.seed = format!("KCONFIG_SEED=0x{seed:X}\n");
        }
        _ => {}
    }
    if file.is_some() {
        command.file = file;
    }
}

/// `KCONFIG_SEED`, else the time.
fn choose_seed(console: &Console<'_>) -> u32 {
    let given = console.variable("KCONFIG_SEED").filter(|seed| !seed.is_empty());
    given.as_deref().and_then(parse_seed).unwrap_or_else(|| {
        let (seconds, micros) = console.now();
        let product = seconds.wrapping_add(1).wrapping_mul(u64::from(micros) + 1);
        u32::try_from(product & 0xffff_ffff).unwrap_or_default()
    })
}

/// A whole number as `strtol` takes it: hexadecimal after `0x`, octal after `0`, cut to 32 bits.
fn parse_seed(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i128::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    let number = number.ok()?;
    let number = if negative { -number } else { number };
    let clamped = number.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    u32::try_from(clamped & 0xffff_ffff).ok()
}

fn print_usage(program: &str, console: &mut Console<'_>) -> Exit {
    console.print(&format!("Usage: {program} [options] kconfig_file\n"));
    console.print(USAGE);
    Exit(1)
}

const USAGE: &str = "
Generic options:
  -h, --help              Print this message and exit.
  -s, --silent            Do not print log.

Mode options:
  --listnewconfig         List new options
  --helpnewconfig         List new options and help text
  --oldaskconfig          Start a new configuration using a line-oriented program
  --oldconfig             Update a configuration using a provided .config as base
  --syncconfig            Similar to oldconfig but generates configuration in
                          include/{generated/,config/}
  --olddefconfig          Same as oldconfig but sets new symbols to their default value
  --defconfig <file>      New config with default defined in <file>
  --savedefconfig <file>  Save the minimal current configuration to <file>
  --allnoconfig           New config where all options are answered with no
  --allyesconfig          New config where all options are answered with yes
  --allmodconfig          New config where all options are answered with mod
  --alldefconfig          New config with all symbols set to default
  --randconfig            New config with random answer to all options
  --yes2modconfig         Change answers from yes to mod if possible
  --mod2yesconfig         Change answers from mod to yes if possible
  --mod2noconfig          Change answers from mod to no if possible
  (If none of the above is given, --oldaskconfig is the default)

Arguments:
  kconfig_file            Top-level Kconfig file.
";
