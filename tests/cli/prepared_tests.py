"""Tests of what is prepared once and found again: tokens, chains, frames of flights. What it was made of is known by more than its size
and time; a folder that was copied goes on. Called as cli_tests.py is."""
import os
import shutil

from cli_tests import check, main, read, refused, run, write_config, write_text
from chain_tests import make_chains, write_chain
from clouds_tests import edit, file_of, write_clouds


def replace(path, change, in_place=False):
    """Another file of the same length and the same times."""
    before = os.stat(path)
    changed = change(read(path))
    check(len(changed) == before.st_size and changed != read(path), "no change")
    to = path if in_place else path + ".other"
    with open(to, "r+b" if in_place else "wb") as file:
        file.write(changed)
    os.utime(to, ns=(before.st_atime_ns, before.st_mtime_ns))
    if not in_place:
        os.rename(to, path)
    now = os.stat(path)
    check((now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns), "size or time differ")


def copied(prepared, go_on, *folders):
    """What was prepared is used as it is where everything was copied, and how its source is known is noted."""
    for folder in folders:
        shutil.copytree(folder, "copy/" + folder) if os.path.isdir(folder) else shutil.copy(folder, "copy/" + folder)
    os.chdir("copy")
    inode, bytes_ = os.stat(prepared).st_ino, read(prepared)
    go_on()
    check(os.stat(prepared).st_ino == inode and read(prepared) != bytes_, "it was made again, or nothing was noted")
    noted = read(prepared)
    go_on()
    check(read(prepared) == noted, "noted twice")
    os.chdir("..")


def test_text():
    write_text(words=3000)
    text = "text.txt"
    config = write_config(train={"steps": 2, "checkpoint_every": 2})
    run("train", config)
    os.makedirs("copy")
    copied("out/tokens.bin", lambda: run("eval", "out", "--text", text), "out", text)
    for in_place in (False, True):
        tokens = read("out/tokens.bin")
        replace(text, lambda b: b[:-9] + bytes(255 - c & 127 | 32 for c in b[-9:]), in_place)
        refused(2, "is not the text that the run in out was trained on", "train", config, "--resume", "--steps", "4")
        check(read("out/tokens.bin") == tokens, "tokens of a run that goes on were made of another text")
        run("eval", "out")
        check(os.listdir("out/texts"), "no tokens of the other text")
        before = read("out/texts/" + os.listdir("out/texts")[0] + "/tokens.bin")[128:]
        replace(text, lambda b: b[::-1], in_place)
        run("eval", "out")
        check(read("out/texts/" + os.listdir("out/texts")[0] + "/tokens.bin")[128:] != before, "the same tokens of another text")


def test_chains():
    make_chains()
    config, chains = write_chain(), "chains.jsonl"
    run("train", config, "--quiet")
    os.makedirs("copy")
    copied("out/chains.bin", lambda: run("eval", "out", "--set", "chain.file=chains.jsonl"), "out", chains)
    for in_place in (False, True):
        before = read("out/chains.bin")
        replace(chains, lambda b: b"".join(sorted(b.splitlines(True), reverse=in_place)), in_place)
        refused(2, "chains.jsonl: are not the chains that the run in .*out was trained on", "train", config, "--quiet", "--resume", "--steps", "9")
        check(read("out/chains.bin") == before, "chains of a run that goes on were made of another file")
        run("eval", "out")
        check(read("out/chains.bin")[128:] != before[128:], "the same chains of another file")


def test_flights():
    config = write_clouds()
    words = ("train", config, "--quiet", "--stage", "loo-10Feb25")
    run(*words)
    os.makedirs("copy")
    copied("out/frames.bin", lambda: run(*words, "--data_directory", "flights", "--resume"), "out", "flights", config)
    path, before = file_of("30Oct24", "CRS"), read("out/frames.bin")
    shutil.copy2(path, "kept")
    shutil.copy2(path, "changed")
    edit("changed", "f['nav/solarZenith'][3:7] += 1")
    same = lambda folder: read(folder + "/frames.bin")[4096:-432] == before[4096:-432] # but for what is known of the files
    replace(path, lambda _: read("changed"))
    for again in ((*words, "--resume"), ("plan", "out"), ("eval", "out"), ("verify", "out"), ("fit", "out", "--budget", "1GB")):
        refused(2, "other frames than those that the run in (.*/)?out was trained on.*; put the files back as they were, or train anew in another folder", *again)
        check(same("out"), "the frames of a run were made of other flights", *again)
    run(*words, "--out", "other")
    check(not same("other"), "the same frames of a flight that was replaced")
    replace(path, lambda _: read("kept"), in_place=True)
    run(*words, "--resume")
    shutil.rmtree("other/checkpoints")
    run("plan", config, "--stage", "loo-10Feb25", "--out", "other")
    check(same("out") and same("other"), "other frames of the flight as it was")


if __name__ == "__main__":
    main({"prepared": [test_text, test_chains, test_flights]})
