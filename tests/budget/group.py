"""A memory cgroup of our own, version 2 or 1, whichever the machine has: what a container's limit is made of.

The group is made below our own, or below the nearest ancestor where that is allowed (version 2 lets no group have both
processes and groups with limits). Swap is closed: what does not fit is killed. Source: the kernel's
admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst."""

import contextlib
import errno
import glob
import os
import re
import shutil
import subprocess
import time

from harness import Bench, Skip

PAGE_BYTES = 4096
FILES = {
    1: {"limit": "memory.limit_in_bytes", "swap": "memory.memsw.limit_in_bytes", "peak": "memory.max_usage_in_bytes",
        "kernel": "memory.kmem.max_usage_in_bytes", "events": "memory.oom_control", "now": "memory.usage_in_bytes"},
    2: {"limit": "memory.max", "swap": "memory.swap.max", "peak": "memory.peak", "kernel": "", "events": "memory.events",
        "now": "memory.current"},
}


def places():
    """(version, folder of a group): our own and its ancestors, of each version that counts memory here."""
    groups, mounts = {}, {}
    with open("/proc/self/cgroup", encoding="ascii") as f:
        for line in f:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                groups[1] = path
            elif number == "0":
                groups[2] = path
    with open("/proc/self/mountinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            left, right = line.split(" - ")
            kind, _, options = right.split()[:3]
            version = {"cgroup": 1, "cgroup2": 2}.get(kind)
            if version == 2 or (version == 1 and "memory" in options.split(",")):
                mounts.setdefault(version, left.split()[3:5])
    for version, (part, mount) in sorted(mounts.items()):
        path = groups.get(version, "/")
        below = path[len(part.rstrip("/")):] if path.startswith(part.rstrip("/")) and ".." not in path else ""
        while True:
            yield version, mount + below.rstrip("/")
            if not below.strip("/"):
                break
            below = os.path.dirname(below)


def name_of(pid):
    """With the namespace that the number belongs to: groups of other containers may lie beside ours."""
    return f"plimsoll-test-{os.stat('/proc/self/ns/pid').st_ino}-{pid}"


def remove_left_over(parent):
    """Groups of runs that were killed before they could remove them. What runs in one still keeps it."""
    for folder in glob.glob(os.path.join(glob.escape(parent), name_of("*"))):
        pid = folder.rsplit("-", 1)[1]
        if pid == str(os.getpid()) or not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


class Group:
    """Made and limited at once; `prefix` starts a command in it."""

    def __init__(self):
        reasons = []
        for self.version, parent in places():
            self.folder = os.path.join(parent, name_of(os.getpid()))
            try:
                remove_left_over(parent)
                self.make(parent)
                return
            except OSError as why:
                reasons.append(f"{parent}: {why.strerror}")
        raise Skip(f"no memory cgroup can be made ({'; '.join(reasons) or 'none is mounted'})")

    def make(self, parent):
        if self.version == 2 and "memory" not in self.read("cgroup.subtree_control", parent).split():
            self.write("cgroup.subtree_control", "+memory", parent)
        os.mkdir(self.folder)
        try:
            self.set_limit(1 << 40)
        except OSError:
            os.rmdir(self.folder)
            raise

    def read(self, name, folder=None):
        with open(os.path.join(folder or self.folder, name), encoding="ascii") as f:
            return f.read()

    def write(self, name, text, folder=None):
        with open(os.path.join(folder or self.folder, name), "w", encoding="ascii") as f:
            f.write(text)

    def set_limit(self, bytes_):
        """Memory and swap together: version 1 wants the one never above the other."""
        files = FILES[self.version]
        swap = os.path.exists(os.path.join(self.folder, files["swap"]))
        if self.version == 2:
            self.write(files["limit"], str(bytes_))
            if swap:
                self.write(files["swap"], "0")
            return
        for name in (files["limit"], files["swap"], files["limit"]) if swap else (files["limit"],):
            try:
                self.write(name, str(bytes_))
            except OSError as why:
                if why.errno not in (errno.EINVAL, errno.EBUSY):
                    raise

    def prefix(self):
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', os.path.join(self.folder, "cgroup.procs")]

    def peak(self):
        """The most that was charged at once, page cache that came and went included; None: this kernel does not tell."""
        try:
            return int(self.read(FILES[self.version]["peak"]))
        except OSError:
            return None

    def now(self):
        return int(self.read(FILES[self.version]["now"]))

    def kernel_peak(self):
        try:
            return int(self.read(FILES[self.version]["kernel"]))
        except OSError:
            return None

    def kills(self):
        found = re.search(r"^oom_kill (\d+)$", self.read(FILES[self.version]["events"]), re.M)
        return int(found.group(1)) if found else 0

    def remove(self):
        for _ in range(100):  # a process that has just ended may still be in it
            try:
                os.rmdir(self.folder)
                return
            except OSError as why:
                if why.errno != errno.EBUSY:
                    raise
                time.sleep(0.05)


class Inside(Bench):
    """A bench whose commands run in a group of a given limit.

    The command, like its modules, is a fresh copy whose pages are in nobody's page cache, so that the group pays for them, as a
    container does for its image. And without what is there for debuggers, nine tenths of the file: of it a disk may read 8 MiB ahead, more
    than a small group has; pages that are on their way cannot be given back, and the kernel kills before main begins."""

    def __init__(self, plimsoll, keep):
        super().__init__((plimsoll, "", ""), keep)
        self.group, self.built, self.copies = None, os.path.dirname(plimsoll), []
        self.plimsoll = self.copy(os.path.basename(plimsoll))

    def copy(self, name):
        copied = shutil.copy(os.path.join(self.built, name), self.path(name))
        with contextlib.suppress(FileNotFoundError):  # no binutils: as it is
            subprocess.run(["strip", copied], check=True)
        self.copies.append(copied)
        return copied

    def has_module(self, name):
        """Of the command's build; a copy lies beside the copy of the command then."""
        if not os.path.exists(os.path.join(self.built, name)):
            return False
        if not os.path.exists(self.path(name)):
            self.copy(name)
        return True

    def forget_copies(self):
        for copied in self.copies:
            fd = os.open(copied, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

    def limited(self, bytes_):
        """A new group: peaks and kills begin at 0."""
        if self.group:
            self.group.remove()
        self.group = Group()
        self.group.set_limit(bytes_)
        self.forget_copies()
        return self.group.prefix()

    def close(self, failed):
        if self.group:
            self.group.remove()
        super().close(failed)
