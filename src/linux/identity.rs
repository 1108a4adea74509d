//! Names of users and groups → numbers, looked up by the parent before each spawn.
//!
//! By the C library, which asks whatever `nsswitch.conf` names. A static binary cannot: there the C library would load
//! modules that were made for another one, and crashes in them. So a static binary reads `/etc/passwd` and `/etc/group`
//! itself, which is what there is in the images it is for.

mod database;

use nix::unistd::{Gid, Uid};

use database::{Database, User};

use crate::plan::exec::Identity;

/// Whom a child becomes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Credentials {
    /// User, unless it stays.
    pub uid: Option<Uid>,
    /// Primary group, unless it stays.
    pub gid: Option<Gid>,
    /// Supplementary groups, unless they stay.
    pub groups: Option<Vec<Gid>>,
}

/// Looks everything up. Errors are words that name what is missing.
pub fn resolve(identity: &Identity) -> Result<Credentials, String> {
    let user = identity.user.as_deref().map(user).transpose()?;
    let gid = match &identity.group {
        Some(name) => Some(group(name)?),
        None => user.as_ref().and_then(|user| user.gid),
    };
    let groups = match (&identity.groups, &user) {
        (Some(names), _) => Some(names.iter().map(|name| group(name)).collect::<Result<_, _>>()?),
        (None, Some(user)) => Some(groups_of(user, gid)),
        (None, None) => identity.group.as_ref().map(|_| Vec::new()),
    };
    let wanted = Credentials { uid: user.map(|user| user.uid), gid, groups };
    Ok(if is_self(&wanted, identity) { Credentials::default() } else { wanted })
}

/// The uid and gid of an owner name (`user`), for files and sockets.
pub fn owner(name: &str) -> Result<(Uid, Option<Gid>), String> {
    user(name).map(|user| (user.uid, user.gid))
}

/// The group of this name, if there is one.
pub fn group_named(name: &str) -> Option<Gid> {
    Database::of_this_build().group(name).ok().flatten().map(Gid::from_raw)
}

/// A user's name, or the number where it has none.
pub fn user_name(number: u32) -> String {
    let user = Database::of_this_build().user_by_number(number).ok().flatten();
    user.map_or_else(|| number.to_string(), |user| user.name)
}

/// A group's name, or the number where it has none.
pub fn group_name(number: u32) -> String {
    let name = Database::of_this_build().group_by_number(number).ok().flatten();
    name.unwrap_or_else(|| number.to_string())
}

struct Known {
    uid: Uid,
    gid: Option<Gid>,
    name: Option<String>,
}

fn user(name: &str) -> Result<Known, String> {
    let database = Database::of_this_build();
    let found = match name.parse::<u32>() {
        Ok(number) => database.user_by_number(number).ok().flatten(),
        Err(_) => database.user(name).map_err(|error| format!("cannot look up user `{name}`: {error}"))?,
    };
    match (found, name.parse::<u32>()) {
        (Some(User { name, uid, gid }), _) => {
            Ok(Known { uid: Uid::from_raw(uid), gid: Some(Gid::from_raw(gid)), name: Some(name) })
        }
        // A number nobody has a name for is still a user; its group has the same number only by custom.
        (None, Ok(number)) => Ok(Known { uid: Uid::from_raw(number), gid: None, name: None }),
        (None, Err(_)) => Err(format!("there is no user `{name}`")),
    }
}

fn group(name: &str) -> Result<Gid, String> {
    if let Ok(number) = name.parse::<u32>() {
        return Ok(Gid::from_raw(number));
    }
    match Database::of_this_build().group(name) {
        Ok(Some(number)) => Ok(Gid::from_raw(number)),
        Ok(None) => Err(format!("there is no group `{name}`")),
        Err(error) => Err(format!("cannot look up group `{name}`: {error}")),
    }
}

fn groups_of(user: &Known, gid: Option<Gid>) -> Vec<Gid> {
    let Some(gid) = gid else { return Vec::new() };
    match &user.name {
        Some(name) => {
            let groups = Database::of_this_build().groups_of(name, gid.as_raw());
            groups.into_iter().map(Gid::from_raw).collect()
        }
        None => vec![gid],
    }
}

/// Without root nobody can change who they are, and asking for oneself needs no change.
fn is_self(wanted: &Credentials, identity: &Identity) -> bool {
    let own_user = wanted.uid.is_none_or(|uid| uid == Uid::effective());
    let own_group = wanted.gid.is_none_or(|gid| gid == Gid::effective());
    own_user && own_group && identity.groups.is_none() && !Uid::effective().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(user: Option<&str>, group: Option<&str>, expectation: Result<(Option<u32>, Option<u32>), &str>) {
        let identity = Identity {
            user: user.map(str::to_owned),
            group: group.map(str::to_owned),
            ..Identity::default()
        };
        let found = resolve(&identity).map(|found| (found.uid.map(Uid::as_raw), found.gid.map(Gid::as_raw)));
        assert_eq!(found, expectation.map_err(str::to_owned));
    }

    #[test]
    fn names_and_numbers() {
        check(None, None, Ok((None, None)));
        check(Some("no-such-user"), None, Err("there is no user `no-such-user`"));
        check(None, Some("no-such-group"), Err("there is no group `no-such-group`"));
        if Uid::effective().is_root() {
            check(Some("root"), None, Ok((Some(0), Some(0))));
            check(Some("4000000"), None, Ok((Some(4_000_000), None)));
            check(Some("0"), Some("12"), Ok((Some(0), Some(12))));
        }
    }
}
