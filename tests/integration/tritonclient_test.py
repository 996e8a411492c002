"""Triton's own Python client, unmodified, against a real server."""

import asyncio
import queue

import numpy
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as aio
from tritonclient.utils import InferenceServerException

from conftest import SPARSE

VALUES = numpy.arange(32, dtype=numpy.float32).reshape(2, 16)


@pytest.fixture
def client(shared_server):
    with triton.InferenceServerClient(shared_server.grpc) as client:
        yield client


def infer_input(values, name='INPUT0', datatype='FP32'):
    tensor = triton.InferInput(name, list(values.shape), datatype)
    tensor.set_data_from_numpy(values)
    return tensor


def test_health(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready('identity')
    assert client.is_model_ready('identity', '1')
    assert client.is_model_ready(SPARSE)
    with pytest.raises(InferenceServerException) as raised:
        client.is_model_ready('nobody')
    assert 'NOT_FOUND' in raised.value.status()


def test_server_metadata(client):
    metadata = client.get_server_metadata(as_json=True)
    assert metadata['name'] == 'swizzle'
    assert metadata['version']
    assert {'statistics', 'model_configuration'} <= set(metadata['extensions'])


def test_model_metadata(client):
    metadata = client.get_model_metadata(SPARSE, as_json=True)
    assert metadata['versions'] == ['1']
    assert metadata['inputs'] == [{'name': 'image', 'datatype': 'FP32', 'shape': ['-1', '1', '28', '28']}]
    assert metadata['outputs'] == [{'name': 'logits', 'datatype': 'FP32', 'shape': ['-1', '10']}]


def test_model_config(client):
    config = client.get_model_config('identity').config
    assert config.backend == 'identity'
    assert config.max_batch_size == 8
    assert config.input[0].name == 'INPUT0'
    assert list(config.input[0].dims) == [16]
    assert config.HasField('dynamic_batching')
    assert client.get_model_config(SPARSE).config.max_batch_size == 64


def test_infer(client):
    result = client.infer('identity', [infer_input(VALUES)], request_id='request 7')
    numpy.testing.assert_array_equal(result.as_numpy('OUTPUT0'), VALUES)
    response = result.get_response()
    assert response.id == 'request 7'
    assert response.model_name == 'identity'
    assert response.model_version == '1'
    assert response.parameters['swizzle_queue_us'].int64_param >= 0
    assert response.parameters['swizzle_compute_us'].int64_param >= 0


def test_infer_asks_for_outputs_by_name(client):
    result = client.infer('identity', [infer_input(VALUES)], outputs=[triton.InferRequestedOutput('OUTPUT0')])
    numpy.testing.assert_array_equal(result.as_numpy('OUTPUT0'), VALUES)


def test_infer_strings(client):
    words = numpy.array([['dress', '', 'Ankle boot \u00fc'.encode()]], dtype=object)
    result = client.infer('text', [infer_input(words, datatype='BYTES')])
    assert list(result.as_numpy('OUTPUT0')[0]) == [b'dress', b'', 'Ankle boot \u00fc'.encode()]


def test_infer_async(client):
    answers = queue.Queue()
    for i in range(20):
        client.async_infer('identity', [infer_input(VALUES + i)], lambda result, error: answers.put((result, error)),
                           request_id=str(i))
    for _ in range(20):
        result, error = answers.get(timeout=30)
        assert error is None
        expected = VALUES + int(result.get_response().id)
        numpy.testing.assert_array_equal(result.as_numpy('OUTPUT0'), expected)


def test_a_stream_answers_in_order(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for i in range(200):
        client.async_stream_infer('identity', [infer_input(VALUES + i)], request_id=str(i))
    for i in range(200):
        result, error = answers.get(timeout=30)
        assert error is None
        assert result.get_response().id == str(i)
        numpy.testing.assert_array_equal(result.as_numpy('OUTPUT0'), VALUES + i)
    client.stop_stream()


def test_a_stream_goes_on_after_an_error(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    client.async_stream_infer('nobody', [infer_input(VALUES)])
    client.async_stream_infer('identity', [infer_input(VALUES)], request_id='good')
    _, error = answers.get(timeout=30)
    assert "there is no model 'nobody'" in error.message()
    result, error = answers.get(timeout=30)
    assert error is None and result.get_response().id == 'good'
    client.stop_stream()


def test_the_first_error_ends_a_stream_that_asks_for_statuses(client):
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)), headers={'triton_grpc_error': 'true'})
    client.async_stream_infer('nobody', [infer_input(VALUES)])
    _, error = answers.get(timeout=30)
    assert 'NOT_FOUND' in error.status()
    client.stop_stream(cancel_requests=True)


def test_a_stream_of_asyncio(shared_server):
    async def ask():
        async with aio.InferenceServerClient(shared_server.grpc) as client:
            async def requests():
                for i in range(50):
                    yield {'model_name': 'identity', 'inputs': [infer_input(VALUES + i)], 'request_id': str(i)}

            return [(result.get_response().id, error) async for result, error in client.stream_infer(requests())]

    assert asyncio.run(ask()) == [(str(i), None) for i in range(50)]


def test_statistics_count_requests(client):
    def success():
        return client.get_inference_statistics('identity').model_stats[0].inference_stats.success.count

    before = success()
    client.infer('identity', [infer_input(VALUES)])
    client.infer('identity', [infer_input(VALUES)])
    assert success() == before + 2
    stats = client.get_inference_statistics('identity').model_stats[0]
    assert stats.inference_count >= 2 * stats.execution_count > 0
    assert stats.last_inference > 0
    assert any(batch.batch_size == 2 for batch in stats.batch_stats)


def test_client_timeout(client):
    with pytest.raises(InferenceServerException) as raised:
        client.infer('slow', [infer_input(VALUES)], client_timeout=0.01)
    assert 'DEADLINE_EXCEEDED' in raised.value.status()
    client.infer('slow', [infer_input(VALUES)], client_timeout=30)


def test_repository_index_lists_models_and_their_states(client):
    states = {model.name: (model.version, model.state) for model in client.get_model_repository_index().models}
    assert states['identity'] == ('1', 'READY')


def test_what_comes_later_is_unimplemented(client):
    for call in (client.get_system_shared_memory_status, client.get_cuda_shared_memory_status):
        with pytest.raises(InferenceServerException) as raised:
            call()
        assert 'UNIMPLEMENTED' in raised.value.status()


def test_models_are_loaded_where_operators_are(client):
    for call in (client.load_model, client.unload_model):
        with pytest.raises(InferenceServerException) as raised:
            call('identity')
        assert 'PERMISSION_DENIED' in raised.value.status()
