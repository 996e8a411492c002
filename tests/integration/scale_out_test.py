"""Three replicas of which one is killed, drained, or hangs, or all are rolled to a new version, under load: no client of
ours notices, and none of grpcio's that retries, by itself or through a proxy. tests/bench/scale_out.py makes the events,
and measures what they cost."""

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import ROOT, program, wait_until

import traffic
from balanced_clients import BALANCE, RETRY, CppClients, PythonClients
from replicas import Replicas, envoy, nginx
from scale_out import AGEING, ENVOY, EVENTS, FLAGS, NGINX, through

CALLERS = 6


def expect_none_failed(clients):
    assert clients.failed() == 0, clients.messages
    assert clients.codes['OK'] > 0


@pytest.mark.parametrize('event', EVENTS)
def test_clients_of_the_library_notice_nothing(event):
    flags = (*FLAGS, *AGEING) if event == 'age' else FLAGS
    with Replicas(program('swizzle-server'), *flags) as replicas:
        # Impatient with a replica that hangs, patient with a machine that is busy.
        with CppClients(program('balanced_load'), replicas.target, CALLERS, 50, '--timeout=300', '--attempt-timeout=1',
                        '--keepalive=2', '--keepalive-timeout=2') as clients:
            clients.wait_for(100)
            EVENTS[event](replicas, clients)
    expect_none_failed(clients)
    if event == 'roll':
        assert set(clients.versions) == {'1', '2'}


def test_a_list_of_addresses_does_as_well():
    with Replicas(program('swizzle-server'), *FLAGS, fixed=True) as replicas:
        with CppClients(program('balanced_load'), ','.join(replicas.addresses), CALLERS, 50, '--timeout=300') as clients:
            clients.wait_for(100)
            EVENTS['roll'](replicas, clients)
        expect_none_failed(clients)
        assert replicas.names.questions == 0


def test_draining_needs_no_retries():
    """Replicas tell that they will go before they do."""
    with Replicas(program('swizzle-server'), *FLAGS) as replicas:
        with CppClients(program('balanced_load'), replicas.target, CALLERS, 1, '--timeout=300') as clients:
            clients.wait_for(100)
            EVENTS['roll'](replicas, clients)
    expect_none_failed(clients)


def test_all_may_be_told_to_go_before_names_are_those_of_others():
    """Clients that watch the health of servers do not leave while these take requests."""
    flags = [flag for flag in FLAGS if not flag.startswith('--drain-delay')]
    with Replicas(program('swizzle-server'), *flags, '--drain-delay=6') as replicas:
        with CppClients(program('balanced_load'), replicas.target, CALLERS, 50, '--timeout=300') as clients:
            clients.wait_for(100)
            leaving, names = list(replicas.running), list(replicas.names.addresses)
            for _ in leaving:
                replicas.add(2)
            replicas.names.addresses = names
            for replica in leaving:
                replica.drain()
            clients.wait_for(100)
            replicas.names.addresses = [replica.host for replica in replicas.running if replica not in leaving]
            for replica in leaving:
                replicas.wait_for_end(replica)
            clients.wait_for(100)
    expect_none_failed(clients)
    assert set(clients.versions) == {'1', '2'}


@pytest.mark.parametrize('event', ('kill', 'roll'))
def test_grpcio_notices_nothing_with_a_service_config(event):
    with Replicas(program('swizzle-server'), *FLAGS) as replicas:
        with PythonClients(replicas.target, CALLERS, True, timeout=300) as clients:
            clients.wait_for(100)
            EVENTS[event](replicas, clients)
    expect_none_failed(clients)


@pytest.fixture(params=((envoy, ENVOY), (nginx, NGINX)), ids=('envoy', 'nginx'))
def proxy(request):
    """proxy(addresses) starts one."""
    start, path = request.param
    if not path.exists():
        pytest.skip(f'{path} is not installed')
    return lambda addresses: start(path, addresses)


@pytest.mark.parametrize('event', ('kill', 'roll'))
def test_nothing_is_noticed_behind_a_proxy(event, proxy):
    with Replicas(program('swizzle-server'), *FLAGS, fixed=True) as replicas:
        with through(proxy(replicas.addresses), CALLERS, True, timeout=300) as clients:
            clients.wait_for(100)
            EVENTS[event](replicas, clients)
    expect_none_failed(clients)


def test_what_the_page_tells_python_is_what_was_tried():
    code = (ROOT / 'deploy/README.md').read_text().split('```python\n')[1].split('```')[0]
    with Replicas(program('swizzle-server'), *FLAGS) as replicas:
        said = {}
        exec(code.replace('dns:///swizzle-headless.swizzle:8001', replicas.target), said)
        with said['channel'] as channel:
            call = channel.unary_unary(traffic.METHOD)

            def all_are_asked():
                call(traffic.zeros(), timeout=300)
                return all(replica.metric('swizzle_requests_total', code='OK') > 0 for replica in replicas.running)

            wait_until(all_are_asked, 120, 'a call to each')
    assert said['config'] == {**BALANCE, **RETRY}


def test_streams_go_through_a_proxy(proxy):
    request = service_pb2.ModelInferRequest.FromString(traffic.zeros())
    with Replicas(program('swizzle-server'), *FLAGS, fixed=True) as replicas, proxy(replicas.addresses) as running:
        with grpc.insecure_channel(running.target) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            answers = list(stub.ModelStreamInfer(iter([request] * 50), timeout=300))
    assert [answer.error_message for answer in answers] == [''] * 50
