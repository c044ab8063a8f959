//! Rebuilds the program when a file appears in or vanishes from a directory that is embedded: the macro alone sees only edits.
#![expect(clippy::disallowed_macros, reason = "a build script speaks to cargo on standard output")]

fn main() {
    for path in ["Kconfig", "phases", "templates", "cluster.lock.json"] {
        println!("cargo::rerun-if-changed={path}");
    }
}
