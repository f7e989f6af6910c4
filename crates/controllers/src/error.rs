//! Why a controller could not do what it wanted.

/// What went wrong with one object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Somebody else wrote in between; look again soon.
    #[error("changed by somebody else")]
    Conflict,
    /// It is gone; there is nothing left to do.
    #[error("gone")]
    Gone,
    /// The API refused or did not answer; try again after a while.
    #[error(transparent)]
    Api(kube::Error),
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            kube::Error::Api(status) if status.code == 404 => Self::Gone,
            other => Self::Api(other),
        }
    }
}
