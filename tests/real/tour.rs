//! The README's tour, executed: its files are written, its commands run in one shell, and what they print is what the
//! page shows, numbers aside.

use crate::node::root;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

/// A command of a `console` block and the output shown below it.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The section `## A two-minute tour`.
fn tour(page: &str) -> &str {
    page.split("\n## ").find(|section| section.starts_with("A two-minute tour")).expect("a tour")
}

/// Its files (`toml` blocks that begin with `# NAME.toml`) and steps.
fn read_tour(page: &str) -> (Vec<(String, String)>, Vec<Step>) {
    let (mut files, mut steps) = (Vec::new(), Vec::<Step>::new());
    let mut blocks = tour(page).split("```");
    blocks.next();
    while let (Some(block), _) = (blocks.next(), blocks.next()) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        match language {
            "toml" => {
                let name =
                    text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("`# NAME.toml`");
                files.push((name.to_owned(), text.to_owned()));
            }
            "console" => {
                for line in text.lines() {
                    match line.strip_prefix("$ ") {
                        Some(command) => {
                            steps.push(Step { command: command.to_owned(), shown: Vec::new() });
                        }
                        None => steps.last_mut().expect("a command first").shown.push(line.to_owned()),
                    }
                }
            }
            other => panic!("the tour has a block of `{other}`"),
        }
    }
    (files, steps)
}

/// Numbers, times, fingerprints and the width of columns differ from run to run.
fn normal(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let fingerprint = word.len() == 12 && word.chars().all(|c| c.is_ascii_hexdigit());
        if fingerprint { "FINGERPRINT".to_owned() } else { without_numbers(word) }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `742ms`, `1.5s` and `3s` are all `Ns`.
fn without_numbers(word: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in word.chars() {
        let digit = c.is_ascii_digit() || (inside && c == '.');
        if !digit {
            text.push(c);
        } else if !inside {
            text.push('N');
        }
        inside = digit;
    }
    text.replace("Nms", "Ns")
}

/// Commands that the tour's prose names: whoever reads them types them.
fn named_in_prose(page: &str) -> Vec<String> {
    let prose: String = tour(page).split("```").step_by(2).collect();
    let words = prose
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|words| words.starts_with("tenon ")).collect()
}

#[test]
fn what_the_tour_names_it_also_runs() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, steps) = read_tour(&page);
    for named in named_in_prose(&page) {
        assert!(
            steps.iter().any(|step| step.command.starts_with(&named)),
            "`{named}` works in no fresh folder"
        );
    }
    assert_eq!(
        named_in_prose("\n## A two-minute tour\nsay `tenon top` in\n```sh\n`tenon x`\n```\n"),
        ["tenon top"]
    );
}

#[test]
fn the_readmes_tour_prints_what_it_shows() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (files, steps) = read_tour(&page);
    assert!(!steps.is_empty());
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut script = String::new();
    for step in &steps {
        writeln!(script, "printf '\\n@@step\\n'\n{}", step.command).unwrap();
    }
    writeln!(script, "printf '\\n@@step\\n'; wait").unwrap();

    let binary = std::env::var("TENON_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tenon").to_owned());
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(std::fs::canonicalize(binary).unwrap(), bin.join("tenon")).unwrap();
    let output = Command::new("timeout")
        .args(["--kill-after=5", "90", "bash", "-c", &format!("exec 2>&1\n{script}")])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
        .envs([("HOME", folder.path()), ("RUNTIME_DIRECTORY", &folder.path().join("run"))])
        .envs([
            ("LOGS_DIRECTORY", folder.path().join("log")),
            ("STATE_DIRECTORY", folder.path().join("state")),
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);

    let mut parts = said.split("\n@@step\n");
    parts.next();
    for step in &steps {
        let real = parts.next().unwrap_or_else(|| panic!("`{}` was never reached: {said}", step.command));
        let real: Vec<&str> = real.trim_end().lines().collect();
        let normalised: Vec<String> = real.iter().map(|line| normal(line)).collect();
        let mut shown: Vec<String> = step.shown.iter().map(|line| normal(line)).collect();
        while shown.last().is_some_and(String::is_empty) {
            shown.pop();
        }
        assert_eq!(normalised, shown, "`{}` prints:\n{}", step.command, real.join("\n"));
    }
    assert!(output.status.success(), "{said}");
}
