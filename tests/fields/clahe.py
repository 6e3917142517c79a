#!/usr/bin/env python3
"""CLAHE against scikit-image's equalize_adapthist. Usage: clahe.py CLAHE-PROGRAM [SEED]"""
import os
import subprocess
import sys
import time

DEBIAN = "/usr/bin/python3"  # where the package python3-skimage is, whichever Python runs this
try:
    import numpy
    from skimage.exposure import equalize_adapthist
except ImportError:
    if os.path.exists(DEBIAN) and "--again" not in sys.argv:
        os.execv(DEBIAN, [DEBIAN, "-B", *sys.argv, "--again"])
    print("skipped: no scikit-image here (Debian: python3-skimage)")
    sys.exit(77)


def draw(random, height, width):
    """An image in [0, 1]: noise, a few levels, or a smooth slope with noise."""
    kind = random.integers(3)
    image = random.random((height, width))
    if kind == 1:
        image = numpy.floor(image * 5) / 4
    if kind == 2:
        image = 0.1 * image + numpy.linspace(0, 1, width)
    image = image.astype(numpy.float32)
    return (image - image.min()) / (image.max() - image.min())


def main():
    given = [word for word in sys.argv[2:] if word.isdigit()]
    seed = int(given[0] if given else os.environ.get("PLIMSOLL_TEST_SEED", time.time()))
    print(f"repeat with: {sys.argv[0]} {sys.argv[1]} {seed}", flush=True)
    random = numpy.random.default_rng(seed)
    sizes = [(440, 640), (48, 64)] + [tuple(random.integers(2, 120, 2)) for _ in range(12)]
    for height, width in sizes:
        image, limit = draw(random, height, width), random.choice([0.0, 0.003, 0.01, 0.1, 0.5])
        ours = subprocess.run([sys.argv[1], str(height), str(width), repr(float(limit))], check=True,
                              input=image.tobytes(), capture_output=True).stdout
        ours = numpy.frombuffer(ours, numpy.float32).reshape(height, width)
        theirs = equalize_adapthist(image.astype(numpy.float64), clip_limit=limit)
        if theirs.min() == theirs.max():
            theirs = 0 * theirs  # of one value: 0 here, any other there
        worst = abs(ours - theirs).max()
        assert worst < 1e-6, f"{height} x {width}, clip limit {limit}: {worst} apart"
        print(f"{height} x {width}, clip limit {limit}: at most {worst:.1e} apart")


main()
