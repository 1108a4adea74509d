//! A rotated log file: bytes as the unit wrote them. `x.log` is the newest, then `x.log.1`, …
//!
//! Beside each lies `x.log.idx`: one line for at least a second, `OFFSET MILLISECONDS [BOOT]`, so that what was written
//! when can be found without a stamp on every line. Old files may be compressed, by a child (`x.log.1.gz`); while that
//! goes on nothing is rotated. What is no regular file is a stream, never rotated, never looked at again; so is everything in `/dev` and `/proc`,
//! even where it leads to a regular file (`/dev/stdout` of a runner whose output goes into one).
//!
//! It is opened anew when somebody took it away or put another in its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::plan::exec::LogFile;

/// One unit's file.
pub struct RotatedFile {
    plan: LogFile,
    open: Option<(File, u64)>,
    size: u64,
    /// Lines that could not be written since the trouble began.
    dropped: u64,
    /// Lines that could not be written, in all.
    lost: u64,
    /// It is no regular file.
    stream: bool,
    /// The index, and the second of its last entry.
    index: Option<(File, u64)>,
    compression: Compression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    Idle,
    Wanted,
    Runs,
}

impl RotatedFile {
    /// Opened with the first line.
    pub fn new(plan: &LogFile) -> Self {
        Self {
            plan: plan.clone(),
            open: None,
            size: 0,
            dropped: 0,
            lost: 0,
            stream: false,
            index: None,
            compression: Compression::Idle,
        }
    }

    /// Lines that could not be written so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// What it was made from.
    pub fn plan(&self) -> &LogFile {
        &self.plan
    }

    /// Forgets the open file.
    pub fn reopen(&mut self) {
        self.open = None;
        self.index = None;
    }

    /// A rotated file that is to be compressed now; [`compressed`](Self::compressed) ends it.
    pub fn take_compress(&mut self) -> Option<PathBuf> {
        (self.compression == Compression::Wanted).then(|| {
            self.compression = Compression::Runs;
            self.numbered(1)
        })
    }

    /// The compression is over, well or not.
    pub fn compressed(&mut self) {
        self.compression = Compression::Idle;
    }

    /// Appends; what cannot be written is counted. Returns what people should be told, if anything.
    pub fn append(&mut self, bytes: &[u8], now: Duration) -> Option<String> {
        match self.write(bytes, now) {
            Ok(()) if self.dropped > 0 => {
                let lost = std::mem::take(&mut self.dropped);
                Some(format!(
                    "writes to `{}` work again; {lost} lines of output are missing there",
                    self.plan.path.display()
                ))
            }
            Ok(()) => None,
            Err(error) => {
                let first = self.dropped == 0;
                self.lost = self.lost.saturating_add(lines(bytes));
                self.dropped = self.dropped.saturating_add(lines(bytes)).max(1);
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

    fn write(&mut self, bytes: &[u8], now: Duration) -> io::Result<()> {
        if self.size > 0
            && !self.stream
            && self.compression == Compression::Idle
            && self.size.saturating_add(bytes.len() as u64) > self.plan.max_size
        {
            self.rotate()?;
        }
        if !self.stream && self.open.as_ref().is_some_and(|(_, inode)| self.inode() != Some(*inode)) {
            self.open = None;
        }
        let mut file = match self.open.take() {
            Some((file, _)) => file,
            None => self.create()?,
        };
        let inode = file.metadata()?.ino();
        self.note(now);
        if let Err(error) = file.write_all(bytes) {
            // No half line stays: what is there is whole, and the rest is counted.
            if !self.stream {
                let _ = file.set_len(self.size);
            }
            return Err(error);
        }
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
        // `/dev/stdout` is a link, and one that is meant.
        let device = self.plan.path.starts_with("/dev") || self.plan.path.starts_with("/proc");
        let file = OpenOptions::new()
            .append(true)
            .create(!device)
            .mode(0o640)
            .custom_flags(if device { libc::O_NONBLOCK } else { libc::O_NOFOLLOW | libc::O_NONBLOCK })
            .open(&self.plan.path)?;
        let data = file.metadata()?;
        // Whatever it leads to: what lies there is not ours to be moved, were it only the link itself.
        self.stream = device || !data.is_file();
        self.size = if self.stream { 0 } else { data.len() };
        self.index = None;
        Ok(file)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        self.index = None;
        self.size = 0;
        for number in (1..self.plan.keep).rev() {
            for end in ["", ".gz", ".idx"] {
                let (from, to) = (ended(self.numbered(number), end), ended(self.numbered(number + 1), end));
                match fs::rename(from, &to) {
                    // What lay there before must not stay beside what comes.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        let _ = fs::remove_file(to);
                    }
                    other => other?,
                }
            }
        }
        let index = ended(self.plan.path.clone(), ".idx");
        if self.plan.keep == 0 {
            let _ = fs::remove_file(index);
            return fs::remove_file(&self.plan.path);
        }
        let _ = fs::rename(index, ended(self.numbered(1), ".idx"));
        if self.plan.compress {
            self.compression = Compression::Wanted;
        }
        match fs::rename(&self.plan.path, self.numbered(1)) {
            // Somebody took it away: nothing to rotate.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Notes where in the file this second begins. An index that cannot be written only makes times less exact.
    fn note(&mut self, now: Duration) {
        if self.stream || self.index.as_ref().is_some_and(|(_, second)| *second == now.as_secs()) {
            return;
        }
        let (mut file, boot) = match self.index.take() {
            Some((file, _)) => (file, String::new()),
            None => match open_index(&ended(self.plan.path.clone(), ".idx")) {
                Ok(file) => (file, format!(" {}", boot_id())),
                Err(_) => return,
            },
        };
        let line = format!("{} {}{boot}\n", self.size, now.as_millis());
        if file.write_all(line.as_bytes()).is_ok() {
            self.index = Some((file, now.as_secs()));
        }
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.plan.path.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }
}

fn ended(path: PathBuf, end: &str) -> PathBuf {
    let mut name = path.into_os_string();
    name.push(end);
    PathBuf::from(name)
}

fn open_index(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Tells this boot of the machine from every other one.
fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Writes `x.1.gz` beside `x.1`, then takes `x.1` away. For a child: it takes its time.
pub fn compress(path: &Path) -> io::Result<()> {
    let _ = super::super::sys::set_nice(10);
    let (part, whole) = (ended(path.to_owned(), ".gz.part"), ended(path.to_owned(), ".gz"));
    let mut from = File::open(path)?;
    let to = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&part)?;
    let mut encoder = flate2::write::GzEncoder::new(to, flate2::Compression::default());
    let done =
        io::copy(&mut from, &mut encoder).and_then(|_| encoder.finish()).and_then(|file| file.sync_data());
    if let Err(error) = done {
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    fs::rename(part, whole)?;
    fs::remove_file(path)
}

fn lines(bytes: &[u8]) -> u64 {
    bytes.split(|&byte| byte == b'\n').count().saturating_sub(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(max_size: u64, keep: u32, writes: &[&str], expectation: &[(&str, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let plan = LogFile { path: folder.path().join("sub/x.log"), max_size, keep, compress: false };
        let mut file = RotatedFile::new(&plan);
        for write in writes {
            if let Some(name) = write.strip_prefix("rm ") {
                fs::remove_file(folder.path().join("sub").join(name)).unwrap();
            } else {
                assert_eq!(file.append(write.as_bytes(), Duration::ZERO), None);
            }
        }
        let mut found: Vec<(String, String)> = fs::read_dir(folder.path().join("sub"))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
            })
            .collect();
        found.retain(|(name, _)| !name.contains(".idx"));
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
        let mut file =
            RotatedFile::new(&LogFile { path: path.clone(), max_size: 100, keep: 1, compress: false });
        assert!(file.append(b"lost\n", Duration::ZERO).is_some());
        assert_eq!(file.append(b"lost too\n", Duration::ZERO), None);
        fs::remove_dir(&path).unwrap();
        let said = file.append(b"kept\n", Duration::ZERO).unwrap();
        assert!(said.ends_with("work again; 2 lines of output are missing there"), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept\n");
    }

    #[test]
    fn an_index_tells_when_and_old_files_are_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let plan = LogFile { path: path.clone(), max_size: 8, keep: 2, compress: true };
        let mut file = RotatedFile::new(&plan);
        let at = Duration::from_secs;
        assert_eq!(file.append(b"aa\n", at(5)), None);
        assert_eq!(file.append(b"bb\n", at(5)), None);
        assert_eq!(file.append(b"cc\n", at(7)), None);
        let index = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(index("x.log.1.idx"), format!("0 5000 {}\n", boot_id()));
        assert_eq!(index("x.log.idx"), format!("0 7000 {}\n", boot_id()));
        let old = file.take_compress().unwrap();
        assert_eq!((old.clone(), file.take_compress()), (folder.path().join("x.log.1"), None));
        // While it is being compressed nothing is rotated.
        assert_eq!(file.append(b"dddddddd\n", at(8)), None);
        assert_eq!(fs::read_to_string(&path).unwrap(), "cc\ndddddddd\n");
        compress(&old).unwrap();
        file.compressed();
        assert!(!old.exists());
        assert_eq!(file.append(b"e\n", at(9)), None);
        let packed = fs::read(folder.path().join("x.log.2.gz")).unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed[..]), &mut text).unwrap();
        assert_eq!(text, "aa\nbb\n");
        assert_eq!(fs::read_to_string(folder.path().join("x.log.1")).unwrap(), "cc\ndddddddd\n");
    }

    /// `/dev/stdout` is a link, and may lead to a regular file: it was renamed once.
    #[test]
    fn what_lies_in_dev_is_never_rotated_wherever_it_leads() {
        let target = tempfile::NamedTempFile::new().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(target.as_file()));
        let plan = LogFile { path: path.into(), max_size: 4, keep: 2, compress: false };
        let mut file = RotatedFile::new(&plan);
        for _ in 0..5 {
            assert_eq!(file.append(b"aaaa\n", Duration::ZERO), None);
        }
        assert_eq!(fs::read_to_string(target.path()).unwrap(), "aaaa\n".repeat(5));
    }

    #[test]
    fn what_is_no_regular_file_is_never_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let plan = LogFile { path: "/dev/null".into(), max_size: 4, keep: 2, compress: false };
        let mut file = RotatedFile::new(&plan);
        for _ in 0..5 {
            assert_eq!(file.append(b"aaaa\n", Duration::ZERO), None);
        }
        assert!(!Path::new("/dev/null.1").exists() && !Path::new("/dev/null.idx").exists());
        drop(folder);
    }
}
