//! `/livez`, `/readyz`, `/healthz`: may the server be restarted, may it get requests.

use crate::inner::Inner;
use crate::wire::answer;
use axum::body::Body;
use http::{Response, StatusCode};
use store::StoreError;

/// Answers a health path; `None` if it is none.
pub(crate) async fn answer(inner: &Inner, path: &str, verbose: bool) -> Option<Response<Body>> {
    let name = match path {
        "/livez" | "/healthz" | "/readyz" => &path[1..],
        _ => return None,
    };
    let head = inner.store.head().await;
    let mut checks = vec![
        ("ping", Ok(())),
        (
            "store",
            head.map(|_| ()).map_err(|error: StoreError| error.to_string()),
        ),
    ];
    if name == "readyz" {
        let stopping = *inner.stop.borrow();
        checks.push((
            "shutdown",
            if stopping {
                Err("the server is stopping".to_owned())
            } else {
                Ok(())
            },
        ));
    }
    let failed = checks.iter().any(|(_, result)| result.is_err());
    let code = if failed {
        StatusCode::INTERNAL_SERVER_ERROR
    } else {
        StatusCode::OK
    };
    if !failed && !verbose {
        return Some(answer::text(code, "ok"));
    }
    let mut text = String::new();
    for (check, result) in &checks {
        match result {
            Ok(()) => text.push_str(&format!("[+]{check} ok\n")),
            Err(why) => text.push_str(&format!("[-]{check} failed: {why}\n")),
        }
    }
    text.push_str(&format!(
        "{name} check {}\n",
        if failed { "failed" } else { "passed" }
    ));
    Some(answer::text(code, text))
}
