//! Where names of users and groups are looked up: in the C library's databases, or in the two files themselves.

use std::ffi::CString;
use std::io;

use nix::unistd::{Gid, Group, Uid, getgrouplist};

/// A user as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// The number of its primary group.
    pub gid: u32,
}

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// In what the C library is told to ask.
    Library,
    /// In `/etc/passwd` and `/etc/group`.
    Files,
}

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

impl Database {
    /// A static binary must not ask the library.
    pub const fn of_this_build() -> Self {
        if cfg!(target_feature = "crt-static") { Self::Files } else { Self::Library }
    }

    /// A user by its name. Errors: the database cannot be asked.
    pub fn user(self, name: &str) -> io::Result<Option<User>> {
        match self {
            Self::Library => Ok(nix::unistd::User::from_name(name)?.map(known)),
            Self::Files => Ok(users(&read(PASSWD)?).find(|user| user.name == name)),
        }
    }

    /// A user by its number. Errors: the database cannot be asked.
    pub fn user_by_number(self, number: u32) -> io::Result<Option<User>> {
        match self {
            Self::Library => Ok(nix::unistd::User::from_uid(Uid::from_raw(number))?.map(known)),
            Self::Files => Ok(users(&read(PASSWD)?).find(|user| user.uid == number)),
        }
    }

    /// The number of a group. Errors: the database cannot be asked.
    pub fn group(self, name: &str) -> io::Result<Option<u32>> {
        match self {
            Self::Library => Ok(Group::from_name(name)?.map(|group| group.gid.as_raw())),
            Self::Files => {
                Ok(groups(&read(GROUP)?).find(|(known, _, _)| *known == name).map(|(_, number, _)| number))
            }
        }
    }

    /// The name of a group. Errors: the database cannot be asked.
    pub fn group_by_number(self, number: u32) -> io::Result<Option<String>> {
        match self {
            Self::Library => Ok(Group::from_gid(Gid::from_raw(number))?.map(|group| group.name)),
            Self::Files => {
                let text = read(GROUP)?;
                let found = groups(&text).find(|(_, known, _)| *known == number);
                Ok(found.map(|(name, _, _)| name.to_owned()))
            }
        }
    }

    /// The primary group and those that list the user, each once. What cannot be asked adds none.
    pub fn groups_of(self, user: &str, primary: u32) -> Vec<u32> {
        match self {
            Self::Library => {
                let name = CString::new(user).unwrap_or_default();
                let found = getgrouplist(&name, Gid::from_raw(primary));
                found.map_or_else(|_| vec![primary], |groups| groups.into_iter().map(Gid::as_raw).collect())
            }
            Self::Files => groups_in(&read(GROUP).unwrap_or_default(), user, primary),
        }
    }
}

fn known(user: nix::unistd::User) -> User {
    User { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }
}

/// An image without the file has no users, which is no error.
fn read(path: &str) -> io::Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// `NAME:PASSWORD:UID:GID:…` a line; what is not of this form is passed over, as the C library does.
fn users(text: &str) -> impl Iterator<Item = User> + '_ {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
        Some(User { name: name.to_owned(), uid: uid.parse().ok()?, gid: gid.parse().ok()? })
    })
}

/// `NAME:PASSWORD:GID:USER,USER` a line.
fn groups(text: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        Some((name, number.parse().ok()?, fields.next().unwrap_or_default()))
    })
}

fn groups_in(text: &str, user: &str, primary: u32) -> Vec<u32> {
    let mut found = vec![primary];
    for (_, number, members) in groups(text) {
        if members.split(',').any(|member| member.trim() == user) && !found.contains(&number) {
            found.push(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/sh\n# a word\n\nbad:x:one:2\nalice:x:4242:4300::/:/bin/sh\nshort:x:7:8\n";
    const GROUPS: &str =
        "root:x:0:\nstaff:x:4300:alice\ngpu:x:4301:bob,alice\nbad:x:many:alice\nother:x:4302:bob\nlast:x:9\n";

    #[test]
    fn users_by_name() {
        let check = |name: &str, expected: Option<(u32, u32)>| {
            let found = users(USERS).find(|user| user.name == name).map(|user| (user.uid, user.gid));
            assert_eq!(found, expected, "{name}");
        };
        check("root", Some((0, 0)));
        check("alice", Some((4242, 4300)));
        check("short", Some((7, 8)));
        check("bad", None);
        check("# a word", None);
        check("mallory", None);
    }

    #[test]
    fn groups_of_a_user() {
        let check = |user: &str, primary: u32, expected: &[u32]| {
            assert_eq!(groups_in(GROUPS, user, primary), expected, "{user}");
        };
        check("alice", 4300, &[4300, 4301]);
        check("bob", 1, &[1, 4301, 4302]);
        check("mallory", 5, &[5]);
        // Not by a part of a name.
        check("ali", 5, &[5]);
        assert_eq!(groups(GROUPS).last(), Some(("last", 9, "")));
    }

    /// Where both can be asked, they answer alike.
    #[test]
    fn the_files_say_what_the_library_says() {
        for name in ["root", "daemon", "no-such-user"] {
            assert_eq!(Database::Files.user(name).unwrap(), Database::Library.user(name).unwrap(), "{name}");
            assert_eq!(
                Database::Files.group(name).unwrap(),
                Database::Library.group(name).unwrap(),
                "{name}"
            );
        }
        assert_eq!(
            Database::Files.group_by_number(0).unwrap(),
            Database::Library.group_by_number(0).unwrap()
        );
        assert_eq!(Database::Files.user_by_number(0).unwrap(), Database::Library.user_by_number(0).unwrap());
        assert_eq!(Database::Files.groups_of("root", 0), Database::Library.groups_of("root", 0));
    }
}
