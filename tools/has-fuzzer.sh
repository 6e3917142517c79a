#!/bin/sh
# Can this machine build the fuzz targets? Exit 0 when clang links a program with libFuzzer, the sanitizers and OpenMP;
# 77 with the reason otherwise. That is the question the build would ask, so no version or path is guessed.
if ! command -v clang >/dev/null 2>&1; then
    echo "No clang: the fuzz targets are only replayed. To install: apt-get install clang libclang-rt-14-dev libomp-dev"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/probe.c" <<'PROBE'
#include <omp.h>
#include <stddef.h>
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) { return data && size > (size_t)omp_get_max_threads(); }
PROBE
clang -fopenmp -fsanitize=fuzzer,address,undefined "$folder/probe.c" -o "$folder/probe" 2>"$folder/why" && exit 0
echo "clang is there, but not all of libFuzzer, sanitizers and OpenMP: the fuzz targets are only replayed." \
    "To install: apt-get install libclang-rt-14-dev libomp-dev. It said:"
head -n 5 "$folder/why"
exit 77
