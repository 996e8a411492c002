"""Real servers on free ports, and repositories of models for them.

The programs are those of SWIZZLE_BUILD_DIR, by default build/dev. Every server that a test starts is gone when the test
ends, and every wait has a limit.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tests' / 'bench'))  # whose clients some tests are made with
BUILD = pathlib.Path(os.environ.get('SWIZZLE_BUILD_DIR', ROOT / 'build' / 'dev'))
SHIPPED = ROOT / 'deploy' / 'models'
SPARSE, DENSE = 'mobilenet_v1_fashion_sparse90', 'mobilenet_v1_fashion'

# Sanitized programs are several times slower.
SANITIZED = BUILD.name in ('asan', 'tsan')
START_SECONDS = 300 if SANITIZED else 120
STOP_SECONDS = 120 if SANITIZED else 30

# Where it does not matter how well kernels are chosen.
QUICK_START = ['--tuning-budget=0']

os.environ['no_grpc_proxy'] = os.environ['no_proxy'] = 'localhost,127.0.0.1'


def pytest_addoption(parser):
    parser.addoption('--matching', metavar='REGEX', default='', help='run only tests whose names match')


def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if re.search(config.getoption('--matching'), item.nodeid)]


def program(name):
    path = BUILD / 'bin' / name
    assert path.exists(), f'{path} is not built; run ./tests/run'
    return str(path)


def run(*command, **options):
    """What a command prints, which has to end with 0."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def wait_until(condition, seconds, what):
    """Returns the condition's value once it is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f'{what} did not happen within {seconds} s'
        time.sleep(0.02)
    return value


class Server:
    """A running swizzle-server."""

    def __init__(self, repository, directory, *flags):
        self.log_file = directory / 'server.log'
        port_file = directory / 'ports.json'
        command = [program('swizzle-server'), '--metrics-address=127.0.0.1:0', f'--port-file={port_file}', *flags]
        if repository is not None:
            command.append(f'--model-repository={repository}')
        if not any(flag.startswith('--grpc-address') for flag in flags):
            command.append('--grpc-address=127.0.0.1:0')
        with open(self.log_file, 'wb') as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        try:
            ports = wait_until(lambda: self._ports(port_file), START_SECONDS, 'the start of the server')
            self.grpc = f'127.0.0.1:{ports["grpc"]}'
            self.rest = f'127.0.0.1:{ports.get("http")}'        # where --http-address was given
            self.control = f'127.0.0.1:{ports.get("control")}'  # where --control-address was given
            self.http_control = f'127.0.0.1:{ports.get("http_control")}'  # where --http-control-address was given
            self.metrics = f'http://127.0.0.1:{ports["metrics"]}'
            if any(flag.startswith('--ready=') for flag in flags):  # others may be loaded yet
                wait_until(lambda: 'is loading' not in self.http('/readyz')[1], START_SECONDS, 'the end of loading')
        except BaseException:
            self.kill()
            raise

    def _ports(self, port_file):
        assert self.process.poll() is None, f'the server ended with {self.process.returncode}:\n{self.log()}'
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            return json.loads(port_file.read_text())

    def log(self):
        return self.log_file.read_text(errors='replace')

    def http(self, path):
        """(status, body) of a page beside the metrics."""
        try:
            with urllib.request.urlopen(self.metrics + path, timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name, **labels):
        """The sum of the samples of that name that have these labels."""
        total = 0.0
        for line in self.http('/metrics')[1].splitlines():
            sample, _, value = line.rpartition(' ')
            if sample.partition('{')[0] == name and all(f'{key}="{label}"' in sample for key, label in labels.items()):
                total += float(value)
        return total

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self):
        return self.process.wait(STOP_SECONDS)

    def stop(self):
        """Drains the server; returns its exit code."""
        self.terminate()
        return self.exit_code()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(STOP_SECONDS)


class Repository:
    """A directory of models under construction."""

    def __init__(self, directory):
        self.directory = directory

    def __str__(self):
        return str(self.directory)

    def file(self, model, name, content, version=1):
        target = self.directory / model / str(version) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pathlib.Path):
            shutil.copy(content, target)
        else:
            target.write_bytes(content)
        return self

    def folder(self, model, source):
        """A version that has all that a folder has."""
        shutil.copytree(source, self.directory / model / '1')
        return self

    def config(self, model, text):
        (self.directory / model / '1').mkdir(parents=True, exist_ok=True)
        (self.directory / model / 'config.pbtxt').write_text(text)
        return self

    def identity(self, model='identity', delay_ms=0, datatype='FP32', dims='[ 16 ]', max_batch_size=8,
                 extra='dynamic_batching { }'):
        """A model without weights that answers INPUT0 as OUTPUT0."""
        tensor = f'data_type: TYPE_{datatype} dims: {dims}'
        return self.config(model, f'''
            backend: "identity"
            max_batch_size: {max_batch_size}
            input [ {{ name: "INPUT0" {tensor} }} ]
            output [ {{ name: "OUTPUT0" {tensor} }} ]
            parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay_ms}" }} }}
            {extra}
            ''')

    def shipped(self, model=SPARSE):
        return self.file(model, 'model.onnx', SHIPPED / f'{model}.onnx')


@pytest.fixture
def repository(tmp_path):
    directory = tmp_path / 'models'
    directory.mkdir()
    return Repository(directory)


@pytest.fixture
def start(tmp_path_factory):
    """start(repository, *flags) starts a server, which is killed when the test is over."""
    servers = []

    def start_server(repository, *flags, tuning=QUICK_START):
        servers.append(Server(repository, tmp_path_factory.mktemp('server'), *tuning, *flags))
        return servers[-1]

    yield start_server
    for server in servers:
        server.kill()


@contextlib.contextmanager
def lasting_server(directory, *flags):
    """A server with the models `identity`, `slow` (100 ms) and the shipped sparse one. It has to survive all that is
    done to it."""
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models').identity().identity('slow', delay_ms=100).shipped()
    repository.identity('text', datatype='STRING', dims='[ -1 ]').identity('bytes', datatype='INT8', dims='[ 4 ]')
    server = Server(repository, directory, *QUICK_START, *flags)
    try:
        yield server
        assert server.process.poll() is None, f'the server is gone:\n{server.log()}'
        assert server.stop() == 0, server.log()
    finally:
        server.kill()


@pytest.fixture(scope='module')
def shared_server(tmp_path_factory):
    """One server per test file."""
    with lasting_server(tmp_path_factory.mktemp('shared')) as server:
        yield server


@pytest.fixture(scope='session')
def test_images():
    """(images, labels) of Fashion-MNIST's test set: FP32 [10000,1,28,28] from 0 to 1, and uint8 [10000]."""
    import gzip

    import numpy
    directory = pathlib.Path('/usr/share/datasets/fashion-mnist')
    with gzip.open(directory / 't10k-images-idx3-ubyte.gz') as images, gzip.open(
            directory / 't10k-labels-idx1-ubyte.gz') as labels:
        pixels = numpy.frombuffer(images.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
        return pixels.astype(numpy.float32) / 255, numpy.frombuffer(labels.read(), numpy.uint8, offset=8)
