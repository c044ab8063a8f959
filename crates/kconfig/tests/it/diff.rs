//! Differences of `.config` files.

use kconfig::diff::diff;
use kconfig::merge::{Rules, merge};
use kconfig::{Config, dotconfig};
use proptest::prelude::*;

use crate::support::tree;

const BEFORE: &str =
    "CONFIG_A=y\nCONFIG_GONE=m\n# CONFIG_B is not set\nCONFIG_N=14\nCONFIG_OLD=y\nCONFIG_S=\"a=b\"\nnonsense\n";
const AFTER: &str =
    "# CONFIG_A is not set\nCONFIG_B=m\nCONFIG_N=14\nCONFIG_NEW=\"x y\"\n# CONFIG_KNEW is not set\nCONFIG_S=\"a=c\"\n";

#[test]
fn gone_changed_and_new_each_sorted() {
    let differences = diff(BEFORE, AFTER, "CONFIG_");
    let lines: Vec<String> = differences.iter().map(kconfig::diff::Difference::to_line).collect();
    assert_eq!(
        lines,
        ["-GONE m", "-OLD y", " A y -> n", " B n -> m", " S \"a=b\" -> \"a=c\"", "+KNEW n", "+NEW \"x y\""]
    );
    let merged: Vec<String> = differences.iter().filter_map(|difference| difference.to_request("CONFIG_")).collect();
    assert_eq!(
        merged,
        ["# CONFIG_A is not set", "CONFIG_B=m", "CONFIG_S=\"a=c\"", "# CONFIG_KNEW is not set", "CONFIG_NEW=\"x y\""]
    );
    assert_eq!(diff(BEFORE, BEFORE, "CONFIG_"), []);
}

#[test]
fn a_tree_tells_decisions_from_consequences() {
    let tree = tree(
        "config A\n\tbool \"A\"\n\tselect F\nconfig F\n\tbool\nconfig ON_A\n\tbool \"B\"\n\tdepends on A\n\tdefault y\n\
         config NOT_A\n\tbool \"C\"\n\tdepends on !A\n\tdefault y\nconfig I\n\tbool \"I\"\nconfig J\n\tbool \"J\"\n\timply I\n\
         choice\n\tprompt \"P\"\nconfig P1\n\tbool \"1\"\nconfig P2\n\tbool \"2\"\nendchoice\n",
    );
    let read = |text: &str| {
        let mut config = Config::new(&tree);
        dotconfig::read(&mut config, text, "CONFIG_");
        let whole = dotconfig::write(&config, "CONFIG_");
        (config, whole)
    };
    let (before, first) = read("");
    let (after, second) = read("CONFIG_A=y\nCONFIG_J=y\nCONFIG_P2=y\n");
    let explained: Vec<String> = diff(&first, &second, "CONFIG_")
        .iter()
        .map(|difference| format!("{}: {:?}", difference.to_line(), difference.explain(&before, &after)))
        .collect();
    insta::assert_snapshot!(explained.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// What is printed in merge style, merged into the first file, gives the second, but for what
    /// is gone.
    #[test]
    fn differences_lead_from_one_file_to_the_other(a in prop::collection::btree_map("[A-D]", "[ymn]|[0-9]", 0..5), b in prop::collection::btree_map("[A-D]", "[ymn]|[0-9]", 0..5)) {
        let text = |map: &std::collections::BTreeMap<String, String>| -> String {
            map.iter().map(|(name, value)| kconfig::fragment::assignment(name, value, "CONFIG_") + "\n").collect()
        };
        let differences = diff(&text(&a), &text(&b), "CONFIG_");
        let fragment: String = differences.iter().filter_map(|d| d.to_request("CONFIG_")).map(|line| line + "\n").collect();
        let merged = merge(&[text(&a), fragment], "CONFIG_", Rules::default());
        let left = diff(&merged.to_text("CONFIG_"), &text(&b), "CONFIG_");
        prop_assert!(left.iter().all(|difference| difference.after.is_none()));
        prop_assert_eq!(left.len(), differences.iter().filter(|difference| difference.after.is_none()).count());
    }
}
