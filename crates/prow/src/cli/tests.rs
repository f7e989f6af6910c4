//! The help of every verb, as users read it: `crates/prow/help` holds it, so that a change is seen and read as prose.
//! `BLESS=1 cargo test -p prow help` writes it anew.

#![allow(clippy::unwrap_used)]

use super::Cli;
use clap::CommandFactory;
use std::{collections::BTreeSet, fs, path::Path};

/// Calls `f` with the name and help of a command and all below it.
fn each(command: &mut clap::Command, name: &str, f: &mut impl FnMut(&str, String)) {
    // the shared flags are the same everywhere and shown once, at the top
    let shared = ["kubeconfig", "context", "namespace", "log"];
    let mut shown = command.clone().term_width(100);
    if name != "prow" {
        let global = |a: &clap::Arg| shared.contains(&a.get_id().as_str());
        shown = shown.mut_args(|a| if global(&a) { a.hide(true) } else { a });
    }
    f(
        name,
        shown
            .bin_name(name.replace('-', " "))
            .render_long_help()
            .to_string(),
    );
    let below = command.get_subcommands_mut().filter(|c| c.get_name() != "help");
    for sub in below {
        let path = format!("{name}-{}", sub.get_name());
        each(sub, &path, f);
    }
}

#[test]
fn help_is_what_was_read_and_found_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("help");
    let bless = std::env::var_os("BLESS").is_some();
    if bless {
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
    }
    let mut command = Cli::command();
    command.build();
    let mut known = BTreeSet::new();
    each(&mut command, "prow", &mut |name, help| {
        let file = folder.join(format!("{name}.txt"));
        if bless {
            fs::write(&file, &help).unwrap();
        }
        let read = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            read, help,
            "{name}: read it, then BLESS=1 cargo test -p prow help"
        );
        known.insert(file);
    });
    let there: BTreeSet<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(there, known, "files of verbs that are gone");
}

#[test]
fn every_flag_says_what_it_does_in_words_without_a_full_stop() {
    let mut command = Cli::command();
    command.build();
    let mut all = vec![command];
    while let Some(command) = all.pop() {
        for arg in command.get_arguments().filter(|a| !a.is_hide_set()) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let at = format!("{} {}: {help}", command.get_name(), arg.get_id());
            assert!(help.len() > 3 && !help.ends_with('.'), "{at}");
        }
        all.extend(
            command
                .get_subcommands()
                .filter(|c| c.get_name() != "help")
                .cloned(),
        );
    }
}
