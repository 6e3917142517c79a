"""Cases for tests/unit/chat: random templates and chats, and what jinja2 makes of them in transformers' environment.

    PYTHON jinja_cases.py expressions SEED COUNT
    PYTHON jinja_cases.py programs SEED COUNT
    PYTHON jinja_cases.py values SEED COUNT
    PYTHON jinja_cases.py specials SEED COUNT                tests/unit/chat/specials.jsonl: SEED 0, COUNT 150
    PYTHON jinja_cases.py kept                               tests/unit/chat/cases.jsonl
    PYTHON jinja_cases.py templates SEED CHATS FILE...       each, and the built-in templates, with random chats

PYTHON has transformers. Lines of JSON go to standard output; build/tests/unit_chat test_cases FILE judges them, and
test_special those about special texts."""
import json
import os
import random
import re
import resource
import struct
import sys
import warnings

warnings.simplefilter("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
from transformers.utils import chat_template_utils as hf

NOW = 1714742745  # 2024-05-03 13:25:45
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def limit_memory(more):
    """'a' * 12345678901 is an error, then."""
    with open("/proc/self/statm") as sizes:
        held = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + more, held + more))


class Clock:
    """Stands in for datetime: the same time always."""
    @staticmethod
    def now():
        import datetime
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None)


hf.datetime = Clock


def spans_in_bytes(text, spans):
    """Without empty ones, and without those that lie in another."""
    spans = [[len(text[:a].encode()), len(text[:b].encode())] for a, b in spans if a < b]
    return [s for i, s in enumerate(spans) if not any(t[0] <= s[0] and s[1] <= t[1] for t in spans[i + 1:])]


def nested(template):
    depth = deepest = 0
    for end in re.findall(r"{%[-+]?\s*(end)?generation\b", template):
        depth += -1 if end else 1
        deepest = max(deepest, depth)
    return deepest > 1


def case(name, template, messages, variables=None, prompt=False, built_in=None, specials=None):
    c = {"name": name, "messages": messages, "add_generation_prompt": prompt, "variables": variables or {},
         "tokens": TOKENS, "now": NOW, "may_refuse": True}
    c.update({"built_in": built_in} if built_in else {"template": template})
    if specials:
        c["specials"] = specials
        control = hf._get_control_token_patterns(tuple(specials))[0]
        messages, variables = hf.mark_control_tokens([messages, variables or {}], control)
    marks = re.search(r"{%[-+]?\s*generation\b", template) is not None
    try:
        chat = [{k: v for k, v in m.items() if v is not None} for m in messages]
        text, spans = hf.render_jinja_template([chat], chat_template=template, add_generation_prompt=prompt,
                                               return_assistant_tokens_mask=marks, **TOKENS, **(variables or {}))
        text[0].encode()
        c["expected"] = text[0]
        if marks and not nested(template):  # transformers' places of inner parts are not those in the text
            c["spans"] = spans_in_bytes(text[0], spans[0])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        c["expected"], c["error"] = None, str(error)[:200]
    return c


# ---------------------------------------------------------------- expressions

WORDS = ["", "a", "b", "ab", "  x ", "user", "A\\nb", "Größe", "\\t \\u00a0", "1", "4.5", "-7", "<b>", "東京", "a,b,,c",
         "a b  c ",
         "it\\'s", "\\x41"]
VARIABLES = {"i": 3, "j": -2, "z": 0, "f": 2.5, "s": "Hello  World", "e": "", "w": " \n pad\t", "l": [1, 2, 3],
             "m": ["b", "a", ""],
             "d": {"a": 1, "b": "two", "items": 0, "x": None}, "p": {"q": {"r": [1, {"s": "deep"}]}}, "yes": True,
             "no": False,
             "nil": None, "big": 12345678901, "em": [], "uni": "Größe 東京 é", "rows": [{"k": 1, "g": "x"}, {"k": 2},
                                                                                      {"k": None, "g": "y"}]}
TESTS = ["defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "boolean", "true", "false",
         "number", "odd",
         "even"]
FILTERS = ["tojson", "length", "count", "trim", "string", "default('D')", "d('', true)", "join(', ')", "items", "list",
           "first", "last",
           "lower", "upper", "capitalize", "replace('a', 'Z')", "int", "int(9)", "dictsort", "safe", "tojson(indent=2)",
           "map(attribute='k')", "selectattr('k')", "rejectattr('g', 'defined')", "selectattr('k', 'equalto', 1)",
           "join",
           "join('-', attribute='k')", "replace('', '.', 2)", "trim('a ')", "default(none)",
           "tojson(separators=(',', ':'), sort_keys=true)",
           "dictsort(by='value')", "dictsort(reverse=true)", "map(attribute='g', default='?')",
           "tojson(ensure_ascii=true)", "unique"]
METHODS = ["strip()", "lstrip()", "rstrip('d ')", "split()", "split(' ')", "split(',', 1)", "split('l')[-1]",
           "startswith('a')",
           "endswith(('d', 'b'))", "replace('l', 'L')", "upper()", "lower()", "title()", "capitalize()", "items()",
           "keys()", "values()",
           "get('a')", "get('zz', 7)", "split(none, 1)", "replace('l', 'r', 1)", "strip(none)", "q", "a", "k", "foo",
           "q.r", "get('q')"]
ARITHMETIC = ["+", "-", "~", "*", "/", "//", "%"]
COMPARISONS = ["==", "!=", "<", ">", "<=", ">=", "in", "not in"]


class Maker:
    def __init__(self, random_source):
        self.r = random_source

    def atom(self):
        r = self.r
        kind = r.randrange(6)
        if kind == 0:
            return r.choice(["0", "1", "2", "7", "1.5", "1e3", "0.1", "-3", "1_000", "0x1f", "3.0"])
        if kind == 1:
            return "'" + r.choice(WORDS) + "'"
        if kind == 2:
            return r.choice(["true", "false", "none", "undefined_name", "True", "None", "[]", "{}", "()"])
        return r.choice(list(VARIABLES))

    def bound(self):
        return self.r.choice(["", "", "0", "1", "-1", "2", "-2", "i", "5", "-9"])

    def subscript(self):
        r = self.r
        if r.random() < 0.5:
            return "[" + r.choice(["0", "1", "-1", "'a'", "'q'", "i", "9", "'items'", "true", "s", "1.0"]) + "]"
        step = r.choice(["", "", ":", ":2", ":-1", ":-2"])
        return "[" + self.bound() + ":" + self.bound() + step + "]"

    def list_or_map(self, depth):
        r = self.r
        n = r.randrange(4)
        if r.random() < 0.4:
            pairs = [r.choice(["1", "'a'", "s", "true"]) + ": " + self.make(depth) for _ in range(n)]
            return "{" + ", ".join(pairs) + "}"
        inner = [self.make(depth) for _ in range(n)]
        return "(" + "".join(x + ", " for x in inner) + ")" if r.random() < 0.3 else "[" + ", ".join(inner) + "]"

    def make(self, depth):
        r = self.r
        if depth <= 0:
            return self.atom()
        d = depth - 1
        kinds = [self.atom, lambda: self.make(d) + " " + r.choice(ARITHMETIC) + " " + self.make(d),
                 lambda: self.make(d) + " " + r.choice(COMPARISONS) + " " + self.make(d),
                 lambda: self.make(d) + " " + r.choice(["and", "or"]) + " " + self.make(d),
                 lambda: r.choice(["not ", "-", "+"]) + self.make(d),
                 lambda: self.make(d) + " if " + self.make(d) + (" else " + self.make(d) if r.random() < 0.8 else ""),
                 lambda: "(" + self.make(d) + ")", lambda: self.list_or_map(d),
                 lambda: self.make(d) + self.subscript(), lambda: "(" + self.make(d) + ")" + self.subscript(),
                 lambda: self.make(d) + " | " + r.choice(FILTERS),
                 lambda: "(" + self.make(d) + ")|" + r.choice(FILTERS),
                 lambda: self.make(d) + " is " + r.choice(["", "not "]) + r.choice(TESTS),
                 lambda: self.make(d) + " is " + r.choice(["equalto ", "eq ", "in ", "ne "]) + self.atom(),
                 lambda: self.make(d) + "." + r.choice(METHODS), lambda: "(" + self.make(d) + ")." + r.choice(METHODS),
                 lambda: r.choice(["range(4)", "range(i)", "range(5, 1, -2)", "dict(a=1, b=s)", "dict(d, a=2)"]),
                 lambda: self.make(d) + " < " + self.make(d) + " <= " + self.make(d)]
        return r.choice(kinds)()


def expression(seed):
    r = random.Random(seed)
    m = Maker(r)
    e = m.make(r.choice([1, 2, 2, 3]))
    wrap = r.choice(["{{ %s }}", "{{ (%s)|tojson }}", "{{ (%s)|string|length }}",
                     "{%% if %s %%}T{%% else %%}F{%% endif %%}",
                     "{%% for x in %s %%}{{ x }};{%% endfor %%}", "{%%- set v = %s -%%} {{ v|join('|') }}",
                     "{{ (%s)|list|tojson }}"])
    return case(f"expression {seed}", wrap % e, [], VARIABLES)


# ---------------------------------------------------------------- random values

LETTERS = " \t\n\u00a0\u2003\x1cabAB,.é東🙂\"\\<'"


def real(r):
    if r.random() < 0.5:
        return struct.unpack("<d", struct.pack("<Q", r.getrandbits(64) & ~(1 << 62)))[0]  # below 2
    return round(r.uniform(-1, 1) * 10 ** r.randrange(-6, 18), r.randrange(6))


def some_value(r, depth):
    kind = r.randrange(7 if depth else 5)
    if kind < 5:
        return [real(r), r.randrange(-9, 10**r.randrange(1, 18)), r.choice([None, True, False]), word(r), word(r)][kind]
    inner = [some_value(r, depth - 1) for _ in range(r.randrange(4))]
    return inner if kind == 5 else {word(r): x for x in inner}


def word(r):
    return "".join(r.choice(LETTERS) for _ in range(r.choice([0, 1, 3, 8])))


def values(seed):
    """Numbers as text, arithmetic, JSON, and the methods of strings."""
    r = random.Random(seed)
    v = {"x": real(r), "y": real(r) or 1.0, "m": r.randrange(-99, 10**r.randrange(1, 18)),
         "n": r.randrange(1, 999) * r.choice([1, -1]),
         "s": word(r) + word(r) + word(r), "t": word(r), "u": word(r), "v": some_value(r, 3),
         "k": r.randrange(-1, 4)}
    template = r.choice([
        "{{ x }} {{ -x }} {{ m }} {{ x|tojson }} {{ x|int if x < 1e15 and x > -1e15 }}",
        "{{ x + y }} {{ x - y }} {{ x * y }}",
        "{{ x / y }}", "{{ x // y }} {{ x % y }}", "{{ m // n }} {{ m % n }} {{ m - n }}", "{{ m / n if m < 9e15 }}",
        "{{ m // y }} {{ m % y }} {{ m < x }} {{ m == x }} {{ x <= y }}",
        "{{ v|tojson }}", "{{ v|tojson(indent=1) }}", "{{ v|tojson(ensure_ascii=true, separators=('; ', '= ')) }}",
        "{{ v|tojson(sort_keys=true, indent='.') }}", "{{ v == v }} {{ [v] == [v] }} {{ v in [v] }}",
        "{{ s.split()|tojson }} {{ s.split(none, k)|tojson }}",
        "{{ s.split(t, k)|tojson }}", "{{ s.strip(t) }}|{{ s.lstrip() }}|",
        "{{ s.replace(t, u, k) }}|{{ s|replace(t, u) }}|{{ s.replace('', t, k) }}",
        "{{ t in s }} {{ s < t }} {{ s == t ~ u }}",
        "{{ s[k] }}|{{ s[k:] }}|{{ s[:k] }}|{{ s[::-2] }}|{{ s[-3:k:-1] }}|{{ s|length }}|{{ s|list|tojson }}",
        "{{ s.startswith(t) }} {{ s.endswith((t, u)) }} {{ s|trim }}| {{ s|first }}{{ s|last }}",
        "{{ s|int }} {{ (m|string)|int == m }}",
        "{{ s.title() }} {{ s|capitalize }} {{ s|upper }} {{ t|lower }}"])
    return case(f"values {seed}", template, [], v)


# ---------------------------------------------------------------- programs

class Program:
    """Statements with random white space and signs around their tags."""
    NAMES = ["i", "s", "l", "v", "x", "y", "k"]

    def __init__(self, random_source):
        self.r, self.m, self.macros = random_source, Maker(random_source), 0

    def gap(self):
        return self.r.choice(["", "", " ", "\n", "\n  ", "  \n", "\n\n", "text", " a\n", "\t", "\r\n", "é "])

    def tag(self, body):
        r = self.r
        open_sign, close_sign = r.choice(["", "", "-", "+"]), r.choice(["", "", "-", "+"])
        return "{%" + open_sign + " " + body + " " + close_sign + "%}" + self.gap()

    def show(self, e):
        return "{{" + self.r.choice(["", "-"]) + " " + e + " " + self.r.choice(["", "-"]) + "}}" + self.gap()

    def expression(self, depth=1):
        r = self.r
        return r.choice([lambda: self.m.make(depth), lambda: r.choice(self.NAMES), lambda: "ns.a",
                         lambda: r.choice(self.NAMES) + " ~ ns.a"])()

    def loop(self, depth):
        r = self.r
        over = r.choice(["l", "m", "range(4)", "rows", "d", "d.items()", "s", "rows|selectattr('k')", "undefined_name",
                         "p.q.r", "[1, 'a', none]"])
        targets = r.choice(["x", "x", "x", "x, y", "k"])
        guard = r.choice(["", "", "", " if " + r.choice(["x", "not loop", "x != 2", "ns.a != 'stop'", "loop.first",
                                                         "x is defined"])])
        parts = ["index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem", "foo"]
        body = self.gap()
        for _ in range(r.randrange(1, 4)):
            body += self.show("loop." + r.choice(parts)) if r.random() < 0.5 else self.statement(depth - 1, True)
        other = self.tag("else") + self.statement(depth - 1, False) if r.random() < 0.3 else ""
        return self.tag(f"for {targets} in {over}{guard}") + body + other + self.tag("endfor")

    def macro(self, depth):
        r = self.r
        self.macros += 1
        name = f"f{self.macros}"
        parameters = r.choice(["", "x", "x, y='Y'", "x=1, y=x", "x, y, k=s"])
        body = "".join(self.statement(depth - 1, False) for _ in range(2))
        arguments = ["", "1", "1, 2", "y=3", "i, k=l", "s, 2, 3"]
        calls = "".join(self.show(f"{name}({r.choice(arguments)})") for _ in range(2))
        return self.tag(f"macro {name}({parameters})") + body + self.tag("endmacro") + calls

    def statement(self, depth, in_loop):
        r = self.r
        if depth <= 0 or r.random() < 0.25:
            return self.show(self.expression()) + self.gap()
        kind = r.randrange(9)
        if kind == 0:
            middle = self.tag("elif " + self.expression()) + self.statement(depth - 1,
                                                                            in_loop) if r.random() < 0.5 else ""
            other = self.tag("else") + self.statement(depth - 1, in_loop) if r.random() < 0.5 else ""
            return self.tag("if " + self.expression()) + self.statement(depth - 1,
                                                                        in_loop) + middle + other + self.tag("endif")
        if kind in (1, 2):
            return self.loop(depth)
        if kind == 3:
            return self.tag(f"set {r.choice(self.NAMES)} = {self.expression()}") + self.show(r.choice(self.NAMES))
        if kind == 4:
            return self.tag(f"set ns.{r.choice('ab')} = {r.choice([self.expression(), chr(39) + 'stop' + chr(39)])}")
        if kind == 5:
            body = self.statement(depth - 1, False)
            target = r.choice(self.NAMES) + r.choice(["", " | trim", "|upper"])
            return self.tag("set " + target) + body + self.tag("endset")
        if kind == 6:
            return self.macro(depth)
        if kind == 7 and in_loop:
            return self.tag(f"if {self.expression()}") + self.tag(r.choice(["break", "continue"])) + self.tag("endif")
        if kind == 8:
            return self.tag("generation") + self.statement(depth - 1, False) + self.tag("endgeneration")
        return "{#" + r.choice(["", "-"]) + " note " + r.choice(["", "-"]) + "#}" + self.gap()

    def make(self):
        body = "".join(self.statement(3, False) for _ in range(self.r.randrange(1, 5)))
        return self.gap() + "{% set ns = namespace(a='A', b=0) %}" + body


def program(seed):
    return case(f"program {seed}", Program(random.Random(seed)).make(), [], VARIABLES)


# ---------------------------------------------------------------- chats

TEXTS = ["Hi", " there \n", "", "Größe, 東京 ", "a\n\n b", "<think>\nx\n</think>\n\ny", "{{ no }}", "say \"it's\"\t\\n",
         "x<|im_end|>y",
         "<think>open", "</think>close", "a</think>b</think>c", "/no_think now", "[INST] q [/INST]",
         "\u2028\u00a0z\u00a0", "{% if %}"]


def content(r, parts):
    if parts and r.random() < 0.4:
        return [{"type": "text", "text": r.choice(TEXTS)} for _ in range(r.randrange(1, 3))]
    return r.choice(TEXTS) if r.random() < 0.9 else "".join(r.choice(TEXTS) for _ in range(3))


def chat(r):
    messages, parts = [], r.random() < 0.2
    if r.random() < 0.5:
        messages.append({"role": r.choice(["system", "system", "developer"]), "content": content(r, parts)})
    for k in range(r.randrange(1, 7)):
        role = ("user", "assistant")[k % 2] if r.random() < 0.95 else r.choice(["user", "assistant", "tool", "system"])
        m = {"role": role, "content": content(r, parts)}
        if role == "assistant" and r.random() < 0.2:
            m[r.choice(["reasoning_content", "thinking", "reasoning"])] = r.choice(TEXTS)
        if r.random() < 0.1:
            m[r.choice(["tool_calls", "name", "content"])] = None
        messages.append(m)
    return messages


def tool(r):
    kinds = [{"type": "string", "description": r.choice(TEXTS)}, {"type": ["integer", "null"], "default": 3},
             {"type": "array", "items": {"type": "string", "enum": ["a", "b\"c"]}},
             {"type": "object", "properties": {"x": {"type": "number"}}}]
    properties = {name: r.choice(kinds) for name in r.sample(["city", "n", "items", "keys"], r.randrange(4))}
    parameters = {"type": "object", "properties": properties, "required": [x for x in properties if r.random() < 0.5]}
    function = {"name": r.choice(["f", "get_weather"]), "description": r.choice(TEXTS), "parameters": parameters}
    return {"type": "function", "function": function}


def options(r):
    choices = {"enable_thinking": [True, False], "reasoning_effort": ["low", "high"], "thinking": [True, False],
               "date_string": ["26 Jul 2024"], "custom": [1], "preserve_thinking": [True, False],
               "clear_thinking": [True, False]}
    chosen = {k: r.choice(v) for k, v in choices.items() if r.random() < 0.2}
    return dict(chosen, tools=[tool(r) for _ in range(r.randrange(1, 3))]) if r.random() < 0.15 else chosen


SPECIALS = ["<|im_end|>", "<|im_start|>", "<s>", "</s>", "[INST]", "[/INST]", "<think>", "<", "<|", "東京"]


def some_specials(r):
    return r.sample(SPECIALS, r.randrange(1, 6)) if r.random() < 0.4 else None


def special(seed):
    """A text to mark, and a text with marks to cut."""
    r = random.Random(seed)
    tokens = r.sample(SPECIALS + ["ab", "abc", "b", "a"], r.randrange(0, 8))
    parts = tokens + ["<", "|", "im_end|>", "a", "b", "c", "\U000f0000", "\U000f0001", "x", " ", "é", "京"]
    marked, text = ("".join(r.choice(parts) for _ in range(r.randrange(0, 12))) for _ in range(2))
    control, marks = hf._get_control_token_patterns(tuple(tokens))
    marked = hf.mark_control_tokens(text, control) + marked if r.random() < 0.7 else marked
    pieces = [[piece, k % 2 == 1] for k, piece in enumerate(marks.split(marked)) if piece]
    return {"specials": tokens, "text": text, "marked": hf.mark_control_tokens(text, control), "rendered": marked,
            "pieces": pieces}


def built_ins():
    text = open(os.path.join(os.path.dirname(__file__), "../../src/chat/built_in.c")).read()
    arrays = dict((n, "".join(json.loads(x) for x in re.findall(r'"(?:[^"\\]|\\.)*"', body)))
                  for n, body in re.findall(r"static const char (\w+)\[\] =(.*?);\n\n", text, re.S))
    return {name: arrays[n] for name, n in re.findall(r'\{"(\w+)", (\w+)\}', text)}


def templates(seed, chats, files):
    for name, text in built_ins().items():
        for k in range(chats):
            r = random.Random(f"{seed} {name} {k}")
            yield case(f"{name} {k}", text, chat(r), options(r), r.random() < 0.5, name, some_specials(r))
    for path in files:
        text = open(path, encoding="utf-8", newline="").read()
        for k in range(chats):
            r = random.Random(f"{seed} {path} {k}")
            yield case(f"{os.path.basename(path)} {k}", text, chat(r), options(r), r.random() < 0.5,
                       specials=some_specials(r))


# ---------------------------------------------------------------- kept: the cases of tests/unit/chat/cases.jsonl


def by_hand():
    with open(os.path.join(os.path.dirname(__file__), "by_hand.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def kept():
    yield {"shared": True, "variables": VARIABLES, "tokens": TOKENS, "now": NOW, "messages": [],
           "add_generation_prompt": False, "may_refuse": False}
    for k, written in enumerate(by_hand()):
        yield {**case(f"by hand {k}", written["template"], [], VARIABLES), **written, "may_refuse": False}
    for k in range(300):
        c = expression(k)
        if c["expected"] is not None or k % 10 == 0:
            yield c
    for k in range(60):
        yield program(k)
    for k in range(60):
        yield values(k)
    yield from templates(0, 5, [])


def without_shared(c, shared):
    return {k: v for k, v in c.items() if k not in shared or v != shared[k]}


def main():
    limit_memory(500_000_000)
    if sys.argv[1] == "kept":
        cases = list(kept())
        for k, c in enumerate(cases):
            print(json.dumps(c if k == 0 else without_shared(c, cases[0]), ensure_ascii=False, separators=(",", ":")))
        return
    what, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if what == "templates":
        cases = templates(seed, count, sys.argv[4:])
    else:
        one = {"expressions": expression, "programs": program, "values": values, "specials": special}[what]
        cases = (one(seed * 1000000 + k) for k in range(count))
    for c in cases:
        if c.get("error", "").startswith(("No test named", "No filter named")):
            continue  # jinja2 says so before it is known whether it matters
        print(json.dumps(c, ensure_ascii=False, separators=(",", ":")))


main()
