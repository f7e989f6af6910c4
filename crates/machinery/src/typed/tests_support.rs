//! A small kind of our own for tests.

use crate::kind::Kind;
use api::{field::Errors, identity::Identity};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "test.example",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    shortname = "wd",
    category = "all",
    selectable = ".spec.owner",
    printcolumn(name = "Phase", json_path = ".status.phase", type_ = "string"),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
pub struct WidgetSpec {
    /// What it is called. It is only a test.
    pub title: String,
    /// Steps.
    #[serde(default)]
    #[schemars(length(max = 3))]
    pub steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default)]
    pub mode: Mode,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    #[serde(default)]
    pub name: String,
    pub shell: Option<String>,
    #[schemars(range(min = 0, max = 9))]
    pub retries: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    #[default]
    Apply,
    Audit,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WidgetStatus {
    #[schemars(length(max = 8))]
    pub phase: Option<String>,
}

impl api::Resource for Widget {
    fn prepare_create(&mut self, user: &Identity) {
        self.spec.owner = Some(user.name.clone());
    }

    fn validate(&self) -> Errors {
        let mut errors = Errors::new();
        if self.spec.title == "bad" {
            errors.invalid(&api::field::Path::new("spec").child("title"), "bad", "is bad");
        }
        errors
    }

    fn warnings(&self) -> Vec<String> {
        vec![format!("runs {} steps", self.spec.steps.len())]
    }
}

/// The kind of widgets: counts generations, has a status.
pub(crate) fn widget() -> Kind {
    super::kind::<Widget>()
}
