"""The page of messages quotes what is said: each message is provoked, or at least stands in the sources."""

import contextlib
import os
import pathlib
import queue
import re
import resource
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import numpy
import onnx
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from certificates import Authority
from cuda_stand_ins import make_driver
from conftest import DENSE, QUICK_START, ROOT, SANITIZED, SHIPPED, SPARSE, Repository, Server, program

PAGE = (ROOT / 'server/TROUBLESHOOTING.md').read_text()
TOKEN = 'abcdefghijklmnopqrstuvwxyz'

# Messages that need another machine, or a moment that a test cannot wait for. They stand in the sources.
NOT_PROVOKED = {
    "there is no NVIDIA driver on this machine (libcuda.so.1); the device 'cpu' needs none",
    'this process may not start … threads more; raise its limits',
    "model '…' is being loaded", 'the server is loading its models', 'the server is shutting down',
    '… has requests and responses of …',
    "input '…' of model '…' holds … at element …; ids must be from 0 to …",
}


def messages():
    """What the first column of the page's tables quotes, but for what is only seen."""
    said, _, _ = PAGE.partition('## Nothing is said')
    cells = [line.split(' | ')[0].strip('| ') for line in said.splitlines() if line.startswith('| `')]
    return [message for cell in cells for message in re.findall(r'`([^`]+)`', cell)]


MESSAGES = messages()


def literals():
    """All that stands between quotation marks in the sources, literals that follow each other joined."""
    text = ''
    for folder in ('server', 'client', 'model_loader', 'kernels'):
        for file in sorted((ROOT / folder).rglob('*')):
            if file.suffix in ('.cc', '.h'):
                code = re.sub(r'(?<=[\w.;:,\' )])"\s*\n\s*"', '', file.read_text())
                text += '\n'.join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', code)) + '\n'
    return text.replace('\\"', '"').replace('\\n', ' ')


@pytest.mark.parametrize('message', sorted(NOT_PROVOKED))
def test_a_message_that_is_not_provoked_is_in_the_sources(message):
    source = literals()
    for piece in re.split("[…']", message):  # names that are quoted are put in by a function
        assert piece.strip(' ;:,.()') in source, piece


def test_the_page_has_many_messages():
    assert len(MESSAGES) > 70 and len(MESSAGES) == len(set(MESSAGES)) and NOT_PROVOKED <= set(MESSAGES)


# Provocations: each fixture collects what was said.

def said_by(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, **options)
    return result.stdout + result.stderr


def ends(folder, *flags, **options):
    """What a server says that does not start."""
    places = [f'--{kind}-address=127.0.0.1:0' for kind in ('grpc', 'metrics') if f'--{kind}-address' not in str(flags)]
    return said_by(program('swizzle-server'), *([] if '--device=cuda' in flags else ['--device=cpu']), *places, *flags, cwd=folder, **options)


def starts(folder):
    models = folder / 'none'
    models.mkdir()
    given = f'--model-repository={models}'
    one, other = Authority(folder).issue('one'), Authority(folder).issue('other')
    (folder / 'tokens').write_text('infer short\n')
    few_files = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))  # noqa: E731
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        yield ends(folder, given, f'--grpc-address=127.0.0.1:{port}')
    yield ends(folder, given, '--http-port=8000')
    for flag in ('--tune=later', '--model-control=polling', '--pin-threads=yes', '--log-level=warn'):
        told = ends(folder, given, flag)
        assert re.search(r'not in {\w[\w,-]+} \(--help lists all flags\)$', told.strip()), told
        yield told
    yield ends(folder)
    yield ends(folder, '--model-repository=nowhere')
    yield ends(folder, '--model=nowhere')
    yield ends(folder, given, '--grpc-address=8001')
    yield ends(folder, given, '--tls-cert=nowhere', '--tls-key=nowhere')
    yield ends(folder, given, f'--tls-cert={one.certificate}', f'--tls-key={other.key}')
    yield ends(folder, given, '--auth-tokens=tokens')
    yield ends(folder, given, '--port-file=nowhere/ports')
    yield ends(folder, given, preexec_fn=few_files)
    yield ends(folder, given, '--device=cuda', env={**os.environ, 'SWIZZLE_CUDA_MODULE': str(folder / 'none.so')})
    (folder / 'module.so').write_bytes(b'no library')
    driver = make_driver(folder)
    yield ends(folder, given, '--device=cuda', env={**os.environ, 'SWIZZLE_CUDA_MODULE': str(folder / 'module.so'),
                                                    'LD_LIBRARY_PATH': str(driver.parent)})


def a_model(operator='Relu', domain='', opset=17, rows=None, weight=None):
    """y = operator(x), of 4 numbers a row, as bytes."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (rows, 4)) for name in 'xy')
    node = helper.make_node(operator, ['x'] + (['w'] if weight else []), ['y'], domain=domain)
    graph = helper.make_graph([node], 'graph', [x], [y], [weight] if weight else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8).SerializeToString()


def an_external_weight():
    weight = helper.make_tensor('w', TensorProto.FLOAT, (4, 4), bytes(64), raw=True)
    onnx.external_data_helper.set_external_data(weight, 'weights.bin')
    weight.ClearField('raw_data')
    return weight


def tensors(dtype='TYPE_FP32', name='x', dims=4):
    return (f'input [ {{ name: "{name}" data_type: {dtype} dims: [ {dims} ] }} ] '
            f'output [ {{ name: "y" data_type: {dtype} dims: [ {dims} ] }} ] ')


STEP = 'step [ { model_name: "nobody" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ]'

FILES = {  # of models that fail for what their file is
    'garbage': b'garbage', 'lfs': b'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n',
    'zip': b'PK\x03\x04' + bytes(40), 'operator': a_model('Frobnicate'), 'opset': a_model(opset=40),
    'external': a_model('MatMul', weight=an_external_weight()),
}
CONFIGS = {  # of models that fail for what their configuration says
    'typo': 'max_batch_sise: 8', 'sequence': 'sequence_batching { }', 'backend': 'backend: "pytorch"',
    'parameter': 'parameters { key: "presicion" value { string_value: "FP16" } }',
    'dtype': 'max_batch_size: 8 ' + tensors('TYPE_INT64'), 'input': 'max_batch_size: 8 ' + tensors(name='z'),
    'renamed': 'name: "other"', 'policy': 'version_policy { specific { versions: [ 7 ] } }',
    'warm': 'max_batch_size: 8 model_warmup [ { name: "s" inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 5 ] '
            'zero_data: true } } } ]',
}


def broken_models(repository):
    folder = repository.directory
    for name, content in FILES.items():
        repository.file(name, 'model.onnx', content)
    for name, text in CONFIGS.items():
        repository.file(name, 'model.onnx', a_model()).config(name, text)
    repository.file('fixed', 'model.onnx', a_model(rows=1)).config('fixed', 'max_batch_size: 8')
    repository.config('steps', 'platform: "ensemble" max_batch_size: 8 ' + tensors() + f'ensemble_scheduling {{ {STEP} }}')
    repository.file('both', 'model.onnx', a_model()).file('both', 'model.swz', b'x')
    repository.file('gpt', 'config.json', b'{"model_type": "gpt2"}').file('gpt', 'model.safetensors', b'\2' + bytes(7) + b'{}')
    repository.file('pickle', 'pytorch_model.bin', b'x')
    (folder / 'link' / '1').mkdir(parents=True)
    (folder / 'link' / '1' / 'model.onnx').symlink_to('elsewhere.onnx')
    (folder / 'flat').mkdir()
    (folder / 'flat' / 'model.onnx').write_bytes(a_model())


def loads(folder):
    (folder / 'first').mkdir()
    (folder / 'second').mkdir()
    first, second = Repository(folder / 'first'), Repository(folder / 'second')
    broken_models(first)
    for repository in (first, second):
        repository.file('twice', 'model.onnx', a_model())
    with running(first, folder, f'--model-repository={second}') as server:
        reasons = reasons_of(server)
        assert all(reasons.values()), {name for name, reason in reasons.items() if not reason}
        yield from reasons.values()
    (folder / 'third').mkdir()
    with running(Repository(folder / 'third').shipped(), folder, '--memory-limit=100000000') as server:
        yield from reasons_of(server).values()


def reasons_of(server):
    """Why models do not serve, by name."""
    with triton.InferenceServerClient(server.grpc) as client:
        return {model.name: model.reason for model in client.get_model_repository_index().models}


@contextlib.contextmanager
def running(repository, folder, *flags):
    place = folder / f'server{len(list(folder.iterdir()))}'
    place.mkdir()
    server = Server(repository, place, *QUICK_START, *flags)
    try:
        yield server
        assert server.process.poll() is None, server.log()
    finally:
        server.kill()


def tensor(shape=(1, 16), dtype='FP32', name='INPUT0', values=None):
    values = numpy.zeros(shape) if values is None else values
    made = triton.InferInput(name, list(shape), dtype)
    made.set_data_from_numpy(values.astype({'FP32': 'float32', 'FP64': 'float64', 'INT64': 'int64'}[dtype]))
    return made


def refused(call, *arguments, **options):
    with pytest.raises(InferenceServerException) as caught:
        call(*arguments, **options)
    return caught.value.message()


def bad_requests(client):
    def infer(model='identity', inputs=None, **options):
        return refused(client.infer, model, [tensor()] if inputs is None else inputs, **options)

    short = triton.InferInput('INPUT0', [1, 16], 'FP32')
    short._raw_content = b'1234'
    yield infer('nobody')
    yield infer('broken')
    yield infer(model_version='3')
    yield infer(inputs=[])
    yield infer(inputs=[tensor(name='data')])
    yield infer(inputs=[tensor(dtype='FP64')])
    yield infer(inputs=[tensor((1, 4))])
    yield infer(inputs=[tensor((9, 16))])
    yield infer(inputs=[short])
    yield infer(outputs=[triton.InferRequestedOutput('y')])
    yield infer('decoupled')
    yield infer(inputs=[tensor((8, 800_000))])
    yield infer(inputs=[tensor((8, 2_200_000))])
    yield refused(client.register_system_shared_memory, 'a', '/a', 4)
    yield refused(client.load_model, 'identity')


def overload(client, model):
    ended = queue.Queue()
    for _ in range(8):
        client.async_infer(model, [tensor()], lambda result, error: ended.put(error))
    return [error.message() for error in (ended.get(timeout=60) for _ in range(8)) if error]


def http_errors(address):
    infer = '/v2/models/identity/infer'
    for path, body, headers in (('/infer', None, {}), (infer, None, {}), (infer, b'no JSON', {}),
                                (infer, b'{}', {'Inference-Header-Content-Length': '99'}),
                                (infer, b'{}', {'Content-Encoding': 'br'}), (infer, bytes(70_000_000), {})):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(f'http://{address}{path}', data=body, headers=headers), timeout=60)
        yield caught.value.read().decode()


def requests(folder):
    (folder / 'models').mkdir()
    repository = Repository(folder / 'models').identity().file('broken', 'model.onnx', b'garbage')
    repository.identity('decoupled', extra='model_transaction_policy { decoupled: true }')
    repository.identity('texts', dims='[ -1 ]')
    for name, policy in (('full', 'max_queue_size: 2'), ('late', 'default_timeout_microseconds: 1')):
        repository.identity(name, delay_ms=1000, max_batch_size=1,
                            extra=f'dynamic_batching {{ default_queue_policy {{ {policy} }} }}')
    with running(repository, folder, '--http-address=127.0.0.1:0') as server:
        with triton.InferenceServerClient(server.grpc) as client:
            yield from bad_requests(client)
            yield from overload(client, 'full') + overload(client, 'late')
        yield from http_errors(server.rest)
        yield from connections(server)
        yield said_by(program('swizzle'), f'--address={server.grpc}', 'bench', 'texts')
        numpy.save(folder / 'fortran.npy', numpy.asfortranarray(numpy.zeros((2, 16), numpy.float32)))
        yield said_by(program('swizzle'), f'--address={server.grpc}', 'infer', 'identity',
                      f'--input=INPUT0={folder / "fortran.npy"}')
    (folder / 'tokens').write_text(f'infer models=identity {TOKEN}\n')
    with running(repository, folder, f'--auth-tokens={folder / "tokens"}') as server:
        with triton.InferenceServerClient(server.grpc) as client:
            shown = {'authorization': f'Bearer {TOKEN}'}
            yield refused(client.infer, 'identity', [tensor()])
            yield refused(client.infer, 'full', [tensor()], headers=shown)
            yield refused(client.get_model_repository_index, headers=shown)


def connections(server):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        nobody = f'127.0.0.1:{free.getsockname()[1]}'
    for flags in ([f'--address={nobody}'], [f'--address={server.rest}'], [f'--address={server.grpc}', '--tls']):
        yield said_by(program('swizzle'), *flags, '--timeout=10', 'health')


def tools(folder):
    dense, packed = SHIPPED / f'{DENSE}.onnx', folder / 'model.swz'
    pack = program('swizzle-pack')
    (folder / 'model.pt').write_bytes(b'x')
    yield said_by(pack, 'inspect', folder / 'model.pt')
    yield said_by(pack, 'pack', dense, folder / 'model.onnx')
    yield said_by(pack, 'prune', dense, folder / 'pruned.onnx', '--sparsity=90')
    yield said_by(pack, 'prune', dense, folder / 'pruned.onnx', '--sparsity=0.9', '--skip=nothing')
    yield said_by(pack, 'quantize', dense, folder / 'bytes.onnx')
    yield said_by(pack, 'validate', dense, SHIPPED / f'{SPARSE}.onnx')
    said_by(pack, 'pack', SHIPPED / f'{SPARSE}.onnx', packed)
    yield said_by(pack, 'prune', packed, folder / 'pruned.onnx', '--sparsity=0.9')
    whole = packed.read_bytes()
    for damaged in (whole[:1000], whole[:3000] + b'\0\1\2' + whole[3003:]):
        packed.write_bytes(damaged)
        yield said_by(pack, 'inspect', packed)


@pytest.fixture(scope='module')
def said(tmp_path_factory):
    """All that was said, by what it was provoked of."""
    if SANITIZED:
        pytest.skip('the messages are the same, and starting so often is slow')
    found = []
    for provoke in (starts, loads, requests, tools):
        folder = pathlib.Path(tmp_path_factory.mktemp(provoke.__name__))
        found += [' '.join(text.split()) for text in provoke(folder)]
        shutil.rmtree(folder)
    return [text.replace('\\"', '"') for text in found]


@pytest.mark.parametrize('message', [message for message in MESSAGES if message not in NOT_PROVOKED])
def test_the_message_is_said(said, message):
    pattern = re.compile('.*'.join(re.escape(piece) for piece in message.split('…')))
    assert any(pattern.search(text) for text in said)
