"""Replicas of a server as a headless Service has them: addresses of loopback with one port, and a name server that has
them under one name, or proxies in front of them. For tests and benchmarks of what clients see when replicas come, go,
and hang."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import traffic

NAME = 'replicas.test'
ROOT = pathlib.Path(__file__).resolve().parents[2]
WAIT_SECONDS = 120


class NameServer:
    """Answers questions for the addresses of NAME by UDP, with what `addresses` then holds. Thread-safe."""

    def __init__(self):
        self.addresses, self.questions = [], 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def target(self, port):
        """Of gRPC, for servers that listen on `port`."""
        return f'dns://127.0.0.1:{self.port}/{NAME}:{port}'

    def close(self):
        self.addresses = None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b'', ('127.0.0.1', self.port))
        self.thread.join()
        self.socket.close()

    def _serve(self):
        while True:
            question, peer = self.socket.recvfrom(4096)
            if (addresses := self.addresses) is None:
                return
            self.socket.sendto(self._answer(question, addresses), peer)

    def _answer(self, question, addresses):
        """RFC 1035, 4.1: a header of 12 bytes, the question, and of type A an answer for each address."""
        end = question.index(b'\0', 12) + 1
        kind = struct.unpack_from('>H', question, end)[0]
        if kind == 1:
            self.questions += 1
        found = [b'\xc0\x0c' + struct.pack('>HHIH', 1, 1, 0, 4) + socket.inet_aton(address)
                 for address in addresses] if kind == 1 else []
        head = question[:2] + struct.pack('>HHHHH', 0x8580, 1, len(found), 0, 0)
        return head + question[12:end + 4] + b''.join(found)


class Replica(traffic.Server):
    """A server on an address of its own, with one version of the model `identity`."""

    def __init__(self, program, host, port, version, delay_ms, flags):
        def prepare(models):
            (models / 'identity' / str(version)).mkdir(parents=True)
            (models / 'identity' / 'config.pbtxt').write_text(traffic.identity_config(delay_ms, 8))

        super().__init__(program, prepare, f'--grpc-address={host}:{port}', *flags)
        self.host, self.port = host, self.ports['grpc']
        self.address = f'{host}:{self.port}'

    def drain(self):
        self.process.terminate()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)


class Replicas:
    """Three replicas. Addresses are taken anew for those that are started later, as pods do, unless they are `fixed`."""

    def __init__(self, program, *flags, delay_ms=2, fixed=False, count=3):
        self.program, self.flags, self.delay_ms, self.fixed = program, flags, delay_ms, fixed
        self.names = NameServer()
        self.running, self.next_host = [], 1
        self.port = 0
        try:
            for _ in range(count):
                self.add(1)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for replica in self.running:
            with contextlib.suppress(ProcessLookupError):
                replica.thaw()
            replica.__exit__()
        self.names.close()

    def add(self, version, host=None):
        if host is None:
            host, self.next_host = f'127.0.0.{self.next_host}', self.next_host + 1
        replica = Replica(self.program, host, self.port, version, self.delay_ms, self.flags)
        self.port = replica.port
        self.running.append(replica)
        if host not in self.names.addresses:
            self.names.addresses = [*self.names.addresses, host]
        return replica

    def forget(self, replica):
        """It gets no further clients: its address is no longer its name's."""
        self.names.addresses = [host for host in self.names.addresses if host != replica.host]

    def remove(self, replica):
        """Once it has ended; its name keeps its address."""
        self.running.remove(replica)
        replica.__exit__()

    def roll(self, version, wait_for):
        """All to a new version, one after the other, each once `wait_for` has returned for the one before: as a rollout
        does, which does not wait until old ones have ended. Where addresses are fixed the old one ends first."""
        leaving = list(self.running)
        for old in list(leaving):
            if self.fixed:
                old.drain()
                self.wait_for_end(old)
                new = self.add(version, old.host)
            else:
                new = self.add(version)
                self.forget(old)
                old.drain()
            wait_for(new)
        for old in leaving:
            if not self.fixed:
                self.wait_for_end(old)

    def wait_for_end(self, replica):
        """Of one that drains."""
        assert replica.process.wait(WAIT_SECONDS) == 0, replica.log_file.read_text()
        self.remove(replica)

    @property
    def addresses(self):
        return [replica.address for replica in self.running]

    @property
    def target(self):
        return self.names.target(self.port)


PROXY_HOST = '127.0.0.99'


def free_port():
    """Proxies have to be told one: of an address that nobody else listens at."""
    with socket.socket() as probe:
        probe.bind((PROXY_HOST, 0))
        return probe.getsockname()[1]


class Proxy:
    """A program between clients and replicas, by the configuration of deploy/proxies, in which the addresses stand in
    place of the ones there."""

    def __init__(self, addresses, command, source, edit):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        self.log_file = folder / 'log'
        port = free_port()
        self.target = f'{PROXY_HOST}:{port}'
        configuration = folder / source
        configuration.write_text(edit((ROOT / 'deploy/proxies' / source).read_text(), port, addresses, folder))
        with open(self.log_file, 'wb') as log:
            self.process = subprocess.Popen([*command, str(configuration)], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=folder, env={**os.environ, 'HOME': str(folder)})
        end = time.monotonic() + WAIT_SECONDS
        while not self._answers(port):
            assert self.process.poll() is None and time.monotonic() < end, self.log_file.read_text()[-3000:]
            time.sleep(0.02)

    @staticmethod
    def _answers(port):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((PROXY_HOST, port), 5):
            return True
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)
        self.folder.cleanup()


def replaced(text, old, new):
    assert old in text, f'{old!r} is not in the configuration'
    return text.replace(old, new)


def nginx(program, addresses):
    """With everything that it writes in a folder of its own."""
    def edit(text, port, replicas, folder):
        text = replaced(text, 'listen 8001 http2', f'listen {PROXY_HOST}:{port} http2')
        for i, address in enumerate(replicas, 1):
            text = replaced(text, f'10.0.0.{i}:8001', address)
        paths = ''.join(f'{kind}_temp_path {folder}/{kind};\n'
                        for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        text = replaced(text, 'http {', f'http {{\n{paths}access_log off;\n')
        return f'daemon off; pid {folder}/pid; error_log stderr;\n' + text

    return Proxy(addresses, [program, '-e', 'stderr', '-c'], 'nginx.conf', edit)


def envoy(program, addresses):
    def edit(text, port, replicas, _):
        text = replaced(text, 'address: 0.0.0.0, port_value: 8001', f'address: {PROXY_HOST}, port_value: {port}')
        for i, address in enumerate(replicas, 1):
            host, _, number = address.partition(':')
            text = replaced(text, f'address: 10.0.0.{i}, port_value: 8001', f'address: {host}, port_value: {number}')
        return text

    return Proxy(addresses, [program, '--use-dynamic-base-id', '--log-level', 'warning', '-c'], 'envoy.yaml', edit)
