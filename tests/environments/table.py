"""The environments, as values: what is set, what is put before the command, what may differ from a plain one.

`plan` says which plan the run is held to, to the byte: the plain one (nothing that is set may change it) or one made in the
same environment (fewer cores, another instruction set). `bits` says whether weights must be those of the plain run."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Environment:
    variables: dict = dataclasses.field(default_factory=dict)
    without: tuple = ()  # variables taken away
    shell: str = ""  # run by sh before it becomes the command
    prefix: tuple = ()
    keys: dict = dataclasses.field(default_factory=dict)
    plan: str = "plain"  # or "own"
    bits: bool = True
    brief: bool = True  # in `make test`; the others in `make soak`
    units: bool = True  # may the unit programs be expected to pass in it
    libomp: bool = True  # LLVM's OpenMP, in a clang build, ends every program that it finds without /dev/shm

    def command(self, words):
        if self.shell:
            words = ["sh", "-c", self.shell + ' && exec "$@"', "sh", *words]
        return [*self.prefix, *words]


def on(brief=True, **variables):
    return Environment(variables, brief=brief)


def isa(name):
    return Environment({"PLIMSOLL_ISA": name}, plan="own", bits=False, units=False)


def tunables(text, brief=False):
    return on(brief, GLIBC_TUNABLES=text)


def shell(text, **more):
    return Environment(shell=text, **more)


def namespace(options, mounts="", libomp=True):
    """A container, roughly. Needs root or user namespaces."""
    return Environment(shell=mounts, prefix=("unshare", *options), units=not mounts, libomp=libomp)


TABLE = {
    # instruction sets: ours, and what other libraries listen to
    "isa ref": isa("ref"),
    "isa baseline": isa("baseline"),
    "isa avx2": isa("avx2"),
    "isa avx512": isa("avx512"),
    "isa avx512_bf16": isa("avx512_bf16"),
    "isa amx": isa("amx"),
    "oneDNN at AVX2": on(ONEDNN_MAX_CPU_ISA="AVX2"),
    "oneDNN at SSE41, verbose": on(False, ONEDNN_MAX_CPU_ISA="SSE41", ONEDNN_VERBOSE="2"),
    "one thread for other libraries": on(False, OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", BLIS_NUM_THREADS="1"),
    # OpenMP
    "OMP_DYNAMIC": on(OMP_DYNAMIC="true"),
    "OMP_THREAD_LIMIT 2": on(OMP_THREAD_LIMIT="2"),
    "OMP_THREAD_LIMIT 64, 64 threads": Environment({"OMP_THREAD_LIMIT": "64"}, keys={"run__threads": 64}, plan="own", units=False),
    "OMP_THREAD_LIMIT 1, auto": Environment({"OMP_THREAD_LIMIT": "1"}, keys={"run__threads": "auto"}, plan="own", units=False),
    "OMP_NUM_THREADS 1": on(OMP_NUM_THREADS="1"),
    "OMP_NUM_THREADS 4,2, nested": on(False, OMP_NUM_THREADS="4,2", OMP_NESTED="true", OMP_MAX_ACTIVE_LEVELS="3"),
    "OMP_STACKSIZE": on(OMP_STACKSIZE="64M"),
    "OMP_MAX_ACTIVE_LEVELS 0": on(OMP_MAX_ACTIVE_LEVELS="0"),
    "OMP_PLACES": on(False, OMP_PLACES="{0}", OMP_PROC_BIND="true"),
    "OMP_CANCELLATION": on(False, OMP_CANCELLATION="true", OMP_SCHEDULE="dynamic,1"),
    "GOMP_CPU_AFFINITY": on(False, GOMP_CPU_AFFINITY="0"),
    "spinning": on(OMP_WAIT_POLICY="active"),
    # malloc and the loader
    "MALLOC_PERTURB_": on(MALLOC_PERTURB_="165"),
    "MALLOC_ARENA_MAX": on(False, MALLOC_ARENA_MAX="8"),
    "MALLOC_TOP_PAD_": Environment({"MALLOC_TOP_PAD_": "10000000"}, units=False),
    "MALLOC_MMAP_THRESHOLD_": on(False, MALLOC_MMAP_THRESHOLD_="4096"),
    "malloc without tcache": tunables("glibc.malloc.tcache_count=0"),
    "malloc hugetlb 1": tunables("glibc.malloc.hugetlb=1", True),
    "malloc hugetlb 2": Environment({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2"}, units=False),
    "malloc mmap_threshold": tunables("glibc.malloc.mmap_threshold=4096"),
    "malloc top_pad": Environment({"GLIBC_TUNABLES": "glibc.malloc.top_pad=1000000"}, brief=False, units=False),
    "no stack cache": tunables("glibc.pthread.stack_cache_size=0"),
    "hwcaps": tunables("glibc.cpu.hwcaps=-AVX512F,-AVX2"),
    "LD_BIND_NOW": on(LD_BIND_NOW="1"),
    "LD_LIBRARY_PATH": on(False, LD_LIBRARY_PATH="/nonexistent:/tmp"),
    "empty environment": Environment(prefix=("env", "-i")),
    "large environment": on(PADDING="x" * 100_000),
    # limits and scheduling
    "ulimit -s 64 MB": shell("ulimit -s 65536"),
    "ulimit -s unlimited": shell("ulimit -s unlimited"),
    "ulimit -s 1 MB": shell("ulimit -s 1024", units=False),
    "ulimit -n 16": shell("ulimit -n 16", brief=False),
    "ulimit -l 0": shell("ulimit -l 0", brief=False),
    "ulimit -v 200 MB": shell("ulimit -v 200000", brief=False, units=False),
    "one core": Environment(prefix=("taskset", "-c", "0")),
    "one core, auto": Environment(prefix=("taskset", "-c", "0"), keys={"run__threads": "auto"}, plan="own", units=False),
    "nice": Environment(prefix=("nice", "-n", "19"), brief=False),
    "umask 077": shell("umask 077"),
    "umask 000": shell("umask 000", brief=False),
    # languages and time
    "C": on(LANG="C", LC_ALL="C"),
    "C.UTF-8": on(LANG="C.UTF-8", LC_ALL="C.UTF-8"),
    "a locale that is not there": on(False, LC_ALL="xx_YY.UTF-8"),
    "a time zone that is not there": on(TZ=":/etc/nothing"),
    # terminals
    "TERM dumb, COLUMNS 0": on(TERM="dumb", COLUMNS="0", LINES="0"),
    "COLUMNS huge, NO_COLOR": on(False, COLUMNS="99999999999", NO_COLOR="1", TERM="xterm"),
    # homes and caches: no cache, kernels are measured anew each time
    "no home": Environment(without=("HOME", "XDG_CACHE_HOME"), units=False),
    "a home that is not there": Environment({"HOME": "/nonexistent/home"}, without=("XDG_CACHE_HOME",), units=False),
    "a home that is a file": Environment({"HOME": "/dev/null"}, without=("XDG_CACHE_HOME",), brief=False, units=False),
    "a relative home": Environment({"HOME": "here"}, without=("XDG_CACHE_HOME",), brief=False, units=False),
    "a read-only home": Environment({"HOME": "/proc"}, without=("XDG_CACHE_HOME",), brief=False, units=False),
    "a cache that cannot be": Environment({"XDG_CACHE_HOME": "/dev/null/cache"}, brief=False, units=False),
    "TMPDIR that is not there": Environment({"TMPDIR": "/nonexistent"}, units=False),
    # containers
    "own processes": namespace(("-p", "-f", "--mount-proc")),
    "own users": namespace(("-U",)),
    "no network": namespace(("-n",)),
    "no /sys": namespace(("-m",), "mount -t tmpfs none /sys"),
    "no /dev/shm": namespace(("-m",), "mount -t tmpfs -o ro none /dev/shm", libomp=False),
    "no /dev": namespace(("-m",), "mount -t tmpfs none /dev", libomp=False),
    "/proc of processes only": namespace(("-p", "-f", "-m"), "mount -t proc -o hidepid=2,subset=pid proc /proc"),
}
