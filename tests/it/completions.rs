//! Completion scripts: the shells take them, and bash completes commands, options and values with
//! them.

use assert_cmd::Command;

use crate::cli_support::{TestEnv, finish};

/// What bash offers for this line, where the word under the cursor is the last one, with the script
/// that `turnup completions bash` prints.
fn complete(test_env: &TestEnv, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let program = format!(
        "set -eu\nsource ./turnup.bash\nspec=$(complete -p turnup)\nfunction_name=${{spec#*-F }}\nfunction_name=${{function_name%% *}}\n\
         COMP_WORDS=({})\nCOMP_CWORD={last}\n$function_name turnup \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{}]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        last - 1,
    );
    let outcome =
        finish(Command::new("bash").args(["--noprofile", "--norc", "-c", &program]).current_dir(test_env.dir.path()));
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{words:?}: {program}");
    outcome.out.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let test_env = TestEnv::new("");
    test_env.write("turnup.bash", &test_env.ok(&["completions", "bash"]).out);
    let syntax = finish(Command::new("bash").args(["-n", "turnup.bash"]).current_dir(test_env.dir.path()));
    assert_eq!((syntax.code, syntax.err.as_str()), (0, ""), "bash refuses the script");
    assert_eq!(complete(&test_env, &["turnup", "supp"]), ["support-bundle"]);
    assert_eq!(complete(&test_env, &["turnup", "config", "why-"]), ["why-not"]);
    assert_eq!(complete(&test_env, &["turnup", "up", "--max-f"]), ["--max-failures"]);
    assert_eq!(complete(&test_env, &["turnup", "status", "--output", "j"]), ["json"]);
    let all = complete(&test_env, &["turnup", ""]);
    assert!(all.contains(&"up".to_owned()) && !all.contains(&"node".to_owned()), "only what help shows: {all:?}");
}

#[test]
fn scripts_of_all_shells_are_written_where_asked_and_read_nothing_of_the_directory() {
    let test_env = TestEnv::new("");
    // A configuration that every other command refuses.
    test_env.write(".config.json", "{");
    for (shell, sign) in [("bash", "_turnup"), ("zsh", "#compdef turnup"), ("fish", "complete -c turnup")] {
        let script = test_env.ok(&["completions", shell]).out;
        assert!(script.contains(sign), "{shell}: {script}");
        let path = format!("share/{shell}/turnup");
        let said = test_env.ok(&["completions", shell, "--to", &path]).out;
        assert_eq!(test_env.read(&path).trim_end(), script.trim_end(), "{shell}");
        assert!(said.contains(&path), "{said}");
    }
    test_env.write("file", "");
    let refused = test_env.ends(3, &["completions", "bash", "--to", "file/turnup"]).err;
    assert!(refused.contains("cannot write completions to file/turnup"), "{refused}");
    assert_eq!(test_env.run(&["completions", "tcsh"]).code, 2);
}
