"""Signals, and the end of a server: what its clients see, and what it leaves behind."""

import collections
import contextlib
import os
import re
import signal
import socket
import struct
import threading

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import wait_until

from raw_http2 import BEGINNING

GOAWAY = 7


def identity_request():
    message = service_pb2.ModelInferRequest(model_name='identity')
    message.inputs.add(name='INPUT0', datatype='FP32', shape=(1, 16))
    message.raw_input_contents.append(bytes(64))
    return message


def silent_connection(server):
    """One that asks for nothing, and answers nothing: no PING, no GOAWAY."""
    host, port = server.grpc.split(':')
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(BEGINNING)
    return connection


def frames(connection):
    """Types of HTTP/2 frames, until the peer closes."""
    with connection.makefile('rb') as stream:
        while len(head := stream.read(9)) == 9:
            stream.read(struct.unpack('>I', b'\0' + head[:3])[0])
            yield head[3]


@pytest.mark.parametrize('ignored', (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1, signal.SIGUSR2))
def test_other_signals_change_nothing(start, repository, ignored):
    server = start(repository.identity())
    os.kill(server.process.pid, ignored)
    with grpc.insecure_channel(server.grpc) as channel:
        service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(identity_request(), timeout=60)
    assert server.stop() == 0, server.log()


def test_signals_that_follow_at_once_are_one(start, repository):
    """As timeout(1) sends them: to the process, and to its group."""
    server = start(repository.identity())
    server.terminate()
    server.terminate()
    assert server.exit_code() == 0, server.log()


def test_goaway_comes_before_the_queue_is_empty(start, repository):
    """Where the log says that it does."""
    server = start(repository.identity(delay_ms=10000, extra=''))
    told = re.search(r' listening .* grpc=(\S+) .*goaway=(yes|no)', server.log())
    assert told, server.log()
    if told[2] == 'no':
        pytest.skip(f'gRPC {told[1]} says GOAWAY at the end alone: DrainTest in server_test is without it')
    with contextlib.closing(silent_connection(server)) as connection, grpc.insecure_channel(server.grpc) as channel:
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer.future(identity_request(), timeout=120)
        wait_until(lambda: server.metric('swizzle_inflight_requests', model='identity') == 1, 60, 'the request')
        server.terminate()
        assert GOAWAY in frames(connection)
        assert not call.done()
        assert call.result().raw_output_contents[0] == bytes(64)
    assert server.exit_code() == 0, server.log()


@pytest.mark.parametrize('after, flags', [('age', ['--connection-age=1', '--connection-grace=1']),
                                          ('idle', ['--connection-idle=1'])])
def test_old_and_idle_connections_get_goaway_and_are_counted(start, repository, after, flags):
    server = start(repository.identity(), *flags)
    with contextlib.closing(silent_connection(server)) as connection:
        assert GOAWAY in list(frames(connection))
    wait_until(lambda: server.metric('swizzle_connections_ended_total', after=after) == 1, 60, 'the count')
    with grpc.insecure_channel(server.grpc) as channel:
        service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(identity_request(), timeout=60)


def test_a_peer_that_answers_nothing_does_not_keep_it(start, repository):
    server = start(repository.identity())
    with contextlib.closing(silent_connection(server)) as connection:
        next(frames(connection))
        assert server.stop() == 0, server.log()


def test_liveness_outlives_readiness(start, repository):
    """Probes connect anew each time, also while the queue is finished."""
    server = start(repository.identity(delay_ms=10000, extra=''))
    with grpc.insecure_channel(server.grpc) as channel:
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer.future(identity_request(), timeout=120)
        wait_until(lambda: server.metric('swizzle_inflight_requests', model='identity') == 1, 60, 'the request')
        server.terminate()
        wait_until(lambda: server.http('/readyz')[0] == 503, 60, 'the end of readiness')
        with grpc.insecure_channel(server.grpc, options=[('grpc.use_local_subchannel_pool', 1)]) as probe:
            assert probe.unary_unary('/grpc.health.v1.Health/Check')(b'\x0a\x08liveness', timeout=30) == b'\x08\x01'
        assert server.http('/livez')[0] == 200
        call.result()
    assert server.exit_code() == 0, server.log()


def test_under_load_no_accepted_request_is_lost(start, repository):
    """Every call ends, with OK or UNAVAILABLE; tests/bench/drain_runs.py does it twenty times, and looks at the time."""
    server = start(repository.identity(delay_ms=5), '--drain-delay=0.2')
    codes, lock = collections.Counter(), threading.Lock()
    message = identity_request().SerializeToString()

    def send():
        options = [('grpc.use_local_subchannel_pool', 1), ('grpc.enable_retries', 0)]
        with grpc.insecure_channel(server.grpc, options=options) as channel:
            call = channel.unary_unary('/inference.GRPCInferenceService/ModelInfer')
            gone = False
            while not gone:
                gone = server.process.poll() is not None
                try:
                    call(message, timeout=60)
                    code = 'OK'
                except grpc.RpcError as error:
                    code = error.code().name
                with lock:
                    codes[code] += 1

    threads = [threading.Thread(target=send) for _ in range(16)]
    for thread in threads:
        thread.start()
    wait_until(lambda: codes['OK'] > 200, 60, 'some requests')
    accepted_code = server.stop()
    for thread in threads:
        thread.join(60)
    assert accepted_code == 0, server.log()
    assert set(codes) == {'OK', 'UNAVAILABLE'}, codes
