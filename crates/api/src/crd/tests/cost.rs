//! What the rules cost by the estimate of Kubernetes' API server, which refuses a definition over its budget.
//!
//! The estimate is that of cel-go's checker with Kubernetes' sizes: a variable or field costs 1, a comparison a tenth of the
//! shorter side, `in` the length of the list, a literal list 10 and map 30, a pattern a tenth of the text times a quarter
//! of the pattern. A text has up to four bytes a character; what has no bound has the size of a request. A rule below
//! lists counts once for every item there can be.

use super::super::all;
use cel::{
    Program,
    common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators},
};
use serde_json::{Value, json};

/// Kubernetes' `StaticEstimatedCostLimit`.
const RULE: u64 = 10_000_000;
/// Kubernetes' `StaticEstimatedCRDCostLimit`.
const DEFINITION: u64 = 100_000_000;
/// A request has at most 3 MiB.
const REQUEST: u64 = 3 << 20;

/// The size of what a schema describes.
fn size_of(schema: &Value) -> u64 {
    let bound = |key: &str| schema[key].as_u64();
    if schema["x-kubernetes-int-or-string"] == true {
        return REQUEST;
    }
    match schema["type"].as_str() {
        Some("string") => match schema["enum"].as_array() {
            Some(values) => values
                .iter()
                .filter_map(Value::as_str)
                .map(|v| v.len() as u64)
                .max()
                .unwrap(),
            None if schema["format"] == "date-time" => 30,
            None => bound("maxLength").map_or(REQUEST, |n| n * 4),
        },
        Some("array") => bound("maxItems").unwrap_or(REQUEST),
        Some("object") if schema["additionalProperties"].is_object() => {
            bound("maxProperties").unwrap_or(REQUEST)
        }
        Some("object") => schema["properties"].as_object().map_or(0, |p| p.len() as u64),
        Some("integer" | "number" | "boolean") => 1,
        _ => REQUEST,
    }
}

struct Estimate<'a>(&'a Value);

impl Estimate<'_> {
    fn of(schema: &Value, text: &str) -> u64 {
        let program = stacker::grow(32 << 20, || Program::compile(text)).unwrap();
        Estimate(schema).cost(program.expression())
    }

    /// The schema of `self.a.b` or `oldSelf.a.b`.
    fn schema(&self, e: &IdedExpr) -> Option<&Value> {
        match &e.expr {
            Expr::Ident(name) if ["self", "oldSelf"].contains(&name.as_str()) => Some(self.0),
            Expr::Select(select) if !select.test => {
                Some(&self.schema(&select.operand)?["properties"][&select.field]).filter(|s| s.is_object())
            }
            _ => None,
        }
    }

    fn size(&self, e: &IdedExpr) -> u64 {
        if let Some(schema) = self.schema(e) {
            return size_of(schema);
        }
        match &e.expr {
            Expr::Literal(LiteralValue::String(text)) => text.inner().len() as u64,
            Expr::Literal(_) => 1,
            Expr::List(list) => list.elements.len() as u64,
            Expr::Select(select) if select.test => 1,
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (operators::CONDITIONAL, [_, a, b]) => self.size(a).max(self.size(b)),
                (operators::ADD, [a, b]) => self.size(a) + self.size(b),
                (operators::INDEX, [map, _]) => match &map.expr {
                    Expr::Map(map) => map
                        .entries
                        .iter()
                        .map(|e| self.size(value(&e.expr)))
                        .max()
                        .unwrap(),
                    _ => REQUEST,
                },
                _ => 1, // what is left gives numbers and booleans
            },
            _ => REQUEST,
        }
    }

    fn cost(&self, e: &IdedExpr) -> u64 {
        match &e.expr {
            Expr::Literal(_) => 0,
            Expr::Ident(_) => 1,
            Expr::Select(select) => 1 + self.cost(&select.operand),
            Expr::List(list) => 10 + list.elements.iter().map(|e| self.cost(e)).sum::<u64>(),
            Expr::Map(map) => 30 + map.entries.iter().map(|e| self.cost(value(&e.expr))).sum::<u64>(),
            Expr::Call(call) => {
                let parts: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
                let all: u64 = parts.iter().map(|e| self.cost(e)).sum();
                all + match (call.func_name.as_str(), parts.as_slice()) {
                    (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::CONDITIONAL, _) => 0,
                    (operators::IN, [_, list]) => self.size(list),
                    ("matches", [text, pattern]) => {
                        (self.size(text) + 1).div_ceil(10) * self.size(pattern).div_ceil(4)
                    }
                    (operators::LOGICAL_NOT | operators::INDEX | "size", _) => 1,
                    (operators::ADD, [a, b]) => (self.size(a) + self.size(b)).div_ceil(10),
                    (_, [a, b]) => 1 + self.size(a).min(self.size(b)).div_ceil(10),
                    (name, _) => panic!("the cost of {name} is not known here"),
                }
            }
            other => panic!("the cost of {other:?} is not known here"),
        }
    }
}

fn value(entry: &EntryExpr) -> &IdedExpr {
    match entry {
        EntryExpr::MapEntry(entry) => &entry.value,
        EntryExpr::StructField(field) => &field.value,
    }
}

/// The cost of every rule in `schema`, which exists up to `times` in an object.
fn costs(schema: &Value, path: &str, times: u64, found: &mut Vec<(String, u64)>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let text = rule["rule"].as_str().unwrap();
        found.push((format!("{path}: {text}"), Estimate::of(schema, text) * times));
        if let Some(text) = rule["messageExpression"].as_str() {
            found.push((format!("{path}: {text}"), Estimate::of(schema, text)));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        costs(property, &format!("{path}.{name}"), times, found);
    }
    if schema["items"].is_object() {
        costs(
            &schema["items"],
            &format!("{path}[]"),
            times * size_of(schema),
            found,
        );
    }
}

#[test]
fn the_rules_stay_within_kubernetes_budget() {
    for crd in all() {
        let crd = serde_json::to_value(crd).unwrap();
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        let mut found = Vec::new();
        costs(
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            kind,
            1,
            &mut found,
        );
        for (rule, cost) in &found {
            assert!(*cost <= RULE, "{rule} costs {cost}");
        }
        let sum: u64 = found.iter().map(|(_, cost)| cost).sum();
        assert!(sum <= DEFINITION, "{kind}'s rules cost {sum}");
    }
}

#[test]
fn a_rule_over_budget_is_found() {
    let text = json!({"type": "string", "maxLength": 25_000,
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let list = json!({"type": "array", "maxItems": 1000, "items": text});
    let mut found = Vec::new();
    costs(&list, "", 1, &mut found);
    // two variables, a tenth of 100,000 bytes and the call, a thousand times
    assert_eq!(found[0].1, 1000 * (2 + 10_000 + 1));
    assert!(found[0].1 > RULE);
}
