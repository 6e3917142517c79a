"""Tests of where files lie and whose they are: file systems without locks, names as long as a file system takes, rights that stay when a file is
replaced. Called as cli_tests.py is; PL_NO_LOCKS_LIBRARY is tests/faults/no_locks.c."""
import errno
import json
import os
import stat

from chain_tests import make_chains, write_chain
from cli_tests import check, environment, main, read, refused, run, same_run, write_config, write_text
from encode_tests import write_encoder
from rollout_tests import write_rollout

NO_LOCKS = "this file system has no locks"


def without_locks(number):
    return environment(LD_PRELOAD=os.environ["PL_NO_LOCKS_LIBRARY"], PL_NO_LOCKS=str(number))


def test_no_locks():
    """What writes goes on and says so once; what removes does not know who uses it, and leaves it."""
    write_text()
    config = write_config()
    run("train", config, "--quiet", "--out", "whole")
    for number in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
        out = f"out-{number}"
        env = without_locks(number)
        for more in (["--steps", "20"], ["--resume"]):
            said = run("train", config, "--quiet", "--out", out, *more, env=env)[1]
            check(said.count(NO_LOCKS) == 1 and f"{out}: {NO_LOCKS}" in said, more, said)
        check(run("train", config, "--quiet", "--out", out, "--resume", env=env)[1].count(NO_LOCKS) == 1, "a run that is done")
    env = without_locks(errno.ENOSYS)
    for command, made in (("rollout", write_rollout()), ("encode", write_encoder(out="encoded"))):
        said = run(command, made, "--quiet", env=env)[1]
        check(said.count(NO_LOCKS) == 1 and "results.blocks: " in said, command, said)
    with open("out-38/plan.lock.plimsoll.tmp", "w") as file:
        file.write("half")
    before = sorted(os.walk("out-38"))
    _, said = run("storage", "clean", "out-38", "--keep-last", "1", code=5, env=env)
    check(NO_LOCKS in said and "it is not known whether a process is using it" in said, said)
    check(sorted(os.walk("out-38")) == before, "something was removed")
    run("storage", "clean", "out-38", "--keep-last", "1")
    check(sorted(os.walk("out-38")) != before, "nothing was removed with locks, either")


def test_long_names():
    """The longest that a file system takes is made under a temporary name that it takes, too; one that is longer is refused before there is any work."""
    write_text()
    config = write_config()
    for name in ("n" * 240, "n" * 255, "ü" * 127):
        run("plan", config, "--out-lock", name)
        check(read(name).startswith(b"plan "), name[:1], len(name.encode()), "is no lock")
        with open(name, "w") as file:
            file.write("plan")
        run("plan", config, "--out-lock", name)
    check(not [n for n in os.listdir(".") if n.endswith(".tmp")], "temporary files are left")
    refused(5, "n: cannot be created: File name too long; choose a shorter one", "plan", config, "--out-lock", "n" * 256)
    rollout = write_rollout()
    refused(2, r"next to it and ends in .processes.jsonl: choose one with at most 239 bytes", "rollout", rollout, "--output_path", "r" * 240 + ".blocks")
    run("rollout", rollout, "--output_path", "r" * 239 + ".blocks", "--quiet")
    run("results", "check", "r" * 239 + ".blocks")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_rights_stay():
    write_text()
    config = write_config()
    words = ("train", config, "--quiet", "--out", "out")
    run(*words, "--steps", "20")
    made = ["out/config.yaml", "out/report.json", "out/plan.lock", "out/checkpoints/latest", "out/tokens.bin"]
    for i, path in enumerate(made):
        os.chmod(path, (0o600, 0o640, 0o444, 0o660, 0o600)[i])
    was = {path: (mode(path), os.stat(path).st_ino) for path in made}
    os.utime("text.txt")
    run(*words, "--resume")
    check({path: mode(path) for path in made} == {path: m for path, (m, _) in was.items()}, "modes are others:", {path: oct(mode(path)) for path in made})
    check(os.stat(made[0]).st_ino != was[made[0]][1], "nothing was replaced")
    if os.getuid() == 0:
        os.chown("out/report.json", 12345, 54321)
        run(*words, "--resume")
        now = os.stat("out/report.json")
        check((now.st_uid, now.st_gid, mode("out/report.json")) == (12345, 54321, 0o640), now)
    umask = os.umask(0o077)
    try:
        run(*words[:-1], "private")
        check(mode("private/config.yaml") == 0o600, "a new file does not go by the umask")
    finally:
        os.umask(umask)


def test_numbers_that_are_others():
    """A number beyond a double in a key that nobody reads is no damage."""
    chains = make_chains()
    run("train", write_chain(out="plain"), "--quiet")
    with open("chains.jsonl", "w") as file:
        file.write("".join(json.dumps(chain)[:-1] + f', "id": {number}}}\n' for chain, number in zip(chains, ["1e999", "9" * 30, "-1e4000"] * len(chains))))
    run("train", write_chain(out="numbered"), "--quiet")
    same_run("plain", "numbered")
    with open("texts.jsonl", "w") as file:
        file.write('{"text": "the sea", "id": 1e999}\n{"id": 123456789012345678901234567890, "text": "ships"}\n')
    run("encode", write_encoder(texts="texts.jsonl", text_format="jsonl", count=0), "--quiet")
    with open("texts.jsonl", "a") as file:
        file.write('{"text": 1e999}\n')
    refused(4, "texts.jsonl:3: .*text", "encode", write_encoder(texts="texts.jsonl", text_format="jsonl", count=0, out="other"), "--quiet")


GROUPS = {"places": [test_no_locks, test_long_names, test_rights_stay, test_numbers_that_are_others]}

if __name__ == "__main__":
    main(GROUPS)
