//! turnup turns up Kubernetes clusters: one static binary, one configuration file, three phases
//! that can be repeated at will.
//!
//! # The way of the data
//!
//! ```text
//! Kconfig, phases/*/Kconfig ── config, wizard ──▶ .config.json ── cluster ──▶ typed settings
//!                                                                                  │
//!   ┌──────────────────────────────────────────────────────────────────────────────┘
//!   ▼
//! provision ──▶ outputs/provision.json ──▶ bootstrap ──▶ node-config/<node>.json ──▶ addons ──▶ validate
//! Terraform      hosts, addresses, API       │            every file, unit and     kubectl
//!                                            │            flag of one node
//!                    on each host: node ◀── ssh ── the same binary, artifacts by digest
//! ```
//!
//! Each phase is a list of steps in `phases/<phase>/phase.toml`. The engine in `phase` runs those
//! that are not proven done, writes what it begins and ends to the journal in `state`, and tells
//! `report` by events. What a step does is an [`Action`](phase::Action) of the module that owns the
//! phase.
//!
//! # The modules
//!
//! A module names only modules that stand above it in this list; a test holds them to it
//! (`tests/it/tidy.rs` has the exact table).
//!
//! | module | what it is for |
//! |---|---|
//! | `kconfig` (a crate of its own) | the Kconfig language; knows no terminal, no process, no file |
//! | `terminal` | text of other parties made safe for a terminal |
//! | `error` | the one error that reaches the user: class, evidence, next command |
//! | `parallel` | runs one function for many items on threads |
//! | `step_id` | the id of a step: phase, step, host |
//! | `unknown` | placeholders for values that only a run makes |
//! | `change` | one thing that a step would change |
//! | `atomic_file` | files that appear whole or not at all |
//! | `failpoint` | where the crash tests kill: before and after each effect; nothing in a release |
//! | `input` | files of other parties: read within a limit, and whose they are |
//! | `network` | networks of IPv4 and IPv6: parsing, containment, overlap |
//! | `json` | where a value stands in JSON text |
//! | `format` | what a single text must look like: of a setting, and of a field of a document |
//! | `document` | typed files with a schema and its version: inventories, facts; every text in them has a format |
//! | `config` | the configuration: loaded, asked, changed, saved as a whole |
//! | `component` | what each Kubernetes component accepts: flags, fields of files, feature gates |
//! | `redact` | takes secrets out of texts: known ones, and what looks like one; pure |
//! | `state` | `.turnup/<cluster>/`: journal, snapshot, lock, files; the only writer there |
//! | `exec` | every child process: groups, signals, time limits, logs, masks; ssh |
//! | `phase` | steps, graph, plan, engine, events |
//! | `report` | shows events: bars, lines, JSON; times and what decided them |
//! | `artifacts` | binaries and images by digest: lock file, cache, sources |
//! | `inventory` | the nouns that all phases share: hosts, roles, taints, disks, the API's endpoint |
//! | `cloud` | everything that differs between clouds, a directory each; targets |
//! | `picture` | the cluster that a configuration describes, drawn: hosts, networks, ways in, an estimate of its cost |
//! | `wizard` | the questions on a screen: an Elm core, and one loop that touches the terminal |
//! | `doctor` | what this machine has and lacks |
//! | `cluster` | what all phases are given: typed settings, templates, directory, connections |
//! | `provision` | phase 1: drives Terraform; writes the inventory; hosts on this machine |
//! | `node` | what runs on a host: brings it to its node config, and keeps it so |
//! | `bootstrap` | phase 2: certificates, node config, delivery over ssh |
//! | `addons` | phase 3: manifests, `kubectl apply`, pruning, readiness |
//! | `forecast` | what a configuration would become: rendered files and steps, before anything exists |
//! | `plan` | what `up` would do, as one file that a run can be held to; the impact of each changed setting |
//! | `validate` | probes of the running cluster: DNS, network, Services, storage |
//! | `status` | how a cluster stands: phases, nodes, certificates, versions; looks only |
//! | `support_bundle` | one archive for a support request, without secrets |
//! | `bench` | the times of a turn-up, next to kubeadm's |
//! | `cli` | one file a command; the only one that knows all modules |
//!
//! # The directory of a cluster
//!
//! Nothing is hidden: what goes to Terraform, to a host or to the API server is a file here first.
//! Files are 0600 and directories 0700, whatever the umask; below `hosts/<name>` files have the
//! modes of that host.
//!
//! | path in `.turnup/<cluster>/` | what |
//! |---|---|
//! | `lock` | who works on the cluster now: an OS lock, with the owner's process, host and command |
//! | `journal.jsonl` | what started and how it ended, synced line by line: the truth |
//! | `state.json` | a snapshot of the journal, with version and generation |
//! | `ssh/` | the cluster's key unless the user has one, the hosts' keys, `known_hosts` |
//! | `provision/` | Terraform's working directory: module, variables, state, descriptions of local hosts |
//! | `outputs/provision.json` | the inventory: hosts and the API's address |
//! | `outputs/from.json` | where the hosts came from, when `turnup bootstrap --from` brought them |
//! | `outputs/artifacts.json` | which artifact has which digest |
//! | `outputs/restore.json`, `restore/` | the last restore of etcd; its snapshot while it is under way |
//! | `outputs/steps/` | the digests of what steps of a user's own made |
//! | `outputs/backup-directory.*` | what encrypted backups have of this directory, and the digest of that |
//! | `pki/` | authorities, certificates, keys; `keysets.json` once one is rotated |
//! | `node-config/<node>.json` | the node config |
//! | `user-data/<group>.*` | what machines that join by themselves are told, and the group's token |
//! | `addons/`, `validate/` | the manifests as they are applied |
//! | `hosts/` | files of local hosts |
//! | `kubeconfig` | the administrator's; those of other people are kept nowhere here |
//! | `logs/` | what children said, one file a step |
//! | `events/<time>-<command>.jsonl` | the events of the last 20 runs, by `schemas/events-1.json` |
//!
//! # Invariants
//!
//! Architecture invariant: only `exec` starts a process. On this machine nothing goes through a
//! shell but `$(shell,…)` of a Kconfig tree (`exec::shell`); on hosts a shell runs fixed scripts,
//! and what differs reaches them as arguments or is a constant. Every child has an explicit working
//! directory, an environment from an allow-list and a process group of its own; it gets one signal
//! when we get one, and does not outlive us. The machines of the local target alone are meant to
//! (`exec::detach`).
//!
//! Architecture invariant: only `state` writes below a cluster's directory, and each file is
//! written whole or not at all. The exceptions are Terraform in its own working directory, the logs
//! of `exec`, the descriptions of local hosts and the snapshot of a restore that is under way.
//!
//! Architecture invariant: the journal is written before and after each effect, and synced.
//! `state.json` can be thrown away; the journal cannot. After `kill -9` at any instant the next run
//! ends in the same cluster.
//!
//! Architecture invariant: a step is skipped by proof, never by belief: its inputs have the
//! recorded digest *and* what it made is still there. There is no "done" flag that the user would
//! have to reset.
//!
//! Architecture invariant: to plan changes nothing. The steps are simulated over a directory in
//! memory, with the cluster's real one behind it or with nothing; what only a run can know is a
//! placeholder there (`unknown`), which travels through whatever is made from it, is shown, and is
//! never used. No text of a user, a file or a host is taken for one, and `state` refuses to write
//! one to a disk.
//!
//! Architecture invariant: a later phase reads the inventory file of the earlier one and nothing
//! else of it. Behind `provision` no code branches on a target: what differs is a method of
//! `cloud::Target`, as how large user data may be.
//!
//! Architecture invariant: a cloud is a directory in `cloud` and its line in `cloud::CLOUDS`. Its
//! name stands nowhere else in code; what its settings mean for others is a structured comment in
//! `phases/`.
//!
//! Architecture invariant: the node config is a pure function of settings, inventory, facts and
//! digests. Whatever is decided is decided in `bootstrap::node_config`; `node` decides nothing but
//! when to repair, and speaks to no other host but members of etcd. What a group's hosts share is
//! one such file with placeholders for the five things that only a host knows
//! (`node::boot_config`).
//!
//! Architecture invariant: no artifact reaches a host whose bytes do not have the digest in
//! `cluster.lock.json`. Where it came from does not matter and is not trusted.
//!
//! Architecture invariant: authorities' keys are on the operator's machine and on the control
//! plane, never on a worker. A secret is never an argument, a variable of an environment, an event
//! or a line of a log. What stands above RBAC (`system:masters`) exists in memory for the step that
//! applies role bindings, and else only where the operator ordered it, recorded.
//!
//! Architecture invariant: a join token is one host's, or one node group's, and nothing approves a
//! certificate for its bearer but `bootstrap::join` and `bootstrap::csr_approver`, byte for byte
//! what a kubelet asks, for a name that is free. The name of a Node that is alive or of a Service
//! is never given, that of a host that turnup logs in to only to that host.
//!
//! Architecture invariant: a file of another party is read within a limit (`input`), and every text
//! of a document has a format (`document`) before it is used; a text without one is refused.
//! Whatever such a file says is no option, no line and no command anywhere.
//!
//! Architecture invariant: what hosts and programs say never reaches a terminal raw (`terminal`):
//! `report`, the last error and everything that `cli` prints escape control characters. Files of
//! logs keep what was said.
//!
//! Architecture invariant: modules return errors and emit events; only `cli` and `report` write to
//! a terminal. Every error has a class, the class is the exit code, and the code that knows the
//! next command adds it.
//!
//! Architecture invariant: etcd forms one cluster once. A member without its data never starts as
//! the one that it was, and nothing but an operator's first run starts one as `new`. What joins is
//! a learner that the others have let in (`bootstrap::etcd_step`, `node::agent::rejoin`); where
//! these are no healthy majority of the known cluster, nothing is changed but by `turnup restore`.
//!
//! Architecture invariant: a host is left as it was found. What `node` is about to make, and what
//! was there before, is in the host's own restore log and synced before the first effect; the way
//! back reads nothing else. Backups of etcd alone stay: who resets a host by mistake needs them.
//!
//! Architecture invariant: turnup changes only nftables tables of its own, each whole and in one
//! transaction. They close ports and never open one: other firewalls of a host stay in force. Rules
//! that would lock turnup out are refused before the host is changed.
//!
//! Architecture invariant: nothing asks a question but the wizard, `turnup down`, `turnup reset`,
//! `turnup restore` and `turnup kubeconfig --break-glass`, and these only on a terminal. All that
//! the wizard can do, `turnup config set` can do.
//!
//! Architecture invariant: the wizard's model, update and view are pure. One loop reads keys,
//! writes the file and owns the terminal.
//!
//! Architecture invariant: what a phase asks, which steps it has and what it renders are files
//! (`phases/`, `templates/`), the same inside the binary and in a working directory that has its
//! own copy. To change a default, a help text or a manifest, or to add a step of one's own, needs
//! no change of Rust.
//!
//! # What is not here, on purpose
//!
//! - No async runtime: some dozens of threads and channels are enough for a thousand hosts, and a
//!   backtrace says what waits for what.
//! - No client library for Kubernetes, Terraform or ssh: the real programs are run, so that the
//!   user can repeat every call by hand.
//! - No kubeadm: what it would decide is decided in one place here, and can be read as a file
//!   before it is applied.
//! - No library that writes YAML or HCL: Terraform and kubectl read JSON; files of these forms are
//!   templates and stay text. `node::yaml` writes YAML for hosts; what others write in YAML
//!   (templates of addons, kubeconfigs on hosts) is read by `serde-saphyr`.
//! - No daemon beside the clusters and no database: a cluster is a directory, and the only lock is
//!   the operating system's. What runs on hosts knows its own host alone.
//! - No `unsafe`, and no C library but the one that ring brings for cryptography.

// Public is what src/main.rs, benches and tests/it name; rustc finds dead code in the rest.
pub mod addons;
pub mod artifacts;
mod atomic_file;
mod bench;
pub mod bootstrap;
pub mod change;
pub mod cli;
pub mod cloud;
pub mod cluster;
pub mod component;
pub mod config;
pub mod doctor;
pub mod document;
mod error;
pub mod exec;
pub mod failpoint;
pub mod forecast;
mod format;
#[cfg(test)]
#[path = "../tests/it/http_server.rs"]
mod http_server;
mod input;
pub mod inventory;
mod json;
mod network;
mod node;
pub mod parallel;
pub mod phase;
mod picture;
mod plan;
pub mod provision;
mod redact;
pub mod report;
pub mod state;
mod status;
mod step_id;
mod support_bundle;
mod terminal;
pub mod unknown;
mod validate;
mod wizard;

pub use error::{Class, Context, Error, Result};
