//! The edge: all that touches the filesystem. Never blocks: nothing but regular files and folders is opened.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Why a file that is not there cannot be read.
pub(super) const NO_SUCH_FILE: &str = "no such file";

/// What stands under a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// `/dev/null`.
    Null,
    /// A pipe, socket or device.
    Other,
}

/// One entry of a folder.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub kind: Kind,
}

/// What a file holds.
#[derive(Debug)]
pub(super) enum Content {
    Text(String),
    /// Nothing: an empty file or `/dev/null`.
    Mask,
    TooLarge,
    NotUtf8 {
        /// The text with `U+FFFD` for what is none.
        lossy: String,
        /// Where the first of them stands in it.
        at: usize,
    },
}

/// What stands there.
pub(super) fn kind(path: &Path) -> Result<Kind, io::ErrorKind> {
    let kind = fs::metadata(path).map_err(|error| error.kind())?.file_type();
    Ok(match kind {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_char_device()
            && fs::canonicalize(path).is_ok_and(|to| to == Path::new("/dev/null")) =>
        {
            Kind::Null
        }
        _ => Kind::Other,
    })
}

/// Entries by name; hidden ones and names that are not UTF-8 are left out, a folder that is not there has none.
pub(super) fn list(folder: &Path) -> Result<Vec<Entry>, String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(words(&error)),
    };
    let mut list = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| words(&error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') {
            continue;
        }
        let path = entry.path();
        // A link to nothing is a file that cannot be read, which is said when it is read.
        let kind = kind(&path).unwrap_or(Kind::File);
        list.push(Entry { name, path, kind });
    }
    list.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(list)
}

/// The text of a file.
pub(super) fn text(path: &Path, limit: u64) -> Result<Content, String> {
    match kind(path) {
        Ok(Kind::Null) => return Ok(Content::Mask),
        Ok(Kind::Folder) => return Err("it is a folder".to_owned()),
        Ok(Kind::Other) => return Err("it is no regular file".to_owned()),
        Err(io::ErrorKind::NotFound) => return Err(NO_SUCH_FILE.to_owned()),
        // What else is wrong shows when it is opened.
        Ok(Kind::File) | Err(_) => {}
    }
    let file = fs::File::open(path).map_err(|error| words(&error))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| words(&error))?;
    if bytes.len() as u64 > limit {
        return Ok(Content::TooLarge);
    }
    if bytes.trim_ascii().is_empty() {
        return Ok(Content::Mask);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Content::Text(text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Content::NotUtf8 { lossy: String::from_utf8_lossy(error.as_bytes()).into_owned(), at }
        }
    })
}

/// `Some(the folder above)` if this is a `units/` or `profiles/` folder rather than one that holds them.
pub(super) fn is_units_folder(folder: &Path) -> Option<PathBuf> {
    if ["units", "profiles", "scripts", "tenon.toml", "tenon.toml.d"]
        .iter()
        .any(|name| folder.join(name).exists())
    {
        return None;
    }
    let full = fs::canonicalize(folder).ok()?;
    let named = full.file_name().is_some_and(|name| name == "units" || name == "profiles");
    let holds_files = list(folder).is_ok_and(|entries| entries.iter().any(|entry| is_toml(&entry.name)));
    if !(named || holds_files) {
        return None;
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    Some(above.map_or_else(|| PathBuf::from("."), Path::to_path_buf))
}

/// Whether a file is read: `NAME.toml`, in small letters.
pub(super) fn is_toml(name: &str) -> bool {
    name.strip_suffix(".toml").is_some()
}

/// The absolute form of a path; links stay.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// An error without the number of the system.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
