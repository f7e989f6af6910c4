//! Join tokens: how a new host gets in, once.
//!
//! `prow1.<id>.<secret>.<hash>`: the id names the Secret that holds the token's hash, the secret proves the bearer, the hash is the
//! SHA-256 of the authority's certificate in hex. The server keeps only the SHA-256 of the secret.

use crate::{Error, authority::random};
use api::names::sha256_hex;
use std::{fmt, str::FromStr};
use subtle::ConstantTimeEq;

const FORMAT: &str = "prow1";
/// Lower-case letters and digits that are not mistaken for each other; 32 of them, so every random byte is used evenly.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const HASH_LENGTH: usize = 64;

/// A join token as handed to an operator.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// What is sent to the server.
    pub bearer: Bearer,
    /// SHA-256 of the authority's certificate, lower-case hex.
    pub authority: String,
}

/// The part of a token that is sent: `<id>.<secret>`.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer {
    /// Names the token; no secret.
    pub id: String,
    secret: String,
}

impl JoinToken {
    /// A new random token for the authority with this hash.
    pub fn generate(authority: &str) -> Result<Self, Error> {
        Ok(Self {
            bearer: Bearer {
                id: text(&random::<10>()?),
                secret: text(&random::<32>()?),
            },
            authority: authority.to_owned(),
        })
    }
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORMAT}.{}.{}", self.bearer.expose(), self.authority)
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({})", self.bearer.id)
    }
}

impl FromStr for JoinToken {
    type Err = Error;

    fn from_str(token: &str) -> Result<Self, Error> {
        let rest = token
            .trim()
            .strip_prefix(FORMAT)
            .and_then(|rest| rest.strip_prefix('.'))
            .ok_or(Error::Token("it does not begin with prow1."))?;
        let (bearer, authority) = rest.rsplit_once('.').ok_or(Error::Token("it is cut short"))?;
        let is_hash = authority.len() == HASH_LENGTH
            && authority
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !is_hash {
            return Err(Error::Token("its last part is no SHA-256 in lower-case hex"));
        }
        Ok(Self {
            bearer: bearer.parse()?,
            authority: authority.to_owned(),
        })
    }
}

impl Bearer {
    /// The text to send as `Authorization: Bearer …`.
    pub fn expose(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// What the server keeps of the secret: its SHA-256 in lower-case hex.
    pub fn secret_hash(&self) -> String {
        sha256_hex(&self.secret)
    }

    /// Whether the secret has this hash; takes the same time for every wrong one.
    pub fn matches(&self, secret_hash: &str) -> bool {
        self.secret_hash()
            .as_bytes()
            .ct_eq(secret_hash.trim().as_bytes())
            .into()
    }
}

impl FromStr for Bearer {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (id, secret) = text.split_once('.').ok_or(Error::Token("it has no secret"))?;
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| ALPHABET.contains(&b));
        if !plain(id) || !plain(secret) {
            return Err(Error::Token("its id or secret has characters no token has"));
        }
        Ok(Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bearer({})", self.id)
    }
}

fn text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|b| char::from(ALPHABET[usize::from(b % 32)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> JoinToken {
        JoinToken::generate(&"ab".repeat(32)).unwrap()
    }

    #[test]
    fn a_token_survives_being_printed_and_pasted() {
        let token = token();
        assert_eq!(format!(" {token}\n").parse::<JoinToken>().unwrap(), token);
        assert_eq!(token.bearer.expose().parse::<Bearer>().unwrap(), token.bearer);
    }

    #[test]
    fn only_the_right_secret_matches() {
        let (ours, other) = (token(), token());
        let kept = ours.bearer.secret_hash();
        assert!(ours.bearer.matches(&kept));
        assert!(!other.bearer.matches(&kept));
        assert!(!ours.bearer.matches(""));
        assert!(!ours.bearer.matches(&kept[1..]));
    }

    #[test]
    fn what_is_not_a_token_is_refused() {
        let good = token().to_string();
        for bad in [
            "",
            "prow1",
            "prow1.a.b",
            &good[1..],
            &good[..good.len() - 1],
            &good.replace("prow1.", "prow2."),
            &good.to_uppercase(),
            &good.replacen('.', "..", 1),
        ] {
            assert!(bad.parse::<JoinToken>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_never_in_debug_output() {
        let token = token();
        let secret = token.bearer.expose();
        let (_, secret) = secret.split_once('.').unwrap();
        assert!(!format!("{token:?} {:?}", token.bearer).contains(secret));
    }
}
