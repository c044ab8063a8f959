//! Tests with excerpts of what programs print.

use super::*;

const KUBELET: &str = r#"The kubelet is the agent.

Usage:
  kubelet [flags]

Flags:
      --allowed-unsafe-sysctls strings                           Comma-separated whitelist (ending in *). Use these at your own risk. (DEPRECATED: Set it in the file of --config. See https://example.org/ for more information.)
      --anonymous-auth                                           Enables anonymous requests. (default true) (DEPRECATED: Set it in the file of --config.)
      --authentication-token-webhook-cache-ttl duration          The duration to cache responses. (default 2m0s)
      --cgroup-driver string                                     Possible values: 'cgroupfs', 'systemd' (default "cgroupfs")
      --eviction-hard strings
  -h, --help                                                     help for kubelet
      --reserved-memory reserved-memory                          (e.g. --reserved-memory 0:memory=1Gi --reserved-memory 1:memory=2Gi). See the manual.
      --seccomp-default RuntimeDefault                           Enable the use of RuntimeDefault.
      --tls-cipher-suites strings                                Comma-separated list of cipher suites. 
                Preferred values: TLS_AES_128_GCM_SHA256.
                Insecure values: TLS_RSA_WITH_RC4_128_SHA. (DEPRECATED: Set it in the file of --config.)
  -v, --v Level                                                  number for the log level verbosity
      --version version[=true]                                   --version, --version=raw prints version information and quits
"#;

const SECTIONS: &str = r#"
Metrics flags:

      --allow-metric-labels stringToString       The map from metric-label to allow-list. The key's format is <MetricName>,<LabelName>. (default [])
      --bind-address ip                          The address (all interfaces and families: ::). (default 0.0.0.0)

Secure serving flags:

      --feature-gates mapStringBool   Options are:
                                      AllAlpha=true|false (ALPHA - default=false)
                                      AllBeta=true|false (BETA - default=false) (default )
      --proxy-mode ProxyMode          Which mode: on Linux this can be 'iptables' (default), 'ipvs', or 'nftables'.
      --quoted string                 What is said. (default "say \"(default)\"")
      --zero string                   A text. (default "0")
      --alone string                  (default "x")

Other words:
      are no flags of the sections above.
"#;

const ETCD: &str = "\
Usage:

  etcd --config-file
    Path to the server configuration file.

  etcd gateway
    Run the proxy.

Member:
  --name 'default'
    Human-readable name for this member.
  --max-snapshots '5'
    Maximum number of snapshot files (0 is unlimited). Deprecated in v3.6 and will be decommissioned in v3.8.
  --memory-mlock
    Enable to enforce pages to stay in RAM.
  --discovery ''
    Discovery URL. Will be deprecated in v3.7, and be decommissioned in v3.8.
  --bcrypt-cost 10
    Values are between 4 and 31.
  --pre-vote 'false'
    Enable it.
";

/// A line for each flag: type, default, why it is deprecated.
fn lines(flags: BTreeMap<String, HelpFlag>) -> String {
    let show = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let line = |(name, flag): (String, HelpFlag)| {
        format!("{name} | {} | {} | {}", flag.shown_type, show(flag.default), show(flag.deprecated))
    };
    flags.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn one_list_of_flags() {
    insta::assert_snapshot!(lines(read_pflag(KUBELET)));
}

#[test]
fn flags_in_sections() {
    insta::assert_snapshot!(lines(read_pflag(SECTIONS)));
}

#[test]
fn flags_of_etcd() {
    insta::assert_snapshot!(lines(read_etcd(ETCD)));
}

/// What the help says of feature gates, held against what the module does.
#[test]
fn gates_of_a_help_are_those_of_the_table() {
    let help = "      --feature-gates colonSeparatedMultimapStringString   Options are:\n\
                kube:AllAlpha=true|false (ALPHA - default=false)\n\
                kube:Near=true|false (BETA - default=true), or Near=true|false (ALPHA - default=false) if --min-compatibility-version>=1.36\n\
                kube:Later=true|false (ALPHA - default=false) if --min-compatibility-version>=1.36 (default )\n"
        .replace("\nkube", "\n          kube");
    let etcd = "  --feature-gates ''\n    Options are:\n    AllAlpha=true|false (ALPHA - default=false)\n    Near=true|false (BETA - default=true)\n";
    let gate = |stage, default| Gate { stage, default, locked: false };
    let mut gates: BTreeMap<String, Gate> = [
        ("AllAlpha", gate(Stage::Alpha, false)),
        ("Near", gate(Stage::Beta, true)),
        ("Old", gate(Stage::Ga, true)),
        ("Older", gate(Stage::Deprecated, false)),
    ]
    .map(|(name, gate)| (name.to_owned(), gate))
    .into();
    for flags in [read_pflag(&help), read_etcd(etcd)] {
        assert_eq!(compare_gates(&gates, &flags), [""; 0]);
    }
    gates.insert("Near".into(), gate(Stage::Beta, false));
    gates.insert("New".into(), gate(Stage::Alpha, false));
    gates.remove("AllAlpha");
    let told = compare_gates(&gates, &read_pflag(&help));
    assert_eq!(told.len(), 3, "{told:?}");
    for (line, name) in told.iter().zip(["gate Near", "gate New", "gate AllAlpha: only in the help"]) {
        assert!(line.starts_with(name), "{line}");
    }
}
