"""The doctor's figures against a process whose memory is known by construction (tests/support/memory/known_memory.c), to
the page; what it says when it is refused; commands that it watches. Called as cli_tests.py is."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from cli_tests import COMMAND, Skipped, check, environment, main, read, refused, run, write_config, write_text

KNOWN = os.environ.get("KNOWN_MEMORY", "")
PAGE, MEGABYTE = 4096, 1 << 20


class Known:
    """A running known_memory; `told` is what it says of itself."""

    def __init__(self, **sizes):
        words = [f"{key}={value}" for key, value in sizes.items()]
        self.process = subprocess.Popen([KNOWN, *words], stdout=subprocess.PIPE, env=environment())
        line = self.process.stdout.readline()
        check(line, "known_memory", *words, "did not start")
        self.told, self.pid = json.loads(line), str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def ask(pid):
    """The last reading as JSON, and its rows by kind; they must add up to the kernel's own sum."""
    last = json.loads(run("doctor", "--pid", str(pid), "--json")[0])["last"]
    rows = {row["kind"]: row for row in last["rows"]}
    for key in ("resident_bytes", "proportional_bytes", "private_dirty_bytes", "swap_bytes"):
        check(sum(row[key] for row in rows.values()) == last["sum"][key], key, "of the rows does not add up")
    check(last["sum"]["resident_bytes"] + last["unexplained_bytes"] == last["rollup"]["resident_bytes"], "rows and rollup")
    return last, rows


def figure(rows, kind, key="resident_bytes"):
    return rows.get(kind, {}).get(key, 0)


def baseline():
    with Known() as plain:
        return ask(plain.pid)[1]


def grown(plain, rows, kind, key="resident_bytes"):
    return figure(rows, kind, key) - figure(plain, kind, key)


# ---- what it must not write over ----


def test_output_is_no_input():
    """Not the program, whatever the name it is called by, nor a file among the command's words, nor the other output."""
    shutil.copy(KNOWN, "known")
    os.symlink("known", "linked")
    with open("script", "w", encoding="ascii") as file:
        file.write("sleep 0.5; exit 3\n")
    with open("page.plimsoll.tmp", "w", encoding="ascii") as file:
        file.write("sleep 0.5; exit 3\n")
    before = {path: read(path) for path in ("known", "script", "page.plimsoll.tmp")}
    environment_with_path = environment(PATH=os.getcwd() + ":" + os.environ["PATH"])
    same = " are the same file; give another name"
    for words in (["--out", "known", "--", "./known"], ["--html", "linked", "--", "./known"], ["--out", "known", "--", "known"],
                  ["--out", "script", "--", "sh", "script"], ["--html", "./script", "--", "sh", "-e", os.path.abspath("script")],
                  ["--html", "page", "--", "sh", "page.plimsoll.tmp"], ["--out", "new", "--html", "./new", "--", "sh", "script"]):
        refused(2, same, "doctor", *words, env=environment_with_path)
        check({path: read(path) for path in before} == before and not os.path.exists("new"), words, "wrote something")
    with subprocess.Popen(["./known"], stdout=subprocess.PIPE, env=environment()) as process:
        process.stdout.readline()
        refused(2, "its program .*" + same, "doctor", "--pid", str(process.pid), "--out", "linked")
        process.kill()
    run("doctor", "--out", "report", "--", "sh", "script", "report", "exit", code=3)
    check(read("known") == before["known"] and b"The largest causes" in read("report"), read("report"))


# ---- what is where ----

def test_idle_process_is_explained():
    with Known() as plain:
        last, rows = ask(plain.pid)
        check(last["unexplained_bytes"] == 0, last["unexplained_bytes"])
        status = open(f"/proc/{plain.pid}/status").read()
        told = {key: int(re.search(rf"^{key}:\s+(\d+)", status, re.M).group(1)) for key in ("VmSize", "VmPTE", "VmHWM", "Threads")}
        check(last["sum"]["reserved_bytes"] >= told["VmSize"] * 1024, "VmSize")  # [vsyscall] lies outside of it
        check(last["sum"]["reserved_bytes"] - told["VmSize"] * 1024 <= PAGE, "VmSize")
        check(last["status"]["page_table_bytes"] == told["VmPTE"] * 1024, "VmPTE")
        check(last["status"]["kernel_stack_bytes"] == told["Threads"] * 16384, "kernel stacks")
        check(figure(rows, "program") > 0 and figure(rows, "libraries") > 0 and figure(rows, "main_stack") > 0, rows)


def test_anonymous_and_heap():
    plain = baseline()
    with Known(anonymous=37 * MEGABYTE + 3 * PAGE, untouched=500 * MEGABYTE, heap=5 * MEGABYTE + PAGE) as known:
        last, rows = ask(known.pid)
        check(grown(plain, rows, "anonymous") == 37 * MEGABYTE + 3 * PAGE, grown(plain, rows, "anonymous"))
        check(grown(plain, rows, "anonymous", "reserved_bytes") == 537 * MEGABYTE + 3 * PAGE, "reserved")
        check(grown(plain, rows, "anonymous", "private_dirty_bytes") == 37 * MEGABYTE + 3 * PAGE, "private dirty")
        check(grown(plain, rows, "heap") == 5 * MEGABYTE + PAGE, grown(plain, rows, "heap"))
        check(last["causes"][0]["resident_bytes"] == figure(rows, "anonymous"), last["causes"][0])


def test_zeroed_data_is_the_programs():
    """.bss is anonymous memory behind the file: the ELF headers tell whose it is."""
    plain = baseline()
    with Known(bss=2 * MEGABYTE + PAGE, anonymous=MEGABYTE) as known:
        _, rows = ask(known.pid)
        check(grown(plain, rows, "program") == 2 * MEGABYTE + PAGE, grown(plain, rows, "program"))
        check(grown(plain, rows, "anonymous") == MEGABYTE, grown(plain, rows, "anonymous"))
        check(figure(rows, "program", "reserved_bytes") > 3 * MEGABYTE, rows["program"])


def test_shared_memory():
    plain = baseline()
    with Known(shared=3 * MEGABYTE, memfd=2 * MEGABYTE + PAGE, sysv=MEGABYTE) as known:
        _, rows = ask(known.pid)
        check(grown(plain, rows, "shared_memory") == 6 * MEGABYTE + PAGE, rows.get("shared_memory"))
        check(rows["shared_memory"]["mappings"] == 3, rows["shared_memory"]["mappings"])


def test_mapped_file():
    plain = baseline()
    with Known(file=4 * MEGABYTE, written=MEGABYTE) as known:
        last, rows = ask(known.pid)
        check(grown(plain, rows, "files_shared") == 4 * MEGABYTE, rows.get("files_shared"))
        check(grown(plain, rows, "files_private", "private_dirty_bytes") == MEGABYTE, rows.get("files_private"))
        check(grown(plain, rows, "files_private", "reserved_bytes") == 4 * MEGABYTE, rows.get("files_private"))
        check(any(name["name"] == os.path.abspath("mapped.bin") for name in last["names"]), last["names"])
    os.remove("mapped.bin")


def test_huge_pages():
    if "[never]" in open("/sys/kernel/mm/transparent_hugepage/enabled").read():
        raise Skipped("no transparent huge pages here")
    with Known(huge=8 * MEGABYTE) as known:
        def smaps():
            with open(f"/proc/{known.pid}/smaps") as file:
                return 1024 * sum(int(kb) for kb in re.findall(r"^AnonHugePages:\s+(\d+)", file.read(), re.M))
        before = None
        while smaps() != before:  # khugepaged joins pages when it likes
            before = smaps()
            last, rows = ask(known.pid)
        huge = figure(rows, "anonymous", "anonymous_huge_bytes")
        check(huge == before, huge, before)
        check(huge in (0, 8 * MEGABYTE) or huge % (2 * MEGABYTE) == 0, huge)
        check(huge == 0 or "huge pages" in last["notes"], last["notes"])


def test_many_mappings():
    """50,000 of them: exact. (How long that takes hangs on the machine and is not tested: 0.3 to 1.3 s of processor time.)"""
    plain = baseline()
    with Known(maps=50000) as known:
        run("doctor", "--pid", known.pid)
        _, rows = ask(known.pid)
        check(grown(plain, rows, "anonymous") == 50000 * PAGE, grown(plain, rows, "anonymous"))
        check(abs(grown(plain, rows, "anonymous", "mappings") - 50000) <= 1, rows["anonymous"]["mappings"])


# ---- stacks ----

def test_stacks():
    """Each stack by its thread, reserved and touched as the process itself finds in its page table."""
    with Known(threads=9, stack=2 * MEGABYTE, pages=21) as known:
        last, rows = ask(known.pid)
        found = {s["thread"]: s for s in last["stacks"] if s["found"] == "stack_pointer"}
        check(len(found) == 9 and len(last["stacks"]) == 10, last["stacks"])
        for told in known.told["stacks"]:
            stack = found[told["thread"]]
            check(stack["begin"] == told["begin"] and stack["reserved_bytes"] == told["reserved_bytes"] == 2 * MEGABYTE, stack, told)
            check(stack["touched_bytes"] == told["touched_bytes"], stack, told)
            check(21 * PAGE < told["touched_bytes"] <= 25 * PAGE, told)
        check(figure(rows, "thread_stacks") == sum(t["touched_bytes"] for t in known.told["stacks"]), rows["thread_stacks"])
        check(figure(rows, "thread_stacks", "reserved_bytes") == 18 * MEGABYTE, rows["thread_stacks"])
        check(last["threads_without_stack_pointer"] == 0, last["threads_without_stack_pointer"])


def test_untouched_stacks_cost_nothing():
    """65 stacks of 8 MiB: half a gigabyte of addresses, next to nothing of memory, and it says so."""
    with Known(threads=65, stack=8 * MEGABYTE) as known:
        text = " ".join(run("doctor", "--pid", known.pid)[0].split())
        last, rows = ask(known.pid)
        reserved, touched = figure(rows, "thread_stacks", "reserved_bytes"), figure(rows, "thread_stacks")
        check(reserved == 65 * 8 * MEGABYTE and touched <= 65 * 4 * PAGE, reserved, touched)
        check("65 thread stacks reserve 545.3 MB and touch" in text, text)
        check("an untouched stack costs no memory" in text, text)
        check(all(cause["resident_bytes"] < MEGABYTE for cause in last["causes"] if "stack" in cause["title"]), last["causes"])


def test_stack_joined_with_data():
    """A stack at the low end of a large mapping: what lies above the usual size is not the stack's."""
    plain = baseline()
    usual, _ = resource.getrlimit(resource.RLIMIT_STACK)
    usual = 2 * MEGABYTE if usual == resource.RLIM_INFINITY else usual
    data = usual + 64 * MEGABYTE
    with Known(joined=data) as known:
        last, rows = ask(known.pid)
        stack = [s for s in last["stacks"] if s["found"] == "stack_pointer"]
        check(len(stack) == 1 and stack[0]["reserved_bytes"] == usual, last["stacks"])
        check(grown(plain, rows, "anonymous") == data - (usual - MEGABYTE), grown(plain, rows, "anonymous"))
        check(0 < figure(rows, "thread_stacks") - (usual - MEGABYTE) <= 8 * PAGE, rows["thread_stacks"])
        check("anonymous" in last["causes"][0]["title"] and "one mapping" in last["notes"], last["causes"][0], last["notes"])


def test_sparse_reading_costs_page_tables():
    with Known(sparse=8 << 30) as known:
        last, _ = ask(known.pid)
        cause = last["causes"][0]
        check("page tables" in cause["title"] and cause["bytes"] == last["status"]["page_table_bytes"] > 16 * MEGABYTE, cause)
        check(cause["resident_bytes"] == 0 and 0.5 < cause["share"] < 1, cause)


def test_running_thread_is_a_guess():
    """A thread that never sleeps tells no stack pointer: its stack is found by shape, and called a guess."""
    with Known(spin=1) as known:
        last, rows = ask(known.pid)
        found = [s["found"] for s in last["stacks"]]
        check(sorted(found) in (["guess", "main"], ["main", "stack_pointer"]), found)
        check(rows["thread_stacks"]["mappings"] == 1, rows)


def test_malloc_arenas():
    with Known(threads=3, arenas=1) as known:
        last, rows = ask(known.pid)
        check(len(last["malloc_arenas"]) == 3, last["malloc_arenas"])
        check(figure(rows, "malloc_arenas", "reserved_bytes") == 3 * 64 * MEGABYTE, rows["malloc_arenas"])


# ---- refused ----

def test_refusals():
    refused(2, "which process", "doctor")
    refused(2, "--pid expects the number", "doctor", "--pid", "x")
    refused(2, "--pid expects the number", "doctor", "--pid", "0")
    refused(2, "put -- before it", "doctor", "sleep", "1")
    refused(2, "exclude each other", "doctor", "--pid", "1", "--", "true")
    refused(2, "missing after --", "doctor", "--")
    refused(2, "peak or end", "doctor", "--at", "noon", "--", "true")
    refused(2, "seconds above 0", "doctor", "--interval", "0", "--", "true")
    refused(2, "give both", "doctor", "--for", "1", "--pid", str(os.getpid()))
    refused(2, "what was watched", "doctor", "--html", "x.html", "--pid", str(os.getpid()))
    refused(4, "there is no process", "doctor", "--pid", "4194999")
    refused(127, "no such command", "doctor", "--", "no-such-command-here")
    refused(126, "cannot be started", "doctor", "--", "/")


def test_zombie_and_kernel_thread():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    refused(4, "zombie", "doctor", "--pid", str(child.pid))
    child.wait()
    if os.path.exists("/proc/2/status") and "kthreadd" in open("/proc/2/status").read():
        refused(4, "thread of the kernel", "doctor", "--pid", "2")


def test_thread_id_leads_to_its_process():
    with Known(threads=1) as known:
        thread = known.told["stacks"][0]["thread"]
        text, _ = run("doctor", "--pid", str(thread))
        check(text.startswith(f"process {known.pid} (known_memory)\n2 threads, user {os.getuid()}; thread {thread} belongs to it\n"), text[:200])


def test_other_users_process():
    """What everybody may see is shown, and who may see the rest."""
    if os.geteuid() != 0:
        raise Skipped("needs root to become somebody else")
    copy = os.path.abspath("plimsoll")
    with Known(anonymous=MEGABYTE) as known, open(COMMAND, "rb") as source, open(copy, "wb") as target:
        target.write(source.read())
        target.close()
        os.chmod(copy, 0o755)
        path, folders = os.getcwd(), []
        while path != "/":
            folders, path = folders + [path], os.path.dirname(path)
        if any(not os.stat(folder).st_mode & 1 for folder in folders):
            raise Skipped("the test's folder is closed to others")
        done = subprocess.run([copy, "doctor", "--pid", known.pid], capture_output=True, text=True, user=65534, group=65534,
                              extra_groups=[], env=environment())
        if "/proc hides it (mounted with hidepid)" in done.stderr:
            raise Skipped("/proc is mounted with hidepid here: others' processes cannot even be seen")
        check(done.returncode == 0 and "and root (CAP_SYS_PTRACE) may read" in done.stdout, done)
        check("RssAnon" in done.stdout and "Limits" in done.stdout, done.stdout)


def test_proc_of_another_namespace():
    """Where /proc was not mounted anew, process 1 is not who it is there: refused, not misread."""
    words = ["unshare", "--pid", "--fork"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        raise Skipped("needs the right to make a PID namespace")
    done = subprocess.run([*words, "sh", "-c", f"{COMMAND} doctor --pid 1; exit $?"], capture_output=True, env=environment())
    check(b"another PID namespace" in done.stderr and done.stdout == b"", done)
    done = subprocess.run([*words, "--mount-proc", "sh", "-c", f"{COMMAND} doctor --pid $$; exit $?"], capture_output=True, env=environment())
    check(done.stdout.startswith(b"process 1 (sh)"), done)


def test_limits_are_shown():
    limited = subprocess.Popen(["sh", "-c", "ulimit -v 3000000; exec sleep 60"])
    time.sleep(0.3)
    text, _ = run("doctor", "--pid", str(limited.pid))
    limited.kill()
    limited.wait()
    check("RLIMIT_AS 3.07 GB" in text and "overcommit" in text, text)


def test_plimsoll_itself():
    """A run of Plimsoll's own: the same bytes as its ledger."""
    write_text()
    run("doctor", "--json", "--out", "doctor.json", "--", COMMAND, "train", write_config(), "--quiet", "--steps", "400")
    last = json.loads(read("doctor.json"))["last"]
    ledger = json.loads(read("out/report.json"))
    check(last["plimsoll_run"] == "out", last["command"])
    check(last["rollup"]["resident_bytes"] == ledger["rollup_bytes"], last["rollup"], ledger["rollup_bytes"])
    rows = {row["kind"]: row["resident_bytes"] for row in last["rows"]}
    told = {row["kind"]: row["measured_bytes"] for row in ledger["rows"]}
    for kind, of_ledger in (("heap", "heap"), ("main_stack", "main stack"), ("program", "program")):
        check(rows[kind] == told[of_ledger], kind, rows[kind], told[of_ledger])
    check("A run of Plimsoll's own: out/plan.lock" in last["notes"], last["notes"])


# ---- watched ----

SCRIPT = """
import sys, time
held = bytearray(60000000)
time.sleep(0.8)
del held
time.sleep(0.8)
print("data")
sys.exit(7)
"""


def test_command_keeps_its_streams_and_exit_code():
    done = subprocess.run([COMMAND, "doctor", "--", "sh", "-c", "cat; echo bad >&2; exit 3"], input=b"in\n", capture_output=True,
                          env=environment())
    check(done.returncode == 3 and done.stdout == b"in\n" and done.stderr.startswith(b"bad\n"), done)
    for word, code in (("kill -TERM $$", 143), ("kill -KILL $$", 137), ("true", 0)):
        check(subprocess.run([COMMAND, "doctor", "--", "sh", "-c", word], capture_output=True, env=environment()).returncode == code, word)


def test_peak_and_end():
    done = subprocess.run([COMMAND, "doctor", "--json", "--html", "page.html", "--interval", "0.05", "--out", "r.json", "--",
                           "python3", "-S", "-c", SCRIPT], capture_output=True, env=environment())
    check(done.returncode == 7 and done.stdout == b"data\n" and done.stderr == b"", done)
    report = json.loads(read("r.json"))
    check(report["schema"] == "plimsoll.doctor/1" and report["looks"] >= 5, report["looks"])
    check(report["peak"]["bytes"] - report["last"]["bytes"] >= 50000000, report["peak"]["bytes"], report["last"]["bytes"])
    check(report["peak_bytes"] == max(s["bytes"] for s in report["samples"]), "peak is not the largest sample")
    check(abs(report["kernel_peak_bytes"] - report["peak_bytes"]) < 5000000, report["kernel_peak_bytes"], report["peak_bytes"])
    page = read("page.html").decode()
    check("<svg" in page and "Memory over time" in page and page.rstrip().endswith("</html>"), page[:300])


def test_children_are_counted():
    script = "import time; held = bytearray(40000000); time.sleep(1.5)"
    run("doctor", "--json", "--out", "r.json", "--", "sh", "-c", f"python3 -S -c '{script}' & python3 -S -c '{script}'; wait")
    report = json.loads(read("r.json"))
    check(report["peak_bytes"] > 80000000, report["peak_bytes"])
    check(len(report["peak"]["processes"]) == 3 and report["peak"]["name"].startswith("python"), report["peak"]["processes"])


def test_at_once_over():
    done = subprocess.run([COMMAND, "doctor", "--", "true"], capture_output=True, env=environment())
    check(done.returncode == 0, done)


def test_signals_are_passed_on():
    script = "trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done"
    for number, code, said in ((signal.SIGUSR1, 9, b"got\n"), (signal.SIGTERM, 143, b"")):
        process = subprocess.Popen([COMMAND, "doctor", "--out", "r.txt", "--", "sh", "-c", script], stdout=subprocess.PIPE, env=environment())
        check(process.stdout.readline() == b"ready\n", "not ready")
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
        check(process.returncode == code and out == said, number, process.returncode, out)
        check(b"The largest causes" in read("r.txt"), "no report")


PROBE = """env | sort; grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd; for n in 0 1 3 4 5; do readlink /proc/self/fd/$n; done; exit 3"""


def probe(ignored, closed, *before):
    """What a command finds of its environment, signals and descriptors, with and without the doctor before it."""
    def prepare():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        if closed:
            os.close(0)

    with open("probe.txt", "wb") as out:
        env = {**environment(), "MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}
        done = subprocess.run([*before, "sh", "-c", PROBE], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL, env=env,
                              preexec_fn=prepare)
    check(done.returncode == 3, done.returncode)
    internal = 3 << 31  # 32 and 33 are the C library's own; its posix_spawn ignores them in what it starts
    return re.sub("(?<=SigIgn:\t)\\S+", lambda bits: f"{int(bits[0], 16) & ~internal:x}", read("probe.txt").decode())


def test_command_gets_what_the_doctor_got():
    for ignored, closed in (((), False), ((signal.SIGUSR1, signal.SIGXFSZ, signal.SIGHUP), True), ((signal.SIGUSR1,), False)):
        alone, watched = probe(ignored, closed), probe(ignored, closed, COMMAND, "doctor", "--")
        check("MALLOC_ARENA_MAX=1" in alone and alone == watched, ignored, closed, set(alone.split("\n")) ^ set(watched.split("\n")))


def test_exit_code_where_children_are_ignored():
    """With SIGCHLD ignored the kernel throws exit codes away."""
    done = subprocess.run([COMMAND, "doctor", "--", "sh", "-c", "sleep 0.1; exit 3"], capture_output=True, env=environment(),
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    check(done.returncode == 3, done)


def test_name_of_two_lines():
    """A process calls itself what it likes; the kernel writes it as it is into /proc/N/stat."""
    script = "import time; open('/proc/self/comm', 'wb', 0).write(b'a\\n) S'); print('ready', flush=True); time.sleep(0.6)"
    done = subprocess.run([COMMAND, "doctor", "--out", "r.txt", "--", "sh", "-c", f'python3 -S -c "{script}"; true'], capture_output=True,
                          env=environment())
    check(done.returncode == 0 and b"a?) S" in read("r.txt"), done, read("r.txt"))
    process = subprocess.Popen(["python3", "-S", "-c", script], stdout=subprocess.PIPE)
    process.stdout.readline()
    text, _ = run("doctor", "--pid", str(process.pid))
    check("The largest causes" in text, text)
    process.communicate()


def test_watch_until_it_ends_or_is_stopped():
    with Known(anonymous=20 * MEGABYTE) as known:
        text, _ = run("doctor", "--pid", known.pid, "--watch", "--for", "0.5", "--interval", "0.05")
        check("█" in text and "Peak of" in text and "0 B +---" in text, text[:500])
        process = subprocess.Popen([COMMAND, "doctor", "--pid", known.pid, "--watch"], stdout=subprocess.PIPE, env=environment())
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        check(process.returncode == 0 and b"The largest causes" in out, process.returncode, out[:300])
        process = subprocess.Popen([COMMAND, "doctor", "--pid", known.pid, "--watch"], stdout=subprocess.PIPE, env=environment())
        time.sleep(0.5)
        known.process.kill()
        known.process.wait()
        out, _ = process.communicate(timeout=20)
        check(process.returncode == 0 and b"The largest causes" in out, process.returncode, out[:300])


GROUPS = {
    "doctor": [test_output_is_no_input, test_idle_process_is_explained, test_anonymous_and_heap, test_zeroed_data_is_the_programs,
               test_shared_memory, test_mapped_file, test_huge_pages, test_many_mappings,
               test_stacks, test_stack_joined_with_data, test_sparse_reading_costs_page_tables,
               test_untouched_stacks_cost_nothing, test_running_thread_is_a_guess, test_malloc_arenas, test_refusals,
               test_zombie_and_kernel_thread, test_thread_id_leads_to_its_process, test_other_users_process,
               test_proc_of_another_namespace, test_limits_are_shown,
               test_plimsoll_itself],
    "watched": [test_command_keeps_its_streams_and_exit_code, test_peak_and_end, test_children_are_counted, test_at_once_over,
                test_command_gets_what_the_doctor_got, test_exit_code_where_children_are_ignored, test_name_of_two_lines,
                test_signals_are_passed_on, test_watch_until_it_ends_or_is_stopped],
}
if __name__ == "__main__":
    main(GROUPS)
