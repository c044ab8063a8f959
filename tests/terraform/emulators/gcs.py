#!/usr/bin/env python3
"""A part of Google Cloud Storage's JSON and XML APIs on loopback: objects of buckets in memory, with generations and conditional writes.

It is here so that Terraform's backend `gcs` can be tried without an account: `gcs.py PORT`. Every bucket is there.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs, unquote, urlsplit

OBJECTS = {}
LOCK = Lock()
GENERATION = 1000


def parts_of(body, content_type):
    """The two parts of an upload: what the object is called, and its bytes."""
    boundary = re.search(r'boundary="?([^";]+)', content_type).group(1).encode()
    parts = [part.split(b"\r\n\r\n", 1)[1] for part in body.split(b"--" + boundary)[1:-1]]
    return [part.removesuffix(b"\r\n") for part in parts]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body=b"", headers=()):
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, code, message):
        self.answer(code, {"error": {"code": code, "message": message, "errors": [{"message": message}]}})

    def split(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        found = re.fullmatch(r"(?:/storage/v1)?/b/([^/]+)/o(?:/(.+))?", url.path)
        if found is None:
            # The XML API: /bucket/object.
            found = re.fullmatch(r"/([^/]+)/(.+)", url.path)
            query["alt"] = "media"
        return found.group(1), unquote(found.group(2) or ""), query

    def describe(self, bucket, name):
        generation, content = OBJECTS[bucket, name]
        return {
            "kind": "storage#object", "bucket": bucket, "name": name, "generation": str(generation),
            "metageneration": "1", "size": str(len(content)),
        }

    def do_GET(self):
        bucket, name, query = self.split()
        with LOCK:
            if not name:
                prefix = query.get("prefix", "")
                items = [self.describe(*key) for key in sorted(OBJECTS) if key[0] == bucket and key[1].startswith(prefix)]
                return self.answer(200, {"kind": "storage#objects", "items": items})
            if (bucket, name) not in OBJECTS:
                return self.refuse(404, "no such object")
            if query.get("alt") != "media":
                return self.answer(200, self.describe(bucket, name))
            generation, content = OBJECTS[bucket, name]
            return self.answer(200, content, [("X-Goog-Generation", str(generation)), ("X-Goog-Metageneration", "1")])

    def do_POST(self):
        global GENERATION
        url = urlsplit(self.path)
        bucket = re.fullmatch(r"/upload/storage/v1/b/([^/]+)/o", url.path).group(1)
        query = parse_qs(url.query)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        meta, content = parts_of(body, self.headers["Content-Type"])
        name = json.loads(meta)["name"]
        with LOCK:
            there = OBJECTS.get((bucket, name), (0, b""))[0]
            wanted = query.get("ifGenerationMatch")
            if wanted is not None and int(wanted[0]) != there:
                return self.refuse(412, "At least one of the pre-conditions you specified did not hold.")
            GENERATION += 1
            OBJECTS[bucket, name] = (GENERATION, content)
            return self.answer(200, self.describe(bucket, name))

    def do_DELETE(self):
        bucket, name, query = self.split()
        with LOCK:
            there = OBJECTS.get((bucket, name))
            if there is None:
                return self.refuse(404, "no such object")
            wanted = query.get("ifGenerationMatch") or query.get("generation")
            if wanted is not None and int(wanted) != there[0]:
                return self.refuse(412, "At least one of the pre-conditions you specified did not hold.")
            del OBJECTS[bucket, name]
            return self.answer(204)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
