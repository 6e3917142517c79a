#!/bin/sh
# The text of the demo: tools/demo-text.sh FILE  (the first DEMO_BYTES, 24,000,000, of GCIDE, a dictionary of English, as
# Debian has it)
# The package would bring a dictionary server that we do not want to start on anybody's machine, so it is downloaded and
# unpacked beside FILE, not installed; where it is installed already, that copy is read. The file is made once.
set -eu
text=$1
bytes=${DEMO_BYTES:-24000000}
installed=/usr/share/dictd/gcide.dict.dz

if [ -e "$text" ] && [ "$(wc -c <"$text")" = "$bytes" ]; then exit 0; fi
folder=$(dirname "$text")
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

download() {
    echo "Missing on this machine: dict-gcide (40 MB of real English to train on); downloading it into $folder" >&2
    cd "$folder"
    # _apt, the user that apt downloads as, may not write here: apt-get then downloads as the caller and says so.
    apt-get download -qq dict-gcide >&2 && return 0
    if [ "$(id -u)" = 0 ]; then apt-get update -qq >&2; else sudo apt-get update -qq >&2; fi
    apt-get download -qq dict-gcide >&2
}

source=$installed
if [ ! -e "$source" ]; then
    source=$folder/unpacked$installed
    if [ ! -e "$source" ]; then
        if [ "${NO_INSTALL:-0}" = 1 ]; then
            echo "The demo needs $installed; to get it: apt-get install dict-gcide (as root)" >&2
            exit 1
        fi
        (download)
        dpkg-deb -x "$folder"/dict-gcide_*.deb "$folder/unpacked"
        rm -f "$folder"/dict-gcide_*.deb
    fi
fi
# dictzip writes gzip with an index: zcat reads it. `head` closes the pipe early; that is no failure.
{ zcat <"$source" 2>/dev/null || true; } | head -c "$bytes" >"$text.tmp"
if [ "$(wc -c <"$text.tmp")" != "$bytes" ]; then
    echo "$source holds fewer than $bytes bytes of text; is it damaged?" >&2
    exit 1
fi
mv "$text.tmp" "$text"
