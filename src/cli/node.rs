//! `turnup node`: what `turnup bootstrap` and the unit of user data run on a host. Hidden;
//! everything comes over standard input or lies on the host, nothing is asked.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::addons::run_addon_manager;
use crate::bootstrap::{
    AuthenticatorOptions, HostCertificates, MachineRole, Policy, RenewalScope, run_csr_approver,
    run_machine_authenticator, sign_credential,
};
use crate::config::parse_duration;
use crate::error::{Context as _, Result};
use crate::exec::signals;
use crate::node::{
    Facts, NodeConfig, agent, balancer, boot_config, diff, dns, down, healthcheck, join, layout, machine_identity,
    mounts, provider_id, up,
};

use super::{Printer, node_backup, node_restore};

/// How long `agent renew` waits for what the API is asked for.
const RENEWED: Duration = Duration::from_mins(1);

/// What to do on this host.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Print what this host is, as JSON
    Facts,
    /// Read a node config, print the digests of the artifacts that this host lacks
    Missing,
    /// Read a node config, print what on this host differs from it, as JSON
    Diff,
    /// Undo what `up` and the pods made on this host, and nothing else
    Down,
    /// Keep addons and own manifests as they were applied last, until stopped: what a unit does on
    /// control-plane hosts
    AddonManager(AddonManager),
    /// Approve or deny requests of kubelets whose hosts join by themselves, until stopped: what a
    /// unit does on control-plane hosts
    CsrApprover(CsrApprover),
    /// Pass connections on to API servers that are ready, until stopped: what a unit does on the
    /// load balancer of a local cluster
    Balancer(Balancer),
    /// Keep the names of the API server in a DNS zone as the live API servers are, until stopped:
    /// what a unit does on control-plane hosts
    Dns(Dns),
    /// Answer probes of the API server beside it, until stopped: what a unit does on control-plane
    /// hosts
    Healthcheck(Healthcheck),
    /// Take, list, verify and hand over backups of this host's member of etcd
    Backup(node_backup::Args),
    /// Give this host's member of etcd the content of a snapshot, step by step
    #[command(subcommand)]
    Restore(node_restore::RestoreCommand),
    /// Compare this host with its node config every minute and put right what it lost, until
    /// stopped: what a unit does on every host
    Agent {
        /// Defragment this host's member of etcd so often, one member of the cluster at a time
        #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
        defragment_every: Option<Duration>,
        /// Renew certificates of this control-plane host that end soon
        #[arg(long)]
        renew_certificates: bool,
        #[command(subcommand)]
        command: Option<AgentCommand>,
    },
    /// Wait until kubelet has its certificate, and remove the token with which it asked for it
    FinishJoin {
        /// How long to wait
        #[arg(long, value_name = "COUNT", default_value_t = 60)]
        seconds: u64,
    },
    /// Sign a client certificate for an hour and print it as an `ExecCredential` for kubectl
    Credential {
        /// The name of the user
        #[arg(long, value_name = "NAME")]
        user: String,
    },
    /// Ask the metadata service for a token that says which machine this is, and print it as an
    /// `ExecCredential`: with it kubelet asks for its certificate
    MachineIdentity {
        /// Whose metadata service it is
        #[arg(long, value_name = "NAME")]
        cloud: String,
        /// The one cluster that the token is for
        #[arg(long, value_name = "TEXT")]
        audience: String,
    },
    /// Ask the metadata service which machine this is, and leave that to kubelet, which starts next
    ProviderId {
        /// Whose metadata service it is
        #[arg(long, value_name = "NAME")]
        cloud: String,
    },
    /// Tell this host's API server which machine of the cluster shows a token, by what its cloud
    /// says: what a unit does on control-plane hosts of some clouds
    MachineAuthenticator(MachineAuthenticator),
    /// Mount the disks that `up` mounted last: what a unit does at every boot
    Mount,
    /// Read a delivery and make this host what it says
    Up {
        /// Take it from what user data left on this host, and fetch what is missing
        #[arg(long)]
        boot: bool,
    },
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum AgentCommand {
    /// Print how the host stands by its agent, and what that repaired since the host booted
    Status,
    /// Renew all certificates of this host now: with the keys of authorities that lie on a
    /// control-plane host, or by asking the API; the agent renews each in time
    Renew,
}

#[derive(Clone, Debug, clap::Args)]
struct CsrApprover {
    /// A node group and how the names of its Nodes begin; may be repeated
    #[arg(long, value_name = "GROUP=PREFIX", value_parser = parse_group)]
    node_group: Vec<(String, String)>,
    /// The name of another host, which no host of a node group may have; may be repeated
    #[arg(long, value_name = "NAME")]
    deny_node: Vec<String>,
    /// A name, an address or a network that is never in a kubelet's certificate; `.svc` stands for
    /// all names that end so; may be repeated
    #[arg(long, value_name = "SAN")]
    deny_san: Vec<String>,
    /// How the names end that the cloud gives machines, and that a kubelet of such a machine may
    /// have in its certificate; may be repeated
    #[arg(long, value_name = "DOMAIN")]
    machine_domain: Vec<String>,
    /// Who it is to the API
    #[arg(long, value_name = "FILE", default_value_os_t = layout::kubeconfig("csr-approver").into())]
    kubeconfig: PathBuf,
    /// The program by which it talks
    #[arg(long, value_name = "FILE", default_value_os_t = layout::program("kubectl").into())]
    kubectl: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
struct AddonManager {
    /// The name of this host, by which the others know who applies
    #[arg(long, value_name = "NAME")]
    holder: String,
    /// Who it is to the API
    #[arg(long, value_name = "FILE", default_value = layout::ADDON_MANAGER_KUBECONFIG)]
    kubeconfig: PathBuf,
    /// The program by which it talks
    #[arg(long, value_name = "FILE", default_value_os_t = layout::program("kubectl").into())]
    kubectl: PathBuf,
}

fn parse_group(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((group, prefix)) if !group.is_empty() && !prefix.is_empty() => Ok((group.to_owned(), prefix.to_owned())),
        _ => Err("expected GROUP=PREFIX".to_owned()),
    }
}

fn parse_interval(text: &str) -> std::result::Result<Duration, String> {
    let interval = parse_duration(text).filter(|interval| !interval.is_zero());
    interval.ok_or_else(|| "expected a duration above zero, such as 24h".to_owned())
}

#[derive(Clone, Debug, clap::Args)]
struct Balancer {
    /// The list of API servers, which is read again when it changes
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where to tell by HTTP which servers are up, as JSON: an address of this host alone
    #[arg(long, value_name = "ADDRESS:PORT")]
    status: Option<SocketAddr>,
}

#[derive(Clone, Debug, clap::Args)]
struct Dns {
    /// The server, the zone, its key and the names
    #[arg(long, value_name = "FILE", default_value = layout::DNS)]
    config: PathBuf,
    #[command(subcommand)]
    command: Option<DnsCommand>,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum DnsCommand {
    /// Remove the names that this cluster made
    Remove,
}

#[derive(Clone, Debug, clap::Args)]
struct Healthcheck {
    /// Where to answer; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT", required = true)]
    listen: Vec<SocketAddr>,
    /// The port of the API server on this host
    #[arg(long, value_name = "PORT")]
    api_port: u16,
    /// The certificate with which to ask it
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// The key of that
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
struct MachineAuthenticator {
    /// Where to answer: an address of this host alone
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The certificate to serve with
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// The key of that
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The cloud to ask
    #[arg(long, value_name = "NAME")]
    cloud: String,
    /// The cluster that the machines are of
    #[arg(long, value_name = "NAME")]
    cluster: String,
    /// What their tokens are for
    #[arg(long, value_name = "TEXT")]
    audience: String,
    /// The role that the cloud lends them
    #[arg(long, value_name = "NAME")]
    role: String,
    /// A node group and how the names of its Nodes begin; may be repeated
    #[arg(long, value_name = "GROUP=PREFIX", value_parser = parse_group)]
    node_group: Vec<(String, String)>,
}

/// Does it.
pub(super) fn run(args: &Args, printer: &Printer) -> Result<()> {
    // These servers have nothing to clean up: a signal ends them at once.
    if !matches!(args.command, Command::Healthcheck(_) | Command::Balancer(_) | Command::MachineAuthenticator(_)) {
        signals::install()?;
    }
    match args.command {
        Command::Facts => printer.json(&serde_json::to_value(Facts::read()?).context("cannot write facts")?),
        Command::Missing => {
            let node_config = NodeConfig::parse("standard input", &read_input()?)?;
            let missing: Vec<&str> = node_config.artifacts().filter(|sha256| !node_config.has_blob(sha256)).collect();
            printer.json(&serde_json::to_value(missing).context("cannot write a list")?)
        }
        Command::Diff => {
            let node_config = NodeConfig::parse("standard input", &read_input()?)?;
            printer.json(&serde_json::to_value(diff::find_differences(&node_config)?).context("cannot write a list")?)
        }
        Command::MachineIdentity { ref cloud, ref audience } => {
            printer.json(&machine_identity::fetch(cloud, audience)?)
        }
        Command::ProviderId { ref cloud } => provider_id::write(cloud),
        Command::MachineAuthenticator(ref args) => {
            let MachineAuthenticator { listen, certificate, key, cloud, cluster, audience, role, node_group } =
                args.clone();
            let (workers, node_groups) = (MachineRole { audience, cluster, role }, node_group.into_iter().collect());
            let options = AuthenticatorOptions { listen, certificate, key, cloud, workers, node_groups };
            run_machine_authenticator(options, &mut std::io::stdout().lock())
        }
        Command::Credential { ref user } => printer.json(&sign_credential(user)?),
        Command::CsrApprover(ref args) => {
            let CsrApprover { node_group, deny_node, deny_san, machine_domain, kubeconfig, kubectl } = args.clone();
            let policy = Policy::new(node_group.into_iter().collect(), deny_node, deny_san);
            let policy = policy.with_machine_domains(machine_domain);
            run_csr_approver(&kubectl, &kubeconfig, &policy, &mut std::io::stdout().lock())
        }
        Command::AddonManager(ref args) => {
            let AddonManager { holder, kubeconfig, kubectl } = args;
            run_addon_manager(kubectl, kubeconfig, holder, &mut std::io::stdout().lock())
        }
        Command::Balancer(ref args) => {
            let Balancer { config, status } = args.clone();
            balancer::run(&balancer::BalancerOptions { config, status }, &mut std::io::stdout().lock())
        }
        Command::Dns(Dns { ref config, command: None }) => dns::run(config, &mut std::io::stdout().lock()),
        Command::Dns(Dns { ref config, command: Some(DnsCommand::Remove) }) => {
            dns::remove_by(config, &mut std::io::stdout().lock())
        }
        Command::Agent { command: None, defragment_every, renew_certificates: renews } => {
            let certificates =
                || -> Box<dyn agent::CertificateSource> { Box::new(HostCertificates::new(RenewalScope::Due)) };
            agent::run(defragment_every, renews.then(certificates), &mut std::io::stdout().lock())
        }
        Command::Agent { command: Some(AgentCommand::Renew), .. } => {
            let mut certificates = HostCertificates::new(RenewalScope::All);
            let renewed = agent::renew_now(&mut certificates, RENEWED, &mut std::io::stderr().lock())?;
            if printer.is_json() {
                return printer.json(&serde_json::to_value(&renewed).context("cannot write a list")?);
            }
            renewed.iter().try_for_each(|path| printer.line(&format!("renewed {path}")))
        }
        Command::Agent { command: Some(AgentCommand::Status), .. } => {
            let status = agent::AgentStatus::read()?;
            if printer.is_json() {
                printer.json(&serde_json::to_value(&status).context("cannot write the status")?)
            } else {
                printer.line(&status.render())
            }
        }
        Command::FinishJoin { seconds } => join::finish(Duration::from_secs(seconds)),
        Command::Healthcheck(ref args) => {
            let Healthcheck { listen, api_port, certificate, key } = args.clone();
            let options = healthcheck::HealthcheckOptions { listen, api_port, certificate, key };
            healthcheck::run(options, &mut std::io::stdout().lock())
        }
        Command::Backup(ref args) => node_backup::run(args, printer),
        Command::Restore(ref command) => node_restore::run(command, printer),
        Command::Mount => mounts::run(&mut std::io::stdout().lock()),
        Command::Down => down::run(&mut std::io::stdout().lock()),
        Command::Up { boot: true } => boot_config::run(&mut std::io::stdout().lock()),
        Command::Up { boot: false } => {
            let delivery = serde_json::from_str(&read_input()?).context("standard input is not a delivery")?;
            up::run(delivery, &mut std::io::stdout().lock())
        }
    }
}

fn read_input() -> Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
    Ok(text)
}
