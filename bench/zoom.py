#!/usr/bin/env python3
"""Frames a second while the arena of a plan is zoomed and moved, in Chromium without a GPU: every frame draws another part of the picture, and the next
is asked for when the one before is done.

    bench/zoom.py [--layers 60] [--frames 120]      the plan of examples/gpt.yaml with so many layers has some 5,000 blocks

By hand; needs chromium and chromium-driver. No test hangs on what it prints."""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
from browser import REASON, Browser  # noqa: E402

ZOOM = """
const frames = arguments[0], figure = document.querySelector('.explore'), svg = figure.querySelector('svg'), b = svg.getBoundingClientRect();
return new Promise(done => {
  const gaps = [];
  let last = 0;
  requestAnimationFrame(function frame(now) {
    if (last) gaps.push(now - last);
    last = now;
    if (gaps.length >= frames) return done({gaps, blocks: figure.querySelectorAll('.blocks rect').length});
    svg.dispatchEvent(new WheelEvent('wheel', {bubbles: true, cancelable: true, ctrlKey: true, deltaY: gaps.length % 60 < 30 ? -40 : 40,
      clientX: b.x + b.width * (0.4 + 0.004 * (gaps.length % 50)), clientY: b.y + b.height * 0.7}));
    requestAnimationFrame(frame);
  });
});
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", default=os.path.join(ROOT, "build", "plimsoll"))
    parser.add_argument("--layers", type=int, default=60)
    parser.add_argument("--frames", type=int, default=120)
    given = parser.parse_args()
    if REASON:
        sys.exit(REASON)
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "plan.html")
        subprocess.run([os.path.abspath(given.plimsoll), "plan", os.path.join(ROOT, "examples", "gpt.yaml"), "--text", os.path.join(ROOT, "examples", "fables.txt"),
                        "--layers", str(given.layers), "--budget", "1TB", "--html", page], check=True, stdout=subprocess.DEVNULL)
        with Browser(os.path.join(folder, "browser")) as browser:
            for width in (1280, 400):
                browser.open(page, width)
                made = browser.run("document.querySelector('.explore svg').scrollIntoView({block: 'center'});" + ZOOM, given.frames)
                gaps = sorted(made["gaps"])
                print(f"{width} px, {made['blocks']:,} blocks: {1000 * len(gaps) / sum(gaps):.1f} frames a second, median {gaps[len(gaps) // 2]:.1f} ms, "
                      f"slowest of a hundred {gaps[len(gaps) * 99 // 100]:.1f} ms")


main()
