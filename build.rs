//! Rebuilds the program when a file appears in or vanishes from a directory that is embedded: the
//! macro alone sees only edits. And asks the linker for what the standard library looks for and a
//! static C library otherwise leaves out.
#![expect(clippy::disallowed_macros, reason = "a build script speaks to cargo on standard output")]

fn main() {
    for path in ["Kconfig", "phases", "templates", "cluster.lock.json"] {
        println!("cargo::rerun-if-changed={path}");
    }
    // Without it the standard library forks, and copies the page tables of all our memory, for each
    // child that gets a working directory: with a thousand hosts that is most of the time.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg=-Wl,-u,posix_spawn_file_actions_addchdir_np");
    }
}
