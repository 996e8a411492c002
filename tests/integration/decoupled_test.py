"""Models that give any number of answers to a request, by Triton's own client."""

import queue

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from conftest import QUICK_START, Repository, Server, wait_until

VALUES = numpy.arange(16, dtype=numpy.float32).reshape(1, 16)
DECOUPLED = '''dynamic_batching { } model_transaction_policy { decoupled: true }
    parameters { key: "repeat_count" value { string_value: "%d" } }'''


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp('decoupled')
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models').identity('repeats', extra=DECOUPLED % 3).identity()
    repository.identity('endless', delay_ms=1, extra=DECOUPLED % 1000000)
    repository.identity('slow', delay_ms=50, extra=DECOUPLED % 2)
    server = Server(repository, directory, *QUICK_START)
    try:
        yield server
        assert server.stop() == 0, server.log()
    finally:
        server.kill()


@pytest.fixture
def stream(server):
    answers = queue.Queue()
    with triton.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))

        def ask(model, **options):
            tensor = triton.InferInput('INPUT0', list(VALUES.shape), 'FP32')
            tensor.set_data_from_numpy(VALUES)
            client.async_stream_infer(model, [tensor], **options)

        def answer():
            result, error = answers.get(timeout=30)
            return error if error else result.get_response()

        ask.answer, ask.client = answer, client
        yield ask
        client.stop_stream(cancel_requests=True)


def test_clients_are_told_that_a_model_is_decoupled(server):
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.get_model_config('repeats').config.model_transaction_policy.decoupled
        assert not client.get_model_config('identity').config.model_transaction_policy.decoupled


def test_a_request_has_several_answers(stream):
    stream('repeats', request_id='a')
    stream('identity', request_id='b')
    answers = [stream.answer() for _ in range(4)]
    assert [answer.id for answer in answers] == ['a', 'a', 'a', 'b']
    for answer in answers:
        assert answer.raw_output_contents[0] == VALUES.tobytes()
        assert 'triton_final_response' not in answer.parameters


def test_the_end_is_marked_where_it_is_asked_for(stream):
    stream('repeats', request_id='a', enable_empty_final_response=True)
    answers = [stream.answer() for _ in range(4)]
    assert [answer.parameters['triton_final_response'].bool_param for answer in answers] == [False] * 3 + [True]
    assert [len(answer.outputs) for answer in answers] == [1, 1, 1, 0]
    assert {(answer.id, answer.model_name, answer.model_version) for answer in answers} == {('a', 'repeats', '1')}
    stream('identity', enable_empty_final_response=True)
    only = stream.answer()
    assert only.parameters['triton_final_response'].bool_param and only.outputs


def test_answers_come_as_the_model_has_them(stream):
    for name in ('a', 'b'):
        stream('slow', request_id=name, enable_empty_final_response=True)
    assert [stream.answer().id for _ in range(6)] == ['a'] * 3 + ['b'] * 3


def test_who_leaves_ends_the_answers(server, stream):
    stream('endless')
    assert stream.answer().raw_output_contents[0] == VALUES.tobytes()
    stream.client.stop_stream(cancel_requests=True)
    wait_until(lambda: server.metric('swizzle_requests_total', model='endless', code='CANCELLED'), 30, 'the end')


def test_a_call_of_one_answer_is_refused(server):
    tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
    tensor.set_data_from_numpy(VALUES)
    with triton.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as raised:
            client.infer('repeats', [tensor])
    assert 'UNIMPLEMENTED' in raised.value.status()
    assert 'use ModelStreamInfer' in raised.value.message()


def test_models_that_give_one_answer_are_not_decoupled(repository, start):
    repository.shipped().config('mobilenet_v1_fashion_sparse90', 'model_transaction_policy { decoupled: true }')
    server = start(repository, '--ready=any')
    assert "'model_transaction_policy.decoupled' is set, but the model gives one answer" in server.log()
