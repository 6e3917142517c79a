#!/bin/sh
# Installs what a job needs and this machine lacks: tools/install-dependencies.sh GROUP…
# Each package has a probe; only packages whose probe fails are asked of apt-get, so a machine that has everything (from
# wherever) is never touched, and the answer takes a tenth of a second. Works as root or through sudo, asks no question.
#   NO_INSTALL=1  install nothing: say what is missing and go on
# Exit: 0 all there (or only optional packages missing), 1 something is missing and could not be installed.
set -eu

# group | package | probe | why           (a group that begins with "?" is optional: without it a part is skipped)
table='
build|gcc|command:gcc|compiles Plimsoll (C17 with OpenMP)
build|libc6-dev|header:stdio.h|the C library to compile against
build|cmake|command:cmake|configures the build
build|ninja-build|command:ninja|runs the build on all cores
build|pkg-config|command:pkg-config|finds the libraries below
build|libyaml-dev|pkg-config:yaml-0.1|reads configurations
build|libjansson-dev|pkg-config:jansson|reads JSON (tokenizers, state of a run)
build|libxxhash-dev|header:xxhash.h|checksums of files
?build|libhdf5-dev|pkg-config:hdf5-serial|results in HDF5 form, and HDF5 files of yours; without it results in the forms native and npy only, and .npy files only
?build|libraqm-dev|pkg-config:raqm|lays out lines of any script (brings FreeType, HarfBuzz, FriBidi); no text is drawn without it
?build|zlib1g-dev|pkg-config:zlib|reads texts that gzip compressed; they have to be unpacked without it
?build|libpng-dev|pkg-config:libpng|pages as pictures, and pictures in PNG for infer; no text is drawn, and none of these is read without it
?build|libjpeg62-turbo-dev|pkg-config:libjpeg|the module that reads pictures in JPEG and PNG for infer; they are not read without it
?build|libsqlite3-dev|header:sqlite3.h|a cache of drawn pages; none without it
?build|libprotobuf-c-dev|pkg-config:libprotobuf-c|writes models as ONNX; no export to ONNX without it
?build|protobuf-c-compiler|command:protoc-c|makes C of the schema of ONNX; no export to ONNX without it
?build|libonnx-dev|file:/usr/include/onnx/onnx.proto|the schema of ONNX; no export to ONNX without it
?build|fonts-dejavu-core|file:/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf|the font that texts are drawn in; another can be named
package|dpkg-dev|command:dpkg-shlibdeps|finds the packages that the libraries linked are from
package|git|command:git|writes the archive of the sources
test|libcmocka-dev|pkg-config:cmocka|the unit tests
test|python3|command:python3|the tests of structure, of files and of the command line; the closing line of a test run
test|valgrind|command:valgrind|the valgrind pass
?test|strace|command:strace|what the tests of I/O faults count is compared with what strace counts; not compared without it
?test|python3-h5py|python:h5py|another program that reads results in HDF5 and .npy form; not compared without it
?test|python3-pil|python:PIL|another program that draws pages; not compared without it
?test|mmdebstrap|command:mmdebstrap|a bare Debian to try the first commands in; skipped without it
?test|locales|file:/usr/share/i18n/locales/de_DE|languages with a decimal comma and a dotless i to test under; skipped without it
?soak|clang|command:clang|the search with the fuzz targets and a second compiler; skipped without it
?soak|libclang-rt-14-dev|clang-runtime|the libFuzzer and sanitizer runtime of clang; skipped without it
?soak|libomp-dev|clang-openmp|OpenMP for what clang builds; skipped without it
chat|python3-pip|python:pip|fetches the language model of the demo
?bench|python3|command:python3|the control of the benchmarks: the same job in a memory group, in the classic way; skipped without it
?format|clang-format|command:clang-format|one layout for all sources
'

# Is a compiler needed for a header probe not there yet, the header counts as missing: the package brings it.
has_header() {
    printf '#include <%s>\n' "$1" | ${CC:-cc} -fsyntax-only -xc - 2>/dev/null
}

has_clang_runtime() {
    command -v clang >/dev/null 2>&1 && [ -e "$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a)" ] ||
        ls "$(clang -print-resource-dir 2>/dev/null)"/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1
}

has_clang_openmp() {
    command -v clang >/dev/null 2>&1 && printf '#include <omp.h>\n' | clang -fopenmp -fsyntax-only -xc - 2>/dev/null
}

is_there() {
    case $1 in
    command:*) command -v "${1#*:}" >/dev/null 2>&1 ;;
    pkg-config:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#*:}" ;;
    header:*) has_header "${1#*:}" ;;
    file:*) [ -e "${1#*:}" ] ;;
    python:*) python3 -c "import ${1#*:}" 2>/dev/null || /usr/bin/python3 -c "import ${1#*:}" 2>/dev/null ;;
    clang-runtime) has_clang_runtime ;;
    clang-openmp) has_clang_openmp ;;
    esac
}

# Prints "package|why" of every missing package of a group (with its optional ones: "?group").
missing_of_group() {
    echo "$table" | while IFS='|' read -r group package probe why; do
        [ "$group" = "$1" ] || continue
        is_there "$probe" || echo "$package|$why"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@" || sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

may_install() {
    [ "${NO_INSTALL:-0}" != 1 ] && command -v apt-get >/dev/null 2>&1 &&
        { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || { [ -t 0 ] && command -v sudo >/dev/null 2>&1; }; }
}

# The index of packages is fetched only when something is missing, and once.
install_packages() {
    [ -n "${updated:-}" ] || as_root apt-get update -qq >&2 || echo "apt-get update failed; trying with the index at hand" >&2
    updated=1
    # shellcheck disable=SC2086
    as_root apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 $1 >&2
}

names_of() { echo "$1" | cut -d'|' -f1 | tr '\n' ' ' | sed 's/ *$//'; }

say_missing() {
    echo "$1" | while IFS='|' read -r package why; do printf '  %-20s %s\n' "$package" "$why" >&2; done
}

status=0
for group in "$@"; do
    missing=$(missing_of_group "$group")
    optional=$(missing_of_group "?$group")
    if [ -n "$missing" ]; then
        echo "Missing on this machine, for '$group':" >&2
        say_missing "$missing"
        if may_install; then
            echo "Installing: $(names_of "$missing")" >&2
            install_packages "$(names_of "$missing")" || true
        fi
        if [ -n "$(missing_of_group "$group")" ]; then
            echo "Not installed. To install by hand: apt-get install --no-install-recommends" \
                "$(names_of "$(missing_of_group "$group")") (as root)" >&2
            status=1
        fi
    fi
    if [ -n "$optional" ]; then
        echo "Optional on this machine, for '$group':" >&2
        say_missing "$optional"
        if may_install; then
            echo "Installing: $(names_of "$optional")" >&2
            install_packages "$(names_of "$optional")" || echo "Not installed; going on without." >&2
        fi
    fi
done
[ "${NO_INSTALL:-0}" = 1 ] && exit 0
exit $status
