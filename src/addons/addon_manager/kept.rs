//! The manifests that the cluster keeps for the addon-manager: what `turnup addons` applied last,
//! a Secret for each addon and each set of the user's own, because these may hold secrets.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::bootstrap::Kubectl;
use crate::error::{Context as _, Error, Result};

use super::super::object::{HASH, MANAGER, SYSTEM, list_of};
use super::super::own::{NETWORK, OwnSet, config_map_name};
use super::super::render::Rendered;

/// The most that a Secret holds (`MaxSecretSize` of Kubernetes' `core/v1`), in bytes.
const LARGEST: usize = 1024 * 1024;
/// Which of the manifests comes first.
const ORDER: &str = "turnup.dev/order";
/// The key of the manifest, which is compressed, in its Secret.
const MANIFEST: &str = "manifest.yaml.gz";

/// A manifest as it is to be in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct KeptManifest {
    /// `coredns`, or `own-manifests`.
    pub(super) name: String,
    /// The sha256 by which it is known.
    pub(super) hash: String,
    pub(super) text: String,
}

impl KeptManifest {
    /// All manifests of a cluster in the order to apply them.
    pub(in super::super) fn all(addons: &[Rendered], sets: &[OwnSet]) -> Vec<Self> {
        let of_set = |set: &OwnSet| {
            let name = config_map_name(set.name).trim_start_matches("turnup-").to_owned();
            Self { name, hash: set.hash.clone(), text: set.text.clone() }
        };
        let of_addon =
            |addon: &Rendered| Self { name: addon.name.clone(), hash: addon.hash.clone(), text: addon.text.clone() };
        let (network, own): (Vec<&OwnSet>, Vec<&OwnSet>) =
            sets.iter().filter(|set| !set.objects.is_empty()).partition(|set| set.name == NETWORK);
        let network = network.into_iter().map(of_set);
        network.chain(addons.iter().map(of_addon)).chain(own.into_iter().map(of_set)).collect()
    }

    fn secret_name(&self) -> String {
        format!("turnup-addon-{}", self.name)
    }

    pub(super) fn secret(&self, order: usize) -> Result<Value> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(self.text.as_bytes()).context("cannot compress a manifest")?;
        let packed = packed.finish().context("cannot compress a manifest")?;
        if packed.len() > LARGEST {
            let message = format!("the manifests of {} are too large for the addon-manager", self.name);
            return Err(Error::config(message)
                .evidence(format!("compressed they are {} bytes, and a Secret holds {LARGEST}", packed.len()))
                .hint("turnup config set phase3.addon_manager=n"));
        }
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self.secret_name(),
                "namespace": SYSTEM,
                "labels": {"app.kubernetes.io/managed-by": "turnup", MANAGER: self.name},
                "annotations": {HASH: self.hash, ORDER: order.to_string()},
            },
            "type": "turnup.dev/manifest",
            "data": {MANIFEST: STANDARD.encode(packed)},
        }))
    }

    /// The manifest of a Secret, after its place in the order.
    fn parse(item: &Value) -> Result<(usize, Self)> {
        let metadata = &item["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&metadata["labels"][MANAGER]);
        let damaged = format!("the Secret {} holds no manifest: turnup addons writes it", text(&metadata["name"]));
        let packed = STANDARD.decode(text(&item["data"][MANIFEST])).context(damaged.clone())?;
        let mut manifest = String::new();
        GzDecoder::new(packed.as_slice()).read_to_string(&mut manifest).context(damaged)?;
        let order = metadata["annotations"][ORDER].as_str().and_then(|order| order.parse().ok()).unwrap_or(usize::MAX);
        Ok((order, Self { name, hash: text(&metadata["annotations"][HASH]), text: manifest }))
    }
}

/// The manifests that the cluster keeps, in the order to apply them.
pub(super) fn read(kubectl: &Kubectl) -> Result<Vec<KeptManifest>> {
    parse(&list(kubectl)?)
}

fn parse(list: &Value) -> Result<Vec<KeptManifest>> {
    let items = list["items"].as_array().into_iter().flatten();
    let mut kept = items.map(KeptManifest::parse).collect::<Result<Vec<_>>>()?;
    kept.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
    Ok(kept.into_iter().map(|(_, manifest)| manifest).collect())
}

/// Whether the cluster keeps exactly these.
pub(super) fn are_kept(kubectl: &Kubectl, manifests: &[KeptManifest]) -> Result<bool> {
    Ok(parse(&list(kubectl)?).is_ok_and(|kept| kept == manifests))
}

/// Has the cluster keep these, and no others.
pub(in super::super) fn keep(kubectl: &Kubectl, manifests: &[KeptManifest]) -> Result<()> {
    let secrets = manifests.iter().enumerate().map(|(order, manifest)| manifest.secret(order));
    let secrets = secrets.collect::<Result<Vec<_>>>()?;
    kubectl.apply(&list_of(&secrets))?;
    let names: Vec<String> = manifests.iter().map(KeptManifest::secret_name).collect();
    let found = list(kubectl)?;
    let found = found["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str());
    let others: Vec<&str> = found.filter(|name| !names.iter().any(|kept| kept == name)).collect();
    if others.is_empty() {
        return Ok(());
    }
    let namespace = format!("--namespace={SYSTEM}");
    let args = ["delete", "secrets", &namespace, "--ignore-not-found"];
    kubectl.run(&[&args[..], &others].concat()).map(drop)
}

fn list(kubectl: &Kubectl) -> Result<Value> {
    kubectl.get(&["secrets", &format!("--namespace={SYSTEM}"), &format!("--selector={MANAGER}")])
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;

    fn manifest(name: &str, text: &str) -> KeptManifest {
        KeptManifest { name: name.into(), hash: "0a1b".into(), text: text.into() }
    }

    #[test]
    fn a_manifest_comes_out_of_its_secret_as_it_went_in() {
        for text in ["", "kind: ConfigMap\n", "data: \"ü\"\n---\nkind: Secret\n"] {
            let kept = manifest("own-manifests", text);
            assert_eq!(KeptManifest::parse(&kept.secret(7).unwrap()).unwrap(), (7, kept));
        }
    }

    #[test]
    fn a_secret_that_was_changed_by_hand_is_named() {
        let mut secret = manifest("coredns", "kind: ConfigMap\n").secret(0).unwrap();
        for data in [json!({}), json!({MANIFEST: "%"}), json!({MANIFEST: STANDARD.encode("no gzip")})] {
            secret["data"] = data;
            let error = KeptManifest::parse(&secret).unwrap_err();
            assert!(error.message().contains("turnup-addon-coredns"), "{error:?}");
        }
    }

    #[test]
    fn what_no_secret_holds_is_refused_with_the_way_out() {
        // What does not repeat is not compressed.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
        };
        let text: String = (0..2 * LARGEST).map(|_| next()).collect();
        let error = manifest("own-manifests", &text).secret(0).unwrap_err();
        assert_eq!(error.next(), Some("turnup config set phase3.addon_manager=n"));
    }
}
