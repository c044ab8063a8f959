"""A proxy for HTTPS on loopback that brings every connection to one port, whatever host it is for: `tunnel.py PORT TARGET_PORT`.

With it a program that insists on a cloud's own names reaches an emulator.
"""

import socket, sys, threading


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def serve(client, target):
    head = b""
    while b"\r\n\r\n" not in head:
        data = client.recv(4096)
        if not data:
            return
        head += data
    if not head.startswith(b"CONNECT "):
        client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        client.close()
        return
    upstream = socket.create_connection(("127.0.0.1", target))
    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    threading.Thread(target=copy, args=(upstream, client), daemon=True).start()
    copy(client, upstream)


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection, int(sys.argv[2])), daemon=True).start()
