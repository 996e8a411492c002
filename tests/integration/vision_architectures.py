"""More architectures on images and lines of numbers: what exporters write of them. See make_architectures.py."""

import numpy

import window_architectures  # noqa: F401, adds Swin
from make_architectures import TRANSFORMER, architecture

IMAGE = {**TRANSFORMER, 'image': 32, 'patch': 8, 'classes': 10}


def patches(g, s, bias=True):
    x = g.conv(g.input(3, s.image, s.image), 3, s.hidden, s.patch, strides=[s.patch, s.patch], bias=bias)
    return g.planes_to_tokens(x, s.hidden)


def with_tokens(g, x, hidden, count=1):
    """Constants before the tokens of each image."""
    batch = g.node('Gather', [g.node('Shape', [x]), g.constant([0], 'int64')], axis=0)
    wanted = g.concat([batch, g.integers(count, hidden)], 0)
    return g.concat([g.node('Expand', [g.initializer(g.normal(1, count, hidden)), wanted]), x], 1)


@architecture(IMAGE)
def deit(g, s):
    """Two tokens before the patches, the means of whose classes are the answer."""
    x = with_tokens(g, patches(g, s), s.hidden, 2)
    x = g.add(x, g.initializer(g.normal(1, (s.image // s.patch) ** 2 + 2, s.hidden)))
    for _ in range(s.layers):
        x = g.block(x, s.hidden, s.heads, s.inner)
    x = g.layer_norm(x, s.hidden)
    answers = [g.gemm(g.node('Gather', [x, g.constant(i, 'int64')], axis=1), s.hidden, s.classes) for i in range(2)]
    g.output(g.node('Div', [g.add(*answers), g.scalar(2.0)]))


@architecture(IMAGE)
def beit(g, s):
    """A bias by relative position, gathered from a table, and factors for each channel of what a layer adds."""
    count = (s.image // s.patch) ** 2
    x = patches(g, s)
    for _ in range(s.layers):
        places = g.constant(g.random.integers(0, 49, count * count), 'int64')
        bias = g.reshape(g.table(49, s.heads, places), count, count, s.heads)
        bias = g.unsqueeze(g.transpose(bias, 2, 0, 1), 0)
        y = g.attend(g.layer_norm(x, s.hidden), s.hidden, s.heads, bias)
        x = g.add(x, g.multiply(g.initializer(g.normal(s.hidden)), y))
        y = g.linear(g.gelu(g.linear(g.layer_norm(x, s.hidden), s.hidden, s.inner)), s.inner, s.hidden)
        x = g.add(x, g.multiply(g.initializer(g.normal(s.hidden)), y))
    g.output(g.gemm(g.layer_norm(g.mean(x, keepdims=False, axes=[1]), s.hidden), s.hidden, s.classes))


@architecture(IMAGE)
def dinov2(g, s):
    """Layers of gated units; all tokens are the answer."""
    x = with_tokens(g, patches(g, s), s.hidden)
    x = g.add(x, g.initializer(g.normal(1, (s.image // s.patch) ** 2 + 1, s.hidden)))
    for _ in range(s.layers):
        y = g.attend(g.layer_norm(x, s.hidden), s.hidden, s.heads, packed=True)
        x = g.add(x, g.multiply(y, g.initializer(g.normal(s.hidden))))
        gate, value = g.split(g.linear(g.layer_norm(x, s.hidden), s.hidden, 2 * s.inner), s.inner, s.inner, axis=-1)
        y = g.linear(g.multiply(g.silu(gate), value), s.inner, s.hidden)
        x = g.add(x, g.multiply(y, g.initializer(g.normal(s.hidden))))
    g.output(g.layer_norm(x, s.hidden))


@architecture(IMAGE)
def clip_vision(g, s):
    """GELU as a product with a sigmoid; a projection that is normalised."""
    x = with_tokens(g, patches(g, s, bias=False), s.hidden)
    x = g.add(x, g.initializer(g.normal(1, (s.image // s.patch) ** 2 + 1, s.hidden)))
    x = g.layer_norm(x, s.hidden)
    quick_gelu = lambda y: g.multiply(y, g.node('Sigmoid', [g.multiply(g.scalar(1.702), y)]))  # noqa: E731
    for _ in range(s.layers):
        x = g.block(x, s.hidden, s.heads, s.inner, activation=quick_gelu)
    x = g.layer_norm(g.node('Gather', [x, g.constant(0, 'int64')], axis=1), s.hidden)
    x = g.linear(x, s.hidden, 48, bias=False)
    g.output(g.node('Div', [x, g.reduce('ReduceL2', x, [1], since=18)]))


@architecture({**TRANSFORMER, 'samples': 400})
def wav2vec2(g, s):
    """Convolutions over a wave with group norm, and one in groups for positions."""
    x = g.unsqueeze(g.input(s.samples, name='wave'), 1)
    inputs = 1
    for i, (kernel, stride) in enumerate(((10, 5), (3, 2), (2, 2))):
        weight = g.initializer(g.normal(s.hidden, inputs, kernel, scale=(kernel * inputs) ** -0.5))
        x, inputs = g.node('Conv', [x, weight], kernel_shape=[kernel], strides=[stride]), s.hidden
        if i == 0:
            x = g.node('InstanceNormalization', [x, g.initializer(1 + g.normal(s.hidden, scale=0.1)),
                                                 g.initializer(g.normal(s.hidden, scale=0.1))])
        x = g.gelu(x)
    x = g.layer_norm(g.transpose(x, 0, 2, 1), s.hidden)
    weight = g.initializer(g.normal(s.hidden, s.hidden // 4, 3, scale=0.1))
    places = g.node('Conv', [g.transpose(x, 0, 2, 1), weight], kernel_shape=[3], pads=[1, 1], group=4)
    x = g.layer_norm(g.add(x, g.transpose(g.gelu(places), 0, 2, 1)), s.hidden)
    for _ in range(s.layers):
        x = g.block_after(x, s.hidden, s.heads, s.inner)
    g.output(x)


@architecture({'width': 16, 'image': 64, 'classes': 4})
def yolov5(g, s):
    """Blocks of two branches; predictions for each anchor with positions last."""
    conv = lambda x, inputs, outputs, kernel=1, **more: g.silu(g.conv(x, inputs, outputs, kernel, **more))  # noqa: E731

    def c3(x, inputs, outputs):
        half = outputs // 2
        y = conv(x, inputs, half)
        y = g.add(y, conv(conv(y, half, half), half, half, 3, pad=1))
        return conv(g.concat([y, conv(x, inputs, half)], 1), outputs, outputs)

    w = s.width
    x = conv(g.input(3, s.image, s.image), 3, w, 6, stride=2, pad=2)
    small = c3(conv(x, w, 2 * w, 3, stride=2, pad=1), 2 * w, 2 * w)
    large = c3(conv(small, 2 * w, 4 * w, 3, stride=2, pad=1), 4 * w, 4 * w)
    pools = [conv(large, 4 * w, 2 * w)]
    for _ in range(3):
        pools.append(g.node('MaxPool', [pools[-1]], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    large = conv(g.concat(pools, 1), 8 * w, 2 * w)
    small = c3(g.concat([g.resize(large), small], 1), 4 * w, 2 * w)
    outputs = []
    for x, side in ((small, s.image // 4), (large, s.image // 8)):
        y = g.reshape(g.conv(x, 2 * w, 3 * (5 + s.classes)), -1, 3, 5 + s.classes, side, side)
        y = g.node('Sigmoid', [g.transpose(y, 0, 1, 3, 4, 2)])
        place, size, rest = g.split(y, 2, 2, 1 + s.classes, axis=4)
        place = g.add(g.multiply(place, g.scalar(2.0)), g.constant(g.normal(1, 3, side, side, 2)))
        size = g.multiply(g.node('Pow', [g.multiply(size, g.scalar(2.0)), g.scalar(2.0)]),
                          g.constant(numpy.abs(g.normal(1, 3, 1, 1, 2))))
        outputs.append(g.reshape(g.concat([place, size, rest], 4), -1, 3 * side * side, 5 + s.classes))
    g.output(g.concat(outputs, 1))


@architecture({'widths': (16, 24, 40), 'image': (48, 96)})
def direction_classifier(g, s):
    """Of the MobileNetV3 kind, with factors by HardSigmoid and activations written out."""
    def hard_swish(x):
        ramp = g.clip(g.add(x, g.constant(3.0)), 0.0, 6.0)
        return g.node('Div', [g.multiply(x, ramp), g.constant(6.0)])

    x = hard_swish(g.conv(g.input(3, *s.image), 3, 8, 3, stride=2, pad=1))
    inputs = 8
    for width in s.widths:
        y = hard_swish(g.conv(x, inputs, 4 * inputs))
        y = hard_swish(g.depthwise(y, 4 * inputs, 3, strides=[2, 1], pad=1))
        z = g.relu(g.conv(g.node('GlobalAveragePool', [y]), 4 * inputs, inputs))
        z = g.node('HardSigmoid', [g.conv(z, inputs, 4 * inputs)], alpha=0.2, beta=0.5)
        x, inputs = g.conv(g.multiply(y, z), 4 * inputs, width), width
    x = g.node('MaxPool', [hard_swish(x)], kernel_shape=[2, 2], strides=[2, 2])
    x = g.node('Flatten', [g.node('GlobalAveragePool', [x])])
    g.output(g.node('Softmax', [g.gemm(x, inputs, 2)], axis=1))


@architecture({'widths': (16, 40), 'image': ('height', 'width')})
def unet(g, s):
    """Planes of every size joined with those stepped up; height and width are free."""
    block = lambda x, inputs, outputs: g.relu(g.batch_norm(g.conv(x, inputs, outputs, 3, pad=1), outputs))  # noqa: E731
    x, inputs, skipped = g.input(3, *s.image), 3, []
    for width in s.widths:
        x = block(x, inputs, width)
        skipped.append((x, width))
        x, inputs = g.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2]), width
    x = block(x, inputs, 2 * inputs)
    inputs *= 2
    for skip, width in reversed(skipped):
        weight = g.initializer(g.normal(inputs, width, 2, 2, scale=0.1))
        x = g.node('ConvTranspose', [x, weight, g.initializer(g.normal(width))], kernel_shape=[2, 2], strides=[2, 2])
        x, inputs = block(g.concat([skip, x], 1), 2 * width, width), width
    g.output(g.conv(x, inputs, 2))


@architecture({'growth': 12, 'layers': 5, 'image': 32})
def densenet(g, s):
    """Every layer reads what all layers before it made."""
    x, channels = g.conv(g.input(3, s.image, s.image), 3, 24, 3, pad=1), 24
    for stage in range(2):
        for _ in range(s.layers):
            y = g.conv(g.relu(g.batch_norm(x, channels)), channels, 4 * s.growth, bias=False)
            y = g.conv(g.relu(g.batch_norm(y, 4 * s.growth)), 4 * s.growth, s.growth, 3, pad=1, bias=False)
            x, channels = g.concat([x, y], 1), channels + s.growth
        if stage == 0:
            x = g.conv(g.relu(g.batch_norm(x, channels)), channels, channels // 2, bias=False)
            x, channels = g.node('AveragePool', [x], kernel_shape=[2, 2], strides=[2, 2]), channels // 2
    g.output(g.gemm(g.node('Flatten', [g.node('GlobalAveragePool', [x])]), channels, 10))


@architecture({'widths': (32, 64), 'image': 32})
def shufflenet(g, s):
    """Channels in two halves, shuffled by reshapes."""
    x, inputs = g.relu(g.conv(g.input(3, s.image, s.image), 3, s.widths[0], 3, stride=2, pad=1)), s.widths[0]
    for width in s.widths:
        half, side = width // 2, s.image // 2
        if width != inputs:
            x, inputs = g.relu(g.conv(x, inputs, width)), width
        kept, y = g.split(x, half, half)
        y = g.relu(g.conv(y, half, half))
        y = g.relu(g.conv(g.depthwise(y, half, 3, pad=1), half, half))
        x = g.reshape(g.concat([kept, y], 1), -1, 2, half, side, side)
        x = g.reshape(g.transpose(x, 0, 2, 1, 3, 4), -1, width, side, side)
    g.output(g.gemm(g.mean(x, keepdims=False), inputs, 10))


@architecture({'widths': (40, 48), 'image': 64, 'classes': 5})
def yolox(g, s):
    """Every other row and column as channels, then cross-stage blocks; boxes and classes of each scale together."""
    image = g.input(3, s.image, s.image)
    cut = lambda row, column: g.node('Slice', [image, g.integers(row, column), g.integers(2 ** 31, 2 ** 31),
                                               g.integers(2, 3), g.integers(2, 2)])
    corners = [cut(row, column) for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
    x, inputs, outputs = g.silu(g.conv(g.concat(corners, 1), 12, 24, 3, pad=1)), 24, []
    for width in s.widths:
        x, half = g.silu(g.conv(x, inputs, width, 3, stride=2, pad=1)), width // 2
        y, z = g.silu(g.conv(x, width, half)), g.silu(g.conv(x, width, half))
        y = g.add(y, g.silu(g.conv(g.silu(g.conv(y, half, half)), half, half, 3, pad=1)))
        x, inputs = g.silu(g.conv(g.concat([y, z], 1), width, width)), width
        boxes, objects, classes = (g.conv(x, width, count) for count in (4, 1, s.classes))
        found = g.concat([boxes, g.node('Sigmoid', [objects]), g.node('Sigmoid', [classes])], 1)
        outputs.append(g.reshape(found, 0, 5 + s.classes, -1))
    g.output(g.transpose(g.concat(outputs, 2), 0, 2, 1))


@architecture({'widths': (32, 48), 'image': 32, 'groups': 8})
def grouped_norms(g, s):
    """Group norms as PyTorch exports them, and instance norms, around residual blocks; planes grow again."""
    def norm(x, channels):
        y = g.node('InstanceNormalization', [g.reshape(x, 0, s.groups, -1), g.initializer(numpy.ones(s.groups)),
                                             g.initializer(numpy.zeros(s.groups))])
        y = g.node('Reshape', [y, g.node('Shape', [x])])
        y = g.multiply(y, g.initializer(1 + g.normal(channels, 1, 1, scale=0.1)))
        return g.add(y, g.initializer(g.normal(channels, 1, 1, scale=0.1)))

    x, inputs = g.conv(g.input(3, s.image, s.image), 3, s.widths[0], 3, pad=1), s.widths[0]
    for width in s.widths:
        y = g.conv(g.silu(norm(x, inputs)), inputs, width, 3, stride=2, pad=1)
        y = g.conv(g.silu(norm(y, width)), width, width, 3, pad=1)
        x, inputs = g.add(y, g.conv(x, inputs, width, stride=2)), width
    x = g.conv(g.resize(x), inputs, 24, 3, pad=1)
    x = g.node('InstanceNormalization', [x, g.initializer(1 + g.normal(24, scale=0.1)), g.initializer(g.normal(24))])
    g.output(g.node('Tanh', [g.conv(g.node('LeakyRelu', [x], alpha=0.2), 24, 3, 3, pad=1)]))


@architecture({'widths': (40, 64), 'image': 32})
def gated(g, s):
    """Gates of channels and of positions, and what all positions say added to each."""
    x, inputs = g.input(3, s.image, s.image), 3
    for width in s.widths:
        x = g.conv(x, inputs, width, 3, stride=2, pad=1)
        y = g.relu(g.conv(x, width, width, 3, pad=1))
        gate = g.conv(g.relu(g.conv(g.mean(y, keepdims=True), width, width // 8)), width // 8, width)
        y = g.multiply(y, g.node('Sigmoid', [gate]))
        y = g.multiply(y, g.node('Sigmoid', [g.conv(g.mean(y, keepdims=True, axes=[1]), 1, 1, 7, pad=3)]))
        context = g.relu(g.conv(g.mean(x, keepdims=True), width, width))
        x, inputs = g.node('Sum', [x, y, g.node('Sub', [y, context])]), width
    g.output(g.gemm(g.mean(x, keepdims=False), inputs, 10))


@architecture({**IMAGE, 'layers': 2})
def mixer(g, s):
    """Linear layers along patches, between transposes."""
    x, count = patches(g, s), (s.image // s.patch) ** 2
    for _ in range(s.layers):
        y = g.transpose(g.layer_norm(x, s.hidden), 0, 2, 1)
        y = g.linear(g.gelu(g.linear(y, count, 40)), 40, count)
        x = g.add(x, g.transpose(y, 0, 2, 1))
        y = g.linear(g.gelu(g.linear(g.layer_norm(x, s.hidden), s.hidden, s.inner)), s.inner, s.hidden)
        x = g.add(x, y)
    g.output(g.gemm(g.mean(g.layer_norm(x, s.hidden), keepdims=False, axes=[1]), s.hidden, s.classes))


@architecture({'width': 40, 'image': ('height', 'width')})
def super_resolution(g, s):
    """Channels become positions; the rest is added to lines between the input's."""
    image = g.input(3, *s.image)
    x = g.node('PRelu', [g.conv(image, 3, s.width, 5, pad=2), g.initializer(g.normal(s.width, 1, 1, scale=0.1))])
    x = g.node('Tanh', [g.conv(x, s.width, s.width, 3, pad=1)])
    x = g.node('DepthToSpace', [g.conv(x, s.width, 12, 3, pad=1)], blocksize=2, mode='CRD')
    lines = g.resize(image, mode='linear')
    g.output(g.add(x, lines))


@architecture({'widths': (64, 40), 'image': 16})
def generator(g, s):
    """Overlapping transposed convolutions with instance norm."""
    x, inputs = g.input(8, s.image, s.image), 8
    for width in s.widths:
        weight = g.initializer(g.normal(inputs, width, 4, 4, scale=0.1))
        x = g.node('ConvTranspose', [x, weight], kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)
        x = g.node('InstanceNormalization', [x, g.initializer(1 + g.normal(width, scale=0.1)),
                                             g.initializer(g.normal(width, scale=0.1))])
        x, inputs = g.node('LeakyRelu', [x], alpha=0.2), width
    g.output(g.node('Tanh', [g.conv(x, inputs, 3, 3, pad=1)]))


@architecture({**TRANSFORMER, 'queries': 12, 'image': 64, 'classes': 4})
def detr(g, s):
    """Queries, the same for each image, attend to its pixels."""
    x = g.relu(g.conv(g.input(3, s.image, s.image), 3, 32, 7, stride=4, pad=3))
    x = g.planes_to_tokens(g.conv(g.relu(g.conv(x, 32, 48, 3, stride=2, pad=1)), 48, s.hidden), s.hidden)
    x = g.add(x, g.initializer(g.normal(1, (s.image // 8) ** 2, s.hidden)))
    x = g.block_after(x, s.hidden, s.heads, s.inner)
    batch = g.node('Gather', [g.node('Shape', [x]), g.constant([0], 'int64')], axis=0)
    wanted = g.concat([batch, g.integers(s.queries, s.hidden)], 0)
    y = g.node('Expand', [g.initializer(g.normal(1, s.queries, s.hidden)), wanted])
    for _ in range(s.layers):
        y = g.layer_norm(g.add(y, g.attend(y, s.hidden, s.heads)), s.hidden)
        y = g.layer_norm(g.add(y, g.attend(y, s.hidden, s.heads, keys=x)), s.hidden)
        z = g.linear(g.relu(g.linear(y, s.hidden, s.inner)), s.inner, s.hidden)
        y = g.layer_norm(g.add(y, z), s.hidden)
    boxes = g.node('Sigmoid', [g.linear(g.relu(g.linear(y, s.hidden, 40)), 40, 4)])
    g.output(g.concat([boxes, g.linear(y, s.hidden, s.classes)], 2))


@architecture({'widths': (24, 40, 40), 'inputs': 6, 'length': 64})
def tcn(g, s):
    """Dilated convolutions over a series that see the past alone."""
    x, inputs = g.input(s.inputs, s.length, name='series'), s.inputs
    for level, width in enumerate(s.widths):
        dilation = 2 ** level
        y = x
        for channels in (inputs, width):
            y = g.node('Pad', [y, g.integers(0, 0, 2 * dilation, 0, 0, 0)])
            weight = g.initializer(g.normal(width, channels, 3, scale=(3 * channels) ** -0.5))
            y = g.relu(g.node('Conv', [y, weight, g.initializer(g.normal(width))], kernel_shape=[3],
                              dilations=[dilation]))
        if inputs != width:
            weight = g.initializer(g.normal(width, inputs, 1, scale=inputs ** -0.5))
            x = g.node('Conv', [x, weight], kernel_shape=[1])
        x, inputs = g.relu(g.add(x, y)), width
    g.output(g.gemm(g.node('Gather', [x, g.constant(s.length - 1, 'int64')], axis=2), inputs, 5))


def across_patches(g, x, hidden, side, compute):
    """What is computed of the pixels of one place in each patch of 2x2, as planes again."""
    half = side // 2
    y = g.transpose(g.reshape(x, -1, half, 2, half, 2), 0, 1, 3, 2, 4)
    y = g.transpose(g.reshape(y, -1, hidden, half * half, 4), 0, 3, 2, 1)
    y = compute(g.reshape(y, -1, half * half, hidden))
    y = g.transpose(g.reshape(y, -1, 4, half * half, hidden), 0, 3, 2, 1)
    y = g.transpose(g.reshape(y, -1, half, half, 2, 2), 0, 1, 3, 2, 4)
    return g.reshape(y, -1, hidden, side, side)


@architecture({'widths': (16, 32, 48), 'hidden': 48, 'image': 32}, {'widths': (32, 64, 96, 128), 'hidden': 144,
                                                                   'image': 256})
def mobilevit(g, s):
    """Inverted residuals, and attention over the pixels of one place in each patch."""
    x = g.silu(g.conv(g.input(3, s.image, s.image), 3, 16, 3, stride=2, pad=1))
    inputs, side = 16, s.image // 2
    for width in s.widths:
        y = g.silu(g.conv(x, inputs, 4 * inputs))
        y = g.silu(g.depthwise(y, 4 * inputs, 3, stride=2, pad=1))
        x, inputs, side = g.conv(y, 4 * inputs, width), width, side // 2
    for _ in range(2):
        y = g.conv(g.silu(g.conv(x, inputs, inputs, 3, pad=1)), inputs, s.hidden, bias=False)
        y = across_patches(g, y, s.hidden, side, lambda z: g.block(z, s.hidden, 4, 2 * s.hidden, activation=g.silu))
        y = g.silu(g.conv(y, s.hidden, inputs))
        x = g.silu(g.conv(g.concat([x, y], 1), 2 * inputs, inputs, 3, pad=1))
    g.output(g.gemm(g.mean(x, keepdims=False), inputs, 10))


@architecture({'stages': ((16, 1, 1, 0, 0), (32, 2, 2, 0, 0), (40, 1, 2, 48, 1), (48, 1, 2, 48, 2)), 'last': 64,
               'image': 64, 'classes': 10},
              {'stages': ((32, 1, 1, 0, 0), (64, 3, 2, 0, 0), (96, 1, 2, 144, 2), (128, 1, 2, 192, 4),
                          (160, 1, 2, 240, 3)), 'last': 640, 'image': 256, 'classes': 1000})
def mobilevit_s(g, s):
    """MobileViT-S. `stages`: channels, inverted residuals, stride, then channels and layers of attention."""
    def inverted_residual(x, inputs, width, stride):
        y = g.silu(g.conv(x, inputs, 4 * inputs))
        y = g.silu(g.depthwise(y, 4 * inputs, 3, stride=stride, pad=1))
        y = g.conv(y, 4 * inputs, width)
        return g.add(x, y) if stride == 1 and inputs == width else y

    def layers(x, hidden, count):
        for _ in range(count):
            x = g.block(x, hidden, 4, 2 * hidden, activation=g.silu)
        return g.layer_norm(x, hidden)

    x, inputs, side = g.silu(g.conv(g.input(3, s.image, s.image), 3, 16, 3, stride=2, pad=1)), 16, s.image // 2
    for width, count, stride, hidden, depth in s.stages:
        for i in range(count):
            x, inputs = inverted_residual(x, inputs, width, stride if i == 0 else 1), width
        side //= stride
        if depth:
            y = g.conv(g.silu(g.conv(x, width, width, 3, pad=1)), width, hidden, bias=False)
            y = across_patches(g, y, hidden, side, lambda z: layers(z, hidden, depth))
            y = g.silu(g.conv(y, hidden, width))
            x = g.silu(g.conv(g.concat([x, y], 1), 2 * width, width, 3, pad=1))
    x = g.silu(g.conv(x, inputs, s.last))
    g.output(g.gemm(g.mean(x, keepdims=False), s.last, s.classes))


@architecture({'widths': (16, 32, 48), 'depths': (1, 2), 'scales': 2, 'image': 64, 'classes': 4},
              {'widths': (32, 64, 128, 256, 512), 'depths': (1, 2, 3, 1), 'scales': 3, 'image': 640, 'classes': 80})
def yolov5s(g, s):
    """As yolov5, with YOLOv5s's number of blocks, and scales that are joined downwards and upwards."""
    conv = lambda x, inputs, outputs, kernel=1, **more: g.silu(g.conv(x, inputs, outputs, kernel, **more))  # noqa: E731

    def c3(x, inputs, outputs, depth, residual=True):
        half = outputs // 2
        y = conv(x, inputs, half)
        for _ in range(depth):
            z = conv(conv(y, half, half), half, half, 3, pad=1)
            y = g.add(y, z) if residual else z
        return conv(g.concat([y, conv(x, inputs, half)], 1), outputs, outputs)

    x, inputs, scales = conv(g.input(3, s.image, s.image), 3, s.widths[0], 6, stride=2, pad=2), s.widths[0], []
    for width, depth in zip(s.widths[1:], s.depths):
        x, inputs = c3(conv(x, inputs, width, 3, stride=2, pad=1), width, width, depth), width
        scales.append((x, width))
    pools = [conv(x, width, width // 2)]
    for _ in range(3):
        pools.append(g.node('MaxPool', [pools[-1]], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    x, waiting = conv(g.concat(pools, 1), 2 * width, width), []
    for skip, narrower in reversed(scales[-s.scales:-1]):
        x = conv(x, width, narrower)
        waiting.append(x)
        x, width = c3(g.concat([g.resize(x), skip], 1), 2 * narrower, narrower, s.depths[-1], residual=False), narrower
    found = [(x, width)]
    for x, (_, wider) in zip(reversed(waiting), scales[1 - s.scales:]):
        y = conv(found[-1][0], width, width, 3, stride=2, pad=1)
        x, width = c3(g.concat([y, x], 1), 2 * width, wider, s.depths[-1], residual=False), wider
        found.append((x, width))
    side, outputs = s.image >> len(s.depths) + 2 - s.scales, []
    for x, width in found:
        y = g.reshape(g.conv(x, width, 3 * (5 + s.classes)), -1, 3, 5 + s.classes, side, side)
        y = g.node('Sigmoid', [g.transpose(y, 0, 1, 3, 4, 2)])
        place, size, rest = g.split(y, 2, 2, 1 + s.classes, axis=4)
        place = g.add(g.multiply(place, g.scalar(2.0)), g.constant(g.normal(1, 3, side, side, 2)))
        size = g.multiply(g.node('Pow', [g.multiply(size, g.scalar(2.0)), g.scalar(2.0)]),
                          g.constant(numpy.abs(g.normal(1, 3, 1, 1, 2))))
        outputs.append(g.reshape(g.concat([place, size, rest], 4), -1, 3 * side * side, 5 + s.classes))
        side //= 2
    g.output(g.concat(outputs, 1))
