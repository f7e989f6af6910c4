//! How a request is refused: a Kubernetes `Status` as the response.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use logs::LogError;
use machinery::status::Status;

/// Seconds after which to try again when the logs cannot be written or read now.
const RETRY: u32 = 5;

/// A refused request.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Status>);

impl Refusal {
    /// What is wrong, for people.
    pub(crate) fn into_message(self) -> String {
        self.0.message
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self(Box::new(status))
    }
}

impl From<LogError> for Refusal {
    fn from(error: LogError) -> Self {
        tracing::warn!(%error, "logs could not be served");
        Self::from(match &error {
            LogError::Full(_) | LogError::Failed(_) | LogError::Closed | LogError::Database(_) => {
                Status::unavailable(error.to_string(), RETRY)
            }
            LogError::Removed => Status::gone(error.to_string()),
        })
    }
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        tracing::warn!(%error, "a Task could not be read");
        Self::from(Status::unavailable(
            format!("the Task could not be read: {error}"),
            RETRY,
        ))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = StatusCode::from_u16(self.0.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let mut response = (code, json, self.0.to_bytes()).into_response();
        let wait = self.0.details.retry_after_seconds;
        if wait > 0 {
            response.headers_mut().insert(header::RETRY_AFTER, wait.into());
        }
        response
    }
}
