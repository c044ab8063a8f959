//! The user's own files and programs on a real host: written, run, changed and gone, and nothing of
//! them left on the host.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use turnup::artifacts::Lock;

use crate::cluster_reset::{assert_same, look, on_host, settle};
use crate::cluster_support::Site;
use crate::http_server::{send, serve};

const HOST: &str = "it-control-plane-0";
const SUBNET: &str = "10.123.20.0/24";
/// This machine, as the host sees it.
const SERVER: (&str, u16) = ("10.123.20.1", 8099);
const TOOL: &str = "#!/bin/sh\necho fetched >>/srv/agent\nexec sleep infinity\n";

/// A unit of the distribution that reads a file of ours.
const READER: &str = "systemd-journald.service";

fn files(motd: &str) -> Value {
    json!([
        {"name": "motd", "path": "/etc/motd", "content": motd, "mode": "0644"},
        {"name": "script", "path": "/usr/local/bin/count", "file": "count.sh", "mode": "0755"},
        {"name": "journal", "path": "/etc/systemd/journald.conf.d/own.conf", "file": format!("{motd}.conf"), "mode": "0644",
         "owner": "daemon", "restarts": [READER]},
        {"name": "tool", "path": "/usr/local/bin/agent", "url": format!("http://{}:{}/agent", SERVER.0, SERVER.1),
         "sha256": hex::encode(Sha256::digest(TOOL)), "mode": "0755", "restarts": ["turnup-hook-agent.service"]},
        {"name": "link", "path": "/etc/own.bytes", "link": "/srv/own/inner/bytes", "restarts": ["turnup-hook-linked.service"]},
        {"name": "bytes", "path": "/srv/own/inner/bytes", "base64": "/wA=", "mode": "0640", "owner_group": "adm"},
        {"name": "inner", "path": "/srv/own/inner", "directory": true, "mode": "2750", "owner": "daemon", "owner_group": "adm"},
        {"name": "outer", "path": "/srv/own", "directory": true},
        {"name": "there", "path": "/srv/there", "directory": true, "mode": "0711", "owner": "daemon",
         "restarts": ["turnup-hook-linked.service"]},
        {"name": "elsewhere", "path": "/etc/elsewhere", "content": "a worker's", "roles": ["worker"]},
    ])
}

fn hooks(first: &str) -> Value {
    json!([
        {"name": "late", "command": "systemctl is-active kubelet >>/srv/late", "after": ["kubelet.service"]},
        {"name": "once", "command": "count once", "run": "once", "before": ["containerd.service"], "requires": ["turnup-hook-first.service"]},
        {"name": "first", "command": first, "timeout": "30s"},
        {"name": "agent", "command": "exec /usr/local/bin/agent", "run": "always"},
        {"name": "linked", "command": "echo linked >>/srv/linked"},
        {"name": "own", "unit_file": "own.service"},
        {"name": "asleep", "command": "count asleep", "disabled": true},
    ])
}

fn configure(site: &Site, files: &Value, hooks: &Value) {
    let set = [format!("phase2.host.file_assets={files}"), format!("phase2.host.hooks={hooks}")];
    site.ok(&["config", "set", &set[0], &set[1]]);
}

#[test]
#[ignore = "some minutes: make test-settings"]
fn files_and_programs_of_ones_own_come_change_and_go() {
    let Some(site) = Site::of_cluster("assets", SUBNET, 0) else { return };
    let write = |name: &str, text: &str| fs_err::write(site.dir.join(name), text).unwrap();
    // Binding a port below 1024 needs the capability.
    site.ok(&["config", "set", "phase2.api_port=443", &format!("phase1.local.open_ports={}", SERVER.1)]);
    write("count.sh", "#!/bin/sh\necho \"$1 $(systemctl is-active containerd)\" >>/srv/count\n");
    write(
        "own.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/local/bin/count own\n[Install]\nWantedBy=multi-user.target\n",
    );
    write("Hello.conf", "[Journal]\nSystemMaxUse=20M\n");
    write("Changed.conf", "[Journal]\nSystemMaxUse=21M\n");
    site.ok(&["provision"]);
    settle(&site);
    on_host(&site, HOST, "echo before >/etc/motd; mkdir --mode=0755 /srv/there; echo theirs >/srv/there/file");
    on_host(&site, HOST, OTHER_RUNC);
    let before = look(&site, HOST);
    serve(SERVER, |_, stream| send(stream, "200 OK", TOOL.as_bytes()));
    what_turnup_writes_itself_is_refused(&site);
    what_fails_stops_the_host_and_says_so(&site);
    let ran = |script: &str| on_host(&site, HOST, script);
    configure(&site, &files("Hello"), &hooks("count first"));
    site.ok(&["up"]);
    assert_eq!(
        ran("cat /etc/motd; stat --format=%a:%U:%G /etc/systemd/journald.conf.d/own.conf"),
        "Hello\n644:daemon:daemon\n"
    );
    assert_eq!(
        ran("cat /srv/count"),
        "first inactive\nonce inactive\nown inactive\n",
        "before anything else, each after whom it needs"
    );
    assert_eq!(
        ran("cat /srv/late; cat /srv/agent; ls /etc/elsewhere 2>&1 || true"),
        "active\nfetched\nls: cannot access '/etc/elsewhere': No such file or directory\n"
    );
    pods_run_under_the_pinned_runc(&site);
    people_find_the_programs_of_the_node(&site);
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    site.ok(&["up"]);
    assert_eq!(ran("wc -l </srv/count").trim(), "3", "a second run starts nothing again");
    a_change_reaches_what_it_is_for(&site);
    links_and_directories_are_kept_as_they_are_to_be(&site);
    what_is_gone_is_put_back(&site);
    on_host(&site, HOST, "rm /srv/count /srv/late /srv/agent /srv/linked");
    site.ok(&["reset", HOST, "--yes"]);
    assert_same(&before, &look(&site, HOST), "the host after reset");
    site.ok(&["down", "--yes"]);
}

/// The host's own runc, first on the PATH of containerd itself. It only records that it was run.
const OTHER_RUNC: &str = "printf '#!/bin/sh\\ntouch /srv/other-runc\\nexit 1\\n' >/usr/local/sbin/runc; chmod 755 /usr/local/sbin/runc; \
    mkdir -p /etc/systemd/system/containerd.service.d; \
    printf '[Service]\\nEnvironment=PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/turnup/bin\\n' \
    >/etc/systemd/system/containerd.service.d/path.conf";

fn pods_run_under_the_pinned_runc(site: &Site) {
    let ran = |script: &str| on_host(site, HOST, script);
    let selection = Lock::embedded().unwrap().select("1.36.3").unwrap();
    let said = ran("/opt/turnup/bin/runc --version");
    assert_eq!(
        said.lines().next(),
        Some(format!("runc version {}", selection.binary("runc").unwrap().version).as_str())
    );
    assert!(said.contains("\nlibseccomp: "), "{said}");
    let environment = ran("tr '\\0' '\\n' </proc/$(systemctl show --property=MainPID --value containerd)/environ");
    assert!(environment.contains("PATH=/usr/local/sbin:"), "the other runc is not the first: {environment}");
    let image = &selection.image("agnhost").unwrap().image().unwrap().reference;
    let context = json!({"spec": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}}).to_string();
    site.kubectl(&["run", "confined", "--image", image, "--overrides", &context, "--", "pause"]);
    site.kubectl(&["wait", "--for=condition=Ready", "pod/confined", "--timeout=180s"]);
    // The filter is on, and no new one may be left out.
    assert_eq!(ran("grep '^Seccomp:' /proc/$(pgrep -f -n '^/agnhost pause')/status"), "Seccomp:\t2\n");
    assert_eq!(ran("ls /srv/other-runc 2>/dev/null || echo never"), "never\n", "another runc was run");
    site.kubectl(&["delete", "pod", "confined", "--now"]);
}

fn people_find_the_programs_of_the_node(site: &Site) {
    let ran = |script: &str| on_host(site, HOST, script);
    let found = ran("bash -lc 'command -v crictl ctr kubelet'");
    assert_eq!(found, "/opt/turnup/bin/crictl\n/opt/turnup/bin/ctr\n/opt/turnup/bin/kubelet\n");
    let images = ran("bash -lc 'ctr images list --quiet'");
    assert!(images.contains("turnup.local/agnhost:"), "in the namespace of the pods: {images}");
    let version = ran("bash -lc 'crictl version'");
    assert!(version.contains("RuntimeName:  containerd"), "crictl asks this node's containerd: {version}");
    assert!(ran("bash -lc 'crictl ps'").contains("kube-apiserver"), "crictl shows the pods' containers");
}

fn what_turnup_writes_itself_is_refused(site: &Site) {
    configure(site, &json!([{"name": "own", "path": "/etc/containerd/config.toml", "content": "a"}]), &json!([]));
    let refused = site.fails(3, &["up"]);
    assert!(
        refused.err.contains("phase2.host.file_assets: turnup writes /etc/containerd/config.toml itself"),
        "{refused}"
    );
}

fn what_fails_stops_the_host_and_says_so(site: &Site) {
    configure(site, &files("Hello"), &hooks("echo the disk is on fire; exit 7"));
    let failed = site.run(&["up"]);
    assert_eq!(failed.code, Some(1), "{failed}");
    for words in ["turnup-hook-first.service", "the disk is on fire"] {
        assert!(failed.err.contains(words), "{words}: {failed}");
    }
    assert_eq!(on_host(site, HOST, "systemctl is-active containerd kubelet || true"), "inactive\ninactive\n");
    on_host(site, HOST, "rm -f /srv/count /srv/agent");
}

fn a_change_reaches_what_it_is_for(site: &Site) {
    let started = || on_host(site, HOST, &format!("systemctl show --property=ActiveEnterTimestampMonotonic {READER}"));
    let before = started();
    configure(site, &files("Changed"), &hooks("count again"));
    let plan = site.ok(&["plan"]).out;
    for words in ["/etc/motd", "turnup-hook-first.service", READER] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    site.ok(&["up"]);
    assert_ne!(started(), before, "{READER} reads its file again");
    assert_eq!(
        on_host(site, HOST, "cat /etc/motd; tail -n 1 /srv/count; wc -l </srv/count"),
        "Changed\nagain active\n4\n"
    );
}

const SHOW: &str = "stat --format='%n %a %U:%G' /srv/own /srv/own/inner /srv/own/inner/bytes /srv/there; \
    readlink /etc/own.bytes; od -An -tx1 /etc/own.bytes";
const SHOWN: &str = "/srv/own 755 root:root\n/srv/own/inner 2750 daemon:adm\n/srv/own/inner/bytes 640 root:adm\n\
    /srv/there 711 daemon:daemon\n/srv/own/inner/bytes\n ff 00\n";

fn links_and_directories_are_kept_as_they_are_to_be(site: &Site) {
    let ran = |script: &str| on_host(site, HOST, script);
    assert_eq!(ran(SHOW), SHOWN);
    let linked = || ran("wc -l </srv/linked").trim().parse::<u32>().unwrap();
    let before = linked();
    // The agent would be first.
    ran("systemctl stop turnup-agent.service; ln -sfn /etc/passwd /etc/own.bytes; \
        chmod 777 /srv/own/inner; cp /srv/own/inner/bytes /srv/bytes; ln -sf /srv/bytes /srv/own/inner/bytes");
    let plan = site.ok(&["plan"]).out;
    for words in
        ["link /etc/own.bytes", "- a link to /etc/passwd", "directory /srv/own/inner", "- a link to /srv/bytes"]
    {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    site.ok(&["up"]);
    assert_eq!(ran(SHOW), SHOWN);
    assert_eq!(linked(), before + 1, "what waits for a link runs again");
    ran("rm /srv/bytes /etc/own.bytes; chmod 700 /srv/there; chown root: /srv/own/inner");
    let whole = format!(
        "for try in $(seq 90); do [ \"$({SHOW})\" = \"$(printf '{}')\" ] && exit; sleep 2; done; {SHOW}",
        SHOWN.trim_end().replace('\n', "\\n")
    );
    assert_eq!(ran(&whole), "", "the agent puts them right");
}

fn what_is_gone_is_put_back(site: &Site) {
    on_host(site, HOST, "echo theirs >/srv/own/theirs");
    configure(site, &json!([]), &json!([]));
    let plan = site.ok(&["plan"]).out;
    for words in [
        "turnup-hook-agent.service",
        "/usr/local/bin/agent",
        "-   directory /srv/own/inner",
        "~   directory /srv/there",
    ] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    assert!(!plan.contains("directory /srv/own\n"), "something of others is in it: {plan}");
    site.ok(&["up"]);
    assert_eq!(
        on_host(
            site,
            HOST,
            "ls /srv/own; stat --format=%a:%U /srv/own /srv/there; ls /srv/there; ls /etc/own.bytes || true"
        ),
        "theirs\n755:root\n755:root\nfile\n"
    );
    on_host(site, HOST, "rm /srv/own/theirs");
    let script = "cat /etc/motd; ls /usr/local/bin/agent /etc/systemd/system/turnup-hook-agent.service 2>/dev/null; systemctl is-active turnup-hook-agent || true";
    assert_eq!(on_host(site, HOST, script), "before\ninactive\n");
    assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do");
    // A file that appears in its place now is not turnup's.
    on_host(site, HOST, "echo mine >/etc/motd");
    site.ok(&["up"]);
    assert_eq!(on_host(site, HOST, "cat /etc/motd"), "mine\n");
    on_host(site, HOST, "echo before >/etc/motd");
}
