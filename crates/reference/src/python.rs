//! The Python packages that tests call: pytest, which the kernel's own suites are written for,
//! kconfiglib, a validator of JSON Schema that is not ours, and moto. From the package index, by
//! name and version, into a directory of their own in the cache.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::Making;
use crate::{Missing, install, program};

/// The versions that results were compared with.
const PACKAGES: [&str; 3] = ["pytest==8.4.2", "kconfiglib==14.1.0", "jsonschema==4.25.1"];
/// An emulator of Amazon's APIs, which only a few tests need.
const MOTO: [&str; 1] = ["moto[server]==5.2.5"];
const LIMIT: Duration = Duration::from_mins(5);

/// A Python that knows these packages.
#[derive(Clone, Debug)]
pub struct Python {
    program: PathBuf,
    packages: PathBuf,
}

impl Python {
    /// From the cache, or installed into it.
    pub fn get() -> Result<Self, Missing> {
        Self::with(&PACKAGES)
    }

    /// The same with moto: `python -m moto.server`.
    pub fn with_moto() -> Result<Self, Missing> {
        Self::with(&MOTO)
    }

    fn with(named: &[&str]) -> Result<Self, Missing> {
        let program = program("python3")?;
        let packages = Making::begin()?.directory(&format!("python/{}", named.join("+")), |made| {
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--target"];
            let args = [&pip[..], &[made.to_str().unwrap()], named].concat();
            install("pip", &program, &args, LIMIT, &named.join(" "))
        })?;
        // What is called python3 may be a script that looks for one, which has no part in what is
        // measured.
        let itself = duct::cmd!(&program, "-c", "import sys; print(sys.executable)").read();
        let program = itself.map(PathBuf::from).map_err(|error| Missing::new(format!("python3: {error}")))?;
        Ok(Self { program, packages })
    }

    /// The interpreter.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where the packages are, for PYTHONPATH.
    #[must_use]
    pub fn packages(&self) -> &Path {
        &self.packages
    }
}
