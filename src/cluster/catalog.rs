//! The addons that turnup brings along, as `templates/addons/<addon>/addon.toml` describes them:
//! what there is, in which order, and for which Kubernetes. What is rendered of them and applied
//! is the matter of `addons`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{AddonSettings, CLOUD_CONTROLLER};
use crate::config::TreeSource;
use crate::error::{Error, Result};

const DIR: &str = "templates/addons";
/// The description of an addon, beside its manifests.
const FILE: &str = "addon.toml";

/// An addon; its manifests are the other files of the directory of its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addon {
    /// Its name: that of its directory, and of its main object.
    pub name: String,
    /// What it is for, in a few words.
    pub summary: String,
    /// The setting that switches it on: a bool of phase 3.
    pub switch: String,
    /// The image that it runs, which all nodes get or pull; its version is the addon's. None for
    /// objects that no program of their own stands behind.
    pub image: Option<String>,
    /// Further images that it runs.
    #[serde(default)]
    pub images: Vec<String>,
    /// The one target that it is for, as `phase1.cloud_provider` names it; none is for all.
    pub target: Option<String>,
    /// The version of an addon without an image.
    pub version: Option<String>,
    /// The kind of its main object, which records the version; a `DaemonSet` or a `Deployment` is
    /// waited for.
    pub main: String,
    /// The addons that are applied before it, where they are on.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The first minor version of Kubernetes that it is for: `1.35`.
    pub first_kubernetes: Minor,
    /// The last one.
    pub last_kubernetes: Minor,
}

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Minor(u32, u32);

impl TryFrom<String> for Minor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::of(&text).filter(|_| text.matches('.').count() == 1).ok_or_else(|| format!("`{text}` is no MAJOR.MINOR"))
    }
}

impl std::fmt::Display for Minor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Minor {
    /// That of a version such as `1.36.3`.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        let mut parts = version.split('.').map(|part| part.parse().ok());
        Some(Self(parts.next()??, parts.next()??))
    }
}

impl Addon {
    /// All addons of the tree, each after those that it needs, and otherwise by name.
    ///
    /// # Errors
    ///
    /// A description that is missing, or says what is not known; addons that need each other.
    pub fn all(source: &TreeSource) -> Result<Vec<Self>> {
        let mut found = BTreeMap::new();
        for dir in directories(source) {
            let file = format!("{DIR}/{dir}/{FILE}");
            if source.files(&file).is_empty() {
                let error = Error::config(format!("{DIR}/{dir} has no {FILE}"));
                return Err(error.hint("describe the addon: CONTRIBUTING.md, \"Add an addon\""));
            }
            let addon = source.parse(&file, |text| {
                toml::from_str::<Self>(text).map_err(|error| Error::config(format!("{file}: {}", error.message())))
            })?;
            if addon.name != dir {
                return Err(Error::config(format!("{file}: its name is {}, and its directory is {dir}", addon.name)));
            }
            if addon.image.is_some() == addon.version.is_some() {
                let why = "it has one of two: an image, which has the version, or a version";
                return Err(Error::config(format!("{file}: {why}")));
            }
            found.insert(dir, Self::clone(&addon));
        }
        sort(found)
    }

    /// The cloud controller manager of the cluster's target; none where there is none.
    ///
    /// # Errors
    ///
    /// As [`Self::all`].
    pub fn find_cloud_controller(source: &TreeSource, settings: &AddonSettings) -> Result<Option<Self>> {
        let mut all = Self::all(source)?.into_iter();
        Ok(all.find(|addon| addon.switch == CLOUD_CONTROLLER && addon.is_for_target(settings)))
    }

    /// The files of its manifests, sorted.
    #[must_use]
    pub fn manifests(&self, source: &TreeSource) -> Vec<String> {
        let files = source.files(&format!("{DIR}/{}/", self.name)).into_iter();
        files.filter(|file| !file.ends_with(&format!("/{FILE}"))).collect()
    }

    /// The images that it runs.
    pub fn all_images(&self) -> impl Iterator<Item = &str> {
        self.image.iter().chain(&self.images).map(String::as_str)
    }

    /// Whether it is for the target of the cluster.
    #[must_use]
    pub fn is_for_target(&self, settings: &AddonSettings) -> bool {
        self.target.as_ref().is_none_or(|target| *target == settings.target)
    }

    /// Whether it is switched on, and for the target of the cluster.
    #[must_use]
    pub fn is_on(&self, settings: &AddonSettings) -> bool {
        self.is_for_target(settings) && self.find_switch(settings) == Some(true)
    }

    fn find_switch(&self, settings: &AddonSettings) -> Option<bool> {
        let name = self.switch.strip_prefix("phase3.")?;
        match settings.others.get(name) {
            Some(value) => value.as_bool(),
            None => serde_json::to_value(settings).ok()?.get(name)?.as_bool(),
        }
    }

    /// The same; a switch that is none would leave the addon out without a word.
    fn require_switch(&self, settings: &AddonSettings) -> Result<bool> {
        let missing = || {
            Error::config(format!("{DIR}/{}/{FILE}: its switch {} is no bool of phase 3", self.name, self.switch))
                .hint(format!("define it in phases/addons/{}/Kconfig", self.name))
        };
        self.find_switch(settings).ok_or_else(missing)
    }

    /// Why it is not for this Kubernetes; nothing when it is.
    #[must_use]
    pub fn skew(&self, kubernetes: &str) -> Option<String> {
        let minor = Minor::of(kubernetes)?;
        let fits = (self.first_kubernetes..=self.last_kubernetes).contains(&minor);
        let (first, last) = (self.first_kubernetes, self.last_kubernetes);
        (!fits).then(|| format!("it is for Kubernetes {first} to {last}, not for {kubernetes}"))
    }

    /// Refuses addons that are on and not for this Kubernetes.
    pub(super) fn require_all_fit(source: &TreeSource, settings: &AddonSettings, kubernetes: &str) -> Result<()> {
        for addon in Self::all(source)? {
            let is_on = addon.require_switch(settings)? && addon.is_on(settings);
            if let Some(why) = addon.skew(kubernetes).filter(|_| is_on) {
                let message = format!("{}: the addon {}: {why}", addon.switch, addon.name);
                let error = Error::config(message).evidence(format!("{DIR}/{}/{FILE} says so", addon.name));
                return Err(error.hint(format!(
                    "turnup config set {}=n, or another version: turnup config explain phase2.kubernetes_version",
                    addon.switch
                )));
            }
        }
        Ok(())
    }
}

fn directories(source: &TreeSource) -> BTreeSet<String> {
    let files = source.files(&format!("{DIR}/")).into_iter();
    files
        .filter_map(|file| Some(file.strip_prefix(DIR)?.trim_start_matches('/').split_once('/')?.0.to_owned()))
        .collect()
}

fn sort(mut found: BTreeMap<String, Addon>) -> Result<Vec<Addon>> {
    let unknown = found.values().find_map(|addon| {
        let need = addon.needs.iter().find(|need| !found.contains_key(*need))?;
        Some(format!("{DIR}/{}/{FILE}: it needs {need}, which is no addon", addon.name))
    });
    if let Some(message) = unknown {
        return Err(Error::config(message));
    }
    let mut sorted: Vec<Addon> = Vec::new();
    while !found.is_empty() {
        let is_free = |addon: &&Addon| addon.needs.iter().all(|need| sorted.iter().any(|placed| placed.name == *need));
        let Some(name) = found.values().find(is_free).map(|addon| addon.name.clone()) else {
            let names: Vec<&str> = found.keys().map(String::as_str).collect();
            return Err(Error::config(format!("{DIR}: the addons {} need each other", names.join(", "))));
        };
        sorted.extend(found.remove(&name));
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    const GOOD: &str = "name = \"a\"\nsummary = \"s\"\nswitch = \"phase3.dns\"\nimage = \"coredns\"\nmain = \"Deployment\"\n\
        first_kubernetes = \"1.35\"\nlast_kubernetes = \"1.36\"\n";

    fn all(addons: &[(&str, &str)]) -> Result<Vec<Addon>> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("Kconfig"), "").unwrap();
        fs_err::create_dir(dir.path().join("phases")).unwrap();
        for (name, text) in addons {
            fs_err::create_dir_all(dir.path().join(format!("templates/addons/{name}"))).unwrap();
            fs_err::write(dir.path().join(format!("templates/addons/{name}/{name}.yaml")), "").unwrap();
            if !text.is_empty() {
                fs_err::write(dir.path().join(format!("templates/addons/{name}/addon.toml")), text).unwrap();
            }
        }
        Addon::all(&TreeSource::find(dir.path()))
    }

    #[test]
    fn our_addons_come_after_those_that_they_need() {
        let source = TreeSource::embedded();
        let names: Vec<String> = Addon::all(&source).unwrap().into_iter().map(|addon| addon.name).collect();
        assert_eq!(
            names,
            [
                "aws-cloud-controller-manager",
                "flannel",
                "cluster-autoscaler",
                "gateway-api",
                "gcp-cloud-controller-manager",
                "kube-network-policies",
                "kube-proxy",
                "cert-manager",
                "coredns",
                "headlamp",
                "kube-state-metrics",
                "limit-range",
                "local-path-provisioner",
                "log-shipping",
                "metrics-server",
                "node-exporter",
                "snapshot-controller",
                "aws-ebs-csi-driver",
                "gcp-compute-persistent-disk-csi-driver",
                "traefik"
            ]
        );
        assert_eq!(Addon::all(&source).unwrap()[8].manifests(&source), ["templates/addons/coredns/coredns.yaml"]);
        let needy =
            |name: &str, needs: &str| format!("{}needs = [{needs}]\n", GOOD.replace("\"a\"", &format!("\"{name}\"")));
        let names = |addons: &[(&str, &str)]| -> Vec<String> {
            all(addons).unwrap().into_iter().map(|addon| addon.name).collect()
        };
        assert_eq!(
            names(&[("a", &needy("a", "\"c\"")), ("b", &needy("b", "")), ("c", &needy("c", "\"b\""))]),
            ["b", "c", "a"]
        );
        let circle = all(&[("a", &needy("a", "\"b\"")), ("b", &needy("b", "\"a\""))]).unwrap_err();
        assert_eq!(circle.message(), "templates/addons: the addons a, b need each other");
    }

    #[test]
    fn each_image_of_an_addon_is_pinned_and_each_pinned_one_is_an_addons() {
        let lock = crate::artifacts::Lock::embedded().unwrap();
        let addons = Addon::all(&TreeSource::embedded()).unwrap();
        for version in lock.versions() {
            let selection = lock.select(version).unwrap();
            let unknown = |image: &&str| selection.image_version(image).is_none();
            for addon in &addons {
                assert_eq!(addon.all_images().find(unknown), None, "{} for {version}", addon.name);
            }
        }
        let is_used = |image: &&String| addons.iter().any(|addon| addon.all_images().any(|it| it == *image));
        assert_eq!(lock.registry_images.keys().find(|image| !is_used(image)), None);
    }

    #[test]
    fn an_addon_of_another_target_is_off() {
        let addon = &all(&[("a", &format!("{GOOD}target = \"aws\"\n"))]).unwrap()[0];
        let mut settings = crate::config::Settings::defaults(&TreeSource::embedded()).unwrap();
        assert!(!addon.is_on(&AddonSettings::read(&settings).unwrap()));
        settings.set("phase1.cloud_provider", "aws").unwrap();
        assert!(addon.is_on(&AddonSettings::read(&settings).unwrap()));
    }

    #[test]
    fn a_description_that_is_missing_or_wrong_is_refused() {
        for (text, why) in [
            ("", "templates/addons/a has no addon.toml"),
            (&*GOOD.replace("\"a\"", "\"b\""), "templates/addons/a/addon.toml: its name is b, and its directory is a"),
            (&*format!("{GOOD}needs = [\"x\"]\n"), "templates/addons/a/addon.toml: it needs x, which is no addon"),
            (&*GOOD.replace("1.36", "1"), "templates/addons/a/addon.toml: `1` is no MAJOR.MINOR"),
            (
                &*format!("{GOOD}version = \"1\"\n"),
                "templates/addons/a/addon.toml: it has one of two: an image, which has the version, or a version",
            ),
            (&*format!("{GOOD}wait = 1\n"), "templates/addons/a/addon.toml: unknown field `wait`"),
        ] {
            let error = all(&[("a", text)]).unwrap_err();
            assert!(error.message().starts_with(why), "{}", error.message());
        }
    }

    #[test]
    fn an_addon_for_another_kubernetes_is_refused_while_it_is_on() {
        let addon = &all(&[("a", GOOD)]).unwrap()[0];
        assert_eq!(addon.skew("1.36.3"), None);
        assert_eq!(addon.skew("1.37.0").as_deref(), Some("it is for Kubernetes 1.35 to 1.36, not for 1.37.0"));
        let mut settings = crate::config::Settings::defaults(&TreeSource::embedded()).unwrap();
        let read = |settings: &crate::config::Settings| AddonSettings::read(settings).unwrap();
        let require = |on: &AddonSettings| Addon::require_all_fit(&TreeSource::embedded(), on, "1.99.0");
        let error = require(&read(&settings)).unwrap_err();
        assert!(
            error.message().starts_with("phase3.cni: the addon flannel: it is for Kubernetes 1.35 to "),
            "{}",
            error.message()
        );
        settings.set_all(&[("phase3.cni", "n"), ("phase3.kube_proxy", "n"), ("phase3.dns", "n")]).unwrap();
        require(&read(&settings)).unwrap();
    }

    #[test]
    fn a_switch_is_any_bool_of_phase_3() {
        let settings =
            AddonSettings::read(&crate::config::Settings::defaults(&TreeSource::embedded()).unwrap()).unwrap();
        let switched_by = |switch: &str| all(&[("a", &GOOD.replace("phase3.dns", switch))]).unwrap().remove(0);
        assert!(switched_by("phase3.dns").is_on(&settings));
        // No field of the type: its own templates alone read it.
        let other = switched_by("phase3.metrics_server");
        assert!(!other.is_on(&settings) && other.require_switch(&settings).is_ok());
        let error = switched_by("phase3.hello").require_switch(&settings).unwrap_err().render();
        assert!(
            error.contains("templates/addons/a/addon.toml: its switch phase3.hello is no bool of phase 3"),
            "{error}"
        );
        assert!(switched_by("phase3.dns_replicas").require_switch(&settings).is_err(), "a number");
    }
}
