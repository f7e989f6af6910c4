//! Request bodies to JSON values, with what a strict server must notice on the way: keys written twice, nesting too
//! deep, and where in the text a body stops being JSON or YAML.

mod value;

use crate::{negotiate::Encoding, protobuf, status::Status};
use serde::de::DeserializeSeed;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy};
use value::Seed;

/// Nesting beyond this is refused: no kind comes near it, and recursive code must not run out of stack.
pub const MAX_DEPTH: usize = 64;

/// A decoded body.
#[derive(Debug, PartialEq)]
pub struct Body {
    /// The value; of a key written twice the last value counts, as in Kubernetes.
    pub value: Value,
    /// What strict validation refuses: `duplicate field "spec.x"`.
    pub strict: Vec<String>,
}

/// Why a body is no object. A retry with the same body cannot help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no JSON.
    #[error("the body is not JSON: {0}")]
    Json(serde_json::Error),
    /// The text is no YAML.
    #[error("the body is not YAML: {0}")]
    Yaml(String),
    /// The bytes are no protobuf message of a kind that is known here.
    #[error("the body is not a protobuf object: {0}")]
    Protobuf(#[from] protobuf::Error),
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Status::bad_request(error.to_string())
    }
}

/// Decodes a body.
pub fn decode(body: &[u8], encoding: Encoding) -> Result<Body, Error> {
    match encoding {
        Encoding::Json => json(body),
        Encoding::Yaml => yaml(body),
        Encoding::Protobuf => Ok(Body {
            value: protobuf::decode(body)?,
            strict: Vec::new(),
        }),
    }
}

/// Decodes a JSON body; an error names line and column.
pub fn json(body: &[u8]) -> Result<Body, Error> {
    let mut duplicates = Vec::new();
    let mut text = serde_json::Deserializer::from_slice(body);
    let value = Seed::root(&mut duplicates)
        .deserialize(&mut text)
        .map_err(Error::Json)?;
    text.end().map_err(Error::Json)?;
    Ok(Body {
        value,
        strict: duplicates,
    })
}

/// Decodes a YAML body (one document); an error names line and column.
pub fn yaml(body: &[u8]) -> Result<Body, Error> {
    let text = std::str::from_utf8(body)
        .map_err(|e| Error::Yaml(format!("byte {} is not UTF-8 text", e.valid_up_to() + 1)))?;
    let mut duplicates = Vec::new();
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Merge,
        with_snippet: false,
        // A little more than this module allows, so that the error is the same as for JSON.
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH + 8, flow_nesting_limit: MAX_DEPTH + 8 },
    };
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, options, |d| {
        Seed::root(&mut duplicates).deserialize(d)
    })
    .map_err(|e| Error::Yaml(describe(&e)))?;
    Ok(Body {
        value,
        strict: duplicates,
    })
}

/// The parser's words, with the place in front if they do not say it.
fn describe(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    match error.location() {
        Some(at) if !text.contains("line ") => format!("{text} at line {} column {}", at.line(), at.column()),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dup(encoding: Encoding, text: &str) -> Vec<String> {
        decode(text.as_bytes(), encoding).unwrap().strict
    }

    #[test]
    fn a_key_written_twice_is_reported_with_its_path_and_the_last_one_counts() {
        let text = r#"{"spec":{"x":1,"steps":[{"a":1},{"b":1,"b":2}],"x":2}}"#;
        let body = json(text.as_bytes()).unwrap();
        assert_eq!(
            body.strict,
            [
                r#"duplicate field "spec.steps[1].b""#,
                r#"duplicate field "spec.x""#
            ]
        );
        assert_eq!(
            body.value,
            json!({"spec": {"x": 2, "steps": [{"a": 1}, {"b": 2}]}})
        );
    }

    #[test]
    fn yaml_and_json_report_duplicates_alike() {
        let yaml = "spec:\n  x: 1\n  x: 2\n";
        assert_eq!(
            dup(Encoding::Yaml, yaml),
            dup(Encoding::Json, r#"{"spec":{"x":1,"x":2}}"#)
        );
        assert_eq!(dup(Encoding::Yaml, "a: 1\n'a': 2\n"), [r#"duplicate field "a""#]);
    }

    #[test]
    fn json_errors_say_where() {
        let error = json(b"{\"a\": 1,\n \"b\" 2}").unwrap_err().to_string();
        assert!(
            error.contains("not JSON") && error.contains("line 2 column 6"),
            "{error}"
        );
        let error = json(b"{} {}").unwrap_err().to_string();
        assert!(
            error.contains("trailing characters at line 1 column 4"),
            "{error}"
        );
        assert!(json(b"").unwrap_err().to_string().contains("line 1 column 0"));
    }

    #[test]
    fn yaml_errors_say_where() {
        let error = yaml(b"kind: Job\nspec:\n  steps: [a, b\nx: y\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("not YAML") && error.contains("line 4"), "{error}");
        assert!(error.contains("column"), "{error}");
        let error = yaml(b"a: b: c\n").unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
        assert!(yaml(b"a: \xff").unwrap_err().to_string().contains("byte 4"));
    }

    #[test]
    fn several_yaml_documents_are_refused() {
        assert!(yaml(b"a: 1\n---\nb: 2\n").is_err());
        assert_eq!(yaml(b"---\na: 1\n").unwrap().value, json!({"a": 1}));
    }

    #[test]
    fn yaml_scalars_become_what_json_has() {
        let body = yaml(
            b"i: 7\nf: 1.5\nb: true\nn: ~\ns: 'true'\nt: 2026-12-24\n80: web\nbig: 18446744073709551615\n",
        );
        let want = json!({"i": 7, "f": 1.5, "b": true, "n": null, "s": "true", "t": "2026-12-24", "80": "web",
            "big": u64::MAX});
        assert_eq!(body.unwrap().value, want);
        assert!(yaml(b"x: .inf\n").is_err());
    }

    #[test]
    fn yaml_anchors_and_merges_work_but_bombs_do_not() {
        let body = yaml(b"base: &b {x: 1, y: 2}\nother:\n  <<: *b\n  y: 3\n").unwrap();
        assert_eq!(body.value["other"], json!({"x": 1, "y": 3}));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let refs = vec![format!("*a{}", i - 1); 10].join(", ");
            bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
        }
        assert!(yaml(bomb.as_bytes()).is_err());
    }

    #[test]
    fn nesting_is_bounded_in_both_formats() {
        let fits = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        for encoding in [Encoding::Json, Encoding::Yaml] {
            assert!(decode(fits.as_bytes(), encoding).is_ok());
            let error = decode(deep.as_bytes(), encoding).unwrap_err().to_string();
            assert!(error.contains("nested more than 64 levels deep"), "{error}");
        }
        let very_deep = "[".repeat(1_000_000);
        assert!(json(very_deep.as_bytes()).is_err());
        assert!(yaml(very_deep.as_bytes()).is_err());
    }
}
