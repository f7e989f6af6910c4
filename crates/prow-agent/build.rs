//! Gives the Windows program its manifest and version resource.

use std::{error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=windows");
    if std::env::var_os("CARGO_CFG_WINDOWS").is_none() {
        return Ok(());
    }
    let version = env!("CARGO_PKG_VERSION");
    // Windows counts in four numbers; what stands behind a dash is in the text alone.
    let numbers = version
        .split(['-', '+'])
        .next()
        .unwrap_or(version)
        .replace('.', ",")
        + ",0";
    // Resource compilers differ in how a text is given to them, so it is put in here.
    let text = fs::read_to_string("windows/prow-agent.rc")?;
    let text = text.replace("@NUMBERS@", &numbers).replace("@VERSION@", version);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    fs::write(out.join("prow-agent.rc"), text)?;
    fs::copy("windows/prow-agent.manifest", out.join("prow-agent.manifest"))?;
    let compiled =
        embed_resource::compile_for(out.join("prow-agent.rc"), ["prow-agent"], embed_resource::NONE);
    Ok(compiled.manifest_required()?)
}
