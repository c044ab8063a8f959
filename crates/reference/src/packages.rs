//! Fetches `linux-source-N` by name through apt, with a configuration of its own: the package lists
//! of three of Debian's suites, whatever this machine runs, signed by the distribution's keyring.
//! The system's own apt is not changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::series::Series;
use crate::{Missing, program};

/// Signs all of Debian's suites.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// 6.1 is in the first, 6.12 in the second, the newest in the last.
const SUITES: [&str; 3] = ["bookworm", "trixie", "sid"];
/// For machines whose own apt knows no mirror of Debian.
const MIRROR: &str = "http://deb.debian.org/debian";
const LIMIT: Duration = Duration::from_mins(10);

/// A downloaded package.
pub(crate) struct Package {
    pub(crate) file: PathBuf,
    /// `linux-source-6.1_6.1.176-1`
    pub(crate) key: String,
}

/// Downloads the package of this series into `into`; the lists are kept in `cache`.
pub(crate) fn fetch(series: Series, cache: &Path, into: &Path) -> Result<Package, Missing> {
    let get = program("apt-get")?;
    if !Path::new(KEYRING).exists() {
        return Err(Missing::new(format!("{KEYRING} is not here: the package debian-archive-keyring brings it")));
    }
    let mirror = mirror();
    let line = |suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
    let conf = configure(&cache.join("apt"), &SUITES.map(line).concat());
    let apt = |program: &Path, args: &[&str]| {
        let all = [&["-qq", "-c", conf.to_str().unwrap()], args].concat();
        output(program, &all, into)
    };
    // A suite that is gone must not block the others; the download shows whether the lists suffice.
    let updated = apt(&get, &["update"]);
    let name = match series {
        Series::V6_1 => "linux-source-6.1".to_owned(),
        Series::V6_12 => "linux-source-6.12".to_owned(),
        Series::Newest => {
            let found = apt(&program("apt-cache")?, &["search", "--names-only", r"^linux-source-[0-9]+\.[0-9]+$"])?;
            newest(&found).ok_or_else(|| {
                let why = updated.as_ref().err().map(ToString::to_string).unwrap_or_default();
                Missing::new(format!("no linux-source of 7.2 or later is in Debian's {}: {why}", SUITES[2]))
            })?
        }
    };
    apt(&get, &["download", &name]).map_err(|why| Missing::new(format!("{name} cannot be had: {why}")))?;
    let file = fs_err::read_dir(into).unwrap().map(|entry| entry.unwrap().path());
    let mut file = file.filter(|path| path.extension().is_some_and(|end| end == "deb"));
    let file = file.next().ok_or_else(|| Missing::new(format!("apt-get download {name} left no package")))?;
    let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
    let key = stem.rsplit_once('_').map_or(stem.clone(), |(key, _architecture)| key.to_owned());
    Ok(Package { file, key })
}

/// Downloads the upstream archive of a source package of Debian 12 into `into`.
pub(crate) fn fetch_source(name: &str, cache: &Path, into: &Path) -> Result<PathBuf, Missing> {
    let get = program("apt-get")?;
    if !Path::new(KEYRING).exists() {
        return Err(Missing::new(format!("{KEYRING} is not here: the package debian-archive-keyring brings it")));
    }
    let line = format!("deb-src [signed-by={KEYRING}] {} {} main\n", mirror(), SUITES[0]);
    let conf = configure(&cache.join("apt-src"), &line);
    let apt = |args: &[&str]| output(&get, &[&["-qq", "-c", conf.to_str().unwrap()], args].concat(), into);
    let updated = apt(&["update"]);
    apt(&["source", "--download-only", name]).map_err(|why| {
        let update = updated.as_ref().err().map(ToString::to_string).unwrap_or_default();
        Missing::new(format!("the sources of {name} cannot be had: {why} {update}"))
    })?;
    let files = fs_err::read_dir(into).unwrap().map(|entry| entry.unwrap().path());
    let mut archives = files.filter(|path| path.to_string_lossy().contains(".orig.tar."));
    archives.next().ok_or_else(|| Missing::new(format!("apt-get source {name} left no upstream archive")))
}

/// The package of the highest version, from lines of `apt-cache search`.
fn newest(lines: &str) -> Option<String> {
    let names = lines.lines().filter_map(|line| line.split_whitespace().next());
    let versions = names.filter_map(|name| Some((Series::version_in(name)?, name)));
    versions.filter(|(version, _)| *version >= (7, 2)).max().map(|(_, name)| name.to_owned())
}

/// Writes the configuration for these sources below `apt` and returns its path. What the system
/// says about proxies stays.
fn configure(apt: &Path, sources: &str) -> PathBuf {
    for dir in ["state/lists/partial", "cache/archives/partial"] {
        fs_err::create_dir_all(apt.join(dir)).unwrap();
    }
    fs_err::write(apt.join("sources.list"), sources).unwrap();
    let at = apt.display();
    let text = format!(
        "Dir::Etc::sourcelist \"{at}/sources.list\";\nDir::Etc::sourceparts \"-\";\nDir::State \"{at}/state\";\n\
         Dir::Cache \"{at}/cache\";\nAcquire::Languages \"none\";\nAcquire::Retries \"2\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\nAPT::Sandbox::User \"\";\n"
    );
    let conf = apt.join("apt.conf");
    fs_err::write(&conf, text).unwrap();
    conf
}

/// The mirror of Debian that this machine uses.
fn mirror() -> String {
    let targets = duct::cmd!("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages");
    let sites = targets.stderr_null().unchecked().read().unwrap_or_default();
    let debian = sites.lines().map(|site| site.trim_end_matches('/')).find(|site| site.ends_with("/debian"));
    debian.unwrap_or(MIRROR).to_owned()
}

fn output(program: &Path, args: &[&str], dir: &Path) -> Result<String, Missing> {
    let run = duct::cmd(program, args).dir(dir).stdin_null().stdout_capture().stderr_capture().unchecked();
    let handle = run.start().map_err(|error| Missing::new(error.to_string()))?;
    let Some(output) = handle.wait_timeout(LIMIT).unwrap() else {
        handle.kill().unwrap();
        return Err(Missing::new(format!("{} {} takes too long", program.display(), args.join(" "))));
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Missing::new(said.lines().find(|line| line.starts_with("E:")).unwrap_or(said.trim()).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_has_the_highest_number() {
        let lines = "linux-source-6.12 - x\nlinux-source-7.2 - x\nlinux-source-7.10 - x\nlinux-source-7.9 - x\n";
        assert_eq!(newest(lines).as_deref(), Some("linux-source-7.10"));
        assert_eq!(newest("linux-source-6.12 - x\n"), None);
    }
}
