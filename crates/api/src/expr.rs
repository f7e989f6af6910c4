//! Expressions: CEL in `when`, and `${{ … }}` in args, variables and other templated texts.
//!
//! Admission parses ([`check`], [`Template::parse`]); the host evaluates with the values of its [`Scope`]. Names with dashes
//! are there twice, as written (`steps['compile-x64']`) and with underscores (`steps.compile_x64`); written with a dash
//! after a dot they would be a subtraction, so that is refused with a hint.
//!
//! Cost: the CEL crate has no budget at run time, so the input is bounded instead: texts to 4,096 bytes,
//! operators (each may cost a level of the parser's stack), nested parentheses and macros to small numbers. Every list an expression can see is bounded by the API.

use cel::{Context, ExecutionError, Program, Value, extractors::This, objects::Key};
use serde_json::{Map, Value as Json, json};

/// Longest expression, in bytes.
pub const MAX_LENGTH: usize = 4096;
const MAX_DEPTH: usize = 32;
const MAX_MACROS: usize = 3;
const MAX_OPERATORS: usize = 200;
/// The parser and evaluator recurse, some 50 KiB a level in debug builds; threads of a server have 2 MiB.
const STACK: usize = 32 << 20;
/// The variables there are.
pub const ROOTS: [&str; 7] = ["params", "steps", "node", "job", "task", "matrix", "run"];

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It cannot be parsed; the text says where.
    #[error("is no CEL expression: {0}")]
    Syntax(String),
    /// It is longer or more deeply nested than allowed.
    #[error("is too complex: {0}")]
    TooComplex(&'static str),
    /// It names a variable that does not exist.
    #[error("unknown name \"{name}\"; there are {}", ROOTS.join(", "))]
    UnknownName {
        /// The name.
        name: String,
    },
    /// A name with a dash after a dot.
    #[error("\"{written}\" is a subtraction; write {hint}")]
    DashedName {
        /// What was written.
        written: String,
        /// What to write.
        hint: String,
    },
    /// `${{` without `}}`.
    #[error("has \"${{{{\" without \"}}}}\"")]
    Unclosed,
    /// It failed with the values at hand.
    #[error("{0}")]
    Evaluation(String),
    /// `when` must be true or false.
    #[error("gives {0}, not true or false")]
    NotBoolean(String),
}

/// Parses an expression and checks all that can be checked without values.
pub fn check(text: &str) -> Result<(), Error> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<Program, Error> {
    if text.len() > MAX_LENGTH {
        return Err(Error::TooComplex("longer than 4096 bytes"));
    }
    let operators = without_strings(text)
        .chars()
        .filter(|c| "+-*/%!?.&|<>=".contains(*c))
        .count();
    if operators > MAX_OPERATORS {
        return Err(Error::TooComplex("more than 200 operators and dots"));
    }
    if depth(text) > MAX_DEPTH {
        return Err(Error::TooComplex("brackets nested more than 32 deep"));
    }
    if [".all(", ".exists(", ".exists_one(", ".map(", ".filter("]
        .iter()
        .map(|m| text.matches(m).count())
        .sum::<usize>()
        > MAX_MACROS
    {
        return Err(Error::TooComplex(
            "more than 3 of all, exists, exists_one, map and filter",
        ));
    }
    dashed(text)?;
    let program = stacker::grow(STACK, || Program::compile(text));
    let program = program.map_err(|e| Error::Syntax(one_line(&e.to_string())))?;
    if let Some(name) = program
        .references()
        .variables()
        .into_iter()
        .find(|v| !ROOTS.contains(v) && !v.starts_with('@') && !is_bound(text, v))
    {
        return Err(Error::UnknownName {
            name: name.to_owned(),
        });
    }
    Ok(program)
}

/// A variable that a macro binds, as `x` in `list.all(x, …)`.
fn is_bound(text: &str, name: &str) -> bool {
    text.contains(&format!("({name},")) || text.contains(&format!("({name} ,"))
}

fn depth(text: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => {
                now += 1;
                most = most.max(now);
            }
            ')' | ']' | '}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Refuses `steps.compile-x64`: outside quotes, a root, a dot, a word, a dash and a letter with no space around it.
fn dashed(text: &str) -> Result<(), Error> {
    let bare = without_strings(text);
    for root in ["steps", "params", "matrix"] {
        for (at, _) in bare.match_indices(&format!("{root}.")) {
            if at > 0 && bare.as_bytes()[at - 1].is_ascii_alphanumeric() {
                continue;
            }
            let start = at + root.len() + 1;
            let word: String = bare[start..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
                .collect();
            if word.contains('-') {
                return Err(Error::DashedName {
                    written: format!("{root}.{word}"),
                    hint: format!("{root}.{} or {root}['{word}']", word.replace('-', "_")),
                });
            }
        }
    }
    Ok(())
}

fn without_strings(text: &str) -> String {
    let mut quote = None;
    let mut escaped = false;
    text.chars()
        .map(|c| match quote {
            Some(q) => {
                if !escaped && c == q {
                    quote = None;
                }
                escaped = c == '\\' && !escaped;
                ' '
            }
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                ' '
            }
            None => c,
        })
        .collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The values an expression sees.
#[derive(Clone, Debug, Default)]
pub struct Scope(Map<String, Json>);

impl Scope {
    /// No values yet; every root is there as an empty map.
    pub fn new() -> Self {
        Self(ROOTS.iter().map(|r| ((*r).to_owned(), json!({}))).collect())
    }

    /// Sets a root, such as `node`. Keys with dashes are there with underscores as well.
    pub fn set(&mut self, root: &str, value: Json) {
        let value = match value {
            Json::Object(map) => {
                let plain = map.iter().filter(|(k, _)| k.contains('-'));
                let plain: Vec<_> = plain.map(|(k, v)| (k.replace('-', "_"), v.clone())).collect();
                Json::Object(map.into_iter().chain(plain).collect())
            }
            other => other,
        };
        self.0.insert(root.to_owned(), value);
    }

    fn run(&self, program: &Program) -> Result<Value, Error> {
        let failed = |e: String| Error::Evaluation(one_line(&e));
        let mut context = Context::default();
        for (name, value) in &self.0 {
            let value = cel::to_value(value).map_err(|e| failed(e.to_string()))?;
            context.add_variable_from_value(name.as_str(), value);
        }
        context
            .add_function("label", label)
            .map_err(|e| failed(e.to_string()))?;
        stacker::grow(STACK, || program.execute(&context)).map_err(|e| failed(explain(&e)))
    }
}

/// `node.label('x')`: the label's value, or empty where the node does not have it.
fn label(This(node): This<Value>, name: std::sync::Arc<String>) -> Result<Value, ExecutionError> {
    let Value::Map(node) = node else {
        return Err(ExecutionError::function_error(
            "label",
            "only a node has labels: node.label('x')",
        ));
    };
    let labels = node.get(&Key::from("labels"));
    let found = match labels {
        Some(Value::Map(labels)) => labels.get(&Key::from(name.as_str())).cloned(),
        _ => None,
    };
    Ok(found.unwrap_or_else(|| Value::from("")))
}

fn explain(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => {
            format!("there is no \"{key}\"; test with has(…) or use node.label('x') for labels")
        }
        other => other.to_string(),
    }
}

/// Evaluates a `when`.
pub fn evaluate_bool(text: &str, scope: &Scope) -> Result<bool, Error> {
    match scope.run(&parse(text)?)? {
        Value::Bool(b) => Ok(b),
        other => Err(Error::NotBoolean(kind(&other))),
    }
}

fn kind(value: &Value) -> String {
    value.type_of().to_string()
}

/// A text with `${{ … }}` in it.
#[derive(Debug)]
pub struct Template<'a>(Vec<Part<'a>>);

#[derive(Debug)]
enum Part<'a> {
    Text(&'a str),
    Expression(&'a str),
}

impl<'a> Template<'a> {
    /// Cuts a text into what stands for itself and what is an expression, and checks the expressions.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("${{") {
            let body = &rest[start + 3..];
            let end = closing(body).ok_or(Error::Unclosed)?;
            if start > 0 {
                parts.push(Part::Text(&rest[..start]));
            }
            let expression = body[..end].trim();
            check(expression)?;
            parts.push(Part::Expression(expression));
            rest = &body[end + 2..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest));
        }
        Ok(Self(parts))
    }

    /// Whether there is any expression in it.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|p| matches!(p, Part::Text(_)))
    }

    /// The expressions in it.
    pub fn expressions(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|p| match p {
            Part::Expression(e) => Some(*e),
            Part::Text(_) => None,
        })
    }

    /// The text with the values in place: strings as they are, numbers and booleans in CEL's spelling, nothing for null.
    pub fn render(&self, scope: &Scope) -> Result<String, Error> {
        let mut text = String::new();
        self.render_parts(scope, |part, _| text.push_str(part))?;
        Ok(text)
    }

    /// The same in parts, in order; the flag tells what an expression gave from what the author wrote.
    pub fn render_parts(&self, scope: &Scope, mut take: impl FnMut(&str, bool)) -> Result<(), Error> {
        for part in &self.0 {
            match part {
                Part::Text(t) => take(t, false),
                Part::Expression(e) => take(&show(scope.run(&parse(e)?)?)?, true),
            }
        }
        Ok(())
    }
}

/// Where the `}}` is that closes the expression: not inside quotes, and not the end of a map in it.
fn closing(body: &str) -> Option<usize> {
    let bare = without_strings(body);
    // quotes are one byte, but what stood between them may be more: count characters back to bytes
    let at = bare.find("}}")?;
    let characters = bare[..at].chars().count();
    body.char_indices().nth(characters).map(|(i, _)| i)
}

fn show(value: Value) -> Result<String, Error> {
    Ok(match value {
        Value::String(s) => s.to_string(),
        Value::Int(i) => i.to_string(),
        Value::UInt(u) => u.to_string(),
        Value::Float(f) => f.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Null => String::new(),
        other => match other.json() {
            Ok(json) => json.to_string(),
            Err(_) => {
                return Err(Error::Evaluation(format!(
                    "{} cannot be written as text",
                    kind(&other)
                )));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        let mut scope = Scope::new();
        scope.set("params", json!({"version": "1.4.2", "n": "3"}));
        scope.set("node", json!({"name": "web01", "labels": {"role": "web"}}));
        scope.set(
            "steps",
            json!({"compile-x64": {"phase": "Succeeded", "exitCode": 0, "outputs": {"id": "b-7"}}}),
        );
        scope
    }

    fn render(text: &str) -> Result<String, Error> {
        Template::parse(text)?.render(&scope())
    }

    #[test]
    fn when_reads_params_labels_and_steps() {
        let yes = |text: &str| evaluate_bool(text, &scope());
        assert_eq!(
            yes("params.version != '' && node.label('role') == 'web'"),
            Ok(true)
        );
        assert_eq!(yes("node.label('absent') == ''"), Ok(true));
        assert_eq!(yes("steps.compile_x64.phase == 'Succeeded'"), Ok(true));
        assert_eq!(yes("steps['compile-x64'].exitCode == 0"), Ok(true));
        assert_eq!(yes("['a', 'b'].exists(x, x == 'b')"), Ok(true));
    }

    #[test]
    fn what_is_no_boolean_fails_and_says_so() {
        assert!(matches!(
            evaluate_bool("params.version", &scope()),
            Err(Error::NotBoolean(_))
        ));
        assert!(matches!(
            evaluate_bool("params.absent == 'x'", &scope()),
            Err(Error::Evaluation(_))
        ));
        assert!(matches!(evaluate_bool("1 +", &scope()), Err(Error::Syntax(_))));
    }

    #[test]
    fn unknown_names_are_found_at_admission() {
        assert_eq!(
            check("parms.version == ''"),
            Err(Error::UnknownName { name: "parms".into() })
        );
        assert_eq!(check("[1].all(x, x > 0)"), Ok(()));
    }

    #[test]
    fn a_dash_after_a_dot_is_refused_with_a_hint() {
        let error = check("steps.compile-x64.phase == 'Failed'").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"steps.compile-x64\" is a subtraction; write steps.compile_x64 or steps['compile-x64']"
        );
        assert_eq!(check("steps['compile-x64'].phase == 'steps.a-b'"), Ok(()));
    }

    #[test]
    fn templates_put_values_in_place() {
        assert_eq!(
            render("app-${{ params.version }}.zip").as_deref(),
            Ok("app-1.4.2.zip")
        );
        assert_eq!(
            render("${{ steps.compile_x64.outputs.id }}/${{ 1 + 1 }}").as_deref(),
            Ok("b-7/2")
        );
        assert_eq!(
            render("no expression, $(X) ${Y} }} {{").as_deref(),
            Ok("no expression, $(X) ${Y} }} {{")
        );
        assert_eq!(render("${{ 'ä}}ö' }}!").as_deref(), Ok("ä}}ö!"));
    }

    #[test]
    fn an_unclosed_template_is_refused() {
        assert_eq!(render("${{ params.version"), Err(Error::Unclosed));
        assert_eq!(render("${{ 'x }}"), Err(Error::Unclosed));
    }

    #[test]
    fn complex_expressions_are_refused_before_they_are_parsed() {
        assert!(matches!(check(&"(".repeat(5000)), Err(Error::TooComplex(_))));
        assert!(matches!(
            check(&format!("{}1{}", "(".repeat(40), ")".repeat(40))),
            Err(Error::TooComplex(_))
        ));
        let nested = "[1].map(a, [1].map(b, [1].map(c, [1].map(d, d))))";
        assert!(matches!(check(nested), Err(Error::TooComplex(_))));
    }

    #[test]
    fn long_chains_cannot_exhaust_the_stack_of_a_small_thread() {
        let chains = [
            format!("1{}", "+1".repeat(2000)),
            format!("{}true", "!".repeat(4000)),
            format!("{}1", "-".repeat(4000)),
            format!("true{}", "?true:true".repeat(400)),
            format!("params{}", ".a".repeat(2000)),
        ];
        assert!(
            chains
                .iter()
                .all(|c| matches!(check(c), Err(Error::TooComplex(_))))
        );
        let longest = format!("1{}", "+1".repeat(MAX_OPERATORS));
        let run = move || drop(evaluate_bool(&longest, &Scope::new()));
        std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(run)
            .unwrap()
            .join()
            .unwrap();
    }
}
