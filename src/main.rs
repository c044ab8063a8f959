//! The binary: everything is in the library; this file only hands the exit code to the system.

fn main() -> std::process::ExitCode {
    turnup::cli::main()
}
