//! What the agent tells programs that watch the host: how the host stands and what the agent did,
//! in Prometheus' text format, on loopback alone. It decides nothing, and an agent whose port
//! another program has works on without it.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use super::super::http_server::{self, HttpResponse, HttpService};
use super::status::{AgentStatus, HostState};

/// Where they are.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3991);

/// What the agent did since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub looks: u64,
    pub repairs: u64,
    pub failed_repairs: u64,
}

/// What is shown: as it was after the last look.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    state: HostState,
    problems: usize,
    counts: Counts,
    looked_at: Timestamp,
    took: Duration,
}

/// The metrics of one agent, shared with the thread that serves them.
#[derive(Default)]
pub(super) struct Metrics {
    shown: Mutex<Option<Shown>>,
    /// What became of the server, for the journal.
    news: Mutex<Vec<String>>,
}

impl Metrics {
    /// Serves them until the process ends.
    pub(super) fn serve() -> Arc<Self> {
        let metrics = Arc::new(Self::default());
        let served = Arc::clone(&metrics);
        thread::spawn(move || http_server::serve(&served, ADDRESS));
        metrics
    }

    /// Shows what a look came to, and returns what there is to say of the server.
    pub(super) fn update(
        &self,
        status: &AgentStatus,
        counts: Counts,
        looked_at: Timestamp,
        took: Duration,
    ) -> Vec<String> {
        let shown = Shown { state: status.state, problems: status.problems.len(), counts, looked_at, took };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpService for Metrics {
    const PATHS: &'static [&'static str] = &["/metrics"];

    fn answer(&self, _path: &'static str) -> HttpResponse {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let body = shown.map(|shown| shown.render()).unwrap_or_default() + &render_process();
        HttpResponse { status: 200, content_type: "text/plain; version=0.0.4", body }
    }

    fn tell(&self, line: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(format!("metrics: {line}"));
    }
}

impl Shown {
    fn render(&self) -> String {
        let version = [(format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1)];
        let states =
            HostState::ALL.map(|state| (format!("{{state=\"{}\"}}", state.name()), i32::from(state == self.state)));
        let (looked_at, took) = (self.looked_at.as_duration().as_secs_f64(), self.took.as_secs_f64());
        let Counts { looks, repairs, failed_repairs } = self.counts;
        [
            family("turnup_agent_build_info", "gauge", "The agent's version", &version),
            family("turnup_agent_state", "gauge", "1 for the state of the host at the last look", &states),
            gauge("turnup_agent_problems", "What is not as it should be", self.problems),
            counter("turnup_agent_looks_total", "Looks at the host since the agent started", looks),
            counter("turnup_agent_repairs_total", "Repairs since the agent started", repairs),
            counter("turnup_agent_failed_repairs_total", "Repairs that failed", failed_repairs),
            gauge("turnup_agent_last_look_timestamp_seconds", "When the last look began", looked_at),
            gauge("turnup_agent_last_look_duration_seconds", "How long the last look and its repair took", took),
        ]
        .concat()
    }
}

/// What the process itself costs, by the names that Prometheus' own libraries give it.
fn render_process() -> String {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = Duration::new(cpu.tv_sec.unsigned_abs(), u32::try_from(cpu.tv_nsec).unwrap_or_default());
    let resident = fs_err::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_bytes);
    let resident = resident.map(|bytes| gauge("process_resident_memory_bytes", "Resident memory of the agent", bytes));
    counter("process_cpu_seconds_total", "Processor time of the agent", cpu.as_secs_f64())
        + &resident.unwrap_or_default()
}

/// From `/proc/PID/status`, which gives it in KiB.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn gauge(name: &str, help: &str, value: impl Display) -> String {
    family(name, "gauge", help, &[(String::new(), value)])
}

fn counter(name: &str, help: &str, value: impl Display) -> String {
    family(name, "counter", help, &[(String::new(), value)])
}

/// A metric with its values, each by its labels in braces.
fn family(name: &str, kind: &str, help: &str, values: &[(String, impl Display)]) -> String {
    let values = values.iter().map(|(labels, value)| format!("{name}{labels} {value}\n"));
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{}", values.collect::<String>())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn a_host_is_shown_as_the_last_look_found_it() {
        let metrics = Metrics::default();
        assert!(!metrics.answer("/metrics").body.contains("turnup_agent_state"), "before the first look");
        let status = AgentStatus { state: HostState::Unrepaired, problems: vec!["a".into()], ..AgentStatus::default() };
        let counts = Counts { looks: 7, repairs: 2, failed_repairs: 1 };
        let looked_at = Timestamp::from_millisecond(1_767_323_045_500).unwrap();
        metrics.tell("cannot listen".into());
        let told = metrics.update(&status, counts, looked_at, Duration::from_millis(250));
        assert_eq!(told, ["metrics: cannot listen"]);
        assert!(metrics.update(&status, counts, looked_at, Duration::from_millis(250)).is_empty());
        let body = metrics.answer("/metrics").body.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(body.split("# HELP process_").next().unwrap(), @r#"
        # HELP turnup_agent_build_info The agent's version
        # TYPE turnup_agent_build_info gauge
        turnup_agent_build_info{version="VERSION"} 1
        # HELP turnup_agent_state 1 for the state of the host at the last look
        # TYPE turnup_agent_state gauge
        turnup_agent_state{state="as-declared"} 0
        turnup_agent_state{state="busy"} 0
        turnup_agent_state{state="unconfigured"} 0
        turnup_agent_state{state="unfinished"} 0
        turnup_agent_state{state="unjoined"} 0
        turnup_agent_state{state="disk-missing"} 0
        turnup_agent_state{state="unrepaired"} 1
        turnup_agent_state{state="etcd-unwell"} 0
        # HELP turnup_agent_problems What is not as it should be
        # TYPE turnup_agent_problems gauge
        turnup_agent_problems 1
        # HELP turnup_agent_looks_total Looks at the host since the agent started
        # TYPE turnup_agent_looks_total counter
        turnup_agent_looks_total 7
        # HELP turnup_agent_repairs_total Repairs since the agent started
        # TYPE turnup_agent_repairs_total counter
        turnup_agent_repairs_total 2
        # HELP turnup_agent_failed_repairs_total Repairs that failed
        # TYPE turnup_agent_failed_repairs_total counter
        turnup_agent_failed_repairs_total 1
        # HELP turnup_agent_last_look_timestamp_seconds When the last look began
        # TYPE turnup_agent_last_look_timestamp_seconds gauge
        turnup_agent_last_look_timestamp_seconds 1767323045.5
        # HELP turnup_agent_last_look_duration_seconds How long the last look and its repair took
        # TYPE turnup_agent_last_look_duration_seconds gauge
        turnup_agent_last_look_duration_seconds 0.25
        "#);
        assert!(body.contains("\nprocess_cpu_seconds_total ") && body.contains("\nprocess_resident_memory_bytes "));
    }

    #[test]
    fn resident_memory_is_read_in_kibibytes() {
        assert_eq!(resident_bytes("Name:\tturnup\nVmRSS:\t    9812 kB\n"), Some(9812 * 1024));
        assert_eq!(resident_bytes("VmRSS: much\n"), None);
        assert_eq!(resident_bytes(""), None);
    }
}
