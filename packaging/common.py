"""What the package scripts share: Cargo.toml's metadata, assets, and a clock that stands still."""

import fnmatch
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARY = "target/release/tenon"  # how the metadata names it


def fail(words):
    sys.exit(f"{Path(sys.argv[0]).name}: {words}")


def run(*argv, **more):
    """The output of a program that must succeed."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, **more)
    if done.returncode:
        fail(f"`{' '.join(map(str, argv))}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def cargo(*flags):
    """Cargo's own view of the project: nobody reads Cargo.toml twice."""
    return json.loads(run("cargo", "metadata", "--format-version", "1", *flags, cwd=ROOT))


def package():
    return cargo("--no-deps")["packages"][0]


def epoch():
    """The time of everything that is packed: SOURCE_DATE_EPOCH, else that of the last commit."""
    if said := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(said)
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(asked.stdout) if asked.returncode == 0 else 0


def prepare(binary):
    """Completions, manual pages and changelog in target/package."""
    run(ROOT / "packaging/prepare", binary)


def assets(table, binary, under=""):
    """(file, path in the package without the leading slash, mode) of a package's table, sorted, patterns resolved; only
    what lies below a folder, if one is given."""
    found = []
    for row in table:
        source, dest, mode = (row["source"], row["dest"], row["mode"]) if isinstance(row, dict) else row
        dest = dest.lstrip("/")
        if not dest.startswith(under):
            continue
        if source == BINARY:
            files = [Path(binary)]
        else:
            folder = (ROOT / source).parent
            names = sorted(os.listdir(folder)) if folder.is_dir() else []
            files = [folder / name for name in names if fnmatch.fnmatch(name, Path(source).name)]
        if not files:
            fail(f"`{source}` is in the metadata, and nowhere else")
        for file in files:
            found.append((file, dest + file.name if dest.endswith("/") else dest, int(mode, 8)))
    return sorted(found, key=lambda row: row[1])


def libraries(binary):
    """What a binary asks of the C library: ("2.34", True) = glibc 2.34 and libgcc; (None, False) = nothing, it is static."""
    headers = run("readelf", "--dynamic", "--wide", binary)
    needed = re.findall(r"NEEDED.*\[(.*)\]", headers)
    if not needed:
        return None, False
    strange = set(needed) - {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    if strange:
        fail(f"the binary needs {', '.join(sorted(strange))}: say in packaging/common.py which package has it")
    wanted = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", binary))
    newest = max((int(major), int(minor)) for major, minor in wanted)
    return f"{newest[0]}.{newest[1]}", "libgcc_s.so.1" in needed


def options(usage, *names):
    """`--name VALUE` for each of `names`, as a table."""
    words, found = sys.argv[1:], {}
    while words:
        word = words.pop(0)
        if word.removeprefix("--") not in names or not words:
            sys.exit(usage.strip())
        found[word.removeprefix("--")] = words.pop(0)
    return found
