//! A unit's log files read back: the rotated ones first, each with its index of times.
//!
//! An index has a line for at least a second, `OFFSET MILLISECONDS [BOOT]`; a line of output has the time of the last
//! entry before it.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Rotated files looked for.
const NUMBER_MAX: u32 = 10_000;
/// Lines given at most: the last ones.
const LINES_MAX: usize = 1_000_000;

/// What is asked for. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// From here on.
    pub since: Option<u64>,
    /// Up to here.
    pub until: Option<u64>,
    /// Of this boot: 0 the last one, 1 the one before.
    pub boot: Option<usize>,
}

/// A point in time as people write it: a span before `now` (milliseconds since 1970), or a date.
pub fn time(text: &str, now: u64) -> Result<u64, String> {
    let text = text.trim();
    if let Ok(span) = humantime::parse_duration(text.trim_end_matches(" ago")) {
        return Ok(now.saturating_sub(span.as_millis() as u64));
    }
    let since =
        |at: std::time::SystemTime| at.duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    humantime::parse_rfc3339_weak(text)
        .map(|at| since(at).as_millis() as u64)
        .map_err(|_| format!("`{text}` is no time: write `2h`, `30min`, or `2026-01-31T12:00:00Z`"))
}

/// The lines that are asked for with their times, the oldest first.
pub fn read(path: &Path, wanted: &Wanted) -> io::Result<Vec<(u64, String)>> {
    let files = files(path);
    if files.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let boot = wanted.boot.and_then(|back| boots(&files).into_iter().rev().nth(back));
    if wanted.boot.is_some() && boot.is_none() {
        return Ok(Vec::new());
    }
    let mut found = std::collections::VecDeque::new();
    for (file, index) in files {
        let index = entries(&index);
        // A terminal or a pipe keeps nothing, and reading it might never end.
        if !std::fs::metadata(&file)?.is_file() {
            continue;
        }
        let open: Box<dyn Read> = if file.extension().is_some_and(|end| end == "gz") {
            Box::new(flate2::read::MultiGzDecoder::new(File::open(&file)?))
        } else {
            Box::new(File::open(&file)?)
        };
        let mut reader = BufReader::new(open);
        let (mut offset, mut next, mut now) = (0u64, 0, (0, String::new()));
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = reader.read_until(b'\n', &mut line)?;
            if count == 0 {
                break;
            }
            while let Some(entry) = index.get(next).filter(|entry| entry.offset <= offset) {
                now.0 = entry.at;
                if let Some(boot) = &entry.boot {
                    now.1.clone_from(boot);
                }
                next += 1;
            }
            offset += count as u64;
            let fits = wanted.since.is_none_or(|since| now.0 >= since)
                && wanted.until.is_none_or(|until| now.0 <= until)
                && boot.as_ref().is_none_or(|boot| *boot == now.1);
            if fits {
                let text = String::from_utf8_lossy(&line);
                found.push_back((now.0, text.trim_end_matches('\n').to_owned()));
                if found.len() > LINES_MAX {
                    found.pop_front();
                }
            }
        }
    }
    Ok(found.into())
}

struct Entry {
    offset: u64,
    at: u64,
    boot: Option<String>,
}

fn entries(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let entry = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (offset, at) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Entry { offset, at, boot: words.next().map(str::to_owned) })
    };
    text.lines().filter_map(entry).collect()
}

/// The boots that have written, in order.
fn boots(files: &[(PathBuf, PathBuf)]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for boot in files.iter().flat_map(|(_, index)| entries(index)).filter_map(|entry| entry.boot) {
        if found.last() != Some(&boot) {
            found.push(boot);
        }
    }
    found
}

/// Files that exist with their indexes, the oldest first.
fn files(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let with = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let mut found = Vec::new();
    for number in 1..NUMBER_MAX {
        let (plain, packed) = (with(&format!(".{number}")), with(&format!(".{number}.gz")));
        let index = with(&format!(".{number}.idx"));
        if plain.exists() {
            found.push((plain, index));
        } else if packed.exists() {
            found.push((packed, index));
        } else {
            break;
        }
    }
    found.reverse();
    if path.exists() {
        found.push((path.to_owned(), with(".idx")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &Path, wanted: Wanted) -> Vec<String> {
        read(path, &wanted).unwrap().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn lines_come_back_across_rotations_by_time_and_boot() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut packer, b"one\n").unwrap();
        fs::write(at("x.log.2.gz"), packer.finish().unwrap()).unwrap();
        fs::write(at("x.log.2.idx"), "0 1000 first\n").unwrap();
        fs::write(at("x.log.1"), "two\nthree\n").unwrap();
        fs::write(at("x.log.1.idx"), "0 2000 first\n4 3000 second\n").unwrap();
        fs::write(at("x.log"), "four\n").unwrap();
        fs::write(at("x.log.idx"), "0 4000 second\n").unwrap();
        let path = at("x.log");
        let check = |since, until, boot, expected: &[&str]| {
            assert_eq!(texts(&path, Wanted { since, until, boot }), expected);
        };
        check(None, None, None, &["one", "two", "three", "four"]);
        check(Some(2000), None, None, &["two", "three", "four"]);
        check(None, Some(2500), None, &["one", "two"]);
        check(Some(2500), Some(3500), None, &["three"]);
        check(None, None, Some(0), &["three", "four"]);
        check(None, None, Some(1), &["one", "two"]);
        check(None, None, Some(2), &[]);
    }

    #[test]
    fn times_as_people_write_them() {
        assert_eq!(time("2s", 10_000), Ok(8000));
        assert_eq!(time("1min ago", 100_000), Ok(40_000));
        assert_eq!(time("1970-01-01T00:00:05Z", 0), Ok(5000));
        assert!(time("yesterday", 0).unwrap_err().starts_with("`yesterday` is no time"));
    }
}
