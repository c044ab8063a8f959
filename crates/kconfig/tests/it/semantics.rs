//! Values: defaults, visibility, selects, implies, ranges, choices, modules, comparisons.

use kconfig::{Config, Origin, SetError, Tri, dotconfig};

use crate::support::{ByName as _, symbol, tree};

#[test]
fn the_first_default_whose_condition_holds_counts() {
    let tree = tree(
        "config cloud\n\tstring \"Cloud\"\n\tdefault \"gce\"\n\
         config provider\n\tstring \"Provider\"\n\tdefault \"kubeadm\" if cloud = \"gce\" || cloud = \"openstack\"\n\tdefault \"ignition\"\n",
    );
    let mut config = Config::new(&tree);
    assert_eq!(config.get("provider"), "kubeadm");
    config.put("cloud", "aws").unwrap();
    assert_eq!(config.get("provider"), "ignition");
    assert!(matches!(config.origin(symbol(&tree, "provider")), Origin::Default { span } if span.line == 7));
}

#[test]
fn a_default_may_be_another_symbol() {
    let tree = tree(
        "config phase1.cluster_name\n\tstring \"Name\"\n\tdefault \"first\"\n\
         config phase2.kube_context_name\n\tstring \"Context\"\n\tdefault phase1.cluster_name\n",
    );
    let mut config = Config::new(&tree);
    config.put("phase1.cluster_name", "prod").unwrap();
    assert_eq!(config.get("phase2.kube_context_name"), "prod");
}

#[test]
fn bare_constants_compare_with_texts() {
    let tree = tree(
        "config provider\n\tstring \"P\"\n\tdefault \"kubeadm\"\n\
         config a\n\tdef_bool y\n\tdepends on provider != kubeadm\n\
         config b\n\tdef_bool y\n\tdepends on provider = kubeadm\n",
    );
    let config = Config::new(&tree);
    assert_eq!((config.get("a"), config.get("b")), ("n", "y"));
}

#[test]
fn invisible_symbols_ignore_the_user() {
    let tree = tree(
        "config A\n\tbool \"A\"\n\
         config PORT\n\tint \"Port\" if A\n\tdefault 80\n",
    );
    let mut config = Config::new(&tree);
    config.put("A", "y").unwrap();
    config.put("PORT", "8080").unwrap();
    assert_eq!(config.get("PORT"), "8080");
    config.put("A", "n").unwrap();
    assert_eq!(config.get("PORT"), "80");
    assert_eq!(config.user_value(symbol(&tree, "PORT")), Some("8080"));
    let error = config.put("PORT", "81").unwrap_err();
    insta::assert_snapshot!(error, @"PORT cannot be set now: needs A (A is n)");
}

#[test]
fn select_forces_and_says_who() {
    let tree = tree(
        "config A\n\tbool \"A\"\n\tselect B\n\
         config B\n\tbool \"B\"\n",
    );
    let mut config = Config::new(&tree);
    config.put("A", "y").unwrap();
    let b = symbol(&tree, "B");
    assert_eq!(config.tri(b), Tri::Y);
    assert!(matches!(config.origin(b), Origin::Select { by, span } if by == symbol(&tree, "A") && span.line == 3));
    assert_eq!(config.assignable(b), [Tri::Y]);
    insta::assert_snapshot!(config.put("B", "n").unwrap_err(), @"B cannot be n: A selects it");
}

#[test]
fn select_ignores_dependencies_and_that_is_reported() {
    let tree = tree(
        "config D\n\tbool \"D\"\n\
         config A\n\tdef_bool y\n\tselect B\n\
         config B\n\tbool \"B\"\n\tdepends on D\n",
    );
    let config = Config::new(&tree);
    assert_eq!(config.get("B"), "y");
    assert!(config.is_written(symbol(&tree, "B")));
    insta::assert_snapshot!(config.unmet_dependencies().join("\n"), @"B is selected by A, but its dependencies are n: D");
}

#[test]
fn imply_yields_to_the_user_and_to_dependencies() {
    let tree = tree(
        "config D\n\tbool \"D\"\n\tdefault y\n\
         config A\n\tdef_bool y\n\timply B\n\
         config B\n\tbool \"B\"\n\tdepends on D\n",
    );
    let mut config = Config::new(&tree);
    let b = symbol(&tree, "B");
    assert_eq!(config.get("B"), "y");
    assert!(matches!(config.origin(b), Origin::Imply { span, .. } if span.line == 6));
    config.put("B", "n").unwrap();
    assert_eq!(config.get("B"), "n");
    config.unset(b);
    config.put("D", "n").unwrap();
    assert_eq!(config.get("B"), "n");
    assert!(config.is_written(b), "the C tools write `is not set` for an implied symbol whose dependencies are n");
}

#[test]
fn ranges_limit_users_and_clamp_defaults() {
    let tree = tree(
        "config MAX\n\tint \"Max\"\n\tdefault 10\n\
         config N\n\tint \"N\"\n\tdefault 50\n\trange 1 MAX\n\
         config H\n\thex \"H\"\n\tdefault 0x100\n\trange 0x0 0xff\n\
         config E\n\tint \"E\"\n\trange 3 9\n",
    );
    let mut config = Config::new(&tree);
    assert_eq!((config.get("N"), config.get("H"), config.get("E")), ("10", "0xff", "3"));
    assert_eq!(config.range(symbol(&tree, "N")), Some((1, 10)));
    insta::assert_snapshot!(config.put("N", "11").unwrap_err(), @"11 is out of range for N: 1 to 10");
    insta::assert_snapshot!(config.put("N", "ten").unwrap_err(), @"`ten` is not a value for N, which is of type int");
    config.put("MAX", "20").unwrap();
    config.put("N", "11").unwrap();
    assert_eq!(config.get("N"), "11");
}

#[test]
fn a_choice_has_one_member_that_is_y() {
    let tree = tree(
        "choice\n\tprompt \"Network\"\n\tdefault flannel\n\
         config bridge\n\tbool \"Bridge\"\n\
         config flannel\n\tbool \"flannel\"\n\
         config calico\n\tbool \"Calico\"\n\tdepends on ADVANCED\nendchoice\n\
         config ADVANCED\n\tbool \"Advanced\"\n",
    );
    let mut config = Config::new(&tree);
    let state = |config: &Config<'_>| {
        [config.get("bridge"), config.get("flannel"), config.get("calico")].map(str::to_owned).concat()
    };
    assert_eq!(state(&config), "nyn");
    assert!(!config.is_written(symbol(&tree, "calico")));
    config.put("bridge", "y").unwrap();
    assert_eq!(state(&config), "ynn");
    insta::assert_snapshot!(config.put("bridge", "n").unwrap_err(), @"bridge belongs to a choice: select another member instead of setting it to n");
    config.put("ADVANCED", "y").unwrap();
    config.put("calico", "y").unwrap();
    assert_eq!(state(&config), "nny");
    let (choice, _) = tree.choices().next().unwrap();
    assert_eq!(config.selection(choice), Some(symbol(&tree, "calico")));
    config.put("ADVANCED", "n").unwrap();
    assert_eq!(state(&config), "nyn", "what cannot be chosen any more falls back to the default");
    config.put("ADVANCED", "y").unwrap();
    assert_eq!(state(&config), "nny", "and comes back");
}

#[test]
fn an_optional_choice_may_be_off() {
    let tree = tree("choice\n\tprompt \"C\"\n\toptional\nconfig A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\nendchoice\n");
    let mut config = Config::new(&tree);
    let (choice, _) = tree.choices().next().unwrap();
    assert_eq!(config.mode(choice), Tri::N);
    config.set_mode(choice, Tri::Y);
    assert_eq!(config.get("A"), "y");
}

#[test]
fn m_needs_modules() {
    let text = "config MODULES\n\tbool \"Modules\"\n\tmodules\n\
         config A\n\ttristate \"A\"\n\tdefault m\n\
         config B\n\tbool \"B\"\n\tdepends on A\n\tdefault y\n\
         config C\n\ttristate \"C\"\n\tdepends on m\n";
    let tree = tree(text);
    let mut config = Config::new(&tree);
    assert_eq!((config.get("A"), config.get("B")), ("y", "y"));
    assert_eq!(config.visible(symbol(&tree, "C")), Tri::N);
    config.put("MODULES", "y").unwrap();
    assert_eq!((config.get("A"), config.get("B")), ("m", "y"));
    assert_eq!(config.assignable(symbol(&tree, "A")), [Tri::N, Tri::M, Tri::Y]);
    assert_eq!(config.visible(symbol(&tree, "C")), Tri::M);
    assert_eq!(config.put("C", "y").unwrap_err().to_string(), "C cannot be y: its dependencies allow m at most");
}

#[test]
fn comparisons_are_numeric_where_both_sides_are_numbers() {
    let tree = tree(
        "config N\n\tint \"N\"\n\tdefault 9\nconfig H\n\thex \"H\"\n\tdefault 0x10\nconfig S\n\tstring \"S\"\n\tdefault \"1.9\"\n\
         config A\n\tdef_bool N < 10\nconfig B\n\tdef_bool H > N\nconfig C\n\tdef_bool S < \"1.10\"\nconfig D\n\tdef_bool !(N >= 9 && H != 0x10)\n",
    );
    let config = Config::new(&tree);
    assert_eq!(["A", "B", "C", "D"].map(|name| config.get(name)), ["y", "y", "n", "y"]);
}

#[test]
fn visible_if_hides_prompts_and_keeps_values() {
    let tree = tree(
        "config EXPERT\n\tbool \"Expert\"\nmenu \"Tuning\"\n\tvisible if EXPERT\nconfig T\n\tint \"T\"\n\tdefault 5\nendmenu\n",
    );
    let mut config = Config::new(&tree);
    assert_eq!((config.get("T"), config.visible(symbol(&tree, "T"))), ("5", Tri::N));
    config.put("EXPERT", "y").unwrap();
    config.put("T", "6").unwrap();
    assert_eq!(config.get("T"), "6");
}

#[test]
fn dependencies_of_menus_and_ifs_reach_their_entries() {
    let tree = tree(
        "config A\n\tbool \"A\"\nconfig B\n\tbool \"B\"\n\
         menu \"M\"\n\tdepends on A\nif B\nconfig X\n\tbool \"X\"\n\tdefault y\nendif\nendmenu\n",
    );
    let mut config = Config::new(&tree);
    assert_eq!(config.get("X"), "n");
    assert_eq!(config.explain_visibility(symbol(&tree, "X")), ["needs A (A is n)", "needs B (B is n)"]);
    config.put("A", "y").unwrap();
    config.put("B", "y").unwrap();
    assert_eq!(config.get("X"), "y");
}

#[test]
fn several_definitions_add_up() {
    let tree = tree(
        "config A\n\tbool \"A\"\nconfig N\n\tint\n\tdefault 1 if A\nconfig N\n\tint \"N\"\n\tdefault 2\n\thelp\n\t  Twice.\n",
    );
    let mut config = Config::new(&tree);
    assert_eq!(config.get("N"), "2");
    config.put("A", "y").unwrap();
    assert_eq!(config.get("N"), "1");
    assert_eq!(tree.get(symbol(&tree, "N")).nodes.len(), 2);
}

#[test]
fn the_environment_comes_from_the_caller() {
    let tree = tree(
        "config R\n\tstring\n\toption env=\"REGION\"\nconfig S\n\tstring \"S\"\n\tdefault \"at $(REGION)$(NOWHERE)\"\n\
         x := y\nconfig T\n\tdef_bool $(x)\n",
    );
    let config = Config::new(&tree);
    assert_eq!((config.get("R"), config.get("S"), config.get("T")), ("eu-\"west\"", "at eu-\"west\"", "y"));
    assert!(!config.is_written(symbol(&tree, "R")));
}

#[test]
fn changes_compare_two_states() {
    let tree = tree("config A\n\tbool \"A\"\nconfig N\n\tint \"N\"\n\tdepends on A\n\tdefault 3\n");
    let before = Config::new(&tree);
    let mut after = before.clone();
    after.put("A", "y").unwrap();
    let found: Vec<_> = after.changes(&before).into_iter().map(|c| (c.before, c.after)).collect();
    assert_eq!(found, [(Some("n".to_owned()), Some("y".to_owned())), (None, Some("3".to_owned()))]);
}

#[test]
fn wrong_members_are_refused() {
    let tree = tree("choice\n\tprompt \"C\"\nconfig A\n\tbool \"A\"\nendchoice\nconfig B\n\tbool \"B\"\n");
    let mut config = Config::new(&tree);
    let (choice, _) = tree.choices().next().unwrap();
    assert!(matches!(config.set_choice(choice, symbol(&tree, "B")), Err(SetError::NotAMember { .. })));
}

#[test]
fn members_of_choices_are_neither_selected_nor_implied() {
    let tree = tree(
        "config A\n\tdef_bool y\n\tselect X\n\timply Z\n\
         choice\n\tprompt \"C\"\n\tdefault Y\nconfig X\n\tbool \"X\"\nconfig Y\n\tbool \"Y\"\nconfig Z\n\tbool \"Z\" if !A\nendchoice\n",
    );
    let config = Config::new(&tree);
    assert_eq!(["X", "Y", "Z"].map(|name| config.get(name)), ["n", "y", "n"]);
    assert!(!config.is_written(symbol(&tree, "Z")));
}

#[test]
fn a_tristate_choice_with_modules_holds_several_m() {
    let tree = tree(
        "config MODULES\n\tdef_bool y\n\tmodules\n\
         choice\n\ttristate \"C\"\nconfig X\n\ttristate \"X\"\nconfig Y\n\ttristate \"Y\"\nconfig B\n\tbool \"B\"\nendchoice\n",
    );
    let mut config = Config::new(&tree);
    assert_eq!(config.visible(symbol(&tree, "B")), Tri::N, "a bool is out while the choice is m");
    config.put("X", "m").unwrap();
    config.put("Y", "m").unwrap();
    assert_eq!(["X", "Y"].map(|name| config.get(name)), ["m", "m"]);
    let (choice, _) = tree.choices().next().unwrap();
    config.set_mode(choice, Tri::Y);
    assert_eq!(["X", "Y", "B"].map(|name| config.get(name)), ["y", "n", "n"]);
}

#[test]
fn taking_back_restores_choices_and_what_transitional_symbols_gave() {
    let text = "config X\n\tbool \"X\"\n\nchoice\n\tprompt \"C\"\n\toptional\n\nconfig A\n\tbool \"A\"\n\nconfig B\n\tbool \"B\"\n\tdepends on X\n\nendchoice\n\n\
        config OLD\n\tbool\n\ttransitional\n\nconfig NEW\n\tbool \"NEW\"\n\tdefault OLD if X\n";
    let tree = tree(text);
    let [x, a, old] = ["X", "A", "OLD"].map(|name| tree.symbol(name).unwrap());
    let mut config = Config::new(&tree);
    config.assign(a, "y").unwrap();
    config.assign(old, "y").unwrap();
    let (said, written) = (config.said(), dotconfig::write(&config, ""));
    config.set(x, "y").unwrap();
    let delta = said.delta(&config.said());
    // Evaluation finds that the choice has an undecided member, and that NEW takes over OLD.
    let with_x = dotconfig::write(&config, "");
    config.undo(&delta);
    assert_eq!(dotconfig::write(&config, ""), written);
    assert!(config.says(&said), "nothing more is said than before");
    config.redo(&delta);
    assert_eq!(dotconfig::write(&config, ""), with_x);
}
