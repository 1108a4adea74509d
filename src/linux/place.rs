//! Which CPUs and memory nodes are near a device, as the kernel tells it in sysfs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near {
    /// Memory nodes.
    Nodes,
    /// CPUs.
    Cpus,
}

/// The CPUs or the node near a device: its number among the accelerators, its PCI address, or its path in `/dev`.
pub fn near(device: &str, what: Near) -> Result<Vec<u32>, String> {
    near_below(Path::new("/sys"), device, what)
}

fn near_below(sys: &Path, device: &str, what: Near) -> Result<Vec<u32>, String> {
    let folder = folder(sys, device)?;
    let file = match what {
        Near::Nodes => "numa_node",
        Near::Cpus => "local_cpulist",
    };
    let path = folder.join(file);
    let text =
        fs::read_to_string(&path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    match list(text.trim()) {
        Some(found) if !found.is_empty() => Ok(found),
        // The kernel says -1 where it does not know.
        _ => Err(format!(
            "the kernel does not know where device `{device}` is (`{}`: {})",
            path.display(),
            text.trim()
        )),
    }
}

fn folder(sys: &Path, device: &str) -> Result<PathBuf, String> {
    let found = if device.starts_with('/') {
        let data = fs::metadata(device).map_err(|error| format!("cannot look at `{device}`: {error}"))?;
        let (major, minor) = (nix::sys::stat::major(data.rdev()), nix::sys::stat::minor(data.rdev()));
        sys.join(format!("dev/char/{major}:{minor}/device"))
    } else if device.contains(':') {
        sys.join("bus/pci/devices").join(device)
    } else {
        sys.join(format!("class/accel/accel{device}/device"))
    };
    if found.exists() {
        return Ok(found);
    }
    Err(format!(
        "there is no device `{device}` (`{}`); a PCI address or a path in `/dev` names one too",
        found.display()
    ))
}

fn list(text: &str) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        found.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(found)
}

/// Numbers as the bit mask that system calls take.
pub fn mask(numbers: &[u32]) -> Vec<u64> {
    let mut words = vec![0; numbers.iter().max().map_or(0, |most| *most as usize / 64 + 1)];
    for number in numbers {
        if let Some(word) = words.get_mut(*number as usize / 64) {
            *word |= 1u64 << (number % 64);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_a_device() {
        let sys = tempfile::tempdir().unwrap();
        let device = sys.path().join("bus/pci/devices/0000:3b:00.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("numa_node"), "1\n").unwrap();
        fs::write(device.join("local_cpulist"), "8-9,12\n").unwrap();
        let ask = |device, what| near_below(sys.path(), device, what);
        assert_eq!(ask("0000:3b:00.0", Near::Nodes), Ok(vec![1]));
        assert_eq!(ask("0000:3b:00.0", Near::Cpus), Ok(vec![8, 9, 12]));
        fs::write(device.join("numa_node"), "-1\n").unwrap();
        assert!(ask("0000:3b:00.0", Near::Nodes).unwrap_err().starts_with("the kernel does not know"));
        assert!(ask("7", Near::Nodes).unwrap_err().starts_with("there is no device `7`"));
    }

    #[test]
    fn masks() {
        assert_eq!(mask(&[]), Vec::<u64>::new());
        assert_eq!(mask(&[0, 2]), [5]);
        assert_eq!(mask(&[64]), [0, 1]);
    }
}
