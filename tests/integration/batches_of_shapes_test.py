"""Requests to models that run in regions share a batch where their shapes agree, and each is answered as if it were
alone."""

import json
import queue
import subprocess

import numpy
import onnx
import pytest
import tritonclient.grpc as triton

import exports_test
import make_architectures
import regions_test
from conformance_test import expected_outputs, run_model
from conftest import program
from regions_test import compare

ROWS = 3
ARCHITECTURES = [name for name, regions in regions_test.EXPECTED.items() if regions]
EXPORTS = [name for name, regions in exports_test.EXPECTED.items() if regions]


def batch_obstacle(file):
    done = subprocess.run([program('swizzle-pack'), 'inspect', str(file), '-o', 'json'], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)['batch_obstacle']


def assert_rows_are_independent(file, inputs, tmp_path):
    """The second of three rows, alone and among the others."""
    assert batch_obstacle(file) is None
    together, _ = run_model(file, inputs, tmp_path)
    alone, _ = run_model(file, {name: array[1:2] for name, array in inputs.items()}, tmp_path)
    compare({name: array[1:2] for name, array in together.items()}, alone, tolerance=1e-5)


@pytest.mark.parametrize('name', ARCHITECTURES)
def test_architecture(name, tmp_path):
    model = make_architectures.build(name, make_architectures.SMALL[name], opset=14, written=True)
    onnx.save(model, tmp_path / 'model.onnx')
    assert_rows_are_independent(tmp_path / 'model.onnx', regions_test.draw_inputs(model), tmp_path)


@pytest.mark.parametrize('name', EXPORTS)
def test_export(name, tmp_path):
    assert_rows_are_independent(exports_test.EXPORTS / f'{name}.onnx', exports_test.draw_inputs(name), tmp_path)


def test_inspect_says_what_stands_against_it(tmp_path):
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph([helper.make_node('DynamicQuantizeLinear', ['x'], ['q', 'scale', 'zero'], name='rounding'),
                               helper.make_node('DequantizeLinear', ['q', 'scale', 'zero'], ['y'])], 'graph',
                              [helper.make_tensor_value_info('x', floats, ['batch', 4])],
                              [helper.make_tensor_value_info('y', floats, ['batch', 4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path / 'm.onnx')
    assert batch_obstacle(tmp_path / 'm.onnx') == "DynamicQuantizeLinear node 'rounding' may join requests"
    said = subprocess.run([program('swizzle-pack'), 'inspect', str(tmp_path / 'm.onnx')], capture_output=True, text=True,
                          timeout=120).stdout
    assert "requests run one by one: DynamicQuantizeLinear node 'rounding' may join requests" in said


def draw(name, model, size):
    """One row, of a length or an image size of its own."""
    sizes = {'batch': 1, 'sequence': size, 'height': 32 * size, 'width': 64}
    random = numpy.random.default_rng(size)
    inputs = {}
    for value in model.graph.input:
        shape = [d.dim_value or sizes[d.dim_param] for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type != onnx.TensorProto.INT64:
            inputs[value.name] = random.normal(0, 1, shape).astype(numpy.float32)
        elif value.name == 'attention_mask':
            inputs[value.name] = numpy.ones(shape, numpy.int64)
        else:
            inputs[value.name] = random.integers(0, make_architectures.VOCABULARY, shape)
    return inputs


def wire(inputs):
    tensors = []
    for name, array in inputs.items():
        tensors.append(triton.InferInput(name, array.shape, 'INT64' if array.dtype == numpy.int64 else 'FP32'))
        tensors[-1].set_data_from_numpy(array)
    return tensors


@pytest.mark.parametrize('name, batches', [('t5_encoder_any_length', 1), ('deberta_any_length', 1), ('dbnet', 2), ('gpt2', 1)])
def test_two_shapes_make_two_batches(name, batches, repository, start, tmp_path):
    """But for what is planned whole over tokens: sequences of all lengths are packed into one."""
    model = make_architectures.build(name, make_architectures.SMALL[name])
    file = tmp_path / 'model.onnx'
    onnx.save(model, file)
    repository.file('model', 'model.onnx', file.read_bytes())
    repository.config('model', 'dynamic_batching { max_queue_delay_microseconds: 1000000 }')
    client = triton.InferenceServerClient(start(repository).grpc)
    assert client.get_model_config('model').config.max_batch_size == 64
    asked = [draw(name, model, size) for size in (2, 3, 2, 3, 3)]
    answers = queue.Queue()
    for i, inputs in enumerate(asked):
        client.async_infer('model', wire(inputs), lambda result, error, i=i: answers.put((i, result, error)))
    for _ in asked:
        i, result, error = answers.get(timeout=60)
        assert error is None
        expected = expected_outputs(file, asked[i])
        compare({output: result.as_numpy(output) for output in expected}, expected)
    statistics = client.get_inference_statistics('model').model_stats[0]
    client.close()
    assert (statistics.inference_count, statistics.execution_count) == (5, batches)
