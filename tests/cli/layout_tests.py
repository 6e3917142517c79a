"""How pages lie in a window of 400 and of 1280 pixels, as Chromium lays them out: nothing is wider than the window, cards leave no hole in a
row, nothing lies on words, the words of an axis tell its ticks apart and do not run into each other; no page is called by a path. Called as
cli_tests.py is."""
import html
import re

from cli_tests import Skipped, check, main, read, run
from encode_tests import write_encoder
from rollout_tests import write_rollout
from times_tests import train
from width_tests import BROWSER, measure

FAULTS = """frame => {
  const d = frame.contentDocument, found = [];
  const box = e => e.getBoundingClientRect();
  const meet = (a, b, by) => a.left < b.right - by && b.left < a.right - by && a.top < b.bottom - by && b.top < a.bottom - by;
  const seen = e => box(e).width > 0 && box(e).height > 0;
  for (const e of d.querySelectorAll('details')) e.open = true;
  if (d.documentElement.scrollWidth > d.documentElement.clientWidth) found.push('wider than the window: ' + d.documentElement.scrollWidth);
  for (const cards of d.querySelectorAll('.cards')) {
    const last = {};
    for (const card of cards.children) last[Math.round(box(card).top)] = Math.max(last[Math.round(box(card).top)] || 0, box(card).right);
    for (const top in last) if (Math.abs(last[top] - box(cards).right) > 1.5) found.push('a row of cards ends before its end: ' + cards.textContent);
  }
  for (const svg of d.querySelectorAll('svg')) {
    const name = svg.getAttribute('aria-label'), words = [...svg.querySelectorAll('text')].filter(seen);
    for (const w of words) {
      for (const bar of svg.querySelectorAll('rect:not(.free):not(.frame), path:not(.axis):not(.even), circle'))
        if (w.compareDocumentPosition(bar) & 4 && meet(box(w), box(bar), 1)) found.push(name + ': something lies on "' + w.textContent + '"');
      for (const v of words)
        if (v != w && v.compareDocumentPosition(w) & 4 && meet(box(w), box(v), 3) && !w.matches('.mark') && !v.matches('.mark'))
          found.push(name + ': "' + v.textContent + '" runs into "' + w.textContent + '"');
    }
    const ticks = words.filter(w => w.matches('.end:not(.mark)')).map(w => w.textContent);
    if (new Set(ticks).size < ticks.length) found.push(name + ': ticks that look alike: ' + ticks);
  }
  return [...new Set(found)];
}"""


def faults(page):
    """[at 400 pixels, at 1280]"""
    if not BROWSER:
        raise Skipped("no chromium")
    return [measure([page], pixels, FAULTS)[0] for pixels in (400, 1280)]


def check_page(path):
    title = html.unescape(re.search("<title>(.*?)</title>", read(path).decode())[1])
    check(re.match(r"[A-Za-z][^/.]* – (results|plan|run|times)$", title) and "Plimsoll" not in title, path, "is called", title)
    narrow, wide = faults(path)
    check(not narrow and not wide, path, "at 400 pixels:", *narrow, "; at 1280:", *wide)


def test_measured():
    """What is wrong is found."""
    with open("wrong.html", "w") as file:
        file.write("<!doctype html><style>.card{float:left;width:40%}</style><div class='cards'><div class='card'>a</div></div><p style='width:900px'>wide</p>"
                   "<svg viewBox='0 0 100 50' width=100 aria-label='x'><text class='end' x='50' y='20'>1</text><text class='end' x='90' y='20'>1</text>"
                   "<rect x='30' y='0' width='40' height='40'/></svg>")
    narrow, wide = faults("wrong.html")
    check(len(narrow) == 4 and len(wide) == 3 and "wider than the window" in narrow[0], narrow, wide)


def test_rollout():
    run("rollout", write_rollout(sampling={"total_samples": 4}, simulation={"num_timesteps": 12}), "--quiet")
    check_page("out/results.html")


def test_encoding():
    run("encode", write_encoder(attention_entropy="true"), "--quiet")
    check_page("out/results.html")


def test_training():
    train()
    run("report", "out", "--html", "page.html")
    check_page("out/plan.html")
    check_page("page.html")


if __name__ == "__main__":
    main({"layout": [test_measured, test_rollout, test_encoding, test_training]})
