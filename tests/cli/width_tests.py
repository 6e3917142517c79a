"""How wide what is shown is: width_tests.py PLIMSOLL FOLDER [GROUP|TEST]…

Texts for a terminal of 80 columns: every help, the man page, every table but the rows that show names of others (paths,
mappings). Pages for a telephone of 400 pixels, as Chromium lays them out: nothing is beside the window, no row of a table is
taller than a third of one, what has its label beside it stands in two columns, letters in pictures can be read."""
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios

from cli_tests import COMMAND, Skipped, check, environment, main, read, run, write_config, write_text

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COLUMNS, PIXELS = 80, 400
CLOCK = os.environ.get("PL_PRELOAD_CLOCK")  # of tests/support/process: measuring kernels takes no time
MODEL = {"model": {"width": 16, "layers": 1}, "train": {"micro_batch": "auto", "steps": 4, "batch_size": 4}, "run": {"threads": 2}}


def fit(*words, **options):
    return run("fit", *words, "--quiet", env=environment(**({"LD_PRELOAD": CLOCK} if CLOCK else {})), **options)[0]


def fits(text, *where):
    check(text.strip(), *where, "says nothing")
    for line in text.splitlines():
        check(len(line) <= COLUMNS, *where, f"has a line of {len(line)} columns:\n{line}")


def test_help():
    commands = re.findall(r"^  ([a-z]+) ", run("help")[0], re.MULTILINE)
    check(len(commands) >= 12, commands)
    fits(run("help")[0], "help")
    for name in commands:
        fits(run("help", name)[0], "help", name)


def test_man():
    if not shutil.which("groff"):
        raise Skipped("no groff")
    subprocess.run(["sh", f"{SOURCE}/tools/make-man.sh", COMMAND, "man", "1"], check=True, env=environment())
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-c", "-rLL=80n", "man/plimsoll.1"], capture_output=True, check=True)
    check(done.stderr == b"", done.stderr)
    page = read("man/plimsoll.1").decode()
    for name in re.findall(r"^  ([a-z]+) ", run("help")[0], re.MULTILINE):
        check(f"\n.SH plimsoll {name}\n" in page, name, "has no part of the man page")
        for option in re.findall(r"^  (--[a-z].*?)(?:  |$)", run("help", name)[0], re.MULTILINE):
            check(option.replace("-", r"\-") in page, name, option, "is not in the man page")
    text = re.sub(".\b", "", done.stdout.decode())
    fits(text, "the man page")
    for word in ("--micro_batch N", "node ID COST SIZE WORK NDEPS D0 D1 ...", "EXIT STATUS", "source <(plimsoll completion bash)"):
        check(word in text, word, "is not in the man page")


def test_tables():
    write_text()
    config = write_config(**MODEL)
    fits(run("plan", config)[0], "plan")
    least = min(p["charged_bytes"] for p in json.loads(fit(config, "--json"))["points"] if p["front"])
    fits(fit(config), "fit")
    fits(fit(config, "--budget", str(least + 65536)), "fit in a budget")
    fits(fit(config, "--budget", str(least - 65536), code=3), "fit that is refused")
    _, err = run("train", config, "--ledger")
    ledger = err[err.index("planned "):]
    check("As planned" in ledger and "VmHWM" in ledger, err)
    fits(ledger, "the final ledger")
    fits(run("eval", "out")[0], "eval")
    fits(run("infer", "out", "--compare", "--turns", "1")[0], "a comparison")
    _, err = run("doctor", "--", "sleep", "0.2")
    table = err[err.index("MB; resident: bytes"):err.index("\nThe largest causes")]
    check("VmHWM" in table and "dirty" in table, err)
    fits(table, "the doctor's table")


def on_terminal(columns, *words):
    """What the command prints on a terminal so wide, without its colours; and whether it had some."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({**environment(TERM="xterm"), **({"LD_PRELOAD": CLOCK} if CLOCK else {})})
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execv(COMMAND, [COMMAND, *words])
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            piece = b""
        if not piece:
            break
        text += piece
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    check(code == 0, code, text)
    text = text.decode().replace("\r\n", "\n")
    plain = re.sub("\033\\[[0-9;]*[mK]", "", text)
    return plain[plain.rindex("\r") + 1:] if "\r" in plain else plain, plain != text


def test_plan_on_a_terminal():
    """A screen of it, as wide as the terminal; all of it with --long; a number is never cut in two."""
    write_text()
    config = write_config(**MODEL)
    env = environment(**({"LD_PRELOAD": CLOCK} if CLOCK else {}))
    charged = json.loads(run("plan", config, "--json", env=env)[0])["process"]["charged_bytes"]
    long, _ = run("plan", config, env=env)
    check(len(long.splitlines()) > 80 and f"{charged:,}" in long, long)
    for columns in (60, 80, 120, 200):
        short, colored = on_terminal(columns, "plan", config)
        check(colored and len(short.splitlines()) <= (24 if columns >= 80 else 36), columns, short)
        all_of_it, _ = on_terminal(columns, "plan", config, "--long")
        check(f"{charged:,}" in all_of_it and "charged, planned" in short, columns, all_of_it)
        widest = max(map(len, all_of_it.splitlines()))
        check(max(map(len, short.splitlines())) <= max(columns, 80) and widest <= columns, columns, widest, all_of_it)
        check(columns <= 80 or widest > 80, "the width is not used", columns, widest)


def test_report_on_a_terminal():
    write_text()
    run("train", write_config(**MODEL), "--quiet")
    widest = {}
    for columns in (60, 80, 120, 200):
        shown, colored = on_terminal(columns, "report", "out")
        widest[columns] = max(len(line) for line in shown.splitlines() if os.getcwd() not in line)  # a path stays whole
        check(colored and widest[columns] <= columns and "As planned, to the byte." in shown, columns, shown)
    check(widest[200] > 80, "the width is not used", widest)
    text, _ = run("report", "out")
    check("\033" not in text and max(len(line) for line in text.splitlines() if os.getcwd() not in line) <= 80, text)


PROBE = """<!doctype html><body>%s<pre id=out></pre><script>
onload = () => { document.getElementById('out').textContent = 'PROBE' + JSON.stringify([...document.querySelectorAll('iframe')].map(%s)) + 'PROBE' }
</script>"""
SIZES = """f => {
  const d = f.contentDocument, height = e => e.getBoundingClientRect().height
  return {page: f.getAttribute('src'), window: f.clientWidth, wide: d.documentElement.scrollWidth,
    sections: Math.max(...[...d.querySelectorAll('section')].map(s => s.scrollWidth - s.clientWidth)),
    row: Math.max(...[...d.querySelectorAll('tr')].map(height)),
    columns: Math.max(0, ...[...d.querySelectorAll('table.labels')].map(t => new Set([...t.querySelectorAll('td[data-l]')].map(e => e.getBoundingClientRect())
      .filter(r => r.width > 0).map(r => Math.round(r.left))).size)),
    letters: Math.min(99, ...[...d.querySelectorAll('svg text')].map(height).filter(h => h > 0))}
}"""


def measure(pages, pixels, function=SIZES):
    """What a function makes of each page in a frame so wide: a window of Chromium's own would not be made so narrow."""
    with open("probe.html", "w") as file:
        file.write(PROBE % ("".join(f"<iframe src='{p}' style='width:{pixels}px;height:900px;border:0'></iframe>" for p in pages), function))
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files",
                           "--user-data-dir=" + os.path.abspath("browser"), "--virtual-time-budget=5000", "--dump-dom",
                           "file://" + os.path.abspath("probe.html")], capture_output=True, text=True, timeout=120)
    found = re.search("PROBE(\\[.*\\])PROBE", done.stdout)
    check(found, "the browser measured nothing:", done.stdout[-500:], done.stderr[-500:])
    return json.loads(found.group(1))


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def test_pages():
    if not BROWSER:
        raise Skipped("no chromium")
    write_text()
    config = write_config(**MODEL)
    run("plan", config, "--html", "plan.html")
    fit(config, "--html", "fit.html")
    fit(config, "--budget", "3MB", "--html", "refused.html", code=3)
    run("train", config, "--quiet")
    shutil.copy("out/plan.html", "run.html")
    run("doctor", "--html", "doctor.html", "--", "sh", "-c", "sleep 0.3; : " + "a-long-word-that-has-no-end-" * 20)
    run("infer", "out", "--compare", "--turns", "1", "--html", "compare.html", "--quiet")
    pages = ["plan.html", "fit.html", "refused.html", "run.html", "doctor.html", "compare.html"]
    check(all(read(p).startswith(b"<!doctype html>") for p in pages), "a page is none")
    for pixels in (PIXELS, 1200):
        for found in measure(pages, pixels):
            check(found["window"] == pixels and found["wide"] <= pixels, "beside the window:", found)
            check(found["sections"] <= 0, "a section is to be scrolled:", found)
            check(found["row"] < 300, "a row that is too tall:", found)
            check(pixels != PIXELS or found["columns"] <= 2, "cells with labels that stand in no column:", found)
            check(found["letters"] >= 8, "letters that nobody can read:", found)


GROUPS = {"width": [test_help, test_man, test_tables, test_plan_on_a_terminal, test_report_on_a_terminal, test_pages]}
if __name__ == "__main__":
    main(GROUPS)
