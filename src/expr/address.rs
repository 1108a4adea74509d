//! `host:port` and `[v6]:port`: put together and taken apart.

use super::say::quoted;
use std::net::Ipv6Addr;

/// A host, and a port if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address<'a> {
    /// A name, an IPv4 or an IPv6 address, without brackets.
    pub host: &'a str,
    /// The port.
    pub port: Option<u16>,
}

/// Takes an address apart. An IPv6 address without brackets is a host alone.
///
/// # Errors
/// In words: no host, a port that is no number, brackets around something that is no IPv6 address, a URL.
pub fn split(text: &str) -> Result<Address<'_>, String> {
    if text.contains("://") {
        return Err(format!("{} is a URL, not `host:port`", quoted(text)));
    }
    if let Some(inner) = text.strip_prefix('[') {
        let (host, rest) =
            inner.split_once(']').ok_or_else(|| format!("{} has no closing `]`", quoted(text)))?;
        if !is_v6(host) {
            return Err(format!("{} is not an IPv6 address, and only these stand in brackets", quoted(host)));
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok(Address { host, port: Some(parse_port(port)?) }),
            None if rest.is_empty() => Ok(Address { host, port: None }),
            None => Err(format!("{} after `]` is not a port", quoted(rest))),
        };
    }
    if is_v6(text) {
        return Ok(Address { host: text, port: None });
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(parse_port(port)?)),
        None => (text, None),
    };
    if host.is_empty() {
        return Err(format!("{} has no host", quoted(text)));
    }
    Ok(Address { host, port })
}

/// Puts host and port together: an IPv6 address gets brackets, host names and IPv4 addresses do not.
///
/// # Errors
/// In words: no host, or one that carries a port already.
pub fn join(host: &str, port: u16) -> Result<String, String> {
    let address = split(host)?;
    if let Some(there) = address.port {
        return Err(format!("{} already has a port, {there}", quoted(host)));
    }
    Ok(if is_v6(address.host) {
        format!("[{}]:{port}", address.host)
    } else {
        format!("{}:{port}", address.host)
    })
}

/// A port in digits, 0 to 65535.
///
/// # Errors
/// In words.
pub fn parse_port(text: &str) -> Result<u16, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits => Ok(port),
        _ => Err(format!("{} is not a port, 0 to 65535", quoted(text))),
    }
}

/// Whether it is an IPv6 address, with a zone (`%eth0`) or without.
fn is_v6(text: &str) -> bool {
    let address = match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => address,
        Some(_) => return false,
        None => text,
    };
    address.parse::<Ipv6Addr>().is_ok()
}
/// Takes `http://host:port/path` apart: where it is, and the path from `/`.
///
/// # Errors
/// In words: another protocol, no host, blanks.
pub fn url(text: &str) -> Result<(Address<'_>, String), String> {
    let Some(rest) = text.strip_prefix("http://") else {
        return Err(format!(
            "`{text}` does not start with `http://` (probes speak plain HTTP; use `exec` for more)"
        ));
    };
    let (authority, path) = match rest.find(['/', '?']) {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err("a URL holds no blanks: write `%20`".into());
    }
    let address = split(authority)?;
    if address.host.is_empty() {
        return Err(format!("`{text}` names no host"));
    }
    Ok((address, path))
}

/// What a connection can be made to: `host:port`, `unix:/path`.
///
/// # Errors
/// In words: no port, no address.
pub fn endpoint(text: &str) -> Result<(), String> {
    if text.starts_with("unix:/") {
        return Ok(());
    }
    match split(text)?.port {
        Some(_) => Ok(()),
        None => Err(format!("`{text}` has no port: write `host:port`")),
    }
}
