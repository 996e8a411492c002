"""Small CNNs with drawn weights that cover every supported ONNX operator in the spellings that exporters use.

    make_models.py DIRECTORY    writes each of MODELS at each of OPSETS as DIRECTORY/NAME_opsetN.onnx
"""

import pathlib
import sys
import zlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = (6, 7, 9, 11, 13, 17, 18, 23)
IR_VERSIONS = {6: 4, 7: 4, 9: 4, 11: 6, 13: 7, 17: 8, 18: 8, 23: 11}
MODELS = {}
SINCE = {}  # the first opset that a model can be written in


def model(function=None, since=11):
    if function is None:
        return lambda decorated: model(decorated, since)
    MODELS[function.__name__] = function
    SINCE[function.__name__] = since
    return function


def cases():
    """Every model's name with every opset that it can be written in."""
    return [(name, opset) for name in MODELS for opset in OPSETS if opset >= SINCE[name]]


def build(name, opset):
    """The model of that name. Its weights depend on the name alone."""
    graph = Graph(opset, zlib.crc32(name.encode()))
    MODELS[name](graph)
    return graph.finish(name)


class Graph:
    """A graph under construction. Methods that add a node return the name of its output."""

    def __init__(self, opset, seed):
        self.opset = opset
        self.random = numpy.random.default_rng(seed)
        self.inputs, self.outputs, self.nodes, self.initializers = [], [], [], []
        self.initializers_are_inputs = False
        self.typed_data = False
        self.count = 0

    def finish(self, name):
        inputs = list(self.inputs)
        if self.initializers_are_inputs:
            inputs += [helper.make_tensor_value_info(i.name, i.data_type, i.dims) for i in self.initializers]
        graph = helper.make_graph(self.nodes, name, inputs, self.outputs, self.initializers)
        ir_version = 3 if self.initializers_are_inputs else IR_VERSIONS[self.opset]
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)], ir_version=ir_version,
                                 producer_name='make_models')

    # Ports and constants.

    def input(self, *shape, batch='batch', name='image'):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, (batch,) + shape))
        return name

    def output(self, value, name='output'):
        """Makes the value an output and returns its name: renamed where nothing reads it yet, else by an Identity."""
        for node in self.nodes:
            taken = any(value in other.input for other in self.nodes) or any(value == o.name for o in self.outputs)
            if value in node.output and not taken:
                node.output[list(node.output).index(value)] = name
                value = name
        if value != name:
            self.nodes.append(helper.make_node('Identity', [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        return name

    def initializer(self, array, dtype=numpy.float32):
        array = numpy.asarray(array, dtype)
        name = self.fresh('constant')
        if self.typed_data:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            self.initializers.append(helper.make_tensor(name, kind, array.shape, array.flatten().tolist()))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def integers(self, *values):
        return self.initializer(values, numpy.int64)

    def constant(self, array, dtype=numpy.float32):
        return self.node('Constant', [], value=numpy_helper.from_array(numpy.asarray(array, dtype)))

    def normal(self, *shape, scale=1.0):
        return self.random.normal(0, scale, shape).astype(numpy.float32)

    # Nodes.

    def fresh(self, prefix):
        self.count += 1
        return f'{prefix}_{self.count}'

    def node(self, op, inputs, **attributes):
        name = self.fresh(op)
        self.nodes.append(helper.make_node(op, inputs, [f'/{name}_output'], name=f'/{name}', **attributes))
        return f'/{name}_output'

    def weight(self, *shape, sparsity=0.0):
        weight = self.normal(*shape, scale=(2.0 / numpy.prod(shape[1:])) ** 0.5)
        weight[self.random.random(shape) < sparsity] = 0
        return self.initializer(weight)

    def conv(self, x, inputs, outputs, kernel=1, bias=True, sparsity=0.0, group=1, **attributes):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        if 'stride' in attributes:
            attributes['strides'] = [attributes.pop('stride')] * 2
        if 'pad' in attributes:
            attributes['pads'] = [attributes.pop('pad')] * 4
        operands = [x, self.weight(outputs, inputs // group, *kernel, sparsity=sparsity)]
        if bias:
            operands.append(self.initializer(self.normal(outputs, scale=0.1)))
        return self.node('Conv', operands, group=group, kernel_shape=kernel, **attributes)

    def depthwise(self, x, channels, kernel=3, **attributes):
        return self.conv(x, channels, channels, kernel, group=channels, **attributes)

    def batch_norm(self, x, channels):
        statistics = [1 + self.normal(channels, scale=0.2), self.normal(channels, scale=0.2),
                      self.normal(channels, scale=0.2), numpy.exp(self.normal(channels, scale=0.3))]
        old = {'is_test': 1, 'spatial': 1} if self.opset < 7 else {'spatial': 1} if self.opset < 9 else {}
        return self.node('BatchNormalization', [x] + [self.initializer(s) for s in statistics], epsilon=1e-3, **old)

    def clip(self, x, low=None, high=None):
        """Bounds are inputs from opset 11 on; an omitted one is an empty name."""
        if self.opset < 11:
            given = (('min', low), ('max', high))
            return self.node('Clip', [x], **{name: bound for name, bound in given if bound is not None})
        bounds = ['' if bound is None else self.constant(bound) for bound in (low, high)]
        return self.node('Clip', [x] + (bounds if high is not None else bounds[:1]))

    def relu6(self, x):
        return self.clip(x, 0.0, 6.0)

    def relu(self, x):
        return self.node('Relu', [x])

    def with_axes(self, op, x, *axes):
        if self.opset < 13:
            return self.node(op, [x], axes=list(axes))
        return self.node(op, [x, self.integers(*axes)])

    def unsqueeze(self, x, *axes):
        return self.with_axes('Unsqueeze', x, *axes)

    def squeeze(self, x, *axes):
        return self.with_axes('Squeeze', x, *axes)

    def mean(self, x, keepdims, axes=None):
        axes = axes or ((2, 3) if keepdims or self.opset < 11 else (-2, -1))
        if self.opset < 18:
            return self.node('ReduceMean', [x], axes=axes, keepdims=int(keepdims))
        return self.node('ReduceMean', [x, self.integers(*axes)], keepdims=int(keepdims))

    def pad(self, x, *pads):
        if self.opset < 11:
            return self.node('Pad', [x], pads=pads)
        return self.node('Pad', [x, self.integers(*pads)])

    def dropout(self, x):
        if self.opset < 12:
            return self.node('Dropout', [x], ratio=0.2, **({'is_test': 1} if self.opset < 7 else {}))
        return self.node('Dropout', [x, self.constant(0.2)])

    def gemm(self, x, inputs, outputs, sparsity=0.0):
        return self.node('Gemm', [x, self.weight(outputs, inputs, sparsity=sparsity),
                                  self.initializer(self.normal(outputs))], transB=1,
                         **({'broadcast': 1} if self.opset < 7 else {}))

    def add(self, a, b):
        return self.node('Add', [a, b])

    def multiply(self, a, b):
        return self.node('Mul', [a, b])

    def per_channel(self, op, x, vector, rank):
        """The vector along dimension 1; below opset 7 an attribute says so."""
        if self.opset < 7:
            return self.node(op, [x, self.initializer(vector)], broadcast=1, axis=1)
        return self.node(op, [x, self.initializer(vector.reshape([-1] + [1] * (rank - 2)))])


@model(since=6)
def mobilenet_v1(g):
    """Batch norm not folded, ReLU."""
    def block(x, inputs, outputs, kernel=1, **attributes):
        return g.relu(g.batch_norm(g.conv(x, inputs, outputs, kernel, bias=False, **attributes), outputs))
    x = block(g.input(3, 32, 32), 3, 8, kernel=3, stride=2, pad=1)
    for inputs, outputs, stride in ((8, 16, 1), (16, 32, 2), (32, 32, 1)):
        x = block(x, inputs, inputs, kernel=3, group=inputs, stride=stride, pad=1)
        x = block(x, inputs, outputs)
    x = g.node('Flatten', [g.node('GlobalAveragePool', [x])], axis=1)
    g.output(g.gemm(x, 32, 10))


@model(since=6)
def mobilenet_v2(g):
    """Batch norm folded, ReLU6 as Clip with inputs, residuals, dropout, mean over the plane."""
    x = g.relu6(g.conv(g.input(3, 32, 32), 3, 16, 3, stride=2, pad=1))
    for inputs, outputs, stride in ((16, 24, 2), (24, 24, 1), (24, 24, 1), (24, 40, 2)):
        hidden = 4 * inputs
        y = g.relu6(g.conv(x, inputs, hidden))
        y = g.relu6(g.depthwise(y, hidden, stride=stride, pad=1))
        y = g.conv(y, hidden, outputs)
        x = g.add(x, y) if stride == 1 else y
    x = g.mean(g.relu6(g.conv(x, 40, 64)), keepdims=False)
    g.output(g.gemm(g.dropout(x), 64, 10))


@model(since=6)
def resnet(g):
    """Residuals from the left and the right, a downsampling branch, ReLU after the sum, softmax."""
    def conv(x, inputs, outputs, kernel, **attributes):
        return g.batch_norm(g.conv(x, inputs, outputs, kernel, bias=False, **attributes), outputs)
    x = g.relu(conv(g.input(3, 32, 32), 3, 16, 7, stride=2, pad=3))
    x = g.node('MaxPool', [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = g.relu(g.add(conv(g.relu(conv(x, 16, 16, 3, pad=1)), 16, 16, 3, pad=1), x))
    y = conv(g.relu(conv(x, 16, 32, 3, pad=1, stride=2)), 32, 32, 3, pad=1)
    x = g.relu(g.add(y, conv(x, 16, 32, 1, stride=2)))
    x = g.relu(g.add(x, conv(g.relu(conv(x, 32, 32, 3, pad=1)), 32, 32, 3, pad=1)))
    x = g.node('Flatten', [g.node('GlobalAveragePool', [x])])
    g.output(g.node('Softmax', [g.gemm(x, 32, 10)], axis=1))


@model
def sparse(g):
    """Zeros in 1x1, 3x3, strided and linear weights; one weight of zeros alone."""
    x = g.relu(g.conv(g.input(3, 16, 16), 3, 16, 3, pad=1))
    x = g.relu(g.conv(x, 16, 64, sparsity=0.9))
    y = g.relu6(g.conv(x, 64, 32, 3, sparsity=0.9, pad=1))
    x = g.relu(g.add(g.conv(y, 32, 64, sparsity=0.8), x))
    x = g.conv(x, 64, 48, sparsity=0.7, stride=2)
    x = g.add(x, g.conv(x, 48, 48, sparsity=1.0))
    x = g.node('Flatten', [x])
    g.output(g.gemm(x, 48 * 64, 10, sparsity=0.95))


@model
def shape_chain_of_view(g):
    """x.view(x.size(0), -1)."""
    x = g.relu(g.conv(g.input(3, 8, 8), 3, 8, 3))
    batch = g.node('Gather', [g.node('Shape', [x]), g.constant(0, numpy.int64)], axis=0)
    parts = [g.unsqueeze(batch, 0), g.constant([-1], numpy.int64)]
    x = g.node('Reshape', [x, g.node('Concat', parts, axis=0)])
    g.output(g.gemm(x, 8 * 36, 10))


@model
def shape_chain_of_products(g):
    """x.reshape(x.size(0), x.size(1) * (x.size(2) * x.size(3) + 0)), and the same multiplied and divided again."""
    x = g.relu(g.conv(g.input(3, 8, 8), 3, 8, 3))
    shape = g.node('Cast', [g.node('Shape', [x])], to=TensorProto.INT64)
    batch = g.node('Slice', [shape, g.integers(0), g.integers(1), g.integers(0)])
    height, width = (g.node('Gather', [shape, g.integers(axis)]) for axis in (2, -1))
    channels = g.squeeze(g.node('Slice', [shape, g.integers(1), g.integers(2)]), 0)
    plane = g.squeeze(g.add(g.node('Mul', [height, width]), g.node('ConstantOfShape', [g.integers(1)],
                      value=helper.make_tensor('zero', TensorProto.INT64, [1], [0]))), 0)
    row = g.unsqueeze(g.node('Mul', [channels, plane]), 0)
    row = g.node('Sub', [g.node('Div', [g.node('Mul', [row, g.integers(6)]), g.integers(3)]), row])
    twice = g.node('Div', [g.node('Mul', [batch, g.integers(2)]), g.integers(2)])
    x = g.node('Reshape', [x, g.node('Concat', [twice, row], axis=0)])
    g.output(g.gemm(x, 8 * 36, 10))


@model
def reshapes(g):
    """Flattening, squeezing and splitting in every spelling; the mean over a flattened plane."""
    x = g.relu(g.conv(g.input(3, 8, 8), 3, 8, 3, pad=1))
    pooled = g.node('GlobalAveragePool', [x])
    g.output(g.squeeze(pooled, 2, 3), 'squeezed')
    g.output(g.squeeze(g.squeeze(pooled, -1), -1), 'squeezed_twice')
    g.output(g.node('Reshape', [pooled, g.integers(0, -1)]), 'copied')
    g.output(g.node('Reshape', [pooled, g.integers(-1, 8)]), 'inferred')
    g.output(g.unsqueeze(g.node('Flatten', [pooled], axis=-3), 2, 3), 'unsqueezed')
    rows = g.node('Reshape', [x, g.integers(0, 0, -1)])
    g.output(g.mean(rows, keepdims=False, axes=(2,)), 'mean')
    split = g.node('Reshape', [g.gemm(g.node('Flatten', [x]), 512, 96), g.integers(-1, 6, 4, 4)])
    g.output(g.conv(split, 6, 5, 3), 'split')
    g.output(g.node('Reshape', [split, g.integers(0, 2, 3, 4, 2, 2)]), 'six_dimensions')


@model
def pools(g):
    x = g.input(4, 13, 15)
    pool = lambda op, **attributes: g.node(op, [x], **attributes)
    g.output(pool('MaxPool', kernel_shape=[2, 2]), 'max')
    g.output(pool('MaxPool', kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), 'max_ceil')
    g.output(pool('MaxPool', kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1, pads=[0, 1, 1, 1]), 'max_ceil_padded')
    g.output(pool('MaxPool', kernel_shape=[3, 2], strides=[2, 2], auto_pad='SAME_UPPER'), 'max_upper')
    g.output(pool('MaxPool', kernel_shape=[2, 2], strides=[2, 2], auto_pad='SAME_LOWER'), 'max_lower')
    g.output(pool('MaxPool', kernel_shape=[3, 3], dilations=[2, 1], strides=[1, 2]), 'max_dilated')
    g.output(pool('AveragePool', kernel_shape=[3, 3], strides=[2, 2]), 'average')
    g.output(pool('AveragePool', kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 'average_padded')
    g.output(pool('AveragePool', kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1), 'average_including')
    g.output(pool('AveragePool', kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), 'average_ceil')
    g.output(pool('AveragePool', kernel_shape=[3, 4], auto_pad='SAME_UPPER'), 'average_upper')
    g.output(pool('AveragePool', kernel_shape=[3, 4], auto_pad='VALID'), 'average_valid')
    g.output(pool('GlobalMaxPool'), 'global_max')
    g.output(pool('GlobalAveragePool'), 'global_average')
    g.output(g.mean(x, keepdims=True), 'mean')


@model
def convolutions(g):
    """Windows of all kinds, dense and depthwise."""
    x = g.input(6, 14, 17)
    g.output(g.conv(x, 6, 7, 3, dilations=[2, 2]), 'dilated')
    g.output(g.conv(x, 6, 7, (1, 3), pads=[0, 1, 0, 1]), 'flat')
    g.output(g.conv(x, 6, 7, 5, strides=[2, 1], pads=[2, 0, 1, 3]), 'asymmetric')
    g.output(g.conv(x, 6, 7, 3, stride=2, auto_pad='SAME_UPPER', bias=False), 'upper')
    g.output(g.conv(x, 6, 7, 4, auto_pad='SAME_LOWER'), 'lower')
    g.output(g.conv(x, 6, 7, 3, auto_pad='VALID'), 'valid')
    g.output(g.conv(x, 6, 7, 1, stride=2), 'strided')
    g.output(g.conv(x, 6, 40, 1), 'pointwise')
    g.output(g.depthwise(x, 6, pad=1), 'depthwise')
    g.output(g.depthwise(x, 6, stride=2, pads=[0, 0, 1, 1], bias=False), 'depthwise_strided')
    g.output(g.depthwise(x, 6, 5, pad=2), 'depthwise_5')
    g.output(g.depthwise(x, 6, dilations=[2, 2], pad=2), 'depthwise_dilated')
    g.output(g.depthwise(x, 6, 1), 'depthwise_1')


@model
def pads(g):
    """Pads that go into a window, and those that do not."""
    def pad(value, *amounts, fill=None, **attributes):
        operands = [value, g.integers(0, 0, amounts[0], amounts[1], 0, 0, amounts[2], amounts[3])]
        return g.node('Pad', operands + ([] if fill is None else [g.constant(fill)]), **attributes)
    x = g.input(4, 9, 9)
    positive = g.relu(g.conv(x, 4, 4))
    g.output(g.conv(pad(x, 1, 1, 1, 1), 4, 8, 3), 'conv')
    g.output(g.conv(pad(x, 0, 0, 1, 1, mode='constant'), 4, 8, 3, stride=2, pad=1), 'conv_added')
    g.output(g.depthwise(pad(x, 0, 1, 2, 3, fill=0.0), 4), 'depthwise')
    g.output(g.node('MaxPool', [pad(positive, 1, 1, 1, 1)], kernel_shape=[3, 3], strides=[2, 2]), 'max_of_positive')
    g.output(g.node('MaxPool', [pad(x, 1, 0, 1, 0, fill=-numpy.inf)], kernel_shape=[3, 3]), 'max_of_infinite')
    g.output(g.node('MaxPool', [pad(x, 1, 1, 1, 1)], kernel_shape=[3, 3]), 'max_of_any')
    g.output(g.node('AveragePool', [pad(x, 1, 1, 1, 1)], kernel_shape=[3, 3]), 'average')
    g.output(g.node('AveragePool', [pad(x, 1, 1, 1, 1)], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 'average_of_padded')
    g.output(pad(x, 0, 0, 0, 0), 'nothing')
    shared = pad(positive, 0, 1, 1, 0)
    g.output(g.conv(shared, 4, 4, 2), 'shared')
    g.output(shared, 'itself')
    g.output(pad(pad(positive, 1, 1, 0, 0), 0, 0, 1, 1), 'twice')


@model
def normalisation(g):
    """Scale and shift before, after and between convolutions, folded where padding allows and not where it does not."""
    mean, deviation = [[[[0.4]], [[0.5]], [[0.6]]]], [[[0.2]], [[0.3]], [[0.25]]]
    x = g.node('Div', [g.node('Sub', [g.input(3, 12, 12), g.initializer(mean)]), g.initializer(deviation)])
    padded = g.conv(x, 3, 8, 3, pad=1)
    valid = g.conv(g.batch_norm(g.relu(padded), 8), 8, 8, 3)
    depthwise = g.depthwise(g.batch_norm(g.relu(valid), 8), 8)
    scaled = g.conv(g.node('Mul', [g.relu(depthwise), g.initializer(0.5)]), 8, 8, 3, pad=1)
    both = g.batch_norm(scaled, 8)
    g.output(g.relu(g.batch_norm(both, 8)), 'folded')
    g.output(g.relu(g.add(both, g.initializer(g.normal(8, 1, 1)))), 'unfolded')
    g.output(g.batch_norm(g.node('GlobalAveragePool', [both]), 8), 'pooled')


@model
def arithmetic(g):
    """Constants on either side of every operator; constant expressions."""
    x = g.conv(g.input(4, 6, 6), 4, 4)
    channel = lambda: g.initializer(g.normal(4, 1, 1))
    unfoldable = g.relu(x)
    g.output(g.node('Sub', [g.initializer([1.5]), unfoldable]), 'from_one')
    g.output(g.node('Sub', [channel(), unfoldable]), 'from_channels')
    g.output(g.node('Sub', [unfoldable, channel()]), 'less')
    g.output(g.node('Mul', [g.initializer(2.0), g.add(unfoldable, g.initializer(-1.0))]), 'twice')
    g.output(g.node('Div', [g.node('Mul', [unfoldable, channel()]), g.initializer([[[4.0]]])]), 'quarter')
    g.output(g.add(unfoldable, g.initializer(0.0)), 'unchanged')
    half = g.node('Div', [channel(), g.constant([2.0])])
    product = g.node('Mul', [channel(), g.node('Sub', [g.constant(3.0), half])])
    g.output(g.add(product, unfoldable), 'constant_expression')
    g.output(g.add(unfoldable, g.conv(unfoldable, 4, 4)), 'sum')


@model
def linear(g):
    """Gemm with all its attributes, MatMul with a bias on either side, transposed weights, batch norm of features."""
    x = g.node('Flatten', [g.input(2, 4, 4)])
    weight = lambda *shape: g.weight(*shape)
    g.output(g.node('Gemm', [x, weight(32, 5), g.initializer(g.normal(5))], alpha=0.5, beta=2.0), 'gemm')
    g.output(g.node('Gemm', [x, weight(5, 32), g.initializer(g.normal(1, 5))], transB=1), 'gemm_row')
    g.output(g.node('Gemm', [x, weight(5, 32), g.initializer(0.7)], transB=1), 'gemm_scalar')
    g.output(g.node('Gemm', [x, weight(32, 5)]), 'gemm_without_bias')
    g.output(g.add(g.node('MatMul', [x, weight(32, 5)]), g.initializer(g.normal(5))), 'matmul')
    g.output(g.relu(g.add(g.initializer(g.normal(5)), g.node('MatMul', [x, weight(32, 5)]))), 'matmul_left')
    transposed = g.node('Transpose', [weight(5, 32)], perm=[1, 0])
    g.output(g.node('MatMul', [x, transposed]), 'matmul_transposed')
    hidden = g.relu(g.batch_norm(g.gemm(x, 32, 24), 24))
    g.output(g.add(hidden, g.gemm(hidden, 24, 24)), 'residual')


@model
def softmaxes(g):
    x = g.input(5, 3, 4)
    pooled = g.node('GlobalAveragePool', [x])
    if g.opset < 13:
        g.output(g.node('Softmax', [pooled]), 'default')
    else:
        g.output(g.node('Softmax', [x], axis=1), 'channels')
        g.output(g.node('Softmax', [x], axis=-3), 'channels_from_the_end')
        g.output(g.node('Softmax', [g.node('Flatten', [pooled])]), 'default')
    g.output(g.node('Softmax', [g.node('Flatten', [pooled])], axis=-1), 'last')


@model
def activations(g):
    """Clamps on clamps, on sums, with bounds left out or crossed, of values read twice."""
    x = g.conv(g.input(4, 6, 6), 4, 8, 3, pad=1)
    g.output(g.clip(g.relu(g.conv(x, 8, 8)), -1.0, 0.5), 'nested')
    g.output(g.clip(g.conv(x, 8, 8), 0.1), 'low')
    g.output(g.clip(g.conv(x, 8, 8), None, 0.1), 'high')
    g.output(g.clip(g.conv(x, 8, 8), 0.5, -0.5), 'crossed')
    g.output(g.node('Clip', [x]), 'unbounded')
    y = g.conv(x, 8, 8)
    g.output(g.add(g.relu(y), y), 'read_twice')
    g.output(g.relu(g.add(x, x)), 'doubled')
    g.output(g.relu6(g.add(g.add(g.conv(x, 8, 8), x), g.depthwise(x, 8, pad=1))), 'two_residuals')
    g.output(g.relu(g.node('MaxPool', [y], kernel_shape=[2, 2])), 'after_pool')


@model
def outputs(g):
    """Outputs that are inputs, intermediate, doubled, or renamed; an input that nothing reads."""
    x = g.input(3, 5, 5)
    g.input(2, name='unread')
    y = g.output(g.conv(x, 3, 4), 'intermediate')
    z = g.output(g.relu(y), 'activation')
    g.output(z, 'activation_again')
    g.output(x, 'input')
    g.output(g.node('Identity', [g.node('Dropout', [g.conv(z, 4, 4)])]), 'renamed')
    g.output(g.node('Flatten', [x]), 'flattened_input')
    g.output(g.node('Cast', [z], to=TensorProto.FLOAT), 'cast')


@model
def two_inputs(g):
    left = g.conv(g.input(3, 8, 8, name='left'), 3, 8, 3, stride=2)
    right = g.conv(g.input(5, 3, 3, name='right'), 5, 8)
    g.output(g.relu(g.add(left, right)))


@model
def fixed_batch(g):
    """A batch of 2, which the reshape names."""
    x = g.relu(g.conv(g.input(3, 8, 8, batch=2), 3, 8, 3))
    x = g.node('Reshape', [x, g.integers(2, 8 * 36)])
    g.output(g.gemm(x, 8 * 36, 10))


@model
def initializers_as_inputs(g):
    """IR version 3; elements in typed fields."""
    g.initializers_are_inputs = g.typed_data = True
    x = g.relu(g.conv(g.input(3, 8, 8), 3, 8, 3))
    g.output(g.node('Reshape', [x, g.integers(0, -1)]))


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, opset in cases():
        onnx.save(build(name, opset), directory / f'{name}_opset{opset}.onnx')


if __name__ == '__main__':
    main()
