#!/usr/bin/env python3
"""Sobol points, their centred discrepancy and correlation against SciPy's. Usage: sobol.py POINTS-PROGRAM"""
import os
import subprocess
import sys

DEBIAN = "/usr/bin/python3"  # where the package python3-scipy is, whichever Python runs this
try:
    import numpy
    from scipy.stats import qmc
except ImportError:
    if os.path.exists(DEBIAN) and "--again" not in sys.argv:
        os.execv(DEBIAN, [DEBIAN, "-B", *sys.argv, "--again"])
    print("skipped: no SciPy here (Debian: python3-scipy)")
    sys.exit(77)


def main():
    for dimensions, count in ((1, 5), (12, 1024), (18, 700), (64, 2048)):
        text = subprocess.run([sys.argv[1], str(dimensions), str(count)], check=True, capture_output=True).stdout
        *rows, quality = text.decode().splitlines()
        ours = numpy.array([[float(word) for word in row.split()] for row in rows])
        theirs = qmc.Sobol(dimensions, scramble=False).random(1 << (count - 1).bit_length())[:count]
        assert ours.shape == theirs.shape and (ours == theirs).all(), f"{dimensions} dimensions: other points"
        discrepancy, correlation = (float(word) for word in quality.split())
        expected = qmc.discrepancy(theirs, method="CD")
        assert abs(discrepancy - expected) < 1e-9 * (1 + abs(expected)), (dimensions, discrepancy, expected)
        if dimensions > 1:
            expected = numpy.abs(numpy.corrcoef(theirs.T) - numpy.eye(dimensions)).max()
            assert abs(correlation - expected) < 1e-9, (dimensions, correlation, expected)
        print(f"{dimensions} dimensions, {count} points: the same; discrepancy {discrepancy:.3g}, "
              f"correlation {correlation:.3g}")


main()
