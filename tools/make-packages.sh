#!/bin/sh
# Packages of this version, into BUILD-package: tools/make-packages.sh deb|dist   (`make deb`, `make dist`)
#   deb    plimsoll_VERSION-1_amd64.deb
#   dist   plimsoll-VERSION.tar.gz, the sources of the last commit, and plimsoll-VERSION-linux-x86_64.tar.gz, what is built
#          of this tree, which runs from any folder
# Built in a folder of its own: for /usr, whatever prefix the build folder has. docs/install.md says what is in them.
# One Debian package, not plimsoll, libplimsoll0.1 and libplimsoll-dev: it is one file to copy and one command to install,
# and what a split would save is small beside the command. What only modules need is recommended, not depended on: the
# command does without, and says what is missing.
# Environment: BUILD, JOBS, CMAKE_OPTIONS, NO_INSTALL, SOURCE_DATE_EPOCH, MAINTAINER ("Name <address>").
set -eu
cd "$(dirname "$0")/.."
what=${1:-}
folder=${BUILD:-build}-package
case $what in
deb) bundle=OFF ;;
dist) bundle=ON ;;
*) echo "make-packages.sh: deb or dist, not \"$what\"" >&2; exit 2 ;;
esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null ||
    sed -n 's/^[0-9a-f][0-9a-f]* \([0-9]*\)$/\1/p' cmake/commit.txt)}
export SOURCE_DATE_EPOCH

tools/install-dependencies.sh build package
# shellcheck disable=SC2086
cmake -S . -B "$folder" -G Ninja ${CMAKE_OPTIONS:-} --log-level=WARNING -DCMAKE_INSTALL_PREFIX=/usr \
    -DPL_ZSH_FOLDER=share/zsh/vendor-completions -DPL_BUNDLE=$bundle
cmake --build "$folder" -j "${JOBS:-2}"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$folder/CMakeCache.txt")
folder=$(cd "$folder" && pwd)

# "Depends" or "Recommends": the packages that hold the libraries of these programs.
packages_of() { # field, programs
    field=$1
    shift
    (cd "$folder/shlibs" && dpkg-shlibdeps -O "-d$field" "$@" 2>"$folder/shlibs/log") | sed -n "s/^shlibs:$field=//p"
}

make_deb() {
    MAINTAINER=${MAINTAINER:-Plimsoll maintainers <plimsoll@users.noreply.example.org>}
    debian=$version-1
    root=$folder/deb
    doc=$root/usr/share/doc/plimsoll
    rm -rf "$root" "$folder/shlibs"
    DESTDIR=$root cmake --install "$folder" --strip >"$folder/install.log"
    library=$(find "$root/usr/lib" -name 'libplimsoll.so.*.*.*')
    archive=${library%.so.*}.a
    strip --strip-debug --enable-deterministic-archives "$archive"

    rm "$doc/LICENSE" # copyright names it, and Debian has its text
    cp cmake/debian/copyright "$doc/copyright"
    mv "$doc/CHANGELOG.md" "$doc/changelog"
    printf 'plimsoll (%s) stable; urgency=medium\n\n  * New version; what has changed: changelog.gz.\n\n -- %s  %s\n' \
        "$debian" "$MAINTAINER" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" >"$doc/changelog.Debian"
    gzip -9n "$doc/changelog" "$doc/changelog.Debian" "$root"/usr/share/man/man1/*
    find "$root" -type d -exec chmod 755 {} + -o -type f -exec chmod u=rwX,go=rX {} +

    mkdir -p "$root/DEBIAN" "$folder/shlibs/debian"
    printf 'Source: plimsoll\n\nPackage: plimsoll\nArchitecture: any\n' >"$folder/shlibs/debian/control"
    soname=$(basename "$library" | sed 's/^libplimsoll\.so\.\(.*\)\.[0-9]*$/\1/')
    echo "libplimsoll $soname plimsoll (>= $version)" >"$root/DEBIAN/shlibs"
    echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
    (cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$root/DEBIAN/md5sums"
    size=$(du -k --apparent-size -s "$root/usr" | cut -f1)
    sed -e "s|@VERSION@|$debian|; s|@MAINTAINER@|$MAINTAINER|; s|@SIZE@|$size|" \
        -e "s|@DEPENDS@|$(packages_of Depends "$root/usr/bin/plimsoll" "$library")|" \
        -e "s|@RECOMMENDS@|$(packages_of Recommends "${library%/*}"/plimsoll/*.so | sed 's/libc6 ([^)]*), //')|" \
        cmake/debian/control >"$root/DEBIAN/control"
    package=$folder/plimsoll_${debian}_amd64.deb
    dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >"$folder/install.log"
    echo "$package"
}

make_sources() {
    if [ ! -e .git ]; then
        echo "no archive of the sources: this is no checkout of git, from which one is made" >&2
        return
    fi
    git archive --format=tar.gz --prefix="plimsoll-$version/" -o "$folder/plimsoll-$version.tar.gz" HEAD
    [ -z "$(git status --porcelain)" ] || echo "the sources are those of the last commit, without what was changed since" >&2
    echo "$folder/plimsoll-$version.tar.gz"
}

make_binary() {
    name=plimsoll-$version-linux-x86_64
    rm -rf "${folder:?}/$name"
    cmake --install "$folder" --prefix "$folder/$name" --strip >"$folder/install.log"
    strip --strip-debug --enable-deterministic-archives "$(find "$folder/$name" -name libplimsoll.a)"
    cp docs/install.md "$folder/$name/README.md"
    tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner "--mtime=@$SOURCE_DATE_EPOCH" -c "$name" |
        gzip -9n >"$folder/$name.tar.gz"
    rm -rf "${folder:?}/$name"
    echo "$folder/$name.tar.gz"
}

if [ "$what" = deb ]; then
    make_deb
else
    make_sources
    make_binary
fi
