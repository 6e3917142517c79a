"""The pictures of a plan as a person explores them, in Chromium: by mouse, wheel, fingers and keyboard, by search, wide and at 400 pixels, light and
dark; without scripts they are whole. What a block says of itself is held against `plan --json`. And what the pages of a plan and of a run are like for those
who see little or use no mouse: contrasts of WCAG 2 AA, names of what can be operated, the order of Tab. Called as cli_tests.py is."""
import html
import json
import re

from browser import REASON, Browser
from cli_tests import Skipped, check, main, read, run
from times_tests import train

ARENA, SCHEDULE = ".explore:has([aria-label='arena over time'])", ".explore:has([aria-label='schedule'])"
WINDOWS = [(width, dark) for width in (1280, 400) for dark in (False, True)]

# A block as it lies on the screen, by its name (the first line that it says); where it is shown: [left, top, right, bottom].
BOX = """const b = [...document.querySelector(arguments[0]).querySelectorAll('.blocks rect')].find(r => r.textContent.split('\\n')[0] === arguments[1]).getBoundingClientRect();
  return [b.left, b.top, b.right, b.bottom];"""
FRAME = """const s = document.querySelector(arguments[0] + ' svg'), [x, y, w, h] = s.dataset.frame.split(' ').map(Number), m = s.getScreenCTM();
  s.scrollIntoView({block: 'center'});
  const a = new DOMPoint(x, y).matrixTransform(s.getScreenCTM()), b = new DOMPoint(x + w, y + h).matrixTransform(s.getScreenCTM());
  return [a.x, a.y, b.x, b.y];"""
# What is shown, read from the words below the picture: nodes and bytes.
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def shown(browser):
    text = browser.run("return document.querySelector(arguments[0] + ' .where').textContent", ARENA)
    found = re.fullmatch(r"Shown: nodes ([\d,]+) to ([\d,]+), ([\d.]+) (\w+) to ([\d.]+) (\w+)\.", text)
    check(found, text)
    first, last, low, low_unit, high, high_unit = found.groups()
    return int(first.replace(",", "")), int(last.replace(",", "")), float(low) * UNITS[low_unit], float(high) * UNITS[high_unit]


def chosen(browser, where=ARENA):
    return browser.run("const c = document.querySelector(arguments[0] + ' .chosen'); return c.hidden ? null : [...c.querySelectorAll('b, span')].map(e => e.textContent)", where)


def planned():
    """A page, and what --json says of the same plan: the lines of names that its blocks begin with."""
    if REASON:
        raise Skipped(REASON)
    train(steps=3)
    run("plan", "gpt.yaml", "--html", "page.html")
    plan = json.loads(run("plan", "gpt.yaml", "--json")[0])
    values = {f"{v['name']} {v['dtype']} {json.dumps(v['shape'], separators=(',', ':'))}": v for v in plan["values"] if v["block_bytes"]}
    return plan, values


def test_chosen():
    """A click keeps a block; what it says is what the plan says."""
    plan, values = planned()
    nodes = {node["id"]: node for node in plan["nodes"]}
    root = {v["id"]: v["root"] for v in plan["values"]}
    readers = {root[value]: node["id"] for node in plan["nodes"] for value in node["inputs"] if value is not None}  # the last of each
    texts = [html.unescape(t) for t in re.findall("<title>([^<]*)</title></rect>", read("page.html").decode().split("<h2>Schedule")[0])]
    blocks = {t.split("\n")[0]: t.split("\n") for t in texts if not t.startswith("workspace of ")}
    check(set(blocks) == {name for name, v in values.items() if v["space"] == "ram"} and len(blocks) > 50, set(blocks) ^ set(values))
    for name, lines in blocks.items():
        v, (_, size, reason, life) = values[name], lines
        check(size.startswith(f"{v['role']}, {v['block_bytes']:,} bytes (") and size.endswith(f", part of {v['scope']}" if v["scope"] else ")"), size, v)
        check(life == f"offset {v['offset']:,}, alive from node {v['first']:,} to {v['last'] - 1:,}", life, v)
        made = re.search(r"made by (\w+)(?: of (\S+))? \(node ([\d,]+)\)", reason)
        check((made is None) == (v["producer"] is None or v["program"] is None), reason, v)
        if made:
            node = nodes[v["producer"]]
            check(made.groups() == (node["op"], node["scope"] or None, f"{v['producer']:,}"), reason, node)
        last = re.search(r"last read by \w+(?: of \S+)? \(node ([\d,]+)\)", reason)
        check((int(last[1].replace(",", "")) if last else None) == readers.get(v["id"]), reason, v)
    names = {t.split("\n")[0] for t in texts}
    with Browser() as browser:
        for width, dark in WINDOWS:
            browser.open("page.html", width, dark=dark)
            for name in [n for n, v in values.items() if v["role"] == "weight"][:2] + [n for n, v in values.items() if v["role"] == "saved"][-2:]:
                browser.run("document.querySelector(arguments[0] + ' svg').scrollIntoView({block: 'center'})", ARENA)
                left, top, right, bottom = browser.run(BOX, ARENA, name)
                x, y = (left + right) / 2, (top + bottom) / 2
                under = browser.run("const e = document.elementFromPoint(arguments[0], arguments[1]); return e.tagName === 'rect' && e.textContent", round(x), round(y))
                browser.drag([(x, y)])
                said = chosen(browser)
                is_large = min(right - left, bottom - top) >= 3  # else another may be as near
                check(said and said[0] in names and (not is_large or said[0] == name and said == under.split("\n")), name, "at", (x, y), "says", said, "under it:", under)
            browser.type("Escape")
            check(chosen(browser) is None, width, chosen(browser))
            browser.shoot(f"chosen-{width}-{'dark' if dark else 'light'}.png")


def test_zoom_and_move():
    """What is under the pointer stays there; a drag takes it along; the whole picture comes back."""
    planned()
    with Browser() as browser:
        for width in (1280, 400):
            browser.open("page.html", width)
            whole = shown(browser)
            left, top, right, bottom = browser.run(FRAME, ARENA)
            x, y = left + 0.7 * (right - left), top + 0.8 * (bottom - top)
            name = browser.run("const e = document.elementFromPoint(arguments[0], arguments[1]); return e.textContent.split('\\n')[0]", round(x), round(y))
            before = browser.run(BOX, ARENA, name)
            browser.wheel(x, y, (0, -300), held=["Control"])
            after, at = browser.run(BOX, ARENA, name), shown(browser)
            check(at[1] - at[0] < 0.7 * (whole[1] - whole[0]) and at[3] - at[2] < 0.7 * (whole[3] - whole[2]), whole, at)
            grown = (after[2] - after[0]) / (before[2] - before[0])
            check(abs((x - after[0]) - grown * (x - before[0])) < 2 and abs((y - after[1]) - grown * (y - before[1])) < 2, "slips away", before, after, (x, y))
            browser.drag([(x, y), (x - 40, y + 30)])
            moved = browser.run(BOX, ARENA, name)
            check(abs(moved[0] - after[0] + 40) < 2 and abs(moved[1] - after[1] - 30) < 2, "a drag is not followed", after, moved)
            check(chosen(browser) is None, "a drag chooses", chosen(browser))
            browser.drag([(left - 8, y), (left - 8, top - 60)])  # pressed on the picture, let go outside of it
            at = shown(browser)
            browser.hover((x, y), (x - 50, y), (x, y))
            check(shown(browser) == at, "it follows a mouse that holds nothing", at, shown(browser))
            browser.click(f"{ARENA} .tools button:last-of-type")
            check(shown(browser) == whole, whole, shown(browser))
            for _ in range(60):
                browser.run("document.querySelectorAll(arguments[0] + ' .tools button')[0].click()", ARENA)
            least = shown(browser)
            check(least[1] - least[0] <= 1 and least[2] < least[3] and least[3] - least[2] < 1e-3 * whole[3], "as far as one can zoom", least)
            browser.click(f"{ARENA} .tools button:last-of-type")
            browser.run("document.activeElement.blur()")
            browser.wheel(x, y, (0, -300))
            check(shown(browser) == whole, "a wheel without Ctrl belongs to the page", shown(browser))


def test_fingers():
    """Two fingers that part zoom; one moves a picture that is zoomed; a tap chooses."""
    planned()
    with Browser() as browser:
        browser.devtools("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
        browser.open("page.html", 400)
        whole = shown(browser)
        left, top, right, bottom = browser.run(FRAME, ARENA)
        x, y = (left + right) / 2, (top + bottom) / 2
        browser.drag([(x - 30, y), (x - 90, y)], [(x + 30, y), (x + 90, y)], pointer="touch")
        at = shown(browser)
        check(at[1] - at[0] < 0.6 * (whole[1] - whole[0]), "fingers that part", whole, at)
        browser.drag([(x, y), (x - 60, y)], pointer="touch")
        moved = shown(browser)
        check(moved[0] > at[0] and abs((moved[1] - moved[0]) - (at[1] - at[0])) <= 2, "a finger", at, moved)
        browser.drag([(x, y)], pointer="touch")
        check(chosen(browser), "a tap")


def test_search():
    planned()
    with Browser() as browser:
        for width in (1280, 400):
            browser.open("page.html", width)
            whole = shown(browser)
            texts = browser.run("return [...document.querySelectorAll(arguments[0] + ' .blocks rect')].map(r => r.textContent)", ARENA)
            browser.click(f"{ARENA} input")
            browser.type(*"SAVED attention")
            wanted = [t for t in texts if "\nsaved, " in t and "attention" in t.split("\n", 2)[0] + t.split("\n", 2)[1]]
            said = browser.run("return document.querySelector(arguments[0] + ' .tools span').textContent", ARENA)
            check(wanted and said == f"{len(wanted):,} of {len(texts):,} blocks", said, len(wanted))
            bright = browser.run("return [...document.querySelectorAll(arguments[0] + ' .blocks rect')].filter(r => getComputedStyle(r).fillOpacity === '1').map(r => r.textContent)", ARENA)
            check(sorted(bright) == sorted(wanted), "others stand out", len(bright))
            seen = []
            for _ in wanted:
                browser.type("Enter")
                seen.append("\n".join(chosen(browser)))
            check(sorted(seen) == sorted(wanted), "Enter goes through them", len(set(seen)), len(wanted))
            browser.click(f"{ARENA} .hits button")
            check("\n".join(chosen(browser)) in wanted and shown(browser)[3] - shown(browser)[2] < whole[3], chosen(browser))
            browser.run("document.querySelector(arguments[0] + ' input').focus()", ARENA)
            browser.type("Escape")
            check(not browser.run("return document.querySelectorAll('svg.searched').length", ARENA), "a search that was given up")
            browser.type(*"saved activations")
            check(browser.run("return document.querySelectorAll('svg .found').length") == sum("\nsaved, " in t for t in texts), "the legend's word")
            browser.type("Escape")
            browser.type(*"no such block")
            said = browser.run("return document.querySelector(arguments[0] + ' .tools span').textContent", ARENA)
            check(said.startswith("0 of"), said)


def test_keyboard():
    """All of it without a mouse; the schedule too."""
    planned()
    with Browser() as browser:
        browser.open("page.html")
        whole = shown(browser)
        browser.run("document.querySelector(arguments[0] + ' svg').focus()", ARENA)
        browser.type("+", "+")
        at = shown(browser)
        check(at[1] - at[0] < 0.5 * (whole[1] - whole[0]), whole, at)
        browser.type("Right")
        check(shown(browser)[0] > at[0], at, shown(browser))
        browser.type("Up")
        check(shown(browser)[2] > at[2], at, shown(browser))
        browser.type("n")
        first = chosen(browser)
        browser.type("n", "p")
        check(first and chosen(browser) == first, first, chosen(browser))
        browser.type("Enter")
        v = browser.run(BOX, ARENA, first[0])
        check(v[2] - v[0] > 100, "Enter zooms to it", v)
        browser.type("Escape", "0")
        check(chosen(browser) is None and shown(browser) == whole, shown(browser))
        browser.run("document.querySelector(arguments[0] + ' svg').focus()", SCHEDULE)
        browser.type("n", "+")
        said = chosen(browser, SCHEDULE)
        check(said and re.search(r"^node [\d,]+, (forward|backward|update)$", said[1]), said)


def test_without_scripts():
    """Today's picture: the same blocks at the same places, nothing that does nothing."""
    planned()
    places = """const s = document.querySelector(arguments[0] + ' svg').getBoundingClientRect();
      return [...document.querySelectorAll(arguments[0] + ' .blocks rect')].map(r => r.getBoundingClientRect()).map(b => [b.x - s.x, b.y - s.y, b.width, b.height]);"""
    with Browser() as browser:
        browser.open("page.html")
        scripted = [browser.look(places, where) for where in (ARENA, SCHEDULE)]
        browser.open("page.html", scripts=False)
        check(browser.look("return document.querySelectorAll('.tools, .where, [tabindex], button, input').length") == 0, "something that needs scripts is there")
        for with_it, without in zip(scripted, [browser.look(places, where) for where in (ARENA, SCHEDULE)]):
            check(len(with_it) == len(without) > 50, len(with_it), len(without))
            check(all(abs(a - b) < 0.1 for p, q in zip(with_it, without) for a, b in zip(p, q)), "not the same picture")
    page = read("page.html").decode()
    check("http" not in page and not re.search(r"(src|href)=|@import|url\((?!#)", page), "something comes from elsewhere")


CONTRAST = """
const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
const over = (c, under) => { const a = c.length > 3 ? c[3] : 1; return [0, 1, 2].map(i => c[i] * a + under[i] * (1 - a)); };
const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
const seen = e => { const b = e.getBoundingClientRect(), s = getComputedStyle(e); return b.width > 0 && b.height > 0 && s.visibility !== 'hidden'; };
const found = [];
let letters = 0, marks = 0;
for (const e of document.querySelectorAll('body *')) {
  if (!seen(e) || e.closest('script, :disabled')) continue;
  const s = getComputedStyle(e), own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && e.tagName !== 'title';
  if (own) {
    const svg = e.closest('svg'), color = parse(svg ? s.fill : s.color), size = parseFloat(s.fontSize) * (svg ? svg.getScreenCTM().a : 1);
    const under = behind(svg || e), is = ratio(over(color, under), under), large = size >= 24 || (size >= 18.66 && s.fontWeight >= 700);
    letters++;
    if (is < (large ? 3 : 4.5)) found.push('letters of ' + is.toFixed(2) + ': ' + e.tagName + '.' + (e.className.baseVal ?? e.className) + ' ' + e.textContent.slice(0, 40));
  }
  const mark = e.matches('.legend i, td.bar i') ? s.backgroundColor : e.matches('.blocks rect, .dot') ? s.fill : e.matches('svg path.train, svg path.valid, svg .axis') ? s.stroke : null;
  if (mark) {
    const under = behind(e.closest('svg') || e.parentElement), is = ratio(over(parse(mark), under), under);
    marks++;
    if (is < 3) found.push('a mark of ' + is.toFixed(2) + ': ' + e.tagName + '.' + (e.className.baseVal ?? e.className));
  }
}
const names = e => e.getAttribute('aria-label') || (e.textContent || '').trim() || (e.labels && e.labels.length && e.labels[0].textContent);
for (const e of document.querySelectorAll('button, input, a, summary, svg[role], img')) if (!(e.matches('img') ? e.hasAttribute('alt') : names(e))) found.push('without a name: ' + e.outerHTML.slice(0, 80));
let level = 0;
for (const h of document.querySelectorAll('h1, h2, h3, h4')) { const is = +h.tagName[1]; if (is > level + 1) found.push('a heading that skips: ' + h.textContent); level = is; }
if (document.documentElement.lang !== 'en' || !document.title) found.push('no language or title');
if (document.querySelector('[tabindex]:not([tabindex="0"]):not([tabindex="-1"])')) found.push('an order of its own');
for (const id of [...document.querySelectorAll('[aria-describedby]')].map(e => e.getAttribute('aria-describedby'))) if (!document.getElementById(id)) found.push('nothing is called ' + id);
return {found: [...new Set(found)], letters, marks};
"""
FOCUSED = """const e = document.activeElement, s = getComputedStyle(e), order = [...document.querySelectorAll('button:not(:disabled), input, summary, svg[tabindex]')]
  .filter(x => x.getBoundingClientRect().width);
return {at: order.indexOf(e), of: order.length, outline: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1};"""


def check_reached(browser, path):
    """Tab goes through all that can be operated, from top to bottom, and shows where it is."""
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    count = browser.run(FOCUSED)["of"]
    check(count >= 4, path, "has", count, "things to operate")
    for k in range(count):
        browser.type("Tab")
        now = browser.run(FOCUSED)
        check(now["at"] == k and now["outline"], path, "Tab number", k + 1, now)


def test_for_everyone():
    planned()
    run("report", "out", "--html", "run.html")
    with Browser() as browser:
        for path in ("page.html", "run.html", "out/plan.html"):
            for width, dark in WINDOWS:
                browser.open(path, width, dark=dark)
                if path == "page.html":
                    browser.run("document.querySelector(arguments[0] + ' .tools input').value = 'attention'; document.querySelector(arguments[0] + ' .tools input').dispatchEvent(new Event('input'));"
                                "document.querySelector(arguments[0] + ' .hits button').click()", ARENA)
                    browser.run("const i = document.querySelector(arguments[0] + ' .tools input'); i.value = ''; i.dispatchEvent(new Event('input'))", ARENA)
                made = browser.run(CONTRAST)
                check(made["letters"] > 50 and made["marks"] > 5, path, made)
                check(not made["found"], path, width, "dark" if dark else "light", *made["found"])
                wide = browser.run("return document.documentElement.scrollWidth")
                check(wide <= width, path, "is", wide, "wide")
            if path != "run.html":
                check_reached(browser, path)


def test_measured():
    """What is wrong is found."""
    if REASON:
        raise Skipped(REASON)
    with open("wrong.html", "w") as file:
        file.write("<!doctype html><html><title>x</title><body><h1>a</h1><h3>b</h3><p style='color:#999'>pale</p><button></button><button tabindex=3>a</button></body></html>")
    with Browser() as browser:
        browser.open("wrong.html")
        found = browser.run(CONTRAST)["found"]
        check(len(found) == 5 and found[0].startswith("letters of 2.8"), found)


if __name__ == "__main__":
    main({"explore": [test_measured, test_chosen, test_zoom_and_move, test_fingers, test_search, test_keyboard, test_without_scripts, test_for_everyone]})
