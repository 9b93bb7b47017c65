//! The manifest of `docs/packages.md` is one.

use axe_package::{Manifest, Package};
use std::collections::BTreeMap;

#[test]
fn the_manifest_of_the_page_is_valid() {
    let page = include_str!("../../../docs/packages.md");
    let text = page.split("```json").nth(1).unwrap();
    let text = text.split("```").next().unwrap();
    let manifest: Manifest = serde_json::from_str(text).unwrap();
    let files = BTreeMap::from([("code.ptx".to_string(), b".version 8.0".to_vec())]);
    let package = Package::new(manifest, files).unwrap();
    assert_eq!(package.manifest().symbols[0].name, "n");
}
