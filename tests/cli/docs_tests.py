"""README: its length, and that its listings say what the command prints now (tools/refresh-docs). Called as cli_tests.py is."""
import os
import re
import subprocess
import sys

from cli_tests import COMMAND, check, environment, main, read, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REFRESH = os.path.join(ROOT, "tools", "refresh-docs")


def test_lengths():
    """What a stranger reads first fits: the page, a command's short help."""
    check(len(read(os.path.join(ROOT, "README.md")).splitlines()) <= 150, "README")
    check(len(run("train", "-h")[0].splitlines()) <= 40, "train -h")


def refresh(folder):
    done = subprocess.run([sys.executable, os.path.join(folder, "tools", "refresh-docs"), "--check", "--plimsoll", COMMAND], capture_output=True, text=True,
                          env=environment(), timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_listings():
    code, said = refresh(ROOT)
    check(code == 0, said)
    os.makedirs("copy/tools")
    os.symlink(os.path.join(ROOT, "examples"), "copy/examples")
    with open("copy/tools/refresh-docs", "w") as file:
        file.write(read(REFRESH).decode())
    readme = read(os.path.join(ROOT, "README.md")).decode()
    for was, now in ((r"As planned, to the byte", "As planned, more or less"), (r"raise the budget to", "give up")):
        check(re.search(was, readme), was)
        with open("copy/README.md", "w") as file:
            file.write(re.sub(was, now, readme))
        code, said = refresh("copy")
        check(code == 1 and "is not what is printed now; run tools/refresh-docs" in said, was, code, said)


if __name__ == "__main__":
    main({"docs": [test_lengths, test_listings]})
