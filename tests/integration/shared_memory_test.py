"""Tensors in shared memory, by Triton's own client."""

import base64
import os
import uuid

import numpy
import pytest
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

from conftest import QUICK_START, Repository, Server, wait_until

VALUES = numpy.arange(32, dtype=numpy.float32).reshape(2, 16)
PREFIX = f'swizzle-test-{uuid.uuid4().hex[:8]}-'


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp('shared_memory')
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models').identity().identity('slow', delay_ms=300)
    repository.identity('text', datatype='STRING', dims='[ -1 ]')
    server = Server(repository, directory, *QUICK_START, f'--shared-memory-prefix={PREFIX}',
                    '--shared-memory-bytes=10000')
    try:
        yield server
        assert server.process.poll() is None, server.log()
        assert server.stop() == 0, server.log()
    finally:
        server.kill()


@pytest.fixture
def client(server):
    with triton.InferenceServerClient(server.grpc) as client:
        yield client
        client.unregister_system_shared_memory()


@pytest.fixture
def region():
    """region(size) makes one of the client's; its key is what the server opens it by."""
    made = []

    def make(size, name=None):
        key = '/' + (name or f'{PREFIX}{len(made)}')
        made.append((shm.create_shared_memory_region(f'r{len(made)}', key, size), key))
        return made[-1]

    yield make
    for handle, _ in made:
        try:
            shm.destroy_shared_memory_region(handle)
        except (shm.SharedMemoryException, FileNotFoundError):
            pass  # the test has unlinked it


def tensors(count=128, offset=0, shape=(2, 16), datatype='FP32', out=None):
    tensor = triton.InferInput('INPUT0', list(shape), datatype)
    tensor.set_shared_memory('in', count, offset=offset)
    output = triton.InferRequestedOutput('OUTPUT0')
    if out is not None:
        output.set_shared_memory('out', out)
    return {'inputs': [tensor], 'outputs': [output]}


def refusal(call, *arguments, **named):
    with pytest.raises(InferenceServerException) as raised:
        call(*arguments, **named)
    return raised.value.message()


def test_tensors_go_through_shared_memory(client, region):
    (source, key), (target, to) = region(256), region(256)
    shm.set_shared_memory_region(source, [VALUES])
    client.register_system_shared_memory('in', key, 256)
    client.register_system_shared_memory('out', to, 256)
    result = client.infer('identity', **tensors(out=256))
    output = result.get_response().outputs[0]
    assert output.parameters['shared_memory_region'].string_param == 'out'
    assert output.parameters['shared_memory_byte_size'].int64_param == 128
    assert list(result.get_response().raw_output_contents) == [b'']
    numpy.testing.assert_array_equal(shm.get_contents_as_numpy(target, numpy.float32, [2, 16]), VALUES)
    numpy.testing.assert_array_equal(client.infer('identity', **tensors()).as_numpy('OUTPUT0'), VALUES)


def test_regions_may_begin_within_the_memory(client, region):
    source, key = region(512)
    shm.set_shared_memory_region(source, [VALUES], offset=128)
    client.register_system_shared_memory('in', key, 384, offset=64)
    result = client.infer('identity', **tensors(offset=64))
    numpy.testing.assert_array_equal(result.as_numpy('OUTPUT0'), VALUES)


def test_streams_take_regions_as_calls_do(client, region):
    source, key = region(128)
    shm.set_shared_memory_region(source, [VALUES])
    client.register_system_shared_memory('in', key, 128)
    answers = []
    client.start_stream(lambda result, error: answers.append(error or result.as_numpy('OUTPUT0')))
    client.async_stream_infer('identity', **tensors())
    client.stop_stream()
    numpy.testing.assert_array_equal(answers[0], VALUES)


def test_strings_are_checked_in_the_copy(client, region):
    source, key = region(64)
    client.register_system_shared_memory('in', key, 64)
    with open('/dev/shm' + key, 'r+b') as file:
        file.write(b'\2\0\0\0ab\xff\0\0\0')
    kwargs = tensors(count=6, shape=(1, 1), datatype='BYTES')
    assert list(client.infer('text', **kwargs).as_numpy('OUTPUT0')[0]) == [b'ab']
    broken = tensors(count=10, shape=(1, 2), datatype='BYTES')
    assert '(uint32 length, bytes)' in refusal(client.infer, 'text', **broken)


def test_status_and_unregister(server, client, region):
    def metrics():
        return [server.metric(f'swizzle_shared_memory_{name}') for name in ('regions', 'bytes', 'bytes_limit')]

    _, key = region(256)
    assert client.get_system_shared_memory_status(as_json=True) == {}
    client.register_system_shared_memory('a', key, 100)
    client.register_system_shared_memory('b', key, 200, offset=56)
    status = client.get_system_shared_memory_status(as_json=True)['regions']
    assert status['b'] == {'name': 'b', 'key': key, 'offset': '56', 'byte_size': '200'}
    assert list(client.get_system_shared_memory_status('a', as_json=True)['regions']) == ['a']
    assert 'is registered already' in refusal(client.register_system_shared_memory, 'a', key, 100)
    assert metrics() == [2, 300, 10000]
    client.unregister_system_shared_memory('a')
    assert metrics() == [1, 200, 10000]
    assert 'there is no shared memory region' in refusal(client.get_system_shared_memory_status, 'a')
    client.unregister_system_shared_memory('nothing')
    client.unregister_system_shared_memory()
    assert client.get_system_shared_memory_status(as_json=True) == {}
    assert metrics() == [0, 0, 10000]


def test_what_may_not_be_registered(client, region):
    _, key = region(256)
    _, foreign = region(256, f'another-{uuid.uuid4().hex}')
    for name in (foreign, '/../etc/passwd', f'/{PREFIX}../x', '', '/'):
        assert 'its name has to begin with' in refusal(client.register_system_shared_memory, 'x', name, 1), name
    assert 'cannot be opened' in refusal(client.register_system_shared_memory, 'x', f'/{PREFIX}nothing', 1)
    for size, offset in ((257, 0), (0, 0), (1, 256), (1, 2 ** 63), (2 ** 64 - 1, 1), (2 ** 63, 2 ** 63)):
        assert 'is not in it' in refusal(client.register_system_shared_memory, 'x', key, size, offset)
    _, large = region(12000)
    assert 'the server takes' in refusal(client.register_system_shared_memory, 'x', large, 12000)


def test_places_are_checked(client, region):
    _, key = region(256)
    assert "there is no shared memory region 'in'" in refusal(client.infer, 'identity', **tensors())
    client.register_system_shared_memory('in', key, 200)
    client.register_system_shared_memory('out', key, 64)
    assert 'are not all in it' in refusal(client.infer, 'identity', **tensors(offset=100))
    assert 'are not all in it' in refusal(client.infer, 'identity', **tensors(offset=2 ** 63 - 1))
    for huge in (2 ** 62, 2 ** 63 - 1):
        assert 'this server takes at most' in refusal(client.infer, 'identity', **tensors(count=huge, offset=huge))
    assert 'needs 128' in refusal(client.infer, 'identity', **tensors(count=64))
    assert 'its place in shared memory 64' in refusal(client.infer, 'identity', **tensors(out=64))
    mixed = tensors()
    mixed['inputs'][0]._raw_content = bytes(128)
    assert 'raw_input_contents' in refusal(client.infer, 'identity', **mixed)


def test_who_shrinks_a_region_harms_its_own_call(client, region):
    (_, key), (_, to) = region(4096), region(4096)
    client.register_system_shared_memory('in', key, 128)
    client.register_system_shared_memory('out', to, 128)
    os.truncate('/dev/shm' + key, 64)
    assert 'do not shrink it' in refusal(client.infer, 'identity', **tensors())
    os.truncate('/dev/shm' + key, 4096)
    os.truncate('/dev/shm' + to, 0)
    assert 'do not shrink it' in refusal(client.infer, 'identity', **tensors(out=128))
    assert os.stat('/dev/shm' + to).st_size == 0
    client.infer('identity', **tensors())


def test_who_unlinks_a_region_may_use_it(client, region):
    source, key = region(128)
    shm.set_shared_memory_region(source, [VALUES])
    client.register_system_shared_memory('in', key, 128)
    os.unlink('/dev/shm' + key)
    numpy.testing.assert_array_equal(client.infer('slow', **tensors()).as_numpy('OUTPUT0'), VALUES)


def test_a_region_that_is_unregistered_lasts_for_its_requests(server, client, region):
    (source, key), (target, to) = region(128), region(128)
    shm.set_shared_memory_region(source, [VALUES])
    client.register_system_shared_memory('in', key, 128)
    client.register_system_shared_memory('out', to, 128)
    answers = []
    client.async_infer('slow', callback=lambda result, error: answers.append(error), **tensors(out=128))
    wait_until(lambda: answers or server.metric('swizzle_inflight_requests', model='slow') > 0, 30, 'the request')
    client.unregister_system_shared_memory()
    wait_until(lambda: answers, 30, 'the answer')
    assert answers == [None]
    numpy.testing.assert_array_equal(shm.get_contents_as_numpy(target, numpy.float32, [2, 16]), VALUES)


def test_what_changes_while_a_request_waits_changes_nothing(repository, start, region):
    """Its answer is that of what was there when it came, and is kept for that."""
    extra = 'dynamic_batching { } response_cache { enable: true }'
    server = start(repository.identity('slow', delay_ms=500, extra=extra), f'--shared-memory-prefix={PREFIX}',
                   '--response-cache-bytes=1000000')
    source, key = region(128)
    shm.set_shared_memory_region(source, [VALUES])
    with triton.InferenceServerClient(server.grpc) as client:
        client.register_system_shared_memory('in', key, 128)
        answers = []
        client.async_infer('slow', callback=lambda result, error: answers.append(error or result), **tensors())
        wait_until(lambda: answers or server.metric('swizzle_inflight_requests', model='slow') > 0, 30, 'the request')
        shm.set_shared_memory_region(source, [VALUES + 1])
        wait_until(lambda: answers, 30, 'the answer')
        numpy.testing.assert_array_equal(answers[0].as_numpy('OUTPUT0'), VALUES)
        numpy.testing.assert_array_equal(client.infer('slow', **tensors()).as_numpy('OUTPUT0'), VALUES + 1)


def test_it_is_off_unless_asked_for(repository, start):
    server = start(repository.identity())
    with triton.InferenceServerClient(server.grpc) as client:
        assert 'system_shared_memory' not in client.get_server_metadata().extensions
        for call in (client.get_system_shared_memory_status, client.unregister_system_shared_memory,
                     lambda: client.register_system_shared_memory('in', '/x', 1)):
            assert 'takes no shared memory' in refusal(call)
        assert 'takes no shared memory' in refusal(client.infer, 'identity', **tensors())
        for call in (client.get_cuda_shared_memory_status, client.unregister_cuda_shared_memory,
                     lambda: client.register_cuda_shared_memory('in', base64.b64encode(bytes(64)), 0, 1)):
            assert 'takes no shared memory of GPUs' in refusal(call)


def test_memory_of_a_gpu_that_is_not_there_is_refused(repository, start):
    server = start(repository.identity(), '--cuda-shared-memory')
    with triton.InferenceServerClient(server.grpc) as client:
        assert 'cuda_shared_memory' in client.get_server_metadata().extensions
        assert not client.get_cuda_shared_memory_status().regions
        said = refusal(client.register_cuda_shared_memory, 'in', base64.b64encode(bytes(64)), 0, 1)
        assert "shared memory region 'in': there is no GPU 0 here" in said
        client.unregister_cuda_shared_memory('in')
        assert 'takes no shared memory; send' in refusal(client.get_system_shared_memory_status)
