"""Whatever a client sends, it gets one clear error, and the server goes on serving."""

import multiprocessing
import os
import random
import time

import grpc
import numpy
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import SPARSE, wait_until

from raw_http2 import PREFACE

VALUES = numpy.arange(16, dtype=numpy.float32)


@pytest.fixture
def stub(shared_server):
    options = [('grpc.max_send_message_length', -1), ('grpc.max_receive_message_length', -1)]
    with grpc.insecure_channel(shared_server.grpc, options) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        yield stub
        assert_serves(stub)


def request(model='identity', name='INPUT0', datatype='FP32', shape=(1, 16), raw=None, **fields):
    message = service_pb2.ModelInferRequest(model_name=model, **fields)
    message.inputs.add(name=name, datatype=datatype, shape=shape)
    if raw is not None:
        message.raw_input_contents.append(raw)
    return message


def good_request(model='identity'):
    return request(model, raw=VALUES.tobytes())


def typed_request(datatype='FP32', shape=(1, 16), model='identity', **contents):
    message = request(model, datatype=datatype, shape=shape)
    for field, values in contents.items():
        getattr(message.inputs[0].contents, field).extend(values)
    return message


def assert_serves(stub):
    response = stub.ModelInfer(good_request(), timeout=60)
    assert response.raw_output_contents[0] == VALUES.tobytes()


def refusal(stub, message):
    """The (code, details) that the server answers."""
    with pytest.raises(grpc.RpcError) as raised:
        stub.ModelInfer(message, timeout=60)
    return raised.value.code(), raised.value.details()


def changed(message, change):
    change(message)
    return message


def test_typed_contents(stub):
    response = stub.ModelInfer(typed_request(fp32_contents=VALUES), timeout=60)
    assert response.raw_output_contents[0] == VALUES.tobytes()
    assert not response.outputs[0].HasField('contents')
    response = stub.ModelInfer(typed_request('INT8', (1, 4), 'bytes', int_contents=[1, -2, 127, -128]), timeout=60)
    assert response.raw_output_contents[0] == bytes([1, 254, 127, 128])
    response = stub.ModelInfer(typed_request('BYTES', (1, 2), 'text', bytes_contents=[b'a', b'']), timeout=60)
    assert response.raw_output_contents[0] == b'\1\0\0\0a\0\0\0\0'


RAW = VALUES.tobytes()
INVALID = {
    'no input': (service_pb2.ModelInferRequest(model_name='identity'), ["'INPUT0'", 'missing']),
    'no contents': (request(), ["'INPUT0'"]),
    'unknown input': (request(name='INPUT1', raw=RAW), ["'INPUT1'"]),
    'input twice': (changed(good_request(), lambda m: (m.inputs.append(m.inputs[0]), m.raw_input_contents.append(RAW))),
                    ["'INPUT0'", 'twice']),
    'too few bytes': (request(raw=RAW[:-1]), ["'INPUT0'", "'identity'", '63 bytes', 'FP32 [1,16]']),
    'too many bytes': (request(raw=RAW + b'x'), ['65 bytes']),
    'no bytes': (request(raw=b''), ['0 bytes']),
    'more raw contents than inputs': (changed(good_request(), lambda m: m.raw_input_contents.append(RAW)), ['2']),
    'raw and typed': (changed(typed_request(fp32_contents=VALUES), lambda m: m.raw_input_contents.append(RAW)),
                      ["'INPUT0'"]),
    'wrong datatype': (request(datatype='INT32', raw=RAW), ['INT32', 'FP32']),
    'no datatype': (request(datatype='', raw=RAW), ['FP32']),
    'unknown datatype': (request(datatype='FP8\0\n', raw=RAW), ['FP32']),
    'wrong rank': (request(shape=(16,), raw=RAW), ['[16]', '[-1,16]']),
    'wrong dimension': (request(shape=(1, 15), raw=RAW), ['[1,15]', '[-1,16]']),
    'negative batch': (request(shape=(-1, 16), raw=RAW), ["'INPUT0'"]),
    'empty batch': (request(shape=(0, 16), raw=b''), ["'INPUT0'"]),
    'batch too large': (request(shape=(9, 16), raw=RAW * 9), ['9', '8']),
    'absurd batch': (request(shape=(2**62, 16), raw=RAW), ["'INPUT0'"]),
    'shape that overflows': (request(SPARSE, 'image', shape=(2**32, 2**32, 28, 28), raw=RAW), ["'image'"]),
    'huge rank': (request(shape=(1,) * 10000, raw=RAW), ["'INPUT0'"]),
    'too few typed elements': (typed_request(fp32_contents=VALUES[:-1]), ['15', '16']),
    'typed elements of another type': (typed_request(int_contents=range(16)), ["'INPUT0'"]),
    'typed elements of two types': (typed_request(fp32_contents=VALUES, int_contents=[1]), ["'INPUT0'"]),
    'typed element out of range': (typed_request('INT8', (1, 4), 'bytes', int_contents=[1, 2, 3, 128]), ['INT8']),
    'string that is cut off': (request('text', datatype='BYTES', shape=(1, 1), raw=b'\5\0\0\0abc'), ["'INPUT0'"]),
    'string of absurd length': (request('text', datatype='BYTES', shape=(1, 1), raw=b'\xff\xff\xff\xff'), ["'INPUT0'"]),
    'unknown output': (changed(good_request(), lambda m: m.outputs.add(name='OUTPUT1')), ["'OUTPUT1'"]),
    'version that is no number': (changed(good_request(), lambda m: setattr(m, 'model_version', '1/../..')), []),
    'unknown parameter': (changed(good_request(), lambda m: m.parameters['triton_x'].CopyFrom(
        service_pb2.InferParameter(int64_param=1))), ['triton_x']),
    'timeout that is no number': (changed(good_request(), lambda m: m.parameters['timeout'].CopyFrom(
        service_pb2.InferParameter(string_param='soon'))), ['timeout']),
    'shared memory': (changed(good_request(), lambda m: m.inputs[0].parameters['shared_memory_region'].CopyFrom(
        service_pb2.InferParameter(string_param='region'))), ['shared_memory']),
}


@pytest.mark.parametrize('case', INVALID)
def test_invalid_request(stub, case):
    message, words = INVALID[case]
    code, details = refusal(stub, message)
    assert code == grpc.StatusCode.INVALID_ARGUMENT, details
    assert all(word in details for word in words), details
    assert len(details) < 500 and '/' not in details.replace('1/../..', '') and '\n' not in details, details


@pytest.mark.parametrize('name', ['nobody', '', '../identity', 'identity/1', 'identity\0',
                                  pytest.param('x' * 100000, id='long')])
def test_unknown_model(stub, name):
    code, details = refusal(stub, good_request(name))
    assert code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
    assert len(details) < 500


def test_unknown_version(stub):
    message = good_request()
    message.model_version = '99'
    assert refusal(stub, message)[0] == grpc.StatusCode.NOT_FOUND


def test_bytes_that_are_no_message(shared_server, stub):
    with grpc.insecure_channel(shared_server.grpc) as channel:
        call = channel.unary_unary('/inference.GRPCInferenceService/ModelInfer')
        # None of them begins with a whole model name: of a model that is not there no further byte is read.
        for garbage in (b'\xff' * 100, b'\x0a\xff\xff\xff\xff\x0f', random.Random(3).randbytes(1000) + b'\xff'):
            with pytest.raises(grpc.RpcError) as raised:
                call(garbage, timeout=60)
            assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert 'cannot be parsed as a ModelInferRequest' in raised.value.details()


def test_bytes_that_begin_with_a_model_name(shared_server, stub):
    with grpc.insecure_channel(shared_server.grpc) as channel:
        call = channel.unary_unary('/inference.GRPCInferenceService/ModelInfer')
        for name, code in ((b'nobody', grpc.StatusCode.NOT_FOUND), (b'identity', grpc.StatusCode.INVALID_ARGUMENT)):
            with pytest.raises(grpc.RpcError) as raised:
                call(b'\x0a' + bytes([len(name)]) + name + b'\xff' * 100, timeout=60)
            assert raised.value.code() == code, raised.value.details()


def test_call_without_a_message(shared_server, stub):
    with grpc.insecure_channel(shared_server.grpc) as channel:
        call = channel.stream_unary('/inference.GRPCInferenceService/ModelInfer')
        with pytest.raises(grpc.RpcError) as raised:
            call(iter([]), timeout=60)
        assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_compressed_request(shared_server, stub):
    response = stub.ModelInfer(good_request(), timeout=60, compression=grpc.Compression.Gzip)
    assert response.raw_output_contents[0] == VALUES.tobytes()


def test_bytes_that_are_no_grpc(shared_server, stub):
    import socket
    host, port = shared_server.grpc.split(':')
    for garbage in (b'GET / HTTP/1.0\r\n\r\n', os.urandom(4096), PREFACE + b'\xff' * 64):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(garbage)


def test_oversized_message(stub):
    code, _ = refusal(stub, request(raw=bytes((64 << 20) + 1)))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_passed_deadline(stub):
    with pytest.raises(grpc.RpcError) as raised:
        stub.ModelInfer(good_request('slow'), timeout=0.01)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def slow_requests(server):
    """Queued or running."""
    return server.metric('swizzle_inflight_requests', model='slow')


def test_cancelled_requests(shared_server, stub):
    calls = [stub.ModelInfer.future(good_request('slow'), timeout=60) for _ in range(20)]
    for call in calls:
        call.cancel()
    wait_until(lambda: slow_requests(shared_server) == 0, 60, 'the end of the requests')


def hold_requests(address):
    """Sends requests that take long, and is killed meanwhile."""
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(address))
    calls = [stub.ModelInfer.future(good_request('slow')) for _ in range(50)]
    time.sleep(60)
    del calls


def test_client_that_goes_away(shared_server, stub):
    spawn = multiprocessing.get_context('spawn')
    process = spawn.Process(target=hold_requests, args=(shared_server.grpc,), daemon=True)
    process.start()
    wait_until(lambda: slow_requests(shared_server) > 0, 60, 'the first request')
    process.kill()
    process.join(10)
    wait_until(lambda: slow_requests(shared_server) == 0, 60, 'the end of the requests')
    stub.ModelInfer(good_request('slow'), timeout=60)
