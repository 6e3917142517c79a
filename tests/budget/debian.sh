#!/bin/bash
# debian.sh BUILD enforce.py|budget.py [options of it]: these checks under the kernel of Debian 12 itself and cgroup version 2,
# whatever the machine's own are: in a small virtual machine, emulated (minutes for each check), whose only disk is an
# image of ext4. Nothing of the machine outside is changed. BUILD is the build folder.
# Needs qemu-system-x86, busybox-static, cpio, e2fsprogs, and apt-get to download the kernel's package.
# DEBIAN_MEMORY (4G), DEBIAN_SECONDS (3600). The exit status is that of the checks; 77: a tool is missing; 124: the time is up.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
checks=$2
shift 2
for tool in qemu-system-x86_64 busybox cpio mke2fs apt-get dpkg; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install qemu-system-x86 busybox-static cpio e2fsprogs" >&2; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

copy_with_libraries() { # program, where in the machine
    install -D "$1" "$root$2"
    local library
    for library in $(ldd "$1" 2>/dev/null | grep -oE '/[^ ]+'); do
        [ -e "$root$library" ] || install -D "$(readlink -f "$library")" "$root$library"
    done
}

# The kernel, and what it needs to see its disk.
chmod 755 "$work"
(
    cd "$work"
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    apt-get download -qq "$package" >apt.txt 2>&1 || { echo "no package of linux-image-cloud-amd64:" && cat apt.txt; exit 1; } >&2
    dpkg -x ./linux-image-*.deb kernel
)
modules="virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk"
mkdir -p "$root"/{bin,dev,proc,sys,tmp,root,modules}
for module in $modules; do find "$work/kernel" -name "$module.ko" -exec cp {} "$root/modules/" \; ; done

# The command, its checks, Python's own library at its own place.
copy_with_libraries "$(command -v busybox)" /bin/busybox
for name in sh mount insmod sleep cat uname sync poweroff nproc; do ln -s busybox "$root/bin/$name"; done
copy_with_libraries "$build/plimsoll" /checks/plimsoll
tools="--plimsoll /checks/plimsoll"
if [ "$checks" = budget.py ]; then
    copy_with_libraries "$build/tests/support/process/pl_preload_malloc.so" /checks/preload.so
    copy_with_libraries "$build/tests/support/process/thp_always" /checks/thp_always
    tools="$tools --preload /checks/preload.so --thp-always /checks/thp_always"
fi
cp "$here"/*.py "$root/checks/"
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
prefix=$(python3 -c 'import sys; print(sys.base_prefix)')
copy_with_libraries "$python" /bin/python3
mkdir -p "$root$library"
tar -C "$library" --exclude=site-packages --exclude=dist-packages --exclude=test --exclude=__pycache__ --exclude='config-*' -cf - . |
    tar -C "$root$library" -xf -
find "$library/lib-dynload" -name '*.so' | while read -r module; do copy_with_libraries "$module" "$module"; done

cat >"$root/init" <<END
#!/bin/sh
export PATH=/bin HOME=/tmp PYTHONHOME=$prefix
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for module in $modules; do insmod /modules/\$module.ko; done
sleep 1
mount -t ext4 /dev/vda /tmp && mount -t cgroup2 none /sys/fs/cgroup
echo "Linux \$(uname -r), \$(nproc) cores, cgroup version 2 with \$(cat /sys/fs/cgroup/cgroup.controllers)"
cd /tmp
python3 -B /checks/$checks $tools $*
echo "$checks ended with \$?"
sync
poweroff -f
END
chmod 755 "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"
mke2fs -q -t ext4 "$work/disk" 2G >/dev/null

timeout --foreground "${DEBIAN_SECONDS:-3600}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m "${DEBIAN_MEMORY:-4G}" \
    -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/initrd" -drive "file=$work/disk,format=raw,if=virtio" \
    -append "console=ttyS0 quiet panic=-1 rdinit=/init" -nographic -no-reboot </dev/null 2>&1 |
    stdbuf -oL tr -d '\r' | stdbuf -oL sed -n '/cgroup version 2 with/,$ { s/^.*\(Linux .* version 2\)/\1/; p }' | tee "$work/said"
exit "$(sed -n 's/^[a-z]*\.py ended with //p' "$work/said" | tail -n 1 | grep . || echo 1)"
