//! What this module reads of others' bytes, for `crate::fuzz`.

use super::{notify, probe};
use crate::plan::exec::HttpExpect;

/// An answer to an HTTP probe, whole or cut off.
pub fn http(bytes: &[u8]) {
    let expect = HttpExpect {
        status: None,
        json: vec![("a.b".to_owned(), serde_json::Value::from(1))],
        contains: Some("ok".to_owned()),
    };
    for ended in [false, true] {
        if let Ok(Some(response)) = probe::http::parse(bytes, ended) {
            let _ = probe::http::judge(&response, &expect, true);
        }
    }
}

/// A message of a unit.
pub fn notify(bytes: &[u8]) {
    let _ = notify::parse(bytes);
}
