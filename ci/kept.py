#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Results that passed, kept outside of the tree by the content of all that they depend on.

  ci/kept.py run KIND [PATH...] [--word WORD]... [--tool TOOL]... -- COMMAND...
                      run it; or, where it passed with the same command, words, versions of tools, and contents of files and
                      folders, print what it printed then
  ci/kept.py key [PATH...] [--word WORD]... [--tool TOOL]...     a name for all of these
  ci/kept.py has KIND KEY      exit status 0 if that has passed
  ci/kept.py keep KIND KEY     it has

WEIR_CI_CACHE is the folder (ci/test names one); without it, and with WEIR_CI_ALL, nothing is taken and nothing kept. A command has
passed whose exit status is 0 and whose TAP has cases, none of which failed or was skipped: nothing else is ever kept. A line
for each case that was taken goes to the file WEIR_CI_TAKEN, for ci/count.
"""
import argparse
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]


def code(path):
    """What is in a file; of a program all but what a debugger reads, which says in which folder it was built."""
    data = path.read_bytes()
    if not data.startswith(b"\x7fELF"):
        return data
    with tempfile.NamedTemporaryFile() as bare:
        subprocess.run(["objcopy", "--strip-debug", "--remove-section", ".note.gnu.build-id", path, bare.name], check=True)
        return pathlib.Path(bare.name).read_bytes()


@functools.lru_cache(maxsize=None)
def content(path):
    """A digest of a file, or of all files below a folder, their names and links included."""
    digest = hashlib.sha256()
    path = pathlib.Path(path)
    if not path.is_dir():
        digest.update(code(path) if path.exists() else b"none")
        return digest.hexdigest()
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            file = pathlib.Path(folder, name)
            data = os.readlink(file).encode() if file.is_symlink() else file.read_bytes()
            digest.update(f"{file.relative_to(path)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


@functools.lru_cache(maxsize=None)
def version(tool):
    """What a tool says of itself, so that another version has other results."""
    path = shutil.which(tool)
    if not path:
        return "none"
    return subprocess.run([path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False).stdout


def key(paths=(), words=(), tools=()):
    """A name for the contents of @paths, for @words, and for the versions of @tools."""
    parts = [str(word) for word in words] + [f"{tool}: {version(tool)}" for tool in tools]
    parts += [f"{pathlib.Path(path).name}: {content(str(path))}" for path in paths]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Kept:
    """Keys of one kind of results, and texts with them."""

    def __init__(self, kind):
        where = os.environ.get("WEIR_CI_CACHE")
        self.folder = pathlib.Path(where) / kind if where and not os.environ.get("WEIR_CI_ALL") else None

    def text(self, name):
        """What was kept with the key; None where nothing was."""
        if not self.folder:
            return None
        try:
            os.utime(self.folder / name) # ci/test removes what nobody asked for in a month
            return (self.folder / name).read_text(encoding="utf-8")
        except OSError:
            return None

    def take(self, name, cases=1):
        """The text, as text(), and it is counted as taken."""
        text = self.text(name)
        taken = os.environ.get("WEIR_CI_TAKEN")
        if text is not None and taken:
            with open(taken, "a", encoding="utf-8") as file:
                file.write(f"{name}\n" * (passed(text) or cases))
        return text

    def keep(self, name, text=""):
        if not self.folder:
            return
        part = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_text(text, encoding="utf-8")
            part.rename(self.folder / name)
        except OSError as error:
            print(f"kept.py: cannot keep a result in {self.folder}: {error}", file=sys.stderr)


def passed(text):
    """How many cases of TAP passed; 0 where any did not."""
    if re.search(r"^not ok\b|^ok\b.*# SKIP|^Bail out!", text, re.M):
        return 0
    return len(re.findall(r"^ok\b", text, re.M))


def run(kind, name, command):
    kept = Kept(kind)
    text = kept.take(name)
    if text is not None:
        sys.stdout.write("# from an earlier run with the same contents\n" + text)
        return 0
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
    text = "".join(lines)
    if process.returncode == 0 and passed(text):
        kept.keep(name, text)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def main():
    arguments = sys.argv[1:]
    command = []
    if "--" in arguments:
        command = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "key", "has", "keep"])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--word", action="append", default=[])
    parser.add_argument("--tool", action="append", default=[])
    given = parser.parse_intermixed_args(arguments)
    if given.verb == "key":
        print(key(given.paths, given.word, given.tool))
        return 0
    kind, *paths = given.paths
    if given.verb == "run":
        words = [word.replace(str(ROOT), "") for word in given.word + command]
        return run(kind, key(paths, words, given.tool), command)
    if given.verb == "has":
        return 0 if Kept(kind).take(paths[0]) is not None else 1
    Kept(kind).keep(paths[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
