//! Whether something has changed in the folders of the configuration: inotify, and a moment of quiet.
//!
//! A mounted `ConfigMap` changes by the swap of a symbolic link in its folder, which is an event of that folder like any
//! other. Nothing is read here: who is told reads everything anew.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::poller::{Interest, Poller, Token};
use crate::supervisor::Time;

/// So long nothing must have happened: whoever writes several files is not read in between.
const QUIET: Duration = Duration::from_millis(300);
/// Folders watched at most.
const FOLDERS_MAX: usize = 1000;

/// The folders watched.
pub struct Watch {
    inotify: Option<Inotify>,
    due: Option<Time>,
}

impl Watch {
    /// Watches these folders; none, if there are none. What cannot be watched is said.
    pub fn new(folders: &[PathBuf], poller: &Poller) -> Self {
        let mut watch = Self { inotify: None, due: None };
        watch.renew(folders, poller);
        watch
    }

    /// Watches these folders from now on, as they are now.
    pub fn renew(&mut self, folders: &[PathBuf], poller: &Poller) {
        if let Some(old) = self.inotify.take() {
            poller.remove(&old);
        }
        if folders.is_empty() {
            return;
        }
        let inotify = match Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK) {
            Ok(inotify) => inotify,
            Err(errno) => return tracing::warn!("cannot watch for changed files: {}", errno.desc()),
        };
        let what = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        for folder in folders.iter().take(FOLDERS_MAX) {
            match inotify.add_watch(folder, what) {
                Ok(_) | Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ENOTDIR) => {}
                Err(errno) => tracing::warn!("cannot watch `{}`: {}", folder.display(), errno.desc()),
            }
        }
        match poller.add(&inotify, Token::Watch, Interest::Read) {
            Ok(()) => self.inotify = Some(inotify),
            Err(errno) => tracing::warn!("cannot watch for changed files: {}", errno.desc()),
        }
    }

    /// Something has changed: it is due after a moment of quiet.
    pub fn heard(&mut self, now: Time) {
        let Some(inotify) = &self.inotify else { return };
        // What exactly does not matter: everything is read anew.
        while inotify.read_events().is_ok() {}
        self.due = Some(now + QUIET);
    }

    /// When it is due.
    pub const fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// Whether it is due; true once.
    pub fn is_due(&mut self, now: Time) -> bool {
        let due = self.due.is_some_and(|at| at <= now);
        if due {
            self.due = None;
        }
        due
    }
}
