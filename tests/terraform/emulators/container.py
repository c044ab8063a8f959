"""Makes a container in an emulator of Azure's blobs: `container.py PORT CERTIFICATE ACCOUNT KEY NAME`."""

import base64, hashlib, hmac, socket, ssl, sys
from email.utils import formatdate

port, certificate, account, key, name = sys.argv[1:]
host = f"{account}.blob.core.windows.net"
date = formatdate(usegmt=True)
# The verb, eleven standard headers that are not there, those of Azure's own, and what is asked for.
signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:2021-08-06\n/{account}/{name}\nrestype:container"
signature = base64.b64encode(hmac.digest(base64.b64decode(key), signed.encode(), hashlib.sha256)).decode()
context = ssl.create_default_context(cafile=certificate)
with context.wrap_socket(socket.create_connection(("127.0.0.1", int(port))), server_hostname=host) as connection:
    lines = [
        f"PUT /{name}?restype=container HTTP/1.1", f"Host: {host}", f"x-ms-date: {date}", "x-ms-version: 2021-08-06",
        "Content-Length: 0", f"Authorization: SharedKey {account}:{signature}", "Connection: close",
    ]
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    answer = connection.recv(4096).decode()
    assert " 201 " in answer.splitlines()[0], answer
