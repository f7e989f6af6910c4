//! deploy/crds holds what the types say; `BLESS=1 cargo test -p api --test crds` writes it anew.

use std::{fs, path::Path};

#[test]
fn the_definitions_in_deploy_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    for crd in api::crd::all() {
        let name = crd.metadata.name.clone().unwrap();
        let text = serde_saphyr::to_string(&crd).unwrap();
        let file = folder.join(format!("{name}.yaml"));
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == text,
            "{} is out of date; run BLESS=1 cargo test -p api --test crds",
            file.display()
        );
    }
}
