//! Log shipping on real hosts: what pods write arrives with its names, whole and once, also when
//! the server refuses it for a while and collectors are killed; credentials stay in their Secret.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::cluster_addons::{agnhost, apply};
use crate::cluster_reset::on_host;
use crate::cluster_support::{Site, say};
use crate::http_server::{self, Request, send};

const ADDRESS: &str = "10.125.33.1";
const PORT: u16 = 8095;
const SYSLOG_PORT: u16 = 8094;
const HOSTS: [&str; 2] = ["it-control-plane-0", "it-worker-0"];
/// Only what hangs takes as long: a collector waits half a minute at most before it tries again.
const SOON: Duration = Duration::from_mins(3);
const SYSTEM: &str = "--namespace=kube-system";
const TOKEN: &str = "hunter2-4d0c61f2a9b8";
const NEXT_TOKEN: &str = "hunter3-97ae55c01d34";
const STATE: &str = "/var/lib/turnup-log-shipping";
/// The processes of collectors on a host.
const COLLECTORS: &str = "for p in /proc/[0-9]*; do grep -qsx otel-collector $p/comm && echo ${p#/proc/}; done";

/// One line that arrived.
#[derive(Clone, Debug)]
struct Line {
    text: String,
    /// Attributes of what it is from.
    from: BTreeMap<String, String>,
    token: String,
}

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    /// It takes the lines, and says so too late.
    Late,
    Status(&'static str),
}

struct Received {
    answer: Answer,
    lines: Vec<Line>,
    /// Requests that were not taken.
    refused: usize,
    /// Bodies of the other encoding.
    bodies: Vec<Vec<u8>>,
}

/// The server that logs are sent to, on the bridge of the hosts.
#[derive(Clone)]
struct Sink(Arc<Mutex<Received>>);

impl Sink {
    fn serve() -> Self {
        let empty = Received { answer: Answer::Yes, lines: vec![], refused: 0, bodies: vec![] };
        let sink = Self(Arc::new(Mutex::new(empty)));
        let served = sink.clone();
        http_server::serve((ADDRESS, PORT), move |request, stream| served.take(&request, stream));
        sink
    }

    fn take(&self, request: &Request, stream: &mut TcpStream) -> io::Result<()> {
        let answer = {
            let mut received = self.0.lock().unwrap();
            match received.answer {
                Answer::Status(status) => {
                    received.refused += 1;
                    return send(stream, status, b"");
                }
                answer => {
                    received.note(request);
                    answer
                }
            }
        };
        if answer == Answer::Late {
            std::thread::sleep(Duration::from_secs(20));
        }
        send(stream, "200 OK", b"{}")
    }

    fn answer(&self, answer: Answer) {
        let mut received = self.0.lock().unwrap();
        (received.answer, received.refused) = (answer, 0);
    }

    fn wait(&self, what: &str, is_there: impl Fn(&Received) -> bool) {
        let start = Instant::now();
        while !is_there(&self.0.lock().unwrap()) {
            assert!(start.elapsed() < SOON, "{what} did not come; {:#?}", self.last());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn wait_for_refusal(&self) {
        self.wait("a request", |received| received.refused > 0);
    }

    fn last(&self) -> Vec<Line> {
        let lines = &self.0.lock().unwrap().lines;
        lines
            .iter()
            .rev()
            .take(5)
            .map(|line| Line { text: line.text.chars().take(200).collect(), ..line.clone() })
            .collect()
    }

    /// All lines of a pod of the namespace `default`.
    fn of_pod(&self, pod: &str) -> Vec<Line> {
        let received = self.0.lock().unwrap();
        received.lines.iter().filter(|line| line.is_of("k8s.pod.name", pod)).cloned().collect()
    }

    /// Waits for so many different lines of a pod; how often each has come.
    fn counts(&self, pod: &str, wanted: usize) -> BTreeMap<String, usize> {
        let counts = || {
            let mut counts = BTreeMap::new();
            for line in self.of_pod(pod) {
                *counts.entry(line.text).or_insert(0) += 1;
            }
            counts
        };
        self.wait(&format!("{wanted} lines of {pod}"), |received| {
            let texts: BTreeSet<&str> =
                received.lines.iter().filter(|line| line.is_of("k8s.pod.name", pod)).map(|line| &*line.text).collect();
            texts.len() >= wanted
        });
        counts()
    }
}

impl Received {
    fn note(&mut self, request: &Request) {
        assert_eq!(request.path, "/v1/logs");
        let mut body = Vec::new();
        match request.headers.get("content-encoding").map(String::as_str) {
            Some("gzip") => drop(GzDecoder::new(&*request.body).read_to_end(&mut body).unwrap()),
            _ => body.clone_from(&request.body),
        }
        let token = request.headers.get("authorization").cloned().unwrap_or_default();
        match request.headers.get("content-type").map(String::as_str) {
            Some("application/json") => self.lines.extend(lines(&serde_json::from_slice(&body).unwrap(), &token)),
            Some("application/x-protobuf") => self.bodies.push(body),
            other => assert_eq!(other, None, "the type of the body"),
        }
    }
}

impl Line {
    fn is_of(&self, attribute: &str, value: &str) -> bool {
        self.from.get(attribute).is_some_and(|of| of == value)
    }
}

/// What a request of OTLP has.
fn lines(request: &Value, token: &str) -> Vec<Line> {
    let each = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut lines = Vec::new();
    for resource in each(request, "resourceLogs") {
        let attributes = each(&resource["resource"], "attributes").into_iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let from: BTreeMap<String, String> =
            attributes.map(|one| (text(&one["key"]), text(&one["value"]["stringValue"]))).collect();
        for record in each(&resource, "scopeLogs").iter().flat_map(|scope| each(scope, "logRecords")) {
            let line = text(&record["body"]["stringValue"]);
            lines.push(Line { text: line, from: from.clone(), token: token.to_owned() });
        }
    }
    lines
}

/// A pod that writes these lines, and ends.
fn write_lines(site: &Site, namespace: &str, name: &str, lines: &[String]) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "restartPolicy": "Never", "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "writer", "image": agnhost(site), "imagePullPolicy": "Never",
                // It prints its arguments, in brackets.
                "args": ["entrypoint-tester", format!("\n{}\n", lines.join("\n"))],
            }],
        },
    });
    apply(site, name, &[pod]);
    let namespace = format!("--namespace={namespace}");
    site.kubectl(&[
        "wait",
        "--for=jsonpath={.status.phase}=Succeeded",
        "--timeout=2m",
        &format!("pod/{name}"),
        &namespace,
    ]);
}

fn numbered(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name} {number:04}")).collect()
}

/// How often the lines that were written have come; brackets and other lines left out.
fn wait_for_lines(sink: &Sink, pod: &str, written: &[String]) -> BTreeMap<String, usize> {
    // Two more are what stands before the first end of a line and behind the last one.
    let mut counts = sink.counts(pod, written.len() + 2);
    counts.retain(|text, _| written.contains(text));
    assert_eq!(counts.keys().cloned().collect::<BTreeSet<_>>(), written.iter().cloned().collect(), "{pod}");
    counts
}

fn kill_collectors(site: &Site) {
    for host in HOSTS {
        let killed = on_host(site, host, &format!("{COLLECTORS} | xargs --no-run-if-empty kill -KILL; true"));
        assert_eq!(killed, "");
    }
}

#[test]
#[ignore = "builds one more program: make test-addons"]
fn cluster_logs_arrive_whole_and_once() {
    let Some(site) = Site::of_cluster("logs", "10.125.33.0/24", 1) else { return };
    credentials(&site, TOKEN);
    let ports = format!("phase1.local.open_ports={SYSLOG_PORT},{PORT}");
    let endpoint = format!("phase3.log_shipping_endpoint=http://{ADDRESS}:{PORT}");
    site.ok(&[
        "config",
        "set",
        &ports,
        "phase3.log_shipping=y",
        "phase3.log_shipping_output=otlp-http-json",
        &endpoint,
        "phase3.log_shipping_headers_file=headers.txt",
        "phase3.log_shipping_skip_namespaces=quiet",
        "phase3.log_shipping_audit=y",
    ]);
    what_others_may_read_is_refused(&site);
    site.ok(&["up"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    let sink = what_nothing_listened_to_arrives_later(&site);
    lines_have_their_names(&site, &sink);
    long_lines_are_whole(&site, &sink);
    an_outage_loses_nothing(&site, &sink);
    a_crash_repeats_one_request(&site, &sink);
    a_pod_that_is_gone_has_left_its_lines(&site, &sink);
    what_is_skipped_does_not_arrive(&site, &sink);
    credentials_are_in_the_secret_alone(&site);
    another_token_is_sent(&site, &sink);
    idle_collectors_cost_little(&site);
    other_protocols_have_the_lines(&site, &sink);
    what_is_switched_off_is_gone(&site);
}

fn credentials(site: &Site, token: &str) {
    let file = site.dir.join("headers.txt");
    fs_err::write(&file, format!("# of the test\nAuthorization: Bearer {token}\n")).unwrap();
    fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn what_others_may_read_is_refused(site: &Site) {
    let file = site.dir.join("headers.txt");
    let mode = |mode| fs_err::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let refused = site.fails(3, &["up"]);
    assert!(refused.err.contains("others may read headers.txt, and a secret is in it: chmod 600"), "{refused}");
    mode(0o600);
    fs_err::write(&file, format!("Bearer {TOKEN}\n")).unwrap();
    let refused = site.fails(3, &["up"]);
    let why = "phase3.log_shipping_headers_file: headers.txt: line 1: it has no colon";
    assert!(refused.err.contains(why) && !refused.err.contains(TOKEN), "{refused}");
    credentials(site, TOKEN);
}

/// Nothing listens at first: connections are refused. A collector that is killed then has lost
/// nothing.
fn what_nothing_listened_to_arrives_later(site: &Site) -> Sink {
    let written = numbered("early", 500);
    write_lines(site, "default", "early", &written);
    std::thread::sleep(Duration::from_secs(3));
    kill_collectors(site);
    let sink = Sink::serve();
    let counts = wait_for_lines(&sink, "early", &written);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    sink
}

fn lines_have_their_names(site: &Site, sink: &Sink) {
    let node = site.kubectl(&["get", "pod", "early", "--output=jsonpath={.spec.nodeName}"]);
    let uid = site.kubectl(&["get", "pod", "early", "--output=jsonpath={.metadata.uid}"]);
    let line = sink.of_pod("early").into_iter().next().unwrap();
    for (attribute, value) in [
        ("k8s.namespace.name", "default"),
        ("k8s.pod.uid", &uid),
        ("k8s.container.name", "writer"),
        ("k8s.container.restart_count", "0"),
        ("k8s.node.name", &node),
        ("k8s.cluster.name", "it"),
        ("service.name", "writer"),
    ] {
        assert!(line.is_of(attribute, value), "{attribute}: {value}: {line:?}");
    }
    assert_eq!(line.token, format!("Bearer {TOKEN}"));
    // The control plane's own, from before the collectors were there, and what it has audited.
    let control_plane = HOSTS[0];
    sink.wait("the log of the API server", |received| {
        let is_its = |line: &Line| {
            line.is_of("k8s.container.name", "kube-apiserver") && line.is_of("k8s.node.name", control_plane)
        };
        received.lines.iter().any(is_its)
    });
    sink.wait("the audit log", |received| {
        let is_it = |line: &Line| {
            line.is_of("service.name", "kube-apiserver-audit")
                && line.text.contains("\"kind\":\"Event\"")
                && line.is_of("k8s.node.name", control_plane)
        };
        received.lines.iter().any(is_it)
    });
}

/// containerd cuts a line after 16 KiB, here in the middle of letters.
fn long_lines_are_whole(site: &Site, sink: &Sink) {
    let long = format!("x{}", "äöü€".repeat(6000));
    write_lines(site, "default", "long", &[long.clone(), "short".to_owned()]);
    let counts = wait_for_lines(sink, "long", &[long, "short".to_owned()]);
    assert!(counts.values().all(|count| *count == 1));
}

/// The server refuses what comes, by its load and by the credentials, and collectors are killed
/// meanwhile.
fn an_outage_loses_nothing(site: &Site, sink: &Sink) {
    sink.answer(Answer::Status("503 Service Unavailable"));
    let written = numbered("outage", 500);
    write_lines(site, "default", "outage", &written);
    sink.wait_for_refusal();
    kill_collectors(site);
    sink.answer(Answer::Status("401 Unauthorized"));
    sink.wait_for_refusal();
    sink.answer(Answer::Status("500 Internal Server Error"));
    sink.wait_for_refusal();
    assert_eq!(sink.of_pod("outage").len(), 0);
    sink.answer(Answer::Yes);
    let counts = wait_for_lines(sink, "outage", &written);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

/// Killed after the server has the lines and before it says so.
fn a_crash_repeats_one_request(site: &Site, sink: &Sink) {
    sink.answer(Answer::Late);
    let written = numbered("crash", 300);
    write_lines(site, "default", "crash", &written);
    sink.wait("a line of crash", |received| received.lines.iter().any(|line| line.is_of("k8s.pod.name", "crash")));
    kill_collectors(site);
    sink.answer(Answer::Yes);
    // What was not confirmed comes again, and once.
    let counts = || wait_for_lines(sink, "crash", &written);
    sink.wait("the request again", |received| {
        let last = written.last().unwrap();
        received.lines.iter().filter(|line| line.text == *last).count() > 1
    });
    write_lines(site, "default", "later", &numbered("later", 10));
    wait_for_lines(sink, "later", &numbered("later", 10));
    assert!(counts().values().all(|count| *count <= 2), "{:?}", counts());
}

/// kubelet removes files some time after the pod, and a collector looks twice a second.
fn a_pod_that_is_gone_has_left_its_lines(site: &Site, sink: &Sink) {
    let written = numbered("brief", 50);
    write_lines(site, "default", "brief", &written);
    site.kubectl(&["delete", "pod", "brief", "--now"]);
    wait_for_lines(sink, "brief", &written);
}

fn what_is_skipped_does_not_arrive(site: &Site, sink: &Sink) {
    site.kubectl(&["create", "namespace", "quiet"]);
    write_lines(site, "quiet", "quiet", &numbered("quiet", 10));
    let node = site.kubectl(&["get", "pod", "quiet", "--namespace=quiet", "--output=jsonpath={.spec.nodeName}"]);
    write_lines(site, "default", "after", &numbered("after", 10));
    wait_for_lines(sink, "after", &numbered("after", 10));
    let after = sink.of_pod("after").into_iter().next().unwrap();
    assert!(after.is_of("k8s.node.name", &node), "there is one worker: {after:?}");
    let received = sink.0.lock().unwrap();
    let is_wrong =
        |line: &&Line| line.is_of("k8s.namespace.name", "quiet") || line.is_of("k8s.container.name", "log-shipping");
    assert!(received.lines.iter().find(is_wrong).is_none(), "{:?}", received.lines.iter().find(is_wrong));
}

/// Every file below it that has this text, and its mode.
fn find_text(dir: &Path, text: &str, found: &mut Vec<(String, u32)>) {
    for entry in fs_err::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        // The hosts' own roots are looked at from inside.
        if kind.is_dir() && !path.ends_with(".turnup/it/hosts") {
            find_text(&path, text, found);
        } else if kind.is_file() {
            let bytes = fs_err::read(&path).unwrap();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push((path.display().to_string(), entry.metadata().unwrap().permissions().mode() & 0o777));
            }
        }
    }
}

fn credentials_are_in_the_secret_alone(site: &Site) {
    use base64::Engine as _;
    let headers = json!({"exporters": {"otlp_http": {"headers": {"authorization": format!("Bearer {TOKEN}")}}}});
    let coded = base64::engine::general_purpose::STANDARD.encode(headers.to_string());
    let secret = site.kubectl(&["get", "secret", "log-shipping", SYSTEM, "--output=jsonpath={.data.headers\\.yaml}"]);
    assert_eq!(secret, coded);
    for kind in ["configmaps", "daemonsets", "pods", "controllerrevisions"] {
        let all = site.kubectl(&["get", kind, SYSTEM, "--output=json"]);
        assert!(!all.contains(TOKEN) && !all.contains(&coded), "{kind}");
    }
    let logs = site.kubectl(&["logs", SYSTEM, "--selector=app.kubernetes.io/name=log-shipping", "--tail=-1"]);
    assert!(logs.contains("Everything is ready") && !logs.contains(TOKEN), "{logs}");
    for text in [TOKEN, &coded] {
        let mut found = Vec::new();
        find_text(&site.dir, text, &mut found);
        assert!(found.iter().all(|(_, mode)| *mode == 0o600), "{found:?}");
    }
    for host in HOSTS {
        let found = on_host(
            site,
            host,
            &format!("grep --recursive --files-with-matches --text {TOKEN} {STATE} /var/log/pods; true"),
        );
        assert_eq!(found, "", "{host}");
        assert_eq!(on_host(site, host, &format!("stat --format=%a {STATE}")), "700\n", "{host}");
    }
}

fn another_token_is_sent(site: &Site, sink: &Sink) {
    credentials(site, NEXT_TOKEN);
    let planned = site.ok(&["plan"]).out;
    assert!(planned.contains("DaemonSet log-shipping") && !planned.contains(NEXT_TOKEN), "{planned}");
    site.ok(&["up"]);
    write_lines(site, "default", "renewed", &numbered("renewed", 10));
    wait_for_lines(sink, "renewed", &numbered("renewed", 10));
    let of_renewed = sink.of_pod("renewed");
    assert!(of_renewed.iter().all(|line| line.token == format!("Bearer {NEXT_TOKEN}")), "{of_renewed:?}");
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
}

/// Memory in MB and CPU in thousandths of one of the collector on a host.
fn idle_collectors_cost_little(site: &Site) {
    const PERIOD: u64 = 60;
    for host in HOSTS {
        let script = format!(
            "p=$({COLLECTORS}); ticks() {{ cut --delimiter=' ' --fields=14,15 /proc/$p/stat | tr ' ' +; }}; a=$(ticks); \
             sleep {PERIOD}; b=$(ticks); grep VmRSS /proc/$p/status | tr -dc 0-9; echo; echo $(( $b - ($a) ))"
        );
        let said = on_host(site, host, &script);
        let numbers: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        let (memory, cpu) = (numbers[0] / 1024, numbers[1] * 10 / PERIOD);
        say(&format!("a collector on {host}: {memory} MiB, {cpu} thousandths of a CPU"));
        assert!(memory < 128 && cpu < 100, "{host}: {memory} MiB, {cpu}m");
    }
}

fn other_protocols_have_the_lines(site: &Site, sink: &Sink) {
    site.ok(&["config", "set", "phase3.log_shipping_output=otlp-http"]);
    site.ok(&["up"]);
    write_lines(site, "default", "binary", &numbered("binary", 10));
    let has = |body: &Vec<u8>, text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
    sink.wait("protobuf", |received| received.bodies.iter().any(|body| has(body, "binary 0009")));
    let received = Arc::new(Mutex::new(String::new()));
    let listener = TcpListener::bind((ADDRESS, SYSLOG_PORT)).unwrap();
    let shared = Arc::clone(&received);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut text = Vec::new();
            let _ends = stream.read_to_end(&mut text);
            shared.lock().unwrap().push_str(&String::from_utf8(text).unwrap());
        }
    });
    let endpoint = format!("phase3.log_shipping_endpoint=tcp://{ADDRESS}:{SYSLOG_PORT}");
    site.ok(&["config", "set", "phase3.log_shipping_output=syslog", &endpoint]);
    site.ok(&["up"]);
    write_lines(site, "default", "syslog", &numbered("syslog", 10));
    let start = Instant::now();
    let message = loop {
        let text = received.lock().unwrap().clone();
        if let Some(line) = text.lines().find(|line| line.ends_with(" syslog 0009")) {
            break line.to_owned();
        }
        assert!(start.elapsed() < SOON, "{text}");
        std::thread::sleep(Duration::from_millis(200));
    };
    let (length, message) = message.split_once(' ').unwrap();
    assert_eq!(length.parse(), Ok(message.len() + 1), "its length with the end of the line: {message}");
    let (head, rest) = message.split_once(" [kubernetes@32473 ").unwrap();
    let words: Vec<&str> = head.split(' ').collect();
    assert_eq!((words[0], words[2], words[3], words.len()), ("<165>1", HOSTS[1], "writer", 6), "{message}");
    assert!(words[1].parse::<jiff::Timestamp>().is_ok(), "{message}");
    for part in
        ["cluster=\"it\"", "namespace=\"default\"", "pod=\"syslog\"", "container=\"writer\"", "stream=\"stdout\""]
    {
        assert!(rest.contains(part), "{part}: {message}");
    }
    // The Secret has gone with the headers.
    assert_eq!(site.kubectl(&["get", "secret", "log-shipping", SYSTEM, "--ignore-not-found"]), "");
}

fn what_is_switched_off_is_gone(site: &Site) {
    site.ok(&["config", "set", "phase3.log_shipping=n"]);
    site.ok(&["up"]);
    let kinds = "daemonsets,services,configmaps,secrets,serviceaccounts,clusterroles,clusterrolebindings";
    let selector = "--selector=turnup.dev/addon=log-shipping";
    assert_eq!(site.kubectl(&["get", kinds, "--all-namespaces", selector, "--output=name"]), "");
    let selector = "--selector=app.kubernetes.io/name=log-shipping";
    site.kubectl(&["wait", "--for=delete", "pod", SYSTEM, selector, "--timeout=2m"]);
    assert_eq!(site.ok(&["plan"]).out, "nothing to do\n");
    // Switched on again, collectors go on where they were.
    for host in HOSTS {
        on_host(site, host, &format!("test -d {STATE}"));
    }
}
