#!/usr/bin/env bash
# The first commands of a new user, on a bare Debian 12: bare.sh SOURCE FOLDER
# A root with apt, make and certificates, nothing else, is made in FOLDER (kept for the next time: root.tar), the files of
# SOURCE that git does not ignore are put into it, and there
#   as root              make, which installs what is missing; a run of examples/tiny.yaml; make install; a short make demo
#   as an ordinary user  the same in that folder, now the user's, with all packages there and NO_INSTALL=1; of what root
#                        has built some is built again, the rest stays: a second whole build would show nothing more
# Packages come from where this machine's apt gets them. Exit 77, with the reason, where that cannot be: not root, no
# mmdebstrap, no mount, no packages.
set -euo pipefail
source=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)

# shellcheck source=tests/environments/bare_root.sh
. "${0%/*}/bare_root.sh"

unpack() { # the tracked files
    mkdir -p "$root$project"
    if [ "$(git -C "$source" rev-parse --show-toplevel 2>>"$log")" = "$source" ]; then
        (cd "$source" && git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- --ignore-failed-read) 2>>"$log"
    else
        tar -c -C "$source" --exclude='./build*' .
    fi | tar -x -C "$root$project"
    chroot "$root" chown -R root: "$project"
}

# With the packages there, or NO_INSTALL=0: a build, a run, an installation, a demo of a minute.
first_commands() { # user, VARIABLE=VALUE…
    local user=$1 home
    shift
    home=$(home_of "$user")
    inside "$user" "$@" make || fail "$user: make ends with $?"
    inside "$user" build/plimsoll train examples/tiny.yaml --text README.md --steps 20 || fail "$user: train ends with $?"
    expect 'As planned, to the byte'
    inside "$user" "$@" make install PREFIX="$home/installed" || fail "$user: make install ends with $?"
    inside "$user" "$home/installed/bin/plimsoll" --version || fail "$user: what was installed ends with $?"
    expect '^plimsoll [0-9]+\.[0-9]+\.[0-9]+$'
    inside "$user" "$@" DEMO_BYTES=400000 DEMO_STEPS=2 make demo || fail "$user: make demo ends with $?"
    expect 'As planned, to the byte'
    expect 'nats per token after 2 steps'
}

unpack
inside root apt-get update -qq || skip "no packages can be had here: $(tail -n 1 "$log")"
if inside root NO_INSTALL=1 make; then fail "make without a compiler ends with 0"; fi
expect 'apt-get install .*gcc .*cmake'
first_commands root
# What the demo downloaded, where its package would have put it.
chroot "$root" /bin/bash -c 'mkdir -p /usr/share/dictd && cp "$1"/build/demo/unpacked/usr/share/dictd/gcide.dict.dz /usr/share/dictd' \
    bash "$project"
chroot "$root" useradd --create-home somebody
rm -rf "$root$project"/runs "$root$project"/build/{plimsoll,demo,cli,src/libpl_api.a}
chroot "$root" chown -R somebody: "$project"
first_commands somebody NO_INSTALL=1
echo "as root and as an ordinary user: make, a run, make install, make demo"
