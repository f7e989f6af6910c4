//! Media types: what a body is (`Content-Type`), what the client wants back (`Accept`), how strictly fields are checked.

use crate::status::Status;

/// What a request body is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`, also when no type is given.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`: what kubectl sends for core kinds.
    Protobuf,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Encoding {
    /// Reads a `Content-Type` header; anything unknown is refused with 415.
    pub fn of_content_type(content_type: Option<&str>) -> Result<Self, Status> {
        let Some(header) = content_type else {
            return Ok(Encoding::Json);
        };
        match header
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
            .as_str()
        {
            "" | JSON => Ok(Encoding::Json),
            YAML | "application/x-yaml" | "text/yaml" => Ok(Encoding::Yaml),
            PROTOBUF => Ok(Encoding::Protobuf),
            _ => Err(Status::unsupported_media_type(header, &[JSON, YAML, PROTOBUF])),
        }
    }
}

/// The form in which objects are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    #[default]
    Object,
    /// As a `meta.k8s.io/v1` Table.
    Table,
    /// Only their metadata: PartialObjectMetadata, or its list.
    Metadata,
    /// Aggregated discovery: `apidiscovery.k8s.io/v2` APIGroupDiscoveryList.
    Discovery,
}

/// What the client wants back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// In which form.
    pub form: Form,
    /// As YAML rather than JSON.
    pub yaml: bool,
}

impl Accept {
    /// The `Content-Type` of the answer.
    pub fn content_type(&self) -> &'static str {
        match (self.yaml, self.form) {
            (true, _) => YAML,
            (_, Form::Discovery) => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            _ => JSON,
        }
    }
}

/// Picks the first representation in the client's order that can be made and whose form is in `forms`
/// ([`Form::Object`] always is); 406 if there is none.
pub fn accept(header: Option<&str>, forms: &[Form]) -> Result<Accept, Status> {
    let header = header.map(str::trim).unwrap_or_default();
    if header.is_empty() {
        return Ok(Accept::default());
    }
    let mut offers: Vec<(f32, Accept)> = header
        .split(',')
        .filter_map(offer)
        .filter(|(q, a)| *q > 0.0 && possible(a, forms))
        .collect();
    offers.sort_by(|(a, _), (b, _)| b.total_cmp(a)); // stable: equal weights keep the client's order
    offers
        .first()
        .map(|(_, accept)| *accept)
        .ok_or_else(|| Status::not_acceptable(&[JSON, YAML]))
}

fn possible(accept: &Accept, forms: &[Form]) -> bool {
    accept.form == Form::Object || forms.contains(&accept.form)
}

/// One entry of an `Accept` header with its weight, if it is something this server can make.
fn offer(text: &str) -> Option<(f32, Accept)> {
    let mut parts = text.split(';').map(str::trim);
    let yaml = match parts.next()?.to_ascii_lowercase().as_str() {
        "*/*" | "application/*" | JSON => false,
        YAML => true,
        _ => return None,
    };
    let (mut as_, mut group, mut version, mut q) = ("", "", "", 1.0);
    for part in parts {
        match part.split_once('=').map(|(k, v)| (k.trim(), v.trim())) {
            Some(("as", v)) => as_ = v,
            Some(("g", v)) => group = v,
            Some(("v", v)) => version = v,
            Some(("q", v)) => q = v.parse().ok()?,
            _ => {}
        }
    }
    let form = match (as_, group, version) {
        ("", ..) => Form::Object,
        ("Table", "meta.k8s.io", "v1") => Form::Table,
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => Form::Metadata,
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Form::Discovery,
        _ => return None,
    };
    Some((q, Accept { form, yaml }))
}

/// What happens to unknown and duplicate fields: the query parameter `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are an error. The default here: a misspelt field must not run on a fleet.
    Strict,
    /// They are dropped with a `Warning` header; also for `Ignore`, whose clients may throw the header away.
    Warn,
}

impl FieldValidation {
    /// Reads the query parameter.
    pub fn parse(parameter: Option<&str>) -> Result<Self, Status> {
        match parameter {
            None | Some("" | "Strict") => Ok(FieldValidation::Strict),
            Some("Warn" | "Ignore") => Ok(FieldValidation::Warn),
            Some(other) => Err(Status::bad_request(format!(
                "fieldValidation: Unsupported value: \"{other}\": supported values: \"Ignore\", \"Strict\", \"Warn\""
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECTL_GET: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

    #[test]
    fn kubectl_get_is_given_a_table_where_one_can_be_made() {
        assert_eq!(
            accept(Some(KUBECTL_GET), &[Form::Table]).unwrap().form,
            Form::Table
        );
        assert_eq!(accept(Some(KUBECTL_GET), &[]).unwrap().form, Form::Object);
    }

    #[test]
    fn kubectl_discovery_is_given_the_aggregated_form() {
        let header = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        let accept = accept(Some(header), &[Form::Discovery]).unwrap();
        assert_eq!(accept.form, Form::Discovery);
        assert!(accept.content_type().contains("as=APIGroupDiscoveryList"));
    }

    #[test]
    fn protobuf_is_skipped_when_json_is_also_accepted_and_refused_alone() {
        let both = "application/vnd.kubernetes.protobuf, application/json";
        assert_eq!(accept(Some(both), &[]).unwrap(), Accept::default());
        assert_eq!(
            accept(Some("application/vnd.kubernetes.protobuf"), &[])
                .unwrap_err()
                .code(),
            406
        );
    }

    #[test]
    fn weights_outrank_order() {
        let accept = accept(Some("application/json;q=0.2, application/yaml;q=0.9"), &[]).unwrap();
        assert!(accept.yaml);
        assert!(super::accept(Some("application/json;q=0"), &[]).is_err());
    }

    #[test]
    fn content_types_with_parameters_are_understood_and_strange_ones_named() {
        assert_eq!(
            Encoding::of_content_type(Some("application/json; charset=utf-8")).unwrap(),
            Encoding::Json
        );
        let refused = Encoding::of_content_type(Some("text/html")).unwrap_err();
        assert_eq!(refused.code(), 415);
        assert!(refused.message.contains("text/html"), "{refused}");
    }

    #[test]
    fn field_validation_is_strict_unless_told() {
        assert_eq!(FieldValidation::parse(None).unwrap(), FieldValidation::Strict);
        assert!(
            FieldValidation::parse(Some("strict"))
                .unwrap_err()
                .message
                .contains("\"Strict\"")
        );
    }
}
