"""Small CNNs with drawn weights that cover every supported ONNX operator in the spellings that exporters use.

    make_models.py DIRECTORY    writes each of MODELS at each of OPSETS as DIRECTORY/NAME_opsetN.onnx
"""

import pathlib
import sys
import zlib

import numpy
import onnx
from onnx import TensorProto, helper

from onnx_graph import Graph

OPSETS = (6, 7, 9, 11, 13, 17, 18, 23)
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


@model(since=9)
def channels(g):
    """Channels taken apart and put together, of one row and of planes; more operands than one layer takes."""
    x = g.relu(g.conv(g.input(3, 9, 11), 3, 40, 3, pad=1))
    cut = lambda start, end: (g.node('Slice', [x], axes=[1], starts=[start], ends=[end]) if g.opset < 10 else  # noqa: E731
                              g.node('Slice', [x, g.integers(start), g.integers(end), g.integers(1)]))
    first, last = cut(0, 16), cut(-24, 2 ** 31)
    parts = [g.fresh('part') for _ in range(3)]
    sizes = {'split': [5, 16, 3]} if g.opset < 13 else {}
    operands = [last] if sizes else [last, g.integers(5, 16, 3)]
    g.nodes.append(helper.make_node('Split', operands, parts, axis=1, name=parts[0], **sizes))
    middle = g.conv(parts[1], 16, 16, 3, pad=1)
    g.output(g.conv(g.node('Concat', [first, parts[2], middle], axis=1), 35, 8), 'joined')
    g.output(g.node('Concat', [parts[i % 3] for i in range(20)], axis=-3), 'many')
    flat = [g.node('Reshape', [value, g.integers(0, 16, -1)]) for value in (first, g.conv(middle, 16, 16, 3))]
    g.output(g.node('Concat', flat, axis=2), 'planes')
    g.output(g.node('Concat', [middle, g.relu(middle)], axis=2), 'rows')
    blocks = g.conv(x, 40, 36)
    g.output(g.node('DepthToSpace', [blocks], blocksize=2), 'blocks')
    if g.opset >= 11:
        g.output(g.node('DepthToSpace', [blocks], blocksize=3, mode='CRD'), 'columns_first')


@model(since=9)
def moves(g):
    """Channels shuffled, averaged and repeated, parts of planes, sums and differences of activations."""
    x = g.conv(g.input(3, 9, 12), 3, 24, 3, pad=1)
    y = g.relu(x)
    split = g.node('Reshape', [y, g.integers(-1, 3, 8, 9, 12)])
    turned = g.node('Transpose', [split], perm=[0, 2, 1, 3, 4])
    g.output(g.conv(g.node('Reshape', [turned, g.integers(0, 24, 9, -1)]), 24, 8), 'shuffled')
    flat = g.node('Transpose', [g.node('Reshape', [y, g.integers(0, 6, 4, 108)])], perm=[0, 2, 1, 3])
    g.output(g.node('Reshape', [flat, g.integers(0, 24, 9, 12)]), 'shuffled_flat')
    if g.opset >= 10:
        cut = lambda *places: g.node('Slice', [y, *(g.integers(*numbers) for numbers in places)])  # noqa: E731
        parts = [cut([row, column], [2 ** 31] * 2, [2, 3], [2, 2]) for row in (0, 1) for column in (0, 1)]
        g.output(g.node('Concat', [parts[0], parts[1]], axis=1), 'even_rows')
        g.output(g.conv(g.node('Concat', [parts[2], parts[3]], axis=1), 48, 8, 3, pad=1), 'odd_rows')
        g.output(cut([1, -11], [-1, 11], [2, 3]), 'cropped')
        g.output(cut([2], [9], [2], [3]), 'rows')
    else:
        g.output(g.node('Slice', [y], axes=[3, 2], starts=[1, -8], ends=[11, 100]), 'cropped')
    gate = g.node('Sigmoid', [g.conv(g.mean(y, keepdims=True, axes=[1]), 1, 1, 3, pad=1)])
    g.output(g.node('Mul', [y, gate]), 'gated')
    context = g.conv(g.node('GlobalAveragePool', [y]), 24, 24)
    g.output(g.node('Add', [context, y]), 'context')
    g.output(g.node('Sub', [context, x]), 'less_context')
    lines = g.mean(y, keepdims=True, axes=[1])
    g.output(g.node('Sub', [x, lines]), 'centred')
    g.output(g.node('Sum', [x, y, g.node('Sub', [x, y])]), 'sum')
    g.output(g.relu(g.node('Sum', [g.node('Sum', [x]), g.conv(y, 24, 24, 3, pad=1)])), 'sum_of_two')


@model(since=9)
def norms(g):
    """Norms of channels, of groups and of positions, in every spelling that is planned; reductions of parts."""
    x = g.conv(g.input(3, 8, 12), 3, 24, 3, pad=1)
    numbers = lambda count: g.initializer(1 + g.normal(count, scale=0.2))  # noqa: E731
    y = g.node('InstanceNormalization', [x, numbers(24), numbers(24)], epsilon=1e-3)
    g.output(g.conv(g.relu(y), 24, 8), 'instance')
    grouped = g.node('Reshape', [x, g.integers(0, 4, -1)])
    grouped = g.node('InstanceNormalization', [grouped, g.initializer(numpy.ones(4)), g.initializer(numpy.zeros(4))])
    y = g.node('Reshape', [grouped, g.node('Shape', [x])])
    scale, shift = (g.initializer(g.normal(24, 1, 1)) for _ in range(2))
    g.output(g.node('Sigmoid', [g.add(g.multiply(y, scale), shift)]), 'groups_of_torch')
    if g.opset >= 18:
        per = 24 if g.opset >= 21 else 6
        g.output(g.node('GroupNormalization', [x, numbers(per), numbers(per)], num_groups=6), 'groups')
    if g.opset >= 17:
        last = g.node('Transpose', [g.relu(x)], perm=[0, 2, 3, 1])
        y = g.node('LayerNormalization', [last, numbers(24), numbers(24)], axis=-1, epsilon=1e-6)
        g.output(g.conv(g.node('Transpose', [y], perm=[0, 3, 1, 2]), 24, 8), 'layer')
    g.output(g.conv(g.reduce('ReduceMax', x, (2, 3), since=18), 24, 8), 'largest')
    g.output(g.conv(g.reduce('ReduceSum', x, (3,), since=13), 24, 8), 'rows')
    g.output(g.reduce('ReduceSum', g.relu(x), (1,), since=13), 'channels')
    g.output(g.conv(g.mean(x, keepdims=True, axes=[2]), 24, 8), 'columns')
    g.output(g.conv(g.node('SpaceToDepth', [x], blocksize=4), 384, 8), 'blocks')


@model(since=9)
def resizes(g):
    """Planes made larger and smaller, by scales and to sizes."""
    x = g.conv(g.input(3, 8, 12), 3, 20, 3, pad=1)
    if g.opset < 10:
        g.output(g.node('Upsample', [x, g.initializer([1, 1, 2, 3])], mode='nearest'), 'nearest')
        g.output(g.node('Upsample', [x, g.initializer([1, 1, 2, 2])], mode='linear'), 'linear')
        return

    def resize(height, width, mode, coordinates, **attributes):
        operands = [x, g.initializer([]), g.initializer([1, 1, height, width])]  # opset 11 has to have a region
        return g.node('Resize', operands, mode=mode, coordinate_transformation_mode=coordinates, **attributes)
    for nearest in ('round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'):
        for coordinates in ('half_pixel', 'asymmetric', 'align_corners'):
            g.output(resize(2, 1.5, 'nearest', coordinates, nearest_mode=nearest), f'{nearest}_{coordinates}')
    for coordinates in ('half_pixel', 'pytorch_half_pixel', 'align_corners', 'asymmetric'):
        g.output(resize(2, 2, 'linear', coordinates), f'double_{coordinates}')
        g.output(resize(1.25, 3, 'linear', coordinates), f'linear_{coordinates}')
        g.output(resize(0.5, 0.75, 'linear', coordinates), f'smaller_{coordinates}')
    shape = g.node('Shape', [x])
    front = g.node('Slice', [shape, g.integers(0), g.integers(2), g.integers(0)])
    wanted = g.node('Concat', [front, g.integers(13, 12)], axis=0)
    g.output(g.node('Resize', [x, g.initializer([]), g.initializer([]), wanted], mode='linear', coordinate_transformation_mode='half_pixel'), 'sizes')
    g.output(g.conv(resize(2, 2, 'nearest', 'asymmetric', nearest_mode='floor'), 20, 8), 'enlarged')


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
    g.output(g.node('Neg', [unfoldable]), 'negative')
    g.output(g.node('Abs', [x]), 'magnitude')
    g.output(g.node('Pow', [x, g.constant(2.0)]), 'square')
    low, high = g.initializer(numpy.float32(-0.5)), g.initializer(numpy.float32(0.25))
    g.output(g.node('Min', [g.node('Max', [low, x]), high]), 'between')
    g.output(g.node('Tanh', [x]), 'tanh')
    if g.opset >= 9:
        erf = g.node('Erf', [g.node('Div', [x, g.constant(2 ** 0.5)])])
        gate = g.node('Mul', [g.constant(0.5), g.add(erf, g.constant(1.0))])
        g.output(g.node('Mul', [gate, x]), 'gelu_written_out')
    if g.opset >= 20:
        g.output(g.node('Gelu', [x]), 'gelu')
        g.output(g.node('Gelu', [x], approximate='tanh'), 'gelu_by_tanh')


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
