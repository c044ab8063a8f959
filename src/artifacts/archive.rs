//! An archive of images that is the user's own: its bytes and the names of its images.
//!
//! What is read is what `docker save`, `skopeo copy … docker-archive:` and `oci-archive:` write.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Digest;
use crate::{Context as _, Error, Result};

/// Lists of images are small.
const LARGEST_LIST: u64 = 4 << 20;

/// An archive of images for every node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageArchive {
    /// The sha256 of its bytes.
    pub sha256: Digest,
    /// How many bytes it has.
    pub size: u64,
    /// Its images as containerd calls them: `docker.io/library/app:1`; at least one.
    pub references: Vec<String>,
}

impl ImageArchive {
    /// Reads an archive; `setting` is for messages.
    ///
    /// # Errors
    /// The file is not there, no archive of images, compressed, or has an image without a name.
    pub fn read(setting: &str, path: &Path) -> Result<Self> {
        let shown = path.display();
        let hint = "write it with: docker save --output FILE IMAGE:TAG";
        let wrong = |why: &str| Error::config(format!("{setting}: {shown}: {why}")).hint(hint);
        let lists = read_lists(path).map_err(|error| wrong("it is no tar file of images").source(error))?;
        let mut references = BTreeSet::new();
        for list in &lists {
            references.extend(names(list));
        }
        if references.is_empty() {
            return Err(wrong("it has no image with a name"));
        }
        let size = fs_err::metadata(path)?.len();
        Ok(Self { sha256: Digest::of_file(path)?, size, references: references.into_iter().collect() })
    }
}

/// `manifest.json` of Docker and `index.json` of OCI, as far as they are there.
fn read_lists(path: &Path) -> Result<Vec<Value>> {
    let mut archive = tar::Archive::new(fs_err::File::open(path)?);
    let mut lists = Vec::new();
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if ["manifest.json", "index.json"].contains(&name.trim_start_matches("./")) {
            let mut text = Vec::new();
            entry.take(LARGEST_LIST).read_to_end(&mut text)?;
            lists.push(serde_json::from_slice(&text).context(format!("{name} in it is no JSON"))?);
        }
    }
    Ok(lists)
}

/// The names in one of the lists.
fn names(list: &Value) -> Vec<String> {
    let of_docker = list.as_array().into_iter().flatten();
    let tags = of_docker.flat_map(|image| image["RepoTags"].as_array().into_iter().flatten());
    let of_oci = list["manifests"].as_array().into_iter().flatten();
    let annotated = of_oci.map(|manifest| &manifest["annotations"]["io.containerd.image.name"]);
    tags.chain(annotated).filter_map(Value::as_str).map(in_full).collect()
}

/// As containerd completes what Docker leaves out.
fn in_full(name: &str) -> String {
    let is_host = |part: &str| part.contains(['.', ':']) || part == "localhost";
    match name.split_once('/') {
        Some((first, _)) if is_host(first) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn read(name: &str, text: &str) -> Result<ImageArchive> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.tar");
        let mut archive = tar::Builder::new(fs_err::File::create(&path).unwrap());
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
        archive.into_inner().unwrap();
        ImageArchive::read("phase2.artifacts.preload_images", &path)
    }

    #[test]
    fn images_are_called_as_containerd_calls_them() {
        let tags = |text: &str| read("manifest.json", text).unwrap().references;
        assert_eq!(
            tags(r#"[{"RepoTags": ["app:1", "team/app:2", "registry.example.com:5000/app:3", "localhost/app:4"]}]"#),
            ["docker.io/library/app:1", "docker.io/team/app:2", "localhost/app:4", "registry.example.com:5000/app:3"]
        );
        let index = r#"{"manifests": [{"annotations": {"io.containerd.image.name": "docker.io/library/app:1"}}]}"#;
        assert_eq!(read("./index.json", index).unwrap().references, ["docker.io/library/app:1"]);
    }

    #[test]
    fn what_has_no_named_image_is_refused() {
        for (name, text) in [("manifest.json", r#"[{"RepoTags": null}]"#), ("other", "[]")] {
            let error = read(name, text).unwrap_err();
            assert!(error.message().contains("it has no image with a name"), "{}", error.message());
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.tar.gz");
        fs_err::write(&path, [0x1f, 0x8b, 8, 0].repeat(600)).unwrap();
        let error = ImageArchive::read("phase2.artifacts.preload_images", &path).unwrap_err();
        assert!(error.message().contains("no tar file of images"), "{}", error.message());
    }
}
