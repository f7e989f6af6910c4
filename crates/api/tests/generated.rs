//! Files made from the types hold what the types say; `BLESS=1 cargo test -p api --test generated` writes them anew.

#![allow(clippy::unwrap_used)] // the helper below is a test too

use std::{fs, path::Path};

/// Compares a file of the repository with what it should hold, or writes it when blessing.
fn check(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{file} is out of date; run BLESS=1 cargo test -p api --test generated"
    );
}

#[test]
fn the_definitions_in_deploy_are_those_of_the_types() {
    for crd in api::crd::all() {
        let name = crd.metadata.name.clone().unwrap();
        check(
            &format!("deploy/crds/{name}.yaml"),
            &serde_saphyr::to_string(&crd).unwrap(),
        );
    }
}

#[test]
fn the_reference_pages_are_those_of_the_types() {
    for page in api::reference::pages().unwrap() {
        check(&format!("docs/reference/{}.md", page.name), &page.text);
    }
}
