#!/usr/bin/env python3
"""House rules that a compiler does not check: structure.py RULE… [--root FOLDER]

The include table is read from docs/structure.md, its single source. Each rule is a function that yields sentences
"file:line: what is wrong; what to do"; no sentence = kept. test_structure.py plants violations and expects each to be
found, so that a rule that has gone blind is noticed."""
import argparse
import os
import re
import subprocess
import sys

FILE_LINES = 700
COLUMNS = 120

# The C library, POSIX and Linux: allowed everywhere. Anything else must stand in the table's third column.
STANDARD = set("""assert ctype dirent dlfcn elf errno fcntl fenv float fnmatch ftw getopt glob inttypes iso646 limits link locale malloc math
poll pthread sched semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn
string strings syscall termios threads time ucontext unistd wchar wctype""".split())
STANDARD_FOLDERS = ("sys/", "linux/", "asm/")

HEAP = "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf aligned_alloc posix_memalign memalign getline getdelim"
TALK = "printf vprintf puts putchar perror exit _exit _Exit quick_exit abort getenv secure_getenv"
REMOVE = "unlink unlinkat rmdir remove"
OWN_CHILDREN = {("src/base/child.c", "_exit")}  # ends a child that it made, and nobody else
STREAMS = re.compile(r"\b(stdout|stderr)\b")


def slurp(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)


def code_of(text):
    """The text with comments, strings and characters blanked; lines keep their numbers."""
    return COMMENT_OR_STRING.sub(blank, text)


def files_below(root, folder, endings):
    for path, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")) and f != "__pycache__")
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(path, name), root)


def code_files(root):
    for folder in ("src", "include", "cli", "modules", "tests", "bench", "examples", "tools"):
        yield from files_below(root, folder, (".c", ".h", ".def", ".inc", ".py", ".sh"))


def tracked_files(root):
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True)
        names = [n for n in listed.stdout.decode().split("\0") if n]
        if names:
            return [n for n in names if os.path.isfile(os.path.join(root, n))]
    except (OSError, subprocess.CalledProcessError):
        pass
    return list(files_below(root, ".", ("",)))  # an unpacked archive has no git


class Table:
    """rows: folder -> set of folders and headers; libraries: folder -> set of headers."""

    def __init__(self, root):
        self.rows, self.libraries = {}, {}
        text = slurp(os.path.join(root, "docs", "structure.md"))
        inside = re.search(r"<!-- table:.*?-->(.*?)<!-- end of table -->", text, re.S)
        for line in inside.group(1).splitlines() if inside else []:
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            name = re.fullmatch(r"`([^`]+)`", cells[0])
            if len(cells) == 3 and name:
                self.rows[name.group(1)] = set(re.findall(r"`([^`]+)`", cells[1]))
                self.libraries[name.group(1)] = set(re.findall(r"`([^`]+)`", cells[2]))
        if len(self.rows) < 3:
            raise SystemExit("docs/structure.md: the table of folders was not found between its two markers")

    def folder_of(self, path_in_src):
        """The longest row that holds the path: plan/place before plan."""
        holders = [r for r in self.rows if path_in_src.startswith(r + "/")]
        return max(holders, key=len) if holders else None

    def allows(self, folder, header):
        row = self.rows[folder]
        if header in row:
            return True
        target = "plimsoll" if header.startswith("plimsoll/") else self.folder_of(header)
        return target is not None and (target == folder or target in row)


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def includes_of(text):
    text = COMMENT.sub(blank, text)
    for found in INCLUDE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found.group(1) == "<", found.group(2)


def is_standard(header):
    return header.startswith(STANDARD_FOLDERS) or header.removesuffix(".h") in STANDARD


def room_of(path):
    """data/text for src/data/text/tokens.h; None elsewhere."""
    found = re.match(r"src/(data/\w+)/", path)
    return found and found.group(1)


def wrong_include(root, table, path, folder, system, header):
    if system:
        if not is_standard(header) and header not in table.libraries[folder]:
            return f"<{header}> is a library that {folder} may not see"
        return None
    beside = os.path.normpath(os.path.join(os.path.dirname(path), header))
    if not os.path.exists(os.path.join(root, "src", header)) and os.path.exists(os.path.join(root, beside)):
        header = os.path.relpath(beside, "src")
    if not table.allows(folder, header):
        return f'{folder} may not include "{header}"'
    room, other = room_of(path), room_of("src/" + header)
    if room and other and room != other and header not in table.rows[folder]: # the table names what one shows to the others
        return f'the rooms of data do not see each other: no "{header}" in {room}'
    return None


def rule_includes(root):
    table = Table(root)
    for path in files_below(root, "src", (".c", ".h", ".def", ".inc")):
        folder = table.folder_of(path[len("src/"):])
        if folder is None:
            yield f"{path}:1: its folder has no row in docs/structure.md; add one and say why"
            continue
        for line, system, header in includes_of(slurp(os.path.join(root, path))):
            wrong = wrong_include(root, table, path, folder, system, header)
            if wrong:
                yield f"{path}:{line}: {wrong}; move the job, or change the table of docs/structure.md and say why"


def rule_customers(root):
    """The command and the examples see the public headers and their own."""
    for folder in ("cli", "examples"):
        for path in files_below(root, folder, (".c", ".h")):
            for line, system, header in includes_of(slurp(os.path.join(root, path))):
                own = os.path.exists(os.path.join(root, os.path.dirname(path), header))
                if not own and not header.startswith("plimsoll/") and not (system and is_standard(header)):
                    yield f"{path}:{line}: includes {header}; a customer of the library includes plimsoll/*.h only"


def rule_cmake(root):
    """MAY_INCLUDE of src/CMakeLists.txt links what the table allows, no more."""
    table = Table(root)
    text = slurp(os.path.join(root, "src", "CMakeLists.txt")) + slurp(os.path.join(root, "src/kernels/kernels.cmake"))
    target_folder = {r.split("/")[-1]: r for r in table.rows}
    seen = set()
    for name, links in re.findall(r"^pl_folder\((\w+) SOURCES \S+(?: MAY_INCLUDE ([\w\s]+?))?(?: EXTERNAL [^)]*)?\)", text, re.M):
        folder = target_folder.get(name)
        if folder is None:
            yield f"src/CMakeLists.txt: pl_folder({name}) has no row in docs/structure.md"
            continue
        seen.add(folder)
        opened = {e for e in table.rows[folder]} | {e.split("/")[0] for e in table.rows[folder]}
        for link in links.split():
            if target_folder.get(link) not in opened and link not in opened and folder not in (target_folder.get(link) or ""):
                yield f"src/CMakeLists.txt: {name} links {link}, which its row in docs/structure.md does not allow"
    for folder in sorted(set(table.rows) - seen):
        yield f"src/CMakeLists.txt: no pl_folder() for {folder}, which docs/structure.md lists"


def calls_in(root, path, names):
    code = code_of(slurp(os.path.join(root, path)))
    for found in re.finditer(r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\(", code):
        yield code.count("\n", 0, found.start()) + 1, found.group(1)


def rule_heap(root):
    for path in files_below(root, "src", (".c", ".h")):
        if path != "src/base/alloc.c":
            for line, name in calls_in(root, path, HEAP):
                yield f"{path}:{line}: calls {name}; the heap has one door, base/alloc.h"


def rule_quiet(root):
    for path in files_below(root, "src", (".c", ".h")):
        for line, name in calls_in(root, path, TALK):
            if (path, name) in OWN_CHILDREN:
                continue
            yield f"{path}:{line}: calls {name}; the library returns a status and a sentence, its caller decides"
        code = code_of(slurp(os.path.join(root, path)))
        for found in STREAMS.finditer(code):
            yield f"{path}:{code.count(chr(10), 0, found.start()) + 1}: uses {found.group(1)}; the library never prints"


def rule_remove(root):
    """Who calls unlink by itself follows a link to a folder sooner or later."""
    for path in files_below(root, "src", (".c", ".h")):
        if path != "src/base/remove.c":
            for line, name in calls_in(root, path, REMOVE):
                yield f"{path}:{line}: calls {name}; what is removed goes through base/remove.h, which leaves links alone"


IN_C_LOCALE = {"src/base/locale.c", "src/config/value.c", "src/jobs/infer_sink.c"}  # they enter it themselves
PRINTED = re.compile(r'(?<![\w.>])snprintf\s*\((?:[^;"]|"(?:[^"\\]|\\.)*")*;')
REAL = re.compile(r"%[-+ 0#]*[\d*]*(?:\.[\d*]+)?[eEfFgGaA]")


def rule_points(root):
    """A host program may have a locale that writes 0,5."""
    for path in files_below(root, "src", (".c", ".h")):
        if path in IN_C_LOCALE:
            continue
        for line, name in calls_in(root, path, "strtod strtof atof"):
            yield f"{path}:{line}: calls {name}, which hangs on the host's locale; pl_read_double does not (base/locale.h)"
        text = COMMENT.sub(blank, slurp(os.path.join(root, path)))
        for found in PRINTED.finditer(text):
            if REAL.search(" ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found.group(0)))):
                yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: prints a number with snprintf, which hangs on the host's locale; pl_print does not (base/locale.h)"


# Built from pieces, so that this file does not break its own rule.
MACHINE_PATH = re.compile(r"(?<![\w$}~.-])/(?:home|work|root|mnt|Users|data|scratch)/[\w.-]+")
PROMISE = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|HA" r"CK)\b")
TEXT_ENDINGS = (".c", ".h", ".def", ".inc", ".py", ".sh", ".txt", ".cmake", ".md", ".yaml", ".yml", ".in", ".json", "Makefile", "run")


def rule_paths(root):
    for path in tracked_files(root):
        if path.endswith(TEXT_ENDINGS):
            for number, line in enumerate(slurp(os.path.join(root, path)).splitlines(), 1):
                if MACHINE_PATH.search(line):
                    yield f"{path}:{number}: a path of one machine, {MACHINE_PATH.search(line).group(0)}; a clone must work anywhere"


def rule_sizes(root):
    for path in code_files(root):
        lines = slurp(os.path.join(root, path)).count("\n")
        if lines > FILE_LINES:
            yield f"{path}:{FILE_LINES + 1}: {lines} lines, at most {FILE_LINES} are wanted; give it one purpose"


def rule_columns(root):
    for path in code_files(root):
        for number, line in enumerate(slurp(os.path.join(root, path)).splitlines(), 1):
            if path.endswith((".c", ".h")) and len(line) > COLUMNS:
                yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS} are wanted; make format"


def rule_promises(root):
    for path in code_files(root):
        for number, line in enumerate(slurp(os.path.join(root, path)).splitlines(), 1):
            if PROMISE.search(line):
                yield f"{path}:{number}: leaves a promise in the code; do it, or open an issue"


LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
OPTION = re.compile(r"(?<![\w(-])--[a-z]{2}")
# What reads options, or prints for a terminal: help, reports, tables of files; and a style sheet, whose variables begin so.
SPEAKS_OF_OPTIONS = ("src/config/", "src/doctor/", "src/report/", "src/storage/decide.c", "src/api/doctor.c", "src/api/advise",
                     "src/api/storage_print.c", "src/jobs/quantize_tell.c", "src/show/style.c")


def rule_options(root):
    """The library has no command line: a setting that an error names stands in backquotes, and the command shows its option."""
    for path in code_files(root):
        if not path.startswith("src/") or not path.endswith(".c") or path.startswith(SPEAKS_OF_OPTIONS):
            continue
        for number, line in enumerate(slurp(os.path.join(root, path)).splitlines(), 1):
            if any(OPTION.search(text) and "plimsoll " not in text for text in LITERAL.findall(line)):
                yield f"{path}:{number}: speaks of an option of the command; name the setting in backquotes: `run.out`"


ROW = re.compile(r"^PL_(SYSTEM|ARCH)_ROW\((\w+), (\w+)", re.M)


def rule_systems(root):
    """No system or arch is known by name but in systems/ and models/: elsewhere what is asked is a property."""
    rows = ROW.findall(slurp(os.path.join(root, "src/config/systems.def")))
    names = [f"PL_{kind}_{ident}" for kind, ident, _ in rows] + [f"pl_{kind.lower()}_{name}" for kind, _, name in rows]
    known = re.compile(r"\b(" + "|".join(names) + r")\b|\bmodel\.arch\s*[=!]=|\bswitch\s*\([^)]*\barch\)")
    for path in code_files(root):
        home = path.startswith(("src/systems/", "src/models/")) or not path.startswith(("src/", "cli/", "include/"))
        if home or not path.endswith((".c", ".h")):
            continue
        code = code_of(slurp(os.path.join(root, path)))
        for found in known.finditer(code):
            yield (f"{path}:{code.count(chr(10), 0, found.start()) + 1}: {found.group(0)}: asks which system or arch it is; "
                   "ask for a property, in a row of systems/ or models/")


CORE = ("run", "fit", "plan", "report", "rewrite", "grad", "store", "ir")
OF_IDS = re.compile(r"token|vocab", re.I)
NAMES_OF_IDS = {"src/ir/op_embedding.c", # its operands are ids of tokens
                "src/ir/op_capsule.c", "src/ir/ops.def", "src/ir/inputs.def"} # names that stand in plans, which are kept


def rule_core(root):
    """The core knows items, samples, rows and classes; that a system's are tokens of a vocabulary its row says."""
    for folder in CORE:
        for path in files_below(root, f"src/{folder}", (".c", ".h", ".def")):
            text = slurp(os.path.join(root, path)) if path not in NAMES_OF_IDS else ""
            for found in OF_IDS.finditer(text):
                yield (f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found.group(0)}: a word of language models; say "
                       "item, sample, row or class, and in what is shown the word of pl_words")


POSITION = re.compile(r"\b(?:(?:\w*_)?(?:n|node|op|fwd|bwd)|node\[[^\]]*\])(?:->|\.)(?:in|out|attr)\[(?:\d+|[A-Z][A-Z0-9_]*)\]")
OF_NO_OPERATOR = {"src/ir/graph.h", "src/export/emit.c", "src/export/lower.c"} # any node's result; ONNX's nodes


def rule_operands(root):
    """Operands and attributes go by the names of their row in ops.def; positions are for loops over all of them."""
    for path in files_below(root, "src", (".c", ".h")):
        if path in OF_NO_OPERATOR:
            continue
        code = code_of(slurp(os.path.join(root, path)))
        for found in POSITION.finditer(code):
            yield (f"{path}:{code.count(chr(10), 0, found.start()) + 1}: {found.group(0)}: an operand by its position; "
                   "by name: n->OPERATOR.NAME, as in its row of ir/ops.def")


LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s#]+)(#[^)]*)?\)")


def rule_links(root):
    """Relative links of the documentation lead somewhere."""
    for path in tracked_files(root):
        if path.endswith(".md"):
            text = slurp(os.path.join(root, path))
            for found in LINK.finditer(text):
                target = found.group(1)
                if "://" in target or target.startswith("mailto:"):
                    continue
                if not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                    yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: link to {target}, which is not there"


RULES = {name[len("rule_"):]: function for name, function in list(globals().items()) if name.startswith("rule_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", nargs="+", choices=sorted(RULES) + ["all"])
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    arguments = parser.parse_args()
    root = os.path.abspath(arguments.root)
    broken = 0
    for name in sorted(RULES) if "all" in arguments.rules else arguments.rules:
        for sentence in RULES[name](root):
            print(sentence)
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
