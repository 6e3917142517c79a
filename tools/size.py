#!/usr/bin/env python3
"""How large things are: the ten longest functions and files, the median and the 90th percentile of function lengths.

size.py [FOLDER…] (default: src include cli)        size.py --check: exit 1 when an aim is missed
Aims (docs/structure.md): median at most 15 lines, nine in ten at most 40, no file above 700. A function is counted from
the line of its opening brace to that of its closing brace; the layout of .clang-format puts both in the first column."""
import os
import re
import sys

AIM_MEDIAN, AIM_NINETIETH, AIM_FILE = 15, 40, 700
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
ONE_LINER = re.compile(r"^[A-Za-z_][^;{}=]*\b(\w+)\([^;{}]*\) \{.*\}$")
NAME = re.compile(r"(\w+)\s*\(")


def functions_of(text):
    """(name, first line, lines) of each function; K&R by one brace in column one, or all on one line."""
    lines = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text).split("\n")
    opened, head = None, ""
    for number, line in enumerate(lines, 1):
        short = ONE_LINER.match(line)
        if short and opened is None:
            yield short.group(1), number, 1
        elif line.startswith("{") and "(" in head:
            opened, name = number, NAME.search(head)
        elif line.startswith("}") and opened:
            yield name.group(1) if name else "?", opened, number - opened + 1
            opened = None
        if opened is None and line and not line[0].isspace() and line[0] not in "{}#":
            head = line
        elif opened is None and line[:1].isspace() and line.strip() and "(" not in head:
            head += line


def measure(folders):
    functions, files = [], []
    for folder in folders:
        for path, below, names in os.walk(folder):
            below.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    full = os.path.join(path, name)
                    with open(full, encoding="utf-8", errors="replace") as file:
                        text = file.read()
                    files.append((text.count("\n"), full))
                    functions += [(lines, f"{full}:{first}", who) for who, first, lines in functions_of(text)]
    return functions, files


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    functions, files = measure(arguments or ["src", "include", "cli"])
    if not functions:
        print("No functions found.", file=sys.stderr)
        return 1
    lengths = sorted(f[0] for f in functions)
    median, ninetieth = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    print("Longest functions:")
    for lines, where, who in sorted(functions, reverse=True)[:10]:
        print(f"{lines:6}  {who}  {where}")
    print("Longest files:")
    for lines, path in sorted(files, reverse=True)[:10]:
        print(f"{lines:6}  {path}")
    print(f"{len(files)} files, {sum(f[0] for f in files)} lines, {len(functions)} functions: "
          f"median {median} lines, 90th percentile {ninetieth} (aims: {AIM_MEDIAN}, {AIM_NINETIETH})")
    missed = median > AIM_MEDIAN or ninetieth > AIM_NINETIETH or max(files)[0] > AIM_FILE
    return 1 if missed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
