"""Token sequences through a real server: requests of several lengths at once, masks, the budget, and what is refused."""

import queue

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import make_encoders
from conformance_test import expected_outputs
from encoders_test import TOLERANCE

NAME = 'bert_opset17'


@pytest.fixture(scope='module')
def encoder():
    return make_encoders.build(NAME).SerializeToString()


@pytest.fixture
def serve(repository, start, encoder):
    """serve(config) starts a server with the encoder and returns a client of it."""
    clients = []

    def serve_with(config=None):
        repository.file('encoder', 'model.onnx', encoder)
        if config:
            repository.config('encoder', config)
        clients.append(triton.InferenceServerClient(start(repository).grpc))
        return clients[-1]

    yield serve_with
    for client in clients:
        client.close()


def draw(rows, length, kept=None, seed=1):
    random = numpy.random.default_rng(seed)
    shape = (rows, length)
    mask = numpy.ones(shape, numpy.int64)
    if kept is not None:
        mask[:, kept:] = 0
    return {'input_ids': random.integers(0, make_encoders.VOCABULARY, shape), 'attention_mask': mask,
            'token_type_ids': random.integers(0, make_encoders.TYPES, shape)}


def wire(inputs):
    tensors = []
    for name, array in inputs.items():
        tensors.append(triton.InferInput(name, array.shape, 'INT64'))
        tensors[-1].set_data_from_numpy(array)
    return tensors


def assert_answers(result, inputs, expected):
    hidden, mask = result.as_numpy('last_hidden_state'), inputs['attention_mask']
    assert hidden.shape == expected['last_hidden_state'].shape
    difference = numpy.abs(hidden - expected['last_hidden_state'])[mask == 1].max()
    assert difference <= TOLERANCE * numpy.abs(expected['last_hidden_state']).max()
    pooled = numpy.abs(result.as_numpy('pooler_output') - expected['pooler_output']).max()
    assert pooled <= TOLERANCE * numpy.abs(expected['pooler_output']).max()
    return hidden


def refused(client, inputs):
    with pytest.raises(InferenceServerException) as raised:
        client.infer('encoder', wire(inputs))
    assert 'INVALID_ARGUMENT' in raised.value.status()
    return raised.value.message()


def test_lengths_are_free_and_run_together(serve, encoder, tmp_path):
    client = serve()
    metadata = client.get_model_metadata('encoder', as_json=True)
    assert {port['name']: port['shape'] for port in metadata['inputs']} == {
        name: ['-1', '-1'] for name in ('input_ids', 'attention_mask', 'token_type_ids')}
    file = tmp_path / 'model.onnx'
    file.write_bytes(encoder)
    requests = [draw(1, 1), draw(3, 17), draw(2, 64, seed=2), draw(1, 40, kept=9), draw(5, 30, kept=29, seed=3)]
    answers = queue.Queue()
    for i, inputs in enumerate(requests):
        client.async_infer('encoder', wire(inputs), lambda result, error, i=i: answers.put((i, result, error)))
    for _ in requests:
        i, result, error = answers.get(timeout=60)
        assert error is None
        hidden = assert_answers(result, requests[i], expected_outputs(file, requests[i]))
        assert not hidden[requests[i]['attention_mask'] == 0].any()


def test_masked_tokens_can_be_computed(serve, encoder, tmp_path):
    client = serve('parameters { key: "compute_masked" value { string_value: "true" } }')
    file = tmp_path / 'model.onnx'
    file.write_bytes(encoder)
    inputs = draw(2, 12, kept=5)
    hidden = assert_answers(client.infer('encoder', wire(inputs)), inputs, expected_outputs(file, inputs))
    assert hidden[inputs['attention_mask'] == 0].all()


def test_a_request_that_the_model_cannot_run_ends_alone(serve):
    client = serve('parameters { key: "max_batch_tokens" value { string_value: "100" } }')
    good = draw(4, 25)
    for name, value, message in (('input_ids', make_encoders.VOCABULARY, 'ids must be from 0 to 99'),
                                 ('token_type_ids', -1, "input 'token_type_ids' of model 'encoder' holds -1"),
                                 ('attention_mask', 3, 'a mask holds 0 and 1')):
        bad = draw(4, 25)
        bad[name][2, 7] = value
        assert message in refused(client, bad)
    assert 'positions for 64' in refused(client, draw(1, 65))
    assert 'at least 1 token' in refused(client, draw(4, 0))
    other_shape = draw(4, 25) | {'attention_mask': numpy.ones((4, 24), numpy.int64)}
    assert "input 'attention_mask'" in refused(client, other_shape)
    assert client.infer('encoder', wire(good)).as_numpy('last_hidden_state').shape == (4, 25, 32)


@pytest.mark.parametrize('batching', ['', 'dynamic_batching {}'])
def test_a_request_may_have_more_tokens_than_a_batch(serve, encoder, tmp_path, batching):
    client = serve(f'parameters {{ key: "max_batch_tokens" value {{ string_value: "50" }} }} max_batch_size: 8 {batching}')
    file = tmp_path / 'model.onnx'
    file.write_bytes(encoder)
    inputs = draw(7, 30, kept=20)
    assert_answers(client.infer('encoder', wire(inputs)), inputs, expected_outputs(file, inputs))
    statistics = client.get_inference_statistics('encoder').model_stats[0]
    assert (statistics.inference_count, statistics.execution_count) == (7, 4), 'two sequences of twenty tokens at a time'
    message = refused(client, draw(3, 51))
    assert "sequence 0 of the request to model 'encoder' has 51 tokens; max_batch_tokens is 50" in message


def test_a_request_may_run_in_parts(serve, encoder, tmp_path):
    client = serve('parameters { key: "preferred_batch_tokens" value { string_value: "40" } }')
    file = tmp_path / 'model.onnx'
    file.write_bytes(encoder)
    inputs = draw(7, 12, kept=9)
    answer = client.infer('encoder', wire(inputs))
    assert_answers(answer, inputs, expected_outputs(file, inputs))
    statistics = client.get_inference_statistics('encoder').model_stats[0]
    assert (statistics.inference_count, statistics.execution_count) == (7, 2), 'four sequences of nine tokens, and three'
    assert statistics.inference_stats.success.count == 1 and statistics.inference_stats.compute_infer.count == 1


def test_parameters_are_checked(repository, start, encoder):
    repository.file('encoder', 'model.onnx', encoder)
    repository.config('encoder', 'parameters { key: "max_batch_tokens" value { string_value: "0" } }')
    server = start(repository)
    assert "parameter 'max_batch_tokens' is '0'; it must be a whole number from 1" in server.log()
