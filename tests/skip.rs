//! A test that cannot run here, or not all of it, says so.

use std::io::Write;

/// Told to whoever reads the output, and noted in the file that `TENON_SKIPPED` names, from which `scripts/test` makes its
/// last line. `kind`: `installable` where the set-up could bring what is missing, `other` where nothing can.
#[allow(clippy::print_stdout, reason = "this is where a person reading the test's output sees it")]
pub fn skip(kind: &str, test: &str, reason: &str) {
    println!("SKIP: {test}: {reason}");
    if let Some(path) = std::env::var_os("TENON_SKIPPED") {
        let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
        // In one piece: other processes write into it at the same time.
        file.write_all(format!("{kind}\t{test}\t{reason}\n").as_bytes()).unwrap();
    }
}
