"""HTTP/2 by hand, for what no client in order sends: frames, and a connection that keeps to the server's windows."""

import contextlib
import selectors
import socket
import ssl
import struct
import time

import traffic

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
MIB = 1 << 20


def header(name, value):
    """A literal without indexing, as HPACK has it; lengths of seven bits and more."""
    def text(data):
        if len(data) < 127:
            return bytes([len(data)]) + data
        rest, out = len(data) - 127, [127]
        while rest >= 128:
            out.append(rest % 128 + 128)
            rest //= 128
        return bytes(out + [rest]) + data
    return b'\0' + text(name.encode()) + text(value.encode())


def call_headers(encoding='identity', path=traffic.METHOD):
    fields = {':method': 'POST', ':scheme': 'http', ':path': path, ':authority': 'localhost', 'te': 'trailers',
              'content-type': 'application/grpc', 'grpc-encoding': encoding}
    return b''.join(header(name, value) for name, value in fields.items())


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


BEGINNING = PREFACE + frame(SETTINGS, 0, 0)  # a client's, which asks for nothing


def prefixed(message, compressed=False):
    return bytes([compressed]) + struct.pack('>I', len(message)) + message


class Connection:
    """HTTP/2 by hand: sends what it is told within the windows that the server gives, and reads what comes.

    `window`: what the server may send on a stream, until that is read; 0: nothing."""

    def __init__(self, port, window=None, acknowledge=True, read=True):
        self.socket = self.connect(port)
        self.acknowledge = acknowledge
        self.reads, self.refills = read, window != 0
        self.sending, self.replies = False, b''
        self.stream = -1
        self.window, self.initial, self.windows, self.largest = 65535, 65535, {}, 16384
        self.ended = set()
        self.unread = b''
        settings = b'' if window is None else struct.pack('>HI', 4, window)
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))
        self.socket.settimeout(None)

    def connect(self, port):
        return socket.create_connection(('127.0.0.1', port), timeout=10)

    def send(self, data):
        """Reads while it waits to write, so that nobody waits for the other. Replies to what it reads come after."""
        self.sending = True
        try:
            while data:
                self.write(data)
                data, self.replies = self.replies, b''
        finally:
            self.sending = False

    def write(self, data):
        self.socket.setblocking(False)
        view = memoryview(data)
        deadline = time.monotonic() + 5
        while len(view):
            try:
                view = view[self.socket.send(view):]
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self.read(0.01)
            if time.monotonic() > deadline:
                raise ConnectionError('the server does not read')

    def open(self, headers, flags=END_HEADERS):
        self.stream += 2
        self.windows[self.stream] = self.initial
        self.send(frame(HEADERS, flags, self.stream, headers))
        return self.stream

    def data(self, stream, payload, end=True, patience=5):
        """As much as the windows take; whether that is all."""
        deadline = time.monotonic() + patience
        while payload:
            most = min(self.window, self.windows.get(stream, 0), self.largest, len(payload))
            if stream in self.ended or time.monotonic() > deadline:
                return False
            if most <= 0:
                self.read(0.01)
                continue
            last = end and most == len(payload)
            self.send(frame(DATA, END_STREAM if last else 0, stream, payload[:most]))
            self.window -= most
            if stream in self.windows:  # else the server has ended it meanwhile
                self.windows[stream] -= most
            payload = payload[most:]
        return True

    def read(self, seconds=0.0):
        if not self.reads:
            return time.sleep(seconds)
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            if not selector.select(seconds):
                return None
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError('the server closed the connection')
            self.unread += data
        while len(self.unread) >= 9:
            length = int.from_bytes(self.unread[:3], 'big')
            if len(self.unread) < 9 + length:
                break
            kind, flags = self.unread[3], self.unread[4]
            stream = int.from_bytes(self.unread[5:9], 'big') & 0x7fffffff
            payload, self.unread = self.unread[9:9 + length], self.unread[9 + length:]
            self.take(kind, flags, stream, payload)
        if self.replies and not self.sending:
            data, self.replies = self.replies, b''
            self.send(data)
        return None

    def take(self, kind, flags, stream, payload):
        if kind == DATA and payload and self.refills:
            more = struct.pack('>I', len(payload))
            self.replies += frame(WINDOW_UPDATE, 0, 0, more)
            if not flags & END_STREAM:
                self.replies += frame(WINDOW_UPDATE, 0, stream, more)
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                key, value = struct.unpack('>HI', payload[at:at + 6])
                if key == 4:
                    self.windows = {known: left + value - self.initial for known, left in self.windows.items()}
                    self.initial = value
                elif key == 5:
                    self.largest = value
            if self.acknowledge:
                self.replies += frame(SETTINGS, ACK, 0)
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, 'big')
            if stream == 0:
                self.window += more
            elif stream in self.windows:
                self.windows[stream] += more
        elif kind == PING and not flags & ACK:
            self.replies += frame(PING, ACK, 0, payload)
        elif kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.ended.add(stream)
            self.windows.pop(stream, None)
        elif kind == GOAWAY:
            raise ConnectionError('the server said goodbye')


def client_hello():
    """How a client of TLS begins."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    return sent.read()
