"""Clients on the same host, on a Unix socket."""

import queue
import stat
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton

from conftest import program, wait_until

VALUES = numpy.zeros((1, 16), numpy.float32)


@pytest.fixture
def client_of():
    clients = []

    def make(path):
        answers = queue.Queue()
        client = triton.InferenceServerClient(f'unix:{path}', channel_args=[('grpc.use_local_subchannel_pool', 1)])
        client.start_stream(lambda result, error: answers.put(error))
        clients.append(client)

        def send(model):
            tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
            tensor.set_data_from_numpy(VALUES)
            client.async_stream_infer(model, [tensor])
        return client, send, answers

    yield make
    for client in clients:
        client.close()


def test_calls_on_a_unix_socket(repository, start, tmp_path, client_of):
    path = tmp_path / 's'
    server = start(repository.identity(), f'--grpc-address=unix:{path}')
    assert stat.S_ISSOCK(path.stat().st_mode)
    client, send, answers = client_of(path)
    assert client.is_server_ready() and client.is_model_ready('identity')
    send('identity')
    assert answers.get(timeout=30) is None
    assert server.metric('swizzle_connections') >= 1
    assert server.stop() == 0, server.log()
    assert not path.exists()


def test_connections_have_accounts_of_their_own(repository, start, tmp_path, client_of):
    path = tmp_path / 's'
    server = start(repository.identity('slow', delay_ms=5000), f'--grpc-address=unix:{path}',
                   '--max-connection-inflight-bytes=20000')
    (_, send, answers), (_, other, answer) = client_of(path), client_of(path)
    for _ in range(6):
        send('slow')
    wait_until(lambda: server.metric('swizzle_refused_calls_total', reason='inflight_bytes') >= 1, 30, 'a refusal')
    other('slow')
    errors = [answers.get(timeout=30) for _ in range(6)]
    assert sum(error is None for error in errors) >= 4
    assert any(error and 'the connection has' in error.message() for error in errors)
    assert answer.get(timeout=30) is None


def test_a_path_that_cannot_be_had_is_named(repository, tmp_path):
    ended = subprocess.run([program('swizzle-server'), f'--model-repository={repository}',
                            f'--grpc-address=unix:{tmp_path}/no/such/folder', '--metrics-address=127.0.0.1:0'],
                           capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert 'cannot listen on unix:' in ended.stdout + ended.stderr
