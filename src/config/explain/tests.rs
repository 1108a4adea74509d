//! Every key and code can be explained; the reference page is the one committed.

use super::*;

#[test]
fn a_key_by_its_path() {
    assert_eq!(
        explain_key("ready.interval").unwrap(),
        "ready.interval  (unit file)\n  \
           From the end of one attempt to the next.\n  \
           type     a duration such as \"10s\"\n  \
           default  \"1s\"\n  \
           since    0.1\n"
    );
}

#[test]
fn a_table_a_named_thing_and_a_name_alone() {
    assert!(
        explain_key("[stop]")
            .unwrap()
            .starts_with("[stop]  (unit file)\n  How the unit is stopped.\n  keys: signal,")
    );
    assert!(explain_key("file.config.mode").unwrap().starts_with("file.NAME.mode  (unit file)\n"));
    let timeouts = explain_key("timeout").unwrap();
    for path in ["ready.timeout", "health.timeout", "stop.timeout", "bootstrap.NAME.timeout", "edge.timeout"]
    {
        assert!(timeouts.contains(path), "{path}");
    }
    let when = explain_key("when").unwrap();
    assert!(when.starts_with("when  (unit file)\n"), "{when}");
}

#[test]
fn what_is_not_known_has_neighbours() {
    assert_eq!(explain_key("ready.intervall").unwrap_err(), ["ready.interval"]);
    assert_eq!(explain_key("stop.nofile").unwrap_err(), ["rlimits.nofile", "preflight.nofile"]);
    assert_eq!(explain_key("zzz").unwrap_err(), [""; 0]);
}

#[test]
fn a_code() {
    assert!(
        explain_code("unknown-key")
            .unwrap()
            .starts_with("unknown-key\n\n  No key of this name exists in this table.")
    );
    assert_eq!(explain_code("nope"), None);
}

#[test]
fn every_key_can_be_explained_and_stands_in_the_reference() {
    let page = reference();
    for key in KEYS {
        let path = key.path().replace("[]", "");
        assert!(explain_key(&path).is_ok_and(|text| text.contains(&display(&key.path()))), "{path}");
        assert!(page.contains(&format!("| `{}` | {}", key.name, key.ty.words())), "{path}");
    }
    for code in Code::ALL {
        assert!(page.contains(&format!("| `{}` |", code.name())), "{}", code.name());
    }
}

/// `TENON_BLESS=1` writes it anew.
#[test]
fn the_reference_page_is_the_committed_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference.md");
    if std::env::var_os("TENON_BLESS").is_some() {
        std::fs::write(path, reference()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == reference(),
        "docs/reference.md is out of date; TENON_BLESS=1 cargo test --lib explain writes it"
    );
}
