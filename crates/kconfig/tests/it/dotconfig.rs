//! `.config`: reading, writing, and both in turn.

use kconfig::{Config, dotconfig};

use crate::support::{ByName as _, tree};

const TREE: &str = "mainmenu \"Turn-up\"\n\
    menu \"Phase 1\"\nconfig phase1.num_nodes\n\tint \"n\"\n\tdefault 3\n\
    config phase1.name\n\tstring \"s\"\n\tdefault \"kube\"\nendmenu\n\
    config phase2.feature\n\tbool \"b\"\nconfig phase2.more\n\thex \"h\"\n\tdefault 0x1f\n\tdepends on phase2.feature\n\
    comment \"That is all\"\n";

#[test]
fn the_layout_is_that_of_the_c_tools() {
    let tree = tree(TREE);
    let config = Config::new(&tree);
    insta::assert_snapshot!(dotconfig::write(&config, "."));
}

#[test]
fn what_is_written_reads_back() {
    let tree = tree(TREE);
    let mut config = Config::new(&tree);
    config.put("phase1.name", "a\"b|c$d\\e").unwrap();
    config.put("phase2.feature", "y").unwrap();
    let text = dotconfig::write(&config, "CONFIG_");
    let mut again = Config::new(&tree);
    assert!(dotconfig::read(&mut again, &text, "CONFIG_").is_empty());
    assert_eq!(again.get("phase1.name"), "a\"b|c$d\\e");
    assert_eq!(dotconfig::write(&again, "CONFIG_"), text);
}

#[test]
fn what_does_not_fit_is_named_with_its_line() {
    let tree = tree(TREE);
    let mut config = Config::new(&tree);
    let text = ".phase1.num_node=4\n# .phase2.feature is not set\n\n# a comment\n.phase1.num_nodes=many\n.phase1.name=bare\nnonsense\n";
    let found: Vec<_> =
        dotconfig::read(&mut config, text, ".").iter().map(|(line, text)| format!("{line}: {text}")).collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn a_number_out_of_range_counts_as_not_set() {
    let tree = tree("config N\n\tint \"N\"\n\tdefault 3\n\trange 1 5\n");
    let mut config = Config::new(&tree);
    let found = dotconfig::read(&mut config, "CONFIG_N=7\n", "CONFIG_");
    let found: Vec<_> = found.iter().collect();
    assert_eq!(found, [(1, "7 is out of range for N; its default counts")]);
    assert_eq!(config.get("N"), "3");
}
