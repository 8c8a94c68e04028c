//! Why a profile can't be planned or changed.

use holdfast_api::doc::Finding;
use holdfast_api::message::{ErrorBody, ErrorCode};
use holdfast_core::profile::ProfileError;
use thiserror::Error;

/// Why a profile can't be planned or changed; nothing of it is applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A value is missing, out of range or contradicts another.
    #[error("{0}")]
    Value(Finding),
    /// There is no port of that name.
    #[error("port: there is no port {name:?}; use one of {}", known.join(", "))]
    UnknownPort {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The core refuses the profile as a whole: its budget, a range, a contradiction.
    #[error("{0}")]
    Profile(#[from] ProfileError),
}

impl From<Finding> for PlanError {
    fn from(finding: Finding) -> Self {
        Self::Value(finding)
    }
}

impl PlanError {
    /// The error with its key in a document; `names` are the ports' names in the order of their
    /// ids, by which the core's `port 0` is known to people.
    pub fn finding(self, names: &[String]) -> Finding {
        match self {
            Self::Value(finding) => finding,
            Self::UnknownPort { name, known } => Finding::new(
                format!("port.{name}"),
                format!("there is no port {name:?}"),
                format!("use one of {}", known.join(", ")),
            ),
            Self::Profile(error) => refused_by_core(&error, names),
        }
    }
}

impl From<PlanError> for Finding {
    fn from(error: PlanError) -> Self {
        error.finding(&[])
    }
}

impl From<PlanError> for ErrorBody {
    fn from(error: PlanError) -> Self {
        let code = match &error {
            PlanError::UnknownPort { .. } => ErrorCode::UnknownPort,
            PlanError::Value(_) | PlanError::Profile(_) => ErrorCode::Refused,
        };
        let mut body = Self::from(Finding::from(error));
        body.code = code;
        body
    }
}

fn refused_by_core(error: &ProfileError, names: &[String]) -> Finding {
    // The core's texts end in what to do, behind a semicolon.
    let parts = |text: &str| {
        let (message, fix) = text.rsplit_once("; ").unwrap_or((text, "use a value in range"));
        (message.to_owned(), fix.to_owned())
    };
    let finding = |key: &str, text: &str| {
        let (message, fix) = parts(text);
        Finding::new(key, message, fix)
    };
    let text = error.to_string();
    match error {
        ProfileError::IngressBudget { needed, total, .. } => {
            finding("buffer.total", &text).numbers(needed, total)
        }
        ProfileError::EgressBudget { needed, total, .. } => {
            finding("buffer.egress_shared", &text).numbers(needed, total)
        }
        ProfileError::OutOfRange { what, value, limit } => {
            finding(&key_of(what, names), "out of range").numbers(value, limit)
        }
        ProfileError::Contradiction { what, why } => finding(&key_of(what, names), why),
    }
}

/// The core says `port 0 pg 3: xoff`; a document says `port.h1.pg.3.xoff`, or `pg.3.xoff` where the
/// port's name isn't known.
fn key_of(what: &str, names: &[String]) -> String {
    let words: Vec<&str> = what.split([' ', ':']).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        ["total", "cells"] => "buffer.total".to_owned(),
        ["port", number, rest @ ..] if !rest.is_empty() => {
            let name = number.parse().ok().and_then(|number: usize| names.get(number));
            let front = name.map(|name| format!("port.{name}.")).unwrap_or_default();
            format!("{front}{}", rest.join("."))
        }
        _ => words.join("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_core_refuses_gets_the_documents_key() {
        let error = ProfileError::OutOfRange {
            what: "port 0 pg 3: headroom".to_owned(),
            value: 3_000_000,
            limit: 2_097_151,
        };
        let finding = Finding::from(PlanError::from(error.clone()));
        assert_eq!(finding.key, "pg.3.headroom");
        assert_eq!(finding.limit.as_deref(), Some("2097151"));
        let named = PlanError::from(error).finding(&["h1".to_owned()]);
        assert_eq!(named.key, "port.h1.pg.3.headroom");
        assert!(!named.to_string().contains("port 0"), "{named}");
        let budget = ProfileError::EgressBudget { needed: 9, guarantees: 4, shared: 5, total: 8 };
        let body = ErrorBody::from(PlanError::from(budget));
        assert_eq!((body.value.as_deref(), body.limit.as_deref()), (Some("9"), Some("8")));
        assert!(body.fix.is_some_and(|fix| fix.starts_with("make egress_shared smaller")));
    }
}
