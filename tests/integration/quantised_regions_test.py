"""Networks that no plan takes whole, quantised as QDQ by ONNX Runtime and by swizzle-pack quantize: their regions are in
whole numbers."""

import re
import subprocess

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import conformance_test
import make_architectures
import quantised_test
import regions_test
import vision_architectures  # noqa: F401, adds to make_architectures.SMALL
from conftest import program

# Of outputs, signal over what differs from ONNX Runtime's on the same file.
LEAST_DECIBELS = 20 if conformance_test.saturates() else 30
LEAST_TO_REAL = 25  # and from those in FP32


def drawn(name):
    model = make_architectures.build(name, make_architectures.SMALL[name], sparsity=0.8)
    model = onnx.shape_inference.infer_shapes(model)
    return model, regions_test.draw_inputs(model)


def decibels(expected, actual):
    noise = numpy.square(actual - expected).sum()
    return 10 * numpy.log10(numpy.square(expected).sum() / max(noise, 1e-30))


def check(file, inputs, folder, share, of='(conv|linear)_'):
    """That so many of its products are in whole numbers, no rounding is left to the interpreter, and outputs are right."""
    report = quantised_test.report_of(file)
    kernels = [kernel for region in report['regions'] for layer in region['layers'] for kernel in layer['kernels']]
    products = [kernel for kernel in kernels if re.match(of, kernel)]
    assert len([kernel for kernel in products if '_u8' in kernel]) >= share * len(products), products
    norms = [kernel for kernel in kernels if kernel.startswith('layer_norm')]
    if norms and not of.startswith('linear'):
        assert any('_u8' in kernel for kernel in norms), 'norms may end in what products read'
    actual, said = regions_test.run_model(file, inputs, folder)
    left = re.search('operators="?([^ "]*)', said)
    assert not left or not re.search('QuantizeLinear|Erf', left.group(1)), said
    expected = conformance_test.expected_outputs(file, inputs)
    for output, array in expected.items():
        assert decibels(array, actual[output]) > LEAST_DECIBELS, output
    return actual


@pytest.mark.parametrize('name', ('yolov5', 'dbnet', 'mobilevit'))
def test_files_of_onnx_runtime(name, tmp_path):
    model, inputs = drawn(name)
    operators = ['Conv', 'Gemm', 'MatMul']
    check(quantised_test.quantise(model, tmp_path, inputs, op_types_to_quantize=operators), inputs, tmp_path, 0.8)


@pytest.mark.parametrize('name', ('vit', 'swin', 'mobilevit'))
@pytest.mark.parametrize('per_channel', (True, False))
def test_products_quantised_when_they_run(name, per_channel, tmp_path):
    """As ONNX Runtime's quantize_dynamic writes them."""
    model, inputs = drawn(name)
    onnx.save(model, tmp_path / 'real.onnx')
    file = tmp_path / 'dynamic.onnx'
    quantize_dynamic(tmp_path / 'real.onnx', file, weight_type=QuantType.QInt8, per_channel=per_channel,
                     op_types_to_quantize=['Gemm', 'MatMul'])
    actual = check(file, inputs, tmp_path, 0.8, of='linear_')
    for output, array in conformance_test.expected_outputs(tmp_path / 'real.onnx', inputs).items():
        assert decibels(array, actual[output]) > LEAST_TO_REAL, output


def quantize(folder, inputs, *flags):
    numpy.savez(folder / 'inputs.npz', **inputs)
    return subprocess.run([program('swizzle-pack'), 'quantize', folder / 'real.onnx', folder / 'int8.onnx',
                           f'--calibration={folder}/inputs.npz', *flags], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize('name', ('yolov5', 'dbnet', 'vit', 'swin', 'segformer', 'convnext'))
def test_quantize_takes_any_graph(name, tmp_path):
    model, inputs = drawn(name)
    onnx.save(model, tmp_path / 'real.onnx')
    done = quantize(tmp_path, inputs)
    assert done.returncode == 0, done.stderr
    whole, layers = map(int, re.search(r': (\d+) of (\d+) layers in whole numbers', done.stdout).groups())
    assert whole == layers > 8
    actual = check(tmp_path / 'int8.onnx', inputs, tmp_path, 0.65 if name == 'convnext' else 0.8)
    for output, array in conformance_test.expected_outputs(tmp_path / 'real.onnx', inputs).items():
        assert decibels(array, actual[output]) > LEAST_TO_REAL, output
    assert (tmp_path / 'int8.onnx').stat().st_size < (tmp_path / 'real.onnx').stat().st_size / 2


def skewed(*shape):
    """A weight whose roundings add up: all but one number of a row lie .4 of a step above a whole one."""
    weight = numpy.full(shape, 10.4 / 127, numpy.float32)
    weight.reshape(shape[0], -1)[:, 0] = 1
    return weight


LAYERS = {  # nodes from x to y, and their constants
    'grouped': ([('Conv', ['x', 'w'], {'group': 2, 'pads': [1, 1, 1, 1]})], {'w': skewed(8, 3, 3, 3)}, (16, 6, 8, 8)),
    'biased': ([('Conv', ['x', 'w', 'b'], {})], {'w': skewed(8, 32, 1, 1), 'b': numpy.arange(8)}, (16, 32, 8, 8)),
    'gemm': ([('Gemm', ['x', 'w'], {'transB': 1})], {'w': skewed(8, 64)}, (64, 64)),
    'matmul': ([('MatMul', ['x', 'w'], {}), ('Add', ['b', 'v0'], {})], {'w': skewed(8, 64).T, 'b': numpy.ones(8)},
               (4, 16, 64)),
}


def quantised_layers(folder, layers, constants, x):
    """What ONNX Runtime makes of layers from x to y: in real numbers, and of what quantize wrote."""
    nodes = [helper.make_node(op, inputs, ['y' if i + 1 == len(layers) else f'v{i}'], **attributes)
             for i, (op, inputs, attributes) in enumerate(layers)]
    nodes.append(helper.make_node('Det', ['matrix'], ['unplanned']))
    inputs = {'x': x, 'matrix': numpy.ones((2, 2), numpy.float32)}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, 'layer', [value(key, TensorProto.FLOAT, array.shape) for key, array in inputs.items()],
        [value('y', TensorProto.FLOAT, None), value('unplanned', TensorProto.FLOAT, None)],
        [numpy_helper.from_array(numpy.ascontiguousarray(array, numpy.float32), key)
         for key, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.save(model, folder / 'real.onnx')
    done = quantize(folder, inputs)
    assert ': 1 of 1 layers in whole numbers' in done.stdout, done.stderr + done.stdout
    inputs['x'] = numpy.nan_to_num(x)
    return [conformance_test.expected_outputs(folder / f'{file}.onnx', inputs)['y'] for file in ('real', 'int8')]


@pytest.mark.parametrize('name', LAYERS)
def test_biases_take_up_what_rounding_adds(name, tmp_path):
    layers, constants, shape = LAYERS[name]
    x = numpy.random.default_rng(1).random(shape, numpy.float32)
    real, whole = quantised_layers(tmp_path, layers, constants, x)
    channels = 1 if real.ndim == 4 else real.ndim - 1
    errors = (whole - real).mean(tuple(axis for axis in range(real.ndim) if axis != channels))
    assert numpy.abs(errors).max() < 0.02, errors  # without, .04 to .1


TERMS = {  # that are added to a product of 8x64 and 64x8, and are no row of channels, or not only that
    'of more dimensions': ([('MatMul', ['x', 'w'], {}), ('Add', ['v0', 'b'], {})], (1, 1, 8)),
    'of rows': ([('Transpose', ['b'], {}), ('MatMul', ['x', 'w'], {}), ('Add', ['v1', 'v0'], {})], (1, 8)),
}


@pytest.mark.parametrize('name', TERMS)
def test_what_is_added_keeps_its_shape(name, tmp_path):
    layers, shape = TERMS[name]
    constants = {'w': skewed(8, 64).T, 'b': 10 * numpy.arange(8).reshape(shape)}
    x = numpy.random.default_rng(1).random((8, 64), numpy.float32)
    real, whole = quantised_layers(tmp_path, layers, constants, x)
    assert real.shape == whole.shape
    assert numpy.abs(whole - real).max() < 0.3


def test_factors_by_channel_go_to_scales(tmp_path):
    """Negative ones and zeros, too; between two convolutions, of which none leaves whole numbers for them."""
    random = numpy.random.default_rng(2)
    constants = {'first': random.normal(0, 1, (16, 16, 3, 3)), 'factors': random.normal(0, 2, (1, 16, 1, 1)),
                 'second': random.normal(0, 1, (8, 16, 1, 1))}
    constants['factors'][0, :2] = [[[0]], [[-1]]]
    nodes = [helper.make_node('Conv', ['x', 'first'], ['a'], pads=[1, 1, 1, 1]),
             helper.make_node('Mul', ['a', 'factors'], ['b']), helper.make_node('Conv', ['b', 'second'], ['y'])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, 'factors', [value('x', TensorProto.FLOAT, (1, 16, 12, 12))], [value('y', TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array.astype(numpy.float32), key) for key, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    inputs = {'x': random.normal(0, 1, (1, 16, 12, 12)).astype(numpy.float32)}
    file = quantised_test.quantise(model, tmp_path, inputs, op_types_to_quantize=['Conv'], per_channel=True)
    kernels = [layer['kernel'] for layer in quantised_test.report_of(file)['layers'] if layer['op'] == 'Conv']
    assert len(kernels) == 2 and all('_u8' in kernel for kernel in kernels), kernels
    actual, said = conformance_test.run_model(file, inputs, tmp_path)
    assert not said
    assert decibels(conformance_test.expected_outputs(file, inputs)['y'], actual['y']) > LEAST_DECIBELS


def test_what_is_not_finite_spoils_no_bias(tmp_path):
    x = numpy.random.default_rng(1).random((64, 64), numpy.float32)
    x[3, 5], x[7, 9], x[9, 9] = -numpy.inf, numpy.inf, -numpy.inf
    real, whole = quantised_layers(tmp_path, *LAYERS['gemm'][:2], x)
    assert numpy.isfinite(whole).all()
    x[3, 5] = numpy.nan
    assert "input 'x' has values that are no numbers" in quantize(
        tmp_path, {'x': x, 'matrix': numpy.ones((2, 2), numpy.float32)}).stderr


def test_what_quantize_says(tmp_path):
    model, inputs = drawn('vit')
    onnx.save(model, tmp_path / 'real.onnx')
    assert "the pattern to skip 'none' matches no layer" in quantize(tmp_path, inputs, '--skip=none').stderr
    skipped = quantize(tmp_path, inputs, '--skip=*MatMul*').stdout
    assert re.search(r': 2 of \d+ layers in whole numbers', skipped), skipped
    done = quantize(tmp_path, {'other': numpy.zeros(3, 'float32')})
    assert done.returncode != 0 and 'other' in done.stderr
    command = [program('swizzle-pack'), 'quantize', tmp_path / 'real.onnx', tmp_path / 'int8.onnx']
    assert '--calibration' in subprocess.run(command, capture_output=True, text=True, timeout=300).stderr
