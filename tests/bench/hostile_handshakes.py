"""What clients may do to a server before TLS has begun: attacks for hostile_client.py, each on many connections."""

import contextlib
import os
import random
import selectors
import socket
import ssl
import struct
import subprocess

from raw_http2 import PREFACE, client_hello

AT_ONCE = 300


def connect(port):
    return socket.create_connection(('127.0.0.1', port), timeout=10)


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    connection.close()


def trusting(version=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(['h2'])
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def hold(port, stop, begin, go_on=None):
    """As many connections as the attacker keeps, each begun, gone on with, and replaced when the server ends it."""
    held = {}
    try:
        with selectors.DefaultSelector() as selector:
            while not stop.is_set():
                while len(held) < AT_ONCE and not stop.is_set():
                    connection = connect(port)
                    held[connection] = begin(connection)
                    connection.setblocking(False)
                    selector.register(connection, selectors.EVENT_READ)
                for key, _ in selector.select(0.05):
                    with contextlib.suppress(BlockingIOError):
                        with contextlib.suppress(ConnectionError):
                            if key.fileobj.recv(1 << 16):
                                continue
                        selector.unregister(key.fileobj)
                        del held[key.fileobj]
                        key.fileobj.close()
                for connection, left in held.items():
                    if go_on is not None and left:
                        with contextlib.suppress(OSError):
                            held[connection] = go_on(connection, left)
    finally:
        for connection in held:
            connection.close()


def half_handshakes(port, stop):
    """A whole beginning, and silence."""
    hello = client_hello()
    hold(port, stop, lambda connection: connection.sendall(hello))


def slow_beginnings(port, stop):
    """A beginning that comes byte by byte."""
    hello = client_hello()

    def go_on(connection, left):
        connection.send(left[:1])
        return left[1:]

    hold(port, stop, lambda connection: hello, go_on)


def garbage(port, stop):
    """What is no TLS, and TLS that is wrong after its first bytes."""
    draw = random.Random(1)
    hello = client_hello()
    while not stop.is_set():
        with contextlib.suppress(OSError), connect(port) as connection:
            at = draw.randrange(len(hello))
            connection.sendall(draw.choice([draw.randbytes(2000), b'\x16\x03\x01\x40\x00' + draw.randbytes(1 << 14),
                                            hello[:at] + draw.randbytes(1) + hello[at + 1:]]))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass


def early_ends(port, stop):
    """A whole beginning, and a reset while the server computes."""
    hello = client_hello()
    while not stop.is_set():
        connection = connect(port)
        connection.sendall(hello)
        reset(connection)


def handshakes(port, stop):
    """Whole ones, as many as there is time for."""
    context = trusting()
    while not stop.is_set():
        with contextlib.suppress(OSError), connect(port) as plain, context.wrap_socket(plain):
            pass


def renegotiations(port, stop):
    """TLS 1.2, begun again and again within a connection."""
    while not stop.is_set():
        client = subprocess.Popen(['openssl', 's_client', '-tls1_2', '-alpn', 'h2', '-connect', f'127.0.0.1:{port}'],
                                  stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with contextlib.suppress(BrokenPipeError):
                while client.poll() is None and not stop.wait(0.01):
                    os.write(client.stdin.fileno(), b'R\n')
        finally:
            client.kill()
            client.wait()


def unread_handshakes(port, stop):
    """Whole handshakes, and then records of which the server's answers are not read."""
    context = trusting()
    held = []
    try:
        while not stop.is_set():
            if len(held) == AT_ONCE:
                held.pop(0).close()
            connection = context.wrap_socket(connect(port))
            held.append(connection)
            connection.settimeout(0.05)
            with contextlib.suppress(OSError):
                connection.sendall(PREFACE + bytes(1 << 14))
    finally:
        for connection in held:
            connection.close()


HANDSHAKES = [half_handshakes, slow_beginnings, garbage, early_ends, handshakes, renegotiations, unread_handshakes]
