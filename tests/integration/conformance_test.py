"""Outputs equal ONNX Runtime's, on the shipped models and on generated ones that cover every supported operator."""

import pathlib
import re
import subprocess

import numpy
import onnx
import onnxruntime
import pytest

import make_cnns  # adds to make_models.MODELS
import make_models
from conftest import DENSE, SHIPPED, SPARSE, program

TOLERANCE = 1e-4  # largest difference over largest magnitude, per output
BATCH = 3         # where it is free
# What quantised_test.py covers.
QUANTISED = {'ConvInteger', 'DequantizeLinear', 'DynamicQuantizeLinear', 'MatMulInteger', 'QLinearConv', 'QLinearMatMul',
             'QuantizeLinear'}
# The first opset that has them, where models have had another spelling before.
SINCE = {'HardSwish': 14, 'LayerNormalization': 17, 'GroupNormalization': 18, 'Gelu': 20}


def expected_outputs(model_file, inputs):
    """What ONNX Runtime computes from inputs by name, as arrays by name."""
    options = onnxruntime.SessionOptions()
    # Its fusion of a Pad by zeros into a MaxPool changes the result where all elements of a window are negative.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model_file), options, providers=['CPUExecutionProvider'])
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs)))


def saturates():
    """Whether ONNX Runtime's sums of products of bytes do here: those of processors without VNNI have 16 bits."""
    return 'vnni' not in pathlib.Path('/proc/cpuinfo').read_text()


def run_model(model_file, inputs, directory):
    """What swizzle-pack computes from inputs by name, as arrays by name, and what it said: that it is interpreted, for one."""
    command = [program('swizzle-pack'), 'run', str(model_file), f'--output-dir={directory / "outputs"}']
    for name, array in inputs.items():
        numpy.save(directory / f'{name}.npy', array)
        command += ['--input', f'{name}={directory / name}.npy']
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {path.stem: numpy.load(path) for path in (directory / 'outputs').glob('*.npy')}, done.stderr


def draw_inputs(model):
    """Normally distributed inputs, the same in every run."""
    random = numpy.random.default_rng(1)
    initializers = {initializer.name for initializer in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name not in initializers:
            shape = [d.dim_value or BATCH for d in value.type.tensor_type.shape.dim]
            inputs[value.name] = random.normal(0, 1, shape).astype(numpy.float32)
    return inputs


def check(model_file, inputs, directory, expected_file=None):
    expected = expected_outputs(expected_file or model_file, inputs)
    actual, _ = run_model(model_file, inputs, directory)
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        assert actual[name].shape == array.shape, name
        difference = numpy.abs(actual[name] - array).max() / max(numpy.abs(array).max(), 1e-30)
        assert difference <= TOLERANCE, f'{name}: {difference}'


@pytest.mark.parametrize('name, opset', make_models.cases())
def test_generated_model(name, opset, tmp_path):
    model = make_models.build(name, opset)
    onnx.save(model, tmp_path / 'model.onnx')
    # ONNX Runtime begins at opset 7: the same network, with the same weights, written in that.
    onnx.save(make_models.build(name, max(opset, 7)), tmp_path / 'expected.onnx')
    check(tmp_path / 'model.onnx', draw_inputs(model), tmp_path, tmp_path / 'expected.onnx')


def counted_means(x, kernel, strides, pads):
    """Means of windows that count the padding given, and that its end cuts off; none starts in it."""
    padded = numpy.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    rows, columns = ([start for start in range(0, x.shape[i + 2] + pads[i], strides[i])
                      if start == 0 or start - strides[i] + kernel[i] < padded.shape[i + 2]] for i in (0, 1))
    return numpy.stack([numpy.stack([padded[:, :, row:row + kernel[0], column:column + kernel[1]].mean((2, 3))
                                     for column in columns], -1) for row in rows], -2)


@pytest.mark.parametrize('pads', ([1, 1, 1, 1], [1, 2, 0, 1]))
def test_cut_off_windows_of_old_opsets(pads, tmp_path):
    """As ONNX says: ONNX Runtime divides by whole windows before opset 19, and later mistakes one axis' padding for the
    other's."""
    model = make_models.build('pools_that_count', 11)
    kernel, strides = [4, 3], {}
    for node in model.graph.node:
        given = {attribute.name: attribute.ints for attribute in node.attribute}
        given['pads'][:], given['kernel_shape'][:] = pads, kernel
        strides[node.output[0]] = list(given['strides'])
    onnx.save(model, tmp_path / 'model.onnx')
    inputs = draw_inputs(model)
    actual, said = run_model(tmp_path / 'model.onnx', inputs, tmp_path)
    assert not said
    for name, array in actual.items():
        expected = counted_means(inputs['image'], kernel, strides[name], pads)
        numpy.testing.assert_allclose(array, expected, atol=1e-6, err_msg=name)


def test_generated_models_cover_every_operator():
    """The operators are those of ONNX that plans do something with, by model_loader/graph/operator_rows.h."""
    source = (SHIPPED.parents[1] / 'model_loader' / 'graph' / 'operator_rows.h').read_text()
    rows = re.findall(r'\{\{"", "(\w+)".*?P::(\w+)', source, re.DOTALL)
    supported = {name for name, use in rows if use != 'kNone'}
    assert len(supported) > 20
    for opset in make_models.OPSETS:
        used = {node.op_type for name, written in make_models.cases() if written == opset
                for node in make_models.build(name, opset).graph.node}
        if opset >= 11:  # older ones have fewer spellings, not all of which every model avoids
            later = {name for name, first in SINCE.items() if opset < first}
            assert used == supported - QUANTISED - {'Upsample'} - later
        assert used <= supported


@pytest.mark.parametrize('name', (SPARSE, DENSE, 'resnet18_thin_fashion', 'resnet18_thin_fashion_sparse90'))
def test_shipped_model(name, tmp_path, test_images):
    check(SHIPPED / f'{name}.onnx', {'image': test_images[0][:16]}, tmp_path)
