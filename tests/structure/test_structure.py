#!/usr/bin/env python3
"""Does each rule of structure.py see what it is for? A small tree that keeps every rule is written to a temporary folder;
then one violation at a time is planted and exactly the rule meant for it must speak, and name the place."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import structure

GOOD = {
    "docs/structure.md": """
<!-- table: three columns -->
| folder | may include | libraries |
|---|---|---|
| `base` | `plimsoll/status.h` | |
| `ir` | `base` | |
| `plan/place` | `base` | |
| `plan` | `base` `ir/types.h` | `yaml.h` |
| `data` | `base` | |
| `config` | `base` | |
| `systems` | `base` | |
<!-- end of table -->
See [the code](../src/base/a.h) and [elsewhere](https://example.org).
""",
    "src/CMakeLists.txt": """
pl_folder(base SOURCES ${s})
pl_folder(ir SOURCES ${s} MAY_INCLUDE base)
pl_folder(place SOURCES ${s} MAY_INCLUDE base)
pl_folder(data SOURCES ${s} MAY_INCLUDE base)
pl_folder(config SOURCES ${s} MAY_INCLUDE base)
pl_folder(systems SOURCES ${s} MAY_INCLUDE base)
pl_folder(plan SOURCES ${s} MAY_INCLUDE base ir
  place EXTERNAL PkgConfig::yaml)
""",
    "src/kernels/kernels.cmake": "",
    "src/base/a.h": '#include "plimsoll/status.h"\n#include <stdint.h>\n#include <sys/mman.h>\n',
    "src/base/alloc.c": "void *f(void) { return malloc(1); }\n",
    "src/ir/types.h": '#include "base/a.h"\n',
    "src/ir/graph.h": '#include "ir/types.h"\n/* exit(1), "base/nothing.h": words, not calls */\nint arena_free(void);\n',
    "src/plan/plan.c": '#include "ir/types.h"\n#include <yaml.h>\nint f(void) { return snprintf(0, 0, "free(p) %d", 1); }\n',
    "src/plan/place/map.h": '#include "base/a.h"\n',
    "src/plan/place/map.c": '#include "map.h"\n',
    "src/config/systems.def": "PL_SYSTEM_ROW(TEXT, text)\nPL_ARCH_ROW(GPT, gpt, TEXT)\n",
    "src/systems/text.c": "int a = PL_ARCH_GPT; /* here it may be known */\n",
    "include/plimsoll/status.h": "int x;\n",
    "cli/main.c": '#include "plimsoll/status.h"\n#include "cmd.h"\n#include <stdio.h>\n',
    "cli/cmd.h": "int y;\n",
}

BAD = [  # rule, file, text put at its end, a piece of the sentence
    ("includes", "src/base/a.h", '#include "ir/types.h"', "base may not include"),
    ("includes", "src/plan/plan.c", '# include  "ir/graph.h"', 'plan may not include "ir/graph.h"'),
    ("includes", "src/plan/place/map.c", '#include "ir/types.h"', "plan/place may not include"),
    ("includes", "src/plan/place/map.c", '#include "../plan.h"', "plan/place may not include"),
    ("includes", "src/ir/graph.h", "#include <yaml.h>", "<yaml.h> is a library"),
    ("includes", "src/ir/graph.h", "#include <oneapi/dnnl/dnnl.h>", "dnnl.h> is a library"),
    ("includes", "src/odd/new.c", "int z;", "has no row"),
    ("customers", "cli/main.c", '#include "base/a.h"', "a customer of the library"),
    ("customers", "cli/main.c", "#include <yaml.h>", "a customer of the library"),
    ("cmake", "src/CMakeLists.txt", "pl_folder(ir SOURCES ${s} MAY_INCLUDE base plan)", "ir links plan"),
    ("cmake", "src/CMakeLists.txt", "pl_folder(new SOURCES ${s})", "pl_folder(new) has no row"),
    ("heap", "src/ir/graph.h", "void *g(void) { return malloc (4); }", "calls malloc"),
    ("heap", "src/base/a.h", "void h(void *p) { free(p); }", "calls free"),
    ("quiet", "src/base/alloc.c", "int g(void) { return printf(1); }", "calls printf"),
    ("quiet", "src/ir/graph.h", "void g(void) { exit(1); }", "calls exit"),
    ("quiet", "src/ir/graph.h", 'char *g(void) { return getenv("X"); }', "calls getenv"),
    ("quiet", "src/ir/graph.h", 'void g(void) { fputs("x", stderr); }', "uses stderr"),
    ("remove", "src/ir/graph.h", "void g(const char *s) { unlink(s); }", "calls unlink"),
    ("remove", "src/plan/plan.c", "void g(const char *s) { (void)rmdir (s); }", "calls rmdir"),
    ("points", "src/ir/graph.h", "double g(const char *s) { return strtod(s, 0); }", "calls strtod"),
    ("points", "src/ir/graph.h", 'void g(char *s) {\n  snprintf(s, 9, "; %d"\n  " %.3g", 1, .5);\n}', "prints a number with snprintf"),
    ("paths", "src/ir/graph.h", "/* see /ho" "me/somebody/notes */", "a path of one machine"),
    ("sizes", "src/ir/graph.h", "\n" * 701, "at most 700"),
    ("columns", "src/ir/graph.h", "/* " + "é" * 118 + " */", "columns, at most 120"),
    ("systems", "src/plan/plan.c", "int g(void) { return PL_ARCH_GPT; }", "asks which system"),
    ("systems", "cli/main.c", "int g(void) { return &pl_system_text != 0; }", "asks which system"),
    ("systems", "src/plan/plan.c", "int g(struct c *c) { return c->model.arch == 1; }", "asks which system"),
    ("systems", "src/plan/plan.c", "int g(struct c *c) { switch (c->model.arch) {} }", "asks which system"),
    ("core", "src/plan/plan.c", "int tokens;", "a word of language models"),
    ("core", "src/ir/graph.h", "/* [Vocabulary, width] */", "a word of language models"),
    ("operands", "src/plan/plan.c", "int g(struct n *n) { return n->in[1]; }", "by its position"),
    ("operands", "src/plan/plan.c", "int g(struct g *g, int i) { return g->node[i].attr[WIDTH].i; }", "by its position"),
    ("includes", "src/data/text/a.c", '#include "data/fields/b.h"', "the rooms of data do not see each other"),
    ("options", "src/plan/plan.c", 'int f(void) { return g("choose another folder with --out"); }', "an option of the command"),
    ("promises", "cli/main.c", "/* TO" "DO: later */", "a promise"),
    ("links", "docs/structure.md", "[gone](gone.md)", "link to gone.md"),
]


def plant(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "a", encoding="utf-8") as file:
        file.write(text + "\n")


def said_by_all(root):
    return {name: list(rule(root)) for name, rule in structure.RULES.items()}


def main():
    failures = []
    with tempfile.TemporaryDirectory() as root:
        for path, text in GOOD.items():
            plant(root, path, text)
        for rule, sentences in said_by_all(root).items():
            failures += [f"the good tree: {rule} says {s}" for s in sentences]
    for rule, path, text, piece in BAD:
        with tempfile.TemporaryDirectory() as root:
            for good_path, good_text in GOOD.items():
                plant(root, good_path, good_text)
            plant(root, path, text)
            said = said_by_all(root)
            found = [s for s in said[rule] if piece in s and path in s]
            if not found:
                failures.append(f"{rule} did not see {text[:60]!r} in {path}; it said {said[rule]}")
            for other, sentences in said.items():
                if other != rule and sentences:
                    failures.append(f"{other} spoke too, about {text[:60]!r} in {path}: {sentences}")
    for failure in failures:
        print(failure)
    print(f"{len(BAD)} planted violations, {len(failures)} wrong answers")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
