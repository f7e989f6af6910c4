//! A request's way: who asks, may they, which verb, answer, count.

use crate::authz::{self, Ask, Decision};
use crate::call::{Call, Filter};
use crate::documents::Documents;
use crate::inner::Inner;
use crate::verbs::{Outcome, create, delete, list, read, update, watch};
use crate::wire::answer;
use crate::wire::path::ResourcePath;
use crate::wire::query::Query;
use crate::{authn, health};
use api::identity::{ANONYMOUS, BOOTSTRAPPERS, Identity};
use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header};
use machinery::kind::{Scope, Storage};
use machinery::negotiate::{self, Encoding, Form};
use machinery::status::{Reason, Status};
use std::sync::Arc;
use std::time::Instant;
use tower::ServiceExt;

/// Answers a request.
pub(crate) async fn handle(inner: &Arc<Inner>, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let user = match authn::identify(inner, &parts.extensions, &parts.headers) {
        Ok(user) => user,
        Err(status) => return answer::failure(&status),
    };
    let path = parts.uri.path().to_owned();
    if let Some(named) = ResourcePath::parse(&path) {
        let query = Query::parse(parts.uri.query());
        let verb = verb(&parts.method, &named, &query);
        let outcome = match verb {
            Some(verb) => resource(inner, &user, verb, &named, &query, &parts, body).await,
            None => Err(method_not_allowed(&parts.method)),
        };
        let response = outcome.unwrap_or_else(|status| answer::failure(&status));
        let names = (&*named.group, &*named.plural, &*named.subresource);
        // What nobody serves is counted under one name, or anybody could fill the metrics with names.
        let names = if inner.cache.plural(names.0, names.1).is_some() {
            names
        } else {
            ("", "", "")
        };
        inner.metrics.request(
            verb.unwrap_or("other"),
            names,
            response.status().as_u16(),
            started.elapsed(),
        );
        return response;
    }
    beside(inner, user, parts, body, &path).await
}

/// Kubernetes' verb for a method and path.
fn verb(method: &Method, path: &ResourcePath<'_>, query: &Query<'_>) -> Option<&'static str> {
    Some(match (method.as_str(), path.name.is_empty()) {
        ("GET" | "HEAD", _) if query.flag("watch") => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        ("POST", _) => "create",
        ("PUT", false) => "update",
        ("PATCH", false) => "patch",
        ("DELETE", false) => "delete",
        ("DELETE", true) => "deletecollection",
        _ => return None,
    })
}

fn method_not_allowed(method: &Method) -> Status {
    Status::new(
        Reason::MethodNotAllowed,
        format!("{method} is not supported on this path"),
    )
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn resource(
    inner: &Arc<Inner>,
    user: &Identity,
    verb: &'static str,
    path: &ResourcePath<'_>,
    query: &Query<'_>,
    parts: &Parts,
    body: Body,
) -> Outcome {
    let cache = inner
        .cache
        .plural(&path.group, &path.plural)
        .filter(|cache| cache.shape.kind.version == path.version)
        .ok_or_else(Status::no_such_path)?;
    let kind = &cache.shape.kind;
    let fields = match query.get("fieldSelector") {
        Some(text) => text.parse()?,
        None => Default::default(),
    };
    let mut ask = Ask {
        verb,
        group: &path.group,
        plural: &path.plural,
        subresource: &path.subresource,
        namespace: &path.namespace,
        name: &path.name,
        fields,
    };
    let named;
    if ask.name.is_empty() && matches!(verb, "list" | "watch" | "deletecollection") {
        // As in Kubernetes, a selector of one name is a request for that name.
        named = Filter::new(cache, &path.namespace, "", query)?.name;
        ask.name = &named;
    }
    if let Decision::Deny(hint) = authz::resource(inner, user, &ask) {
        return Err(Status::not_allowed(
            kind,
            &path.name,
            user,
            verb,
            &ask.resource(),
            &path.namespace,
            &hint,
        ));
    }
    if kind.scope == Scope::Cluster && !path.namespace.is_empty() {
        return Err(Status::no_such_path());
    }
    if kind.scope == Scope::Namespaced && path.namespace.is_empty() && !path.name.is_empty() {
        return Err(Status::no_such_path());
    }
    let known = match &*path.subresource {
        "" => true,
        "status" => kind.status_subresource,
        other => kind.strategy.subresources().contains(&other),
    };
    if !known {
        return Err(Status::no_such_path());
    }
    if kind.storage == Storage::Virtual && verb != "create" {
        return Err(Status::method_not_allowed(kind, verb));
    }
    let accept = negotiate::accept(
        text(&parts.headers, &header::ACCEPT),
        &[Form::Table, Form::Metadata],
    )?;
    let call = Call {
        inner,
        user,
        cache,
        namespace: &path.namespace,
        name: &path.name,
        subresource: &path.subresource,
        query,
        accept,
        now: inner.clock.now(),
    };
    let content_type = text(&parts.headers, &header::CONTENT_TYPE);
    match (verb, call.subresource) {
        ("get", _) => read::get(&call).await,
        ("list", _) => list::list(&call).await,
        ("watch", "") => watch::watch(&call).await,
        ("create", "") if call.name.is_empty() => {
            create::create(&call, Encoding::of_content_type(content_type)?, body).await
        }
        ("update", _) => update::update(&call, Encoding::of_content_type(content_type)?, body).await,
        ("patch", _) => update::patch(&call, content_type, body).await,
        ("delete", "") => delete::delete(&call, Encoding::of_content_type(content_type)?, body).await,
        ("deletecollection", _) => {
            delete::delete_collection(&call, Encoding::of_content_type(content_type)?, body).await
        }
        _ => Err(Status::method_not_allowed(kind, verb)),
    }
}

/// What is no resource: documents, health, metrics, other parts' routes.
async fn beside(inner: &Arc<Inner>, user: Identity, parts: Parts, body: Body, path: &str) -> Response<Body> {
    let method = match parts.method {
        Method::HEAD => "head",
        Method::GET => "get",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    };
    let own = authz::path(&user, method, path);
    if own {
        let query = Query::parse(parts.uri.query());
        if let Some(response) = health::answer(inner, path, query.flag("verbose")).await {
            return response;
        }
        if path == "/metrics" {
            return match inner.metrics.text(&inner.cache) {
                Ok(text) => answer::text(StatusCode::OK, text),
                Err(error) => answer::failure(&Status::internal(error)),
            };
        }
        if let Some(response) = inner.documents.get(path, &parts.headers) {
            return response;
        }
    }
    let known = user.name != ANONYMOUS && !user.groups.iter().any(|group| group == BOOTSTRAPPERS);
    match inner.mounted.get() {
        Some(router) if known => {
            let mut request = Request::from_parts(parts, body);
            request.extensions_mut().insert(user);
            match router.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
        _ if own => Documents::nothing(),
        _ => {
            let why = format!(
                "forbidden: User \"{}\" cannot {method} path \"{path}\"",
                user.name
            );
            answer::failure(&Status::new(Reason::Forbidden, why))
        }
    }
}
