//! What a path names: a resource of the API, or something beside it.

use std::borrow::Cow;

/// A path below `/api/v1` or `/apis/<group>/<version>` that names a kind. Fields that are not in it are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath<'a> {
    pub group: Cow<'a, str>,
    pub version: Cow<'a, str>,
    pub plural: Cow<'a, str>,
    pub namespace: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub subresource: Cow<'a, str>,
}

impl<'a> ResourcePath<'a> {
    /// `None` if the path names no kind: discovery, health, metrics.
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/').map(decoded);
        let group = match parts.next()?.as_ref() {
            "api" => Cow::Borrowed(""),
            "apis" => parts.next()?,
            _ => return None,
        };
        let version = parts.next()?;
        let rest: Vec<_> = parts.collect();
        let namespaced = rest.first().is_some_and(|first| first == "namespaces");
        // `namespaces/x/status` is about the Namespace itself, `namespaces/x/secrets` about what is in it.
        let own = group.is_empty()
            && (rest.len() < 3 || (rest.len() == 3 && matches!(&*rest[2], "status" | "finalize")));
        let (namespace, rest) = if namespaced && !own && rest.len() >= 3 {
            (rest[1].clone(), &rest[2..])
        } else {
            (Cow::Borrowed(""), &rest[..])
        };
        let part = |i: usize| rest.get(i).cloned().unwrap_or_default();
        let plural = part(0);
        if plural.is_empty() || rest.len() > 3 || rest[1..].iter().any(|p| p.is_empty()) {
            return None;
        }
        Some(Self {
            group,
            version,
            plural,
            namespace,
            name: part(1),
            subresource: part(2),
        })
    }
}

/// Undoes percent-encoding; what cannot be decoded stays as it is and names nothing.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let code = (bytes[i] == b'%')
            .then(|| text.get(i + 1..i + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(code.unwrap_or(bytes[i]));
        i += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Option<[String; 6]> {
        let p = ResourcePath::parse(path)?;
        Some([p.group, p.version, p.plural, p.namespace, p.name, p.subresource].map(Cow::into_owned))
    }

    #[test]
    fn every_form_of_a_resource_path() {
        for (path, want) in [
            ("/api/v1/namespaces", ["", "v1", "namespaces", "", "", ""]),
            ("/api/v1/namespaces/ops", ["", "v1", "namespaces", "", "ops", ""]),
            (
                "/api/v1/namespaces/ops/finalize",
                ["", "v1", "namespaces", "", "ops", "finalize"],
            ),
            (
                "/api/v1/namespaces/ops/secrets",
                ["", "v1", "secrets", "ops", "", ""],
            ),
            (
                "/api/v1/namespaces/ops/secrets/a%3Ab",
                ["", "v1", "secrets", "ops", "a:b", ""],
            ),
            ("/api/v1/secrets", ["", "v1", "secrets", "", "", ""]),
            (
                "/apis/prow.windows/v1/namespaces/ops/jobs/x/status",
                ["prow.windows", "v1", "jobs", "ops", "x", "status"],
            ),
            (
                "/apis/prow.windows/v1/nodes/n1",
                ["prow.windows", "v1", "nodes", "", "n1", ""],
            ),
        ] {
            assert_eq!(parts(path).unwrap(), want.map(str::to_owned), "{path}");
        }
    }

    #[test]
    fn what_names_no_kind() {
        for path in [
            "/",
            "/api",
            "/api/v1",
            "/api/v1/",
            "/apis",
            "/apis/prow.windows",
            "/apis/prow.windows/v1",
            "/healthz",
            "/api/v1/namespaces/ops/secrets/",
            "/api/v1/namespaces/ops/secrets/a/b/c",
            "/logs/v1/namespaces/x",
        ] {
            assert_eq!(parts(path), None, "{path}");
        }
    }
}
