"""Tests of plimsoll storage: what is told, what goes and what stays; killed anywhere is the matter of tests/faults. Results come
from leave_results (LEAVE_RESULTS). Called as cli_tests.py is."""
import ctypes
import fcntl
import json
import os
import random
import re
import shutil
import subprocess

import cli_tests
from cli_tests import COMMAND, SEED, Skipped, check, environment, main, read, refused, run, same_run, write_config, write_text
from said import unfolded
from lru_oracle import OK, Cache

DRAW = random.Random(SEED)
LEAVE = os.environ.get("LEAVE_RESULTS", "")
CACHE = "plimsoll-pages.sqlite"
TEMPORARY = ".plimsoll.tmp"
PARTS = 3


def leave(*words):
    done = subprocess.run([LEAVE, *map(str, words)], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip())
    check(done.returncode == 0, words, done.returncode, done.stderr)


def put(path, data=b"x"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def snapshot(folder):
    """Every name below, with what it is and what is in it; links are not followed. The lock says who held it last."""
    found = {}
    for at, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(at, name)
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = "-> " + os.readlink(path)
            elif os.path.isdir(path):
                found[os.path.relpath(path, folder)] = "folder"
            elif name != "lock":
                found[os.path.relpath(path, folder)] = read(path)
    return found


def disk_bytes(folder):
    return sum(os.lstat(os.path.join(at, n)).st_blocks * 512 for at, _, names in os.walk(folder) for n in names if n != "lock")


def report(folder, *words, command="report"):
    before = snapshot(folder)
    out, _ = run("storage", command, folder, "--json", *(["--dry-run"] if command == "clean" else []), *words)
    check(snapshot(folder) == before, "a report changed something")
    told = json.loads(out)
    check(told["schema"] == "plimsoll.storage/1" and told["gain"] == sum(i["gain"] for i in told["items"]), told)
    check(told["bytes"] == sum(i["bytes"] for i in told["items"]), told)
    return {i["path"]: i for i in told["items"]}


def train(out, steps=5, keep=9):
    if not os.path.exists("text.txt"):
        write_text()
    run("train", write_config(train={"steps": steps, "checkpoint_every": 1, "keep_last": keep, "eval_every": 2}), "--quiet", "--out", out)


def steps_of(out):
    return sorted(n for n in os.listdir(f"{out}/checkpoints") if n.startswith("step-"))


def module():
    path = os.path.join(os.path.dirname(COMMAND), "plimsoll-cache.so")
    if not os.path.exists(path):
        raise Skipped("there is no module for a cache of pages")
    return path


def make_cache(folder, file_bytes=2 << 20, values=400):
    os.makedirs(folder, exist_ok=True)
    cache = Cache(module(), f"{folder}/{CACHE}", file_bytes)
    check(cache.open() == OK, cache.why.value)
    for i in range(values):
        cache.put(i, DRAW.randbytes(4000))
    cache.close()
    return cache


def test_report():
    train("store/models/run")
    leave("native", "store/datasets/all.blocks")
    for i in range(PARTS):
        leave("native", f"store/temp/some-{i + 1}-of-{PARTS}.blocks", i, 1)
    leave("npy", "store/datasets/all")
    make_cache("store/temp/pages")
    put(f"store/models/run/metrics.jsonl{TEMPORARY}")
    put("store/mine\nand \x1b[31mred.txt")
    put("store/models/run/mine.txt")
    put("store/datasets/all.times.json")
    put(b"store/\xff.bin")
    os.symlink("nowhere", "store/dangling")
    os.symlink("../outside", "store/out")
    put("outside/step-00000001/run.json")
    put(f"outside/a{TEMPORARY}")
    told = report("store")
    kinds = {path: (i["kind"], i["fate"]) for path, i in told.items()}
    wanted = {"models/run/checkpoints/step-00000005": ("checkpoint", "stays"), "datasets/all.blocks": ("results", "stays"), "datasets/all": ("results", "stays"),
              "temp/some-2-of-3.blocks": ("part", "stays"), f"temp/pages/{CACHE}": ("cache", "stays"), "models/run/metrics.jsonl": ("records", "stays"), "models/run/times.json": ("records", "stays"), "datasets/all.times.json": ("records", "stays"),
              f"models/run/metrics.jsonl{TEMPORARY}": ("temporary", "goes"), "models/run/tokens.bin": ("prepared data", "stays"),
              "mine\nand \x1b[31mred.txt": ("unknown", "stays"), "models/run/mine.txt": ("unknown", "stays"), "\ufffd.bin": ("unknown", "stays"),
              "dangling": ("link", "stays"), "out": ("link", "stays"), "models/run/checkpoints/latest": ("records", "stays")}
    check(wanted.items() <= kinds.items(), {k: kinds.get(k) for k in wanted if kinds.get(k) != wanted[k]})
    check(not any("outside" in path or path.startswith("out/") for path in told), "a link was followed")
    check(sum(i["bytes"] for path, i in told.items() if not path.endswith("/lock")) == disk_bytes("store"), "the sum is not that of the disk", disk_bytes("store"))
    out, said = run("storage", "report", "store", "--limit", "1kB")
    check("more than the limit of 1.00 kB" in out and "free on the disk" in out and "\x1b" not in out and "mine?and ?[31mred.txt" in out, out)
    check("within the limit" in run("storage", "report", "store", "--limit", "10GB")[0] and said == "", said)


def test_keep_last():
    train("store/run", steps=6)
    whole = snapshot("store")
    shutil.copytree("store/run", "whole")
    best = read("store/run/checkpoints/best").decode().strip() if os.path.exists("store/run/checkpoints/best") else None
    told = report("store", "--keep-last", "2")
    wanted = {"step-00000005", "step-00000006"} | ({best} if best else set())
    check({os.path.basename(p) for p, i in told.items() if i["kind"] == "checkpoint" and i["fate"] == "stays"} == wanted, told)
    before = disk_bytes("store")
    out, _ = run("storage", "clean", "store", "--keep-last", "2")
    check(set(steps_of("store/run")) == wanted, steps_of("store/run"))
    check(before - disk_bytes("store") == sum(i["gain"] for i in told.values()) and "older than the last 2" in out, out)
    left = snapshot("store")
    check(left.items() <= whole.items(), "something else has changed")
    check(run("storage", "clean", "store", "--keep-last", "2")[0] == "0 removed, 0 B\n", "a second time")
    # what goes on from it ends as what was never cleaned
    for folder in ("store/run", "whole"):
        run("train", folder, "--resume", "--steps", "8", "--keep_last", "2", "--quiet")
    same_run("store/run", "whole")


def test_damaged_checkpoint_is_not_counted():
    train("run", steps=5)
    path = "run/checkpoints/step-00000005/model.safetensors"
    data = bytearray(read(path))
    data[-1] ^= 1
    put(path, data)
    told = report("run", "--keep-last", "1")
    check("is not counted" in told["checkpoints/step-00000005"]["why"] and "damaged" in told["checkpoints/step-00000005"]["why"], told["checkpoints/step-00000005"])
    run("storage", "clean", "run", "--keep-last", "1")
    check({"step-00000005", "step-00000004"} <= set(steps_of("run")) and "step-00000001" not in steps_of("run"), steps_of("run"))
    _, said = run("train", "run", "--resume", "--steps", "6", "--quiet")
    check("step 4 is used instead" in said, said)
    # a pointer that says nothing
    train("other", steps=3)
    put("other/checkpoints/best", b"none\n")
    before = snapshot("other")
    refused(4, "best: names no checkpoint", "storage", "clean", "other", "--keep-last", "1")
    check(snapshot("other") == before, "something is gone")


def test_without_state():
    """Weights alone are nothing that a run goes on from."""
    train("run", steps=4)
    os.remove("run/checkpoints/step-00000004/state.safetensors")
    run("storage", "clean", "run", "--keep-last", "1")
    check({"step-00000003", "step-00000004"} <= set(steps_of("run")) and "step-00000001" not in steps_of("run"), steps_of("run"))
    run("train", "run", "--resume", "--steps", "5", "--quiet")


def test_other_checkpoints():
    """What a person copied into the run, under whatever name, is not the run's."""
    train("run", steps=4)
    for to in ("backup/checkpoints", "phase1/deep/checkpoints", "checkpoints/checkpoints"):
        shutil.copytree("run/checkpoints", f"run/{to}", ignore=shutil.ignore_patterns("checkpoints"))
        os.makedirs(f"run/{to}/step-00000009.tmp")
    before = snapshot("run")
    run("storage", "clean", "run", "--keep-last", "1")
    own = re.compile(r"checkpoints/step-[0-9]+(/[^/]*)?")
    check({p for p in before if p not in snapshot("run") and not own.fullmatch(p)} == set() and len(steps_of("run")) < 4, steps_of("run"))


def test_another_programs_checkpoints():
    """A config.yaml and a folder `checkpoints` are nobody's mark, and a file `lock` that does not hold a process number is not ours:
    nothing of it goes, and nothing is written there."""
    for lock in (None, b"held by me\n", b"", b"12\n34\n", b"12"):
        folder = f"project{len(lock or b'')}{lock is None}"
        put(f"{folder}/config.yaml", b"model: resnet50\n")
        put(f"{folder}/checkpoints/step-00000009.tmp/model.safetensors", b"x" * 9000)
        os.makedirs(f"{folder}/checkpoints/step-00000008.tmp")
        for step in ("step-00000007", "step-00000007.old"):
            put(f"{folder}/checkpoints/{step}/model.safetensors", b"y" * 9000)
        if lock is not None:
            put(f"{folder}/lock", lock)
        before = snapshot(folder)
        check(all(i["fate"] == "stays" and i["kind"] == "unknown" for i in report(folder).values()), folder, report(folder))
        run("storage", "clean", folder, "--keep-last", "1")
        check(snapshot(folder) == before and (lock is None) == (not os.path.exists(f"{folder}/lock")), folder, "has changed")
        check(lock is None or read(f"{folder}/lock") == lock, folder, "its lock was written")


def test_copied_under_another_number():
    """What a checkpoint is of, its record says; a copy with a higher number takes no place among those that are kept."""
    train("run", steps=4)
    shutil.copytree("run/checkpoints/step-00000001", "run/checkpoints/step-00000099")
    told = report("run", "--keep-last", "1")["checkpoints/step-00000099"]
    check(told["fate"] == "stays" and "step 1" in told["why"], told)
    run("storage", "clean", "run", "--keep-last", "1")
    check({"step-00000099", "step-00000004"} <= set(steps_of("run")) and "step-00000002" not in steps_of("run"), steps_of("run"))


def test_things_in_a_checkpoint():
    """What a person put into a checkpoint keeps it: nothing is gained there, and its folder keeps its name."""
    for i, name in enumerate(("notes.txt", "plots/loss.png")):
        train(f"run{i}", steps=4)
        put(f"run{i}/checkpoints/step-00000001/{name}", b"z" * 9000)
        before = {p: what for p, what in snapshot(f"run{i}").items() if "step-00000001" in p}
        told = report(f"run{i}", "--keep-last", "1")["checkpoints/step-00000001"]
        check((told["fate"], told["gain"]) == ("stays", 0) and "not of a checkpoint" in told["why"], told)
        run("storage", "clean", f"run{i}", "--keep-last", "1")
        check({"step-00000001", "step-00000004"} <= set(steps_of(f"run{i}")), steps_of(f"run{i}"))
        check(i == 1 or "step-00000002" not in steps_of(f"run{i}"), "what is no file keeps all of the run:", steps_of(f"run{i}"))
        check(before.items() <= snapshot(f"run{i}").items(), "something of it went")


def test_best_stays():
    train("run", steps=6)
    best = "run/checkpoints/best"
    name = read(best).decode().strip()
    for text in (b"step-00000077", name.encode() + b"\njunk", name.encode() + b"\n\n", name.encode() + b"\0", b""):
        put(best, text)
        before = snapshot("run")
        refused(4, "best: names", "storage", "clean", "run", "--keep-last", "1")
        check(snapshot("run") == before, text, "something is gone")
    put(best, name.encode() + b"\n")
    check("best" in report("run", "--keep-last", "1")[f"checkpoints/{name}"]["why"] or name == steps_of("run")[-1], "with a newline")
    # of an older step, as the newest says, when `best` is gone
    os.remove(best)
    record = json.loads(read("run/checkpoints/step-00000006/run.json"))
    wanted = {"step-00000006", f"step-{record['best']['step']:08}"}
    run("storage", "clean", "run", "--keep-last", "1")
    check(set(steps_of("run")) == wanted, steps_of("run"), wanted)


def test_old_without_its_new():
    """What was put aside goes when what took its place is sound, and else stays."""
    train("run", steps=3)
    new, old = "run/checkpoints/step-00000003", "run/checkpoints/step-00000003.old"
    shutil.copytree(new, old)
    shutil.copytree(new, "aside")
    wanted = snapshot(old)

    def damage():
        shutil.copytree("aside", new)
        put(f"{new}/state.safetensors", b"x")

    def lead_back():
        os.makedirs(new)
        for name in wanted:
            os.symlink(f"../step-00000003.old/{name}", f"{new}/{name}")

    for make in (lambda: put(new), lambda: os.makedirs(new), lambda: os.symlink("nowhere", new), lambda: os.symlink("step-00000003.old", new), damage, lead_back):
        shutil.rmtree(new) if os.path.isdir(new) and not os.path.islink(new) else os.remove(new)
        make()
        run("storage", "clean", "run")
        check(os.path.isdir(old) and snapshot(old) == wanted, "it went", os.listdir("run/checkpoints"))
        check("stays" == report("run")["checkpoints/step-00000003.old"]["fate"], "is told")
    shutil.rmtree(new)
    shutil.copytree("aside", new)
    run("storage", "clean", "run")
    check(not os.path.exists(old) and os.path.exists(new), "it stays for ever")
    # both go where the one is old enough
    shutil.copytree("run/checkpoints/step-00000001", "run/checkpoints/step-00000001.old")
    run("storage", "clean", "run", "--keep-last", "1")
    check(not any("step-00000001" in name for name in os.listdir("run/checkpoints")), os.listdir("run/checkpoints"))


def test_links_among_checkpoints():
    """The bytes of a newer one may lie in an older one."""
    for i, (name, to) in enumerate((("step-00000004/model.safetensors", "../step-00000001/model.safetensors"), ("step-00000007", "step-00000001"))):
        train(f"run{i}", steps=4)
        path = f"run{i}/checkpoints/{name}"
        if os.path.exists(path):
            put(f"run{i}/checkpoints/step-00000001/model.safetensors", read(path))
            os.remove(path)
        os.symlink(to, path)
        before = snapshot(f"run{i}")
        run("storage", "clean", f"run{i}", "--keep-last", "1")
        check(snapshot(f"run{i}") == before, "something went")
        check("links" in report(f"run{i}", "--keep-last", "1")["checkpoints/step-00000001"]["why"], "no word of it")


def test_changed_after_the_look():
    """A run went on, or a person was at work, between the look and the lock."""
    path = os.path.join(os.path.dirname(COMMAND), "libplimsoll.so")
    if not os.path.exists(path):
        raise Skipped("there is no shared library")
    lib = ctypes.CDLL(path)
    lib.pl_storage_destroy.argtypes = [ctypes.c_void_p]
    lib.pl_storage_clean.argtypes = [ctypes.c_void_p] * 5
    rules, error, cleaned = (ctypes.c_uint64 * 8)(1), ctypes.create_string_buffer(1 << 16), ctypes.create_string_buffer(256)
    train("run", steps=4)
    points, last = (f"run/checkpoints/{n}" for n in ("latest", "step-00000004"))

    def replace():
        shutil.copytree(last, "again")
        shutil.rmtree(last)
        os.rename("again", last)

    for change in (lambda: put(points, b"step-00000002"), replace, lambda: os.remove(f"{last}/state.safetensors"), lambda: shutil.rmtree(last)):
        put(points, b"step-00000004")
        storage = ctypes.c_void_p()
        check(lib.pl_storage_look(b"run", ctypes.byref(rules), ctypes.byref(storage), error) == 0, error.raw[:300])
        change()
        before = snapshot("run")
        lib.pl_storage_clean(storage, None, None, cleaned, error)
        lib.pl_storage_destroy(storage)
        check(snapshot("run") == before, "something went", set(before) - set(snapshot("run")))


def test_protected_checkpoint():
    """What cannot go stays under its name, whole."""
    train("run", steps=4)
    step = "run/checkpoints/step-00000001"
    before = snapshot(step)
    if os.geteuid() == 0:
        made = subprocess.run(["chattr", "+i", f"{step}/state.safetensors"], capture_output=True)
        if made.returncode:
            raise Skipped("root may do everything here")
    os.chmod(step, 0o500)
    done = subprocess.run([COMMAND, "storage", "clean", "run", "--keep-last", "1"], capture_output=True, text=True, env=environment())
    if os.geteuid() == 0:
        subprocess.run(["chattr", "-R", "-i", "run/checkpoints"], check=True)
    check(done.returncode == 5 and os.path.isdir(step) and snapshot(step) == before, done)
    os.chmod(step, 0o700)
    run("train", "run", "--resume", "--steps", "5", "--quiet")


def test_two_at_once():
    """Each thing is removed by one of two cleans, and counted once. What the other has in its hands at that moment is in use; what it has removed, nothing."""
    count = 400
    os.makedirs("run")
    for i in range(count):
        put(f"run/{i}.html{TEMPORARY}")
    both = [subprocess.Popen([COMMAND, "storage", "clean", "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) for _ in range(2)]
    said = [process.communicate() for process in both]
    check([process.returncode for process in both] == [0, 0] and all(line.endswith(": a process is using it") for _, err in said for line in err.splitlines()), said)
    last = run("storage", "clean", "run")  # what each saw in the other's hands while it looked
    removed = [int(re.search(r"^(\d+) removed, ", out, re.M)[1]) for out, _ in (*said, last)]
    check(sum(removed) == count and not os.listdir("run"), removed)


def test_in_use():
    train("run", steps=4)
    put(f"run/plan.html{TEMPORARY}")
    os.makedirs("run/checkpoints/step-00000009.tmp")
    before = snapshot("run")
    fd = os.open("run", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    out, said = run("storage", "clean", "run", "--keep-last", "1")
    check(snapshot("run") == before and re.fullmatch(r"0 removed, 0 B; [1-9]\d* in use and left alone\n", out), out, said)
    told = report("run", "--keep-last", "1")
    check(all(i["fate"] == "in use" and f"process {os.getpid()}" in i["why"] for i in told.values() if i["kind"] in ("checkpoint", "temporary")), told)
    os.close(fd)
    # a file that somebody has open, with or without its lock
    put(f"loose/a.bin{TEMPORARY}")
    os.makedirs(f"loose/npy{TEMPORARY}")
    put(f"loose/npy{TEMPORARY}/index")
    held = [open(f"loose/a.bin{TEMPORARY}", "r+b"), open(f"loose/npy{TEMPORARY}/index", "rb")]
    before = snapshot("loose")
    check({i["fate"] for i in report("loose").values()} == {"in use"}, report("loose"))
    run("storage", "clean", "loose")
    check(snapshot("loose") == before, "what is open is gone")
    for file in held:
        file.close()
    out, _ = run("storage", "clean", "loose")
    check(snapshot("loose") == {} and "2 removed" in out, out)
    # a cache that a run has
    make_cache("pages")
    fd = os.open("pages", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    _, said = run("storage", "clean", "pages", "--cache-size", "0")
    check(os.path.exists(f"pages/{CACHE}") and "a process is using it" in said, said)
    os.close(fd)


def test_left_overs():
    train("run", steps=3)
    leave("native", "run/all.blocks")
    untouched = snapshot("run")
    for name in ("times.json", "all.times.json", "all.processes.jsonl"):
        put(f"run/{name}{TEMPORARY}")
    os.makedirs("run/checkpoints/step-00000009.tmp")
    put(f"run/checkpoints/step-00000009.tmp/model.safetensors{TEMPORARY}", b"x" * 9000)
    shutil.copytree("run/checkpoints/step-00000003", "run/checkpoints/step-00000003.old")
    put(f"run/report.json{TEMPORARY}")
    put(f"run/report.json.77-1{TEMPORARY}")
    os.makedirs(f"run/results{TEMPORARY}")
    put(f"run/results{TEMPORARY}/index")
    put(f"run/results{TEMPORARY}/a.npy")
    out, _ = run("storage", "clean", "run")
    check(snapshot("run") == untouched and "8 removed" in out, out, sorted(snapshot("run")))
    # an .old whose new one is not there comes back; a folder with somebody's file in it stays; other names are other people's
    os.rename("run/checkpoints/step-00000003", "run/checkpoints/step-00000003.old")
    os.makedirs("run/checkpoints/step-00000008.tmp")
    put("run/checkpoints/step-00000008.tmp/mine.txt")
    os.makedirs(f"run/folder{TEMPORARY}")
    put(f"run/folder{TEMPORARY}/mine.txt")
    put("run/other.tmp")
    put("step-00000001.tmp/model.safetensors")
    before = snapshot("run")
    run("storage", "clean", "run")
    check(snapshot("run") == before, set(before) ^ set(snapshot("run")))
    run("train", "run", "--resume", "--steps", "4", "--quiet")
    check("step-00000003" in steps_of("run"), "the run did not take it back")


def test_consolidate():
    for form, end in (("native", ".blocks"), ("npy", "")):
        leave(form, f"whole{end}")
        for i in range(PARTS):
            leave(form, f"store/temp/deep/some-{i + 1}-of-{PARTS}{end}", i, 1)
        told = report("store")
        check(all("--consolidate makes it part of datasets/deep/some" in i["why"] for i in told.values()), told)
        run("storage", "clean", "store")
        check(len(os.listdir("store/temp/deep")) == PARTS, "they went without being asked to")
        out, _ = run("storage", "clean", "store", "--consolidate")
        check(os.listdir("store/temp/deep") == [] and "3 removed" in out, os.listdir("store/temp/deep"), out)
        made, wanted = (f"store/datasets/deep/some{end}", f"whole{end}")
        check(snapshot(made) == snapshot(wanted) if end == "" else read(made) == read(wanted), form, "is not what one run makes")
        shutil.rmtree("store")
    # not all there, not finished, in HDF5 form, of another job: all stay
    for i in (0, 2):
        leave("native", f"store/temp/few-{i + 1}-of-{PARTS}.blocks", i, 1)
    for i in range(PARTS):
        leave("native", f"store/temp/mixed-{i + 1}-of-{PARTS}.blocks", min(i, 1), 1)
        leave("native", f"store/elsewhere-{i + 1}-of-{PARTS}.blocks", i, 1)
    before = snapshot("store")
    check("part 1 of 3, of which 2 are here" in report("store", "--consolidate")["temp/few-1-of-3.blocks"]["why"], "few")
    refused_at = subprocess.run([COMMAND, "storage", "clean", "store", "--consolidate"], capture_output=True, text=True, env=environment())
    check(refused_at.returncode == 2 and "give each part once" in refused_at.stderr, refused_at)
    check(snapshot("store") == before, set(before) ^ set(snapshot("store")))


def test_files_in_a_part():
    """A person's own file in the folder of a part: that job stays as it is."""
    for i in range(PARTS):
        leave("npy", f"store/temp/some-{i + 1}-of-{PARTS}", i, 1)
        leave("npy", f"store/temp/other-{i + 1}-of-{PARTS}", i, 1)
    put("store/temp/some-1-of-3/mine.npy", b"mine")
    before = {p: d for p, d in snapshot("store").items() if "other" not in p}
    check("mine.npy" in report("store", "--consolidate")["temp/some-1-of-3"]["why"], "no word of it")
    run("storage", "clean", "store", "--consolidate")
    after = snapshot("store")
    check(before.items() <= after.items() and not any("temp/other" in p or "datasets/some" in p for p in after), sorted(after))
    # the others go where the whole is there
    leave("npy", "store/datasets/some")
    run("storage", "clean", "store", "--consolidate")
    check(os.listdir("store/temp") == ["some-1-of-3"] and "mine.npy" in os.listdir("store/temp/some-1-of-3"), os.listdir("store/temp"))


def test_whole_of_links():
    """What is in the whole is to be there when the parts are gone."""
    for how in (os.symlink, os.link):
        leave("npy", "store/temp/some-1-of-1", 0, PARTS)
        leave("npy", "store/datasets/some")
        for name in os.listdir("store/datasets/some"):
            if name != "index":
                os.remove(f"store/datasets/some/{name}")
                how(os.path.abspath(f"store/temp/some-1-of-1/{name}"), f"store/datasets/some/{name}")
        before = snapshot("store")
        done = subprocess.run([COMMAND, "storage", "clean", "store", "--consolidate"], capture_output=True, text=True, env=environment())
        check(done.returncode == 4 and snapshot("store") == before, done, set(before) ^ set(snapshot("store")))
        shutil.rmtree("store")
    for i in range(PARTS):
        leave("native", f"store/temp/some-{i + 1}-of-{PARTS}.blocks", i, 1)
    leave("native", "elsewhere.blocks")
    os.makedirs("store/datasets")
    os.symlink("../../elsewhere.blocks", "store/datasets/some.blocks")
    done = subprocess.run([COMMAND, "storage", "clean", "store", "--consolidate"], capture_output=True, text=True, env=environment())
    check(done.returncode == 4 and len(os.listdir("store/temp")) == PARTS, done)


def test_whole_is_brought_to_the_disk():
    if not shutil.which("strace"):
        raise Skipped("there is no strace")
    for form, end in (("native", ".blocks"), ("npy", "")):
        for i in range(PARTS):
            leave(form, f"store/temp/some-{i + 1}-of-{PARTS}{end}", i, 1)
        leave(form, f"store/datasets/some{end}")
        whole = os.path.abspath(f"store/datasets/some{end}")
        names = {whole, os.path.dirname(whole)} | ({os.path.join(whole, n) for n in os.listdir(whole)} if form == "npy" else set())
        done = subprocess.run(["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,unlink,unlinkat,renameat2", "-o", "trace", COMMAND, "storage", "clean", "store", "--consolidate"], capture_output=True, env=environment())
        if done.returncode:
            raise Skipped("nothing can be traced here")
        before = re.split(r"unlink|renameat2", read("trace").decode())[0]
        check(names <= set(re.findall(r"f(?:data)?sync\(\d+<([^>]*)>\) += 0", before)) and os.listdir("store/temp") == [], names, before)
        shutil.rmtree("store")


def test_damaged_parts():
    for i in range(PARTS):
        leave("native", f"store/temp/some-{i + 1}-of-{PARTS}.blocks", i, 1)
    whole = read("store/temp/some-2-of-3.blocks")
    data = bytearray(whole)
    data[len(data) // 2] ^= 1
    put("store/temp/some-2-of-3.blocks", data)
    done = subprocess.run([COMMAND, "storage", "clean", "store", "--consolidate"], capture_output=True, text=True, env=environment())
    check(done.returncode == 4 and "damaged" in unfolded(done.stderr).splitlines()[-1] and len(os.listdir("store/temp")) == PARTS, done)
    check(not os.path.exists("store/datasets/some.blocks"), "damaged data got its name")
    put("store/temp/some-2-of-3.blocks", whole)
    shutil.copytree("store", "again")
    run("storage", "clean", "again", "--consolidate")
    # the whole is there and is not theirs: nothing goes
    os.makedirs("store/datasets", exist_ok=True)
    data = bytearray(read("again/datasets/some.blocks"))
    data[len(data) // 2] ^= 1
    put("store/datasets/some.blocks", data)
    done = subprocess.run([COMMAND, "storage", "clean", "store", "--consolidate"], capture_output=True, text=True, env=environment())
    check(done.returncode == 4 and "nothing of it was removed" in done.stderr and "some-2-of-3.blocks" in os.listdir("store/temp"), done)
    # a run has a part
    shutil.rmtree("again")
    for i in range(PARTS):
        leave("native", f"again/temp/some-{i + 1}-of-{PARTS}.blocks", i, 1)
    with open("again/temp/some-1-of-3.blocks", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 0)
        done = subprocess.run([COMMAND, "storage", "clean", "again", "--consolidate"], capture_output=True, text=True, env=environment())
        check(done.returncode == 5 and os.listdir("again/temp") == ["some-1-of-3.blocks"], done)
    run("storage", "clean", "again", "--consolidate")
    check(os.listdir("again/temp") == [] and os.listdir("again/datasets") == ["some.blocks"], "afterwards")


def test_hdf5_parts():
    for i in range(PARTS):
        leave("hdf5", f"store/temp/some-{i + 1}-of-{PARTS}.h5", i, 1)
    before = snapshot("store")
    run("storage", "clean", "store", "--consolidate")
    check(snapshot("store") == before and "HDF5" in report("store")["temp/some-1-of-3.h5"]["why"], "parts in HDF5 form went")


def test_caches():
    cache = make_cache("store/pages", values=600)
    cache.open()
    there = [i for i in range(600) if cache.get(i)]
    asked = there[:40]
    for i in asked:
        cache.get(i)
    cache.close()
    before = os.path.getsize(f"store/pages/{CACHE}")
    told = report("store", "--cache-size", "1MiB")[f"pages/{CACHE}"]
    check(told["fate"] == "shrinks" and told["gain"] > 0, told)
    out, _ = run("storage", "clean", "store", "--cache-size", "1MiB")
    size = os.path.getsize(f"store/pages/{CACHE}")
    check(size <= 1 << 20 < before and "made smaller" in out, size, before, out)
    cache.file_bytes = 1 << 20
    check(cache.open() == OK, cache.why.value)
    check(all(cache.get(i) for i in asked), "what was used last is gone")
    cache.close()
    refused(2, "a cache has 1048576 bytes at least", "storage", "clean", "store", "--cache-size", "5kB")
    put("mine/" + CACHE, b"SQLite format 3\0" + bytes(200))
    run("storage", "clean", "mine", "--cache-size", "0")
    check(os.path.exists("mine/" + CACHE), "another program's database is gone")
    run("storage", "clean", "store", "--cache-size", "0")
    check(os.listdir("store/pages") == [], os.listdir("store/pages"))


def test_refused():
    put("file")
    os.symlink("nowhere", "dangling")
    os.makedirs("empty")
    for words, code, what in ((("report", "none"), 2, "none: there is no such folder"), (("clean", "file"), 2, "file: is not a folder"), (("report", "dangling"), 2, "there is no such folder"),
                              (("report", ""), 2, "the name of a folder"), (("report",), 2, "one folder is expected"), (("report", "empty", "empty"), 2, "one folder"), ((), 2, "report or clean is missing"),
                              (("wipe", "empty"), 2, "report or clean were expected, not wipe"), (("clean", "empty", "--keep-last", "0"), 2, "a number from 1 on"), (("clean", "empty", "--keep-last", "-1"), 2, "from 1 on"),
                              (("clean", "empty", "--json"), 2, "--json goes with --dry-run"), (("report", "empty", "--dry-run"), 2, "no option of report"), (("clean", "empty", "--limit", "3"), 2, "no option of clean"),
                              (("clean", "empty", "--cache-size", "some"), 2, "--cache-size"), (("report", "file/below"), 2, "no such folder"), (("report", "x" * 5000), 2, "the name of a folder")):
        refused(code, what, "storage", *words)
    check(json.loads(run("storage", "report", "empty", "--json")[0])["items"] == [] and "0 removed" in run("storage", "clean", "empty")[0], "an empty folder")
    if os.geteuid() == 0:
        return
    os.makedirs("closed/below")
    put(f"closed/a{TEMPORARY}")
    os.chmod("closed/below", 0)
    check(report("closed")["below"]["why"] == "cannot be opened: left alone", "a closed folder")
    os.chmod("closed", 0o500)
    refused(5, "cannot be removed", "storage", "clean", "closed")
    os.chmod("closed", 0)
    refused(5, "closed: cannot be read", "storage", "report", "closed")
    os.chmod("closed", 0o700)
    os.chmod("closed/below", 0o700)


def test_warning():
    write_text()
    config = write_config(train={"steps": 2})
    _, said = run("train", config)
    check("temporary files" not in said, said)
    for i in range(17):
        put(f"out/a{i}{TEMPORARY}")
    _, said = run("train", config, "--resume", "--steps", "3")
    check(re.search(r"warning: out: 17 temporary files with .* were left behind .*; plimsoll storage clean out removes them", said), said)
    _, said = run("storage", "report", "out")
    check("warning: out: 17 temporary files" in said, said)
    run("storage", "clean", "out")
    _, said = run("train", config, "--resume", "--steps", "4")
    check("temporary files" not in said, said)


def test_random_folders():
    """Whatever lies there: a dry run says what goes, that goes and nothing else, what it gains is what the disk gains; once more,
    nothing is left to do."""
    train("run", steps=4)
    for i in range(PARTS):
        leave("native", f"part{i}.blocks", i, 1)
    leave("npy", "npy")
    for case in range(8):
        root, places = f"case{case}", ["", "temp/", "datasets/", "models/", "a b/", "temp/deep/"]
        os.makedirs(root)
        for n in range(DRAW.randrange(14)):
            place = f"{root}/{DRAW.choice(places)}"
            os.makedirs(place, exist_ok=True)
            kind = DRAW.randrange(9)
            if kind == 0:
                shutil.copytree("run", f"{place}run{n}")
            elif kind == 1:
                for i in DRAW.sample(range(PARTS), DRAW.choice([2, 3, 3])):
                    shutil.copy(f"part{i}.blocks", f"{place}p{n}-{i + 1}-of-{PARTS}.blocks")
            elif kind == 2:
                shutil.copytree("npy", f"{place}npy{n}{DRAW.choice(['', TEMPORARY])}")
            elif kind == 3:
                put(f"{place}t{n}{TEMPORARY}", DRAW.randbytes(DRAW.randrange(9000)))
            elif kind == 4:
                os.symlink(DRAW.choice(["..", "../../run", "nowhere", "."]), f"{place}link{n}")
            elif kind == 5:
                put(f"{place}{DRAW.choice(['tmp', 'x.tmp', 'step-00000001', 'lock', 'results.h5', CACHE])}{n}", DRAW.randbytes(DRAW.randrange(9000)))
            elif kind == 6:
                os.makedirs(f"{place}run{n}/checkpoints/step-0000000{n % 10}.tmp", exist_ok=True)
            elif kind == 7 and os.path.exists(f"{place}run{n - 1}"):
                put(f"{place}run{n - 1}/{DRAW.choice(['mine', 'b' + TEMPORARY])}")
            else:
                put(f"{place}{'step-00000003.tmp' if DRAW.random() < 0.5 else 'f'}/{n}{DRAW.choice(['', TEMPORARY])}")
        words = [w for w in (["--consolidate"], ["--keep-last", str(DRAW.randrange(1, 5))], ["--cache-size", "0"]) if DRAW.random() < 0.6]
        words = [w for pair in words for w in pair]
        told, before, outside = report(root, *words, command="clean"), snapshot(root), snapshot("run")
        going = {p for p, i in told.items() if i["fate"] in ("goes", "joins")}
        bytes_before = disk_bytes(root)
        out, _ = run("storage", "clean", root, *words)
        after = snapshot(root)
        gone = {p for p in before if p not in after}
        check(all(any(p == g or p.startswith(g + "/") for g in going) for p in gone), root, "went without a word:", gone, going)
        check(all(not os.path.lexists(f"{root}/{g}") for g in going), root, "did not go:", going)
        check(all(after[p] == before[p] for p in after if p in before), root, "something was changed")
        new = {p for p in after if p not in before}
        check(all(p.startswith("datasets") and "--consolidate" in words for p in new), root, "is new:", new)
        made = sum(os.lstat(f"{root}/{p}").st_blocks * 512 for p in new if os.path.isfile(f"{root}/{p}"))
        check(bytes_before + made - disk_bytes(root) == sum(i["gain"] for i in told.values()), root, "gains are not what they are said to be")
        check(snapshot("run") == outside, "what a link leads to has changed")
        check(run("storage", "clean", root, *words)[0] == "0 removed, 0 B\n" and snapshot(root) == after, root, "a second time")


def test_what_commands_write_is_known():
    """All of it, in a run's folder and where they were told to; but for texts, which have no place for a mark."""
    write_text(words=3000)
    write_text("other.txt", words=2000, seed=6)
    config, made = write_config(train={"steps": 4, "checkpoint_every": 2, "eval_every": 2}, run={"out": "made/run"}), "made/"
    os.mkdir("made")
    run("plan", config, "--html", made + "plan.html", "--out-lock", made + "plan.lock")
    run("train", config, "--trace", made + "run/trace.json", "--dump", "model,plan")
    run("fit", config, "--html", made + "fit.html", "--out", made + "fitted", "--cache", made + "texts")
    for words in (("eval", made + "run", "--text", "other.txt"), ("report", made + "run", "--html", made + "run/report.html"),
                  ("verify", config, "--gradients", made + "gradients.safetensors"), ("quantize", made + "run"),
                  ("export", made + "run", "--format", "safetensors", "--out", made + "model.safetensors"),
                  ("infer", made + "run", "lines.txt", "--npy", made + "said"), ("infer", made + "run", "lines.txt", "--to", made + "said.jsonl")):
        put("lines.txt", b"one\ntwo\n")
        run(*words)
    examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
    rollout = os.path.join(examples, "rollout_tiny.yaml")
    run("rollout", rollout, "--out", made + "rollout")
    run("rollout", rollout, "--out", made + "rollout", "--only", "0", "--steps", "1", "--witness", made + "witness")
    run("results", "report", made + "rollout", "--html", made + "rollout.html")
    optional = (("export", made + "run", "--format", "onnx", "--out", made + "model.onnx"), ("draw", "text", "--out", made + "page.png"),
                ("synth", "clouds", made + "flights", "--flights", "1", "--height", "16", "--width", "16", "--labels", "10"),
                ("encode", os.path.join(examples, "capsules_tiny.yaml"), "--count", "10", "--out", made + "encoded", "--cache_dir", made + "pages"))
    for words in optional: # what modules do
        done = subprocess.run([COMMAND, *words], capture_output=True, text=True, env=environment(), timeout=60)
        check(done.returncode == 0 or "install" in done.stderr, words, done.stderr)
    kinds = {path: (i["kind"], i["why"]) for path, i in report("made").items()}
    check(not [(p, k) for p, k in kinds.items() if k[0] == "unknown"], {p: k for p, k in kinds.items() if k[0] == "unknown"})
    for path, what in (("plan.html", "a page"), ("plan.lock", "a plan to run"), ("gradients.safetensors", "gradients, as verify writes them"),
                       ("said.jsonl", "output of infer"), ("texts/tokenizer.json", "a tokenizer"), ("witness/parameters.json", "numbers of an operator")):
        check(kinds[path] == ("output", what), path, kinds[path])
    check("clean" not in run("storage", "clean", "made", "--cache-size", "0")[1] and all(os.path.exists(made + p) for p, k in kinds.items() if k[0] == "output"), "clean took one of them")


main({"storage": [test_report, test_keep_last, test_damaged_checkpoint_is_not_counted, test_without_state, test_other_checkpoints, test_another_programs_checkpoints, test_copied_under_another_number, test_things_in_a_checkpoint, test_best_stays, test_old_without_its_new, test_links_among_checkpoints, test_changed_after_the_look, test_protected_checkpoint, test_two_at_once, test_in_use, test_left_overs, test_consolidate, test_files_in_a_part, test_whole_of_links, test_whole_is_brought_to_the_disk, test_damaged_parts, test_hdf5_parts, test_caches,
                  test_refused, test_warning, test_random_folders, test_what_commands_write_is_known]})
