//! Names, label keys and label values, after RFC 1123 and the Kubernetes conventions. A refusal is a sentence that
//! says what would be right.

use crate::kind::NameRule;

const LABEL: &str = "must be a DNS label: lower-case letters, digits and '-', beginning and ending with a letter or \
    digit, at most 63 characters";
const SUBDOMAIN: &str = "must be a DNS subdomain: lower-case letters, digits, '-' and '.', every part between dots \
    beginning and ending with a letter or digit, at most 253 characters";

/// A name as `rule` wants it.
pub fn name_by_rule(rule: NameRule, name: &str) -> Result<(), String> {
    match rule {
        NameRule::Label => dns_label(name),
        NameRule::Subdomain => dns_subdomain(name),
        NameRule::PathSegment => path_segment(name),
    }
}

/// An RFC 1123 label: `patch-web`.
pub fn dns_label(name: &str) -> Result<(), String> {
    if is_label(name) && name.len() <= 63 {
        Ok(())
    } else {
        Err(LABEL.into())
    }
}

/// An RFC 1123 subdomain: `web03.example.com`.
pub fn dns_subdomain(name: &str) -> Result<(), String> {
    if name.len() <= 253 && name.split('.').all(is_label) {
        Ok(())
    } else {
        Err(SUBDOMAIN.into())
    }
}

fn is_label(part: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    part.bytes().all(inner) && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
}

/// Anything that can stand between two slashes of a URL.
pub fn path_segment(name: &str) -> Result<(), String> {
    match name {
        "" => Err("must not be empty".into()),
        "." | ".." => Err("must not be '.' or '..'".into()),
        _ if name.contains(['/', '%']) => Err("must not contain '/' or '%'".into()),
        _ => Ok(()),
    }
}

/// The key of a label or annotation, or the name of a finalizer: `role` or `prow.windows/role`.
pub fn label_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|p| dns_subdomain(p).is_err()) {
        return Err("the part before '/' must be a DNS subdomain, such as example.com".into());
    }
    if name.is_empty() || !is_word(name) {
        return Err(
            "must be letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, at \
            most 63 characters, optionally after a domain and '/'"
                .into(),
        );
    }
    Ok(())
}

/// The value of a label; may be empty.
pub fn label_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_word(value) {
        return Ok(());
    }
    Err("must be letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, at most 63 characters"
        .into())
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// No vowels and nothing that looks like another character, as in Kubernetes' generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;

/// A name from `metadata.generateName`: the base, cut so that the whole fits a DNS label, and five random characters.
/// `random` should be uniform over all 64 bits.
pub fn generate_name(base: &str, mut random: u64) -> String {
    let end = base
        .char_indices()
        .map(|(i, c)| i + c.len_utf8())
        .take_while(|end| *end <= 63 - SUFFIX)
        .last();
    let mut name = base[..end.unwrap_or(0)].to_owned();
    for _ in 0..SUFFIX {
        name.push(char::from(ALPHABET[(random % 27) as usize]));
        random /= 27;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains() {
        for good in ["a", "web-1", "0", &"x".repeat(63)] {
            dns_label(good).unwrap();
            dns_subdomain(good).unwrap();
        }
        for bad in ["", "-a", "a-", "A", "a_b", "ä", "a.b", &"x".repeat(64)] {
            assert!(dns_label(bad).is_err(), "{bad}");
        }
        dns_subdomain("a.b-c.9").unwrap();
        for bad in ["", ".", "a.", ".a", "a..b", "a.-b", &"x.".repeat(127)] {
            assert!(dns_subdomain(bad).is_err(), "{bad}");
        }
        dns_subdomain(&format!("{}x", "x.".repeat(126))).unwrap(); // exactly 253
    }

    #[test]
    fn label_keys_and_values() {
        for good in ["role", "prow.windows/role", "A_b.C-9", &"k".repeat(63)] {
            label_key(good).unwrap();
        }
        for bad in [
            "",
            "/x",
            "x/",
            "a/b/c",
            "-x",
            "x y",
            "Bad_Domain/x",
            &"k".repeat(64),
        ] {
            assert!(label_key(bad).is_err(), "{bad}");
        }
        label_value("").unwrap();
        assert!(label_value("a b").is_err() && label_value("-").is_err());
    }

    #[test]
    fn generated_names_fit_a_label_whatever_the_base() {
        assert_eq!(generate_name("web-", 0), "web-bbbbb");
        assert_ne!(generate_name("web-", 1), generate_name("web-", 27));
        for base in ["", &"y".repeat(200), &"ä".repeat(60)] {
            let name = generate_name(base, u64::MAX);
            assert!(name.len() <= 63 && name.len() >= 5, "{name}");
        }
        dns_label(&generate_name(&"y".repeat(200), 12_345_678_901)).unwrap();
    }
}
