"""com.microsoft's operators on whole numbers, one by one, on the interpreter: ONNX Runtime's steps, but for one where
its own sums round otherwise. Whole networks of them are quantised_test.py's."""

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import conformance_test

UINT8, INT8 = TensorProto.UINT8, TensorProto.INT8
ATTRIBUTES = {
    'QLinearAveragePool': {'kernel_shape': [3, 3], 'strides': [2, 2], 'pads': [1, 1, 1, 1]},
    'QLinearGlobalAveragePool': {'channels_last': 0},
    'QLinearLeakyRelu': {'alpha': 0.2},
    'QLinearSoftmax': {'axis': 1, 'opset': 13},
}
TYPES = {UINT8: numpy.uint8, INT8: numpy.int8}


class Model:
    """One node, whose operands are quantised inputs of the graph, each with a scale and a zero point of its own."""

    def __init__(self, dtype):
        self.random = numpy.random.default_rng(5)
        self.dtype = dtype
        self.inputs, self.values, self.initializers = [], {}, []

    def constant(self, array):
        name = f'c{len(self.initializers)}'
        self.initializers.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def scale(self, scale, zero):
        return [self.constant(numpy.float32(scale)), self.constant(TYPES[self.dtype](zero))]

    def draw(self, shape, dtype=None):
        limits = numpy.iinfo(TYPES[dtype or self.dtype])
        return self.random.integers(limits.min, limits.max + 1, shape).astype(TYPES[dtype or self.dtype])

    def input(self, shape, dtype=None, array=None):
        name = f'x{len(self.inputs)}'
        self.values[name] = self.draw(shape, dtype) if array is None else array
        kind = helper.np_dtype_to_tensor_dtype(self.values[name].dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def operand(self, shape, scale, zero):
        return [self.input(shape)] + self.scale(scale, zero)

    def write(self, file, op, inputs, output, **attributes):
        node = helper.make_node(op, inputs, ['y'], domain='com.microsoft', **attributes)
        outputs = [helper.make_tensor_value_info('y', output, None)]
        graph = helper.make_graph([node], 'one', self.inputs, outputs, self.initializers)
        opsets = [helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), file)


def build(op, dtype, file):
    """Writes the model; its inputs."""
    m = Model(dtype)
    plane, zero = [2, 8, 6, 6], 3 if dtype == INT8 else 120
    y = m.scale(0.0413, zero - 2)
    if op in ('QLinearAdd', 'QLinearMul'):
        m.write(file, op, m.operand(plane, 0.0201, zero) + m.operand([8, 1, 1], 0.03, zero + 5) + y, dtype)
    elif op == 'QLinearConcat':
        parts = m.operand(plane, 0.0201, zero) + m.operand([2, 3, 6, 6], 0.05, zero + 1)
        m.write(file, op, y + parts, dtype, axis=1)
    elif op == 'QGemm':
        weight = m.scale(0.05, zero)
        if dtype == INT8:
            scales = numpy.linspace(0.01, 0.07, 7, dtype=numpy.float32)
            weight = [m.constant(scales), m.constant(numpy.zeros(7, numpy.int8))]
        bias = m.constant(m.random.integers(-900, 900, 7).astype(numpy.int32))
        inputs = m.operand([4, 300], 0.02, zero) + [m.constant(m.draw([7, 300]))] + weight + [bias] + m.scale(2.0, zero)
        m.write(file, op, inputs, dtype, transB=1, alpha=1.0)
    elif op in ('MatMulIntegerToFloat', 'DynamicQuantizeMatMul'):
        weight, scales = m.constant(m.draw([20, 5])), m.constant(numpy.linspace(0.01, 0.05, 5, dtype=numpy.float32))
        zeros, bias = m.constant(numpy.full(5, zero, TYPES[dtype])), m.constant(numpy.arange(5, dtype=numpy.float32))
        if op == 'DynamicQuantizeMatMul':
            x = m.input([3, 20], array=m.random.normal(0, 1, [3, 20]).astype(numpy.float32))
            inputs = [x, weight, scales, zeros, bias]
        else:
            inputs = [m.input([2, 3, 20], UINT8), weight, m.constant(numpy.float32(0.02)), scales,
                      m.constant(numpy.uint8(77)), zeros, bias]
        m.write(file, op, inputs, TensorProto.FLOAT)
    else:
        y = m.scale(1 / 256, zero - 100) if op in ('QLinearSigmoid', 'QLinearSoftmax') else y
        m.write(file, op, m.operand(plane, 0.0201, zero) + y, dtype, **ATTRIBUTES.get(op, {}))
    return m.values


@pytest.mark.parametrize('dtype', (UINT8, INT8), ids=('uint8', 'int8'))
@pytest.mark.parametrize('op', (
    'DynamicQuantizeMatMul', 'MatMulIntegerToFloat', 'QGemm', 'QLinearAdd', 'QLinearAveragePool', 'QLinearConcat',
    'QLinearGlobalAveragePool', 'QLinearLeakyRelu', 'QLinearMul', 'QLinearSigmoid', 'QLinearSoftmax'))
def test_operator(op, dtype, tmp_path):
    file = tmp_path / 'model.onnx'
    inputs = build(op, dtype, file)
    expected = conformance_test.expected_outputs(file, inputs)['y']
    actual, said = conformance_test.run_model(file, inputs, tmp_path)
    is_linear = op == 'DynamicQuantizeMatMul'
    assert ('interpreter' in said) != is_linear, 'which is a linear layer that rounds each row by itself'
    assert actual['y'].dtype == expected.dtype and actual['y'].shape == expected.shape
    if conformance_test.saturates() and op in ('DynamicQuantizeMatMul', 'MatMulIntegerToFloat') and dtype == INT8:
        pytest.skip("ONNX Runtime's sums of bytes saturate on this processor, which has no VNNI")
    steps = numpy.abs(actual['y'].astype(numpy.float64) - expected)
    if expected.dtype == numpy.float32:
        assert steps.max() < (1e-2 if is_linear else 1e-5) * numpy.abs(expected).max()
    else:
        assert steps.max() <= 1 and (steps != 0).mean() < 0.02
