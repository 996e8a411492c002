"""A server answers others while one connection does its worst: tests/bench/hostile_client.py, short."""

import contextlib
import socket

import pytest

from conftest import SANITIZED, program, wait_until

import hostile_client
import traffic


@pytest.fixture(scope='module')
def server():
    with hostile_client.start(program('swizzle-server'), None, 2048) as server:
        yield server


@pytest.mark.parametrize('attack', hostile_client.ATTACKS, ids=lambda attack: attack.__name__)
def test_the_server_answers_others(server, attack):
    victim, most, made = hostile_client.suffer(server, attack, 2, patience=60)
    assert made, 'the attack failed, or did not end'
    assert victim.milliseconds
    assert 'swizzle_build_info' in server.metrics(), 'metrics are still there'
    if SANITIZED:  # they need memory of their own, and time
        return
    assert not victim.errors, 'calls of the other client that failed'
    assert most < 1536, 'MiB'


@pytest.fixture(scope='module')
def tls_server():
    with hostile_client.start_with_tls(program('swizzle-server'), None, 2048, '--handshake-timeout=2') as server:
        yield server


@pytest.mark.parametrize('attack', hostile_client.HANDSHAKES, ids=lambda attack: attack.__name__)
def test_the_server_answers_others_while_handshakes_attack(tls_server, attack):
    test_the_server_answers_others(tls_server, attack)


def test_a_request_that_does_not_end_ends_its_connection():
    with hostile_client.start(program('swizzle-server'), None, 2048, '--request-timeout=1') as server:
        with socket.create_connection(('127.0.0.1', server.ports['grpc'])):  # one that says nothing has its own limit
            slow, waiting = (hostile_client.Connection(server.ports['grpc']) for _ in range(2))
            message = hostile_client.prefixed(traffic.zeros())
            waiting.data(waiting.open(hostile_client.call_headers()), message)
            slow.data(slow.open(hostile_client.call_headers()), message[:-1], end=False)
            with pytest.raises(OSError):
                while True:
                    slow.read(60)
            wait_until(lambda: server.metric('swizzle_connections_refused_total', reason='slow_sender') == 1, 30, 'the count')
            waiting.data(stream := waiting.open(hostile_client.call_headers()), message)
            while stream not in waiting.ended:
                waiting.read(60)


def test_connections_are_accepted_again_after_there_were_too_many(tmp_path):
    with hostile_client.start(program('swizzle-server'), None, 2048, '--max-connections=50') as server:
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(socket.create_connection(('127.0.0.1', server.ports['grpc'])))
            wait_until(lambda: server.metric('swizzle_connections_refused_total', reason='limit') >= 50, 30, 'refusals')
        wait_until(lambda: server.metric('swizzle_connections') == 0, 30, 'the end of the others')
        victim, _, _ = hostile_client.suffer(server, lambda port, stop: stop.wait(), 0.5, patience=60)
        assert victim.milliseconds, victim.errors
