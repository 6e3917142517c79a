"""Tests of plimsoll results: results_tests.py PLIMSOLL FOLDER GROUP…

Files come from leave_results (LEAVE_RESULTS). Other programs read them, where they are: h5py, h5repack; without them
those checks are skipped with a reason."""
import fcntl
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

from cli_tests import COMMAND, SEED, Skipped, check, environment, main, read, refused, run

DRAW = random.Random(SEED)
LEAVE = os.environ.get("LEAVE_RESULTS", "")
BLOCKS, OPERATORS, REALISATIONS, STATES, WIDTH, FEATURES = 21, 3, 2, 11, 700, 5


def leave(*words, code=0):
    done = subprocess.run([LEAVE, *map(str, words)], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip())
    check(done.returncode == code, words, done.returncode, done.stderr)
    return done.stderr


def load(path):
    """(type, shape, numbers) of a .npy file, by its definition."""
    data = read(path)
    check(data[:8] == b"\x93NUMPY\x01\x00", data[:16])
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length])
    check((10 + length) % 64 == 0 and not header["fortran_order"], header)
    letter = {"<f4": "f", "<f8": "d", "<f2": "e"}.get(header["descr"])
    body = data[10 + length:]
    return header["descr"], header["shape"], [v for v, in struct.iter_unpack("<" + letter, body)] if letter else body


def with_h5py(program, *words, cwd=None):
    """Runs a program of Python that has h5py, with f an open file; returns what it prints, read as JSON."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import h5py"], capture_output=True).returncode == 0:
            done = subprocess.run([python, "-c", "import h5py, json, sys\nf = h5py.File(sys.argv[1], 'r')\n" + program, *words],
                                  capture_output=True, text=True, cwd=cwd, timeout=60)
            check(done.returncode == 0, done.stderr)
            return json.loads(done.stdout)
    raise Skipped("no h5py")


def test_list_and_export():
    for form in ("native", "npy"):
        leave(form, form, "stop")
        told = json.loads(run("results", "ls", "--json", form)[0])
        check(told["schema"] == "plimsoll.results/1" and told["form"] == form, told)
        check(told["blocks"] == BLOCKS and told["done"] == 7 and told["whole"] is None, told)
        check(json.loads(told["made_by"])["seed"] == 7, told["made_by"])
        check(told["done_bytes"] == told["bytes"] // 3, told)
        sets = {d["name"]: d for d in told["datasets"]}
        check(sets["features"] | {} == {"name": "features", "dtype": "f64", "shape": [3, 5], "axes": ["operator"], "bytes": 120,
                                        "blocks": 3, "done": 1}, sets["features"])
        check("7 of 21 blocks" in run("results", "ls", form)[0], form)
        run("results", "export", form, "--dataset", "features", "--at", "0", "--out", "some.npy")
        check(load("some.npy") == ("<f8", (1, FEATURES), [0, 0.25, 0.5, 0.75, 1]), load("some.npy"))
        refused(4, "features: features of operator 1 are not finished", "results", "export", form, "--dataset", "features",
                "--out", "none.npy")
        check(not os.path.exists("none.npy"), "a file of what is not finished")
        refused(4, "states of operator 1, realisation 1, state 4 to 7 are not finished", "results", "export", form, "--dataset",
                "metrics/energy", "--at", "state=5,realisation=1,operator=1", "--out", "none.npy")
        leave(form, form)
        run("results", "export", form, "--dataset", "features", "--out", "all.npy")
        check(load("all.npy")[2] == [o * 1000 + i * 0.25 for o in range(OPERATORS) for i in range(FEATURES)], load("all.npy"))
        run("results", "export", form, "--dataset", "features", "--at", "1:,1:3", "--out", "some.npy")
        check(load("some.npy") == ("<f8", (2, 2), [1000.25, 1000.5, 2000.25, 2000.5]), load("some.npy"))
        run("results", "export", form, "--dataset", "metadata/noise", "--out", "text.npy")
        check(load("text.npy") == ("|S12", (3, ), b"".join(n.ljust(12, b"\0") for n in (b"gaussian", b"laplace", b"periodic"))), "texts")
    run("results", "export", "native", "--dataset", "outputs/fields", "--out", "fields.npy")
    check(read("fields.npy") == read("npy/outputs.fields.npy"), "the form npy and an export of the native form differ")
    whole = load("fields.npy")[2]
    wanted = [whole[((o * REALISATIONS + r) * STATES + t) * WIDTH + i]
              for o in (1, 2) for r in range(REALISATIONS) for t in (3, 4) for i in range(690, WIDTH)]
    refused(2, '"690:" is one dimension too many', "results", "export", "native", "--dataset", "outputs/fields", "--at", "0,0,0,:,690:", "--out", "x.npy")
    run("results", "export", "native", "--dataset", "outputs/fields", "--at", "1:,:,3:5,690:", "--out", "part.npy")
    check(load("part.npy") == ("<f2", (2, 2, 2, 10), wanted), "a part is not where it should be")


def damage(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 8]))


def test_check():
    leave("npy", "r")
    out, err = run("results", "check", "r")
    check("21 finished blocks read" in out and ": 0 damaged" in out and not err, out, err)
    energy = read("r/metrics.energy.npy")
    damage("r/metrics.energy.npy", 128 + 4 * (3 * STATES + 9))
    out, err = run("results", "check", "r", code=4)
    check("r: states of operator 1, realisation 1, state 8 to 10: damaged\n" in err and "--repair" in err and ": 1 damaged" in out, out, err)
    told = json.loads(run("results", "check", "--json", "r", code=4)[0])
    check(told["damaged"] == 1 and told["blocks"] == BLOCKS and told["bytes"] > 92000, told)
    run("results", "check", "--repair", "r")
    check("20 of 21 blocks" in run("results", "ls", "r")[0], "the mark is there still")
    leave("npy", "r")
    check(read("r/metrics.energy.npy") == energy, "made again, it is another")
    with open("r/index", "r+b") as file:
        file.truncate(500)
    refused(4, "truncated", "results", "ls", "r")
    leave("native", "n")
    os.truncate("n", os.path.getsize("n") - 8192)
    out, err = run("results", "check", "n", code=4)
    check("features of operator 2: damaged" in err, err)
    leave("native", "n")
    check(": 0 damaged" in run("results", "check", "n")[0], "it was not made whole")


def test_words():
    leave("native", "n")
    for words, what in (((), "ls, check, export, join or report is missing"), (("lst", "n"), "not lst"), (("ls", ), "ls: a file of results is missing"),
                        (("ls", "--repair", "n"), "--repair is no option of ls"), (("check", "--out", "x", "n"), "--out is no option of check"),
                        (("export", "n", "m", "--out", "x"), "one file of results"), (("export", "n"), "--out FILE is missing"),
                        (("export", "n", "--out", "x"), "--dataset NAME is missing; there are outputs/fields"),
                        (("export", "n", "--out", "x", "--dataset", "y"), "there is no dataset y"),
                        (("export", "n", "--out", "n", "--dataset", "features"), "are the same file"),
                        (("export", "n", "--out", "x", "--dataset", "features", "--at", "state=1"), "names no axis"),
                        (("export", "n", "--out", "x", "--dataset", "features", "--at", "1;2"), "no place and no range"),
                        (("export", "n", "--out", "x", "--dataset", "features", "--at", "3"), "dimension 0 has 3 places"),
                        (("export", "n", "--out", "x", "--dataset", "features", "--at", "2:2"), "is no part of it"),
                        (("join", "n"), "OUT and the parts"), (("join", "j", "n"), "n: is no part of a job"), (("join", "n", "n"), "n: is no part of a job")):
        refused(2, re.escape(what), "results", *words)
    refused(4, "cannot be opened", "results", "ls", "nothing")
    os.mkdir("empty")
    os.symlink("nowhere", "dangling")
    for words in (("ls", ), ("check", ), ("export", "--dataset", "features", "--out", "x"), ("join", "j.h5")):
        refused(4, "empty: is a folder, but none of results, for it has no index", "results", *words, "empty")
        refused(4, "dangling: is a link that leads nowhere", "results", *words, "dangling")
        refused(4, "n/x: is no path: what stands before a slash is no folder", "results", *words, "n/x")
        refused(2, "an empty name is no file of results", "results", *words, "")
    for name, what in (("empty", "is a folder, but none of results"), ("dangling", "is a link that leads nowhere"), ("n/x", "is no path")):
        check(f"{name}: {what}" in leave("native", name, code=5), name)
    check(os.listdir("empty") == [] and not os.path.exists("nowhere"), "what was refused made something")
    refused(4, "no page is known for these results", "results", "report", "n")
    with open("other", "w") as file:
        file.write("no results\n" * 100)
    refused(4, "is it one of results", "results", "check", "other")
    check("another configuration" not in leave("native", "n"), "n")
    damage("n", 200)
    refused(4, "is damaged", "results", "ls", "n")


def test_two_writers():
    held = subprocess.Popen([LEAVE, "native", "n", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check(held.stdout.readline() == b"ready\n", "it is not ready")
        check("another process is writing this file" in leave("native", "n", code=5), "two wrote")
        refused(5, "another process is writing", "results", "check", "--repair", "n")
        check("7 of 21" in run("results", "ls", "n")[0], "a look is not allowed")
        run("results", "check", "n")
    finally:
        held.communicate(b"\n")
    leave("native", "n")
    check("21 of 21" in run("results", "ls", "n")[0], "it did not go on")


def test_full_disk():
    """On a disk of 64 kB the results are refused before anything is written; where they fit to the byte, they come out whole."""
    script = "mount -t tmpfs -o size=%d none disk && " + LEAVE + " native disk/n; code=$?; ls -A disk; exit $code"
    os.mkdir("disk")
    if subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none disk"], capture_output=True).returncode:
        raise Skipped("mounting is not allowed here")
    for size, code in ((64 << 10, 5), (1 << 20, 0)):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script % size], capture_output=True, text=True, timeout=60)
        check(done.returncode == code, size, done.stdout, done.stderr)
        check(done.stdout == ("n\n" if code == 0 else ""), "left on the disk:", done.stdout)
        if code:
            check(re.search(r"the results need .* \(\d+ bytes\) of disk, but .* \(65536 bytes\) are free", done.stderr), done.stderr)


def test_join_on_a_full_disk():
    """Refused before a byte of it is written; what is in the way of it is not."""
    for first in range(OPERATORS):
        leave("native", f"part-{first}", first, 1)
    os.mkdir("disk")
    if subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none disk"], capture_output=True).returncode:
        raise Skipped("mounting is not allowed here")
    script = f"mount -t tmpfs -o size=65536 none disk && {COMMAND} results join disk/j part-0 part-1 part-2; code=$?; ls -A disk; exit $code"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=60, env=environment())
    check(done.returncode == 5 and done.stdout == "" and "of disk, but" in done.stderr, done.returncode, done.stdout, done.stderr)


def test_hdf5():
    leave("hdf5", "x.h5", "stop")
    check("7 of 21" in run("results", "ls", "x.h5")[0], "ls")
    held = subprocess.Popen([LEAVE, "hdf5", "x.h5", "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check(held.stdout.readline() == b"ready\n", "it is not ready")
        while_written = with_h5py("print(json.dumps(f['features'][:].tolist()))", "x.h5")
        check(while_written[0] == [0, 0.25, 0.5, 0.75, 1], while_written)
    finally:
        held.communicate(b"\n")
    leave("hdf5", "x.h5")
    leave("native", "n")
    told = with_h5py("print(json.dumps([f['features'][:].tolist(), str(f['outputs/fields'].dtype), dict((k, v if isinstance(v, str) else "
                     "v.decode() if isinstance(v, bytes) else int(v)) for k, v in f['metadata'].attrs.items()), "
                     "[n.decode() for n in f['metadata/noise'][:]], f['metrics/energy'][:].ravel().tolist()]))", "x.h5")
    run("results", "export", "n", "--dataset", "metrics/energy", "--out", "energy.npy")
    refused(2, "--at is given twice", "results", "export", "n", "--dataset", "metrics/energy", "--at", "0", "--at=1", "--out", "twice.npy")
    refused(2, "--out takes the name of a file", "results", "export", "n", "--dataset", "metrics/energy", "--out", "-")
    check(not os.path.exists("twice.npy") and not os.path.exists("-"), os.listdir("."))
    check(told[0] == [[o * 1000 + i * 0.25 for i in range(FEATURES)] for o in range(OPERATORS)], told[0])
    check(told[1:4] == ["float16", {"version": "1.0", "num_realizations": 2}, ["gaussian", "laplace", "periodic"]], told[1:4])
    check(told[4] == load("energy.npy")[2], "h5py and an export of the native form differ")
    if shutil.which("h5repack") is None:
        raise Skipped("no h5repack: results are not compressed afterwards")
    subprocess.run(["h5repack", "-f", "GZIP=4", "x.h5", "packed.h5"], check=True)
    check(os.path.getsize("packed.h5") < os.path.getsize("x.h5"), "h5repack gained nothing")
    check(with_h5py("print(json.dumps(f['metrics/energy'][:].ravel().tolist()))", "packed.h5") == told[4], "packed, it is another")
    refused(4, "what was repacked or is another program's is for tools for HDF5", "results", "ls", "packed.h5")


def test_join():
    os.mkdir("parts")
    for first in range(OPERATORS):
        leave("hdf5", f"parts/{first}.h5", first, 1)
    check("part      1 to 1 of 3" in run("results", "ls", "parts/1.h5")[0], run("results", "ls", "parts/1.h5")[0])
    leave("hdf5", "whole.h5")
    refused(2, "no part holds operator 1 .of 3.; give all parts", "results", "join", "j.h5", "parts/0.h5", "parts/2.h5")
    refused(2, "which parts/1.h5 has, too", "results", "join", "j.h5", "parts/0.h5", "parts/1.h5", "parts/1.h5", "parts/2.h5")
    refused(2, "is no part of a job", "results", "join", "j.h5", "whole.h5", "parts/1.h5", "parts/2.h5")
    check(not os.path.exists("j.h5") and not os.path.exists("j.h5.plimsoll.tmp"), "left behind")
    refused(5, r"^plimsoll results: nowhere/j.h5: cannot be created: No such file or directory", "results", "join", "nowhere/j.h5",
            "parts/0.h5", "parts/1.h5", "parts/2.h5")
    os.symlink("dangling", "j.h5")
    refused(5, "j.h5: .*is not replaced", "results", "join", "j.h5", "parts/0.h5", "parts/1.h5", "parts/2.h5")
    check(os.path.islink("j.h5") and not os.path.lexists("j.h5.plimsoll.tmp"), os.listdir("."))
    os.remove("j.h5")
    run("results", "join", "j.h5", "parts/2.h5", "parts/0.h5", "parts/1.h5")
    program = """
same = h5py.File(sys.argv[2], 'r')
names = ['outputs/fields', 'metrics/energy', 'features', 'metadata/noise']
print(json.dumps([[f[n].shape == same[n].shape, f[n].dtype == same[n].dtype, bool((f[n][:] == same[n][:]).all())] for n in names]
    + [f['metadata'].attrs['version'].decode() == '1.0' if isinstance(f['metadata'].attrs['version'], bytes) else True]))"""
    all_same = [[True] * 3] * 4 + [True]
    check(with_h5py(program, "j.h5", "whole.h5") == all_same, "the joined file is another")
    os.mkdir("moved")
    for name in ("j.h5", "parts"):
        shutil.move(name, f"moved/{name}")
    check(with_h5py(program, os.path.abspath("moved/j.h5"), os.path.abspath("whole.h5"), cwd="/") == all_same, "moved together, it is another")
    refused(4, "is an HDF5 file without the index", "results", "ls", "moved/j.h5")


def test_join_in_one_file():
    """Native and npy: the bytes of the run that was not divided, from nothing, from what is there, and twice."""
    for form in ("native", "npy"):
        parts = [f"{form}-{first}" for first in range(OPERATORS)]
        for first, part in enumerate(parts):
            leave(form, part, first, 1)
        whole, joined = form + "-whole", form + "-joined"
        leave(form, whole)
        run("results", "join", joined, parts[2], parts[0], parts[1])
        check(same_tree(joined, whole), form, "joined, it has other bytes")
        run("results", "join", joined, *parts)
        check(same_tree(joined, whole), form, "joined twice, it has other bytes")
        leave(form, "begun-" + form, "stop")
        run("results", "join", "begun-" + form, *parts)
        check(same_tree("begun-" + form, whole), form, "what was begun by a run ended otherwise")
        run("results", "check", joined)
        refused(2, "no part holds operator 2 .of 3.; give all parts", "results", "join", "j", parts[0], parts[1])
        refused(2, "is no part of a job", "results", "join", "j", parts[0], whole)
        refused(2, "holds results of another configuration", "results", "join", parts[1], *parts)
        file = parts[1] if form == "native" else parts[1] + "/outputs.fields.npy"  # of a native one, too, its largest dataset
        damage(file, os.path.getsize(file) // 2)
        refused(4, rf"{parts[1]}: states of operator 1, realisation .*: damaged; .plimsoll results check --repair", "results", "join", "met-" + form, *parts)
        leave(form, "met-" + form)
        check(same_tree("met-" + form, whole), form, "a join that met damage left a wrong block behind")
    leave("hdf5", "part.h5", 1, 1)
    refused(2, "native-0 in the form native; give parts of one form", "results", "join", "j", "native-0", "part.h5")
    check(not os.path.exists("j"), "a join that was refused left a file")


def test_join_by_moving():
    """Parts give back what is in its new place: what they no longer hold is not asked of them, and at the end they are gone."""
    for form in ("native", "npy"):
        leave(form, "whole-" + form)
        for begun in ("", "stop"):
            parts = [f"{form}-{first}" for first in range(OPERATORS)]
            for first, part in enumerate(parts):
                leave(form, part, first, 1)
            if begun:  # as a kill leaves it: operator 0 has been moved
                leave(form, "moved", "stop")
                for name in (["outputs.fields.npy", "metrics.energy.npy", "features.npy"] if form == "npy" else [None]):
                    hollow(os.path.join(parts[0], name) if name else parts[0])
                refused(4, "operator 0.*: damaged|features of operator 0: damaged", "results", "join", "other-" + form, *parts)
            run("results", "join", "moved", "--move", *parts)
            check(same_tree("moved", "whole-" + form), form, begun, "moved, it has other bytes")
            check(not any(os.path.exists(part) for part in parts), "parts are left")
            run("results", "check", "moved")
            (shutil.rmtree if form == "npy" else os.remove)("moved")
    for first in range(OPERATORS):
        leave("native", f"part-{first}", first, 1)
    shm = "/dev/shm"
    if os.path.isdir(shm) and os.stat(shm).st_dev != os.stat(".").st_dev:
        refused(2, "lies on another disk than /dev/shm/", "results", "join", "--move", f"{shm}/plimsoll-moved-{os.getpid()}", "part-0", "part-1", "part-2")
    names = [f"part-{first}" for first in range(OPERATORS)]
    with open(names[1], "r+b") as held:  # as a run or a repair holds it: an OFD lock of the range of its index
        fcntl.fcntl(held, getattr(fcntl, "F_OFD_SETLK", 37), struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
        refused(5, "part-1: another process", "results", "join", "--move", "target", *names)
    run("results", "join", "target", *names)
    damage("target", os.path.getsize("target") // 2)
    refused(4, "target: its block .* is damaged, so nothing is moved", "results", "join", "--move", "target", *names)
    run("results", "check", *names)
    os.symlink(names[0], "link")
    refused(2, "link: is a link", "results", "join", "--move", "other", "link", *names[1:])
    run("results", "check", "--repair", "target")
    run("results", "join", "--move", "target", *names)
    check(same_tree("target", "whole-native"), "mended by joining, it has other bytes")
    for first, name in enumerate(names):
        leave("native", name, first, 1)
    leave("hdf5", "part.h5", 0, OPERATORS - 1)
    leave("hdf5", "rest.h5", OPERATORS - 1, 1)
    refused(2, "nothing to move", "results", "join", "--move", "all.h5", "part.h5", "rest.h5")
    check(all(os.path.exists(f"part-{first}") for first in range(OPERATORS)), "a join that was refused took a part")


def test_move_leaves_links():
    """A file of a part that is a link leads to bytes that are not given back to the disk, and are not removed."""
    parts = [f"linked-{first}" for first in range(OPERATORS)]
    for first, part in enumerate(parts):
        leave("npy", part, first, 1)
    name = sorted(set(os.listdir(parts[1])) - {"index"})[0]
    for moved in (name, "index"):
        os.rename(f"{parts[1]}/{moved}", f"elsewhere-{moved}")
        os.symlink(f"../elsewhere-{moved}", f"{parts[1]}/{moved}")
        before = read(f"elsewhere-{moved}")
        refused(2, f"{parts[1]}/{moved}: is a link; what is moved is removed: put what it leads to there", "results", "join", "--move", "linked", *parts)
        check(read(f"elsewhere-{moved}") == before and all(os.path.isdir(part) for part in parts), moved, "was touched")
        os.replace(f"elsewhere-{moved}", f"{parts[1]}/{moved}")
    run("results", "join", "--move", "linked", *parts)


def test_move_that_was_killed_at_the_end():
    """All is in its new place, and some parts, or some of their files, are removed: the same command ends that."""
    for form in ("native", "npy"):
        parts = [f"{form}-{first}" for first in range(OPERATORS)]
        leave(form, "whole-" + form)

        def killed(gone, joined):
            for first, part in enumerate(parts):
                (shutil.rmtree if os.path.isdir(part) else os.remove)(part) if os.path.exists(part) else None
                leave(form, part, first, 1)
            if joined:
                run("results", "join", joined, *parts)
            for part in parts[:gone]:
                (shutil.rmtree if form == "npy" else os.remove)(part)
            if form == "npy" and gone < OPERATORS:  # killed within one: its index goes last
                names = sorted(set(os.listdir(parts[gone])) - {"index"})
                for name in DRAW.sample(names, DRAW.randint(1, len(names))):
                    os.remove(f"{parts[gone]}/{name}")
                if DRAW.random() < 0.5:
                    shutil.rmtree(parts[gone])
                    os.mkdir(parts[gone])

        for gone in (1, 2, 3):
            joined = f"{form}-joined-{gone}"
            killed(gone, joined)
            run("results", "join", "--move", joined, *parts)
            check(same_tree(joined, "whole-" + form) and not any(os.path.exists(part) for part in parts), form, gone, "was not brought to its end")
            run("results", "join", "--move", joined, *parts)
        os.mkdir("empty-" + form)  # nothing tells whose it is: only a form that has folders removes it, and only at the end
        refused(2 if form == "npy" else 5, "is no part of|none of results", "results", "join", "--move", joined, "empty-" + form, "whole-" + form)
        check(os.path.isdir("empty-" + form), form, "a join that was refused removed a folder")
        # What is not complete, not sound, or another job's takes no part.
        killed(1, None)
        leave(form, "begun-" + form, "stop")
        refused(4, rf"{parts[0]}: cannot be", "results", "join", "--move", "begun-" + form, *parts)
        refused(4, rf"{parts[0]}: cannot be", "results", "join", "--move", "none-" + form, *parts)
        killed(1, "damaged-" + form)
        file = "damaged-" + form + ("/outputs.fields.npy" if form == "npy" else "")
        damage(file, os.path.getsize(file) // 2)
        refused(4, "its block .* is damaged, so nothing is moved", "results", "join", "--move", "damaged-" + form, *parts)
        shutil.copytree("whole-" + form, "another-" + form) if form == "npy" else shutil.copy("whole-" + form, "another-" + form)
        refused(2, "another-.*: is no part of whole-", "results", "join", "--move", "whole-" + form, parts[0], "another-" + form, parts[2])
        check(os.path.exists(parts[2]) and os.path.exists("another-" + form), form, "a join that was refused took a part")


def test_bytes_behind_the_end():
    """What somebody appended is named; a repair and the run cut it off."""
    for form in ("native", "npy", "hdf5"):
        leave(form, form)
        whole = form + "-whole"
        shutil.copytree(form, whole) if form == "npy" else shutil.copy(form, whole)
        files = [f"{form}/{name}" for name in os.listdir(form)] if form == "npy" else [form]
        for file in files:
            with open(file, "ab") as to:
                to.write(DRAW.randbytes(DRAW.randint(1, 5000)))
            done = subprocess.run([COMMAND, "results", "check", form], capture_output=True, text=True, env=environment())
            check(done.returncode == 4 and "behind" in done.stderr and ": 1 damaged" in done.stdout, file, done.stdout, done.stderr)
            run("results", "check", "--repair", form)
            leave(form, form)
            check(same_tree(form, whole) and ": 0 damaged" in run("results", "check", form)[0], file, "is not as it was")


def hollow(path):
    """Zeros in place of the data, behind the index or header."""
    begin = 8192 if not path.endswith(".npy") else 10 + struct.unpack("<H", read(path)[8:10])[0]
    with open(path, "r+b") as file:
        if not path.endswith(".npy"):
            told = json.loads(run("results", "ls", "--json", path)[0])
            end = os.path.getsize(path)
            begin = end - sum(-(-d["bytes"] // 4096) * 4096 for d in told["datasets"])
            end -= 4096  # the last dataset is the constant
        else:
            end = os.path.getsize(path)
        file.seek(begin)
        file.write(bytes(end - begin))


def same_tree(a, b):
    if os.path.isfile(a):
        return read(a) == read(b)
    return sorted(os.listdir(a)) == sorted(os.listdir(b)) and all(read(f"{a}/{n}") == read(f"{b}/{n}") for n in os.listdir(a))


GROUPS = {"results": [test_list_and_export, test_check, test_words, test_two_writers, test_full_disk, test_join_on_a_full_disk, test_hdf5, test_join, test_join_in_one_file, test_join_by_moving,
                      test_move_leaves_links, test_move_that_was_killed_at_the_end,
                      test_bytes_behind_the_end]}

if __name__ == "__main__":
    main(GROUPS)
