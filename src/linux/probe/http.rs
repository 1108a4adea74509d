//! HTTP/1.1, as much as a probe needs: one GET, its whole answer, and what was expected of it. Pure.

use serde_json::Value;

use crate::plan::exec::{HttpExpect, HttpUrl};

/// Bytes of an answer that are looked at.
pub const ANSWER_MAX: usize = 256 * 1024;
/// Headers of an answer that are looked at.
const HEADERS_MAX: usize = 64;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Its status code.
    pub status: u16,
    /// Its body, without transfer coding.
    pub body: Vec<u8>,
}

/// `http://host:port/path`, as people write it.
pub fn shown(url: &HttpUrl) -> String {
    format!("http://{}{}", authority(url), url.path)
}

fn authority(url: &HttpUrl) -> String {
    if url.host.contains(':') {
        format!("[{}]:{}", url.host, url.port)
    } else {
        format!("{}:{}", url.host, url.port)
    }
}

/// The bytes to send.
pub fn request(url: &HttpUrl) -> Vec<u8> {
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tenon\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        url.path,
        authority(url)
    )
    .into_bytes()
}

/// The answer in these bytes, if it is whole; `ended`: nothing more comes. Errors are words.
pub fn parse(bytes: &[u8], ended: bool) -> Result<Option<Response>, String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let start = match head.parse(bytes) {
        Ok(httparse::Status::Complete(start)) => start,
        Ok(httparse::Status::Partial) if ended && bytes.is_empty() => {
            return Err("the connection was closed without an answer".to_owned());
        }
        Ok(httparse::Status::Partial) if ended => return Err("the answer is cut off".to_owned()),
        Ok(httparse::Status::Partial) if bytes.len() >= ANSWER_MAX => {
            return Err("the answer has no end".to_owned());
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("the answer is not HTTP ({error})")),
    };
    let status = head.code.unwrap_or_default();
    let body = bytes.get(start..).unwrap_or_default();
    if (100..200).contains(&status) && status != 101 {
        // An interim answer; the real one follows.
        return parse(body, ended);
    }
    let header = |name: &str| {
        head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    let all = ended || bytes.len() >= ANSWER_MAX;
    let chunked = header("transfer-encoding")
        .is_some_and(|value| String::from_utf8_lossy(value).to_ascii_lowercase().contains("chunked"));
    if chunked {
        let (body, whole) = dechunk(body)?;
        return Ok((whole || all).then_some(Response { status, body }));
    }
    let length = header("content-length")
        .and_then(|value| std::str::from_utf8(value).ok())
        .and_then(|value| value.trim().parse::<usize>().ok());
    let whole = match length {
        Some(length) => body.len() >= length,
        None => matches!(status, 204 | 304),
    };
    let body = body.get(..length.unwrap_or(body.len()).min(body.len())).unwrap_or_default();
    Ok((whole || all).then(|| Response { status, body: body.to_vec() }))
}

/// The joined chunks, and whether the last one is there.
fn dechunk(mut rest: &[u8]) -> Result<(Vec<u8>, bool), String> {
    let mut body = Vec::new();
    loop {
        match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete((_, 0))) => return Ok((body, true)),
            Ok(httparse::Status::Complete((start, size))) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                let chunk = rest.get(start..).unwrap_or_default();
                body.extend_from_slice(chunk.get(..size.min(chunk.len())).unwrap_or_default());
                // The chunk and the line end behind it.
                match chunk.get(size.saturating_add(2)..) {
                    Some(after) => rest = after,
                    None => return Ok((body, false)),
                }
            }
            Ok(httparse::Status::Partial) => return Ok((body, false)),
            Err(_) => return Err("the answer is not HTTP (a wrong chunk size)".to_owned()),
        }
    }
}

/// Whether an answer is as expected; if not, what was found instead.
pub fn judge(response: &Response, expect: &HttpExpect, any_status: bool) -> Result<(), String> {
    let status = response.status;
    match expect.status {
        Some(wanted) if wanted != status => return Err(format!("{status}, want {wanted}")),
        None if !any_status && !(200..300).contains(&status) => return Err(format!("{status}, want 2xx")),
        Some(_) | None => {}
    }
    if let Some(text) = &expect.contains
        && !String::from_utf8_lossy(&response.body).contains(text.as_str())
    {
        return Err(format!("{status}, but the body does not contain `{text}`"));
    }
    if expect.json.is_empty() {
        return Ok(());
    }
    let Ok(body) = serde_json::from_slice::<Value>(&response.body) else {
        return Err(format!("{status}, but the body is not JSON"));
    };
    for (path, wanted) in &expect.json {
        match member(&body, path) {
            Some(found) if same(found, wanted) => {}
            Some(found) => return Err(format!("{status}, but `{path}` is {found}, want {wanted}")),
            None => return Err(format!("{status}, but `{path}` is missing, want {wanted}")),
        }
    }
    Ok(())
}

/// `a.b.0` reaches into objects and arrays; a member whose name has dots is found by its whole name.
fn member<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let object = value.as_object();
    if let Some(found) = object.and_then(|object| object.get(path)) {
        return Some(found);
    }
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let found = match value {
        Value::Array(items) => items.get(first.parse::<usize>().ok()?)?,
        _ => object?.get(first)?,
    };
    rest.map_or(Some(found), |rest| member(found, rest))
}

/// Numbers are equal by value: `2` and `2.0`.
fn same(found: &Value, wanted: &Value) -> bool {
    match (found.as_f64(), wanted.as_f64()) {
        (Some(a), Some(b)) => found == wanted || (a - b).abs() < f64::EPSILON,
        _ => found == wanted,
    }
}
