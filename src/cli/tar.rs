//! One archive out of a few texts: the POSIX `ustar` format, as much of it as that takes. Pure.

/// Bytes of a block.
const BLOCK: usize = 512;
/// Names longer than the header holds lose their beginning: the end says which file it is.
const NAME_MAX: usize = 100;

/// An archive of these files (name, content), all of this time (seconds since 1970), readable by their owner.
pub fn archive(files: &[(String, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, content) in files {
        out.extend(header(name, content.len(), time));
        out.extend(content);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    // Two empty blocks are the end.
    out.resize(out.len() + 2 * BLOCK, 0);
    out
}

fn header(name: &str, size: usize, time: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut start = name.len().saturating_sub(NAME_MAX);
    while !name.is_char_boundary(start) {
        start += 1;
    }
    let mut put = |at: usize, text: &str| {
        for (to, from) in block.iter_mut().skip(at).zip(text.bytes()) {
            *to = from;
        }
    };
    put(0, name.get(start..).unwrap_or_default());
    put(100, "0000600\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, &format!("{time:011o}\0"));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    for (to, from) in block.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
        *to = from;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("report/{}/end.toml", "x".repeat(120));
        let files = vec![
            ("report/a.txt".to_owned(), b"one\n".to_vec()),
            ("report/empty".to_owned(), Vec::new()),
            (long.clone(), vec![b'z'; 513]),
        ];
        let path = folder.path().join("r.tar");
        std::fs::write(&path, archive(&files, 1_700_000_000)).unwrap();
        let tar = |args: &[&str]| {
            let out = std::process::Command::new("tar").args(args).arg(&path).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8(out.stdout).unwrap()
        };
        let names: Vec<String> = tar(&["-tf"]).lines().map(str::to_owned).collect();
        assert_eq!(names, ["report/a.txt", "report/empty", &long[long.len() - NAME_MAX..]]);
        assert_eq!(tar(&["-xOf"]).len(), 4 + 513);
        assert!(tar(&["--numeric-owner", "-tvf"]).starts_with("-rw------- 0/0"));
    }
}
