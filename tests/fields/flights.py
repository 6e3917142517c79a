#!/usr/bin/env python3
"""Synthetic flights as another program reads them: h5py, and the published reading of the data set in NumPy.
Usage: flights.py PLIMSOLL FOLDER"""
import datetime
import hashlib
import os
import shutil
import subprocess
import sys
import time

DEBIAN = "/usr/bin/python3"  # where the package python3-h5py is, whichever Python runs this
try:
    import h5py
    import numpy
except ImportError:
    if os.path.exists(DEBIAN) and "--again" not in sys.argv:
        os.execv(DEBIAN, [DEBIAN, "-B", *sys.argv, "--again"])
    print("skipped: no h5py here (Debian: python3-h5py)")
    sys.exit(77)

PLIMSOLL, FOLDER = sys.argv[1], os.path.join(sys.argv[2], "synthetic-flights")
LABELS = {"10Feb25": 38, "30Oct24": 100, "04Nov24": 24, "23Oct24": 21, "18Feb25": 8, "12Feb25": 18}


def synth(folder, *words, code=0):
    done = subprocess.run([PLIMSOLL, "synth", "clouds", folder, *words], capture_output=True)
    assert done.returncode == code, (words, done.returncode, done.stderr.decode())
    return done.stdout.decode() if code == 0 else done.stderr.decode()


def flights_of(folder):
    """name: (camera, lidar, navigation), from the fragment of a config, and its swath."""
    flights, text = {}, open(os.path.join(folder, "synthetic_flights.yaml")).read()
    for line in text.splitlines():
        key, _, value = line.strip(" -").partition(": ")
        if key == "name":
            flights[value.strip('"')] = []
        elif key.endswith("FileName"):
            next(reversed(flights.values())).append(os.path.join(folder, value.strip('"')))
        elif key == "swath_slice":
            swath = slice(*map(int, value.strip("[]").split(",")))
    return flights, swath, text


def seconds(days, year):
    """Decimal days of a year; where the fraction falls by more than 0.2 and the whole part stands still, a day more."""
    first = datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp()
    falls = (numpy.diff(days % 1) < -0.2) & (numpy.diff(numpy.floor(days)) <= 0)
    return first + (days - 1 + numpy.concatenate([[0], numpy.cumsum(falls)])) * 86400


def labels_of(camera, lidar):
    times = camera["Time/TimeUTC"][:]
    assert (numpy.diff(times) > 0).all()
    layers = lidar["layer_descriptor"]
    base = layers["Layer_Base_Altitude"][:, 0].astype(numpy.float32)
    at = seconds(layers["Profile_Decimal_Julian_Day"][:, 0], 2000 + int(lidar.filename.split("/")[-1].split(".")[0][-2:]))
    valid = (abs(layers["Lidar_Surface_Altitude"][:] / 1000) <= 0.9) & (layers["DEM_Surface_Altitude"][:] == 0)
    valid &= numpy.isfinite(base) & (base >= numpy.float32(0.1)) & (base <= numpy.float32(2.0))
    labels = numpy.full(len(times), numpy.nan)
    unmatched = overwritten = 0
    for i in numpy.flatnonzero(valid):
        nearest = abs(times - at[i]).argmin()
        if abs(times[nearest] - at[i]) > 0.5:
            unmatched += 1
            continue
        overwritten += not numpy.isnan(labels[nearest])
        labels[nearest] = base[i]
    return labels, unmatched, overwritten, len(valid) - valid.sum()


def measured_height(frame, zenith, azimuth):
    """From the picture alone: how far from the clouds, away from the sun, it is darkest. In km, or NaN."""
    rows, columns = numpy.nonzero(frame > numpy.nanmedian(frame) + 7)
    if len(rows) < 20:
        return numpy.nan
    lengths, means = numpy.arange(0, 17, 0.5), []
    for length in lengths:
        y = numpy.rint(rows + length * numpy.cos(numpy.radians(azimuth))).astype(int)
        x = numpy.rint(columns - length * numpy.sin(numpy.radians(azimuth))).astype(int)
        inside = (y >= 0) & (y < frame.shape[0]) & (x >= 0) & (x < frame.shape[1])
        seen = frame[y[inside], x[inside]]
        seen = seen[~(seen > numpy.nanmedian(frame) + 5)]
        means.append(numpy.nanmean(seen) if len(seen) > 10 else numpy.inf)
    return lengths[int(numpy.argmin(means))] * 0.125 / numpy.tan(numpy.radians(zenith))


def height_by_displacement(frame, following):
    """From two pictures: how many rows the clouds have moved, where the ground moves 16, seen from 5 km. In km, or NaN."""
    clouds, later = (f > numpy.nanmedian(f) + 7 for f in (frame, following))
    if clouds.sum() < 20:
        return numpy.nan
    shifts = numpy.arange(16, 28)
    alike = [(clouds[s:] == later[:len(later) - s]).mean() for s in shifts]
    return 5 * (1 - 16 / shifts[int(numpy.argmax(alike))])


def check_flight(name, files, swath, labels_wanted, cue):
    with h5py.File(files[0], "r") as camera, h5py.File(files[1], "r") as lidar, h5py.File(files[2], "r") as nav:
        signal, height = camera["Product/Signal"], camera["synthetic/height"][:]
        assert signal.dtype == numpy.float32 and signal.ndim == 3
        labels, unmatched, overwritten, dropped = labels_of(camera, lidar)
        has = ~numpy.isnan(labels)
        assert has.sum() == labels_wanted and has[0], (name, has.sum())
        assert unmatched > 0 and overwritten > 0 and dropped > 0, (name, unmatched, overwritten, dropped)
        error = labels[has] - numpy.clip(height[has], 0.1, 2)
        assert abs(error).max() < 0.03 * 6 and (has.sum() < 50 or 0.02 < error.std() < 0.04), (name, error.std())
        assert (height >= 0.1).all() and (height <= 2).all()
        zenith, azimuth = nav["nav/solarZenith"][:], nav["nav/sunAzGrd"][:]
        assert len(zenith) == len(signal) == len(nav["nav/IWG_lat"]) == len(nav["nav/IWG_lon"])
        assert numpy.isfinite(zenith[has]).all() and numpy.isfinite(azimuth[has]).all()
        assert numpy.nanmin(zenith) >= 25 and numpy.nanmax(zenith) <= 45
        rows = signal[0]
        assert (rows[:swath.start] == 0).all() and (rows[swath.stop:] == 0).all() and (rows[swath] != 0).any()
        if cue == "shadow":
            found = [(measured_height(signal[i, swath], zenith[i], azimuth[i]), height[i]) for i in numpy.flatnonzero(has)]
        else:
            shadows = [measured_height(signal[i, swath], zenith[i], azimuth[i]) for i in numpy.flatnonzero(has)]
            by_shadow = abs(numpy.array(shadows) - height[has])
            assert not numpy.nanmedian(by_shadow) < 0.3, (name, numpy.nanmedian(by_shadow))
            found = [(height_by_displacement(signal[i, swath], signal[i + 1, swath]), height[i])
                     for i in numpy.flatnonzero(has) if i + 1 < len(signal)]
        found = numpy.array([pair for pair in found if numpy.isfinite(pair).all()])
        if len(found) < 5:
            return numpy.empty((0, 2))
        return found


def check_all(folder, words, wanted, cue):
    synth(folder, *words)
    flights, swath, _ = flights_of(folder)
    assert list(flights) == list(wanted), flights
    found = numpy.concatenate([check_flight(n, f, swath, wanted[n], cue) for n, f in flights.items()])
    # Medians: in a small picture with many clouds a shadow is hidden now and then, and that frame's height is any.
    by_picture = numpy.median(abs(found[:, 0] - found[:, 1]))
    by_median = numpy.median(abs(found[:, 1] - numpy.median(found[:, 1])))
    print(f"{cue}: {len(found)} frames, height by the {cue} {by_picture:.3f} km off, by the median {by_median:.3f}")
    return by_picture / by_median


def digest(folder, count):
    whole = hashlib.sha256()
    for files in list(flights_of(folder)[0].values())[:count]:
        for path in files:
            whole.update(open(path, "rb").read())
    return whole.hexdigest()


def without_module(size):
    """What the command says where the module is not beside it."""
    alone = os.path.join(FOLDER, "x", "y", "plimsoll")
    os.makedirs(os.path.dirname(alone))
    shutil.copy(PLIMSOLL, alone)
    done = subprocess.run([alone, "synth", "clouds", FOLDER + "/none", *size], capture_output=True)
    assert done.returncode == 1 and not os.path.exists(FOLDER + "/none"), done
    return done.stderr.decode()


def main():
    seed = os.environ.get("PLIMSOLL_TEST_SEED", str(int(time.time())))
    print(f"repeat with: PLIMSOLL_TEST_SEED={seed} {' '.join(sys.argv)}", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    size = ("--height", "48", "--width", "64", "--seed", seed)
    text = without_module(size)
    assert "a file of a flight needs plimsoll-hdf5.so" in text and "install libhdf5" in text, text
    if "plimsoll-hdf5.so" not in os.listdir(os.path.dirname(os.path.abspath(PLIMSOLL))):
        print("skipped: built without libhdf5; the command says so")
        sys.exit(77)
    assert check_all(FOLDER + "/a", size, LABELS, "shadow") < 0.3
    few = {name: LABELS[name] for name in list(LABELS)[:2]}
    assert check_all(FOLDER + "/p", (*size, "--cue", "parallax", "--flights", "2"), few, "parallax") < 0.3
    synth(FOLDER + "/b", *size, "--flights", "2")
    assert digest(FOLDER + "/a", 2) == digest(FOLDER + "/b", 2), "the same options gave other bytes"
    synth(FOLDER + "/b", *size[:-1], str(int(seed) + 1), "--flights", "2")
    assert digest(FOLDER + "/a", 2) != digest(FOLDER + "/b", 2), "another seed gave the same bytes"
    assert not [name for _, _, names in os.walk(FOLDER) for name in names if name.endswith(".tmp")]
    check_all(FOLDER + "/c", ("--height", "40", "--width", "33", "--flights", "8", "--labels", "5", "--seed", seed),
              dict.fromkeys([*LABELS, "06Mar25", "07Mar25"], 5), "shadow")
    shutil.rmtree(FOLDER)


main()
