"""The page for who comes from Triton says what is so: its flags are taken or refused, its calls answer as it says, its
metrics are there or not."""

import pathlib
import queue
import re
import subprocess
import urllib.error
import urllib.request

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2

from conftest import QUICK_START, ROOT, SPARSE, Repository, Server, program

PAGE = (ROOT / 'deploy/FROM_TRITON.md').read_text()
FLAGS = set(re.findall(r'^\| `(--[\w-]+)', (ROOT / 'server/FLAGS.md').read_text(), re.MULTILINE))
METRICS = set(re.findall(r'^\| `(\w+)` \|', (ROOT / 'server/METRICS.md').read_text(), re.MULTILINE))
SERVICE = service_pb2.DESCRIPTOR.services_by_name['GRPCInferenceService']


def table(title):
    """The rows of a section's only table, as lists of cells."""
    section = re.search(rf'^## {title}\n(.*?)(?=^## |\Z)', PAGE, re.MULTILINE | re.DOTALL)[1]
    rows = [line.strip('|').split('|') for line in section.splitlines() if line.startswith('|')]
    assert len({len(row) for row in rows}) == 1
    return [[cell.strip() for cell in row] for row in rows[2:]]


def code(cell):
    """What stands between backquotes."""
    return re.findall(r'`([^`]+)`', cell)


FLAG_ROWS = table('Flags')
TAKEN = [ours for _, cell, _ in FLAG_ROWS for ours in code(cell)]
NAMES = [flag for theirs, _, _ in FLAG_ROWS for flag in code(theirs)]


def flags_status(*flags):
    """The exit code of a server that reads its flags and leaves: 2 if they are wrong."""
    result = subprocess.run([program('swizzle-server'), *flags, '--list-kernels'], capture_output=True, text=True,
                            timeout=60)
    return result.returncode, result.stderr


@pytest.mark.parametrize('ours', TAKEN)
def test_our_flags_are_taken_as_they_stand_there(ours):
    flags = ours.split(' ')
    assert {flag.partition('=')[0] for flag in flags} <= FLAGS
    status, error = flags_status(*flags)
    assert status != 2, error


def test_there_is_a_flag_of_ours_for_each_of_theirs_or_none():
    assert len(NAMES) > 60 and len(NAMES) == len(set(NAMES))
    for theirs, ours, differs in FLAG_ROWS:
        assert (ours == '-') != bool(code(ours)), theirs
        assert theirs or differs, ours


@pytest.mark.parametrize('theirs', sorted({name.partition('=')[0] for name in NAMES} - FLAGS))
def test_flags_of_triton_that_are_not_ours_are_refused(theirs):
    status, error = flags_status(f'{theirs}=1')
    assert status == 2 and f'not expected: {theirs}' in error


def test_flags_in_the_text_are_ours():
    prose = re.sub(r'^\|.*$|^tritonserver.*$', '', PAGE, flags=re.MULTILINE)
    assert set(re.findall(r'--[a-z][\w-]+', prose)) <= FLAGS


# Against a server.

@pytest.fixture(scope='module')
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp('triton')
    (directory / 'models').mkdir()
    running = Server(Repository(directory / 'models').identity('NAME'), directory, '--http-address=127.0.0.1:0',
                     '--metrics-compat=triton', '--shared-memory-prefix=swizzle_', *QUICK_START)
    try:
        yield running
        assert running.stop() == 0, running.log()
    finally:
        running.kill()


@pytest.mark.parametrize('request_line, here', table('HTTP'), ids=lambda text: text)
def test_paths_of_http(server, request_line, here):
    method, path = re.fullmatch(r'(GET|POST) `(\S+)`', request_line).groups()
    request = urllib.request.Request(f'http://{server.rest}{path}', method=method,
                                     data=b'{}' if method == 'POST' else None)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status = response.status
    except urllib.error.HTTPError as error:
        status = error.code
    if here.startswith('same'):
        assert status == 200 or path.endswith('/infer') and status == 400  # the body has no inputs
    else:
        assert str(status) == here.partition(':')[0]


def test_every_call_of_the_service_is_named():
    named = [name for calls, _ in table('gRPC') for name in code(calls)]
    assert sorted(named) == sorted(method.name for method in SERVICE.methods)


@pytest.mark.parametrize('calls, here', table('gRPC'), ids=lambda text: text[:20])
def test_calls_of_grpc(server, calls, here):
    with grpc.insecure_channel(server.grpc) as channel:
        for name in code(calls):
            path = f'/{SERVICE.full_name}/{name}'
            try:
                if name == 'ModelStreamInfer':
                    list(channel.stream_stream(path)(iter([b'']), timeout=30))
                else:
                    channel.unary_unary(path)(b'', timeout=30)
                status = 'OK'
            except grpc.RpcError as error:
                status = error.code().name
            if here.startswith('same'):
                assert status not in ('UNIMPLEMENTED', 'PERMISSION_DENIED', 'INTERNAL'), name
            else:
                assert status in here, name


def test_metrics(server):
    exposed = set(re.findall(r'^# TYPE (\w+) ', server.http('/metrics')[1], re.MULTILINE))
    rows = table('Metrics')
    assert {name for name in METRICS if name.startswith('nv_')} <= {code(theirs)[0] for theirs, _, _ in rows}
    for theirs, here, ours in rows:
        name, = code(theirs)
        assert (name in METRICS) == (here != 'no'), name
        assert (name in exposed) == (here == 'yes'), name
        assert code(ours) and set(code(ours)) <= METRICS, name


def codes(client, model):
    """How eight requests at once end."""
    tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
    tensor.set_data_from_numpy(numpy.zeros([1, 16], numpy.float32))
    ended = queue.Queue()
    for _ in range(8):
        client.async_infer(model, [tensor], lambda result, error: ended.put(error))
    return {error.status().removeprefix('StatusCode.') for error in (ended.get(timeout=60) for _ in range(8)) if error}


def test_queues_and_models_of_the_start_behave_as_it_says(start, repository):
    rows = {what: here for what, _, here in table('What behaves differently')}
    for name, policy in (('full', 'max_queue_size: 1'), ('late', 'default_timeout_microseconds: 1')):
        repository.identity(name, delay_ms=1000, max_batch_size=1,
                            extra=f'dynamic_batching {{ default_queue_policy {{ {policy} }} }}')
    server = start(repository.file('broken', 'model.onnx', b'garbage').shipped())
    with triton.InferenceServerClient(server.grpc) as client:
        assert codes(client, 'full') == {rows['the queue is full'].partition(',')[0]} == {'RESOURCE_EXHAUSTED'}
        assert codes(client, 'late') == {rows['a request waited for too long'].partition(',')[0]} == {'DEADLINE_EXCEEDED'}
        assert code(rows['`platform` of a model'])[0] == client.get_model_metadata(SPARSE).platform
        assert client.get_model_config(SPARSE).config.max_batch_size == 64
    assert 'up to 64 rows run together' in PAGE
    status, why = server.http('/readyz')
    assert status == 503 and "model 'broken' failed: " in why and 'it stays, not ready' in PAGE


def test_what_it_calls_itself(server):
    rows = {what: here for what, _, here in table('What behaves differently')}
    with urllib.request.urlopen(f'http://{server.rest}/v2', timeout=30) as response:
        name, = code(rows['`name` of ServerMetadata'])
        assert f'"name":"{name}"' in response.read().decode()


def test_clients_that_are_in_the_suite_are():
    here = pathlib.Path(__file__)
    tests = ''.join(path.read_text() for path in here.parent.glob('*.py') if path.name != here.name)
    for clients, how in table('Clients'):
        for name in code(clients) if how.startswith('part of the test suite') else ():
            assert name in tests, name
