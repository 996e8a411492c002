"""Fields of config.pbtxt as Triton's own client sees what they do."""

import numpy
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from conftest import SPARSE

IO = '''
    backend: "identity"
    max_batch_size: 8
    input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ 3 ] }} ]
    output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 3 ] {output} }} ]
    '''


def infer(client, model, values, outputs=None, **options):
    tensor = triton.InferInput('INPUT0', list(values.shape), 'FP32')
    tensor.set_data_from_numpy(values)
    return client.infer(model, [tensor], outputs=outputs, **options).as_numpy('OUTPUT0')


def test_classes_have_the_labels_of_their_file(start, repository):
    repository.config('labelled', IO.format(output='label_filename: "names/labels.txt"'))
    (repository.directory / 'labelled' / 'names').mkdir()
    (repository.directory / 'labelled' / 'names' / 'labels.txt').write_text('coat\ndress\n')
    repository.config('unlabelled', IO.format(output='label_filename: "missing.txt"'))
    repository.config('escaping', IO.format(output='label_filename: "../labelled/names/labels.txt"'))
    server = start(repository, '--ready=labelled,unlabelled')
    values = numpy.array([[0.25, 0.75, -1], [3, 2, 5]], numpy.float32)
    best = [triton.InferRequestedOutput('OUTPUT0', class_count=2)]
    with triton.InferenceServerClient(server.grpc) as client:
        assert infer(client, 'labelled', values, best).tolist() == [
            [b'0.750000:1:dress', b'0.250000:0:coat'], [b'5.000000:2', b'3.000000:0:coat']]
        assert infer(client, 'unlabelled', values[1:], best).tolist() == [[b'5.000000:2', b'3.000000:0']]
        numpy.testing.assert_array_equal(infer(client, 'labelled', values), values)
        with pytest.raises(InferenceServerException, match='is not below the model.s folder'):
            infer(client, 'escaping', values)
        assert 'classification' in client.get_server_metadata().extensions
    assert "there is no file 'missing.txt': classes of 'OUTPUT0' have no labels" in server.log()


WARM_UP = '''
    model_warmup {{
      name: "a sample" batch_size: 4 count: 3
      inputs {{ key: "INPUT0" value {{ data_type: TYPE_FP32 dims: {dims} {data} }} }}
    }}
    '''


def test_samples_run_before_a_model_is_ready_and_are_no_requests(start, repository):
    data = {'zero': 'zero_data: true', 'random': 'random_data: true', 'file': 'input_data_file: "x"'}
    for name, given in data.items():
        repository.config(name, IO.format(output='') + WARM_UP.format(dims=3, data=given))
    (repository.directory / 'file' / 'warmup').mkdir()
    (repository.directory / 'file' / 'warmup' / 'x').write_bytes(bytes(12))
    repository.config('wrong', IO.format(output='') + WARM_UP.format(dims=4, data='zero_data: true'))
    repository.shipped()
    repository.config(SPARSE, WARM_UP.format(dims='[ 1, 28, 28 ]', data='random_data: true').replace('INPUT0', 'image'))
    server = start(repository, f'--ready=zero,random,file,{SPARSE}')
    with triton.InferenceServerClient(server.grpc) as client:
        for name in (*data, SPARSE):
            assert client.is_model_ready(name)
            assert client.get_inference_statistics(name).model_stats[0].execution_count == 0
        with pytest.raises(InferenceServerException) as raised:
            client.get_model_metadata('wrong')
        assert "sample 'a sample' of 'model_warmup': input 'INPUT0': is FP32 [4]; FP32 [3] is expected" in str(
            raised.value)
        assert client.get_model_config('zero').config.model_warmup[0].name == 'a sample'
    assert server.log().count('model warmed up') == 4


PRIORITIES = '''
    dynamic_batching {
      priority_levels: 3 default_priority_level: 2
      default_queue_policy { timeout_action: DELAY allow_timeout_override: true }
      priority_queue_policy { key: 3 value { max_queue_size: 7 default_timeout_microseconds: 5000000 } }
    }
    '''


def test_priorities_are_levels_of_the_model(start, repository):
    repository.config('levels', IO.format(output='') + PRIORITIES).config('plain', IO.format(output=''))
    values = numpy.zeros((1, 3), numpy.float32)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        for priority in (0, 1, 2, 3):
            infer(client, 'levels', values, priority=priority, timeout=1)  # late, and served all the same
        with pytest.raises(InferenceServerException, match='has 3 priority levels; use 0 to 3'):
            infer(client, 'levels', values, priority=4)
        with pytest.raises(InferenceServerException, match='has one priority level; use 0 or 1'):
            infer(client, 'plain', values, priority=2)
        batching = client.get_model_config('levels').config.dynamic_batching
    assert (batching.priority_levels, batching.default_priority_level) == (3, 2)
    assert batching.priority_queue_policy[3].max_queue_size == 7


def test_sequence_flags_change_nothing_where_no_state_is_kept(start, repository):
    repository.config('m', IO.format(output=''))
    values = numpy.ones((1, 3), numpy.float32)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        numpy.testing.assert_array_equal(
            infer(client, 'm', values, sequence_id=5, sequence_start=True, sequence_end=True), values)


def test_answers_are_kept_while_the_model_serves(start, repository):
    repository.config('kept', IO.format(output='') + 'response_cache { enable: true }')
    repository.config('plain', IO.format(output=''))
    server = start(repository, '--response-cache-bytes=1000000')
    values = numpy.array([[1, 2, 3], [4, 5, 6]], numpy.float32)
    with triton.InferenceServerClient(server.grpc) as client:
        for model in ('kept', 'plain'):
            for _ in range(3):
                numpy.testing.assert_array_equal(infer(client, model, values), values)
            numpy.testing.assert_array_equal(infer(client, model, values + 1), values + 1)
        best = [triton.InferRequestedOutput('OUTPUT0', class_count=1)]
        assert infer(client, 'kept', values, best).tolist() == [[b'3.000000:2'], [b'6.000000:2']]
        stats = {model: client.get_inference_statistics(model).model_stats[0] for model in ('kept', 'plain')}
        assert client.get_model_config('kept').config.response_cache.enable
    kept, plain = stats['kept'].inference_stats, stats['plain'].inference_stats
    assert (kept.success.count, kept.cache_hit.count, kept.cache_miss.count) == (5, 3, 2)
    assert stats['kept'].execution_count == 2
    assert (plain.success.count, plain.cache_hit.count, plain.cache_miss.count) == (4, 0, 0)
    assert server.metric('swizzle_response_cache_lookups_total', model='kept', found='hit') == 3
    assert server.metric('swizzle_response_cache_lookups_total', model='plain') == 0
    assert 0 < server.metric('swizzle_response_cache_bytes') < server.metric('swizzle_response_cache_bytes_limit')


def test_without_room_for_answers_none_are_kept(start, repository):
    repository.config('kept', IO.format(output='') + 'response_cache { enable: true }')
    server = start(repository)
    values = numpy.zeros((1, 3), numpy.float32)
    with triton.InferenceServerClient(server.grpc) as client:
        for _ in range(2):
            infer(client, 'kept', values)
        assert client.get_inference_statistics('kept').model_stats[0].execution_count == 2
    assert 'start it with --response-cache-bytes' in server.log()


def test_histograms_have_the_edges_of_the_file(start, repository):
    repository.config('m', IO.format(output='') + '''
        model_metrics {
          metric_control {
            metric_identifier { family: "nv_inference_first_response_histogram_ms" }
            histogram_options { buckets: [ 25, 3000 ] }
          }
          metric_control {
            metric_identifier { family: "swizzle_batch_size" } histogram_options { buckets: [ 3, 5 ] }
          }
        }
        ''')
    lines = start(repository).http('/metrics')[1].splitlines()

    def edges(family):
        return [line.partition('le="')[2].partition('"')[0] for line in lines if line.startswith(family + '_bucket')]

    assert edges('swizzle_request_duration_seconds') == ['0.025', '3', '+Inf']
    assert edges('swizzle_batch_size') == ['3', '5', '+Inf']
    assert len(edges('swizzle_batch_positions')) == 12


def affine(ir_version=8):
    """y = x * scale + shift, where both have initializers beside their inputs."""
    names = ('x', 'scale', 'shift')
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ['N', 3]) for name in names]
    defaults = [numpy_helper.from_array(numpy.full((1, 3), value, numpy.float32), name)
                for name, value in (('scale', 2), ('shift', 10))]
    nodes = [helper.make_node('Mul', ['x', 'scale'], ['product']), helper.make_node('Add', ['product', 'shift'], ['y'])]
    graph = helper.make_graph(nodes, 'g', inputs, [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['N', 3])],
                              defaults)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)],
                             ir_version=ir_version).SerializeToString()


def test_an_optional_input_is_its_initializer_where_it_is_left_out(start, repository):
    config = '''
        max_batch_size: 4
        input [ {{ name: "x" data_type: TYPE_FP32 dims: 3 }}, {{ name: "{name}" data_type: TYPE_FP32 dims: 3 {more} }} ]
        output [ {{ name: "y" data_type: TYPE_FP32 dims: 3 }} ]
        '''
    for model, name, more in (('optional', 'shift', 'optional: true'), ('unknown', 'z', 'optional: true'),
                              ('given', 'shift', '')):
        repository.file(model, 'model.onnx', affine()).config(model, config.format(name=name, more=more))
    repository.file('constant', 'model.onnx', affine())
    server = start(repository, '--ready=optional,constant')
    x = numpy.array([[1, 2, 3], [4, 5, 6]], numpy.float32)

    def tensor(name, values):
        given = triton.InferInput(name, list(values.shape), 'FP32')
        given.set_data_from_numpy(values)
        return given

    with triton.InferenceServerClient(server.grpc) as client:
        for model in ('optional', 'constant'):
            answer = client.infer(model, [tensor('x', x)]).as_numpy('y')
            numpy.testing.assert_allclose(answer, 2 * x + 10)
        shift = numpy.array([[1, 1, 1], [0, 0, 0]], numpy.float32)
        answer = client.infer('optional', [tensor('shift', shift), tensor('x', x)]).as_numpy('y')
        numpy.testing.assert_allclose(answer, 2 * x + shift)
        with pytest.raises(InferenceServerException, match='has no input .shift'):
            client.infer('constant', [tensor('x', x), tensor('shift', shift)])
        assert [i.optional for i in client.get_model_config('optional').config.input] == [False, True]
        for model in ('unknown', 'given'):
            with pytest.raises(InferenceServerException, match='the model has no input'):
                client.get_model_metadata(model)
