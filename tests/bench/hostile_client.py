"""What one connection may do to a server: attacks, one after another, each on a single connection for some seconds,
while another client asks the same server, probes do, and its memory is watched. Attacks on handshakes of TLS
(hostile_handshakes.py) and some of those over HTTP (http_attacks.py) are made on many connections.

    python3 tests/bench/hostile_client.py build/dev/bin/swizzle-server --seconds=60 --memory-mib=2048

The server runs in a control group of its own where one can be made (version 1, as root), else with the limits that it
would choose in one. Prints a line for each attack: the other client's calls, its p50 and p99 in milliseconds, and the
most memory that was resident. tests/integration/hostile_client_test.py has it short.
"""

import argparse
import contextlib
import gzip
import os
import pathlib
import struct
import sys
import tempfile
import threading
import time
import urllib.request

import grpc

import http_attacks
import stream_attacks
import traffic
from hostile_handshakes import HANDSHAKES
from raw_http2 import (CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, MIB, PING, RST_STREAM, SETTINGS,
                       Connection, call_headers, frame, header, prefixed)

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))
from certificates import Authority  # noqa: E402

# With all that a server may be asked for.
FLAGS = ('--model-control=explicit', '--load-model=*', '--control-address=127.0.0.1:0', '--allow-load-overrides',
         '--http-address=127.0.0.1:0', '--http-control-address=127.0.0.1:0',
         f'--shared-memory-prefix={stream_attacks.PREFIX}')


# ---- Attacks: each does what it can on a connection until it is told to stop, or the connection ends ----

def calls(connection, stop, message, encoding='identity', compressed=False, at_once=16, path=traffic.METHOD):
    """Sends the same message again and again."""
    open_streams = []
    while not stop.is_set():
        stream = connection.open(call_headers(encoding, path))
        connection.data(stream, prefixed(message, compressed))
        open_streams.append(stream)
        while len(open_streams) >= at_once and not stop.is_set():
            connection.read(0.01)
            open_streams = [known for known in open_streams if known not in connection.ended]


def gzip_bombs(port, stop):
    """2.5 MiB of gzip that are 2.5 GiB of zeros, to the model without an end to its input."""
    head = traffic.zeros('text', 1)
    calls(Connection(port), stop, gzip_bomb(head), 'gzip', True)


def small_gzip_bombs(port, stop):
    """Just within the server's limit."""
    head = traffic.zeros('text', 1)
    calls(Connection(port), stop, gzip.compress(head + b'\x3a\x80\x80\x80\x1e' + bytes(60 * MIB), 9), 'gzip', True)


BOMB = []


def gzip_bomb(head):
    if not BOMB:
        part = gzip.compress(bytes(64 * MIB), 9)
        BOMB.append(gzip.compress(head + b'\x3a\xff\xff\xff\xff\x07', 9) + part * 40)
    return BOMB[0]


def amplification(port, stop):
    """22 MiB of inputs without a name."""
    calls(Connection(port), stop, b'\x0a\x04text' + b'\x2a\0' * (11 * MIB), at_once=4)


def packed_varints(port, stop):
    """60 MiB of dimensions of one byte each."""
    length = b'\x80\x80\x80\x1e'
    calls(Connection(port), stop, b'\x0a\x04text\x2a\x85\x80\x80\x1e\x1a' + length + b'\1' * (60 * MIB), at_once=4)


def unfinished_messages(port, stop):
    """Messages of which the last byte never comes, on as many streams as there may be."""
    connection = Connection(port)
    message = prefixed(bytes(32 * MIB))[:-1]
    while not stop.is_set():
        connection.data(connection.open(call_headers()), message, end=False)


def announced_gigabytes(port, stop):
    """A message that says it has 4 GiB, and comes."""
    connection = Connection(port)
    stream = connection.open(call_headers())
    connection.data(stream, b'\0\xff\xff\xff\xff', end=False)
    while not stop.is_set():
        if not connection.data(stream, bytes(MIB), end=False):
            stream = connection.open(call_headers())
            connection.data(stream, b'\0\xff\xff\xff\xff', end=False)


def many_streams(port, stop, acknowledge=True):
    """Calls that send nothing."""
    connection = Connection(port, acknowledge=acknowledge)
    while not stop.is_set() and connection.stream < 40000:
        connection.open(call_headers())
        connection.read()
    stop.wait()


def streams_without_settings(port, stop):
    """Likewise, before the server may count them, since its settings are not acknowledged."""
    many_streams(port, stop, acknowledge=False)


def huge_metadata(port, stop):
    """Headers without an end."""
    connection = Connection(port)
    connection.open(call_headers(), flags=0)
    while not stop.is_set():
        connection.send(frame(CONTINUATION, 0, connection.stream, header('x-' + 'n' * 100, 'v' * 12000)))
        connection.read()


def slow_reads(port, stop):
    """Asks for large responses, and takes none of their bytes."""
    connection = Connection(port, window=0)
    message = traffic.zeros(values=1 << 18, model='wide')
    while not stop.is_set():
        stream = connection.open(call_headers())
        connection.data(stream, prefixed(message))
        connection.read()


def closed_ears(port, stop):
    """Sends small requests, and reads nothing from the socket at all."""
    connection = Connection(port, read=False)
    connection.window = 1 << 40
    connection.initial = 65535
    while not stop.is_set():
        stream = connection.open(call_headers())
        connection.data(stream, prefixed(traffic.zeros()))


def rapid_reset(port, stop):
    """Whole requests, cancelled at once."""
    connection = Connection(port)
    message = prefixed(traffic.zeros())
    while not stop.is_set():
        connection.stream += 2
        stream = connection.stream
        connection.send(frame(HEADERS, END_HEADERS, stream, call_headers()) + frame(DATA, END_STREAM, stream, message) +
                        frame(RST_STREAM, 0, stream, struct.pack('>I', 8)))
        connection.window -= len(message)
        while connection.window < 4096 and not stop.is_set():
            connection.read(0.01)
        connection.read()


def large_requests(port, stop):
    """Requests of a MiB in order, to a model that takes its time: as many as there may be."""
    calls(Connection(port), stop, traffic.zeros(values=1 << 18, model='slow'), at_once=1000)


def orders(port, stop):
    """To load models, which clients may not give, with names of a MiB."""
    calls(Connection(port), stop, b'\x12\x80\x80\x40' + b'x' * MIB, path=stream_attacks.LOAD)


def pings_and_settings(port, stop):
    connection = Connection(port)
    while not stop.is_set():
        connection.send((frame(PING, 0, 0, bytes(8)) + frame(SETTINGS, 0, 0)) * 50)
        connection.read()


ATTACKS = [gzip_bombs, small_gzip_bombs, amplification, packed_varints, unfinished_messages, announced_gigabytes,
           many_streams, streams_without_settings, huge_metadata, slow_reads, closed_ears, rapid_reset,
           large_requests, orders, pings_and_settings, *stream_attacks.ATTACKS, *http_attacks.ATTACKS]
# Where they are made, if not at gRPC's address for clients.
PLACES = {'control': stream_attacks.OPERATORS, **http_attacks.PLACES}


def attack(name, port, stop):
    """Connects again when the server ends the connection, as an attacker would; how often."""
    connections = 0
    while not stop.is_set():
        connections += 1
        with contextlib.suppress(OSError):
            name(port, stop)
        stop.wait(0.01)
    return connections


# ---- The other client ----

# What the other client sends, if no small request.
SENT = {large_requests: {'values': 3 * 224 * 224, 'model': 'image'}}


class Victim:
    """Asks again and again, on a connection of its own."""

    def __init__(self, server, message, patience):
        self.message, self.patience = message, patience
        if server.authority is None:
            self.channel = grpc.insecure_channel(server.address, traffic.CHANNEL)
        else:
            credentials = grpc.ssl_channel_credentials(server.authority)
            self.channel = grpc.secure_channel(server.address, credentials, traffic.CHANNEL)
        self.call = self.channel.unary_unary(traffic.METHOD)
        self.milliseconds, self.errors = [], {}

    def run(self, stop):
        while not stop.is_set():
            start = time.monotonic()
            try:
                self.call(self.message, timeout=self.patience)
                self.milliseconds.append((time.monotonic() - start) * 1e3)
            except grpc.RpcError as error:
                self.errors[error.code().name] = self.errors.get(error.code().name, 0) + 1
            stop.wait(0.005)

    def probe(self, port):
        """As a kubelet does."""
        try:
            with urllib.request.urlopen(f'http://127.0.0.1:{port}/livez', timeout=self.patience) as answer:
                answer.read()
        except OSError:
            self.errors['PROBE'] = self.errors.get('PROBE', 0) + 1

    def quantile(self, q):
        ordered = sorted(self.milliseconds)
        return ordered[int(q * (len(ordered) - 1))] if ordered else float('inf')


def resident_mib(pid):
    with open(f'/proc/{pid}/statm', encoding='ascii') as statm:
        return int(statm.read().split()[1]) * os.sysconf('SC_PAGESIZE') / MIB


def suffer(server, name, seconds, patience=5):
    """(the victim, which waits `patience` seconds for an answer, MiB resident at most, connections of the attacker)"""
    stop = threading.Event()
    victim = Victim(server, traffic.zeros(**SENT.get(name, {})), patience)
    made = []
    port = server.ports[next((place for place, attacks in PLACES.items() if name in attacks), 'grpc')]
    threads = [threading.Thread(target=victim.run, args=(stop,)),
               threading.Thread(target=lambda: made.append(attack(name, port, stop)))]
    for thread in threads:
        thread.start()
    most, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end and server.process.poll() is None:
        most = max(most, resident_mib(server.process.pid))
        victim.probe(server.ports['metrics'])
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert server.process.poll() is None, f'the server is gone with {server.process.returncode}'
    return victim, most, made


def prepare(models):
    for name, config in {
            'identity': traffic.identity_config(0, 8),
            'endless': traffic.identity_config(0, 8, extra=stream_attacks.ENDLESS),
            'wide': traffic.identity_config(0, 8, values=1 << 18),
            'slow': traffic.identity_config(500, 1, values=1 << 18),
            'image': traffic.identity_config(0, 8, values=3 * 224 * 224),
            'text': traffic.identity_config(0, 8).replace('FP32', 'STRING').replace('[ 16 ]', '[ -1 ]')}.items():
        (models / name / '1').mkdir(parents=True)
        (models / name / 'config.pbtxt').write_text(config)


@contextlib.contextmanager
def control_group(mib):
    """The path of a group with so much memory; none where no group can be made."""
    group = pathlib.Path(f'/sys/fs/cgroup/memory/swizzle-{os.getpid()}')
    try:
        group.mkdir()
        (group / 'memory.limit_in_bytes').write_text(str(mib * MIB))
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        time.sleep(0.5)
        with contextlib.suppress(OSError):
            group.rmdir()


def start(program, group, mib, *flags):
    if group is None:
        share = mib * MIB // 8
        return traffic.Server(program, prepare, f'--max-inflight-bytes={share}', f'--transport-bytes={share}', *FLAGS,
                              *flags)
    launcher = pathlib.Path(f'/tmp/{group.name}.sh')
    launcher.write_text(f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {os.path.abspath(program)} "$@"\n')
    launcher.chmod(0o755)
    try:
        return traffic.Server(str(launcher), prepare, *FLAGS, *flags)
    finally:
        launcher.unlink()


def start_with_tls(program, group, mib, *flags):
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(folder)
        pair = authority.issue('server')
        server = start(program, group, mib, f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}', *flags)
        server.authority = authority.pem()
        return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--memory-mib', type=int, default=2048)
    parser.add_argument('--attack', action='append', choices=[attack.__name__ for attack in ATTACKS + HANDSHAKES])
    parser.add_argument('--flag', action='append', default=[], help='of the server')
    arguments = parser.parse_args()
    print('| attack | calls | errors | p50 ms | p99 ms | MiB at most | MiB 5 s later | its connections |')
    print('|---|---|---|---|---|---|---|---|')
    with control_group(arguments.memory_mib) as group:
        for name in ATTACKS + HANDSHAKES:
            if arguments.attack and name.__name__ not in arguments.attack:
                continue
            starter = start_with_tls if name in HANDSHAKES else start
            server = starter(arguments.program, group, arguments.memory_mib, *arguments.flag)
            try:
                victim, most, made = suffer(server, name, arguments.seconds)
                time.sleep(5)
                left = resident_mib(server.process.pid)
                print(f'| {name.__name__} | {len(victim.milliseconds)} | {victim.errors or "-"} | '
                      f'{victim.quantile(0.5):.1f} | {victim.quantile(0.99):.1f} | {most:.0f} | {left:.0f} | '
                      f'{sum(made)} |', flush=True)
            except AssertionError as error:
                print(f'| {name.__name__} | {error} |', flush=True)
            finally:
                server.process.kill()
                server.process.wait()


if __name__ == '__main__':
    main()
