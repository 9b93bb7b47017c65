//! The pages of the reference that targets give are those of `docs/reference`; `AXE_WRITE_DOCS=1` writes them.

use std::fs;
use std::path::Path;

#[test]
fn pages_of_targets_are_current() {
    axe_targets::register();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let mut pages = axe_passes::target::documentation();
    assert!(pages.iter().any(|(name, _)| *name == "nvidia"));
    pages.push(("pipelines", axe_passes::pipeline::documentation()));
    for (name, page) in pages {
        let path = folder.join(format!("{name}.md"));
        if std::env::var_os("AXE_WRITE_DOCS").is_some() {
            fs::write(&path, &page).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            written,
            page,
            "{} is out of date: run 'make docs'",
            path.display()
        );
    }
}
