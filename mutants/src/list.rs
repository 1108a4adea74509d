//! What `cargo mutants --list --json` says.

use std::process::Command;

use serde_json::Value;

/// One change of one place.
pub struct Mutant {
    /// Counted from 1.
    pub number: usize,
    pub file: String,
    /// Line and column, from 1.
    pub start: (usize, usize),
    pub end: (usize, usize),
    pub genre: String,
    pub replacement: String,
    /// `src/supervisor/x.rs:1:2: replace … with … in …`
    pub name: String,
    pub function: String,
    pub return_type: String,
}

/// The changes of these files.
pub fn list(judge: &str, files: &[String]) -> Result<Vec<Mutant>, String> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--dir", judge, "--list", "--json"]);
    for file in files {
        command.args(["--file", file]);
    }
    let output = command.output().map_err(|error| format!("cargo mutants: {error}"))?;
    let words = String::from_utf8_lossy(&output.stdout);
    let Ok(Value::Array(all)) = serde_json::from_str(&words) else {
        return Err(format!("cargo mutants: {}", String::from_utf8_lossy(&output.stderr)));
    };
    Ok(all.iter().enumerate().map(|(at, value)| read(at + 1, value)).collect())
}

fn read(number: usize, value: &Value) -> Mutant {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = |value: &Value| {
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
        (count(&value["line"]), count(&value["column"]))
    };
    Mutant {
        number,
        file: text(&value["file"]),
        start: place(&value["span"]["start"]),
        end: place(&value["span"]["end"]),
        genre: text(&value["genre"]),
        replacement: text(&value["replacement"]),
        name: text(&value["name"]),
        function: text(&value["function"]["function_name"]),
        return_type: text(&value["function"]["return_type"]),
    }
}
