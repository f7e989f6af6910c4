//! Manifests: YAML or JSON, one or many documents, from files, folders or stdin.

use crate::outcome::usage;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::{
    io::Read,
    path::{Path, PathBuf},
};

/// Which files to read.
#[derive(Args, Debug, Default, Clone)]
pub struct Files {
    /// File or folder with manifests; `-` reads stdin. May be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read folders below the folder too
    #[arg(short = 'R', long)]
    pub recursive: bool,
}

/// One object of a file, and where it stands.
#[derive(Debug)]
pub struct Document {
    /// The object.
    pub object: Value,
    /// The file, for messages.
    pub source: String,
}

impl Document {
    /// `metadata.name`, or empty.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }
}

impl Files {
    /// All objects, in the order of files and documents; Lists are taken apart.
    pub fn read(&self) -> Result<Vec<Document>> {
        if self.files.is_empty() {
            return Err(usage("name a file with -f"));
        }
        let mut documents = Vec::new();
        for path in &self.files {
            if path.as_os_str() == "-" {
                let mut text = String::new();
                std::io::stdin()
                    .read_to_string(&mut text)
                    .context("stdin cannot be read")?;
                documents.extend(parse(&text, "stdin")?);
                continue;
            }
            for file in manifests(path, self.recursive)? {
                let text = std::fs::read_to_string(&file)
                    .with_context(|| format!("{} cannot be read", file.display()))?;
                documents.extend(parse(&text, &file.display().to_string())?);
            }
        }
        Ok(documents)
    }
}

fn manifests(path: &Path, recursive: bool) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = std::fs::read_dir(path)
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|e| e.path()))
                .collect::<std::io::Result<Vec<_>>>()
        })
        .with_context(|| format!("{} cannot be read", path.display()))?;
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            if recursive {
                files.extend(manifests(&entry, true)?);
            }
        } else if entry
            .extension()
            .is_some_and(|e| e == "yaml" || e == "yml" || e == "json")
        {
            files.push(entry);
        }
    }
    Ok(files)
}

/// The objects in a text of YAML (JSON is YAML too).
pub fn parse(text: &str, source: &str) -> Result<Vec<Document>> {
    let values: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| anyhow::anyhow!("{source}: {error}"))?;
    let mut documents = Vec::new();
    for value in values {
        match value {
            Value::Null => {}
            Value::Object(ref map) if map.get("kind").is_some_and(|k| k == "List") => {
                for item in value["items"].as_array().into_iter().flatten() {
                    documents.push(Document {
                        object: item.clone(),
                        source: source.to_owned(),
                    });
                }
            }
            Value::Object(_) => documents.push(Document {
                object: value,
                source: source.to_owned(),
            }),
            _ => bail!(
                "{source}: a document is no object: a manifest starts with apiVersion, kind and metadata"
            ),
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let text = "---\nkind: A\n---\n# nothing\n---\nkind: List\nitems: [{kind: B}, {kind: C}]\n";
        let kinds: Vec<_> = parse(text, "x")
            .unwrap()
            .iter()
            .map(|d| d.object["kind"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds, ["A", "B", "C"]);
    }

    #[test]
    fn json_is_read_too() {
        assert_eq!(
            parse(r#"{"kind": "A", "metadata": {"name": "n"}}"#, "x").unwrap()[0].name(),
            "n"
        );
    }

    #[test]
    fn what_is_no_manifest_is_refused_with_its_file() {
        assert!(
            parse("just text", "a.yaml")
                .unwrap_err()
                .to_string()
                .starts_with("a.yaml: ")
        );
        let error = parse("a: [1", "b.yaml").unwrap_err().to_string();
        assert!(error.starts_with("b.yaml: ") && error.contains("line"), "{error}");
    }

    #[test]
    fn folders_are_read_in_order_and_only_their_manifests() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("b.yaml", "kind: B"), ("a.yml", "kind: A"), ("notes.txt", "no")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/c.json"), r#"{"kind": "C"}"#).unwrap();
        let read = |recursive| {
            Files {
                files: vec![dir.path().into()],
                recursive,
            }
            .read()
            .unwrap()
            .len()
        };
        assert_eq!(read(false), 2);
        assert_eq!(read(true), 3);
    }
}
