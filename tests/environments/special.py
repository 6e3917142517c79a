"""Environments that no table holds: what is closed, where one works, who looks on, which language numbers are in. Each takes
(bench, arguments), returns the words for its line, raises Failure or Skip. ALL names them."""

import json
import os
import pty
import shutil
import stat
import struct
import subprocess
import sys
import termios
import fcntl

from table import Environment

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "budget"))
import checks  # noqa: E402
from harness import Failure, Skip, repeat  # noqa: E402

PLAIN = Environment()
ODD_NAME = b'sp ace\nnew line "quoted" \\ : # %s \xc3\xbc'
NO_UTF8_NAME = b"latin \xfc \xff"


def losses_of(out):
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as f:
        return [m["loss"] for m in map(json.loads, f) if "loss" in m]


def start(bench, words, code=0, said="", shell="", env=None, without=(), cwd=None, **more):
    """Runs the command; (stdout, stderr) as bytes. Failure unless it ends with this code and has said this."""
    line = [os.fsencode(w) for w in bench.command(*[os.fsdecode(w) for w in words])]
    if shell:
        line = [b"sh", b"-c", os.fsencode(shell), b"sh", *line]
    full = {**{k: v for k, v in bench.environment.items() if k not in without}, **(env or {})}
    done = subprocess.run(line, env=full, cwd=cwd, capture_output=True, timeout=120, **{"stdin": subprocess.DEVNULL, **more})
    if done.returncode != code or said.encode() not in done.stderr:
        shown = [w.decode(errors="backslashreplace") for w in line]
        raise Failure(f"exit {done.returncode} where {code} is expected, with \"{said}\"\n{repeat(shown, env or {})}\n"
                      f"{done.stderr.decode(errors='replace')[-800:]}")
    return done.stdout, done.stderr


def options_of(bench, out, **keys):
    return checks.tiny(bench, out, train__sample_every=0, **keys)


def check(condition, *words):
    if not condition:
        raise Failure(" ".join(str(w) for w in words))


# ---- descriptors ----


def files_of(out):
    """Names of all a run leaves, but the events' file, which has the time in its name."""
    return sorted("events" if n.startswith("events") else n for n in os.listdir(out))


def closed_descriptors(bench, arguments):
    del arguments
    plain = bench.out()
    start(bench, ["train", bench.config, *options_of(bench, plain)])
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        out = bench.out()
        start(bench, ["train", bench.config, *options_of(bench, out)], shell=f'"$@" {closed}')
        check(files_of(out) == files_of(plain), closed, "leaves", files_of(out), "and not", files_of(plain))
        check(checks.weights_of(out) == checks.weights_of(plain), closed, "leaves other weights")
        for name in ("plan.lock", "config.yaml", "plan.html"):
            with open(os.path.join(out, name), "rb") as f:
                check(b"step " not in f.read(200), f"{out}/{name} begins with talk, after {closed}")
    start(bench, ["eval", plain], 5, "standard output cannot be written", shell='"$@" >&-')
    start(bench, ["eval", plain], 5, "standard output cannot be written", shell='"$@" >/dev/full')
    start(bench, ["place", "-"], 4, "stdin", shell='"$@" <&-')
    return "closed stdin, stdout, stderr, all three: the same files; what cannot be said fails"


# ---- homes and caches ----


def homes(bench, arguments):
    del arguments
    out = bench.out()
    none = bench.path("nobody/home")
    words = ["train", bench.config, *options_of(bench, out, train__steps=2)]
    start(bench, words, env={"HOME": none}, without=("XDG_CACHE_HOME",))
    check(not os.path.exists(bench.path("nobody")), "a home that was not there was made:", none)
    shutil.rmtree(out)
    home = bench.path("home")
    os.mkdir(home)
    start(bench, words, env={"HOME": home}, without=("XDG_CACHE_HOME",))
    made = os.path.join(home, ".cache", "plimsoll")
    check(os.listdir(made), made, "is empty")
    check(stat.S_IMODE(os.stat(made).st_mode) == 0o700, made, "is open to others")
    for name in (ODD_NAME, NO_UTF8_NAME):
        shutil.rmtree(out)
        cache = os.path.join(os.fsencode(bench.folder), b"cache of " + name)
        start(bench, words, env={"XDG_CACHE_HOME": os.fsdecode(cache)})
        check(os.listdir(os.path.join(cache, b"plimsoll")), cache, "is empty")
    return "a home that is not there stays so; caches are private, whatever their name"


# ---- folders ----


def odd_folders(bench, arguments):
    del arguments
    text = os.path.abspath(bench.text())
    folder = os.path.join(os.fsencode(bench.folder), ODD_NAME)
    os.mkdir(folder)
    shutil.copy(text, os.path.join(folder, b"text \xc3\xbc.txt"))
    words = ["train", bench.config, *options_of(bench, "run one", data__text="text ü.txt", train__steps=4)]
    start(bench, words, cwd=folder)
    for more in (["eval", "run one", "--json"], ["generate", "run one"], ["train", "run one", "--resume", "--steps", "6"]):
        start(bench, more, cwd=folder)
    out, _ = start(bench, ["plan", os.path.join(folder, b"run one"), "--json"])
    json.loads(out)
    return "blanks, line breaks, quotes, umlauts in the name: trained, resumed, evaluated"


def folder_without_utf8(bench, arguments):
    """A kept config is YAML, which is UTF-8: refused before the run begins, and with absolute paths it goes."""
    del arguments
    folder = os.path.join(os.fsencode(bench.folder), NO_UTF8_NAME)
    os.mkdir(folder)
    words = ["train", bench.config, *options_of(bench, "out", data__text=os.path.abspath(bench.text()), train__steps=2)]
    start(bench, words, 2, "is not printable UTF-8", cwd=folder)
    out = bench.out()
    start(bench, ["train", bench.config, *options_of(bench, os.path.abspath(out), train__steps=2)], cwd=folder)
    start(bench, ["eval", os.path.abspath(out)], cwd=folder)
    return "refused with a sentence; absolute paths work from there"


def folder_that_is_gone(bench, arguments):
    del arguments
    out = os.path.abspath(bench.out())
    gone = bench.path("gone")
    os.mkdir(gone)
    line = 'cd "$PLACE" && rmdir "$PLACE" && exec "$@"'
    start(bench, ["train", bench.config, *options_of(bench, out, train__steps=2)], shell=line, env={"PLACE": gone})
    os.mkdir(gone)
    start(bench, ["train", bench.config, *options_of(bench, "out", train__steps=2)], 5, "cannot be created", shell=line,
          env={"PLACE": gone})
    return "absolute paths work, a relative one is refused with a sentence"


# ---- terminals ----


def on_terminal(bench, words, columns, env):
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", columns, columns, 0, 0))
        os.execve(words[0], words, {**bench.environment, **env})
    text = b""
    try:
        while block := os.read(terminal, 65536):
            text += block
    except OSError:
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def terminals(bench, arguments):
    del arguments
    for columns, env in ((0, {"TERM": "xterm"}), (1, {"TERM": "xterm"}), (65535, {"TERM": "xterm"}), (80, {"TERM": "dumb"}),
                         (80, {"TERM": "xterm", "NO_COLOR": "1"}), (80, {"TERM": ""})):
        words = bench.command("train", bench.config, *options_of(bench, bench.out()))
        code, text = on_terminal(bench, words, columns, env)
        check(code == 0 and b"As planned, to the byte" in text, columns, "columns,", env, "exit", code, text[-500:])
        colours = b"\033[3" in text or b"\033[1m" in text
        check(not colours or env["TERM"] == "xterm" and "NO_COLOR" not in env, env, "gets colours")
        check(max(map(len, text.split(b"\n"))) < 20_000, columns, "columns: an endless line")
    return "0, 1, 65535 columns, dumb, NO_COLOR, no TERM: as planned to the byte"


# ---- languages ----


def make_locales(bench):
    """A decimal comma (de_DE) and a dotless i (tr_TR), in a folder of ours. Where its sources are missing localedef leaves an
    empty folder, and where one of them is odd it ends with 1 and a locale that is good: the locale itself is asked."""
    folder = bench.path("locales")
    if not shutil.which("localedef"):
        raise Skip("no localedef")
    os.makedirs(folder, exist_ok=True)
    for name in ("de_DE", "tr_TR"):
        made = subprocess.run(["localedef", "-c", "-i", name, "-f", "UTF-8", os.path.join(folder, name + ".UTF-8")], capture_output=True)
        asked = subprocess.run(["locale", "decimal_point"], env={**os.environ, "LOCPATH": folder, "LC_ALL": name + ".UTF-8"}, capture_output=True)
        if asked.stdout.strip() != b",":
            raise Skip(f"{name} cannot be made (package locales): {made.stderr.decode(errors='replace')[:100]}")
    return folder


def languages(bench, arguments):
    folder, words = make_locales(bench), {}
    if not arguments.host:
        raise Skip("no host program")
    for name in ("C", "de_DE.UTF-8", "tr_TR.UTF-8"):
        env = {**bench.environment, "LOCPATH": folder, "LC_ALL": name}
        out, _ = start(bench, ["plan", bench.config, "--json", *options_of(bench, bench.path("o"))], env=env)
        plan = json.loads(out)
        host = subprocess.run([arguments.host, name, bench.text(), bench.path("host"), bench.path("cache")], env=env, capture_output=True, timeout=120)
        check(host.returncode == 0, name, host.stderr.decode(errors="replace")[-800:])
        words[name] = (plan["process"]["resident_bytes"], losses_of(bench.path("host")), host.stdout)
    for name in ("de_DE.UTF-8", "tr_TR.UTF-8"):
        check(words[name] == words["C"], name, "differs from C:", words[name][2][-400:], words["C"][2][-400:])
    return "a host program with a decimal comma or a dotless i: config, plan, page, losses byte for byte as in C"


# ---- what is refused, each with its sentence ----


def refusals(bench, arguments):
    del arguments
    words = ["train", bench.config, *options_of(bench, bench.out())]
    start(bench, words, 2, "OMP_THREAD_LIMIT allows 1", env={"OMP_THREAD_LIMIT": "1"})
    start(bench, words, 2, "raise the limit (ulimit -s", shell='ulimit -s 128 && exec "$@"')
    start(bench, words, 5, "Too many open files", shell='ulimit -n 8 && exec "$@"')
    return "a team that OpenMP forbids, 128 kB of stack, 8 descriptors: a sentence each"


# ---- huge pages ----


def huge_pages_always(bench, arguments):
    """Three seconds; tests/budget (thp) watches longer, and a second model."""
    if not os.path.exists(arguments.thp_always):
        raise Skip("no thp_always")
    bench.thp_always = arguments.thp_always
    looks, rounds = checks.watch_under_thp(bench, {"memory__huge_pages": "off", "run__threads": 4}, 3)
    return f"collapsed {rounds} times, looked at {looks} times: resident constant, as planned"


ALL = {
    "closed descriptors": closed_descriptors, "homes": homes, "odd folders": odd_folders, "folder without UTF-8": folder_without_utf8,
    "folder that is gone": folder_that_is_gone, "terminals": terminals, "languages": languages, "refusals": refusals,
    "huge pages always": huge_pages_always,
}
