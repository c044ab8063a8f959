#!/bin/sh
# Installs what a node needs of its distribution and the image lacks. An image that has all of it needs no network for this.
set -eu
debian=
fedora=
# Program, Debian's package, Fedora's package.
while read -r program deb rpm; do
    command -v "$program" >/dev/null && continue
    debian="$debian $deb"
    fedora="$fedora $rpm"
done <<END
iptables iptables iptables-nft
nft nftables nftables
ip iproute2 iproute
conntrack conntrack conntrack-tools
modprobe kmod kmod
mount util-linux util-linux-core
END
test -n "$debian" || exit 0
if command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    # cloud-init and the image's own timers install as well.
    apt-get --quiet --option DPkg::Lock::Timeout=300 update
    # shellcheck disable=SC2086 # a list of names
    apt-get --quiet --option DPkg::Lock::Timeout=300 install --yes --no-install-recommends $debian
elif command -v dnf >/dev/null; then
    # shellcheck disable=SC2086 # a list of names
    dnf --assumeyes install $fedora
else
    echo "this image lacks$debian, and has neither apt-get nor dnf" >&2
    exit 1
fi
