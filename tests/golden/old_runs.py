"""Run folders of earlier builds go on to the same bits:  old_runs.py PLIMSOLL ARCHIVES FOLDER [NAME…]

ARCHIVES is a folder of *.tar.xz, each made by one build: examples, and for each NAME a folder with `before/` (a run as that build
left it; its own path reads @HERE@), `commands` (what made it; what goes on) and `expected` (SHA-256 of the files of results after
that build went on). Each command is given again, by PLIMSOLL, to a copy; every file of `expected` must come out with the same bits.
Exit: 77 where there are no archives, or this machine has no AVX2 (which the commands ask for).
"""
import glob
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from checksum import xxh64


def go_on(plimsoll, archive, name):
    """What differs from `expected` after the second command, as sentences."""
    work = os.path.join(archive, name)
    for entry in os.listdir(os.path.join(work, "before")):
        os.rename(os.path.join(work, "before", entry), os.path.join(work, entry))
    with open(os.path.join(work, "commands")) as f:
        words = shlex.split(f.read().splitlines()[1])
    if "flights" in words:
        shutil.copytree(os.path.join(archive, "flights"), os.path.join(work, "flights"))
    for file in glob.glob(os.path.join(work, "run", "*.yaml")):
        with open(file) as f:
            text = f.read()
        with open(file, "w") as f:
            f.write("".join(edited(text.replace("@HERE@", work).splitlines(keepends=True))))
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
    env.update(XDG_CACHE_HOME=os.path.join(archive, "cache"), LC_ALL="C", OMP_WAIT_POLICY="passive")
    done = subprocess.run([plimsoll, *words[1:]], cwd=work, env=env, capture_output=True, timeout=300)
    if done.returncode:
        return [f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')[-2000:]}"]
    with open(os.path.join(work, "expected")) as f:
        expected = [line.split(None, 1) for line in f.read().splitlines()]
    return [difference for digest, file in expected if (difference := difference_of(os.path.join(work, "run", file), digest))]


def edited(lines):
    """A config that ends with its checksum is one that somebody edited: without its first line and its last."""
    return lines[1:-1] if lines and lines[0].startswith("# plimsoll.config/") else lines


def earlier(data):
    """Weights in 8 bits as version 1 of their file had them: with a checksum of what lies behind the header alone."""
    key = b'"plimsoll.checksum":"'
    if b'"plimsoll.int8/2"' not in data or key not in data:
        return data
    at, behind = data.index(key) + len(key), data[8 + int.from_bytes(data[:8], "little"):]
    data = data[:at] + b"%016x" % xxh64(behind) + data[at + 16:]
    return data.replace(b'"plimsoll.int8/2"', b'"plimsoll.int8/1"', 1)


def difference_of(path, digest):
    if not os.path.exists(path):
        return f"{path} is not there"
    with open(path, "rb") as f:
        data = f.read()
    return None if digest in (hashlib.sha256(d).hexdigest() for d in (data, earlier(data))) else f"{path} has other bits"


def main():
    plimsoll, archives, folder, *names = sys.argv[1:]
    found = sorted(glob.glob(os.path.join(archives, "*.tar.xz")))
    if not found:
        print(f"skipped: {archives} has no run folders of earlier builds (*.tar.xz)")
        return 77
    with open("/proc/cpuinfo") as f:
        if not re.search(r"\bavx2\b", f.read()):
            print("skipped: this machine has no AVX2")
            return 77
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    folder, failed = os.path.abspath(folder), 0
    for archive in found:
        with tarfile.open(archive) as f:
            f.extractall(folder)
        build = os.path.join(folder, os.path.basename(archive)[: -len(".tar.xz")])
        for name in sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(build, "*", "commands"))):
            if names and name not in names:
                continue
            wrong = go_on(os.path.abspath(plimsoll), build, name)
            failed += bool(wrong)
            print(f"{os.path.basename(build)} {name}: {'; '.join(wrong) or 'the same bits'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
