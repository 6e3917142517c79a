#!/usr/bin/env python3
"""Low Fourier modes there and back, and correlated noise, against NumPy's transforms. Usage: modes.py MODES-PROGRAM"""
import os
import subprocess
import sys

DEBIAN = "/usr/bin/python3"  # where the package python3-numpy is, whichever Python runs this
try:
    import numpy
except ImportError:
    if os.path.exists(DEBIAN) and "--again" not in sys.argv:
        os.execv(DEBIAN, [DEBIAN, "-B", *sys.argv, "--again"])
    print("skipped: no NumPy here (Debian: python3-numpy)")
    sys.exit(77)


def differs(ours, theirs):
    return numpy.abs(ours - theirs).max() / numpy.abs(theirs).max()


def main():
    for height, width, modes in ((128, 128, 12), (8, 6, 4), (33, 20, 11), (17, 16, 8)):
        text = subprocess.run([sys.argv[1], str(height), str(width), str(modes)], check=True, capture_output=True).stdout
        image, kept, back, white, noise = (numpy.array(line.split(), float) for line in text.decode().splitlines())
        whole = numpy.fft.rfft2(image.reshape(height, width))
        low = numpy.zeros_like(whole)
        low[:modes, :modes], low[-modes:, :modes] = whole[:modes, :modes], whole[-modes:, :modes]
        kept = kept.reshape(2 * modes, modes, 2) @ [1, 1j]
        there = differs(kept, numpy.concatenate([whole[:modes, :modes], whole[-modes:, :modes]]))
        again = differs(back.reshape(height, width), numpy.fft.irfft2(low, s=(height, width)))
        f2 = numpy.fft.fftfreq(height)[:, None] ** 2 + numpy.fft.fftfreq(width)[None, :] ** 2
        filtered = numpy.fft.fft2(white.reshape(height, width)) * numpy.exp(-f2 * (0.05 * height) ** 2 / 2)
        filtered = numpy.fft.ifft2(filtered).real
        correlated = differs(noise.reshape(height, width), filtered / filtered.std(ddof=1))
        print(f"{height} x {width}, {modes} modes: differences {there:.1e}, {again:.1e}; of noise {correlated:.1e}")
        assert max(there, again, correlated) < 5e-6


main()
