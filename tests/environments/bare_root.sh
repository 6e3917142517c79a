# A bare Debian 12 (SUITE=trixie: 13) to try things in, for scripts that set `folder` (where it is made, and what is said there lies: log.txt) and
# then take this file in: `root` is then the root of one with apt, make and certificates, nothing else, which is gone with
# the script, and `inside` runs a command there, in the folder `project`. What was made once is kept: root.tar. Packages come
# from where this machine's apt gets them. Exit 77, with the reason, where that cannot be: not root, no mmdebstrap, no mount.

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; tail -n 30 "$log"; exit 1; }
[ "$(id -u)" = 0 ] || skip "a bare root needs root"
command -v mmdebstrap >/dev/null || skip "no mmdebstrap"

log=$folder/log.txt
: >"$log"
[ -n "${BARE_UNSHARED:-}" ] || unshare --mount true 2>>"$log" || skip "mounting is not allowed here: $(tail -n 1 "$log")"
rm -rf --one-file-system "$folder"/root.?????? # of a run that was killed

# The file that names Debian's own packages, among others perhaps.
sources=$(grep -lsE '^[^#]*debian[^#]* bookworm +main|^Suites:.*bookworm' /etc/apt/sources.list /etc/apt/sources.list.d/*.sources \
    /etc/apt/sources.list.d/*.list | head -n 1) || true
suite=${SUITE:-bookworm}
base=$folder/root.tar
if [ "$suite" != bookworm ]; then # from where bookworm comes from
    base=$folder/root-$suite.tar
    mirror=$(sed -nE 's/^URIs: *([^ ]*\/debian\/?) *$/\1/p; s/^deb +(\[[^]]*\] +)?([^ ]*\/debian\/?) .*/\2/p' ${sources:+"$sources"} | head -n 1)
    sources="deb ${mirror:-http://deb.debian.org/debian} $suite main"
fi
make_root_tar() {
    [ -n "$sources" ] || skip "no file of apt's sources names bookworm"
    mmdebstrap --quiet --variant=minbase --include=ca-certificates,make "$suite" "$folder/part.tar" "$sources" >>"$log" 2>&1 ||
        skip "mmdebstrap: $(tail -n 1 "$log")"
    mv "$folder/part.tar" "$base"
}
[ -s "$base" ] || make_root_tar

# In a mount namespace of its own: however this ends, nothing stays mounted.
if [ -z "${BARE_UNSHARED:-}" ]; then
    BARE_UNSHARED=1 exec unshare --mount --propagation private "$0" "$@"
fi

root=$(mktemp -d "$folder/root.XXXXXX")
clean() { # what runs in there may still be writing
    umount -lR "$root" 2>>"$log" || true
    rm -rf --one-file-system "$root" 2>>"$log" || { sleep 2 && rm -rf --one-file-system "$root"; }
}
trap clean EXIT
mount --bind "$root" "$root" # the root of a chroot that itself may unshare
tar -xf "$base" -C "$root"
for f in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do # how this machine reaches its packages, not what it hooks into apt
    if grep -qsiE 'Proxy|Acquire|AllowInsecure|Check-Valid-Until' "$f"; then cp -L "$f" "$root/etc/apt/apt.conf.d/"; fi
done
for f in /etc/resolv.conf /etc/hosts; do cp -L "$f" "$root$f" 2>>"$log" || true; done
for m in proc sys dev; do mount --rbind "/$m" "$root/$m"; done

project=/srv/project
home_of() { chroot "$root" getent passwd "$1" | cut -d: -f6; }

inside() { # USER, VARIABLE=VALUE…, command: what it says goes to the log
    local user=$1 home
    shift
    home=$(home_of "$user")
    echo "== $SECONDS s, $user: $*" | tee -a "$log"
    env -i "$(command -v chroot)" --userspec="$user" "$root" /usr/bin/env HOME="$home" TERM=dumb LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /bin/bash -c 'cd "$1" && shift && exec /usr/bin/env "$@"' bash "$project" "$@" >"$folder/said.txt" 2>&1 </dev/null
    local code=$?
    cat "$folder/said.txt" >>"$log"
    return $code
}
expect() { # pattern in what was said last
    grep -qE -- "$1" "$folder/said.txt" || fail "no \"$1\" in what was said"
}
