//! Which objects are meant: `TYPE[,TYPE] [NAME…]`, `TYPE/NAME…`, selectors, one namespace or all.

use crate::{
    kinds::{Kind, Kinds},
    outcome::usage,
    session::Session,
    watch::encode,
};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// Which objects are meant.
#[derive(Args, Debug, Default, Clone)]
pub struct Selection {
    /// `TYPE[,TYPE] [NAME…]` or `TYPE/NAME…`
    #[arg(value_name = "TYPE [NAME]")]
    pub what: Vec<String>,
    /// Only objects with these labels, such as `role=web,tier!=test`
    #[arg(short = 'l', long = "selector", value_name = "LABELS")]
    pub selector: Option<String>,
    /// Only objects with these fields, such as `spec.nodeName=web01`
    #[arg(long, value_name = "FIELDS")]
    pub field_selector: Option<String>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

/// A kind, and which objects of it; all that match the selectors where no name is given.
#[derive(Debug)]
pub struct Chosen<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// Their names.
    pub names: Vec<String>,
}

impl Selection {
    /// Reads the positional words.
    pub fn chosen<'a>(&self, kinds: &'a Kinds) -> Result<Vec<Chosen<'a>>> {
        let Some(first) = self.what.first() else {
            return Err(usage("name a kind, such as jobs or nodes, or KIND/NAME"));
        };
        let mut chosen: Vec<Chosen<'a>> = Vec::new();
        if first.contains('/') {
            for word in &self.what {
                let Some((kind, name)) = word.split_once('/') else {
                    return Err(usage(format!("{word}: write KIND/NAME, as in the words before")));
                };
                let kind = kinds.named(kind)?;
                match chosen.iter_mut().find(|c| c.kind == kind) {
                    Some(known) => known.names.push(name.to_owned()),
                    None => chosen.push(Chosen {
                        kind,
                        names: vec![name.to_owned()],
                    }),
                }
            }
        } else {
            let names: Vec<String> = self.what[1..].to_vec();
            if let Some(word) = names.iter().find(|name| name.contains('/')) {
                return Err(usage(format!(
                    "{word}: either TYPE NAME… or TYPE/NAME…, not both"
                )));
            }
            for kind in kinds.listed(first)? {
                chosen.push(Chosen {
                    kind,
                    names: names.clone(),
                });
            }
        }
        let named = chosen.iter().any(|c| !c.names.is_empty());
        if named && (self.selector.is_some() || self.field_selector.is_some()) {
            return Err(usage(
                "name objects or select them with -l or --field-selector, not both",
            ));
        }
        if named && self.all_namespaces {
            return Err(usage(
                "an object cannot be named across all namespaces: give its namespace with -n",
            ));
        }
        Ok(chosen)
    }

    /// The namespace of collections, `None` for all.
    pub fn namespace<'s>(&self, session: &'s Session) -> Option<&'s str> {
        (!self.all_namespaces).then_some(session.namespace.as_str())
    }

    /// Path of a collection with the selectors in its query.
    pub fn path(&self, session: &Session, kind: &Kind) -> String {
        with_query(
            kind.path(self.namespace(session)),
            [
                ("labelSelector", self.selector.as_deref()),
                ("fieldSelector", self.field_selector.as_deref()),
            ],
        )
    }

    /// The objects themselves, as they are now.
    pub async fn fetch(&self, session: &Session, chosen: &Chosen<'_>) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        if chosen.names.is_empty() {
            let mut list = session.get(&self.path(session, chosen.kind)).await?;
            if let Value::Array(items) = list["items"].take() {
                for mut item in items {
                    // lists leave out what all their items have
                    item["apiVersion"] = chosen.kind.api_version().into();
                    item["kind"] = chosen.kind.kind.clone().into();
                    objects.push(item);
                }
            }
        }
        for name in &chosen.names {
            objects.push(
                session
                    .get(&chosen.kind.object_path(&session.namespace, name))
                    .await?,
            );
        }
        Ok(objects)
    }
}

/// `path` with those query parameters that have a value.
pub fn with_query<'a>(path: String, params: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let pairs: Vec<String> = params
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name}={}", encode(value))))
        .collect();
    if pairs.is_empty() {
        path
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_with_a_value_get_into_the_query() {
        assert_eq!(with_query("/p".into(), [("a", None), ("b", None)]), "/p");
        assert_eq!(
            with_query("/p".into(), [("a", Some("x=1")), ("b", None)]),
            "/p?a=x%3D1"
        );
    }
}
