#!/bin/sh
# Removes what `make install` puts under a prefix: tools/uninstall.sh BUILD PREFIX [DESTDIR]
# The list is what an installation into an empty folder gives, not what the last one left in the build folder: that is
# overwritten by every other (a package, a test). Folders that are ours and empty then go too; others stay.
set -eu
build=$1
prefix=$2
destination=${3:-}
root=$(mktemp -d "${TMPDIR:-/tmp}/plimsoll-uninstall-XXXXXX")
trap 'rm -rf "$root"' EXIT
DESTDIR=$root cmake --install "$build" --prefix "$prefix" >/dev/null
(cd "$root" && find . ! -type d) | sed 's/^\.//' | while IFS= read -r file; do
    [ -e "$destination$file" ] || [ -L "$destination$file" ] || continue
    rm -v "$destination$file"
done
(cd "$root" && find . -depth -type d \( -name plimsoll -o -path '*/plimsoll/*' \)) | sed 's/^\.//' | while IFS= read -r folder; do
    [ ! -d "$destination$folder" ] || rmdir --ignore-fail-on-non-empty "$destination$folder"
done
