"""Convolutional networks in whole numbers, spelled as SparseML exported them for DeepSparse (2021 to 2023), after what
its exporters say of themselves:

- `qat`: as PyTorch leaves a network that was trained with fake quantisation: weights in FP32 before QuantizeLinear and
  DequantizeLinear, biases in FP32, such a pair behind each convolution and another one before the next, of its scale or
  of one of its own.
- `qlinear`: QLinearConv, and QLinearMatMul with its bias added in FP32 (until version 0.11).
- `integer`: QuantizeLinear, ConvInteger or MatMulInteger, Add of an INT32 bias, Cast, Mul by both scales (from 0.12
  on).

Both of the latter have weights of UINT8 whose zero point is 128. What a residual adds is dequantised from what the
next convolution reads. A Relu before QuantizeLinear is gone where the zero point is 0.
"""

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FORMS = ('qat', 'qlinear', 'integer')
WEIGHT_ZERO = 128


def prune_blocks(model, sparsity):
    """Zeroes so many blocks of four input channels of every layer but depthwise ones and the first."""
    random = numpy.random.default_rng(7)
    weights = {node.input[1] for node in model.graph.node if node.op_type in ('Conv', 'Gemm')}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor).copy()
        if tensor.name not in weights or array.shape[1] % 4 != 0:
            continue
        blocks = array.reshape(array.shape[0], array.shape[1] // 4, 4, -1)
        blocks[random.random(blocks.shape[:2] + blocks.shape[3:])[:, :, None].repeat(4, 2) < sparsity] = 0
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def ranges_of(model, inputs):
    """The least and the greatest of each value, 0 included."""
    probe = onnx.ModelProto.FromString(model.SerializeToString())
    names = [name for node in probe.graph.node for name in node.output]
    del probe.graph.output[:]
    probe.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=['CPUExecutionProvider'])
    values = dict(zip(names, session.run(None, inputs))) | inputs
    return {name: (min(float(array.min()), 0.0), max(float(array.max()), 0.0)) for name, array in values.items()
            if array.dtype == numpy.float32}


class Exporter:
    def __init__(self, model, inputs, form, bytes_in):
        self.model, self.form, self.bytes_in = model, form, bytes_in
        self.ranges = ranges_of(model, inputs)
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.readers = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.nodes, self.initializers, self.made = [], [], set()
        self.real = {}  # what stands for a value of the given model in real numbers

    def constant(self, name, array):
        if name not in self.made:
            self.made.add(name)
            self.initializers.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=f'{op}.{output}', **attributes))
        return output

    def scale(self, value, factor=1.0):
        """Names of the scale and the zero point by which it is quantised, and the two."""
        low, high = self.ranges[value]
        scale = numpy.float32(max(high - low, 1e-6) / 255 * factor)
        zero = numpy.uint8(numpy.clip(numpy.rint(-low / scale), 0, 255))
        name = f'{value}.by{factor}'
        return self.constant(name + '.scale', scale), self.constant(name + '.zero', zero), scale, zero

    def quantised(self, value):
        name = value + '.q'
        if name in self.made:
            return name
        self.made.add(name)
        if self.bytes_in and value == self.model.graph.input[0].name:
            self.real[value] = name  # what is given is whole
            return name
        return self.node('QuantizeLinear', [self.real.get(value, value), *self.scale(value)[:2]], name)

    def pair(self, given, value, name, factor=1.0):
        """QuantizeLinear and DequantizeLinear of `given`, which stands for the value."""
        scale = self.scale(value, factor)[:2]
        return self.node('DequantizeLinear', [self.node('QuantizeLinear', [given, *scale], name + '.q'), *scale], name)

    def weight(self, node):
        """The weight's name, its scale, and what says how to read it."""
        weight = self.constants[node.input[1]]
        if node.op_type == 'Gemm' and any(a.name == 'transB' and a.i for a in node.attribute):
            weight = weight.T
        scale = numpy.float32(numpy.abs(weight).max() / 127)
        wholes = numpy.clip(numpy.rint(weight / scale) + WEIGHT_ZERO, 0, 255).astype(numpy.uint8)
        name = node.output[0] + '.weight'
        by = [self.constant(name + '.scale', scale)] if self.form != 'integer' else []
        by.append(self.constant(name + '.zero', numpy.uint8(WEIGHT_ZERO)))
        return self.constant(name, weight if self.form == 'qat' else wholes), scale, by

    def attributes(self, node):
        return {a.name: helper.get_attribute_value(a) for a in node.attribute} if node.op_type == 'Conv' else {}

    def rounded(self, node):
        """The value that the node's output is quantised as, or nothing; a Relu in between is left out."""
        value = node.output[0]
        readers = self.readers.get(value, [])
        if len(readers) == 1 and readers[0].op_type == 'Relu':
            value = readers[0].output[0]
            self.real[value] = None
        return value

    def linear(self, node):
        weight, weight_scale, weight_by = self.weight(node)
        bias = self.constants[node.input[2]]
        if self.form == 'qat':
            return self.fake_linear(node, weight, weight_by, bias)
        x, (x_scale, x_zero, scale, _) = self.quantised(node.input[0]), self.scale(node.input[0])
        product = scale * weight_scale
        whole_bias = numpy.rint(bias / product).astype(numpy.int32)
        y, conv = node.output[0], node.op_type == 'Conv'
        if self.form == 'qlinear':
            to = self.rounded(node)
            by = list(self.scale(to)[:2])
            inputs = [x, x_scale, x_zero, weight, *weight_by, *by]
            wholes = self.node('QLinearConv' if conv else 'QLinearMatMul',
                               inputs + ([self.constant(y + '.bias', whole_bias)] if conv else []), to + '.q',
                               **self.attributes(node))
            self.made.add(wholes)
            self.real[to] = self.node('DequantizeLinear', [wholes, *by], to + ('' if conv else '.sums'))
            if not conv:
                self.node('Add', [self.real[to], self.constant(y + '.bias', bias)], y)
            return
        sums = self.node('ConvInteger' if conv else 'MatMulInteger', [x, weight, x_zero, *weight_by], y + '.quant',
                         **self.attributes(node))
        shape = [1, -1, 1, 1] if conv else [-1]
        sums = self.node('Add', [sums, self.constant(y + '.bias', whole_bias.reshape(shape))], y + '.bias_add')
        real = self.node('Cast', [sums], y + '.cast', to=TensorProto.FLOAT)
        self.node('Mul', [real, self.constant(y + '.rescale', product)], y)

    def fake_linear(self, node, weight, weight_by, bias):
        """Between pairs, the second of which has another scale in every other layer."""
        y = node.output[0]
        factor = 1.02 if len(self.nodes) % 2 else 1.0
        x = self.pair(self.real.get(node.input[0], node.input[0]), node.input[0], y + '.x')
        x = self.pair(x, node.input[0], y + '.again', factor)
        wholes = self.node('QuantizeLinear', [weight, *weight_by], weight + '.q')
        real = self.node('DequantizeLinear', [wholes, *weight_by], weight + '.real')
        sums = self.node('Conv' if node.op_type == 'Conv' else 'Gemm', [x, real, self.constant(y + '.bias', bias)],
                         y + '.sums', **self.attributes(node))
        self.node('Identity', [sums], y) if node.op_type != 'Conv' else self.pair(sums, y, y)

    def run(self):
        graph = self.model.graph
        for node in graph.node:
            if node.op_type in ('Conv', 'Gemm'):
                self.linear(node)
            elif node.op_type == 'Relu' and node.output[0] in self.real:
                continue
            else:
                inputs = [self.operand(node, name) for name in node.input]
                self.nodes.append(helper.make_node(node.op_type, inputs, list(node.output), name=node.name))
                self.nodes[-1].attribute.extend(node.attribute)
        ports = [graph.input[0], graph.output[0]]
        if self.bytes_in:
            shape = [d.dim_param or d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
            ports[0] = helper.make_tensor_value_info(graph.input[0].name + '.q', TensorProto.UINT8, shape)
        exported = helper.make_graph(self.nodes, 'sparseml', ports[:1], ports[1:], self.initializers)
        return helper.make_model(exported, opset_imports=[helper.make_opsetid('', 14)], ir_version=8)

    def operand(self, node, name):
        """What an operator in real numbers reads; of a sum, what the next convolution reads, in real numbers."""
        if name in self.constants:
            return self.constant(name, self.constants[name])
        quantised = any(reader.op_type in ('Conv', 'Gemm') for reader in self.readers[name])
        if node.op_type != 'Add' or self.form == 'qat' or not quantised:
            return self.real.get(name) or name
        real = f'{name}_identity_dequantized'
        if real not in self.made:
            self.made.add(real)
            self.node('DequantizeLinear', [self.quantised(name), *self.scale(name)[:2]], real)
        return real


def export(model, inputs, form, bytes_in=False):
    """The network, whose batch norms are folded, in that form; with bytes_in it is given what its first QuantizeLinear
    would make."""
    return Exporter(model, inputs, form, bytes_in).run()
