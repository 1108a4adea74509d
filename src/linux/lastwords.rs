//! What the last lines of a unit say about the reason of its end, in words with the object: whose port it is, which
//! disk is full. Nothing found is no answer; guesses are not made.

use std::fs;
use std::path::{Path, PathBuf};

use super::tree;

/// Lines looked at.
pub const LINES: usize = 20;
/// Processes looked through for the owner of a socket.
const PROCESSES_MAX: usize = 20_000;

/// The reason, if one of these lines gives it.
pub fn reason<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> Option<String> {
    lines.rev().find_map(|line| taken_port(line).or_else(|| full_disk(line)))
}

fn taken_port(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    if !["address already in use", "eaddrinuse", "address in use"].iter().any(|words| lower.contains(words)) {
        return None;
    }
    let Some(port) = port_in(&lower) else {
        return Some("a port it wants is taken (EADDRINUSE); `tenon plan --ports` shows by whom".to_owned());
    };
    Some(match owner(port) {
        Some(pid) => format!("port {port} is taken, by {}", tree::shown(pid)),
        None => format!("port {port} is taken"),
    })
}

/// The port a line speaks of: after a colon or the word.
fn port_in(line: &str) -> Option<u16> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u16>().ok().filter(|port| *port > 0)
    };
    let after_word = line
        .match_indices("port")
        .find_map(|(at, word)| number(line.get(at + word.len()..)?.trim_start_matches([' ', ':', '=', '#'])));
    let after_colon = || {
        line.match_indices(':').rev().find_map(|(at, _)| {
            let (before, after) = (line.get(..at)?, line.get(at + 1..)?);
            let mut rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit()).chars();
            let (end, next) = (rest.next(), rest.next());
            // A time of day and a place in a file have a number on both sides, an address has none of them alone.
            let host = before.ends_with(|letter: char| {
                letter.is_alphanumeric() || matches!(letter, ']' | '*' | ' ' | ':')
            });
            let time = before.len() >= 2
                && before.get(before.len() - 2..)?.bytes().all(|byte| byte.is_ascii_digit())
                && !before.contains('.');
            let over = end.is_none_or(|letter| !letter.is_alphanumeric())
                && !(end == Some(':') && next.is_some_and(|letter| letter.is_ascii_digit()));
            (host && over && !time).then(|| number(after))?
        })
    };
    // `('127.0.0.1', 8800)`, as Python writes an address.
    let in_tuple = || line.match_indices("', ").find_map(|(at, mark)| number(line.get(at + mark.len()..)?));
    after_word.or_else(in_tuple).or_else(after_colon)
}

fn full_disk(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    if !["no space left on device", "enospc"].iter().any(|words| lower.contains(words)) {
        return None;
    }
    let path = line
        .split(['\'', '"', '`', ' '])
        .map(|word| word.trim_end_matches([':', ',', ')']))
        .find(|word| word.len() > 1 && word.starts_with('/'));
    Some(match path {
        Some(path) => format!("no space is left where `{path}` lies{}", room(Path::new(path))),
        None => "no space is left on a disk it writes to".to_owned(),
    })
}

/// Size of the file system, if it can be asked.
fn room(path: &Path) -> String {
    let found = path.ancestors().find_map(|path| nix::sys::statvfs::statvfs(path).ok());
    found.map_or_else(String::new, |data| {
        let size = data.blocks().saturating_mul(data.fragment_size());
        format!(" (a file system of {})", super::words::bytes(size))
    })
}

/// Who listens at a TCP port here, if it can be found out.
fn owner(port: u16) -> Option<i32> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| text.lines().filter_map(|line| listener(line, port)).collect::<Vec<_>>())
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let pids = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.take(PROCESSES_MAX).find(|pid| {
        fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().any(|entry| {
            fs::read_link(entry.path())
                .is_ok_and(|to: PathBuf| inodes.iter().any(|known| to.as_os_str() == &**known))
        })
    })
}

/// The inode of a line of `/proc/net/tcp` that listens at this port.
fn listener(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = fields.get(1)?.rsplit_once(':')?;
    let listens = *fields.get(3)? == "0A" && u16::from_str_radix(local, 16).ok()? == port;
    listens.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_lines() {
        let check =
            |line: &str, expected: Option<u16>| assert_eq!(port_in(&line.to_lowercase()), expected, "{line}");
        check("bind: 0.0.0.0:8800: Address already in use", Some(8800));
        check("listen tcp :9003: bind: address already in use", Some(9003));
        check("listen tcp 127.0.0.1:9003: bind: address already in use", Some(9003));
        check("Error: listen EADDRINUSE: address already in use :::3000", Some(3000));
        check(
            "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
            Some(8000),
        );
        check("OSError: [Errno 98] Address already in use", None);
        check("12:30:01 cannot bind port 8200: address in use", Some(8200));
        check("12:30:01 address already in use", None);
    }

    #[test]
    fn the_owner_of_a_port_is_named() {
        let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = held.local_addr().unwrap().port();
        assert_eq!(owner(port), Some(std::process::id() as i32));
        let said =
            reason([format!("bind 127.0.0.1:{port}: Address already in use").as_str()].into_iter()).unwrap();
        assert!(said.starts_with(&format!("port {port} is taken, by ")), "{said}");
        assert!(said.contains(&format!("(pid {})", std::process::id())), "{said}");
        drop(held);
        assert_eq!(owner(port), None);
    }

    #[test]
    fn full_disks() {
        let check = |line: &str, expected: &str| {
            let said = reason([line, "later words"].into_iter()).unwrap_or_default();
            assert!(said.starts_with(expected), "{said}");
        };
        check(
            "write '/proc/x': No space left on device",
            "no space is left where `/proc/x` lies (a file system of ",
        );
        check("OSError: [Errno 28] No space left on device", "no space is left on a disk it writes to");
        check("all is well", "");
    }
}
