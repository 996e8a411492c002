"""gRPC's own client for health, of grpcio-health-checking: Check and Watch of the server, of its life, and of models."""

import contextlib
import queue
import threading

import grpc
import pytest
import tritonclient.grpc as triton
from grpc_health.v1 import health_pb2, health_pb2_grpc

SERVING, NOT_SERVING, UNKNOWN = (health_pb2.HealthCheckResponse.ServingStatus.Value(name)
                                 for name in ('SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'))


def request(service):
    return health_pb2.HealthCheckRequest(service=service)


class Watch:
    """A call of Watch that is read by a thread."""

    def __init__(self, stub, service):
        self.call = stub.Watch(request(service), timeout=120)
        self.seen = queue.Queue()
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        with contextlib.suppress(grpc.RpcError):
            for response in self.call:
                self.seen.put(response.status)

    def next(self):
        return self.seen.get(timeout=60)

    def end(self):
        """The code of the call, which has to end; nothing may have come that was not read."""
        code = self.call.code()
        self.thread.join(60)
        assert self.seen.empty()
        return code

    def cancel(self):
        self.call.cancel()
        self.thread.join(60)


@pytest.fixture
def watch():
    watches = []

    def begin(stub, service):
        watches.append(Watch(stub, service))
        return watches[-1]

    yield begin
    for begun in watches:
        begun.cancel()


def test_check_of_the_server_its_life_and_its_models(shared_server):
    with grpc.insecure_channel(shared_server.grpc) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ('', 'liveness', 'inference.GRPCInferenceService', 'identity', 'slow'):
            assert stub.Check(request(service), timeout=30).status == SERVING, service
        with pytest.raises(grpc.RpcError) as raised:
            stub.Check(request('nobody'), timeout=30)
        assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_watches_hear_of_loading_unloading_and_the_end(start, repository, watch):
    server = start(repository.identity().identity('late'), '--model-control=explicit', '--load-model=identity',
                   '--control-address=127.0.0.1:0')
    with grpc.insecure_channel(server.grpc) as channel, triton.InferenceServerClient(server.control) as control:
        stub = health_pb2_grpc.HealthStub(channel)
        whole, life = watch(stub, ''), watch(stub, 'liveness')
        model, late, nobody = (watch(stub, name) for name in ('identity', 'late', 'nobody'))
        assert [begun.next() for begun in (whole, life, model)] == [SERVING] * 3
        assert (late.next(), nobody.next()) == (NOT_SERVING, UNKNOWN)
        control.load_model('late')
        assert late.next() == SERVING
        control.unload_model('identity')
        assert model.next() == NOT_SERVING
        assert stub.Check(request('identity'), timeout=30).status == NOT_SERVING
        control.load_model('identity')
        assert model.next() == SERVING
        server.terminate()
        assert whole.next() == NOT_SERVING
        for begun in (life, nobody):
            assert begun.end() == grpc.StatusCode.UNAVAILABLE
    assert server.exit_code() == 0
