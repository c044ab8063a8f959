//! Words of an output that differ from run to run, and what stands for them in a snapshot. Pure.

/// One line with everything in it that differs from run to run replaced.
pub(crate) fn redact_line(line: &str) -> String {
    let mut before = "";
    let mut words = Vec::new();
    for word in line.split(' ') {
        // The elapsed minutes.
        let placed = before == "for" && word.parse::<u32>().is_ok();
        words.push(if placed { "NUMBER".to_owned() } else { redact_word(word) });
        before = word;
    }
    words.join(" ")
}

fn hide_digests(word: &str) -> String {
    let parts = word.split(|c: char| !c.is_ascii_alphanumeric());
    let digests = parts.filter(|part| part.len() == 64 && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    digests.fold(word.to_owned(), |word, digest| word.replace(digest, "DIGEST"))
}

/// Process ids, times and digests. Not addresses: those are the test's own.
fn redact_word(word: &str) -> String {
    let word = &hide_digests(word);
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let digits = !core.is_empty() && core.bytes().all(|byte| byte.is_ascii_digit());
    let name = if let Some((start, _)) = word.split_once("pid=") {
        return format!("{start}PID");
    } else if digits && core.len() > 2 && core != "6443" {
        "NUMBER"
    } else if core.len() > 1 && core.ends_with('s') && core.trim_end_matches('s').parse::<f64>().is_ok() {
        "TIME"
    } else if core.len() == 10 && core.bytes().filter(|byte| *byte == b'-').count() == 2 {
        "DATE"
    } else if core.ends_with('Z') && core.contains(':') {
        "TIME"
    } else {
        return word.to_owned();
    };
    word.replace(core, name)
}
