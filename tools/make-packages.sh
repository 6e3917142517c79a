#!/bin/sh
# Packages of this version, into BUILD-package: tools/make-packages.sh deb|dist   (`make deb`, `make dist`)
#   deb    plimsoll_VERSION-1_amd64.deb, for the release of Debian that it is made on, and later ones
#   dist   plimsoll-VERSION.tar.gz, the sources of the last commit, and plimsoll-VERSION-linux-x86_64.tar.gz, what is built
#          of this tree, which runs from any folder
# Built in a folder of its own: for /usr, whatever prefix the build folder has. docs/install.md says what is in them.
# Environment: BUILD, JOBS, CMAKE_OPTIONS, MAINTAINER, NO_INSTALL.
set -eu
cd "$(dirname "$0")/.."
what=${1:?deb or dist}
folder=${BUILD:-build}-package
case $what in
deb) bundle=OFF generator=DEB ;;
dist) bundle=ON generator=TGZ ;;
*) echo "make-packages.sh: deb or dist, not $what" >&2; exit 2 ;;
esac

tools/install-dependencies.sh build package
[ -n "${MAINTAINER:-}" ] && set -- "-DPL_MAINTAINER=$MAINTAINER" || set --
# shellcheck disable=SC2086
cmake -S . -B "$folder" -G Ninja ${CMAKE_OPTIONS:-} --log-level=WARNING -DCMAKE_INSTALL_PREFIX=/usr \
    -DPL_ZSH_FOLDER=share/zsh/vendor-completions -DPL_BUNDLE=$bundle "$@"
cmake --build "$folder" -j "${JOBS:-2}"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$folder/CMakeCache.txt")

if [ "$what" = dist ] && [ -e .git ]; then
    git archive --format=tar.gz --prefix="plimsoll-$version/" -o "$folder/plimsoll-$version.tar.gz" HEAD
    echo "$folder/plimsoll-$version.tar.gz"
    [ -z "$(git status --porcelain)" ] || echo "it is of the last commit; what was changed since is not in it" >&2
elif [ "$what" = dist ]; then
    echo "no archive of the sources: this is no checkout of git, but such an archive, perhaps" >&2
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
(cd "$folder" && cpack -G $generator >cpack.log) || { cat "$folder/cpack.log" >&2; exit 1; }
sed -n "s|^CPack: - package: .*/\([^/]*\) generated\.$|$folder/\1|p" "$folder/cpack.log"
