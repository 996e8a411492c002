"""Settings of log and traces, and shared memory, over HTTP: Triton's client unmodified."""

import json
import uuid

import numpy
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as triton
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

from conftest import lasting_server
from plain_http import ask, error_of

VALUES = numpy.arange(32, dtype=numpy.float32).reshape(2, 16)
PREFIX = f'swizzle-test-{uuid.uuid4().hex[:8]}-'


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    with lasting_server(tmp_path_factory.mktemp('extensions'), '--http-address=127.0.0.1:0',
                        '--http-control-address=127.0.0.1:0', '--trace-endpoint=http://127.0.0.1:1',
                        '--trace-rate=0.01', f'--shared-memory-prefix={PREFIX}',
                        '--shared-memory-bytes=10000') as server:
        yield server


@pytest.fixture
def client(server):
    with triton.InferenceServerClient(server.rest) as client:
        yield client
        client.unregister_system_shared_memory()


@pytest.fixture
def control(server):
    with triton.InferenceServerClient(server.http_control) as control:
        yield control


def refusal(call, *arguments, **named):
    with pytest.raises(InferenceServerException) as raised:
        call(*arguments, **named)
    return raised.value.message()


# ---- Settings ----

def test_log_settings(client, control):
    before = client.get_log_settings()
    assert before == {'log_file': '', 'log_info': True, 'log_warning': True, 'log_error': True, 'log_verbose_level': 0,
                      'log_format': 'text'}
    assert '--http-control-address' in refusal(client.update_log_settings, {'log_info': False})
    assert client.get_log_settings() == before
    changed = control.update_log_settings({'log_info': False, 'log_verbose_level': 2, 'log_format': 'ISO8601'})
    assert changed == {**before, 'log_info': False, 'log_verbose_level': 2, 'log_format': 'ISO8601'}
    assert control.get_log_settings() == client.get_log_settings() == changed
    assert control.update_log_settings(before) == before, 'whoever sets what was read changes nothing'
    for wrong, said in (({'log_info': 1}, 'log_info is true or false'), ({'log_file': 'x'}, "can't be changed"),
                        ({'other': True}, "there is no log setting 'other'"), ({'log_info': None}, 'must be a bool'),
                        ({'log_verbose_level': -1}, 'must be a bool'), ({'log_verbose_level': 2**32}, 'must be a bool')):
        assert said in refusal(control.update_log_settings, {'log_error': False, **wrong})
    assert control.get_log_settings() == before, 'nothing of a wrong request is taken'


def test_trace_settings(server, client, control):
    before = client.get_trace_settings()
    assert before == {'trace_level': ['TIMESTAMPS'], 'trace_rate': '100', 'trace_count': '-1', 'log_frequency': '0',
                      'trace_file': '', 'trace_mode': 'opentelemetry'}
    assert client.get_trace_settings('identity') == before
    assert "'nobody'" in refusal(client.get_trace_settings, 'nobody')
    assert '--http-control-address' in refusal(client.update_trace_settings, settings={'trace_level': ['OFF']})
    changed = control.update_trace_settings(settings={'trace_level': ['OFF'], 'trace_rate': '7', 'trace_count': 5})
    assert changed == {**before, 'trace_level': ['OFF'], 'trace_rate': '7', 'trace_count': '5'}
    with grpc_client.InferenceServerClient(server.grpc) as other:
        theirs = other.get_trace_settings(as_json=True)['settings']
        assert theirs['trace_rate']['value'] == ['7'] and theirs['trace_level']['value'] == ['OFF']
    assert control.update_trace_settings(settings={'trace_level': None, 'trace_rate': None,
                                                   'trace_count': None}) == before
    assert control.update_trace_settings(settings=before) == before
    for wrong, said in (({'trace_rate': 'x'}, 'is a whole number'), ({'trace_level': ['TENSORS']}, 'OFF or TIMESTAMPS'),
                        ({'trace_level': [['OFF']]}, 'must be a string'), ({'trace_rate': True}, 'must be a string'),
                        ({'other': '1'}, "there is no trace setting 'other'")):
        assert said in refusal(control.update_trace_settings, settings={'trace_count': '9', **wrong})
    assert "can't be changed for one model" in refusal(control.update_trace_settings, 'identity', {'trace_rate': '1'})
    assert control.get_trace_settings() == before


@pytest.mark.parametrize('path', ['/v2/logging', '/v2/trace/setting', '/v2/models/identity/trace/setting'])
def test_what_are_no_settings(server, path):
    for body in ('7', '[]', '{', '"x"', '{"a": ' + '[' * 9000 + ']' * 9000 + '}', b'\xff'):
        assert error_of(ask(server, path, body, address=server.http_control))[0] == 400
    for body in ('', '{}'):
        assert ask(server, path, body)[0] == ask(server, path, body, 'GET')[0] == 200


# ---- Shared memory ----

@pytest.fixture
def region():
    """region(size) makes one of the client's; its key is what the server opens it by."""
    made = []

    def make(size):
        key = f'/{PREFIX}{len(made)}'
        made.append((shm.create_shared_memory_region(f'r{len(made)}', key, size), key))
        return made[-1]

    yield make
    for handle, _ in made:
        shm.destroy_shared_memory_region(handle)


def tensors(count=128, offset=0, out=None, out_offset=0):
    tensor = triton.InferInput('INPUT0', [2, 16], 'FP32')
    tensor.set_shared_memory('in', count, offset=offset)
    output = triton.InferRequestedOutput('OUTPUT0')
    if out is not None:
        output.set_shared_memory('out', out, offset=out_offset)
    return {'inputs': [tensor], 'outputs': [output]}


def test_tensors_go_through_shared_memory(client, region):
    (source, key), (target, to) = region(256), region(256)
    shm.set_shared_memory_region(source, [VALUES], offset=64)
    client.register_system_shared_memory('in', key, 256)
    client.register_system_shared_memory('out', to, 256)
    result = client.infer('identity', **tensors(offset=64, out=160, out_offset=96))
    output = result.get_output('OUTPUT0')
    assert output['parameters'] == {'shared_memory_region': 'out', 'shared_memory_byte_size': 128,
                                    'shared_memory_offset': 96}
    assert 'data' not in output
    numpy.testing.assert_array_equal(shm.get_contents_as_numpy(target, numpy.float32, [2, 16], offset=96), VALUES)
    numpy.testing.assert_array_equal(client.infer('identity', **tensors(offset=64)).as_numpy('OUTPUT0'), VALUES)
    assert 'are not all in it' in refusal(client.infer, 'identity', **tensors(offset=200))
    assert 'its place in shared memory 64' in refusal(client.infer, 'identity', **tensors(out=64))
    client.unregister_system_shared_memory('in')
    assert "there is no shared memory region 'in'" in refusal(client.infer, 'identity', **tensors())


def test_regions_are_listed(server, client, region):
    _, key = region(256)
    assert client.get_system_shared_memory_status() == []
    client.register_system_shared_memory('b', key, 200, offset=56)
    client.register_system_shared_memory('a b', key, 100)
    first = {'name': 'a b', 'key': key, 'offset': 0, 'byte_size': 100}
    second = {'name': 'b', 'key': key, 'offset': 56, 'byte_size': 200}
    assert client.get_system_shared_memory_status() == [first, second]
    assert client.get_system_shared_memory_status('b') == [second]
    assert 'is registered already' in refusal(client.register_system_shared_memory, 'b', key, 100)
    with grpc_client.InferenceServerClient(server.grpc) as other:
        assert set(other.get_system_shared_memory_status(as_json=True)['regions']) == {'a b', 'b'}
    client.unregister_system_shared_memory('b')
    assert client.get_system_shared_memory_status() == [first]
    assert 'there is no shared memory region' in refusal(client.get_system_shared_memory_status, 'b')
    client.unregister_system_shared_memory()
    assert client.get_system_shared_memory_status() == []


@pytest.mark.parametrize('change, said', [
    ({'key': None}, "'key' must be there"), ({'key': 7}, "'key' must be there"), ({'byte_size': None}, "'byte_size'"),
    ({'byte_size': -1}, "'byte_size'"), ({'byte_size': 1.5}, "'byte_size'"), ({'byte_size': 2**64}, "'byte_size'"),
    ({'byte_size': 0}, 'is not in it'), ({'offset': 2**63}, 'is not in it'), ({'offset': '0'}, "'offset'"),
    ({'key': '/another'}, 'its name has to begin with'), ({'key': '/../etc/passwd'}, 'its name has to begin with')])
def test_what_may_not_be_registered(server, region, change, said):
    _, key = region(256)
    asked = {name: value for name, value in {'key': key, 'byte_size': 100, 'offset': 0, **change}.items()
             if value is not None}
    status, error = error_of(ask(server, '/v2/systemsharedmemory/region/x/register', json.dumps(asked)))
    assert status == 400 and said in error, error
    for body in ('', '[]', '{'):
        assert error_of(ask(server, '/v2/systemsharedmemory/region/x/register', body))[0] == 400


def test_memory_of_gpus_is_off_unless_asked_for(server, client):
    for call, arguments in ((client.get_cuda_shared_memory_status, ()), (client.unregister_cuda_shared_memory, ()),
                            (client.register_cuda_shared_memory, ('g', b'AAAA', 0, 64))):
        assert 'no shared memory of GPUs' in refusal(call, *arguments)
    for body in ('{}', '{"raw_handle": {}}', '{"raw_handle": {"b64": "!"}}', '{"raw_handle": {"b64": ""}}',
                 '{"raw_handle": {"b64": ""}, "device_id": -1, "byte_size": 1}',
                 '{"raw_handle": {"b64": ""}, "device_id": 18446744073709551615, "byte_size": 1}'):
        assert error_of(ask(server, '/v2/cudasharedmemory/region/x/register', body))[0] == 400


def test_what_is_there_is_told(client):
    assert {'logging', 'trace', 'system_shared_memory'} <= set(client.get_server_metadata()['extensions'])
    assert 'cuda_shared_memory' not in client.get_server_metadata()['extensions']
