//! Query parameters.

use machinery::status::Status;
use std::borrow::Cow;

/// The parameters of a request, in their order.
#[derive(Debug, Default)]
pub(crate) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(crate) fn parse(query: Option<&'a str>) -> Self {
        Self(
            query
                .map(|q| form_urlencoded::parse(q.as_bytes()).collect())
                .unwrap_or_default(),
        )
    }

    /// The first value of a parameter; `None` if it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_ref())
            .filter(|value| !value.is_empty())
    }

    /// A flag: absent is false, `?watch` alone is true, as in Kubernetes.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let value = self
            .0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_ref());
        value.is_some_and(|value| !matches!(value, "false" | "0" | "False" | "FALSE"))
    }

    /// A whole number, not negative.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                Status::bad_request(format!(
                    "query parameter {name}: \"{text}\" is no whole number, write one such as 500"
                ))
            })
        };
        self.get(name).map(parse).transpose()
    }
}
