//! The texts that values are made of: sizes, port ranges, versions, times, addresses, words for yes and no, JSON.

use super::port_range::PortRange;
use super::version::Version;
use super::{Value, address, duration, json, size, words};
use std::cmp::Ordering;
use std::time::Duration;

#[test]
fn sizes() {
    const KB: i64 = 1024;
    const GB: i64 = KB * KB * KB;
    for (text, bytes) in [
        ("0", 0),
        ("1048576", 1_048_576),
        ("10b", 10),
        ("1k", KB),
        ("1KB", KB),
        ("64m", 64 * KB * KB),
        ("512 MB", 512 * KB * KB),
        ("100gb", 100 * GB),
        ("2GB", 2 * GB),
        ("2GiB", 2 * GB),
        ("2Gi", 2 * GB),
        ("1.5g", 1_610_612_736),
        (".5k", 512),
        ("5.k", 5 * KB),
        ("3.125GB", 3_355_443_200),
        ("1TB", KB * GB),
        ("1e9", 1_000_000_000),
        ("1.5E+2 kb", 150 * KB),
        ("1e0b", 1),
        // 0.1 GB is 107374182.4 bytes.
        ("0.1gb", 107_374_182),
        ("0.0001", 0),
        (" 1 ", 1),
        ("9223372036854775807", i64::MAX),
    ] {
        assert_eq!(size::parse(text), Ok(bytes), "{text}");
    }
    for text in ["", "gb", ".", "1.2.3", "1e", "1e99", "0x10", "1pb", "1 g b", "1,5g", "inf", "+1", "1_000"] {
        let message = format!("`{text}` is not a size; write it like `100gb`, `1.5g` or `1048576`");
        assert_eq!(size::parse(text), Err(message));
    }
    assert_eq!(size::parse("-1gb"), Err("`-1gb` is negative, and a size is not".to_owned()));
    assert_eq!(
        size::parse("9223372036854775808"),
        Err("`9223372036854775808` is larger than any memory".to_owned())
    );
    assert_eq!(size::parse("9000000TB"), Err("`9000000TB` is larger than any memory".to_owned()));
}

#[test]
fn sizes_in_words() {
    for (bytes, expected) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KB"),
        (1536, "1.5 KB"),
        (644_245_094_400, "600 GB"),
        (3_355_443_200, "3.1 GB"),
        (u64::MAX, "16777215.9 TB"),
    ] {
        assert_eq!(size::words(bytes), expected);
    }
}

#[test]
fn port_ranges() {
    let ranges = |text: &str| PortRange::parse(text).map(|range| range.ranges().to_vec());
    assert_eq!(ranges("16666"), Ok(vec![16666..=16666]));
    assert_eq!(ranges("60000-60050"), Ok(vec![60000..=60050]));
    assert_eq!(ranges("1, 5-6 ,3"), Ok(vec![1..=1, 5..=6, 3..=3]));
    assert_eq!(PortRange::parse(" AUTO "), Ok(PortRange::Auto));
    assert_eq!(PortRange::parse("1,5-6").map(|range| range.count()), Ok(3));
    assert_eq!(PortRange::Auto.count(), 0);
    for (text, message) in [
        ("", "an empty text is no port range"),
        ("0", "port `0` is outside 1 to 65535"),
        ("65536", "port `65536` is outside 1 to 65535"),
        ("5-4", "`5-4` runs down; write `4-5`"),
        ("1-5,3", "`1-5` and `3` overlap"),
        ("7,7", "`7` and `7` overlap"),
        ("1,,2", "`` is not a port; write `16700`, `16700-16800`, a comma list, or `auto`"),
        ("1-2-3", "`2-3` is not a port; write `16700`, `16700-16800`, a comma list, or `auto`"),
        ("auto,1", "`auto` stands alone: take it out of the list, or write nothing else"),
    ] {
        assert_eq!(ranges(text), Err(message.to_owned()), "{text}");
    }
    let many = (1..=1025).map(|port| port.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(ranges(&many), Err("more than 1024 parts".to_owned()));
}

#[test]
fn versions_are_ordered() {
    use Ordering::{Equal, Greater, Less};
    for (a, order, b) in [
        ("8.2.RC1", Less, "8.2.0"),
        ("9.1.0.RC1", Less, "9.1.0"),
        ("0.3.11.post1", Greater, "0.3.11"),
        ("25.5", Equal, "25.5.0"),
        ("25.5", Equal, "v25.5.0.0"),
        ("9.1.RC1", Equal, "9.1.0.rc1"),
        ("9.1.RC1", Less, "9.1.RC2"),
        ("9.1.RC2", Less, "9.1.RC10"),
        ("9.1.RC1", Less, "9.1.1"),
        ("9.1.RC1", Greater, "9.0.9"),
        ("25.0.rc1.1", Greater, "25.0.rc1"),
        ("25.0.rc1.1", Less, "25.0"),
        ("24.1.rc1", Less, "25.5"),
        ("0.3.9", Less, "0.3.11"),
        ("0.3.10", Less, "0.3.11"),
        ("0.3.11.post1", Less, "0.3.11.post2"),
        ("0.3.11.post1", Less, "0.3.12"),
        ("1.0.dev1", Less, "1.0a1"),
        ("1.0a1", Less, "1.0b1"),
        ("1.0b1", Less, "1.0rc1"),
        ("1.0rc1", Less, "1.0"),
        ("1.0-alpha", Less, "1.0-beta.2"),
        ("1.0rc1.dev2", Less, "1.0rc1"),
        ("24.1.0.B210", Greater, "24.1.0"),
        ("5.10.0-1-amd64", Greater, "5.10"),
        ("1.0+abc", Greater, "1.0"),
        ("1.0", Less, "1.0.0.1"),
        ("10", Greater, "9.9.9"),
    ] {
        let [first, second] = [a, b].map(|text| Version::parse(text).unwrap());
        assert_eq!(first.cmp(&second), order, "{a} and {b}");
        assert_eq!(second.cmp(&first), order.reverse(), "{b} and {a}");
        assert_eq!(first == second, order == Equal);
    }
    for text in ["", "rc1", "not found", "1 2", "v", "1.0\n2", "99999999999999999999", "1.é"] {
        assert!(Version::parse(text).is_err(), "{text:?}");
    }
    assert!(Version::parse(&"1.".repeat(100)).is_err());
}

#[test]
fn durations() {
    for (text, millis) in [
        ("90s", 90_000),
        ("1m 30s", 90_000),
        ("1m30s", 90_000),
        ("500ms", 500),
        ("1.5s", 1500),
        ("0s", 0),
        ("1h", 3_600_000),
        (" 2d ", 172_800_000),
    ] {
        assert_eq!(duration::parse(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    let message = "`90` has no unit; write `90s` for seconds or `90ms` for milliseconds";
    assert_eq!(duration::parse("90"), Err(message.to_owned()));
    for text in ["", "never", "-1s", "s", "1 x"] {
        let message = format!("`{text}` is not a time; write it like `90s`, `1m 30s` or `500ms`");
        assert_eq!(duration::parse(text), Err(message));
    }
    assert_eq!(duration::parse("101years"), Err("`101years` is more than a hundred years".to_owned()));
    assert!(duration::parse("99999999999999999999h").is_err());
    assert_eq!(duration::words(Duration::from_millis(90_500)), "1m 30s 500ms");
}

#[test]
fn addresses() {
    let split = |text| address::split(text).map(|address| (address.host.to_owned(), address.port));
    assert_eq!(split("h:1"), Ok(("h".to_owned(), Some(1))));
    assert_eq!(split("[::1]:65535"), Ok(("::1".to_owned(), Some(65535))));
    assert_eq!(split("::1"), Ok(("::1".to_owned(), None)));
    assert_eq!(split("fe80::1%eth0"), Ok(("fe80::1%eth0".to_owned(), None)));
    assert!(split("h:65536").is_err());
    assert!(split("h:+1").is_err());
    assert!(split(":1").is_err());
    assert!(split("a:b:c").is_err());
    assert!(split("::1%").is_err());
}

#[test]
fn bool_words() {
    for word in ["1", "true", "TRUE", "yes", "On", " on "] {
        assert_eq!(words::parse_bool(word), Some(true));
    }
    for word in ["0", "false", "No", "off"] {
        assert_eq!(words::parse_bool(word), Some(false));
    }
    for word in ["", "2", "y", "enable", "01"] {
        assert_eq!(words::parse_bool(word), None);
    }
}

#[test]
fn secret_names() {
    for name in ["API_TOKEN", "HF_TOKEN_FILE", "db_password", "Secret", "AWS_ACCESS_KEY", "secrets"] {
        assert!(crate::diagnostic::is_secret_name(name), "{name}");
    }
    for name in ["KEY", "KEYS", "POD_IP", "KEYBOARD"] {
        assert!(!crate::diagnostic::is_secret_name(name), "{name}");
    }
}

#[test]
fn json_lines() {
    for text in [
        r#"{"comm_resource_config.listen_port": "26666"}"#,
        r#"{"b": 1, "a": [1, 2.5, true, null, {}], "c": {"d": []}}"#,
        r#""é \" \\ \n""#,
        "[]",
        "0.9",
        "12345678901234567890",
    ] {
        assert_eq!(json::line(&serde_json::from_str(text).unwrap()), text);
    }
}

#[test]
fn values_and_json() {
    let json: serde_json::Value =
        serde_json::from_str(r#"{"a": [1, null, 0.5], "b": null, "c": "x"}"#).unwrap();
    let value = Value::from_json(&json);
    assert_eq!(super::tests::shown(&value), "{a: [1, 0.5], c: 'x'}");
    assert_eq!(value.to_json().map(|json| json::line(&json)), Ok(r#"{"a": [1, 0.5], "c": "x"}"#.to_owned()));
    assert_eq!(Value::Nothing.to_json(), Ok(serde_json::Value::Null));
    assert!(Value::Unknown.to_json().is_err());
    assert!(Value::Float(f64::NAN).to_json().is_err());
    let deep = (0..200).fold(Value::Int(1), |inner, _| Value::list([inner]));
    assert!(deep.to_json().is_err());
}

#[test]
fn values_as_text() {
    assert_eq!(Value::Float(0.9).text().as_deref(), Some("0.9"));
    assert_eq!(Value::Float(1.0).text().as_deref(), Some("1.0"));
    assert_eq!(Value::Float(1e300).text().as_deref(), Some("1e300"));
    assert_eq!(Value::Int(-3).text().as_deref(), Some("-3"));
    assert_eq!(Value::Bool(true).text().as_deref(), Some("true"));
    assert_eq!(Value::Nothing.text(), None);
    assert_eq!(Value::list([]).text(), None);
}
