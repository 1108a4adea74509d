//! Entry points for bytes that anybody may have written: files, expressions, the control socket, answers of probes,
//! messages of units. Each takes any bytes and must come back, without a panic and soon; where there is something to
//! compare, it is compared.
//!
//! The property tests below play them on every run of the tests. Public for a fuzzer that is guided by coverage; not an
//! interface.

use crate::control::framing::Decoder;
use crate::control::message::Call;
use crate::diagnostic::{SourceMap, human};
use crate::expr::Template;
use crate::linux::fuzz as linux;
use crate::plan::{EnvFileText, Inputs, build};
use crate::resolve::{self, Dirs, Options};

/// Longer texts say nothing new.
const LONGEST: usize = 64 * 1024;

/// What takes any bytes.
pub type EntryPoint = fn(&[u8]);

/// Every entry by its name.
pub const ENTRIES: [(&str, EntryPoint); 5] = [
    ("files", files),
    ("expressions", expressions),
    ("control", control),
    ("http", linux::http),
    ("notify", linux::notify),
];

/// A node file, a unit and a drop-in (separated by NUL bytes): from bytes to a plan, with all that is said on the way.
pub fn files(bytes: &[u8]) {
    let bytes = bytes.get(..bytes.len().min(LONGEST)).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    let mut texts = text.splitn(3, '\0');
    let mut next = || texts.next().unwrap_or_default();
    let (unit, node, drop_in) = (next(), next(), next());
    let mut sources = SourceMap::default();
    let given = [("tenon.toml", node), ("units/u.toml", unit), ("units/u.toml.d/d.toml", drop_in)];
    let files = crate::load::in_memory(&given, &mut sources);
    let prepared = resolve::prepare(&files, &sources);
    let inputs =
        resolve::Inputs { files: &files, options: Options::default(), environment: None, facts: None };
    let (graph, mut diagnostics) = resolve::resolve_prepared(prepared, &inputs, &mut sources);
    let (dirs, env_file) = (Dirs::default(), |_: &str| EnvFileText::NotAsked);
    let inputs =
        Inputs { sources: &sources, environ: None, env_file: &env_file, dirs: &dirs, container: false };
    let (_, more) = build(&graph, &inputs);
    diagnostics.extend(more);
    let _ = human(&diagnostics, &sources, false);
}

/// A text with expressions: read, and what it reads of others.
pub fn expressions(bytes: &[u8]) {
    let bytes = bytes.get(..bytes.len().min(LONGEST)).unwrap_or_default();
    if let Ok(template) = Template::parse(&String::from_utf8_lossy(bytes)) {
        let _ = (template.is_plain(), template.is_lone(), template.reads());
    }
}

/// What comes in at the control socket: the same messages however it is cut, each a call or refused.
pub fn control(bytes: &[u8]) {
    let messages = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut decoder = Decoder::default();
        let mut found: Vec<Vec<u8>> = Vec::new();
        for piece in pieces {
            if decoder.push(piece).is_err() {
                break;
            }
            while let Ok(Some(message)) = decoder.next_message() {
                found.push(message.to_vec());
            }
        }
        found
    };
    let whole = messages(&mut std::iter::once(bytes));
    let size = bytes.first().map_or(1, |first| usize::from(*first).max(1));
    debug_assert_eq!(whole, messages(&mut bytes.chunks(size)), "the same messages, however they are cut");
    for message in whole {
        let _ = serde_json::from_slice::<Call>(&message);
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRIES;
    use proptest::prelude::*;

    /// Texts of the right kind, so that not everything ends at the first byte.
    const PIECES: [&str; 40] = [
        "command = \"a\"\n",
        "[ready]\n",
        "http = \"",
        "needs = [",
        "{ unit = \"u\" }",
        "]\n",
        "[unit.u]\n",
        "=",
        "\"",
        "\n",
        "{{ ",
        " }}",
        "param.x",
        " | default('a')",
        "env.X",
        "[param.x]\ntype = \"int\"\n",
        "\u{0}",
        "'",
        "1",
        "- ",
        "HTTP/1.1 200 OK\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "\r\n",
        "5\r\nhello\r\n",
        "0\r\n",
        "{\"method\":\"dev.tenon.Runner.Status\"",
        ",\"parameters\":{",
        "}",
        "READY=1\n",
        "STATUS=",
        "EXTEND_TIMEOUT_USEC=",
        "18446744073709551616",
        "[file.a]\n",
        "[restart]\n",
        "delays = [\"1s\"]\n",
        "extends = \"u\"\n",
        "[rule.r]\n",
        "when = \"",
        "set = { A = \"{{ env.A }}\" }\n",
    ];

    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..400);
        let pieces = proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..30);
        prop_oneof![
            1 => bytes.clone(),
            3 => pieces.clone().prop_map(|pieces| pieces.concat().into_bytes()),
            1 => (pieces, bytes, any::<usize>()).prop_map(|(pieces, bytes, at)| {
                let mut text = pieces.concat().into_bytes();
                let at = at % (text.len() + 1);
                text.splice(at..at, bytes);
                text
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn no_bytes_do_any_harm(bytes in hostile()) {
            for (_, entry) in ENTRIES {
                entry(&bytes);
            }
        }
    }
}
