//! A rotated log file: bytes as the unit wrote them. `x.log` is the newest, then `x.log.1`, …
//!
//! It is opened anew when somebody took it away or put another in its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::plan::exec::LogFile;

/// One unit's file.
pub struct RotatedFile {
    plan: LogFile,
    open: Option<(File, u64)>,
    size: u64,
    /// Bytes that could not be written since the trouble began.
    dropped: u64,
}

impl RotatedFile {
    /// Opened with the first line.
    pub fn new(plan: &LogFile) -> Self {
        Self { plan: plan.clone(), open: None, size: 0, dropped: 0 }
    }

    /// What it was made from.
    pub fn plan(&self) -> &LogFile {
        &self.plan
    }

    /// Forgets the open file.
    pub fn reopen(&mut self) {
        self.open = None;
    }

    /// Appends; what cannot be written is counted. Returns what people should be told, if anything.
    pub fn append(&mut self, bytes: &[u8]) -> Option<String> {
        match self.write(bytes) {
            Ok(()) if self.dropped > 0 => {
                let lost = std::mem::take(&mut self.dropped);
                Some(format!(
                    "writes to `{}` work again; {lost} bytes of output are missing there",
                    self.plan.path.display()
                ))
            }
            Ok(()) => None,
            Err(error) => {
                let first = self.dropped == 0;
                self.dropped = self.dropped.saturating_add(bytes.len() as u64).max(1);
                self.open = None;
                first.then(|| {
                    format!(
                        "cannot write `{}`: {error}; output is dropped there until it works again",
                        self.plan.path.display()
                    )
                })
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size.saturating_add(bytes.len() as u64) > self.plan.max_size {
            self.rotate()?;
        }
        if self.open.as_ref().is_some_and(|(_, inode)| self.inode() != Some(*inode)) {
            self.open = None;
        }
        let mut file = match self.open.take() {
            Some((file, _)) => file,
            None => self.create()?,
        };
        let inode = file.metadata()?.ino();
        file.write_all(bytes)?;
        self.size = self.size.saturating_add(bytes.len() as u64);
        self.open = Some((file, inode));
        Ok(())
    }

    fn inode(&self) -> Option<u64> {
        fs::metadata(&self.plan.path).ok().map(|data| data.ino())
    }

    fn create(&mut self) -> io::Result<File> {
        if let Some(folder) = self.plan.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o640)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&self.plan.path)?;
        self.size = file.metadata()?.len();
        Ok(file)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        self.size = 0;
        for number in (1..self.plan.keep).rev() {
            let from = self.numbered(number);
            if from.exists() {
                fs::rename(from, self.numbered(number + 1))?;
            }
        }
        if self.plan.keep == 0 {
            return fs::remove_file(&self.plan.path);
        }
        match fs::rename(&self.plan.path, self.numbered(1)) {
            // Somebody took it away: nothing to rotate.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.plan.path.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(max_size: u64, keep: u32, writes: &[&str], expectation: &[(&str, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let plan = LogFile { path: folder.path().join("sub/x.log"), max_size, keep };
        let mut file = RotatedFile::new(&plan);
        for write in writes {
            if let Some(name) = write.strip_prefix("rm ") {
                fs::remove_file(folder.path().join("sub").join(name)).unwrap();
            } else {
                assert_eq!(file.append(write.as_bytes()), None);
            }
        }
        let mut found: Vec<(String, String)> = fs::read_dir(folder.path().join("sub"))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
            })
            .collect();
        found.sort();
        let expected: Vec<(String, String)> =
            expectation.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn rotation_keeps_the_newest() {
        check(100, 2, &["a\n", "b\n"], &[("x.log", "a\nb\n")]);
        check(4, 2, &["aa\n", "bb\n"], &[("x.log", "bb\n"), ("x.log.1", "aa\n")]);
        check(
            4,
            2,
            &["aa\n", "bb\n", "cc\n", "dd\n"],
            &[("x.log", "dd\n"), ("x.log.1", "cc\n"), ("x.log.2", "bb\n")],
        );
        check(4, 0, &["aa\n", "bb\n"], &[("x.log", "bb\n")]);
        // One write larger than the file may be is still written whole.
        check(4, 1, &["aaaaaaaa\n", "b\n"], &[("x.log", "b\n"), ("x.log.1", "aaaaaaaa\n")]);
    }

    #[test]
    fn a_removed_file_is_made_again() {
        check(100, 2, &["a\n", "rm x.log", "b\n"], &[("x.log", "b\n")]);
    }

    #[test]
    fn trouble_is_said_once_and_its_end_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        fs::create_dir(&path).unwrap();
        let mut file = RotatedFile::new(&LogFile { path: path.clone(), max_size: 100, keep: 1 });
        assert!(file.append(b"lost\n").is_some());
        assert_eq!(file.append(b"lost too\n"), None);
        fs::remove_dir(&path).unwrap();
        let said = file.append(b"kept\n").unwrap();
        assert!(said.ends_with("work again; 14 bytes of output are missing there"), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept\n");
    }
}
