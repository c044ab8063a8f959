#!/bin/sh
# Puts turnup on this host: the bytes with this sha256, or none. What stopped in the middle is gone on with.
set -eu
place={{ place }}
sha256={{ sha256 }}
url={{ url }}
part="$place.part.boot"

has_sha256() {
    test -f "$1" && echo "$sha256  $1" | sha256sum --check --status -
}

has_sha256 "$place" && exit 0
mkdir -p "$(dirname "$place")"
if command -v curl >/dev/null; then
    rc=0
    curl --fail --silent --show-error --location --connect-timeout 15 --speed-limit 1 --speed-time 60 --continue-at - --output "$part" "$url" || rc=$?
    # What the server does not go on with is begun anew the next time, unless nothing was left to send.
    case "$rc" in 22 | 33) has_sha256 "$part" || { rm -f "$part"; exit "$rc"; } ;; 0) ;; *) exit "$rc" ;; esac
elif command -v wget >/dev/null; then
    wget --quiet --timeout=60 --tries=1 --continue --output-document="$part" "$url"
else
    # An image with cloud-init has Python.
    python3 -c 'import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as answer, open(sys.argv[2], "wb") as part:
    shutil.copyfileobj(answer, part)' "$url" "$part"
fi
if ! has_sha256 "$part"; then
    rm -f "$part"
    echo "$url has other bytes than those with the sha256 $sha256" >&2
    exit 1
fi
chmod 0755 "$part"
sync "$part"
mv -f "$part" "$place"
