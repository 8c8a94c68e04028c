//! The head of a request: what is read of it, and what is wrong with it.

use super::host::is_same_origin;
use super::{HostPolicy, Refusal, Status};
use holdfast_api::message::{ErrorBody, ErrorCode};
use std::net::IpAddr;

/// Longest head, from the method to the empty line, bytes.
pub(crate) const MAX_HEAD: usize = 16 << 10;
/// Most header fields of a head.
pub(crate) const MAX_FIELDS: usize = 64;
/// Longest body, bytes.
pub(crate) const MAX_BODY: usize = 1 << 20;

/// The methods that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// To read.
    Get,
    /// As GET, without the body of the answer.
    Head,
    /// To call with arguments as JSON.
    Post,
}

/// A whole request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// How.
    pub method: Method,
    /// What, without the query; not decoded, for no path here needs it.
    pub path: String,
    /// What comes after `?`, encoded as it came.
    pub query: String,
    /// The body of a POST.
    pub body: Vec<u8>,
}

/// A head that is right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The request, its body still to come.
    pub request: Request,
    /// Bytes of the head itself.
    pub bytes: usize,
    /// Bytes of its body.
    pub length: usize,
    /// The client may go on with another request.
    pub keep_alive: bool,
    /// It waits for a word before it sends its body.
    pub expects_continue: bool,
}

fn refusal(status: Status, message: impl Into<String>, fix: &str) -> Refusal {
    Refusal { status, error: ErrorBody::new(ErrorCode::BadHttp, message).fix(fix) }
}

/// What is said where a head doesn't end within [`MAX_HEAD`].
pub(crate) fn head_too_large() -> Refusal {
    let fix = "send fewer and shorter header fields, and long arguments by POST";
    let mut refusal = refusal(Status::HeadTooLarge, "the request's head is too long", fix);
    refusal.error = refusal.error.at("head").limit(MAX_HEAD);
    refusal
}

/// Reads the head at the beginning of `bytes`; `None` if it hasn't ended yet. `local` is the
/// address that the connection came to.
///
/// # Errors
/// [`Refusal`]; where the next request would begin is not known then.
pub(crate) fn read_head(
    bytes: &[u8],
    policy: &HostPolicy,
    local: IpAddr,
) -> Result<Option<Head>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length > MAX_HEAD => {
            return Err(head_too_large());
        }
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() > MAX_HEAD => return Err(head_too_large()),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let fields = Fields(parsed.headers);
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") => Method::Post,
        other => {
            let fix = "use GET to read and POST to change";
            let mut refusal = refusal(Status::MethodNotAllowed, "no such method here", fix);
            refusal.error = refusal.error.value(other.unwrap_or_default());
            return Err(refusal);
        }
    };
    let (authority, path, query) = split_target(parsed.path.unwrap_or_default())?;
    let host = fields.one("host")?.ok_or_else(|| {
        refusal(Status::BadRequest, "the request has no Host", "send a Host header field")
    })?;
    // Whoever a proxy would be asked for is who is meant (RFC 9112 3.2.2).
    let host = authority.unwrap_or(host);
    check_host(host, policy, local)?;
    let body_length = body_length(&fields)?;
    match method {
        Method::Post => check_post(&fields, host)?,
        Method::Get | Method::Head if body_length > 0 => {
            let fix = "leave the body out, or use POST";
            return Err(refusal(Status::BadRequest, "a request to read has no body", fix));
        }
        Method::Get | Method::Head => {}
    }
    let is_11 = parsed.version == Some(1);
    Ok(Some(Head {
        request: Request { method, path, query, body: Vec::new() },
        bytes: length,
        length: body_length,
        // Of HTTP/1.0 each connection has one request: few of its clients want more.
        keep_alive: is_11 && !says_close(&fields),
        expects_continue: is_11 && expects_continue(&fields)?,
    }))
}

fn unreadable(error: httparse::Error) -> Refusal {
    let fix = "send an HTTP/1.1 request, such as curl http://127.0.0.1:9468/api/v1/ping";
    match error {
        httparse::Error::TooManyHeaders => {
            let mut refusal = head_too_large();
            refusal.error = refusal.error.at("header fields").limit(MAX_FIELDS);
            refusal
        }
        httparse::Error::Version => {
            let message = "only HTTP/1.1 and HTTP/1.0 are spoken here";
            refusal(Status::VersionNotSupported, message, fix)
        }
        error => refusal(Status::BadRequest, format!("not an HTTP request: {error}"), fix),
    }
}

/// Authority, path and query of a target, which is a path or a whole http URL.
fn split_target(target: &str) -> Result<(Option<&str>, String, String), Refusal> {
    let absolute = target.get(..7).filter(|start| start.eq_ignore_ascii_case("http://"));
    let (authority, rest) = match absolute.and_then(|_| target.get(7..)) {
        Some(rest) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (authority, rest) = rest.split_at(end);
            (Some(authority), rest)
        }
        None if target.starts_with('/') => (None, target),
        None => {
            let fix = "ask for a path such as /api/v1";
            return Err(refusal(Status::BadRequest, "the target is not a path", fix));
        }
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = if path.is_empty() { "/" } else { path };
    Ok((authority, path.to_owned(), query.to_owned()))
}

fn check_host(host: &str, policy: &HostPolicy, local: IpAddr) -> Result<(), Refusal> {
    if policy.allows(host, local) {
        return Ok(());
    }
    let message = "Host names another machine, which guards against DNS rebinding";
    let fix = "ask by address or localhost, or start holdfastd with --host NAME";
    let mut refusal = refusal(Status::MisdirectedRequest, message, fix);
    refusal.error = refusal.error.at("Host").value(host);
    Err(refusal)
}

/// A page of somebody else's can make a browser send a POST, but not one of JSON, and not without
/// its origin.
fn check_post(fields: &Fields<'_>, host: &str) -> Result<(), Refusal> {
    let kind = fields.one("content-type")?.unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let fix = "send Content-Type: application/json and the arguments as a JSON object";
        let message = "a POST must say that its body is JSON";
        let mut refusal = refusal(Status::UnsupportedMediaType, message, fix);
        refusal.error = refusal.error.at("Content-Type").value(kind);
        return Err(refusal);
    }
    match fields.one("origin")? {
        Some(origin) if !is_same_origin(origin, host) => {
            let message = "a page of another origin may not change the switch";
            let fix = "send no Origin, or call from a page of this daemon";
            let mut refusal = refusal(Status::Forbidden, message, fix);
            refusal.error = refusal.error.at("Origin").value(origin);
            Err(refusal)
        }
        _ => Ok(()),
    }
}

fn body_length(fields: &Fields<'_>) -> Result<usize, Refusal> {
    if let Some(coding) = fields.one("transfer-encoding")? {
        let fix = "send the body with a Content-Length";
        let (status, message) = match coding.eq_ignore_ascii_case("chunked") {
            // Both at once is how requests are smuggled (RFC 9112 6.1).
            _ if fields.one("content-length")?.is_some() => {
                (Status::BadRequest, "Transfer-Encoding and Content-Length exclude each other")
            }
            true => (Status::LengthRequired, "chunked bodies are not taken"),
            false => (Status::NotImplemented, "the transfer coding is not known"),
        };
        return Err(refusal(status, message, fix));
    }
    let Some(text) = fields.one("content-length")? else { return Ok(0) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        let fix = "send the number of bytes of the body";
        return Err(refusal(Status::BadRequest, "Content-Length is not a number", fix));
    }
    match text.parse() {
        Ok(length) if length <= MAX_BODY => Ok(length),
        // A number that is too long to be one, too.
        _ => {
            let fix = "send less at once";
            let mut refusal = refusal(Status::ContentTooLarge, "the body is too long", fix);
            refusal.error = refusal.error.at("Content-Length").value(text).limit(MAX_BODY);
            Err(refusal)
        }
    }
}

fn says_close(fields: &Fields<'_>) -> bool {
    let lists = fields.all("connection").filter_map(|value| core::str::from_utf8(value).ok());
    lists.flat_map(|list| list.split(',')).any(|item| item.trim().eq_ignore_ascii_case("close"))
}

fn expects_continue(fields: &Fields<'_>) -> Result<bool, Refusal> {
    match fields.one("expect")? {
        None => Ok(false),
        Some(word) if word.eq_ignore_ascii_case("100-continue") => Ok(true),
        Some(_) => {
            let fix = "expect 100-continue or nothing";
            Err(refusal(Status::ExpectationFailed, "such an Expect is not known", fix))
        }
    }
}

/// The header fields of a head.
struct Fields<'a>(&'a [httparse::Header<'a>]);

impl<'a> Fields<'a> {
    fn all(&self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + '_ {
        let named = move |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
        self.0.iter().filter(named).map(|field| field.value)
    }

    /// The value of a field that may be there once.
    fn one(&self, name: &'a str) -> Result<Option<&'a str>, Refusal> {
        let mut values = self.all(name);
        let (first, second) = (values.next(), values.next());
        let text = first.map(core::str::from_utf8).transpose();
        match (text, second) {
            (Ok(text), None) => Ok(text.map(str::trim)),
            (Err(_), _) | (_, Some(_)) => {
                let message = format!("the header field {name} is there twice or is no text");
                Err(refusal(Status::BadRequest, message, "send it once, in ASCII"))
            }
        }
    }
}
