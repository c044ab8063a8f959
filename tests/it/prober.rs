//! A client that asks one thing again and again beside a test, and remembers when it was answered.
#![expect(clippy::disallowed_methods, reason = "asks while the test harms or changes hosts")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_support::Site;

/// When a request ended, and what was answered, or what its program said where it failed.
type Answer = (Instant, Result<Value, String>);

pub(crate) struct Prober {
    is_over: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<Answer>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().map(JoinHandle::join);
    }
}

impl Prober {
    /// Runs the command of each number, some ten a second.
    pub(crate) fn start(mut command: impl FnMut(usize) -> Command + Send + 'static) -> Self {
        let (is_over, answers) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (over, all) = (Arc::clone(&is_over), Arc::clone(&answers));
        let thread = std::thread::spawn(move || {
            for number in 0.. {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let output = command(number).output().unwrap();
                let answer = if output.status.success() {
                    Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
                } else {
                    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
                };
                all.lock().unwrap().push((Instant::now(), answer));
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Self { is_over, answers, thread: Some(thread) }
    }

    /// kubectl in the network of a worker, by the balancer there. `words` are kubectl's.
    pub(crate) fn by_balancer(
        site: &Site,
        worker: &str,
        words: impl Fn(usize) -> Vec<String> + Send + 'static,
    ) -> Self {
        let kubectl = site.ok(&["artifacts", "path", "kubectl"]).out.trim().to_owned();
        let fixed = [
            kubectl,
            format!("--kubeconfig={}", site.path("kubeconfig").display()),
            "--server=https://127.0.0.1:3992".to_owned(),
            "--request-timeout=2s".to_owned(),
        ];
        let network = network_of(site, worker);
        Self::start(move |number| {
            let mut command = Command::new("nsenter");
            command.arg(&network).args(&fixed).args(words(number));
            command
        })
    }

    /// The longest time without an answer from this moment until now, in seconds.
    pub(crate) fn longest_pause(&self, from: Instant) -> f64 {
        self.pauses(from, 0.0).into_iter().map(|(_, long)| long).fold(0.0, f64::max)
    }

    /// The times without an answer from this moment until now that are longer than `least`: when
    /// each began and how long it was, in seconds.
    pub(crate) fn pauses(&self, from: Instant, least: f64) -> Vec<(f64, f64)> {
        let answers = self.answers.lock().unwrap();
        let answered = answers.iter().filter(|(at, answer)| *at > from && answer.is_ok());
        let times: Vec<Instant> =
            [from].into_iter().chain(answered.map(|(at, _)| *at)).chain([Instant::now()]).collect();
        let pauses = times.windows(2).map(|pair| ((pair[0] - from).as_secs_f64(), (pair[1] - pair[0]).as_secs_f64()));
        pauses.filter(|(_, long)| *long >= least).collect()
    }

    /// What was answered since then.
    pub(crate) fn answers_since(&self, from: Instant) -> Vec<Value> {
        let answers = self.answers.lock().unwrap();
        answers.iter().filter(|(at, _)| *at > from).filter_map(|(_, answer)| answer.clone().ok()).collect()
    }

    /// What failed since then: when, in seconds, and why.
    pub(crate) fn reasons(&self, from: Instant) -> Vec<String> {
        let answers = self.answers.lock().unwrap();
        let failed = answers.iter().filter_map(|(at, answer)| Some((at, answer.as_ref().err()?)));
        failed.map(|(at, why)| format!("{:.1}: {why}", at.saturating_duration_since(from).as_secs_f64())).collect()
    }

    /// How many requests failed, how many of them after one that had failed too, and how many there
    /// were.
    pub(crate) fn failures(&self) -> (usize, usize, usize) {
        let answers = self.answers.lock().unwrap();
        let failed: Vec<bool> = answers.iter().map(|(_, answer)| answer.is_err()).collect();
        let twice = failed.windows(2).filter(|pair| pair[0] && pair[1]).count();
        (failed.iter().filter(|failed| **failed).count(), twice, failed.len())
    }
}

/// nsenter's word for the network of a host.
pub(crate) fn network_of(site: &Site, host: &str) -> String {
    format!("--net=/run/netns/{}", site.spec(host)["machine"].as_str().unwrap())
}

/// kubectl's words for an object that is new each time.
pub(crate) fn create(dir: &std::path::Path) -> impl Fn(usize) -> Vec<String> + Send + 'static {
    let file = dir.join("probe.json");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "probe-"}});
    fs_err::write(&file, object.to_string()).unwrap();
    let path = "--raw=/api/v1/namespaces/default/configmaps".to_owned();
    move |_| vec!["create".to_owned(), path.clone(), format!("--filename={}", file.display())]
}
