"""How pages lie in a window of 400 and of 1280 pixels, measured in headless Chromium (Debian's package; skipped without): nothing is wider
than the window, cards leave no hole in a row, no bar lies on words, the words of an axis tell its ticks apart and do not run into each other,
no page is called by a path. Called as cli_tests.py is."""
import html
import json
import os
import re
import shutil
import subprocess

from cli_tests import Skipped, check, main, read, run
from encode_tests import write_encoder
from rollout_tests import write_rollout
from times_tests import train

# The page is a frame's content, so that its window can be narrower than a browser's.
MEASURE = """
function measure(frame) {
  const d = frame.contentDocument, found = [];
  const box = e => e.getBoundingClientRect();
  const meet = (a, b, by) => a.left < b.right - by && b.left < a.right - by && a.top < b.bottom - by && b.top < a.bottom - by;
  const seen = e => box(e).width > 0 && box(e).height > 0;
  for (const e of d.querySelectorAll('details')) e.open = true;
  if (d.documentElement.scrollWidth > d.documentElement.clientWidth) found.push('wider than the window: ' + d.documentElement.scrollWidth);
  for (const cards of d.querySelectorAll('.cards')) {
    const last = {};
    for (const card of cards.children) last[Math.round(box(card).top)] = Math.max(last[Math.round(box(card).top)] || 0, box(card).right);
    for (const top in last) if (Math.abs(last[top] - box(cards).right) > 1.5) found.push('a row of cards ends before its end: ' + cards.innerText);
  }
  for (const svg of d.querySelectorAll('svg')) {
    const name = svg.getAttribute('aria-label'), words = [...svg.querySelectorAll('text')].filter(seen);
    for (const w of words) {
      for (const bar of svg.querySelectorAll('rect:not(.free):not(.frame)'))
        if (w.compareDocumentPosition(bar) & 4 && meet(box(w), box(bar), 1)) found.push(name + ': a bar lies on "' + w.textContent + '"');
      for (const v of words)
        if (v != w && v.compareDocumentPosition(w) & 4 && meet(box(w), box(v), 3) && !w.matches('.mark') && !v.matches('.mark'))
          found.push(name + ': "' + v.textContent + '" runs into "' + w.textContent + '"');
    }
    const ticks = words.filter(w => w.matches('.end:not(.mark)')).map(w => w.textContent);
    if (new Set(ticks).size < ticks.length) found.push(name + ': ticks that look alike: ' + ticks);
  }
  return [...new Set(found)];
}
window.onload = () => { document.body.innerHTML = '<pre>' + encodeURIComponent(JSON.stringify([...document.querySelectorAll('iframe')].map(measure))) + '</pre>'; };
"""


def faults(page):
    """Of a page in both widths."""
    chromium = shutil.which("chromium")
    if not chromium:
        raise Skipped("there is no chromium")
    with open("frames.html", "w") as file:
        file.write("<!doctype html><meta charset='utf-8'><body>" + "".join(f"<iframe style='width:{width}px;height:900px;border:0' srcdoc=\"{html.escape(page)}\"></iframe>"
                                                                            for width in (400, 1280)) + f"<script>{MEASURE}</script>")
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={os.path.abspath('profile')}", "--dump-dom", "frames.html"],
                          capture_output=True, timeout=240)
    told = re.search(r"<pre>([^<]*)</pre>", done.stdout.decode())
    check(told, "chromium measured nothing:", done.stderr.decode()[-2000:])
    from urllib.parse import unquote
    return json.loads(unquote(told[1]))


def check_page(path):
    page = read(path).decode()
    title = html.unescape(re.search("<title>(.*?)</title>", page)[1])
    check(re.match(r"[A-Za-z][^/.]* – (results|plan|run|times)$", title) and "Plimsoll" not in title, path, "is called", title)
    found = faults(page)
    check(found == [[], []], path, "at 400 px:", *found[0], "; at 1280 px:", *found[1])


def test_measured():
    """What is wrong is found."""
    svg = "<svg viewBox='0 0 100 50' width=100 aria-label='x'><text class='end' x='50' y='20'>1</text><text class='end' x='90' y='20'>1</text><rect x='30' y='0' width='40' height='40'/></svg>"
    narrow, wide = faults(f"<!doctype html><style>.card{{float:left;width:40%}}</style><div class='cards'><div class='card'>a</div></div>{svg}<p style='width:900px'>wide</p>")
    check(len(narrow) == 4 and len(wide) == 3 and "wider than the window" in narrow[0], narrow, wide)


def test_rollout():
    run("rollout", write_rollout(sampling={"total_samples": 4}, simulation={"num_timesteps": 12}), "--quiet")
    check_page("out/results.html")


def test_encoding():
    run("encode", write_encoder(attention_entropy="true"), "--quiet")
    check_page("out/results.html")


def test_training():
    train()
    for page in ("plan.html", "page.html"):
        if page == "page.html":
            run("report", "out", "--html", "out/page.html")
        check_page(f"out/{page}")


if __name__ == "__main__":
    main({"layout": [test_measured, test_rollout, test_encoding, test_training]})
