//! Every command of docs/layouts.md that shows an answer gives that answer.
#![cfg(all(feature = "cli", unix))]

use std::path::Path;
use std::process::Command;

/// The commands and the answers below them, in blocks that are indented by four.
fn examples(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = false;
    let mut continued = false;
    for line in text.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            (open, continued) = (false, false);
            continue;
        };
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), String::new()));
            open = true;
            continued = true;
        } else if let Some((command, answer)) = found.last_mut().filter(|_| open) {
            // A command goes on after a backslash, and before a pipe.
            if command.ends_with('\\') || continued && line.trim_start().starts_with('|') {
                command.push('\n');
                command.push_str(line);
            } else {
                answer.push_str(line);
                answer.push('\n');
            }
            continued = false;
        }
    }
    found
}

#[test]
fn commands_answer_as_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/layouts.md");
    let text = std::fs::read_to_string(page).unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_axe-layout"))
        .parent()
        .unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let examples = examples(&text);
    assert!(examples.len() >= 15, "{}", examples.len());
    for (command, want) in examples {
        // A pipe at the start of a line belongs to the line before it.
        let script = command.replace("\\\n", " ").replace("\n", " ");
        let run = Command::new("/bin/sh")
            .args(["-c", &script])
            .env("PATH", &path)
            .output();
        let run = run.unwrap();
        let got = String::from_utf8_lossy(&run.stdout).into_owned();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{command}\n{errors}");
        // Some answers are left to the reader's terminal.
        assert!(
            want.is_empty() || got == want,
            "{command}\nexpected\n{want}got\n{got}{errors}"
        );
    }
}
