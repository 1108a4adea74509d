//! What `plan` looks at on this machine beside facts: paths, space, names that files tell. Nothing here runs a program or
//! asks the network.

use crate::plan::Look;
use std::fs;
use std::path::Path;

/// This machine.
pub struct Here;

impl Look for Here {
    fn exists(&self, path: &Path) -> Option<bool> {
        path.try_exists().ok()
    }

    fn space(&self, path: &Path) -> Option<u64> {
        let about = nix::sys::statvfs::statvfs(path).ok()?;
        Some(about.blocks_available().saturating_mul(about.fragment_size()))
    }

    fn host(&self, name: &str) -> Option<bool> {
        // A name that is not there may still be known to a server, which only a start asks.
        in_hosts(&fs::read_to_string("/etc/hosts").ok()?, name).then_some(true)
    }

    fn user(&self, name: &str) -> Option<bool> {
        account(name, "passwd")
    }

    fn group(&self, name: &str) -> Option<bool> {
        account(name, "group")
    }
}

/// Whether a hosts file has a name.
fn in_hosts(text: &str, name: &str) -> bool {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
    lines.flat_map(|line| line.split_whitespace().skip(1)).any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether there is an account of this name; none if somebody else than this machine's files would have to be asked.
fn account(name: &str, database: &str) -> Option<bool> {
    if name.parse::<u32>().is_ok() {
        // A number needs no name.
        return Some(true);
    }
    let text = fs::read_to_string(format!("/etc/{database}")).unwrap_or_default();
    if text.lines().any(|line| line.split(':').next() == Some(name)) {
        return Some(true);
    }
    let switch = fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
    files_tell_all(&switch, database).then_some(false)
}

/// Whether the resolver's order for a database names this machine's own files only.
fn files_tell_all(switch: &str, database: &str) -> bool {
    let line =
        switch.lines().find_map(|line| line.trim().strip_prefix(database)?.trim_start().strip_prefix(':'));
    let sources = line.unwrap_or("files").split('#').next().unwrap_or("");
    // `systemd` makes up users of its own units, whose names nobody writes into a unit of tenon.
    sources.split_whitespace().all(|source| matches!(source, "files" | "compat" | "systemd" | "altfiles"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_hosts_file() {
        let text = "127.0.0.1 localhost\n10.0.0.7\tkvs-master kvs # old-master\n";
        assert!(in_hosts(text, "kvs"));
        assert!(in_hosts(text, "KVS-master"));
        assert!(!in_hosts(text, "old-master"));
        assert!(!in_hosts(text, "10.0.0.7"));
    }

    #[test]
    fn who_tells_of_accounts() {
        assert!(files_tell_all("", "passwd"));
        assert!(files_tell_all("passwd:  files systemd\n", "passwd"));
        assert!(!files_tell_all("passwd: files sss\n", "passwd"));
        assert!(files_tell_all("passwd: files sss\ngroup: files\n", "group"));
        assert_eq!(account("1234", "passwd"), Some(true));
        assert_eq!(account("root", "passwd"), Some(true));
    }
}
