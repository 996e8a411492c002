"""Quantised models as ONNX Runtime's quantiser writes them, pruned, as QDQ and as QOperator: planned whole, and equal to
ONNX Runtime's outputs but for the rounding of a step here and there."""

import json
import subprocess

import numpy
import onnx
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import conformance_test
import make_cnns  # noqa: F401, adds to make_models.MODELS
import make_models
import parity_test
from conftest import program

OPSET = 17
# Of the output, by which deep networks may differ.
STEPS = 6 if conformance_test.saturates() else 1
NETWORKS = ('mobilenet_v1', 'resnet18', 'resnet50_v1_5', 'mobilenet_v2')


class Calibration(CalibrationDataReader):
    def __init__(self, *inputs):
        self.inputs = iter(inputs)

    def get_next(self):
        return next(self.inputs, None)


def quantise(model, folder, inputs, form=QuantFormat.QDQ, activations=QuantType.QUInt8, weights=QuantType.QInt8,
             per_channel=True, **more):
    plain, file = folder / 'plain.onnx', folder / 'model.onnx'
    onnx.save(model, plain)
    quantize_static(str(plain), str(file), Calibration(inputs), quant_format=form, per_channel=per_channel,
                    activation_type=activations, weight_type=weights, **more)
    return file


def output_scale(file):
    """The scale by which the model's output was last quantised, at most two nodes before its end."""
    model = onnx.load(file)
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}
    maker = makers[model.graph.output[0].name]
    return float(constants[maker.input[1]]) if maker.op_type == 'DequantizeLinear' else None


def report_of(file):
    command = [program('swizzle-pack'), 'inspect', str(file), '-o', 'json', '--tuning-budget=0']
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)


def check(file, inputs, folder, steps):
    assert not report_of(file).get('fallback')
    expected = conformance_test.expected_outputs(file, inputs)
    actual, said = conformance_test.run_model(file, inputs, folder)
    assert not said
    for name, array in expected.items():
        scale = output_scale(file) or numpy.abs(array).max() / 127
        assert actual[name].shape == array.shape
        assert numpy.abs(actual[name] - array).max() < (steps + 0.5) * scale, name  # they are whole, but for rounding


@pytest.mark.parametrize('form', (QuantFormat.QDQ, QuantFormat.QOperator))
@pytest.mark.parametrize('name', NETWORKS)
def test_network(name, form, tmp_path):
    model = make_models.build(name, OPSET)
    parity_test.prune(model, 0.9)
    inputs = conformance_test.draw_inputs(model)
    check(quantise(model, tmp_path, inputs, form), inputs, tmp_path, STEPS)


@pytest.mark.parametrize('activations, weights, per_channel', (
    (QuantType.QInt8, QuantType.QInt8, True), (QuantType.QInt8, QuantType.QInt8, False),
    (QuantType.QUInt8, QuantType.QUInt8, False)))
def test_types(activations, weights, per_channel, tmp_path):
    model = make_models.build('resnet18', OPSET)
    parity_test.prune(model, 0.8)
    inputs = conformance_test.draw_inputs(model)
    file = quantise(model, tmp_path, inputs, QuantFormat.QDQ, activations, weights, per_channel)
    check(file, inputs, tmp_path, STEPS)


@pytest.mark.parametrize('name', ('mobilenet_v3_small', 'efficientnet_b0'))
def test_products_and_functions(name, tmp_path):
    """Squeeze-and-excite, SiLU and HardSwish are of whole numbers, too, and nothing else is left."""
    model = make_models.build(name, OPSET)
    inputs = conformance_test.draw_inputs(model)
    file = quantise(model, tmp_path, inputs)
    check(file, inputs, tmp_path, STEPS)
    kernels = [layer['kernel'] for layer in report_of(file)['layers'] if layer['kernel']]
    assert all('_u8' in kernel for kernel in kernels), kernels
    assert [kernel for kernel in kernels if kernel.startswith('scale_')]


class Drawn:
    """A small model with drawn weights, node by node."""

    def __init__(self):
        self.random = numpy.random.default_rng(4)
        self.nodes, self.weights = [], []

    def constant(self, array):
        self.weights.append(onnx.numpy_helper.from_array(array, f'c{len(self.weights)}'))
        return self.weights[-1].name

    def node(self, op, inputs, **attributes):
        name = f'y{len(self.nodes)}'
        self.nodes.append(onnx.helper.make_node(op, inputs, [name], name=f'n{len(self.nodes)}', **attributes))
        return name

    def pad(self, x, *pads):
        return self.node('Pad', [x, self.constant(numpy.array(pads, numpy.int64)), self.constant(numpy.float32(0))])

    def conv(self, x, channels, inputs, size=3, **attributes):
        weight = self.random.normal(0, 0.3, (channels, inputs, size, size)).astype(numpy.float32)
        return self.node('Conv', [x, self.constant(weight)], **attributes)

    def relu(self, x):
        return self.node('Relu', [x])

    def finish(self, shape, y):
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
                 for name, dims in (('x', shape), (y, None))]
        graph = onnx.helper.make_graph(self.nodes, 'drawn', ports[:1], ports[1:], self.weights)
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', OPSET)], ir_version=8)


def padded_model():
    """A Pad between two convolutions, and one before a pool."""
    m = Drawn()
    y = m.pad(m.relu(m.conv('x', 16, 3)), 0, 0, 0, 1, 0, 0, 2, 1)
    y = m.pad(m.relu(m.conv(y, 24, 16)), 0, 0, 1, 1, 0, 0, 1, 1)
    return m.finish([1, 3, 18, 18], m.conv(m.node('MaxPool', [y], kernel_shape=[3, 3], strides=[2, 2]), 8, 24))


def residual_model():
    """Sums of a convolution and what it read, and of two convolutions."""
    m = Drawn()
    x = m.relu(m.conv('x', 16, 3))
    x = m.relu(m.node('Add', [m.conv(x, 16, 16, pads=[1, 1, 1, 1]), x]))
    x = m.relu(m.node('Add', [m.conv(x, 24, 16, size=1), m.conv(x, 24, 16, pads=[1, 1, 1, 1])]))
    return m.finish([1, 3, 18, 18], m.conv(x, 8, 24))


def test_sums(tmp_path):
    """What a convolution is added to is part of it, though it is rounded before: the sum is nearer to the real one."""
    model = residual_model()
    inputs = conformance_test.draw_inputs(model)
    file = quantise(model, tmp_path, inputs)
    check(file, inputs, tmp_path, 3)
    assert sorted({layer['op'] for layer in report_of(file)['layers']}) == ['Activation', 'Conv']
    real = conformance_test.expected_outputs(tmp_path / 'plain.onnx', inputs)
    theirs = conformance_test.expected_outputs(file, inputs)
    ours, _ = conformance_test.run_model(file, inputs, tmp_path)
    for name, expected in real.items():
        assert noise(ours[name], expected) < noise(theirs[name], expected)


@pytest.mark.parametrize('activations', (QuantType.QUInt8, QuantType.QInt8))
@pytest.mark.parametrize('form', (QuantFormat.QDQ, QuantFormat.QOperator))
def test_pad(form, activations, tmp_path):
    """Of whole numbers, and of those between DequantizeLinear and QuantizeLinear: part of the window behind it."""
    model = padded_model()
    inputs = conformance_test.draw_inputs(model)
    file = quantise(model, tmp_path, inputs, form, activations)
    assert 'Pad' in {node.op_type for node in onnx.load(file).graph.node}
    check(file, inputs, tmp_path, STEPS)
    assert not [layer['op'] for layer in report_of(file)['layers'] if layer['op'] == 'DepthwiseConv']


def test_packed(tmp_path):
    """A packed file remembers scales and zero points: what comes of it is the same to the bit."""
    model = make_models.build('mobilenet_v1', OPSET)
    parity_test.prune(model, 0.9)
    inputs = conformance_test.draw_inputs(model)
    file = quantise(model, tmp_path, inputs)
    packed = tmp_path / 'model.swz'
    subprocess.run([program('swizzle-pack'), 'pack', str(file), str(packed)], check=True, timeout=300)
    first, _ = conformance_test.run_model(file, inputs, tmp_path)
    again, _ = conformance_test.run_model(packed, inputs, tmp_path)
    for name, array in first.items():
        assert numpy.array_equal(array, again[name])


def quantize(model, folder, *flags, name='ours.onnx', rows=16):
    """The model's file, its quantised one, what quantize said, and inputs that it was calibrated with."""
    plain, file = folder / 'plain.onnx', folder / name
    onnx.save(model, plain)
    inputs = {}
    for key, array in conformance_test.draw_inputs(model).items():
        inputs[key] = numpy.random.default_rng(2).normal(0, 1, (rows,) + array.shape[1:]).astype(numpy.float32)
    numpy.savez(folder / 'calibration.npz', **inputs)
    command = [program('swizzle-pack'), 'quantize', str(plain), str(file), f'--calibration={folder / "calibration.npz"}']
    done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return plain, file, done.stdout, inputs


def noise(actual, expected):
    return numpy.square(actual - expected).sum() / numpy.square(expected).sum()


@pytest.mark.parametrize('observer', ('minmax', 'percentile', 'mse'))
@pytest.mark.parametrize('name', ('resnet18', 'mobilenet_v2', 'mobilenet_v3_small'))
def test_quantize(name, observer, tmp_path):
    """What it writes runs here and on ONNX Runtime, alike, and near to the FP32 model; zeros stay."""
    model = make_models.build(name, OPSET)
    parity_test.prune(model, 0.9)
    plain, file, said, inputs = quantize(model, tmp_path, f'--observer={observer}')
    assert 'layers in whole numbers, by 16 batches' in said
    real = conformance_test.expected_outputs(plain, inputs)
    theirs = conformance_test.expected_outputs(file, inputs)
    ours, fallback = conformance_test.run_model(file, inputs, tmp_path)
    assert not fallback
    for key, expected in real.items():
        assert noise(theirs[key], expected) < 0.05, said
        assert noise(ours[key], expected) < 0.05, said
        assert noise(ours[key], theirs[key]) < 0.01, said
    weights = [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(file).graph.initializer
               if tensor.data_type == onnx.TensorProto.INT8 and len(tensor.dims) == 4]
    assert sum((array == 0).sum() for array in weights) / sum(array.size for array in weights) > 0.6


def test_quantize_is_deterministic_and_packs(tmp_path):
    model = make_models.build('mobilenet_v2', OPSET)
    _, first, _, inputs = quantize(model, tmp_path)
    _, again, _, _ = quantize(model, tmp_path, '--threads=1', name='again.onnx')
    assert first.read_bytes() == again.read_bytes()
    _, packed, _, _ = quantize(model, tmp_path, name='packed.swz')
    ours, _ = conformance_test.run_model(first, inputs, tmp_path)
    from_packed, _ = conformance_test.run_model(packed, inputs, tmp_path)
    for key, array in ours.items():
        assert noise(from_packed[key], array) < 1e-4


def test_quantize_skips(tmp_path):
    model = make_models.build('mobilenet_v2', OPSET)
    _, file, said, _ = quantize(model, tmp_path, '--skip=*')
    assert ': 0 of ' in said
    assert not any(node.op_type == 'QuantizeLinear' for node in onnx.load(file).graph.node)
