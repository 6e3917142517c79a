#!/bin/sh
# Installs into a temporary prefix and uses it as a stranger would: test_install.sh PART BUILD_FOLDER SOURCE_FOLDER
#   files       everything is there; nothing in it names the build or the source folder
#   manifest    nothing is missing and nothing else is there: what a package of it holds
#   exports     libplimsoll.so exports exactly the functions that the public headers mark PL_API
#   headers     each public header compiles alone, strictly, as C99 and as C++
#   pkg_config  two small programs, against the shared library and against the archive; one trains the small perceptron
#   cmake       the same through find_package
#   version     command, headers, shared library, pkg-config and CMake say the same one; the licence is there and named
#   command     the installed command and its man page; the command trains where it was not installed
#   uninstall   leaves no file of ours and takes none of another's, with PREFIX and with DESTDIR
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
    # Modules are built where their libraries are. The installed command finds its own.
    if [ -e "$build/plimsoll-hdf5.so" ]; then
        [ -e "$lib/plimsoll/plimsoll-hdf5.so" ] || fail "the module for HDF5 was not installed"
        for share in 0 1 2; do "$build/leave_results" hdf5 "$root/$share.h5" $share 1 || fail "no results to join"; done
        "$prefix/bin/plimsoll" results join "$root/all.h5" "$root/0.h5" "$root/1.h5" "$root/2.h5" ||
            fail "the installed command cannot make HDF5 files"
    fi
    if [ -e "$build/plimsoll-draw.so" ]; then
        [ -e "$lib/plimsoll/plimsoll-draw.so" ] || fail "the module that draws was not installed"
        font=/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf
        [ ! -e "$font" ] || "$prefix/bin/plimsoll" draw text --out "$root/page.png" || fail "the installed command cannot draw"
    fi
    if [ -e "$build/plimsoll-cache.so" ]; then
        [ -e "$lib/plimsoll/plimsoll-cache.so" ] || fail "the module for a cache of pages was not installed"
    fi
    [ -L "$lib/libplimsoll.so" ] || fail "libplimsoll.so should be a link to its version"
    leaked=$(grep -rlF -e "$build" -e "$source" "$lib/cmake" "$pc" "$prefix/include" || true)
    [ -z "$leaked" ] || fail "these name the folder they were built in: $leaked"
    # The same through DESTDIR, as a packager does it.
    DESTDIR=$root/package cmake --install "$build" --prefix /usr >"$root/log"
    [ -e "$root/package/usr/include/plimsoll/status.h" ] || fail "DESTDIR was not respected"
}

test_manifest() {
    version=$(basename "$(readlink -f "$lib/libplimsoll.so")" | sed 's/^libplimsoll\.so\.//')
    below=${lib#"$prefix"/}
    {
        printf '%s\n' bin/plimsoll share/man/man1/plimsoll.1 share/doc/plimsoll/LICENSE share/doc/plimsoll/CHANGELOG.md \
            share/bash-completion/completions/plimsoll share/fish/vendor_completions.d/plimsoll.fish \
            "$(find "$prefix/share/zsh" -name _plimsoll | sed "s|^$prefix/||")" \
            "$below/libplimsoll.a" "$below/libplimsoll.so" "$below/libplimsoll.so.${version%.*}" "$below/libplimsoll.so.$version" \
            "$below/pkgconfig/plimsoll.pc" "$below/cmake/plimsoll/plimsollConfig.cmake" \
            "$below/cmake/plimsoll/plimsollConfigVersion.cmake" "$below/cmake/plimsoll/plimsollTargets.cmake" \
            "$(find "$lib/cmake" -name 'plimsollTargets-*.cmake' | sed "s|^$prefix/||")"
        (cd "$source" && find include examples docs -type f ! -name '.*') |
            sed 's|^examples/|share/plimsoll/&|; s|^docs/|share/doc/plimsoll/&|'
        (cd "$build" && ls plimsoll-*.so 2>/dev/null) | sed "s|^|$below/plimsoll/|"
    } | sort >"$root/wanted"
    (cd "$prefix" && find . ! -type d) | sed 's|^\./||' | sort >"$root/found"
    diff "$root/wanted" "$root/found" || fail "wanted (<) and installed (>) differ"
    "$prefix/bin/plimsoll" plan "$prefix/share/plimsoll/examples/fables.yaml" --text "$prefix/share/plimsoll/examples/fables.txt" \
        --out "$root/run" >"$root/log" 2>&1 || fail "the example does not plan: $(cat "$root/log")"
    [ ! -e "$root/run" ] || fail "plan leaves a folder"
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
        for compiler in g++ clang++; do
            command -v $compiler >/dev/null 2>&1 || continue
            printf '#include "plimsoll/%s"\n' "$(basename "$header")" |
                $compiler -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" -xc++ - ||
                fail "$header does not compile alone with $compiler"
        done
    done
    command -v g++ >/dev/null 2>&1 || { echo "no g++: nothing was linked from C++"; return; }
    # shellcheck disable=SC2046
    g++ -std=c++11 "$source/tests/install/consumer/consumer.cpp" -o "$root/cpp" $(pkg-config --cflags --libs plimsoll) \
        "-Wl,-rpath,$lib"
    "$root/cpp" || fail "a C++ program linked with libplimsoll.so failed"
}

# The small perceptron on a text of its own; the program runs in a folder that is neither ours nor the build's.
train_perceptron() { # program
    place=$root/place-$(basename "$1")
    mkdir "$place"
    cp "$source/examples/mlp.yaml" "$place"
    printf '\nrun: {out: run, threads: 1}\n' >>"$place/mlp.yaml"
    sed -i 's/^  tokenizer: bytes$/&\n  text: text.txt/' "$place/mlp.yaml"
    awk 'BEGIN { for (i = 0; i < 20000; i++) printf "%s ", substr("abracadabra", i % 11 + 1, i * i % 5 + 1) }' >"$place/text.txt"
    (cd "$place" && "$1") >"$root/log" 2>&1 || fail "$1 does not train: $(cat "$root/log")"
    sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "$place/run/metrics.jsonl" >"$root/losses"
    awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR > 1 && last < first / 2) }' "$root/losses" ||
        fail "$1: the loss does not fall by half: $(tr '\n' ' ' <"$root/losses")"
}

# What a program trained through the library is a folder of a run like any other: the command reads it from anywhere, and
# goes on with it.
use_what_was_trained() { # program
    command=$prefix/bin/plimsoll
    [ -x "$command" ] || return 0
    place=$root/place-$(basename "$1")
    sed -n 's/.*"validation_loss": *\([0-9.]*\).*/\1/p' "$place/run/metrics.jsonl" | tail -1 >"$root/reported"
    [ -s "$root/reported" ] || fail "$1: no validation loss in metrics.jsonl"
    (cd / && "$command" eval "$place/run" --json) >"$root/eval" || fail "plimsoll eval does not read what $1 trained"
    sed -n 's/.*"loss":\([0-9.]*\),.*/\1/p' "$root/eval" | paste - "$root/reported" |
        awk '{ exit !($1 > 0 && $1 < 2 * $2 && $2 < 2 * $1) }' ||
        fail "plimsoll eval finds another loss than $1 reported: $(cat "$root/eval" "$root/reported")"
    (cd / && "$command" generate "$place/run" --prompt abra --tokens 20) >"$root/text" || fail "plimsoll generate fails"
    grep -q '^abra.' "$root/text" || fail "plimsoll generate wrote nothing: $(cat "$root/text")"
    steps=$(($(sed -n 's/^{"step":\([0-9]*\),.*/\1/p' "$place/run/metrics.jsonl" | tail -1) + 5))
    (cd / && "$command" train "$place/run" --resume --quiet --steps $steps) || fail "plimsoll train --resume fails"
    grep -q "^{\"step\":$steps," "$place/run/metrics.jsonl" || fail "the command did not go on to step $steps"
}

# The likeliest byte behind 32 is what the command would write there.
infer_as_it_goes_on() { # program that trained, program that infers
    command=$prefix/bin/plimsoll
    [ -x "$command" ] || return 0
    run=$root/place-$(basename "$1")/run
    at=1000
    while [ $at -lt 1005 ]; do
        prompt=$(tail -c +$at "$run/../text.txt" | head -c 32)
        found=$(cd / && "$2" "$run" "$prompt") || fail "$2 fails"
        wanted=$(cd / && "$command" generate "$run" --prompt "$prompt" --tokens 1 --temperature 0) || fail "plimsoll generate fails"
        [ "$prompt$found" = "$wanted" ] || fail "$2 finds \"$found\" behind \"$prompt\", plimsoll generate writes \"$wanted\""
        at=$((at + 1))
    done
}

# A model of somebody else's goes on from a prompt as the command does.
generate_as_the_command() { # program
    command=$prefix/bin/plimsoll
    [ -x "$command" ] || return 0
    [ -d "$root/model" ] || (cd "$source/tests/cli" && python3 -B -c 'import sys, pretrained_models as p; p.Model("llama", 3).save(sys.argv[1])' "$root/model")
    found=$(cd / && "$1" "$root/model" "the cat") || fail "$1 fails"
    wanted=$(cd / && "$command" generate "$root/model" "the cat" --quiet) || fail "plimsoll generate fails on a model of somebody else's"
    [ "the cat$found" = "$wanted" ] || fail "$1 writes \"$found\", plimsoll generate \"$wanted\""
}

test_pkg_config() {
    for program in train infer generate; do
        lines=$(sed -n '/^int main/,/^}/p' "$source/tests/install/consumer/$program.c" | grep -c '^    ')
        [ "$lines" -le 10 ] || fail "$program.c has $lines lines; a stranger should need no more than ten"
    done
    for program in consumer train infer generate; do
        file=$source/tests/install/consumer/$program.c
        # shellcheck disable=SC2046
        $cc "$file" -o "$root/${program}_shared" $(pkg-config --cflags --libs plimsoll) "-Wl,-rpath,$lib"
        # shellcheck disable=SC2046
        $cc "$file" -o "$root/${program}_static" $(pkg-config --cflags plimsoll) "$lib/libplimsoll.a" \
            $(pkg-config --static --libs-only-l plimsoll | sed 's/-lplimsoll//')
    done
    "$root/consumer_shared" || fail "the program linked with libplimsoll.so failed"
    "$root/consumer_static" || fail "the program linked with libplimsoll.a failed"
    train_perceptron "$root/train_shared" # statically: test_cmake
    infer_as_it_goes_on "$root/train_shared" "$root/infer_shared"
    infer_as_it_goes_on "$root/train_shared" "$root/infer_static"
    use_what_was_trained "$root/train_shared"
    generate_as_the_command "$root/generate_shared"
    generate_as_the_command "$root/generate_static"
}

test_cmake() {
    cmake -S "$source/tests/install/consumer" -B "$root/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$root/log" &&
        cmake --build "$root/consumer" >>"$root/log" || { cat "$root/log"; exit 1; }
    "$root/consumer/consumer_shared" || fail "plimsoll::plimsoll: the program failed"
    "$root/consumer/consumer_static" || fail "plimsoll::static: the program failed"
    train_perceptron "$root/consumer/train_static"
}

test_version() {
    want=$(sed -n 's/^#define PL_VERSION_[MP][A-Z]* *\([0-9]*\)$/\1/p' "$prefix/include/plimsoll/version.h" | paste -sd.)
    echo "$want" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || fail "version.h names no version: $want"
    check() { [ "$2" = "$want" ] || fail "$1 says version \"$2\", version.h \"$want\""; }
    if [ -x "$prefix/bin/plimsoll" ]; then
        check "the command" "$("$prefix/bin/plimsoll" --version | sed -n 's/^plimsoll //p')"
        check "the man page" "$(sed -n 's/^\.TH .*"plimsoll \([^"]*\)".*/\1/p' "$prefix/share/man/man1/plimsoll.1")"
    fi
    check pkg-config "$(pkg-config --modversion plimsoll)"
    check "the CMake package" "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' "$lib/cmake/plimsoll/plimsollConfigVersion.cmake")"
    check "the name of the shared library" "$(basename "$(readlink -f "$lib/libplimsoll.so")" | sed 's/^libplimsoll\.so\.//')"
    # shellcheck disable=SC2046
    printf '#include <plimsoll/plimsoll.h>\n#include <stdio.h>\nint main(void) { return printf("%%s %%s", pl_version(), PL_VERSION) < 0; }\n' |
        $cc -xc - -o "$root/version" $(pkg-config --cflags --libs plimsoll) "-Wl,-rpath,$lib"
    [ "$("$root/version")" = "$want $want" ] || fail "pl_version() and PL_VERSION are $("$root/version"), version.h says $want"
    cmp "$source/LICENSE" "$prefix/share/doc/plimsoll/LICENSE" || fail "the licence is not installed"
    grep -qx 'License: Apache-2.0' "$pc" || fail "plimsoll.pc does not name the licence"
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
    # The runner is this very file, wherever it lies and whatever it is called.
    mkdir "$root/else where"
    mv "$prefix/bin/plimsoll" "$root/else where/another name"
    printf '#!/bin/sh\nexec "%s" train mlp.yaml --quiet\n' "$root/else where/another name" >"$root/moved"
    chmod +x "$root/moved"
    train_perceptron "$root/moved"
}

test_uninstall() {
    echo "not ours" >"$prefix/share/theirs"
    echo "not ours" >"$prefix/include/plimsoll/theirs.h"
    "$source/tools/uninstall.sh" "$build" "$prefix" >"$root/log"
    left=$(find "$prefix" ! -type d)
    [ "$left" = "$(printf '%s\n%s' "$prefix/share/theirs" "$prefix/include/plimsoll/theirs.h")" ] ||
        [ "$left" = "$(printf '%s\n%s' "$prefix/include/plimsoll/theirs.h" "$prefix/share/theirs")" ] ||
        fail "uninstall leaves or takes too much; left are: $left"
    [ ! -e "$lib/cmake/plimsoll" ] || fail "an empty folder of ours is left: $lib/cmake/plimsoll"
    DESTDIR=$root/package cmake --install "$build" --prefix /usr >"$root/log"
    "$source/tools/uninstall.sh" "$build" /usr "$root/package" >"$root/log"
    left=$(find "$root/package" ! -type d)
    [ -z "$left" ] || fail "uninstall with DESTDIR leaves: $left"
}

"test_$part"
