//! An archive of the repository says what it is of.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then_some(output.stdout)
}

#[test]
fn an_archive_knows_its_commit() {
    // Outside of a repository there is nothing to archive.
    let Some(head) = git(&["rev-parse", "HEAD"]) else {
        return;
    };
    let head = String::from_utf8(head).unwrap();
    let archive = git(&["archive", "HEAD", "commit.txt"]).unwrap();
    let text = String::from_utf8_lossy(&archive);
    assert!(
        text.contains(head.trim()),
        "commit.txt of the archive does not name {head}"
    );
}
