//! The macro language: what references make, when commands run, and in which order effects become
//! visible.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use kconfig::{Config, Env, MemoryFiles, Messages, Output, Shell, Tree};

use crate::support::ByName as _;

/// A shell that knows a few commands and counts what it is asked.
#[derive(Default)]
struct Commands {
    asked: Mutex<Vec<String>>,
    running: AtomicUsize,
    /// When set, `meet` waits until that many run at once.
    meeting: Option<Barrier>,
}

impl Shell for Commands {
    fn run(&self, command: &str, _limit: usize) -> io::Result<Output> {
        self.asked.lock().unwrap().push(command.to_owned());
        self.running.fetch_add(1, Ordering::SeqCst);
        let (stdout, stderr) = match command.split_once(' ').unwrap_or((command, "")) {
            ("echo", text) => (text.to_owned(), String::new()),
            ("lines", _) => ("one\ntwo\n\n".to_owned(), String::new()),
            ("say", text) => ("n".to_owned(), format!("{text}\n")),
            ("slow", text) => {
                std::thread::sleep(Duration::from_millis(30));
                ("y".to_owned(), format!("{text}\n"))
            }
            ("meet", _) => {
                self.meeting.as_ref().map(Barrier::wait);
                ("y".to_owned(), String::new())
            }
            _ => return Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        Ok(Output { stdout: stdout.into_bytes(), stderr: stderr.into_bytes() })
    }

    fn jobs(&self) -> usize {
        3
    }
}

/// All visible effects, in order.
#[derive(Default)]
struct Seen(RefCell<Vec<String>>);

impl Messages for Seen {
    fn info(&self, text: &str) {
        self.0.borrow_mut().push(format!("info {text}"));
    }

    fn warning(&self, path: &str, line: u32, text: &str) {
        self.0.borrow_mut().push(format!("{path}:{line}: {text}"));
    }

    fn pass(&self, stderr: &[u8]) {
        self.0.borrow_mut().push(format!("stderr {}", String::from_utf8_lossy(stderr).trim_end()));
    }
}

fn load(text: &str, shell: &Arc<Commands>, seen: &Seen) -> Result<Tree, String> {
    let shell: Arc<dyn Shell> = Arc::clone(shell) as _;
    let env = Env::new(|name| (name == "HOME").then(|| "/home".to_owned())).with_shell(shell).with_messages(seen);
    Tree::load("Kconfig", &MemoryFiles::new([("Kconfig", text)]), &env).map_err(|found| found.render(true))
}

/// The values of the symbols `V1`, `V2`, … whose defaults are these texts.
fn values(lines: &str, defaults: &[&str]) -> Vec<String> {
    let entry = |(index, default): (usize, &&str)| format!("config V{index}\n\tstring\n\tdefault {default}\n");
    let text = lines.to_owned() + &defaults.iter().enumerate().map(entry).collect::<Vec<_>>().concat();
    let tree = load(&text, &Arc::new(Commands::default()), &Seen::default()).unwrap();
    let config = Config::new(&tree);
    (0..defaults.len()).map(|index| config.get(&format!("V{index}")).to_owned()).collect()
}

#[test]
fn a_reference_is_one_word_whatever_it_makes() {
    let found = values(
        "words = a b && c\nempty =\n",
        &["$(words)", "\"<$(words)>\"", "pre$(empty)-$(words)", "$(empty)\"q\"", "\"$\"", "\"\\$(words)\""],
    );
    assert_eq!(found, ["a b && c", "<a b && c>", "pre-a b && c", "q", "$", "$(words)"]);
}

#[test]
fn flavours_of_variables() {
    let found = values(
        "x := 1\nsimple := $(x)\nlate = $(x)\nnew += $(x)\nx := 2\nsimple += $(x)\nlate += $(x)\nx := 3\n$(x)name = n\n",
        &["\"$(simple)\"", "\"$(late)\"", "\"$(new)\"", "\"$(3name)\"", "\"$(HOME)\"", "\"$(unset)\""],
    );
    assert_eq!(found, ["1 2", "3 3", "3", "n", "/home", ""]);
}

#[test]
fn functions_take_their_arguments_as_they_are() {
    let found = values(
        "f = [$(1)|$(2)|$(3)]\ncomma := ,\nname = f\n",
        &[
            "\"$(f, a,$(comma))\"",
            "\"$(f,(x,y))\"",
            "\"$($(name),1)\"",
            "\"$(nothing,1)\"",
            "\"$(filename):$(lineno)\"",
        ],
    );
    assert_eq!(found, ["[ a|,|]", "[(x,y)||]", "[1||]", "", "Kconfig:18"]);
}

#[test]
fn comments_and_blanks_belong_to_values_but_not_in_front() {
    assert_eq!(values("v =   a # b  \n", &["\"<$(v)>\""]), ["<a # b  >"]);
}

#[test]
fn output_is_one_line_and_the_same_command_runs_once() {
    let (shell, seen) = (Arc::new(Commands::default()), Seen::default());
    let text = "config A\n\tstring\n\tdefault \"$(shell,lines)\"\nconfig B\n\tstring\n\tdefault \"$(shell,lines)!\"\n";
    let tree = load(text, &shell, &seen).unwrap();
    let config = Config::new(&tree);
    assert_eq!((config.get("A"), config.get("B")), ("one two", "one two!"));
    assert_eq!(*shell.asked.lock().unwrap(), ["lines"]);
}

#[test]
fn commands_that_need_nothing_of_each_other_run_at_once() {
    let shell = Arc::new(Commands { meeting: Some(Barrier::new(3)), ..Commands::default() });
    let text = "a := $(shell,meet 1)\nconfig B\n\tdef_bool $(shell,meet 2)\nconfig C\n\tdef_bool $(a)\n\tdepends on $(shell,meet 3)\n";
    let tree = load(text, &shell, &Seen::default()).unwrap();
    let config = Config::new(&tree);
    assert_eq!((config.get("B"), config.get("C")), ("y", "y"));
}

#[test]
fn commands_that_wait_for_another_do_not_delay_the_rest() {
    let shell = Arc::new(Commands { meeting: Some(Barrier::new(2)), ..Commands::default() });
    // Four wait for the first, one more than there are workers, before the one comes that the first
    // waits for.
    let waiting = (0..4).map(|n| format!("b{n} := $(shell,echo {n} $(a))\n")).collect::<Vec<_>>().concat();
    let text =
        format!("a := $(shell,meet 1)\n{waiting}c := $(shell,meet 2)\nconfig B\n\tstring\n\tdefault \"$(b3)\"\n");
    let tree = load(&text, &shell, &Seen::default()).unwrap();
    assert_eq!(Config::new(&tree).get("B"), "3 y");
}

#[test]
fn a_command_gets_the_output_of_another() {
    let shell = Arc::new(Commands::default());
    let text = "slow := $(shell,slow)\nconfig A\n\tstring\n\tdefault \"$(shell,echo <$(slow)>)\"\n\
                config $(shell,echo NAME)\n\tdef_bool y\nif $(slow)\nconfig IN\n\tdef_bool y\nendif\n";
    let tree = load(text, &shell, &Seen::default()).unwrap();
    let config = Config::new(&tree);
    assert_eq!((config.get("A"), config.get("NAME"), config.get("IN")), ("<y>", "y", "y"));
}

#[test]
fn visible_effects_keep_the_order_of_the_lines() {
    let (shell, seen) = (Arc::new(Commands::default()), Seen::default());
    let text = "$(info,first)\nv := $(shell,slow second)\n$(warning-if,$(v),third $(v))\n$(warning-if,n,never)\n\
                w := $(shell,say fourth)\n$(info,fifth)\n$(error-if,$(w),never)\n";
    load(text, &shell, &seen).unwrap();
    assert_eq!(*seen.0.borrow(), ["info first", "stderr second", "Kconfig:3: third y", "stderr fourth", "info fifth"]);
}

#[test]
fn nothing_is_seen_behind_an_error_that_waited_for_its_command() {
    let (shell, seen) = (Arc::new(Commands::default()), Seen::default());
    let text = "$(info,before)\n$(error-if,$(shell,echo y),no compiler)\n$(info,after)\nconfig A\n\tbool\n";
    insta::assert_snapshot!(load(text, &shell, &seen).unwrap_err(), @r"
    error[K014]: no compiler
     --> Kconfig:2:1
      |
    2 | $(error-if,$(shell,echo y),no compiler)
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the tree refuses this
    ");
    assert_eq!(*seen.0.borrow(), ["info before"]);
    // Nor behind one that did not have to wait.
    let seen = Seen::default();
    load("$(error-if,y,no)\n$(info,after)\nv := $(shell,say hello)\n", &shell, &seen).unwrap_err();
    assert!(seen.0.borrow().is_empty(), "{:?}", seen.0.borrow());
}

#[test]
fn a_command_that_cannot_start_is_shown_where_it_stands() {
    let found = load("config A\n\tdef_bool $(shell,what is this)\n", &Arc::new(Commands::default()), &Seen::default());
    insta::assert_snapshot!(found.unwrap_err(), @r"
    error[K011]: cannot run `what is this`: entity not found
     --> Kconfig:2:11
      |
    2 |     def_bool $(shell,what is this)
      |              ^^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn functions_of_the_caller_know_where_they_are_called() {
    let env = Env::empty().with_function("join", 1..=3, |call| {
        if call.arguments.iter().any(String::is_empty) {
            return Err("an argument is empty".to_owned());
        }
        Ok(format!("{}@{}:{}", call.arguments.join("+"), call.path, call.line))
    });
    let load = |text: &str| Tree::load("Kconfig", &MemoryFiles::new([("Kconfig", text)]), &env);
    let tree = load("config A\n\tstring\n\tdefault \"$(join,a,b)\"\n").unwrap();
    assert_eq!(Config::new(&tree).get("A"), "a+b@Kconfig:3");
    let render = |text: &str| load(text).unwrap_err().render(true);
    insta::assert_snapshot!("a_function_refuses", render("v := $(join,)\n"));
    insta::assert_snapshot!("a_function_gets_too_little", render("v := $(join)\n"));
}

#[test]
fn loops_end() {
    let shell = Arc::new(Commands::default());
    let found = load("a = $(b)\nb = $(a)\nv := $(a)\n", &shell, &Seen::default()).unwrap_err();
    assert!(found.contains("Recursive variable 'a' references itself (eventually)"), "{found}");
    let found = load("f = $(f,x$(1))\nv := $(f,1)\n", &shell, &Seen::default()).unwrap_err();
    assert!(found.contains("Too deep recursive expansion"), "{found}");
    let found = load(
        "d = $(1)$(1)\nv := $(d,$(d,$(d,$(d,$(d,$(d,$(d,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)))))))\n",
        &shell,
        &Seen::default(),
    );
    assert!(found.is_ok(), "{found:?}");
}

#[test]
fn variables_that_a_tree_needs_are_remembered_once() {
    let env = Env::new(|name| (name != "UNSET").then(|| name.to_lowercase()));
    let text = "v := $(ONE)\nw := $(UNSET)$(TWO)$(ONE)\nlate = $(NEVER)\nconfig E\n\tstring\n\toption env=\"THREE\"\n";
    Tree::load("Kconfig", &MemoryFiles::new([("Kconfig", text)]), &env).unwrap();
    let used: Vec<String> = env.used().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(used, ["ONE=one", "TWO=two", "THREE=three"]);
}

#[test]
fn sourcing_a_file_twice_is_up_to_the_dialect() {
    use kconfig::Dialect;
    let files = MemoryFiles::new([("Kconfig", "source \"a\"\nsource \"a\"\n"), ("a", "config A\n\tbool\n")]);
    let load = |dialect| Tree::load("Kconfig", &files, &Env::empty().with_dialect(dialect));
    assert!(load(Dialect::EXTENDED).is_ok() && load(Dialect::linux(6, 12)).is_ok());
    insta::assert_snapshot!("sourced_twice", load(Dialect::LATEST).unwrap_err().render(true));
}
