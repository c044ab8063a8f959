//! Fragments: which request counts, and why one was lost.

use std::fmt::Write as _;

use kconfig::merge::{Meeting, Rules, apply, merge, switch_off_the_rest};
use kconfig::{Config, dotconfig};
use proptest::prelude::*;

use crate::support::{ByName as _, tree};

fn lost(kconfig: &str, fragments: &[&str]) -> String {
    let tree = tree(kconfig);
    let merged = merge(fragments, "CONFIG_", Rules::default());
    let mut text = String::new();
    for lost in apply(&merged, &mut Config::new(&tree), "CONFIG_") {
        let request = lost.source.request.to_line("CONFIG_");
        writeln!(text, "{}: {request} -> {:?}: {}", lost.source.fragment, lost.actual, lost.why.join("; ")).unwrap();
    }
    text
}

#[test]
fn the_later_fragment_counts_and_the_earlier_is_named() {
    let fragments = [
        "CONFIG_A=y\nCONFIG_B=m\nCONFIG_S=\"a b\"\n# CONFIG_C is not set\n",
        "CONFIG_B=y\n\n# a remark\nCONFIG_A=m\nCONFIG_A=y\n",
        "CONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=5",
    ];
    let merged = merge(&fragments, "CONFIG_", Rules::default());
    assert_eq!(
        merged.to_text("CONFIG_"),
        "CONFIG_A=y\nCONFIG_B=m\nCONFIG_S=\"a b\"\n# CONFIG_C is not set\nCONFIG_D=5\n"
    );
    let met: Vec<_> = merged
        .encounters
        .iter()
        .map(|e| (&*e.before.request.name, e.before.fragment, e.after.fragment, e.after.request.line, e.meeting))
        .collect();
    assert_eq!(
        met,
        [
            ("B", 0, 1, 1, Meeting::Overridden),
            ("A", 0, 1, 5, Meeting::Redundant),
            ("B", 1, 2, 1, Meeting::Overridden),
            ("C", 0, 2, 2, Meeting::Redundant),
        ]
    );
    let merged = merge(&fragments, "CONFIG_", Rules { builtin_wins: true });
    assert!(merged.to_text("CONFIG_").contains("CONFIG_B=y\n"));
    assert_eq!(merged.encounters[2].meeting, Meeting::Kept);
}

#[test]
fn every_loss_has_its_reason() {
    insta::assert_snapshot!(lost(
        "config MODULES\n\tbool \"Modules\"\n\tmodules\n\
         config A\n\tbool \"A\"\n\
         config NEEDS_A\n\tbool \"B\"\n\tdepends on A\n\tdefault y\n\
         config FORCED\n\tbool \"C\"\n\
         config FORCES\n\tbool \"D\"\n\tselect FORCED\n\
         config HIDDEN\n\tbool\n\tdefault y\n\
         config PORT\n\tint \"E\"\n\trange 1 10\n\tdefault 4\n\
         config T\n\ttristate \"T\"\n\
         config ON_T\n\ttristate \"U\"\n\tdepends on T\n\
         config NAME\n\tstring \"N\"\n\
         choice\n\tprompt \"P\"\nconfig P1\n\tbool \"1\"\nconfig P2\n\tbool \"2\"\nendchoice\n",
        &[
            "CONFIG_NEEDS_A=y\n# CONFIG_FORCED is not set\nCONFIG_FORCES=y\n# CONFIG_HIDDEN is not set\nCONFIG_PORT=11\n",
            "CONFIG_MODULES=y\nCONFIG_T=m\nCONFIG_ON_T=y\nCONFIG_P1=y\nCONFIG_P2=y\nCONFIG_HIDEN=y\nCONFIG_A=maybe\n# CONFIG_GONE is not set\nCONFIG_NAME=plain\n",
        ]
    ));
}

#[test]
fn values_that_took_effect_are_not_reported_as_lost() {
    let kconfig = "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\n\tdepends on A\nconfig H\n\thex \"H\"\nconfig S\n\tstring \"S\"\n";
    assert_eq!(lost(kconfig, &["CONFIG_A=y\nCONFIG_B=y\nCONFIG_H=0xAB\nCONFIG_S=\"a\\\"b\"\n"]), "");
    assert_eq!(lost(kconfig, &["# CONFIG_B is not set\n# CONFIG_A is not set\n"]), "", "what is invisible is off");
}

#[test]
fn symbols_that_were_not_requested_can_be_switched_off() {
    let tree =
        tree("config A\n\tbool \"A\"\n\tdefault y\nconfig B\n\tbool \"B\"\n\tdefault y\nconfig C\n\tdef_bool y\n");
    let mut config = Config::new(&tree);
    apply(&merge(&["CONFIG_A=y\n"], "CONFIG_", Rules::default()), &mut config, "CONFIG_");
    switch_off_the_rest(&tree, &mut config);
    assert_eq!((config.get("A"), config.get("B"), config.get("C")), ("y", "n", "y"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// One fragment that is a whole configuration loses nothing.
    #[test]
    fn a_whole_configuration_is_kept(picks in prop::collection::vec(0..3_usize, 6)) {
        let tree = tree(
            "config MODULES\n\tbool \"M\"\n\tmodules\nconfig S0\n\ttristate \"0\"\nconfig S1\n\ttristate \"1\"\n\tdepends on S0\n\
             config S2\n\tbool \"2\"\n\tselect S3\nconfig S3\n\ttristate \"3\"\nconfig S4\n\ttristate \"4\"\n\timply S1\n",
        );
        let mut config = Config::new(&tree);
        for ((id, _), pick) in tree.symbols().zip(picks) {
            config.assign(id, ["n", "m", "y"][pick]).ok();
        }
        let text = dotconfig::write(&config, "CONFIG_");
        let mut again = Config::new(&tree);
        let lost = apply(&merge(&[&text], "CONFIG_", Rules::default()), &mut again, "CONFIG_");
        prop_assert_eq!(lost, []);
        prop_assert_eq!(dotconfig::write(&again, "CONFIG_"), text);
    }
}
