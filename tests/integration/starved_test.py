"""Servers that the system gives few threads, little address space, or few files: they don't start, and say why, or they
answer, and end when they are asked to. None hangs, none crashes."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import SANITIZED, SHIPPED, SPARSE, START_SECONDS, STOP_SECONDS, Repository, program, wait_until

pytestmark = pytest.mark.skipif(SANITIZED, reason='sanitizers take threads and address space of their own')

IDENTITY = '''
backend: "identity"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
'''


class Starved:
    """A server within limits. `ready` is false if it ended instead of starting; then `code` is what it ended with."""

    def __init__(self, folder, repository, limits, user=None, flags=()):
        self.log_file, ports = folder / 'log', folder / 'out' / 'ports.json'
        ports.parent.mkdir(exist_ok=True)
        ports.parent.chmod(0o777)
        who = {} if user is None else {'user': user, 'group': user, 'extra_groups': []}

        def limit():
            for which, most in limits.items():
                resource.setrlimit(which, (most, most))

        with open(self.log_file, 'wb') as log:
            self.process = subprocess.Popen(
                [program('swizzle-server'), f'--model-repository={repository}', f'--port-file={ports}', '--device=cpu',
                 '--grpc-address=127.0.0.1:0', '--metrics-address=127.0.0.1:0', '--ready=any', *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=limit, **who)
        wait_until(lambda: ports.exists() or self.process.poll() is not None, START_SECONDS, 'the start, or the end')
        self.ready, self.code = ports.exists(), self.process.poll()
        if self.ready:
            found = json.loads(ports.read_text())
            self.grpc, self.http = f'127.0.0.1:{found["grpc"]}', f'http://127.0.0.1:{found["metrics"]}'
            wait_until(lambda: 'is loading' not in self.page('/readyz')[1], START_SECONDS, 'the end of loading')

    def log(self):
        return self.log_file.read_text(errors='replace')

    def page(self, path):
        try:
            with urllib.request.urlopen(self.http + path, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)


@pytest.fixture
def open_folder():
    """One that other users may look into, unlike tmp_path."""
    with tempfile.TemporaryDirectory(prefix='swizzle-starved-') as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.fixture
def starved(open_folder):
    """Starts servers on `models` of the folder; all are gone when the test ends."""
    with contextlib.ExitStack() as stack:
        def start(limits, **more):
            server = Starved(open_folder, open_folder / 'models', limits, **more)
            stack.callback(server.process.wait, STOP_SECONDS)
            stack.callback(server.process.kill)
            return server
        yield start


@pytest.fixture
def user():
    """The number of a user that has no process: a limit on processes counts all of a user's."""
    if os.geteuid() != 0:
        pytest.skip('only root starts processes of other users')
    number = 60000 + os.getpid() % 4000
    probe = subprocess.run(['test', '-x', program('swizzle-server')], user=number, group=number, extra_groups=[],
                           check=False)
    if probe.returncode != 0:
        pytest.skip('other users may not run the program where it is')
    return number


@pytest.fixture
def models(open_folder):
    folder = open_folder / 'models'
    folder.mkdir()
    return Repository(folder)


def add_identities(models, count):
    for i in range(count):
        models.config(f'identity{i:03}', IDENTITY)


def identity_request(model):
    message = service_pb2.ModelInferRequest(model_name=model)
    message.inputs.add(name='INPUT0', datatype='FP32', shape=(1, 4))
    message.raw_input_contents.append(bytes(16))
    return message


def image_request():
    message = service_pb2.ModelInferRequest(model_name=SPARSE)
    message.inputs.add(name='image', datatype='FP32', shape=(1, 1, 28, 28))
    message.raw_input_contents.append(bytes(4 * 28 * 28))
    return message


def answers(server, requests):
    """The code of each, all sent at the same time."""
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        calls = [stub.ModelInfer.future(request, timeout=120) for request in requests]
        return [call.exception() and call.code() for call in calls]


def check_serves(server, requests):
    """It answers what it has loaded, says that it lives, and ends when it is asked to."""
    codes = answers(server, requests)
    assert set(codes) <= {None, grpc.StatusCode.INTERNAL}, codes  # INTERNAL: the model failed to load
    assert None in codes or 'raise its limits' in server.page('/readyz')[1]
    assert server.page('/livez') == (200, 'ok\n')
    assert server.stop() == 0, server.log()
    assert 'stopped' in server.log()


def check_refused(server, *names):
    assert server.code == 1, server.log()
    assert 'cannot start' in server.log()
    assert any(name in server.log() for name in names), server.log()


@pytest.mark.parametrize('threads', (2, 6, 10, 14, 18, 22, 25, 27, 29, 31, 33, 36, 40, 60))
def test_few_threads(starved, models, user, threads):
    models.shipped()
    add_identities(models, 2)
    server = starved({resource.RLIMIT_NPROC: threads}, user=user)
    if server.ready:
        check_serves(server, [identity_request('identity000'), image_request(), identity_request('identity001')])
    else:
        check_refused(server, f'ulimit -u is {threads}', 'the system has no thread')


@pytest.mark.parametrize('threads', (48, 128, 200))
def test_a_hundred_models_share_threads(starved, models, user, threads):
    add_identities(models, 100)
    server = starved({resource.RLIMIT_NPROC: threads}, user=user, flags=['--tuning-budget=0'])
    assert server.ready, server.log()
    assert server.page('/readyz') == (200, 'ok\n')
    codes = answers(server, [identity_request(f'identity{i % 100:03}') for i in range(300)])
    assert codes == [None] * 300
    check_serves(server, [identity_request('identity000')])


def test_models_whose_threads_others_need_are_refused(starved, models, user):
    """Each has a pool of threads. Those that fail say so, and the others serve."""
    processors = len(os.sched_getaffinity(0))
    if processors == 1:
        pytest.skip('on one processor no model has a pool')
    add_identities(models, 1)
    names = [f'model{i:02}' for i in range(24)]
    for name in names:
        models.file(name, 'model.onnx', SHIPPED / f'{SPARSE}.onnx')
    to_start = 30 + min(max(os.cpu_count() // 2, 2), 16) + min(max(os.cpu_count(), 2), 32)
    server = starved({resource.RLIMIT_NPROC: to_start + 2 * processors}, user=user, flags=['--tuning-budget=0'])
    assert server.ready, server.log()
    failed = [line for line in server.page('/readyz')[1].splitlines() if 'failed' in line]
    assert 0 < len(failed) < len(names), server.log()
    for line in failed:
        assert f'raise its limits (ulimit -u is {to_start + 2 * processors}' in line
    requests = [image_request() for _ in names]
    for request, name in zip(requests, names):
        request.model_name = name
    codes = answers(server, requests)
    assert codes.count(None) == len(names) - len(failed)
    check_serves(server, [identity_request('identity000')])


@pytest.mark.parametrize('mebibytes', (60, 120, 180, 240, 280, 300, 320, 340, 360, 380, 400, 420, 440, 500))
@pytest.mark.parametrize('tuning', (0, 1))
def test_little_address_space(starved, models, mebibytes, tuning):
    """With tuning, kernels run for the first time once the server is ready."""
    models.shipped()
    add_identities(models, 2)
    server = starved({resource.RLIMIT_AS: mebibytes << 20}, flags=[f'--tuning-budget={tuning}'])
    if not server.ready:
        assert server.code in (1, 127), server.log()  # 127: of the program itself not all could be mapped
        assert server.code == 127 or 'cannot start' in server.log()
        return
    if tuning:
        wait_until(lambda: server.process.poll() is not None or 'tuned' in server.log() or
                   SPARSE in server.page('/readyz')[1], 120, 'the end of tuning')
    check_serves(server, [identity_request('identity000'), image_request()])


@pytest.mark.parametrize('files', (4, 6, 8, 10, 12, 16, 24, 32, 40))
def test_few_files(starved, models, files):
    add_identities(models, 1)
    server = starved({resource.RLIMIT_NOFILE: files}, flags=['--tuning-budget=0'])
    if server.ready:
        check_serves(server, [identity_request('identity000')])
    else:
        check_refused(server, 'ulimit -n')


def test_calls_that_begin_when_threads_run_out(starved, models, user):
    """Others of the same user take what is left while the server serves."""
    add_identities(models, 20)
    limit = 120
    server = starved({resource.RLIMIT_NPROC: limit}, user=user, flags=['--tuning-budget=0'])
    assert server.ready, server.log()
    sleepers = []
    try:
        def restrict():
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
        with contextlib.suppress(BlockingIOError):
            while len(sleepers) < limit:
                sleepers.append(subprocess.Popen(['sleep', '600'], user=user, group=user, extra_groups=[],
                                                 preexec_fn=restrict))
        codes = answers(server, [identity_request(f'identity{i % 20:03}') for i in range(200)])
        assert codes == [None] * 200
        assert server.page('/livez') == (200, 'ok\n')
        assert server.stop() == 0, server.log()
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait(60)


@pytest.mark.parametrize('target', ('/nonexistent', 'config.pbtxt', '../other/config.pbtxt'))
def test_a_configuration_that_is_a_link_to_nothing_is_not_none(start, repository, target):
    repository.identity().shipped()
    os.symlink(target, repository.directory / SPARSE / 'config.pbtxt')
    server = start(repository, '--ready=any')
    assert f"model '{SPARSE}' failed: config.pbtxt is a link that leads to no file" in server.http('/readyz')[1]
    assert server.stop() == 0, server.log()


LONG = {
    'a name': 'name: ' + '"aaaaaaaaaa" ' * 80000,
    'dims': 'max_batch_size: 8 input [ { name: "image" data_type: TYPE_FP32 dims: [ ' + ','.join(['1'] * 100000) +
            ' ] } ]',
    'a backend': f'backend: "{"b" * 500000}"',
    'a parameter': f'parameters {{ key: "{"k" * 300000}" value {{ string_value: "v" }} }}',
    'an unknown field': 'x' * 400000 + ': 1',
}


@pytest.mark.parametrize('text', LONG.values(), ids=LONG)
def test_reasons_do_not_quote_whole_files(start, repository, text):
    repository.identity().shipped().config(SPARSE, text)
    server = start(repository, '--ready=any')
    assert len(server.http('/readyz')[1]) < 1000
    assert max(map(len, server.log().splitlines())) < 1500
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as failure:
            stub.ModelInfer(image_request(), timeout=60)
        assert failure.value.code() == grpc.StatusCode.INTERNAL, failure.value
        assert 'failed to load: ' in failure.value.details()
        index = stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(), timeout=60)
        assert all(len(model.reason) < 1000 for model in index.models)
    assert server.stop() == 0, server.log()


def test_a_tuning_cache_behind_a_link_is_written_where_it_leads(start, repository, tmp_path):
    (tmp_path / 'volume').mkdir()
    repository.shipped()
    link = tmp_path / 'cache'
    link.symlink_to('volume/times')
    for _ in range(2):  # it is made, and replaced
        server = start(repository, '--tune=before-ready', f'--tuning-cache={link}', tuning=['--tuning-budget=1'])
        assert server.stop() == 0, server.log()
        assert link.is_symlink()
        assert (tmp_path / 'volume' / 'times').stat().st_size > 0
        assert len(list((tmp_path / 'volume').iterdir())) == 1
