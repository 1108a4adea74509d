//! Whole plans as people read them: `plan/<case>/` holds units and a node file, `facts.toml`, `environ`, and the
//! expected text.

use super::world;
use std::fs;

#[test]
fn plans() {
    let cases = world::root().join("tests/golden/plan");
    let mut folders: Vec<_> =
        fs::read_dir(&cases).expect("cases").flatten().map(|entry| entry.path()).collect();
    folders.sort();
    assert!(!folders.is_empty());
    for case in folders {
        let facts = fs::read_to_string(case.join("facts.toml")).unwrap_or_default();
        let environ = world::environ(&case.join("environ"));
        let environ: Vec<(&str, &str)> =
            environ.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let planned = world::plan(std::slice::from_ref(&case), None, &environ, &facts);
        let here = format!("tests/golden/plan/{}/", case.file_name().unwrap_or_default().to_string_lossy());
        let mut text = planned.text().replace(&here, "");
        let needs = tenon::plan::preflight(&planned.plan, &planned.facts);
        if !needs.is_empty() {
            text.push('\n');
            text.push_str(&tenon::plan::view::needs(&needs));
        }
        let problems = planned.problems().join("\n");
        if !problems.is_empty() {
            text.push('\n');
            text.push_str(&problems);
            text.push('\n');
        }
        // The fingerprint is tested elsewhere; here it would change with every word.
        let text = text.replace(&planned.plan.fingerprint[..12], "FINGERPRINT");
        let expected = fs::read_to_string(case.join("expected.txt")).unwrap_or_default();
        assert!(text == expected, "{}\n--- expected\n{expected}\n--- found\n{text}", case.display());
    }
}
