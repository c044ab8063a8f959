//! One example for each command, shown below its options. They stand in one table, so that a test
//! can hold each to the command line.

use clap::Command;

/// The commands without the word `turnup`, and what is shown: command lines, with what each is for
/// where that is not plain.
const EXAMPLES: &[(&str, &str)] = &[
    ("config", "turnup config --guided"),
    ("config defaults", "turnup config defaults"),
    ("config profile", "turnup config profile baremetal-ha"),
    ("config set", "turnup config set phase1.num_nodes=3 phase3.dns_replicas=2"),
    ("config unset", "turnup config unset phase1.num_nodes"),
    ("config get", "turnup config get phase2.kubernetes_version phase1.num_nodes"),
    ("config list", "turnup config list --changed\nturnup config list phase2.kubelet"),
    ("config check", "turnup config check --output json"),
    ("config diff", "turnup config diff applied"),
    ("config minimal", "turnup config minimal --write"),
    ("config show", "turnup config show kubernetes-worker-0"),
    ("config picture", "turnup config picture\nturnup config picture --svg cluster.svg"),
    ("config export", "turnup config export --format tfvars\nturnup config export --to .config"),
    ("config schema", "turnup config schema >config.schema.json"),
    ("config explain", "turnup config explain phase2.max_pods"),
    ("config why", "turnup config why phase2.kube_context_name"),
    (
        "config why-not",
        "turnup config why-not phase1.baremetal.hosts\nturnup config why-not phase1.cloud_provider=baremetal --apply",
    ),
    ("config where", "turnup config where phase2.max_pods"),
    (
        "config hosts import",
        "turnup config hosts import hosts.csv\nssh-keyscan -t ed25519 192.0.2.11 192.0.2.12 | turnup config hosts import inventory.ini -",
    ),
    ("config migrate", "turnup config migrate"),
    ("config import", "turnup config import ../kubernetes-anywhere/.config.json"),
    ("plan", "turnup plan\nturnup plan --out next.json"),
    ("render", "turnup render bootstrap --to rendered"),
    ("up", "turnup up --defaults\nturnup up --plan next.json"),
    ("provision", "turnup provision --refresh"),
    ("bootstrap", "turnup bootstrap --from provision.json --parallel 20"),
    ("addons", "turnup addons"),
    ("addons list", "turnup addons list --output json"),
    ("validate", "turnup validate --wait 300"),
    ("status", "turnup status --quick --output json"),
    ("events", "turnup events --follow"),
    ("logs", "turnup logs join kubernetes-worker-0 --tail 50"),
    (
        "exec",
        "turnup exec all -- systemctl is-active kubelet\nturnup exec control-plane -- sh -c 'df -h /var/lib | tail -1'",
    ),
    (
        "ssh",
        "turnup ssh kubernetes-control-plane-0\nturnup ssh kubernetes-worker-0 -- journalctl --unit kubelet --follow",
    ),
    ("support-bundle", "turnup support-bundle --to incident.tar.gz"),
    ("kubeconfig", "export KUBECONFIG=$(turnup kubeconfig)"),
    ("certificates", "turnup certificates --output json"),
    ("keyset list", "turnup keyset list"),
    ("keyset rotate", "turnup keyset rotate etcd-ca"),
    ("keyset create", "turnup keyset create etcd-ca"),
    ("keyset promote", "turnup keyset promote etcd-ca 2"),
    ("keyset distrust", "turnup keyset distrust etcd-ca 1"),
    ("backup now", "turnup backup now"),
    ("backup list", "turnup backup list --output json"),
    (
        "backup verify",
        "turnup backup verify\nturnup backup verify kubernetes-20260301T120000Z-h0.age.tar --identity safe/age.key",
    ),
    ("backup open", "turnup backup open safe/monday.age.tar --identity safe/age.key"),
    ("backup download", "turnup backup download kubernetes-20260301T120000Z-h0.tar --to safe/monday.tar"),
    (
        "restore",
        "turnup restore\nturnup restore --backup kubernetes-20260301T120000Z-h0.tar\nturnup restore --file safe/monday.tar --yes\nturnup restore --file safe/monday.age.tar --identity safe/age.key",
    ),
    ("user-data", "turnup user-data workers --artifacts-url https://artifacts.example.com/turnup"),
    ("down", "turnup down --cluster kubernetes --yes"),
    ("reset", "turnup reset kubernetes-worker-0 --yes"),
    ("doctor", "turnup doctor --install"),
    ("artifacts list", "turnup artifacts list --kubernetes 1.36.3"),
    ("artifacts fetch", "turnup artifacts fetch --sources cache,upstream"),
    ("artifacts verify", "turnup artifacts verify"),
    ("artifacts path", "turnup artifacts path kubectl"),
    ("artifacts export", "turnup artifacts export mirror --all"),
    ("artifacts bundle", "turnup artifacts bundle /media/usb/turnup-bundle.tar"),
    ("artifacts rootfs", "turnup artifacts rootfs bookworm --renew"),
    ("artifacts lock", "turnup artifacts lock --write"),
    ("artifacts reference", "turnup artifacts reference --kubernetes 1.36.3 --write"),
    ("artifacts pin", "turnup artifacts pin --source upstream"),
    ("local list", "turnup local list"),
    ("local cleanup", "turnup local cleanup --yes"),
    ("bench", "turnup bench --runs 5 --workers 1"),
    ("kconfig conf", "turnup kconfig conf --olddefconfig Kconfig"),
    ("kconfig menuconfig", "ARCH=x86 SRCARCH=x86 turnup kconfig menuconfig"),
    ("kconfig check", "turnup kconfig check --deny K103 Kconfig"),
    ("kconfig dialect", "turnup kconfig dialect --srctree ../linux"),
    ("kconfig merge", "turnup kconfig merge --strict defconfig debug.config"),
    ("kconfig diff", "turnup kconfig diff --tree Kconfig .config.old .config"),
    ("kconfig explain", "turnup kconfig explain CONFIG_NET"),
    ("kconfig fmt", "turnup kconfig fmt --check Kconfig"),
    ("kconfig json", "turnup kconfig json >tree.json"),
    ("completions", "turnup completions bash --to ~/.local/share/bash-completion/completions/turnup"),
    ("man", "turnup man --dir ~/.local/share/man/man1"),
    ("state rebuild", "turnup state rebuild --dir .turnup/kubernetes"),
];

/// Adds the examples to the commands, below what stands there already.
pub(super) fn add(root: Command) -> Command {
    root.mut_subcommands(|below| add_to(below, ""))
}

fn add_to(command: Command, above: &str) -> Command {
    let path = format!("{above} {}", command.get_name()).trim().to_owned();
    let command = match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, example)) => with_example(command, example),
        None => command,
    };
    command.mut_subcommands(|below| add_to(below, &path))
}

fn with_example(command: Command, example: &str) -> Command {
    let (title, example) = if example.contains('\n') {
        ("Examples", example.replace('\n', "\n    "))
    } else {
        ("Example", example.to_owned())
    };
    let before = command.get_after_help().map(|notes| format!("{notes}\n\n")).unwrap_or_default();
    command.after_help(format!("{before}{title}:\n    {example}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

    use std::collections::BTreeSet;

    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    /// The commands that help shows and that have no commands below them, without the word
    /// `turnup`.
    fn leaves(command: &Command, above: &str, found: &mut BTreeSet<String>) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{above} {}", below.get_name()).trim().to_owned();
            if below.has_subcommands() {
                leaves(below, &path, found);
            } else {
                found.insert(path);
            }
        }
    }

    #[test]
    fn every_command_that_help_shows_has_an_example_there() {
        let root = crate::cli::command();
        let mut all = BTreeSet::new();
        leaves(&root, "", &mut all);
        assert!(all.len() > 50, "found only {} commands", all.len());
        let has_example = |path: &&String| {
            let command = path.split(' ').fold(&root, |command, name| command.find_subcommand(name).unwrap());
            command.get_after_help().is_some_and(|notes| notes.to_string().contains("Example"))
        };
        let bare: Vec<&String> = all.iter().filter(|path| !has_example(path)).collect();
        assert!(bare.is_empty(), "add an example to src/cli/examples.rs for: {bare:?}");
        let known = |path: &str| all.contains(path) || root.find_subcommand(path).is_some();
        let idle: Vec<&str> = EXAMPLES.iter().map(|(path, _)| *path).filter(|path| !known(path)).collect();
        assert!(idle.is_empty(), "take these out of src/cli/examples.rs, they are no commands: {idle:?}");
    }

    #[test]
    fn the_command_line_takes_every_example() {
        for (path, example) in EXAMPLES {
            for line in example.lines() {
                let command = line.split_once("turnup ").unwrap_or_else(|| panic!("{line}: does not call turnup")).1;
                let command = command.split([')', '>']).next().unwrap_or_default().trim();
                assert!(command.starts_with(path), "the example of `{path}` is one of another command: {line}");
                let words = std::iter::once("turnup".to_owned()).chain(shell_words::split(command).unwrap());
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
