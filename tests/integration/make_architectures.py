"""Architectures beyond ResNets, MobileNets and BERT, as exporters write them: what a plan takes in regions.

ARCHITECTURES maps names to functions of (graph, sizes) -> None; SMALL has the sizes of the tests, FULL those of the
benchmark (tests/bench/any_graph.py), where they are of that. vision_architectures.py and text_architectures.py add to
both.
"""

import types

import numpy
from onnx import TensorProto, helper

from onnx_graph import Graph

ARCHITECTURES, SMALL, FULL = {}, {}, {}
SQRT2 = float(numpy.float32(numpy.sqrt(2)))
VOCABULARY = 200


def architecture(small, full=None):
    def add(function):
        ARCHITECTURES[function.__name__] = function
        SMALL[function.__name__] = small
        if full is not None:
            FULL[function.__name__] = full
        return function
    return add


class Network(Graph):
    """What blocks are made of. `sparsity`: zeros in layers of more than 32 channels; `written`: layer norms and GELUs
    are written out, as exporters of old opsets do."""

    def __init__(self, opset=17, seed=1, sparsity=0.0, written=False):
        super().__init__(opset, seed)
        self.zeros, self.written = sparsity, written

    def weight(self, *shape, sparsity=None):
        zeros = self.zeros if sparsity is None and min(shape[0], numpy.prod(shape[1:])) > 32 else sparsity or 0.0
        return super().weight(*shape, sparsity=zeros)

    def conv(self, x, inputs, outputs, kernel=1, sparsity=None, **attributes):
        return super().conv(x, inputs, outputs, kernel, sparsity=sparsity, **attributes)

    def scalar(self, number, dtype=numpy.float32):
        return self.constant(number, dtype)

    def linear(self, x, inputs, outputs, bias=True):
        weight = self.normal(inputs, outputs, scale=inputs ** -0.5)
        if min(inputs, outputs) > 32:
            weight[self.random.random(weight.shape) < self.zeros] = 0
        y = self.node('MatMul', [x, self.initializer(weight)])
        return self.add(y, self.initializer(self.normal(outputs, scale=0.1))) if bias else y

    def recurrent_weight(self, directions, rows, size):
        weight = self.normal(directions, rows, size, scale=size ** -0.5)
        if min(rows, size) > 32:
            weight[self.random.random(weight.shape) < self.zeros] = 0
        return self.initializer(weight)

    def last_mean(self, x):
        return self.mean(x, keepdims=True, axes=[-1])

    def layer_norm(self, x, channels):
        scale = self.initializer(1 + self.normal(channels, scale=0.1))
        shift = self.initializer(self.normal(channels, scale=0.1))
        if not self.written:
            return self.node('LayerNormalization', [x, scale, shift], axis=-1, epsilon=1e-5)
        centred = self.node('Sub', [x, self.last_mean(x)])
        squares = self.node('Pow', [centred, self.scalar(2.0)])
        deviation = self.node('Sqrt', [self.add(self.last_mean(squares), self.scalar(1e-5))])
        return self.add(self.multiply(self.node('Div', [centred, deviation]), scale), shift)

    def gelu(self, x):
        factor = self.add(self.node('Erf', [self.node('Div', [x, self.scalar(SQRT2)])]), self.scalar(1.0))
        return self.multiply(self.multiply(x, factor), self.scalar(0.5))

    def silu(self, x):
        return self.multiply(x, self.node('Sigmoid', [x]))

    def reshape(self, x, *sizes):
        return self.node('Reshape', [x, self.integers(*sizes)])

    def transpose(self, x, *order):
        return self.node('Transpose', [x], perm=order)

    def concat(self, values, axis):
        return self.node('Concat', values, axis=axis)

    def resize(self, x, factor=2.0, **attributes):
        attributes = attributes or {'mode': 'nearest', 'coordinate_transformation_mode': 'asymmetric',
                                    'nearest_mode': 'floor'}
        no_part = '' if self.opset >= 13 else self.initializer([])  # of the image: it could not be left out before
        return self.node('Resize', [x, no_part, self.initializer([1, 1, factor, factor])], **attributes)

    def split(self, x, *sizes, axis=1):
        parts = [self.fresh('part') for _ in sizes]
        inputs, attributes = ([x, self.integers(*sizes)], {}) if self.opset >= 13 else ([x], {'split': sizes})
        self.nodes.append(helper.make_node('Split', inputs, parts, axis=axis, name=parts[0], **attributes))
        return parts

    def attend(self, x, hidden, heads, bias=None, keys=None, packed=False, mask=None):
        """Of a layer, without the residual; `bias` is added to the scores, and `mask`, [windows, tokens, tokens], to those
        of each image's windows."""
        size = hidden // heads
        keys = keys or x
        if packed:
            qkv = self.reshape(self.linear(x, hidden, 3 * hidden), 0, -1, 3, heads, size)
            qkv = self.transpose(qkv, 2, 0, 3, 1, 4)
            q, k, v = (self.node('Gather', [qkv, self.constant(i, numpy.int64)], axis=0) for i in range(3))
            k = self.transpose(k, 0, 1, 3, 2)
        else:
            q, k, v = (self.reshape(self.linear(y, hidden, hidden), 0, -1, heads, size) for y in (x, keys, keys))
            q, k, v = self.transpose(q, 0, 2, 1, 3), self.transpose(k, 0, 2, 3, 1), self.transpose(v, 0, 2, 1, 3)
        scores = self.node('Div', [self.node('MatMul', [q, k]), self.scalar(size ** 0.5)])
        scores = self.add(scores, bias) if bias else scores
        if mask is not None:
            windows, tokens, _ = mask.shape
            scores = self.reshape(scores, -1, windows, heads, tokens, tokens)
            scores = self.add(scores, self.initializer(mask[None, :, None]))
            scores = self.reshape(scores, -1, heads, tokens, tokens)
        y = self.node('MatMul', [self.node('Softmax', [scores], axis=-1), v])
        return self.linear(self.reshape(self.transpose(y, 0, 2, 1, 3), 0, -1, hidden), hidden, hidden)

    def roll(self, x, shift, axis):
        """As torch.roll does it: what leaves at one end comes in at the other."""
        end = numpy.iinfo(numpy.int64).max
        first, last = ((-shift, end), (0, -shift))
        return self.concat([self.node('Slice', [x, *(self.integers(i) for i in (*part, axis))])
                            for part in (first, last)], axis)

    def block(self, x, hidden, heads, inner, bias=None, packed=False, activation=None):
        """A layer whose norms come first."""
        x = self.add(x, self.attend(self.layer_norm(x, hidden), hidden, heads, bias, packed=packed))
        y = (activation or self.gelu)(self.linear(self.layer_norm(x, hidden), hidden, inner))
        return self.add(x, self.linear(y, inner, hidden))

    def block_after(self, x, hidden, heads, inner, bias=None):
        """A layer whose norms come last, as BERT has them."""
        x = self.layer_norm(self.add(self.attend(x, hidden, heads, bias), x), hidden)
        y = self.linear(self.gelu(self.linear(x, hidden, inner)), inner, hidden)
        return self.layer_norm(self.add(y, x), hidden)

    def tokens(self, *shape, name='input_ids'):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
        return name

    def table(self, rows, channels, ids):
        return self.node('Gather', [self.initializer(self.normal(rows, channels)), ids], axis=0)

    def planes_to_tokens(self, x, channels):
        return self.transpose(self.reshape(x, 0, channels, -1), 0, 2, 1)


def build(name, sizes, **options):
    graph = Network(**options)
    ARCHITECTURES[name](graph, types.SimpleNamespace(**sizes))
    return graph.finish(name)


TRANSFORMER = dict(hidden=64, layers=2, heads=4, inner=128)
BASE = dict(hidden=768, layers=12, heads=12, inner=3072)


@architecture({**TRANSFORMER, 'image': 32, 'patch': 8, 'classes': 10}, {**BASE, 'image': 224, 'patch': 16,
                                                                       'classes': 1000})
def vit(g, s):
    x = g.conv(g.input(3, s.image, s.image), 3, s.hidden, s.patch, strides=[s.patch, s.patch])
    x = g.planes_to_tokens(x, s.hidden)
    shape = g.node('Shape', [x])
    batch = g.node('Gather', [shape, g.constant([0], numpy.int64)], axis=0)
    wanted = g.concat([batch, g.integers(-1), g.integers(-1)], 0)
    ones = g.node('ConstantOfShape', [g.integers(3)], value=helper.make_tensor('value', TensorProto.INT64, [1], [1]))
    free = g.node('Equal', [wanted, g.multiply(ones, g.constant(-1, numpy.int64))])
    wanted = g.node('Where', [free, ones, wanted])
    token = g.node('Expand', [g.initializer(g.normal(1, 1, s.hidden)), wanted])
    x = g.concat([token, x], 1)
    x = g.add(x, g.initializer(g.normal(1, (s.image // s.patch) ** 2 + 1, s.hidden)))
    for _ in range(s.layers):
        x = g.block(x, s.hidden, s.heads, s.inner, packed=True)
    x = g.node('Gather', [g.layer_norm(x, s.hidden), g.constant(0, numpy.int64)], axis=1)
    g.output(g.gemm(x, s.hidden, s.classes))


@architecture({**TRANSFORMER, 'positions': 40}, {**BASE, 'positions': 514})
def roberta(g, s):
    """Positions count from the mask."""
    ids, mask = g.tokens('batch', 'sequence'), g.tokens('batch', 'sequence', name='attention_mask')
    places = g.node('CumSum', [mask, g.constant(1, numpy.int64)])
    places = g.add(g.multiply(places, mask), g.constant(1, numpy.int64))
    x = g.add(g.table(VOCABULARY, s.hidden, ids), g.table(s.positions, s.hidden, places))
    x = g.layer_norm(x, s.hidden)
    kept = g.node('Cast', [g.unsqueeze(mask, 1, 2)], to=TensorProto.FLOAT)
    bias = g.multiply(g.node('Sub', [g.scalar(1.0), kept]), g.scalar(-10000.0))
    for _ in range(s.layers):
        x = g.block_after(x, s.hidden, s.heads, s.inner, bias)
    g.output(x)


@architecture({**TRANSFORMER, 'length': 24, 'buckets': 8}, {**BASE, 'length': 128, 'buckets': 32})
def mpnet(g, s):
    """A bias by relative position, in buckets that grow with the distance."""
    ids = g.tokens('batch', s.length)
    x = g.layer_norm(g.add(g.table(VOCABULARY, s.hidden, ids), g.initializer(g.normal(s.length, s.hidden))), s.hidden)
    places = g.node('Range', [g.scalar(0, numpy.int64), g.scalar(s.length, numpy.int64), g.scalar(1, numpy.int64)])
    apart = g.node('Abs', [g.node('Sub', [g.unsqueeze(places, 0), g.unsqueeze(places, 1)])])
    far = g.node('Log', [g.add(g.node('Cast', [apart], to=TensorProto.FLOAT), g.scalar(1.0))])
    if g.opset >= 12:  # Min takes whole numbers
        bucket = g.node('Min', [g.node('Cast', [far], to=TensorProto.INT64), g.scalar(s.buckets - 1, numpy.int64)])
    else:
        bucket = g.node('Cast', [g.node('Min', [far, g.scalar(s.buckets - 1)])], to=TensorProto.INT64)
    bias = g.unsqueeze(g.transpose(g.table(s.buckets, s.heads, bucket), 2, 0, 1), 0)
    for _ in range(s.layers):
        x = g.block_after(x, s.hidden, s.heads, s.inner, bias)
    g.output(x)


@architecture({**TRANSFORMER, 'positions': 64}, {**BASE, 'positions': 1024})
def gpt2(g, s):
    """A causal mask cut out of a table, for any length; the tanh form of GELU."""
    ids = g.tokens('batch', 'sequence')
    length = g.node('Slice', [g.node('Shape', [ids]), g.integers(1), g.integers(2)])
    places = g.node('Slice', [g.initializer(g.normal(s.positions, s.hidden)), g.integers(0), length, g.integers(0)])
    x = g.add(g.table(VOCABULARY, s.hidden, ids), places)
    triangle = g.initializer(numpy.where(numpy.tri(s.positions), 0, -1e9)[None, None])
    bias = g.node('Slice', [triangle, g.integers(0), length, g.integers(2)])
    bias = g.node('Slice', [bias, g.integers(0), length, g.integers(3)])

    def gelu_tanh(x):
        cube = g.node('Pow', [x, g.scalar(3.0)])
        inner = g.multiply(g.add(x, g.multiply(cube, g.scalar(0.044715))), g.scalar(0.7978845608))
        return g.multiply(g.multiply(x, g.scalar(0.5)), g.add(g.node('Tanh', [inner]), g.scalar(1.0)))

    for _ in range(s.layers):
        x = g.block(x, s.hidden, s.heads, s.inner, bias, activation=gelu_tanh)
    g.output(g.layer_norm(x, s.hidden))


@architecture({'widths': (16, 40, 48, 64), 'depths': (1, 1, 1, 1), 'image': 64},
              {'widths': (96, 192, 384, 768), 'depths': (3, 3, 9, 3), 'image': 224})
def convnext(g, s):
    """Layer norms over the channels of images, NHWC between transposes."""
    def norm_planes(x, channels):
        return g.transpose(g.layer_norm(g.transpose(x, 0, 2, 3, 1), channels), 0, 3, 1, 2)

    x = norm_planes(g.conv(g.input(3, s.image, s.image), 3, s.widths[0], 4, strides=[4, 4]), s.widths[0])
    for stage, (width, depth) in enumerate(zip(s.widths, s.depths)):
        if stage > 0:
            before = s.widths[stage - 1]
            x = g.conv(norm_planes(x, before), before, width, 2, strides=[2, 2])
        for _ in range(depth):
            y = g.transpose(g.depthwise(x, width, 7, pad=3), 0, 2, 3, 1)
            y = g.gelu(g.linear(g.layer_norm(y, width), width, 4 * width))
            y = g.multiply(g.linear(y, 4 * width, width), g.initializer(g.normal(width)))
            x = g.add(x, g.transpose(y, 0, 3, 1, 2))
    g.output(g.gemm(g.layer_norm(g.mean(x, keepdims=False), s.widths[-1]), s.widths[-1], 10))


@architecture({'widths': (32, 64), 'depths': (1, 2), 'group': 8, 'image': 32},
              {'widths': (64, 144, 320, 784), 'depths': (1, 3, 8, 2), 'group': 16, 'image': 224})
def regnet(g, s):
    """Convolutions in groups, squeeze and excite."""
    x = g.relu(g.conv(g.input(3, s.image, s.image), 3, 32, 3, stride=2, pad=1))
    inputs = 32
    for width, depth in zip(s.widths, s.depths):
        for i in range(depth):
            stride = 2 if i == 0 else 1
            y = g.relu(g.conv(x, inputs, width))
            y = g.relu(g.conv(y, width, width, 3, group=width // s.group, stride=stride, pad=1))
            z = g.relu(g.conv(g.node('GlobalAveragePool', [y]), width, width // 4))
            y = g.multiply(y, g.node('Sigmoid', [g.conv(z, width // 4, width)]))
            y = g.conv(y, width, width)
            shortcut = x if i > 0 else g.conv(x, inputs, width, 1, stride=stride)
            x, inputs = g.relu(g.add(shortcut, y)), width
    g.output(g.gemm(g.node('Flatten', [g.node('GlobalAveragePool', [x])]), inputs, 10))


def yolo_head(g, features, classes):
    flat = [g.reshape(g.conv(x, width, 4 + classes), 0, 4 + classes, -1) for x, width in features]
    y = g.concat(flat, 2)
    boxes, scores = g.split(y, 4, classes)
    return g.concat([g.multiply(boxes, g.scalar(8.0)), g.node('Sigmoid', [scores])], 1)


@architecture({'width': 16, 'depth': 1, 'image': 64, 'classes': 4}, {'width': 16, 'depth': 2, 'image': 640,
                                                                    'classes': 80})
def yolov8(g, s):
    """Split, Concat and Resize around convolutions with SiLU."""
    conv = lambda x, inputs, outputs, kernel=1, **more: g.silu(g.conv(x, inputs, outputs, kernel, **more))

    def c2f(x, inputs, outputs, depth, shortcut=True):
        half = outputs // 2
        y = conv(x, inputs, outputs)
        parts = g.split(y, half, half)
        for _ in range(depth):
            z = conv(conv(parts[-1], half, half, 3, pad=1), half, half, 3, pad=1)
            parts.append(g.add(parts[-1], z) if shortcut else z)
        return conv(g.concat(parts, 1), half * len(parts), outputs)

    w = s.width
    x = conv(g.input(3, s.image, s.image), 3, w, 3, stride=2, pad=1)
    x = c2f(conv(x, w, 2 * w, 3, stride=2, pad=1), 2 * w, 2 * w, s.depth)
    small = c2f(conv(x, 2 * w, 4 * w, 3, stride=2, pad=1), 4 * w, 4 * w, s.depth)
    middle = c2f(conv(small, 4 * w, 8 * w, 3, stride=2, pad=1), 8 * w, 8 * w, s.depth)
    large = c2f(conv(middle, 8 * w, 16 * w, 3, stride=2, pad=1), 16 * w, 16 * w, s.depth)
    y = conv(large, 16 * w, 8 * w)
    pools = [y]
    for _ in range(3):
        pools.append(g.node('MaxPool', [pools[-1]], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    large = conv(g.concat(pools, 1), 32 * w, 16 * w)
    middle = c2f(g.concat([g.resize(large), middle], 1), 24 * w, 8 * w, s.depth, shortcut=False)
    small = c2f(g.concat([g.resize(middle), small], 1), 12 * w, 4 * w, s.depth, shortcut=False)
    g.output(yolo_head(g, [(small, 4 * w), (middle, 8 * w), (large, 16 * w)], s.classes))


@architecture({'widths': (16, 40), 'neck': 40, 'image': ('height', 'width')},
              {'widths': (32, 64, 128, 256), 'neck': 96, 'image': (640, 640)})
def dbnet(g, s):
    """A text detector: a pyramid of features, transposed convolutions; height and width may be free."""
    def up(x, inputs, outputs):
        weight = g.initializer(g.normal(inputs, outputs, 2, 2, scale=0.1))
        bias = g.initializer(g.normal(outputs, scale=0.1))
        return g.node('ConvTranspose', [x, weight, bias], kernel_shape=[2, 2], strides=[2, 2])

    x = g.relu(g.conv(g.input(3, *s.image), 3, 16, 3, stride=2, pad=1))
    inputs, features = 16, []
    for width in s.widths:
        x = g.relu(g.conv(x, inputs, width, 3, stride=2, pad=1))
        x = g.relu(g.add(x, g.conv(g.relu(g.conv(x, width, width, 3, pad=1)), width, width, 3, pad=1)))
        features.append((x, width))
        inputs = width
    y = g.conv(*features[-1], s.neck)
    for x, width in reversed(features[:-1]):
        y = g.add(g.conv(x, width, s.neck), g.resize(y))
    y = g.relu(g.conv(y, s.neck, s.neck // 4, 3, pad=1))
    y = up(g.relu(up(y, s.neck // 4, s.neck // 4)), s.neck // 4, 1)
    g.output(g.node('Sigmoid', [y]))


@architecture({'hidden': 48, 'layers': 1, 'heads': 4, 'inner': 96, 'image': (32, 64), 'classes': 20},
              {'hidden': 120, 'layers': 2, 'heads': 8, 'inner': 240, 'image': (48, 320), 'classes': 6625})
def svtr(g, s):
    """A text recogniser: convolutions, then attention along the line."""
    swish = lambda x: g.multiply(x, g.node('HardSigmoid', [x], alpha=1 / 6, beta=0.5))
    x = swish(g.conv(g.input(3, *s.image), 3, 32, 3, stride=2, pad=1))
    inputs = 32
    for width, strides in ((64, [1, 1]), (128, [2, 1]), (256, [2, 1])):
        x = swish(g.depthwise(x, inputs, 3, strides=strides, pad=1))
        x = swish(g.conv(x, inputs, width))
        inputs = width
    x = g.node('AveragePool', [x], kernel_shape=[s.image[0] // 8, 2], strides=[s.image[0] // 8, 2])
    x = g.planes_to_tokens(swish(g.conv(x, inputs, s.hidden)), s.hidden)
    for _ in range(s.layers):
        x = g.block(x, s.hidden, s.heads, s.inner, activation=g.silu)
    x = g.linear(g.layer_norm(x, s.hidden), s.hidden, s.classes)
    g.output(g.node('Softmax', [x], axis=2))


@architecture({'widths': (16, 32, 48), 'hidden': 24, 'classes': 37, 'image': (32, 64)},
              {'widths': (64, 128, 256, 512), 'hidden': 256, 'classes': 5000, 'image': (32, 320)})
def crnn(g, s):
    """A text recogniser: convolutions, then LSTMs along the line, both ways."""
    x, inputs = g.input(3, *s.image), 3
    for i, width in enumerate(s.widths):
        x = g.node('Relu', [g.conv(x, inputs, width, 3, pad=1)])
        x = g.node('MaxPool', [x], kernel_shape=[2, 2 if i < 2 else 1], strides=[2, 2 if i < 2 else 1])
        inputs = width
    x = g.node('AveragePool', [x], kernel_shape=[s.image[0] >> len(s.widths), 1])
    x = g.transpose(g.squeeze(x, 2), 2, 0, 1)
    for _ in range(2):
        weights = [g.recurrent_weight(2, 4 * s.hidden, size) for size in (inputs, s.hidden)]
        bias = g.initializer(g.normal(2, 8 * s.hidden, scale=0.1))
        y = g.node('LSTM', [x, *weights, bias], hidden_size=s.hidden, direction='bidirectional')
        x, inputs = g.reshape(g.transpose(y, 0, 2, 1, 3), 0, 0, -1), 2 * s.hidden
    g.output(g.node('Softmax', [g.transpose(g.linear(x, inputs, s.classes), 1, 0, 2)], axis=2))


@architecture({'widths': (16, 40), 'ratios': (2, 1), 'heads': (1, 2), 'depth': 1, 'image': 32},
              {'widths': (32, 64, 160, 256), 'ratios': (8, 4, 2, 1), 'heads': (1, 2, 5, 8), 'depth': 2, 'image': 512})
def segformer(g, s):
    """Attention to fewer keys than queries; the head joins features of all scales."""
    x, inputs, side, features = g.input(3, s.image, s.image), 3, s.image, []
    for stage, (width, ratio, heads) in enumerate(zip(s.widths, s.ratios, s.heads)):
        stride = 4 if stage == 0 else 2
        kernel, side = 2 * stride - 1, side // stride
        x = g.conv(x, inputs, width, kernel, strides=[stride, stride], pads=[stride - 1] * 4)
        x = g.layer_norm(g.planes_to_tokens(x, width), width)
        to_plane = lambda y, channels, side=side: g.reshape(g.transpose(y, 0, 2, 1), 0, channels, side, side)
        for _ in range(s.depth):
            y = keys = g.layer_norm(x, width)
            if ratio > 1:
                keys = g.conv(to_plane(y, width), width, width, ratio, strides=[ratio, ratio])
                keys = g.layer_norm(g.planes_to_tokens(keys, width), width)
            x = g.add(x, g.attend(y, width, heads, keys=keys))
            y = to_plane(g.linear(g.layer_norm(x, width), width, 4 * width), 4 * width)
            y = g.gelu(g.planes_to_tokens(g.depthwise(y, 4 * width, 3, pad=1), 4 * width))
            x = g.add(x, g.linear(y, 4 * width, width))
        x, inputs = to_plane(g.layer_norm(x, width), width), width
        features.append(g.conv(x, width, s.widths[-1]))
    while len(features) > 1:
        last = features.pop()
        features[-1] = g.concat([features[-1], g.resize(last)], 1) if len(features) == 1 else g.add(features[-1],
                                                                                                     g.resize(last))
    y = g.relu(g.conv(features[0], 2 * s.widths[-1], s.widths[-1], bias=False))
    g.output(g.conv(y, s.widths[-1], 6))


@architecture({**TRANSFORMER, 'mels': 20, 'frames': 32}, {**BASE, 'hidden': 512, 'layers': 6, 'heads': 8,
                                                         'inner': 2048, 'mels': 80, 'frames': 3000})
def whisper_encoder(g, s):
    """Convolutions in one dimension."""
    x = g.input(s.mels, s.frames)
    for inputs, stride in ((s.mels, 1), (s.hidden, 2)):
        weight = g.initializer(g.normal(s.hidden, inputs, 3, scale=(3 * inputs) ** -0.5))
        bias = g.initializer(g.normal(s.hidden, scale=0.1))
        x = g.gelu(g.node('Conv', [x, weight, bias], kernel_shape=[3], strides=[stride], pads=[1, 1]))
    x = g.add(g.transpose(x, 0, 2, 1), g.initializer(g.normal(s.frames // 2, s.hidden)))
    for _ in range(s.layers):
        x = g.block(x, s.hidden, s.heads, s.inner)
    g.output(g.layer_norm(x, s.hidden))
