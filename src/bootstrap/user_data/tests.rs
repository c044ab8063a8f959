//! Tests of user data: every format and role in readable form, quoting, limits, and that no secret
//! of the cluster is in any of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::format_push_string, reason = "a test may be slow and plain")]
#![expect(clippy::case_sensitive_file_extension_comparisons, reason = "the endings are our own")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::Value;
use sha2::Digest as _;

use super::super::{group_tokens, setting_tests};
use super::*;
use crate::artifacts::Lock;
use crate::cluster::SSH_KEY;
use crate::config::{Settings, TreeSource};
use crate::document;
use crate::http_server;
use crate::node::node_config::Content;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAbcdefghijklmnopqrstuvwxyz0123456789ABCDEF admin@desk";

pub(in crate::bootstrap) fn group(name: &str, role: Role) -> Group {
    let labels = BTreeMap::from([("disk".to_owned(), "fast".to_owned()), ("team".to_owned(), "a".to_owned())]);
    let kube_reserved = BTreeMap::from([("memory".to_owned(), "300Mi".to_owned())]);
    let taints = vec!["gpu=yes:NoSchedule".parse().unwrap()];
    let name_prefix = if role == Role::Worker { format!("{name}-") } else { String::new() };
    Group { name: name.into(), role, name_prefix, labels, taints, max_pods: Some(50), kube_reserved }
}

/// A cluster of a cloud with this form, in a directory of its own.
fn cluster(dir: &Path, form: UserDataFormat) -> Cluster {
    let source = TreeSource::embedded();
    let settings = Settings::defaults(&source).unwrap();
    let mut cluster = Cluster::open(&settings, source, dir).unwrap();
    cluster.settings.target = Target::of("gce");
    dir.clone_into(&mut cluster.work_dir);
    let user_data = &mut cluster.settings.user_data;
    user_data.pull = true;
    user_data.form = form;
    user_data.artifacts_url = "https://example.com/it's mine/100%/".into();
    user_data.token_lifetime = Duration::from_hours(2160);
    cluster.settings.access.user = "turnup".into();
    cluster.settings.control_plane.keeps_identity = true;
    cluster.store.create_dir("ssh").unwrap();
    cluster.store.write_file(format!("{SSH_KEY}.pub"), KEY.as_bytes(), 0o644).unwrap();
    cluster
}

fn add_part(cluster: &mut Cluster, name: &str, kind: UserDataKind, text: &str) {
    fs_err::write(cluster.work_dir.join(name), text).unwrap();
    let part = UserDataPart { name: name.into(), file: name.into(), kind, roles: Vec::new(), groups: Vec::new() };
    cluster.settings.user_data.parts.push(part);
}

fn render_for(cluster: &Cluster, group: &Group) -> Result<String> {
    let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
    let artifacts = ResolvedArtifacts::expected(&selection, &cluster.settings.sources, None, None);
    render(cluster, &artifacts, &image_facts(), group, JoinParams::placeholders(cluster)).map(|text| text.to_string())
}

fn unpack(text: &str) -> String {
    let bytes = STANDARD.decode(text.split_whitespace().collect::<String>()).unwrap();
    let mut plain = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut plain).unwrap();
    plain
}

/// The content of every file of ours by its path.
fn files_of(form: UserDataFormat, text: &str) -> BTreeMap<String, String> {
    let value = parse(form, text);
    let list = if form == UserDataFormat::CloudInit { &value["write_files"] } else { &value["storage"]["files"] };
    let content = |file: &Value| match form {
        UserDataFormat::CloudInit if file["encoding"] == "gz+b64" => unpack(file["content"].as_str().unwrap()),
        UserDataFormat::CloudInit => file["content"].as_str().unwrap().to_owned(),
        UserDataFormat::Ignition => {
            let source = file["contents"]["source"].as_str().unwrap();
            match source.strip_prefix("data:;base64,") {
                Some(packed) if file["contents"]["compression"] == "gzip" => unpack(packed),
                Some(plain) => String::from_utf8(STANDARD.decode(plain).unwrap()).unwrap(),
                None => source.strip_prefix("data:,").unwrap().replace("%0A", "\n"),
            }
        }
    };
    list.as_array().unwrap().iter().map(|file| (file["path"].as_str().unwrap().to_owned(), content(file))).collect()
}

/// The document as data; of a MIME message the part of ours.
fn parse(form: UserDataFormat, text: &str) -> Value {
    if form == UserDataFormat::Ignition {
        return serde_json::from_str(text).unwrap();
    }
    let at = text.find("#cloud-config\n").unwrap();
    let config = text[at..].trim_start_matches("#cloud-config\n").split("\n--turnup-").next().unwrap();
    serde_json::from_str(&unescape(config)).unwrap()
}

/// What YAML makes of its escapes, back in JSON's own letters.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain += &rest[..at];
        let kind = rest.as_bytes()[at + 1];
        let length = match kind {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            _ => 0,
        };
        let end = at + 2 + length;
        let code = u32::from_str_radix(&rest[at + 2..end], 16).unwrap_or(0);
        // JSON's own escapes stay what they are, those of control characters among them.
        if code < 0x20 {
            plain += &rest[at..end];
        } else {
            plain.push(char::from_u32(code).unwrap());
        }
        rest = &rest[end..];
    }
    plain + rest
}

/// The document with what differs from run to run replaced, and what is packed unpacked.
fn readable(cluster: &Cluster, form: UserDataFormat, group: &Group) -> String {
    let text = render_for(cluster, group).unwrap();
    let files = files_of(form, &text);
    let mut shown = serde_json::to_string_pretty(&parse(form, &text)).unwrap();
    for line in shown.clone().lines().filter(|line| line.contains("H4sI")) {
        shown = shown.replace(line.trim(), "(packed)");
    }
    for (path, content) in files {
        let content = match serde_json::from_str::<Value>(&content) {
            Ok(value) => serde_json::to_string_pretty(&value).unwrap(),
            Err(_) => content,
        };
        shown += &format!("\n--- {path}\n{content}");
    }
    // It follows from all the rest, turnup itself and the authority included.
    let template = shown.split_once("turnup.dev/template=").map(|(_, rest)| rest[..12].to_owned());
    let shown = template.map_or_else(|| shown.clone(), |template| shown.replace(&template, "TEMPLATE"));
    let authority = Pki::new(&cluster.store).text("ca", "crt").unwrap();
    let shown = shown.replace(&STANDARD.encode(&authority), "AUTHORITY");
    let shown = shown.replace(&authority.replace('\n', "\\n"), "AUTHORITY");
    shown.replace(cluster.version(), "VERSION").replace(&format!("size={}\n", cluster.size()), "size=SIZE\n")
}

#[test]
fn every_line_of_what_a_host_gets() {
    for form in [UserDataFormat::CloudInit, UserDataFormat::Ignition] {
        let dir = tempfile::tempdir().unwrap();
        let cluster = cluster(dir.path(), form);
        for (name, role) in [("pool", Role::Worker), ("masters", Role::ControlPlane)] {
            let shown = readable(&cluster, form, &group(name, role));
            insta::assert_snapshot!(format!("{form:?}_{}", role.name()), shown);
        }
    }
}

/// The host refuses a text that is not as its format says, and would try again for ever.
#[test]
fn a_host_of_every_role_reads_what_it_is_given() {
    for form in [UserDataFormat::CloudInit, UserDataFormat::Ignition] {
        let dir = tempfile::tempdir().unwrap();
        let mut cluster = cluster(dir.path(), form);
        cluster.settings.user_data.artifacts_url = "https://example.com/a".into();
        for (name, role) in [("pool", Role::Worker), ("control-plane", Role::ControlPlane)] {
            let text = render_for(&cluster, &group(name, role)).unwrap();
            let files = files_of(form, &text);
            let boot: BootConfig = document::parse(boot_config::FILE, &files[boot_config::FILE]).unwrap();
            assert_eq!(boot.node_config.role, role);
            let volume = files.get(boot_config::VOLUME_FILE).map(String::as_str);
            let expected = (role == Role::ControlPlane).then_some("@turnup:volume@\n");
            assert_eq!((volume, boot.identity_volume.is_some()), (expected, expected.is_some()));
        }
    }
}

#[test]
fn links_directories_and_bytes_are_in_what_a_host_gets() {
    let assets = serde_json::json!([
        {"name": "link", "path": "/etc/own", "link": "/srv/own/bytes"},
        {"name": "bytes", "path": "/srv/own/bytes", "base64": "/wA=", "owner_group": "adm"},
        {"name": "directory", "path": "/srv/own", "directory": true, "mode": "2750", "owner": "daemon"},
    ]);
    let mut shown = Vec::new();
    for form in [UserDataFormat::CloudInit, UserDataFormat::Ignition] {
        let dir = tempfile::tempdir().unwrap();
        let mut cluster = cluster(dir.path(), form);
        cluster.settings.assets.files = serde_json::from_value(assets.clone()).unwrap();
        let text = render_for(&cluster, &group("pool", Role::Worker)).unwrap();
        let boot: Value = serde_json::from_str(&files_of(form, &text)[boot_config::FILE]).unwrap();
        let files = boot["node_config"]["files"].as_array().unwrap().iter();
        let own = files.filter(|file| file["path"].as_str().unwrap().contains("/own"));
        shown.push(own.map(Value::to_string).collect::<Vec<_>>().join("\n"));
    }
    assert_eq!(shown[0], shown[1]);
    insta::assert_snapshot!(shown[0], @r#"
    {"path":"/srv/own","mode":1512,"owner":0,"user":"daemon","content":{"directory":{}}}
    {"path":"/srv/own/bytes","mode":288,"owner":0,"group":"adm","content":{"base64":"/wA="}}
    {"path":"/etc/own","mode":511,"owner":0,"content":{"symlink":"/srv/own/bytes"}}
    "#);
}

/// Every file of the cluster's directory that holds a secret, and the secrets in it, in each
/// spelling that a document could have.
fn secrets(cluster: &Cluster) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(cluster.store.path("pki")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs_err::read_to_string(&path).unwrap();
        if name.ends_with(".key") {
            let body: Vec<&str> = text.lines().filter(|line| !line.starts_with("-----")).collect();
            found.push((name.clone(), body[0].to_owned()));
            found.push((name, STANDARD.encode(&text)[..40].to_owned()));
        } else if name.starts_with("token-") {
            let value: Value = serde_json::from_str(&text).unwrap();
            let (_, secret) = value["tokens"][0]["token"].as_str().unwrap().split_once('.').unwrap();
            found.push((name, secret.to_owned()));
        }
    }
    found
}

#[test]
fn no_user_data_has_a_secret_but_a_workers_own_token_where_it_is_filled_in() {
    for form in [UserDataFormat::CloudInit, UserDataFormat::Ignition] {
        let dir = tempfile::tempdir().unwrap();
        let cluster = cluster(dir.path(), form);
        let pki = Pki::new(&cluster.store);
        cluster.store.create_dir("pki").unwrap();
        for authority in Authority::ALL {
            pki.ensure_authority(authority, "it").unwrap();
        }
        pki.ensure_service_account_key().unwrap();
        pki.ensure_encryption_key().unwrap();
        let groups = [group("pool", Role::Worker), group("other", Role::Worker), group("masters", Role::ControlPlane)];
        let token = |group: &Group| {
            let names = (group.name.as_str(), group.name_prefix.as_str());
            let life = cluster.settings.user_data.token_lifetime;
            group_tokens::ensure(&cluster.store, names, life, |_| Ok(())).unwrap().0.current().to_owned()
        };
        let tokens = [token(&groups[0]), token(&groups[1]), String::new()];
        let secrets = secrets(&cluster);
        assert!(secrets.len() >= 12, "five keys in two spellings and two tokens: {}", secrets.len());
        for (group, token) in groups.iter().zip(&tokens) {
            for (is_filled, token) in [(false, JOIN_TOKEN), (true, token)] {
                let artifacts = ResolvedArtifacts::expected(
                    &Lock::embedded().unwrap().select("1.36.3").unwrap(),
                    &cluster.settings.sources,
                    None,
                    None,
                );
                let join = JoinParams { api: ApiPlace::Host(API_HOST), token };
                let document = render(&cluster, &artifacts, &image_facts(), group, join).unwrap();
                let mut all = document.to_string() + &files_of(form, &document).into_values().collect::<String>();
                all += &all.replace("\\n", "\n");
                for (name, secret) in &secrets {
                    let is_its_own = is_filled && *name == format!("token-{}.json", group.name);
                    assert_eq!(all.contains(secret), is_its_own, "{name} in the user data of {}", group.name);
                }
                assert!(!all.contains("PRIVATE KEY"), "{}", group.name);
            }
        }
    }
}

#[test]
fn a_host_of_several_api_servers_reaches_them_by_its_own_balancer() {
    for form in [UserDataFormat::CloudInit, UserDataFormat::Ignition] {
        let dir = tempfile::tempdir().unwrap();
        let mut cluster = cluster(dir.path(), form);
        cluster.settings.user_data.artifacts_url = "https://example.com/a".into();
        cluster.settings.control_planes = 3;
        let text = render_for(&cluster, &group("pool", Role::Worker)).unwrap();
        assert_eq!(text.matches(API_SERVERS).count(), 1, "in plain, where what makes the hosts finds it");
        let files = files_of(form, &text);
        assert_eq!(files[boot_config::API_SERVERS_FILE], format!("{API_SERVERS}\n"));
        let whole = format!("{text}{files:?}");
        assert!(!files.contains_key(boot_config::API_FILE) && !whole.contains(API_HOST), "it needs no other place");
        let boot: BootConfig = document::parse(boot_config::FILE, &files[boot_config::FILE]).unwrap();
        assert!(boot.bootstrap_kubeconfig.unwrap().contains("https://127.0.0.1:3992"));
        let kubelet = boot.node_config.units.iter().find(|unit| unit.name == "kubelet.service").unwrap();
        assert!(kubelet.text.contains("turnup.dev/balancer=true"), "{}", kubelet.text);
        let units: Vec<&str> = boot.node_config.units.iter().map(|unit| unit.name.as_str()).collect();
        let at = |name: &str| units.iter().position(|unit| *unit == name);
        assert!(
            at("turnup-balancer.service") < at("kubelet.service") && at("turnup-balancer.service").is_some(),
            "{units:?}"
        );
        let file = boot.node_config.files.iter().find(|file| file.path == layout::API_SERVERS).unwrap();
        let open = document::render(layout::API_SERVERS, &ServerList::of_node_without_servers()).unwrap();
        assert_eq!(file.content, Content::Text(open));
    }
}

#[test]
fn a_machine_that_turnup_does_not_make_is_told_of_the_servers_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = cluster(dir.path(), UserDataFormat::Ignition);
    let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
    let artifacts = ResolvedArtifacts::expected(&selection, &cluster.settings.sources, None, None);
    let servers = "m1=192.0.2.1:6443,m2=192.0.2.2:6443";
    let join = JoinParams { api: ApiPlace::Balancer(servers), token: "abcdef.0123456789abcdef" };
    let document = render(&cluster, &artifacts, &image_facts(), &group("pool", Role::Worker), join).unwrap();
    let files = files_of(UserDataFormat::Ignition, &document);
    assert_eq!(files[boot_config::API_SERVERS_FILE], format!("{servers}\n"));
}

#[test]
fn parts_are_chosen_checked_and_kept_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = cluster(dir.path(), UserDataFormat::CloudInit);
    let script = "#!/bin/sh\necho 'it is' \"100%\" > /etc/mine\n";
    add_part(&mut cluster, "agent", UserDataKind::ShellScript, script);
    add_part(&mut cluster, "config", UserDataKind::CloudConfig, "#cloud-config\nruncmd: [[echo, hello]]\n");
    cluster.settings.user_data.parts[1].roles = vec!["control-plane".into()];
    let text = render_for(&cluster, &group("pool", Role::Worker)).unwrap();
    assert!(text.is_ascii());
    let packed = text.split("filename=\"part-001-agent.sh\"\n\n").nth(1).unwrap().split("\n--").next().unwrap();
    assert_eq!(unpack(packed), script);
    let foreign = script.replace("it is", "ü");
    fs_err::write(dir.path().join("agent"), &foreign).unwrap();
    let text_of_foreign = render_for(&cluster, &group("pool", Role::Worker)).unwrap();
    assert!(text_of_foreign.is_ascii() && text_of_foreign.contains(&STANDARD.encode(foreign)));
    assert!(!text.contains("part-002"), "the other one is for the control plane");
    assert!(render_for(&cluster, &group("masters", Role::ControlPlane)).unwrap().contains("part-002-config.yaml"));

    let refused = |cluster: &Cluster| render_for(cluster, &group("pool", Role::Worker)).unwrap_err().render();
    let mut said = Vec::new();
    for (name, kind, text) in [
        ("no-shebang", UserDataKind::ShellScript, "echo\n"),
        ("no-header", UserDataKind::CloudConfig, "runcmd: []\n"),
        ("other-form", UserDataKind::Ignition, "{}"),
    ] {
        cluster.settings.user_data.parts.clear();
        add_part(&mut cluster, name, kind, text);
        said.push(refused(&cluster));
    }
    cluster.settings.user_data.form = UserDataFormat::Ignition;
    cluster.settings.user_data.parts.clear();
    add_part(&mut cluster, "butane", UserDataKind::Ignition, "variant: fcos\n");
    said.push(refused(&cluster));
    cluster.settings.user_data.parts.clear();
    fs_err::write(dir.path().join("own.sh"), "echo\n").unwrap();
    cluster.settings.user_data.groups = vec![
        serde_json::from_str(r#"{"name": "pool", "role": "worker", "additional_user_data": ["own.sh"]}"#).unwrap(),
    ];
    said.push(refused(&cluster));
    cluster.settings.user_data.form = UserDataFormat::CloudInit;
    said.push(refused(&cluster));
    fs_err::write(dir.path().join("own.sh"), "#!/bin/sh\n").unwrap();
    let text = render_for(&cluster, &group("pool", Role::Worker)).unwrap();
    assert!(text.contains("part-001-own.sh"), "{text}");
    assert!(!render_for(&cluster, &group("other", Role::Worker)).unwrap().contains("own.sh"));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn what_a_cloud_does_not_take_is_refused_with_the_largest_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = cluster(dir.path(), UserDataFormat::CloudInit);
    // Random letters do not shrink.
    let mut bytes = vec![0_u8; 30_000];
    getrandom::fill(&mut bytes).unwrap();
    add_part(&mut cluster, "installer", UserDataKind::ShellScript, &format!("#!/bin/sh\n# {}\n", hex::encode(&bytes)));
    let workers = group("pool", Role::Worker);
    for (target, fits) in [("gce", true), ("azure", true), ("aws", false), ("local", true)] {
        cluster.settings.target = Target::of(target);
        let result = render_for(&cluster, &workers);
        assert_eq!(result.is_ok(), fits, "{target}");
        let Err(error) = result else { continue };
        assert!(error.evidence_lines()[0].starts_with("part installer (installer): "), "{}", error.render());
        assert!(error.message().ends_with("and aws takes 16384"), "{}", error.message());
    }
    cluster.settings.user_data.parts.clear();
    cluster.settings.target = Target::of("aws");
    for control_planes in [1, 3] {
        cluster.settings.control_planes = control_planes;
        let size = render_for(&cluster, &workers).unwrap().len();
        assert!(size < 13_650, "{size} bytes with no parts leave no room for those of people");
        cluster.settings.addons.cloud_controller = true;
        let size = render_for(&cluster, &workers).unwrap().len();
        assert!(size < 13_800, "{size} bytes with the provider ID");
        cluster.settings.addons.cloud_controller = false;
    }
    // The command by which kubelet proves who the machine is takes the place of the token.
    let dir = tempfile::tempdir().unwrap();
    let cluster = setting_tests::cluster(
        dir.path(),
        &[
            ("phase1.cloud_provider", "aws"),
            ("phase1.user_data.artifacts_url", "https://artifacts.example.com"),
            ("phase1.user_data.identity", "cloud"),
        ],
    );
    cluster.store.create_dir("ssh").unwrap();
    cluster.store.write_file(format!("{SSH_KEY}.pub"), KEY.as_bytes(), 0o644).unwrap();
    let text = render_for(&cluster, &group("workers", Role::Worker)).unwrap();
    assert!(text.len() < 13_600 && !text.contains("join-token"), "{} bytes", text.len());
}

proptest! {
    /// Whatever people call themselves and their things: the data that comes out is the data that
    /// went in.
    #[test]
    fn every_text_survives_in_both_forms(user in "\\PC{1,20}", key in ".{0,60}", host in "[ -~]{1,40}", name in any::<String>()) {
        for form in [UserDataFormat::CloudInit, UserDataFormat::Ignition] {
            let document = || UserDataDocument {
                write_files: vec![
                    WriteFile::packed("boot", boot_config::FILE, 0o600, Zeroizing::new(name.clone().into_bytes())),
                    WriteFile::plain("api", boot_config::API_FILE, 0o644, Zeroizing::new(host.clone().into_bytes())),
                ],
                login: Login { user: user.clone(), keys: vec![key.clone()] },
                parts: Vec::new(),
            };
            let text = match form {
                UserDataFormat::CloudInit => cloud_init::render(&document()).unwrap(),
                UserDataFormat::Ignition => ignition::render(&document()).unwrap(),
            };
            let value = parse(form, &text);
            let (users, keys) = match form {
                UserDataFormat::CloudInit => (&value["users"], "ssh_authorized_keys"),
                UserDataFormat::Ignition => (&value["passwd"]["users"], "sshAuthorizedKeys"),
            };
            prop_assert_eq!(users[0]["name"].as_str(), Some(user.as_str()));
            prop_assert_eq!(users[0][keys][0].as_str(), Some(key.as_str()));
            if form == UserDataFormat::CloudInit {
                prop_assert!(text.bytes().all(|byte| byte == b'\n' || (0x20..0x7f).contains(&byte)));
                let files = files_of(form, &text);
                prop_assert_eq!(&files[boot_config::FILE], &name);
                prop_assert_eq!(&files[boot_config::API_FILE], &host);
            }
        }
    }
}

/// A server that answers every request with these bytes, once or without end.
fn serve(bytes: &'static [u8], endless: bool) -> String {
    let url = http_server::serve(http_server::LOOPBACK, move |_, stream| {
        if endless { http_server::send_endless(stream) } else { http_server::send(stream, "200 OK", bytes) }
    });
    url + "/turnup"
}

/// A directory with links to these programs alone; none where one of them is not here.
fn programs(dir: &Path, names: &[&str]) -> Option<()> {
    fs_err::create_dir(dir).unwrap();
    for name in names {
        // A user's own wrappers of these programs need more than the program.
        let program = which::which_in(name, Some("/usr/bin:/bin"), "/").ok()?;
        std::os::unix::fs::symlink(program, dir.join(name)).unwrap();
    }
    Some(())
}

#[test]
fn a_host_gets_turnup_by_whatever_it_has_and_no_server_fills_its_disk() {
    const TURNUP: &[u8] = b"these are the bytes of turnup, and there are not many of them\n";
    let dir = tempfile::tempdir().unwrap();
    let cluster = cluster(dir.path(), UserDataFormat::Ignition);
    let text = render_for(&cluster, &group("pool", Role::Worker)).unwrap();
    let script = files_of(UserDataFormat::Ignition, &text).remove(boot_config::FETCH_FILE).unwrap();
    let line = |name: &str| script.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let sha256 = hex::encode(sha2::Sha256::digest(TURNUP));
    let mut tried = 0;
    for tool in ["curl", "wget", "python3"] {
        let bin = dir.path().join(tool);
        let plain = ["sh", "sha256sum", "dirname", "mkdir", "wc", "rm", "chmod", "sync", "mv"];
        if programs(&bin, &[&plain[..], &[tool]].concat()).is_none() {
            continue;
        }
        tried += 1;
        for (url, good) in [(serve(TURNUP, true), false), (serve(TURNUP, false), true)] {
            let place = dir.path().join(format!("{tool}-{good}/turnup"));
            let script = script
                .replace(&line("place="), &format!("place={}", place.display()))
                .replace(&line("sha256="), &format!("sha256={sha256}"))
                .replace(&line("size="), &format!("size={}", TURNUP.len()))
                .replace(&line("url="), &format!("url={url}"));
            let file = dir.path().join(format!("{tool}-{good}.sh"));
            fs_err::write(&file, script).unwrap();
            let run = crate::exec::Run::new(bin.join("sh")).arg(&file).dir(dir.path()).env("PATH", &bin);
            let ended = run.timeout(Duration::from_mins(2)).output();
            let left = || {
                fs_err::read_dir(place.parent().unwrap())
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    .collect::<Vec<_>>()
            };
            if good {
                assert!(ended.is_ok(), "{tool}: {:?}", ended.map_err(Error::from));
                assert_eq!(fs_err::read(&place).unwrap(), TURNUP, "{tool}");
            } else {
                let error = Error::from(ended.unwrap_err()).render();
                assert!(error.contains("sends more than the 62 bytes that turnup has"), "{tool}: {error}");
                assert_eq!(left(), [""; 0].map(std::path::PathBuf::from), "{tool}");
            }
        }
    }
    assert!(tried > 0, "neither curl nor wget nor python3 is here");
}

/// What a host of this group of workers is told, before its template has an id.
pub(in crate::bootstrap) fn boot_of_worker(cluster: &Cluster, artifacts: &ResolvedArtifacts, name: &str) -> BootConfig {
    boot_of(
        cluster,
        artifacts,
        &image_facts(),
        &group(name, Role::Worker),
        "authority",
        JoinParams::placeholders(cluster).api,
    )
    .unwrap()
}
