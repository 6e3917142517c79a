#!/usr/bin/env bash
# What `make deb` and `make dist` make, tried where a stranger tries it: packages.sh SOURCE FOLDER BUILD
# In a bare Debian 12 (made in FOLDER, as tests/environments/bare_root.sh says)
#   the package is installed, and an ordinary user trains on the text that it brings: four commands, timed
#   the modules load once what is recommended is there; a program is compiled against the library; lintian finds no error
#   removed, it leaves nothing
#   the archive runs from a folder with a blank in its name, where none of its libraries is installed
# With SUITE=trixie the first of these alone, in a bare Debian 13, with the package as it was made here.
# The archive of the sources is unpacked and, with WHOLE=1, built and tried: minutes.
set -euo pipefail
source=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
build=$3 # as the Makefile's BUILD
here=$(cd "${0%/*}" && pwd)
# shellcheck source=tests/environments/bare_root.sh
. "$here/../environments/bare_root.sh"

make_packages() { # deb or dist
    (cd "$source" && BUILD=$build JOBS=$(nproc) NO_INSTALL=1 tools/make-packages.sh "$1") >"$folder/said.txt" 2>&1 ||
        { cat "$folder/said.txt" >>"$log"; fail "make $1 ends with $?"; }
    cat "$folder/said.txt" >>"$log"
}
apt() { inside root DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" || fail "apt-get $*: $?"; }
files_of_package() { chroot "$root" dpkg -L plimsoll | while IFS= read -r f; do [ -d "$root$f" ] || echo "$f"; done; }

project=/srv/project
mkdir -p "$root$project"
make_packages deb
make_packages dist
built=$(cd "$source" && cd "$build-package" && pwd)
deb=$(cd "$built" && ls -t plimsoll_*.deb | head -n 1) # of an earlier version there may be others
version=${deb#plimsoll_} version=${version%-*}
cp "$built/$deb" "$built/plimsoll-$version.tar.gz" "$built/plimsoll-$version-linux-x86_64.tar.gz" "$root$project"
inside root apt-get update -qq || skip "no packages can be had here: $(tail -n 1 "$log")"
chroot "$root" useradd --create-home somebody
home=$(home_of somebody)

# Four commands.
recommended=no # features are tried below; in another release those that can be had there are shown
[ "$suite" = bookworm ] || recommended=yes
apt install -o "APT::Install-Recommends=$recommended" "./$deb"
project=$home
examples=/usr/share/plimsoll/examples
began=$SECONDS
inside somebody plimsoll --version || fail "--version: $?"
expect '^modules   cache' # which has its library in it
cat "$folder/said.txt"
inside somebody plimsoll plan $examples/fables.yaml --text $examples/fables.txt || fail "plan: $?"
inside somebody plimsoll train $examples/fables.yaml --text $examples/fables.txt || fail "train: $?"
expect 'As planned, to the byte'
inside somebody plimsoll generate runs/fables --prompt "The Fox and the" || fail "generate: $?"
expect '^The Fox and the [A-Za-z]'
took=$((SECONDS - began))
cat "$folder/said.txt"

if [ "$suite" != bookworm ]; then
    echo "in Debian $suite, from installed to the first text of one's own training: $took s"
    exit 0
fi

# What else it brings.
inside root test -s /usr/share/doc/plimsoll/copyright || fail "no copyright"
inside somebody bash -c '. /usr/share/bash-completion/completions/plimsoll && complete -p plimsoll' || fail "no completion for bash"
project=/srv/project
apt install libhdf5-103-1 libraqm0 libjpeg62-turbo libprotobuf-c1 fonts-dejavu-core
inside somebody plimsoll --version || fail "--version: $?"
expect '^modules   cache, draw, gzip, hdf5, onnx, pictures$'
apt install gcc libc6-dev pkg-config lintian man-db zsh fish
cp "$source/tests/install/consumer/consumer.c" "$root$home"
project=$home
inside somebody bash -c 'gcc consumer.c -o consumer $(pkg-config --cflags --libs plimsoll) && ./consumer' || fail "a program against the library: $?"
inside somebody bash -c 'man -P cat plimsoll | head -5' || fail "man: $?"
expect 'plimsoll - trains and runs neural networks'
inside somebody zsh -c 'autoload -U compinit && compinit -D && echo ${_comps[plimsoll]}' || fail "zsh: $?"
expect '^_plimsoll$'
inside somebody fish -c 'complete -C "plimsoll gen"' || fail "fish: $?"
expect '^generate'
project=/srv/project
inside somebody lintian --fail-on error --tag-display-limit 0 "$deb" || fail "lintian finds errors"
cat "$folder/said.txt"

files_of_package >"$folder/files.txt"
apt purge plimsoll
while IFS= read -r f; do [ ! -e "$root$f" ] || fail "purged, it leaves $f"; done <"$folder/files.txt"

# The archive.
apt autoremove --purge
unpacked="/opt/any folder/plimsoll-$version-linux-x86_64"
inside root mkdir "${unpacked%/*}" || fail "mkdir: $?"
inside root tar -C "${unpacked%/*}" -xf "plimsoll-$version-linux-x86_64.tar.gz" || fail "tar: $?"
project=$home
inside somebody "$unpacked/bin/plimsoll" --version || fail "the archive: $?"
expect '^modules .*cache'
inside somebody "$unpacked/bin/plimsoll" train "$unpacked/share/plimsoll/examples/tiny.yaml" \
    --text "$unpacked/share/plimsoll/examples/fables.txt" --steps 20 || fail "the archive does not train: $?"
expect 'As planned, to the byte'

# The sources, where there is no git.
project=/srv/project
inside root tar -xf "plimsoll-$version.tar.gz" || fail "tar: $?"
project=/srv/project/plimsoll-$version
inside root grep -E '^[0-9a-f]{7,} [0-9]+$' cmake/commit.txt || fail "the archive of the sources does not name its commit"
if [ -n "${WHOLE:-}" ]; then
    inside root make || fail "the sources do not build: $?"
    inside root build/plimsoll train examples/tiny.yaml --text examples/fables.txt --steps 5 || fail "what they build: $?"
    expect 'As planned, to the byte'
fi
echo "from installed to the first text of one's own training: $took s"
