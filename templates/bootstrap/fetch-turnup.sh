#!/bin/sh
# Puts turnup on this host: the bytes with this sha256, or none. A download that stopped is continued.
set -eu
place={{ place }}
sha256={{ sha256 }}
size={{ size }}
url={{ url }}
part="$place.part.boot"

has_sha256() {
    test -f "$1" && echo "$sha256  $1" | sha256sum --check --status -
}

has_sha256 "$place" && exit 0
mkdir -p "$(dirname "$place")"
settle() {
    chmod 0755 "$part"
    sync "$part"
    mv -f "$part" "$place"
    exit 0
}

# An image may have it.
own=$(command -v turnup || true)
has_sha256 "$own" && cp "$own" "$part" && settle
rc=0
(
    # In blocks of 512 bytes. A server that sends more than turnup has cannot fill the disk.
    ulimit -f $((size / 512 + 1))
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --connect-timeout 15 --speed-limit 1 --speed-time 60 --continue-at - --output "$part" "$url"
    elif command -v wget >/dev/null; then
        wget --quiet --timeout=60 --tries=1 --continue --output-document="$part" "$url"
    else
        # An image with cloud-init has Python.
        python3 - "$url" "$part" <<'END'
import os, shutil, sys, urllib.error, urllib.request
url, part = sys.argv[1:]
there = os.path.getsize(part) if os.path.exists(part) else 0
request = urllib.request.Request(url, headers={"Range": f"bytes={there}-"} if there else {})
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        goes_on = answer.status == 206
        with open(part, "ab" if goes_on else "wb") as file:
            shutil.copyfileobj(answer, file)
        rest = int(answer.headers.get("Content-Length") or 0)
except urllib.error.HTTPError as error:
    if error.code == 416:
        os.remove(part)
    sys.exit(f"{url}: {error}")
except OSError as error:
    sys.exit(f"{url}: {error}")
missing = rest and (there if goes_on else 0) + rest - os.path.getsize(part)
if missing:
    sys.exit(f"{url} stopped in the middle, {missing} bytes before the end")
END
    fi
) || rc=$?
if test -f "$part" && test "$(wc -c <"$part")" -gt "$size"; then
    rm -f "$part"
    echo "$url sends more than the $size bytes that turnup has" >&2
    exit 1
fi
case "$rc" in
    0) ;;
    # curl: the server does not continue the download. It starts again the next time, unless nothing was left to send.
    22 | 33) has_sha256 "$part" || { rm -f "$part"; exit "$rc"; } ;;
    *) exit "$rc" ;;
esac
if ! has_sha256 "$part"; then
    rm -f "$part"
    echo "$url has other bytes than those with the sha256 $sha256" >&2
    exit 1
fi
settle
