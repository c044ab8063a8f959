//! The shape of the menus: implicit submenus, dissolved `if` blocks, help, annotations, sources.

use std::fmt::Write as _;

use kconfig::{Config, Env, MemoryFiles, NodeId, Tree};

use crate::support::{ByName as _, files, symbol, tree};

/// The menus as an indented list.
fn outline(tree: &Tree) -> String {
    fn add(tree: &Tree, id: NodeId, depth: usize, text: &mut String) {
        let node = tree.node(id);
        let name = node.symbol.map_or("", |symbol| &tree.get(symbol).name);
        let prompt = node.prompt.as_ref().map_or("-", |prompt| &*prompt.text);
        writeln!(text, "{}{:?} {name} \"{prompt}\" [{}]", "  ".repeat(depth), node.kind, tree.show(node.depends))
            .unwrap();
        node.children.iter().for_each(|child| add(tree, *child, depth + 1, text));
    }
    let mut text = String::new();
    add(tree, tree.root(), 0, &mut text);
    text
}

#[test]
fn symbols_that_depend_on_the_one_before_become_its_children() {
    let tree = tree(
        "mainmenu \"Top\"\n\
         config A\n\tbool \"A\"\n\
         config A1\n\tbool \"A1\"\n\tdepends on A\n\
         config A11\n\tbool \"A11\"\n\tdepends on A1\n\
         config A2\n\tbool \"A2\"\n\tdepends on A && B\n\
         config B\n\tbool \"B\"\n\
         menuconfig cloud\n\tstring \"cloud\"\n\
         if cloud = \"gce\"\nmenu \"GCE\"\nconfig zone\n\tstring \"zone\"\nendmenu\nendif\n\
         choice\n\tprompt \"C\"\nconfig X\n\tbool \"X\"\nif A\nconfig Y\n\tbool \"Y\"\nendif\nendchoice\n\
         comment \"the end\"\n\tdepends on !A\n",
    );
    insta::assert_snapshot!(outline(&tree));
    assert_eq!(tree.choices().next().unwrap().1.members.len(), 2);
}

#[test]
fn nodes_come_in_the_order_of_the_menus() {
    let tree = tree("config A\n\tbool \"A\"\nconfig A1\n\tbool \"A1\"\n\tdepends on A\nconfig B\n\tbool \"B\"\n");
    let names: Vec<_> = tree.nodes().filter_map(|(_, node)| node.symbol).map(|id| &*tree.get(id).name).collect();
    assert_eq!(names, ["A", "A1", "B"]);
}

#[test]
fn a_front_end_shows_what_can_be_changed() {
    let tree = tree(
        "config A\n\tbool \"A\"\nmenu \"M\"\n\tdepends on A\nconfig X\n\tbool \"X\"\nendmenu\n\
         config H\n\tbool \"H\" if A\n\tdefault y\nconfig H1\n\tbool \"H1\"\n\tdepends on H\n",
    );
    let config = Config::new(&tree);
    let shown: Vec<_> = tree
        .nodes()
        .filter(|(id, _)| config.node_visible(*id))
        .map(|(_, n)| &*n.prompt.as_ref().unwrap().text)
        .collect();
    assert_eq!(shown, ["A", "H", "H1"]);
}

#[test]
fn structured_comments_stay_with_their_entry() {
    let tree = tree(
        "#: format = dns-label\n# an ordinary one\n#: secret\nconfig name\n\tstring \"Name\"\n\n#: format=enum(a, b = c)\nmenu \"M\"\nendmenu\n",
    );
    let found: Vec<_> = tree
        .get(symbol(&tree, "name"))
        .annotations
        .iter()
        .map(|a| (a.key.as_str(), a.value.as_str(), a.span.line))
        .collect();
    assert_eq!(found, [("format", "dns-label", 1), ("secret", "", 3)]);
    let (_, menu) = tree.nodes().last().unwrap();
    assert_eq!((menu.comments[0].key.as_str(), menu.comments[0].value.as_str()), ("format", "enum(a, b = c)"));
    assert!(tree.warnings().is_empty());
}

#[test]
fn help_ends_where_the_indentation_does() {
    let tree = tree(
        "config A\n\tbool \"A\"\n\thelp\n\t  One # not a comment\n\t    deeper\n\n\t  config is a word here\nconfig B\n\tbool \"B\"\n",
    );
    let help = |name| tree.help(tree.get(symbol(&tree, name)).nodes[0]);
    assert_eq!(help("A").as_deref(), Some("One # not a comment\n  deeper\n\nconfig is a word here"));
    assert_eq!(help("B"), None);
}

#[test]
fn sources_may_be_relative_optional_and_globs() {
    let tree = files(&[
        ("Kconfig", "source \"phases/*/Kconfig\"\nosource \"none/*\"\nosource \"none\"\nosource \"/out/*/Kconfig\"\n"),
        ("phases/b/Kconfig", "config B\n\tdef_bool y\n"),
        ("phases/a/Kconfig", "config A\n\tdef_bool y\nrsource \"more/Kconfig\"\norsource \"none\"\n"),
        ("phases/a/more/Kconfig", "config A2\n\tdef_bool y\nrsource \"../../rest\"\n"),
        ("phases/rest", "config R\n\tdef_bool y\n"),
        ("/out/side/Kconfig", "config O\n\tdef_bool y\n"),
    ]);
    let names: Vec<_> = tree.symbols().map(|(_, symbol)| &*symbol.name).collect();
    assert_eq!(names, ["A", "A2", "R", "B", "O"]);
    assert_eq!(tree.location(tree.node(tree.get(symbol(&tree, "A2")).nodes[0]).span), "phases/a/more/Kconfig:1:1");
}

#[test]
fn macros_expand_where_lines_use_them() {
    let files = MemoryFiles::new([(
        "Kconfig",
        "say = $(1) and $(2)\nlate = $(word)\nword := first\nnow := $(word)\nword += second\n\
         config S\n\tstring \"S\"\n\tdefault $(say,a,$(now))\nconfig $(now)_$(undefined)x\n\tdef_bool y\n\
         config L\n\tstring \"L\"\n\tdefault \"$(late) $(filename):$(lineno)\"\n$(error-if,n,never)\n",
    )]);
    let tree = Tree::load("Kconfig", &files, &Env::empty()).unwrap();
    let config = Config::new(&tree);
    assert_eq!((config.get("S"), config.get("L")), ("a and first", "first second Kconfig:13"));
    assert_eq!(config.get("first_x"), "y");
}
