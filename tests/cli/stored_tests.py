"""Tests of what an HDF5 file says that it has, and has not: chunks that were never written, sources and external files that are
gone, values that mean "missing", numbers that were packed. h5py makes the files. Called as cli_tests.py is."""
import json
import os
import random
import re
import shutil
import subprocess

import cli_tests
from cli_tests import SEED, Skipped, check, environment, main, refused, run, write_config, write_text
from clouds_tests import DEBIAN, file_of, write_clouds
from encode_tests import SMALL, write_encoder
from infer_tests import lines, save

DRAW = random.Random(SEED)
SIDE = SMALL["image_size"]

# Of each item a value of its own; `x` is the dataset, of float32 [items, 3, SIDE, SIDE].
PROGRAM = """
import h5py, json, numpy as np
SIDE = %d
def planes(items):
    return np.arange(items, dtype='f4')[:, None, None, None] / 32 + np.linspace(0, .5, 3 * SIDE * SIDE, dtype='f4').reshape(3, SIDE, SIDE)
def chunked(f, name, shape, chunk, dtype='f4', fill='never', libver=None, deflate=False, maxshape=None):
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_chunk(chunk)
    if fill == 'never': p.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    if deflate: p.set_deflate(1)
    space = h5py.h5s.create_simple(shape, maxshape or shape)
    return h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype)), space, p))
"""


def with_h5py(program):
    done = subprocess.run([DEBIAN, "-B", "-c", PROGRAM % SIDE + program], capture_output=True, text=True) if os.path.exists(DEBIAN) else None
    if not done or "ModuleNotFoundError" in done.stderr:
        raise Skipped("no h5py here (Debian: python3-h5py)")
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout) if done.stdout else None


def write_planes(items, path="planes.npy"):
    """What `planes` of PROGRAM is, as .npy."""
    with_h5py(f"np.save({path!r}, planes({items}))")
    return path


def same_items(config, name, array, *words):
    told, wanted = (lines(run("infer", config, n, *words)[0]) for n in (name, array))
    check([{**t, "source": ""} for t in told] == [{**w, "source": ""} for w in wanted], name, "is not", array)


# ---- chunks ----

# Each kind of index that libhdf5 has for chunks, and where the hole is.
INDEXES = {"tree": "", "fixed": "libver='latest'", "growing": "libver='latest', maxshape=(h5py.h5s.UNLIMITED, 3, SIDE, SIDE)",
           "tree2": "libver='latest', maxshape=(h5py.h5s.UNLIMITED, h5py.h5s.UNLIMITED, SIDE, SIDE)"}


def test_chunks_never_written():
    config = write_encoder()
    write_planes(12)
    for name, how in INDEXES.items():
        for fill, deflate in (("never", DRAW.random() < 0.5), ("as it is", DRAW.random() < 0.5)):
            hole = DRAW.randrange(1, 11)
            chunk = "(1, 3, SIDE, SIDE)" if deflate else "(1, 1, SIDE // 2, SIDE)"
            with_h5py(f"""
p = dict({how})
with h5py.File('f.h5', 'w', libver=p.pop('libver', None)) as f:
    x = chunked(f, 'x', (12, 3, SIDE, SIDE), {chunk}, fill={fill!r}, deflate={deflate}, **p)
    for i in range(12):
        if i != {hole}: x[i] = planes(12)[i]
    y = chunked(f, 'whole', (12, 3, SIDE, SIDE), {chunk}, fill={fill!r}, deflate={deflate}, **p)
    y[:] = planes(12)
    chunked(f, 'none', (12, 3, SIDE, SIDE), {chunk}, fill={fill!r}, deflate={deflate}, **p)
""")
            same_items(config, "f.h5:/whole", "planes.npy")
            refused(4, f"f.h5:/x: item {hole} was never written", "infer", config, "f.h5:/x")
            refused(4, "f.h5:/none: item 0 was never written", "infer", config, "f.h5:/none")


def test_contiguous_never_written():
    config = write_encoder()
    with_h5py("""
with h5py.File('f.h5', 'w') as f:
    f.create_dataset('x', (2, 3, SIDE, SIDE), 'f4')
""")
    refused(4, "f.h5:/x: item 0 was never written", "infer", config, "f.h5:/x")


def test_ids_never_written():
    write_text(words=3000)
    run("train", write_config(train={"steps": 2, "checkpoint_every": 2}))
    length = cli_tests.TINY["model"]["sequence"]
    with_h5py(f"""
with h5py.File('f.h5', 'w') as f:
    x = chunked(f, 'x', (5, {length}), (2, {length}), 'i4')
    x[:2] = 1; x[4:] = 1
    y = f.create_dataset('fill', data=np.ones((5, {length}), 'i2')); y.attrs['_FillValue'] = np.int16(7); y[3, 1] = 7
    y = f.create_dataset('missing', data=np.ones((5, {length}), 'u1')); y.attrs['missing_value'] = np.array([-1], 'i4')
""")
    refused(4, "f.h5:/x: item 2 was never written", "infer", "out", "f.h5:/x")
    refused(4, "f.h5:/fill: item 3 has its _FillValue", "infer", "out", "f.h5:/fill")
    run("infer", "out", "f.h5:/missing") # no number of 8 bits is -1


# ---- other files ----

def test_virtual():
    config = write_encoder()
    write_planes(4)
    make = """
import os
os.makedirs('raw', exist_ok=True)
for i in range(4):
    with h5py.File(f'raw/{i}.h5', 'w') as f:
        f['x'] = planes(4)[i]
with h5py.File('v.h5', 'w', libver='latest') as f:
    l = h5py.VirtualLayout((4, 3, SIDE, SIDE), 'f4')
    for i in range(4): l[i] = h5py.VirtualSource(f'raw/{i}.h5', 'x', (3, SIDE, SIDE))
    f.create_virtual_dataset('x', l)
    l = h5py.VirtualLayout((4, 3, SIDE, SIDE), 'f4')
    for i in (0, 1, 3): l[i] = h5py.VirtualSource(f'raw/{i}.h5', 'x', (3, SIDE, SIDE))
    f.create_virtual_dataset('gap', l)
    l = h5py.VirtualLayout((4, 3, SIDE, SIDE), 'f4')
    l[:] = h5py.VirtualSource('.', 'x', (4, 3, SIDE, SIDE))
    f.create_virtual_dataset('twice', l)
    l = h5py.VirtualLayout((4, 3, SIDE, SIDE), 'f4', maxshape=(None, 3, SIDE, SIDE))
    l[h5py.h5s.UNLIMITED if False else slice(None)] = h5py.VirtualSource('.', 'x', (4, 3, SIDE, SIDE))
    f.create_virtual_dataset('itself', l)
"""
    with_h5py(make)
    for name in ("x", "twice", "itself"):
        same_items(config, f"v.h5:/{name}", "planes.npy")
    refused(4, "v.h5:/gap: no source is named for its item 2", "infer", config, "v.h5:/gap")
    os.makedirs("away")
    same_items(config, f"{os.getcwd()}/v.h5:/x", "planes.npy")
    os.rename("raw/2.h5", "raw/away.h5")
    refused(4, "v.h5:/x: its source raw/2.h5 is not there", "infer", config, "v.h5:/x")
    refused(4, "v.h5:/twice: its source ., dataset x: its source raw/2.h5 is not there", "infer", config, "v.h5:/twice")
    with_h5py("""
with h5py.File('raw/2.h5', 'w') as f:
    f['y'] = planes(4)[2]
""")
    refused(4, "v.h5:/x: its source raw/2.h5 has no dataset x", "infer", config, "v.h5:/x")
    with_h5py("""
with h5py.File('raw/2.h5', 'w') as f:
    x = chunked(f, 'x', (3, SIDE, SIDE), (1, SIDE, SIDE))
    x[0] = 1; x[2] = 1
""")
    refused(4, "v.h5:/x: of its source raw/2.h5, dataset x, row 1 was never written", "infer", config, "v.h5:/x")
    with_h5py("""
with h5py.File('raw/2.h5', 'w') as f:
    f['x'] = planes(4)[2][:2]
""")
    refused(4, "v.h5:/x: its source raw/2.h5 has less of x than is taken from it", "infer", config, "v.h5:/x")
    with open("raw/2.h5", "w") as file:
        file.write("no HDF5\n")
    refused(4, "v.h5:/x: its source raw/2.h5 is not there", "infer", config, "v.h5:/x")


def test_virtual_without_end():
    """Its extent is what is there of its sources, so nobody knows what is missing."""
    config = write_encoder()
    with_h5py("""
with h5py.File('s.h5', 'w', libver='latest') as f:
    f.create_dataset('x', data=planes(3), maxshape=(None, 3, SIDE, SIDE), chunks=(1, 3, SIDE, SIDE))
with h5py.File('v.h5', 'w', libver='latest') as f:
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    u = h5py.h5s.UNLIMITED
    space = h5py.h5s.create_simple((3, 3, SIDE, SIDE), (u, 3, SIDE, SIDE))
    space.select_hyperslab((0, 0, 0, 0), (1, 1, 1, 1), block=(u, 3, SIDE, SIDE))
    p.set_virtual(space, b's.h5', b'x', space)
    h5py.h5d.create(f.id, b'x', h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((3, 3, SIDE, SIDE), (u, 3, SIDE, SIDE)), p)
""")
    refused(4, "v.h5:/x: its sources are taken without an end", "infer", config, "v.h5:/x")


def test_external():
    config = write_encoder()
    write_planes(4)
    with_h5py("""
half = planes(4)[:2].nbytes
open('a.raw', 'wb').write(b'head' + planes(4)[:2].tobytes())
open('b.raw', 'wb').write(planes(4)[2:].tobytes())
with h5py.File('f.h5', 'w') as f:
    f.create_dataset('x', (4, 3, SIDE, SIDE), 'f4', external=[('a.raw', 4, half), ('b.raw', 0, h5py.h5f.UNLIMITED)])
""")
    same_items(config, "f.h5:/x", "planes.npy")
    size = os.path.getsize("b.raw")
    os.truncate("b.raw", size - 1)
    refused(4, f"f.h5:/x: its external file b.raw has {size - 1} bytes, and {size} are needed", "infer", config, "f.h5:/x")
    os.truncate("b.raw", size)
    os.truncate("a.raw", 4)
    refused(4, f"f.h5:/x: its external file a.raw has 4 bytes, and {size + 4} are needed", "infer", config, "f.h5:/x")
    os.unlink("a.raw")
    refused(4, "f.h5:/x: its external file a.raw is not there", "infer", config, "f.h5:/x")


# ---- missing and packed numbers (CF) ----

def test_packed():
    config = write_encoder()
    with_h5py("""
rng = np.random.default_rng(%d)
raw = rng.integers(0, 200, (3, 3, SIDE, SIDE)).astype('i2')
with h5py.File('f.h5', 'w') as f:
    for name, attrs in {'both': (np.float64(0.0025), np.float32(0.125)), 'scale': (np.float32(0.004), None), 'offset': (None, np.float64(0.001))}.items():
        x = f.create_dataset(name, data=raw if name != 'offset' else (raw / 200).astype('f4'))
        x.attrs['_FillValue'] = x.dtype.type(-999)
        if attrs[0] is not None: x.attrs['scale_factor'] = attrs[0]
        if attrs[1] is not None: x.attrs['add_offset'] = np.array([attrs[1]])
        np.save(name + '.npy', x[:].astype('f8') * float(attrs[0] or 1) + float(attrs[1] or 0))
    x = f.create_dataset('fill', data=(raw / 256).astype('f4'))
    x[1, 2, 0, 1] = x.dtype.type(-9e33)
    x.attrs['_FillValue'] = np.float64(-9e33) # not a number of 32 bits: the nearest one is meant
    x = f.create_dataset('filled', data=raw)
    x[2, 0, 0, 0] = -999
    x.attrs['_FillValue'] = np.int16(-999)
    x.attrs['scale_factor'] = 0.0025
    for name, value in {'many': [1., 2.], 'text': 'half', 'zero': 0., 'nan': np.nan}.items():
        x = f.create_dataset(name, data=(raw / 256).astype('f4'))
        x.attrs['scale_factor'] = value
    x = f.create_dataset('unsigned', data=raw.astype('i1'))
    x.attrs['_Unsigned'] = 'true'
""" % (SEED % 1000))
    for name in ("both", "scale", "offset"):
        same_items(config, f"f.h5:/{name}", f"{name}.npy")
    refused(4, "f.h5:/fill: item 1 has its _FillValue", "infer", config, "f.h5:/fill")
    refused(4, "f.h5:/filled: item 2 has its _FillValue", "infer", config, "f.h5:/filled")
    for name in ("many", "text", "zero", "nan"):
        refused(4, f"f.h5:/{name}: its attribute scale_factor is not one finite number other than 0", "infer", config, f"f.h5:/{name}")
    refused(4, "f.h5:/unsigned: its attribute _Unsigned says", "infer", config, "f.h5:/unsigned")


# ---- flights ----

def rewrite(flight, what):
    """The camera's pictures in chunks of a frame, never filled; `what` is done with `a`, what they are, and `there`, which frames are written."""
    return with_h5py(f"""
with h5py.File({file_of(flight, "IRAI")!r}, "r+") as f:
    a, there = f["Product/Signal"][:], list(range(len(f["Product/Signal"])))
    {what}
    del f["Product/Signal"]
    s = chunked(f, "Product/Signal", a.shape, (1, *a.shape[1:]))
    for i in there: s[i] = a[i]
    print(json.dumps(len(a)))
""")


def frames_of(path, flight):
    """What frames.bin has of a flight: for each frame its picture and its label."""
    return with_h5py(f"""
head = np.fromfile({path!r}, "<u4", 8)
frames, pictures = np.fromfile({path!r}, "<u8", 2, offset=32)
rows, columns, form, flights = head[4:8]
at = 4096 + int(pictures) * (-(-int(rows * columns * (2 if form else 1)) // 64) * 64)
flight = np.fromfile({path!r}, [("name", "S32"), ("first", "<u8"), ("frames", "<u8"), ("labels", "<u8")], flights, offset=at)
record = np.fromfile({path!r}, [("x", "<f8", 3), ("picture", "<u8"), ("profile", "<u8"), ("km", "<f4"), ("damaged", "<u4")], frames, offset=at + flight.nbytes)
f = next(f for f in flight if f["name"].decode() == {flight!r})
r = record[int(f["first"]):int(f["first"] + f["frames"])]
print(json.dumps([int(f["labels"]), (r["picture"] != 2 ** 64 - 1).tolist(), (~np.isnan(r["km"])).tolist(), r["damaged"].tolist()]))
""")


def test_frames_that_say_nothing():
    """A frame that was never written, or has no finite number, is no sample, and neither are those whose window it is in; it is said."""
    config, flight = write_clouds(temporal_frames=3), "10Feb25"
    words = ("train", config, "--quiet", "--stage", "loo-" + flight)
    run(*words, "--out", "before")
    labels, pictures, has, _ = frames_of("before/frames.bin", flight)
    damaged = DRAW.randrange(2, len(has) - 6)
    rewrite(flight, f"there.remove({damaged}); a[{damaged + 3}] = np.nan; a[{damaged + 1}, 8:10, 2] = np.inf")
    refused(2, r"frames.bin: .* other frames than those that the run in before was trained on", *words, "--out", "before", "--resume")
    check(frames_of("before/frames.bin", flight)[1] == pictures, "a run that is refused loses its frames")
    told = run(*words, "--out", "after")[1]
    wanted = [h and not {damaged, damaged + 3} & {i - 1, i, i + 1} for i, h in enumerate(has)]
    found = frames_of("after/frames.bin", flight)
    check(found[2] == wanted and found[0] == sum(wanted) < labels, found, wanted)
    check(not found[1][damaged] and not found[1][damaged + 3] and found[3][damaged + 1] >= 2, found)
    seen = [i for i in (damaged, damaged + 3) if pictures[i]]
    if seen:
        check(re.search(rf"frames without any finite number: {len(seen)} \(the first is frame {seen[0]} of flight {flight}\)", told), told)
    check("are no finite numbers" in run("plan", config, "--stage", "loo-" + flight, "--out", "after")[0], "plan says nothing")
    run(*words, "--out", "after", "--resume")
    rewrite(flight, "there = there[:1]")
    refused(4, rf"{flight}.*labels lie where frames have no finite pixel.* flight {flight} has [01] label", *words, "--out", "few")


def test_columns_never_written():
    config, flight = write_clouds(), "30Oct24"
    for which, name in (("IRAI", "Time/TimeUTC"), ("CRS", "nav/solarZenith"), ("CPL", "layer_descriptor/Layer_Base_Altitude")):
        path = file_of(flight, which)
        shutil.copy(path, "kept")
        with_h5py(f"""
with h5py.File({path!r}, "r+") as f:
    a = f[{name!r}][:]
    del f[{name!r}]
    s = chunked(f, {name!r}, a.shape, (4, *a.shape[1:]), a.dtype)
    s[:8] = a[:8]; s[12:] = a[12:]
""")
        refused(4, f"{re.escape(path)}: {name}: number 8 was never written", "train", config, "--quiet")
        shutil.copy("kept", path)


def test_packed_flight():
    """As 16-bit numbers with a scale, and heights that say that they are missing: what comes out is what the numbers mean."""
    config, flight = write_clouds(), "04Nov24"
    with_h5py(f"""
with h5py.File({file_of(flight, "IRAI")!r}, "r+") as f:
    a = np.rint(f["Product/Signal"][:].astype("f8") * 16) / 16
    bad = np.isnan(a)
    del f["Product/Signal"]
    f["Product/Signal"] = np.where(bad, np.nan, a).astype("f4")
    with h5py.File("packed.h5", "w") as g:
        f.copy("Time", g)
        s = g.create_dataset("Product/Signal", data=np.where(bad, -999, np.rint((a - 100) * 16)).astype("i2"))
        s.attrs["scale_factor"], s.attrs["add_offset"], s.attrs["_FillValue"] = np.float32(0.0625), 100.0, np.int16(-999)
""")
    run("train", config, "--quiet", "--stage", "loo-10Feb25", "--out", "plain")
    shutil.move("packed.h5", file_of(flight, "IRAI"))
    run("train", config, "--quiet", "--stage", "loo-10Feb25", "--out", "packed")
    check(frames_of("plain/frames.bin", flight) == frames_of("packed/frames.bin", flight), "other frames")
    a, b = (open(f"{n}/frames.bin", "rb").read()[4096:] for n in ("plain", "packed"))
    size = min(len(a), len(b)) - 3 * 3 * 64
    check(a[:size] == b[:size], "other pictures")


if __name__ == "__main__":
    main({
        "stored": [test_chunks_never_written, test_contiguous_never_written, test_ids_never_written, test_virtual,
                   test_virtual_without_end, test_external, test_packed],
        "damaged_flights": [test_frames_that_say_nothing, test_columns_never_written, test_packed_flight],
    })
