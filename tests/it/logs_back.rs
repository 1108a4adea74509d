//! Logs read back: by unit, time and boot, across rotations and compressed files, with and without a runner.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::env::TestEnv;
use crate::runner::until;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A unit that writes so many lines of 20 bytes now, says so, and as many again when it is told to.
fn writer(env: &TestEnv, name: &str) {
    let (first, go) = (env.path(&format!("state/{name}.first")), env.path("state/go"));
    let lines = "i=0; while [ $i -lt 300 ]; do printf \"%s %014d\\n\" $1 $i; i=$((i+1)); \
                 [ $((i % 60)) -ne 0 ] || sleep 0.2; done";
    env.write("lines.sh", lines);
    let script = format!(
        "sh {0} old; : > {1}; while [ ! -e {2} ]; do sleep 0.05; done; sh {0} new; exec sleep 1000",
        env.path("node/lines.sh").display(),
        first.display(),
        go.display()
    );
    let log = "[log]\nto = [\"file\"]\nmax_size = \"2kb\"\nkeep = 100\ncompress = true\n";
    env.shell(name, &script, log);
}

/// How many lines begin with `old` and with `new`.
fn counted(text: &str) -> (usize, usize) {
    let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
    (count("old 0"), count("new 0"))
}

#[test]
fn by_unit_time_and_boot_across_rotations_and_compressed_files() {
    let env = TestEnv::new();
    writer(&env, "a");
    writer(&env, "b");
    let mut runner = env.run();
    until("the first half", || {
        (env.path("state/a.first").exists() && env.path("state/b.first").exists()).then_some(())
    });
    // An index counts seconds: the halves lie in different ones.
    let begun = now();
    until("two seconds more", || (now() >= begun + 2).then_some(()));
    fs::write(env.path("state/go"), "").unwrap();
    let last = |name: &str| {
        let text = fs::read_to_string(env.path(&format!("log/{name}.log"))).unwrap_or_default();
        text.contains("new 00000000000299").then_some(())
    };
    until("the second half", || last("a").and(last("b")));
    until("a compressed file", || env.path("log/a.log.2.gz").exists().then_some(()));
    until("the end of the last compression", || {
        let names = fs::read_dir(env.path("log")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names = names.map(|name| name.into_string().unwrap());
        let plain =
            names.any(|name| name.contains(".log.") && name.ends_with(|last: char| last.is_ascii_digit()));
        (!plain).then_some(())
    });
    let check = |args: &[&str], expected: (usize, usize)| {
        let mut all = vec!["logs"];
        all.extend(args);
        let answer = env.node(&all);
        assert_eq!((answer.code, counted(&answer.stdout)), (0, expected), "{args:?}\n{}", answer.stderr);
    };
    let seam = rfc3339(begun + 1);
    let with_and_without_a_runner = || {
        check(&["a", "--since", "1h"], (300, 300));
        check(&["a", "--since", &seam], (0, 300));
        check(&["a", "--until", &seam], (300, 0));
        check(&["--since", "1h"], (600, 600));
        check(&["a", "b", "--since", &seam], (0, 600));
        check(&["a", "--since", "1h", "-n", "10"], (0, 10));
        check(&["a", "--boot", "0"], (300, 300));
        check(&["a", "--boot", "1"], (0, 0));
    };
    with_and_without_a_runner();
    assert_eq!(runner.stop(), 0);
    with_and_without_a_runner();

    // The machine was booted between the halves, as far as the indexes say.
    let mut indexes: Vec<_> =
        fs::read_dir(env.path("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    indexes.retain(|path| path.to_str().unwrap().contains("a.log") && path.extension().unwrap() == "idx");
    for path in indexes {
        let text = fs::read_to_string(&path).unwrap();
        let line = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let old = words[1].parse::<u64>().unwrap() < (begun + 1) * 1000;
            format!("{} {} {}\n", words[0], words[1], if old { "boot-1" } else { "boot-2" })
        };
        fs::write(&path, text.lines().map(line).collect::<String>()).unwrap();
    }
    check(&["a", "--boot", "0"], (0, 300));
    check(&["a", "--boot", "1"], (300, 0));
}

/// `1970-01-01T00:00:00Z` and so on, by the tool everybody has.
fn rfc3339(seconds: u64) -> String {
    let done =
        std::process::Command::new("date").args(["-u", "-d", &format!("@{seconds}"), "+%FT%TZ"]).output();
    String::from_utf8(done.unwrap().stdout).unwrap().trim().to_owned()
}
