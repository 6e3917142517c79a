#!/bin/sh
# Installs into a temporary prefix and uses it as a stranger would: test_install.sh PART BUILD_FOLDER SOURCE_FOLDER
#   files       everything is there; nothing in it names the build or the source folder
#   exports     libplimsoll.so exports exactly the functions that the public headers mark PL_API
#   headers     each public header compiles alone, strictly, and as C99
#   pkg_config  a small program, against the shared library and against the archive
#   cmake       the same through find_package
#   command     the installed command and its man page
set -eu
part=$1
build=$2
source=$3
cc=${CC:-cc}
root=$(mktemp -d "${TMPDIR:-/tmp}/plimsoll-install-XXXXXX")
trap 'rm -rf "$root"' EXIT
prefix=$root/usr

fail() {
    echo "$*"
    exit 1
}

DESTDIR='' cmake --install "$build" --prefix "$prefix" >"$root/log" || { cat "$root/log"; exit 1; }
# The folder of libraries is lib, lib64 or lib/x86_64-linux-gnu.
pc=$(find "$prefix" -name plimsoll.pc)
[ -n "$pc" ] || fail "plimsoll.pc was not installed"
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$lib/pkgconfig"

test_files() {
    for file in "$lib/libplimsoll.a" "$lib/libplimsoll.so" "$prefix/include/plimsoll/plimsoll.h" \
        "$lib/cmake/plimsoll/plimsollConfig.cmake"; do
        [ -e "$file" ] || fail "not installed: $file"
    done
    [ -L "$lib/libplimsoll.so" ] || fail "libplimsoll.so should be a link to its version"
    leaked=$(grep -rlF -e "$build" -e "$source" "$lib/cmake" "$pc" "$prefix/include" || true)
    [ -z "$leaked" ] || fail "these name the folder they were built in: $leaked"
    # The same through DESTDIR, as a packager does it.
    DESTDIR=$root/package cmake --install "$build" --prefix /usr >"$root/log"
    [ -e "$root/package/usr/include/plimsoll/status.h" ] || fail "DESTDIR was not respected"
}

test_exports() {
    nm -D --defined-only "$lib/libplimsoll.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$root/exported"
    # After the preprocessor, of each declaration with default visibility, the first pl_… before a parenthesis.
    printf '#include "plimsoll/plimsoll.h"\n' | $cc -E -P -I"$prefix/include" -xc - | tr '\n' ' ' | tr ';{}' '\n\n\n' |
        grep 'visibility("default")' | sed 's/^[^;]*visibility("default")//' |
        grep -o 'pl_[a-z0-9_]* *(' | tr -d ' (' >"$root/names"
    # Parameters hold no calls, so each declaration gave one name.
    sort "$root/names" >"$root/declared"
    [ -s "$root/declared" ] || fail "no PL_API declaration found in the headers"
    diff "$root/declared" "$root/exported" || fail "declared (<) and exported (>) differ"
}

test_headers() {
    for header in "$prefix"/include/plimsoll/*.h; do
        for standard in c99 c17; do
            printf '#include "plimsoll/%s"\nint unused;\n' "$(basename "$header")" |
                $cc -std=$standard -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include" -xc - ||
                fail "$header does not compile alone as $standard"
        done
    done
}

test_pkg_config() {
    program=$source/tests/install/consumer/consumer.c
    # shellcheck disable=SC2046
    $cc "$program" -o "$root/shared" $(pkg-config --cflags --libs plimsoll) "-Wl,-rpath,$lib"
    "$root/shared" || fail "the program linked with libplimsoll.so failed"
    # shellcheck disable=SC2046
    $cc "$program" -o "$root/static" $(pkg-config --cflags plimsoll) "$lib/libplimsoll.a" \
        $(pkg-config --static --libs-only-l plimsoll | sed 's/-lplimsoll//')
    "$root/static" || fail "the program linked with libplimsoll.a failed"
}

test_cmake() {
    cmake -S "$source/tests/install/consumer" -B "$root/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$root/log" &&
        cmake --build "$root/consumer" >>"$root/log" || { cat "$root/log"; exit 1; }
    "$root/consumer/consumer_shared" || fail "plimsoll::plimsoll: the program failed"
    "$root/consumer/consumer_static" || fail "plimsoll::static: the program failed"
}

test_command() {
    [ -x "$prefix/bin/plimsoll" ] || { echo "this build has no command"; exit 77; }
    "$prefix/bin/plimsoll" --help >/dev/null || fail "plimsoll --help fails"
    page=$prefix/share/man/man1/plimsoll.1
    [ -s "$page" ] || fail "no man page: $page"
    grep -q '^\.SH DESCRIPTION' "$page" || fail "the man page has no description"
    if command -v groff >/dev/null 2>&1; then
        said=$(groff -man -Tutf8 -ww -rLL=200n "$page" 2>&1 >/dev/null)
        [ -z "$said" ] || fail "groff warns about the man page: $said"
    fi
}

"test_$part"
