//! Who asks: a part of the control plane in this process, the owner of a client certificate, or the bearer of an
//! enrolment token. Nothing of this travels in headers a client could forge but the token.

use crate::enrol;
use crate::inner::Inner;
use api::identity::Identity;
use http::{Extensions, HeaderMap, header};
use machinery::status::Status;

/// The user of a connection's client certificate. Set by the listener on every request of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer(pub Option<Identity>);

/// The user behind a request; 401 for credentials that prove nothing.
pub(crate) fn identify(
    inner: &Inner,
    extensions: &Extensions,
    headers: &HeaderMap,
) -> Result<Identity, Status> {
    if let Some(identity) = extensions.get::<Identity>() {
        return Ok(identity.clone());
    }
    if let Some(Peer(Some(identity))) = extensions.get::<Peer>() {
        return Ok(identity.clone());
    }
    let Some(authorization) = headers.get(header::AUTHORIZATION) else {
        return Ok(Identity::anonymous());
    };
    let token = authorization
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("Bearer "));
    token
        .and_then(|token| enrol::bearer(inner, token.trim()))
        .ok_or_else(Status::unauthorized)
}
