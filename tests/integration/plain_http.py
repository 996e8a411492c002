"""HTTP/1.1 as no client library would send it: bytes to a server, and its answers."""

import json
import socket


class Connection:
    """Bytes to a server and back, as no client library would send them."""

    def __init__(self, address):
        host, port = address.rsplit(':', 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.file = self.socket.makefile('rb')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, *parts):
        self.socket.sendall(b''.join(part.encode() if isinstance(part, str) else part for part in parts))

    def answer(self):
        """(status, headers, body), or None at the connection's end."""
        line = self.file.readline()
        if not line:
            return None
        headers = {}
        while (field := self.file.readline().decode().strip()):
            name, _, value = field.partition(':')
            headers[name.lower()] = value.strip()
        if line.split()[1] == b'100':
            return 100, headers, b''
        return int(line.split()[1]), headers, self.file.read(int(headers['content-length']))


def request(path, body=b'', method='POST', **headers):
    body = body.encode() if isinstance(body, str) else body
    fields = {'Content-Length': len(body), **{name.replace('_', '-'): value for name, value in headers.items()}}
    lines = [f'{method} {path} HTTP/1.1', 'Host: here', *(f'{name}: {value}' for name, value in fields.items()
                                                         if value is not None)]
    return '\r\n'.join(lines).encode() + b'\r\n\r\n' + body


def ask(server, path, body=b'', method='POST', address=None, **headers):
    with Connection(address or server.rest) as connection:
        connection.send(request(path, body, method, **headers))
        return connection.answer()


def error_of(answer):
    assert answer[1]['content-type'] == 'application/json'
    (key, text), = json.loads(answer[2]).items()
    assert key == 'error'
    return answer[0], text
