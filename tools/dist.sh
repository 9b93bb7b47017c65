#!/usr/bin/env bash
# Makes what is handed to users, in build/dist: a Debian package and a tarball of the same files.
#
#   AXE_DIST_PROFILE=dev       another profile than release
#   AXE_DIST_LEVEL=0           how hard xz tries, 0 to 9 (6): 0 to try this script in a minute
#   AXE_MAINTAINER='N <M>'     whom the package names; by default the author of the commit that it is built from
set -euo pipefail
export PROFILE="${AXE_DIST_PROFILE:-release}"
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
AXE_COMMIT="${AXE_COMMIT:-$(git describe --always --dirty --exclude='*' --abbrev=12 2>/dev/null || true)}"
export AXE_COMMIT
level="${AXE_DIST_LEVEL:-6}"
version="$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)"
maintainer="${AXE_MAINTAINER:-$(git log -1 --format='%an <%ae>' 2>/dev/null || true)}"
[ -n "$maintainer" ] || die "nobody maintains the package" "Outside of a git repository, AXE_MAINTAINER='Name <mail>' says who does."
architecture="$(dpkg --print-architecture)"
name="axe_${version}_$architecture"
out="$BUILD_DIR/dist"
stage="$out/stage"
rm -rf "$stage"
mkdir -p "$stage/DEBIAN"
DESTDIR="$stage" tools/install.sh /usr
# What is in no package of Debian's has no place in /usr/share/doc without its licence there.
install -D -m 644 LICENSE "$stage/usr/share/doc/axe/copyright"
gzip -9n -c CHANGELOG.md >"$stage/usr/share/doc/axe/changelog.gz"
rm -rf "$stage/usr/share/doc/Axe"
# Debian's zsh does not look into site-functions.
mv "$stage/usr/share/zsh/site-functions" "$stage/usr/share/zsh/vendor-completions"
find "$stage/usr/share/man" -name '*.1' -exec gzip -9nf {} +
# libaxe.so, libaxert.so and axe-run need no LLVM; drivers and plugin need the shared one, of the release that they were built with.
release="$("$LLVM_PREFIX/bin/llvm-config" --version | cut -d. -f1)"
cat >"$stage/DEBIAN/control" <<CONTROL
Package: axe
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk "$stage/usr" | cut -f1)
Depends: libc6 (>= 2.36), libstdc++6 (>= 12), libgcc-s1, zlib1g, libzstd1, libmlir-$release, libllvm$release
Suggests: libmlir-$release-dev, llvm-$release-dev, cmake
Section: devel
Priority: optional
Description: Layouts over named hardware axes, and the kernels that they give
 Axe is an MLIR dialect, a layout algebra, a compiler to NVIDIA GPUs and a PTX
 simulator. This package has the drivers (axe, axe-opt, axe-run), the libraries
 libaxe (the compiler) and libaxert (launches) with their headers, the plugin for
 mlir-opt-$release, and the CMake package for compilers in C++.
CONTROL
(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
# The same tree gives the same bytes.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
export SOURCE_DATE_EPOCH
dpkg-deb --root-owner-group -Zxz "-z$level" --build "$stage" "$out/$name.deb" >/dev/null
XZ_OPT="-T0 -$level" tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --transform "s,^usr,$name," -cJf "$out/$name.tar.xz" usr
rm -rf "$stage"
say "made: $out/$name.deb, $out/$name.tar.xz"
