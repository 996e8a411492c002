"""What must not harm a server that serves: files that change under it, disks that are full, clients that vanish."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import urllib.request

import grpc
import numpy
import onnx
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import ROOT, SHIPPED, SPARSE, START_SECONDS, STOP_SECONDS, program, wait_until

from raw_http2 import BEGINNING


# Asks for `identity` and waits for ever.
CLIENT = '''
import sys, grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc
message = service_pb2.ModelInferRequest(model_name='identity')
message.inputs.add(name='INPUT0', datatype='FP32', shape=(1, 16))
message.raw_input_contents.append(bytes(64))
with grpc.insecure_channel(sys.argv[1]) as channel:
    service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(message)
'''


def classify(server, seed=1, channel=None):
    """The logits of a drawn image, by a connection of its own if none is given."""
    message = service_pb2.ModelInferRequest(model_name=SPARSE)
    message.inputs.add(name='image', datatype='FP32', shape=(1, 1, 28, 28))
    image = numpy.random.default_rng(seed).random((1, 1, 28, 28), numpy.float32)
    message.raw_input_contents.append(image.tobytes())
    with contextlib.nullcontext(channel) if channel else grpc.insecure_channel(server.grpc) as channel:
        answer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(message, timeout=60)
    return answer.raw_output_contents[0]


def replace(file):
    other = file.with_name('other')
    other.write_bytes(b'no model at all')
    other.rename(file)


@pytest.mark.parametrize('change', (replace, lambda file: os.truncate(file, 100), pathlib.Path.unlink),
                         ids=('replaced', 'truncated', 'deleted'))
@pytest.mark.parametrize('container', ('onnx', 'swz'))
def test_a_model_file_changes_while_it_is_served(start, repository, tmp_path, container, change):
    file = SHIPPED / f'{SPARSE}.onnx'
    if container == 'swz':
        file = tmp_path / 'model.swz'
        subprocess.run([program('swizzle-pack'), 'pack', SHIPPED / f'{SPARSE}.onnx', file], check=True, timeout=300)
    server = start(repository.file(SPARSE, f'model.{container}', file))
    before = classify(server)
    change(repository.directory / SPARSE / '1' / f'model.{container}')
    assert classify(server) == before
    assert server.stop() == 0, server.log()


def test_a_client_is_killed_while_it_waits(start, repository):
    server = start(repository.identity(delay_ms=5000, extra=''))
    files = server.metric('process_open_fds')
    clients = [subprocess.Popen([sys.executable, '-c', CLIENT, server.grpc]) for _ in range(3)]
    waiting = lambda: server.metric('swizzle_inflight_requests', model='identity')  # noqa: E731
    wait_until(lambda: waiting() == 3, 60, 'three requests')
    for client in clients:
        client.kill()
        client.wait(60)
    wait_until(lambda: waiting() == 0, 60, 'the end of their requests')
    wait_until(lambda: server.metric('process_open_fds') <= files, 60, 'the end of their connections')
    assert server.metric('swizzle_requests_total', model='identity') == 3
    assert server.stop() == 0, server.log()


def test_connections_that_end_early_leave_nothing(start, repository):
    server = start(repository.identity())
    files = server.metric('process_open_fds')
    for length in range(0, len(BEGINNING), 3):
        host, port = server.grpc.split(':')
        with contextlib.closing(socket.create_connection((host, int(port)), timeout=60)) as connection:
            connection.sendall(BEGINNING[:length])
    wait_until(lambda: server.metric('process_open_fds') <= files, 60, 'the end of their connections')
    assert server.stop() == 0, server.log()


@contextlib.contextmanager
def server_with(repository, tmp_path, *flags, **process):
    """A server whose output goes elsewhere than `start` lets it."""
    ports = tmp_path / 'ports.json'
    server = subprocess.Popen([program('swizzle-server'), f'--model-repository={repository}', f'--port-file={ports}',
                               '--grpc-address=127.0.0.1:0', '--metrics-address=127.0.0.1:0', *flags],
                              stdin=subprocess.DEVNULL, **process)
    try:
        wait_until(lambda: ports.exists() or server.poll() is not None, START_SECONDS, 'the start of the server')
        assert server.poll() is None
        server.grpc, server.metrics = (f'127.0.0.1:{json.loads(ports.read_text())[name]}' for name in ('grpc', 'metrics'))
        yield server
    finally:
        server.kill()
        server.wait(STOP_SECONDS)


def test_a_log_on_a_full_disk(repository, tmp_path):
    with open('/dev/full', 'wb') as full, server_with(repository.shipped(), tmp_path, '--tuning-budget=0', stdout=full,
                                                      stderr=full) as server:
        classify(server)
        server.send_signal(signal.SIGTERM)
        assert server.wait(STOP_SECONDS) == 0


def test_a_tuning_cache_on_a_full_disk(repository, tmp_path):
    """A limit on the size of files comes with a signal, SIGXFSZ, that ends who doesn't expect it."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))  # noqa: E731
    cache = tmp_path / 'times'
    with server_with(repository.shipped(), tmp_path, '--tune=before-ready', '--tuning-budget=2',
                     f'--tuning-cache={cache}', stderr=subprocess.PIPE, preexec_fn=limit) as server:
        classify(server)
        server.send_signal(signal.SIGTERM)
        log = server.communicate(timeout=STOP_SECONDS)[1].decode()
        assert server.returncode == 0, log
    assert 'tuning cache not saved' in log
    assert not cache.exists()


def probe(server, page):
    with urllib.request.urlopen(f'http://{server.metrics}{page}', timeout=60) as answer:
        return answer.read().decode()


def test_no_file_descriptors_are_left(repository, tmp_path):
    """Clients connect until the server has none, and stay. Whoever was there is served meanwhile, and everybody once they
    are gone."""
    refused = 'swizzle_connections_refused_total{reason="files"} '
    with server_with(repository.shipped(), tmp_path, '--tuning-budget=0') as server, \
            grpc.insecure_channel(server.grpc) as before:
        expected = classify(server, channel=before)
        assert f'{refused}0' in probe(server, '/metrics')
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        open_files = lambda: len(list(pathlib.Path(f'/proc/{server.pid}/fd').iterdir()))  # noqa: E731
        most = open_files() + 20
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (most, limits[1]))
        with contextlib.ExitStack() as stack:
            host, port = server.grpc.split(':')
            for _ in range(100):
                with contextlib.suppress(OSError):  # it was refused
                    connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
                    connection.sendall(BEGINNING)
            assert classify(server, channel=before) == expected
        wait_until(lambda: open_files() < most - 10, 60, 'the end of the connections')
        assert probe(server, '/livez') == probe(server, '/readyz') == 'ok\n'
        assert f'{refused}0' not in probe(server, '/metrics')
        assert classify(server) == expected, 'none of the limit was given back'
        server.send_signal(signal.SIGTERM)
        assert server.wait(STOP_SECONDS) == 0


def metadata(server, model):
    """What `swizzle metadata` prints."""
    return subprocess.run([program('swizzle'), 'metadata', model, f'--address={server.grpc}'], check=True, timeout=60,
                          stdout=subprocess.PIPE, text=True).stdout


def test_a_model_too_large_for_the_memory_leaves_the_others_serving(start, repository):
    server = start(repository.identity().shipped(), '--memory-limit=100000000', '--ready=any')
    reasons = server.http('/readyz')[1]
    assert f"model '{SPARSE}' failed: there is no room for it in memory: its files have 13 MiB, and of 95 MiB" in reasons
    health = subprocess.run([program('swizzle'), 'health', f'--address={server.grpc}'], stdout=subprocess.PIPE, text=True,
                            check=True, timeout=60).stdout
    assert f"model '{SPARSE}' is UNAVAILABLE: there is no room" in health
    assert 'INPUT0' in metadata(server, 'identity')
    assert server.stop() == 0, server.log()


def test_external_data_too_large_for_the_memory_is_not_read(start, repository):
    weight = onnx.TensorProto(name='w', data_type=onnx.TensorProto.FLOAT, dims=(7168, 7168),
                              data_location=onnx.TensorProto.EXTERNAL)
    weight.external_data.add(key='location', value='weights')
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node('Gemm', ['x', 'w'], ['y'])], 'g',
        [onnx.helper.make_tensor_value_info('x', onnx.TensorProto.FLOAT, ['batch', 7168])],
        [onnx.helper.make_tensor_value_info('y', onnx.TensorProto.FLOAT, ['batch', 7168])], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 13)], ir_version=7)
    repository.identity().file('large', 'model.onnx', model.SerializeToString()).file('large', 'weights', b'')
    os.truncate(repository.directory / 'large' / '1' / 'weights', 4 * 7168 ** 2)
    server = start(repository, f'--memory-limit={320 << 20}', '--ready=any')
    assert "'w' has 205520896 bytes of external data, which takes the model above its limit" in server.http('/readyz')[1]
    assert 'INPUT0' in metadata(server, 'identity')
    assert server.stop() == 0, server.log()


def test_a_batch_too_large_for_the_memory_is_lowered(start, repository):
    repository.shipped().config(SPARSE, 'max_batch_size: 4096 dynamic_batching { }')
    server = start(repository, f'--memory-limit={320 << 20}')
    assert 'the largest batch is' in metadata(server, SPARSE)
    assert len(classify(server)) == 40
    assert server.stop() == 0, server.log()


def test_all_kinds_of_clients_at_once():
    """tests/bench/soak.py, which goes on for half an hour, for some seconds: memory has not settled then."""
    result = subprocess.run([sys.executable, ROOT / 'tests' / 'bench' / 'soak.py', '--minutes=0.15', '--most-growth=9',
                             '--least-replacements=0', '--server', program('swizzle-server'), '--models', SHIPPED, '--clients=1'],
                            capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
