"""Ensembles: models that are made of others, as Triton's configurations describe them."""

import threading

import numpy
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from conftest import wait_until

EXPLICIT = ['--model-control=explicit', '--control-address=127.0.0.1:0']


def step(model, inputs, outputs, version=-1):
    maps = ''.join(f'input_map {{ key: "{key}" value: "{tensor}" }} ' for key, tensor in inputs.items())
    maps += ''.join(f'output_map {{ key: "{key}" value: "{tensor}" }} ' for key, tensor in outputs.items())
    return f'{{ model_name: "{model}" model_version: {version} {maps} }}'


def ensemble(inputs, outputs, steps, max_batch_size=8, extra=''):
    def tensors(field, names):
        listed = ', '.join(f'{{ name: "{name}" data_type: {of[0]} dims: {of[1]} }}' for name, of in names.items())
        return f'{field} [ {listed} ]'
    return f'''platform: "ensemble" max_batch_size: {max_batch_size}
               {tensors("input", inputs)} {tensors("output", outputs)}
               ensemble_scheduling {{ step [ {", ".join(steps)} ] }} {extra}'''


def two_echoes(repository, first='first', second='second', name='chain', **other):
    """INPUT -> first -> between -> second -> OUTPUT."""
    return repository.config(name, ensemble(
        {'INPUT': ('TYPE_FP32', '[ 16 ]')}, {'OUTPUT': ('TYPE_FP32', '[ 16 ]')},
        [step(first, {'INPUT0': 'INPUT'}, {'OUTPUT0': 'between'}),
         step(second, {'INPUT0': 'between'}, {'OUTPUT0': 'OUTPUT'})], **other))


def graph(repository, model, nodes, inputs, outputs, constants=()):
    """An ONNX model; the first dimension of its tensors is the batch."""
    def value(name, of):
        return helper.make_tensor_value_info(name, of[0], of[1])
    made = helper.make_model(
        helper.make_graph(nodes, model, [value(*item) for item in inputs.items()],
                          [value(*item) for item in outputs.items()], list(constants)),
        opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    return repository.file(model, 'model.onnx', made.SerializeToString())


def tensor(name, values, datatype='FP32'):
    made = triton.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values)
    return made


VALUES = numpy.arange(32, dtype=numpy.float32).reshape(2, 16)


def test_embedding_of_text_tokens(start, repository):
    """The case that people have: an encoder's hidden states, pooled by a mask that the encoder reads as well."""
    floats, ids = TensorProto.FLOAT, TensorProto.INT64
    table = helper.make_tensor('table', floats, [32, 8], numpy.random.default_rng(1).normal(size=256).astype('float32'))
    graph(repository, 'encoder', [helper.make_node('Gather', ['table', 'input_ids'], ['looked_up']),
                                  helper.make_node('Tanh', ['looked_up'], ['hidden'])],
          {'input_ids': (ids, ['batch', 'length'])}, {'hidden': (floats, ['batch', 'length', 8])}, [table])
    axes = helper.make_tensor('axes', ids, [1], [1])
    graph(repository, 'pool', [helper.make_node('Unsqueeze', ['mask', 'last'], ['columns']),
                               helper.make_node('Mul', ['states', 'columns'], ['kept']),
                               helper.make_node('ReduceSum', ['kept', 'axes'], ['sum'], keepdims=0),
                               helper.make_node('ReduceSum', ['mask', 'axes'], ['count'], keepdims=1),
                               helper.make_node('Div', ['sum', 'count'], ['embedding'])],
          {'states': (floats, ['batch', 'length', 8]), 'mask': (floats, ['batch', 'length'])},
          {'embedding': (floats, ['batch', 8])}, [axes, helper.make_tensor('last', ids, [1], [2])])
    repository.config('embed', ensemble(
        {'ids': ('TYPE_INT64', '[ -1 ]'), 'mask': ('TYPE_FP32', '[ -1 ]')}, {'embedding': ('TYPE_FP32', '[ 8 ]')},
        [step('pool', {'states': 'states', 'mask': 'mask'}, {'embedding': 'embedding'}),
         step('encoder', {'input_ids': 'ids'}, {'hidden': 'states'})]))
    server = start(repository)
    generator = numpy.random.default_rng(2)
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.get_model_config('embed', as_json=True)['config']['ensemble_scheduling']['step'][1][
            'model_name'] == 'encoder'
        for rows, length in ((1, 5), (3, 7), (8, 1)):
            tokens = generator.integers(0, 32, (rows, length))
            mask = numpy.ones((rows, length), numpy.float32)
            mask[:, length // 2 + 1:] = 0
            answer = client.infer('embed', [tensor('ids', tokens, 'INT64'), tensor('mask', mask)])
            states = client.infer('encoder', [tensor('input_ids', tokens, 'INT64')]).as_numpy('hidden')
            wanted = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            numpy.testing.assert_allclose(answer.as_numpy('embedding'), wanted, rtol=1e-5, atol=1e-6)
        with pytest.raises(InferenceServerException, match="step 1 of 'embed', model 'pool'"):
            client.infer('embed', [tensor('ids', numpy.zeros((1, 4), numpy.int64), 'INT64'),
                                   tensor('mask', numpy.ones((1, 5), numpy.float32))])
        statistics = {model.name: model for model in client.get_inference_statistics().model_stats}
        assert statistics['embed'].inference_stats.success.count == 3
        assert statistics['embed'].inference_stats.fail.count == 1
        assert statistics['encoder'].inference_stats.success.count == 7, 'what steps are asked counts'
        assert statistics['pool'].inference_stats.success.count == 3
    assert server.stop() == 0


def test_models_without_batches_take_whole_tensors(start, repository):
    repository.identity('first', dims='[ -1, 16 ]', max_batch_size=0, extra='').identity('second')
    repository.config('chain', ensemble(
        {'INPUT': ('TYPE_FP32', '[ -1, 16 ]')}, {'OUTPUT': ('TYPE_FP32', '[ -1, 16 ]')},
        [step('first', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'between'}),
         step('second', {'INPUT0': 'between'}, {'OUTPUT0': 'OUTPUT'})], max_batch_size=0))
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        assert (client.infer('chain', [tensor('INPUT', VALUES)]).as_numpy('OUTPUT') == VALUES).all()
        with pytest.raises(InferenceServerException, match='takes .*and 8 rows at most'):
            client.infer('chain', [tensor('INPUT', numpy.zeros((9, 16), numpy.float32))])


@pytest.mark.parametrize('steps, said', [
    ([step('echo', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'between'})], "output 'OUTPUT' of the ensemble is made by no step"),
    ([step('echo', {'INPUT0': 'nothing'}, {'OUTPUT0': 'OUTPUT'})], 'which is no input of the ensemble'),
    ([step('echo', {'INPUT0': 'INPUT', 'IN': 'INPUT'}, {'OUTPUT0': 'OUTPUT'})], "has no input 'IN'"),
    ([step('echo', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'}), step('echo', {'INPUT0': 'INPUT'},
                                                                     {'OUTPUT0': 'OUTPUT'})], 'is made twice'),
    ([step('nobody', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'})], "there is no model 'nobody'"),
    ([step('echo', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'}, 7)], 'no version 7 that serves'),
    ([step('whole', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'})], 'is INT32'),
    ([step('echo', {'INPUT0': 'a'}, {'OUTPUT0': 'b'}), step('echo', {'INPUT0': 'b'}, {'OUTPUT0': 'a'}),
      step('echo', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'})], 'waits for what comes of itself'),
    ([step('alone', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'})], 'takes batches of 2 at most'),
    ([step('chain', {'INPUT': 'INPUT'}, {'OUTPUT': 'OUTPUT'})], "model 'chain' is being loaded"),
    ([step('many', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'})], 'is decoupled'),
], ids=['no output', 'no input', 'no such input', 'twice', 'no model', 'no version', 'other type', 'cycle', 'batch',
        'itself', 'decoupled'])
def test_what_cannot_be_connected_fails_to_load(start, repository, steps, said):
    repository.identity('echo').identity('whole', datatype='INT32').identity('alone', max_batch_size=2)
    repository.identity('many', extra='model_transaction_policy { decoupled: true }')
    repository.config('chain', ensemble({'INPUT': ('TYPE_FP32', '[ 16 ]')}, {'OUTPUT': ('TYPE_FP32', '[ 16 ]')}, steps))
    server = start(repository, '--ready=any')
    with triton.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as refused:
            client.infer('chain', [tensor('INPUT', VALUES)])
        assert said in str(refused.value)
        assert client.is_model_ready('echo')


def states(client):
    return {model.name: (model.state, model.reason) for model in client.get_model_repository_index().models}


def test_steps_are_loaded_replaced_and_unloaded(start, repository):
    repository.identity('first').identity('second').identity('outside')
    two_echoes(repository)
    repository.config('outer', ensemble(
        {'INPUT': ('TYPE_FP32', '[ 16 ]')}, {'OUTPUT': ('TYPE_FP32', '[ 16 ]')},
        [step('chain', {'INPUT': 'INPUT'}, {'OUTPUT': 'between'}),
         step('first', {'INPUT0': 'between'}, {'OUTPUT0': 'OUTPUT'})]))
    server = start(repository, *EXPLICIT)
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        def infer(model='outer'):
            return client.infer(model, [tensor('INPUT', VALUES)]).as_numpy('OUTPUT')

        control.load_model('outer')
        assert {name for name, state in states(client).items() if state[0] == 'READY'} == {
            'outer', 'chain', 'first', 'second'}
        assert (infer() == VALUES).all()
        repository.identity('second', delay_ms=1)
        control.load_model('second')
        assert (infer() == VALUES).all()
        log = server.log()
        for model in ('second', 'chain', 'outer'):
            assert f'model replaced model={model}' in log, 'whoever has it as a step goes on with what serves now'
        control.unload_model('second')
        wait_until(lambda: states(client)['outer'][0] == 'UNAVAILABLE', 30, 'the end of the outer ensemble')
        assert "model 'second' is not loaded" in states(client)['outer'][1]
        with pytest.raises(InferenceServerException, match="model 'second' is not loaded"):
            infer()
        repository.identity('second', datatype='INT32')
        control.load_model('second')
        with pytest.raises(InferenceServerException, match="is INT32"):
            infer('chain')
        repository.identity('second')
        control.load_model('second')
        assert (infer() == VALUES).all(), 'it is back once its step is'
        control.load_model('outside')
        control.unload_model('outer', unload_dependents=True)
        wait_until(lambda: {name for name, state in states(client).items() if state[0] == 'READY'} == {'outside'}, 30,
                   'the end of the steps')
    assert server.stop() == 0


def test_nothing_is_lost_while_steps_are_replaced(start, repository):
    repository.identity('first').identity('second')
    two_echoes(repository)
    server = start(repository, *EXPLICIT, '--load-model=chain')
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        stop, answers = threading.Event(), []

        def ask():
            while not stop.is_set():
                try:
                    answers.append((client.infer('chain', [tensor('INPUT', VALUES)]).as_numpy('OUTPUT') == VALUES).all())
                except InferenceServerException as error:
                    answers.append(error)
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(10):
            repository.identity('second', delay_ms=i % 2)
            control.load_model('second')
        stop.set()
        for thread in threads:
            thread.join()
        assert len(answers) >= 10 and all(answer is True or answer is numpy.True_ for answer in answers), answers[-3:]
    assert server.stop() == 0


def test_a_drain_finishes_what_is_between_two_steps(start, repository):
    repository.identity('first', delay_ms=300).identity('second', delay_ms=300)
    two_echoes(repository)
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        answered = []
        client.async_infer('chain', [tensor('INPUT', VALUES)], lambda result, error: answered.append(error or result))
        wait_until(lambda: answered or server.metric('swizzle_inflight_requests', model='first') == 1, 30,
                   'the first step')
        server.terminate()
        wait_until(lambda: answered, 30, 'the answer')
        assert (answered[0].as_numpy('OUTPUT') == VALUES).all()
    assert server.exit_code() == 0


def test_deadlines_and_full_queues_of_steps(start, repository):
    repository.identity('first')
    repository.identity('second', delay_ms=300, max_batch_size=8, extra='''dynamic_batching {
        default_queue_policy { max_queue_size: 1 } }''')
    two_echoes(repository)
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException, match='[Dd]eadline'):
            client.infer('chain', [tensor('INPUT', VALUES)], client_timeout=0.1)
        eight = numpy.zeros((8, 16), numpy.float32)
        answered = []
        for _ in range(6):
            client.async_infer('chain', [tensor('INPUT', eight)], lambda result, error: answered.append(error))
        wait_until(lambda: len(answered) == 6, 30, 'answers')
        refused = [error for error in answered if error is not None]
        assert refused and len(refused) < 6
        for error in refused:
            assert error.status() == 'StatusCode.RESOURCE_EXHAUSTED'
            assert "step 2 of 'chain', model 'second'" in error.message()
    assert server.stop() == 0


def test_an_ensemble_has_answers_cached_and_labels_of_its_steps(start, repository):
    repository.config('first', '''backend: "identity" max_batch_size: 8 dynamic_batching { }
        input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
        output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] label_filename: "labels.txt" } ]''')
    (repository.directory / 'first' / 'labels.txt').write_text('\n'.join(f'label {i}' for i in range(16)))
    repository.config('one', ensemble({'INPUT': ('TYPE_FP32', '[ 16 ]')}, {'OUTPUT': ('TYPE_FP32', '[ 16 ]')},
                                      [step('first', {'INPUT0': 'INPUT'}, {'OUTPUT0': 'OUTPUT'})],
                                      extra='response_cache { enable: true }'))
    server = start(repository, '--response-cache-bytes=1000000')
    with triton.InferenceServerClient(server.grpc) as client:
        for _ in range(3):
            answer = client.infer('one', [tensor('INPUT', VALUES)],
                                  outputs=[triton.InferRequestedOutput('OUTPUT', class_count=1)])
            assert answer.as_numpy('OUTPUT').tolist() == [[b'15.000000:15:label 15'], [b'31.000000:15:label 15']]
        asked = {model.name: model for model in client.get_inference_statistics().model_stats}
        assert asked['one'].inference_stats.cache_hit.count == 2
        assert asked['first'].inference_stats.success.count == 1


@pytest.mark.parametrize('field, said', [
    ('instance_group { count: 2 }', "'instance_group' is for the models of the steps"),
    ('default_model_filename: "model.onnx"', "'default_model_filename' is for the models of the steps"),
    ('backend: "identity"', "'backend' is given"),
    ('model_transaction_policy { decoupled: true }', "'model_transaction_policy.decoupled' is for the models"),
])
def test_fields_of_models_are_refused(start, repository, field, said):
    repository.identity('first').identity('second')
    two_echoes(repository, extra=field)
    server = start(repository, '--ready=any')
    with triton.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as refused:
            client.infer('chain', [tensor('INPUT', VALUES)])
        assert said in str(refused.value)
