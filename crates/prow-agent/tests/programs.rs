//! Where the programs under test are.

/// A program of ours: beside this one, or where cargo has it. Those of a Windows build do not run where they were built.
pub fn program(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let beside = if folder.ends_with("deps") {
        folder.parent().unwrap()
    } else {
        folder
    };
    let program = beside.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.exists(),
        "{} is missing: build it first",
        program.display()
    );
    program.to_str().unwrap().to_owned()
}
