"""Whole networks as exporters write them, narrow and small: ResNets, MobileNetV3, EfficientNets, TensorFlow's NHWC.

Importing this adds them to make_models.MODELS.
"""

import numpy

from make_models import model


def resnet(g, bottleneck, counts, stride_in_3x3=True, widths=(8, 16, 24, 32), hidden=None, mean=False, image=64,
           classes=10, sparsity=0.0):
    """torchvision's ResNet. `hidden(i)`: channels inside block i, where rows were pruned away. `sparsity`: of all
    convolutions but the stem."""
    expansion = 4 if bottleneck else 1
    fold = lambda x, inputs, outputs, kernel, zeros=sparsity, **attributes: g.batch_norm(
        g.conv(x, inputs, outputs, kernel, bias=False, sparsity=zeros, **attributes), outputs)
    x = g.relu(fold(g.input(3, image, image), 3, widths[0], 7, zeros=0.0, stride=2, pad=3))
    x = g.node('MaxPool', [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs, block = widths[0], 0
    for stage, (width, count) in enumerate(zip(widths, counts)):
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            inner, outputs = (hidden(block) if hidden else width), width * expansion
            if bottleneck:
                first, second = (1, stride) if stride_in_3x3 else (stride, 1)
                y = g.relu(fold(x, inputs, inner, 1, stride=first))
                y = g.relu(fold(y, inner, inner, 3, stride=second, pad=1))
                y = fold(y, inner, outputs, 1)
            else:
                y = g.relu(fold(x, inputs, inner, 3, stride=stride, pad=1))
                y = fold(y, inner, outputs, 3, pad=1)
            shortcut = x if inputs == outputs and stride == 1 else fold(x, inputs, outputs, 1, stride=stride)
            x = g.relu(g.add(*((y, shortcut) if block % 2 == 0 else (shortcut, y))))
            inputs, block = outputs, block + 1
    x = g.mean(x, keepdims=False) if mean else g.node('Flatten', [g.node('GlobalAveragePool', [x])], axis=1)
    return g.gemm(x, inputs, classes, sparsity=0.5)


@model(since=6)
def resnet18(g):
    g.output(resnet(g, False, (2, 2, 2, 2)))


@model(since=6)
def resnet50_v1(g):
    """The stride in the first 1x1 convolution of a stage."""
    g.output(resnet(g, True, (3, 4, 6, 3), stride_in_3x3=False))


@model(since=6)
def resnet50_v1_5(g):
    """The stride in the 3x3 convolution, as torchvision has it."""
    g.output(resnet(g, True, (3, 4, 6, 3)))


@model
def resnet18_pruned_by_rows(g):
    """Every block has another number of channels inside."""
    g.output(resnet(g, False, (2, 2, 2, 2), hidden=lambda block: 3 + 5 * block % 17))


@model
def resnet50_mean(g):
    """ReduceMean for the pool; channels pruned by rows inside the bottlenecks."""
    g.output(resnet(g, True, (1, 2, 1, 1), hidden=lambda block: 5 + 7 * block % 11, mean=True))


def hard_swish(g, x):
    if g.opset >= 14:
        return g.node('HardSwish', [x])
    return g.node('Mul', [x, g.node('HardSigmoid', [x], alpha=1 / 6, beta=0.5)])


def silu(g, x):
    return g.node('Mul', [x, g.node('Sigmoid', [x])])


def squeeze_excite(g, x, channels, squeezed, activation, gate):
    """torchvision's: the gate stands before the activation it scales."""
    y = g.conv(g.node('GlobalAveragePool', [x]), channels, squeezed)
    y = g.conv(activation(y), squeezed, channels)
    return g.multiply(gate(y), x)


def inverted_residual(g, x, inputs, hidden, outputs, kernel, stride, activation, squeeze=None):
    y = activation(g.conv(x, inputs, hidden, sparsity=0.5)) if hidden != inputs else x
    y = g.depthwise(y, hidden, kernel, stride=stride, pad=kernel // 2)
    y = activation(y)
    if squeeze:
        y = squeeze(y, hidden)
    y = g.conv(y, hidden, outputs, sparsity=0.7)
    return g.add(x, y) if stride == 1 and inputs == outputs else y


def mobilenet_v3(g, blocks, last):
    swish = lambda x: hard_swish(g, x)
    gate = lambda x: g.node('HardSigmoid', [x], alpha=1 / 6)
    squeeze = lambda x, channels: squeeze_excite(g, x, channels, max(4, channels // 4), g.relu, gate)
    x = swish(g.conv(g.input(3, 64, 64), 3, 8, 3, stride=2, pad=1))
    inputs = 8
    for kernel, hidden, outputs, excite, swishes, stride in blocks:
        x = inverted_residual(g, x, inputs, hidden, outputs, kernel, stride, swish if swishes else g.relu,
                              squeeze if excite else None)
        inputs = outputs
    x = swish(g.conv(x, inputs, last))
    x = g.node('Flatten', [g.node('GlobalAveragePool', [x])], axis=1)
    return g.gemm(swish(g.gemm(x, last, 48)), 48, 10)


@model(since=7)
def mobilenet_v3_large(g):
    g.output(mobilenet_v3(g, (
        (3, 8, 8, False, False, 1), (3, 24, 12, False, False, 2), (3, 36, 12, False, False, 1),
        (5, 36, 16, True, False, 2), (5, 40, 16, True, False, 1), (5, 40, 16, True, False, 1),
        (3, 80, 20, False, True, 2), (3, 50, 20, False, True, 1), (3, 46, 20, False, True, 1),
        (3, 46, 20, False, True, 1), (3, 120, 28, True, True, 1), (3, 168, 28, True, True, 1),
        (5, 168, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1)), 120))


@model
def mobilenet_v3_small(g):
    g.output(mobilenet_v3(g, (
        (3, 8, 8, True, False, 2), (3, 24, 12, False, False, 2), (3, 32, 12, False, False, 1),
        (5, 32, 16, True, True, 2), (5, 64, 16, True, True, 1), (5, 40, 20, True, True, 1),
        (5, 96, 24, True, True, 2), (5, 144, 24, True, True, 1)), 96))


EFFICIENTNET = ((3, 8, 8, 1), (3, 48, 12, 2), (3, 72, 12, 1), (5, 72, 16, 2), (5, 96, 16, 1), (3, 96, 20, 2),
                (5, 120, 28, 1), (5, 168, 40, 2), (3, 240, 40, 1))


def efficientnet(g, activation, squeeze=None):
    x, inputs = activation(g.conv(g.input(3, 64, 64), 3, 8, 3, stride=2, pad=1)), 8
    for kernel, hidden, outputs, stride in EFFICIENTNET:
        x, inputs = inverted_residual(g, x, inputs, hidden, outputs, kernel, stride, activation, squeeze), outputs
    x = g.node('Flatten', [g.node('GlobalAveragePool', [activation(g.conv(x, inputs, 64))])], axis=1)
    return g.gemm(x, 64, 10)


@model(since=7)
def efficientnet_lite(g):
    g.output(efficientnet(g, g.relu6))


@model
def efficientnet_b0(g):
    """SiLU, and squeeze-and-excite behind a sigmoid."""
    swish = lambda x: silu(g, x)
    gate = lambda x: g.node('Sigmoid', [x])
    g.output(efficientnet(g, swish, lambda x, channels: squeeze_excite(g, x, channels, 4, swish, gate)))


@model(since=7)
def functions(g):
    """Every activation function, alone and written out, in the operand orders of exporters."""
    x = g.conv(g.input(4, 9, 9), 4, 20, 3, pad=1)
    scalar = lambda number: g.initializer(numpy.float32(number))
    node = lambda op, *inputs, **attributes: g.node(op, list(inputs), **attributes)
    ramp = lambda value: g.clip(g.add(value, scalar(3)), 0.0, 6.0)
    g.output(node('Sigmoid', x), 'sigmoid')
    g.output(node('HardSigmoid', x), 'hard_sigmoid')
    g.output(node('HardSigmoid', x, alpha=0.3, beta=0.4), 'hard_sigmoid_attributes')
    g.output(node('LeakyRelu', x), 'leaky')
    g.output(node('LeakyRelu', x, alpha=0.2), 'leaky_attribute')
    g.output(hard_swish(g, x), 'hard_swish')
    g.output(silu(g, x), 'silu')
    g.output(node('Mul', node('Sigmoid', x), x), 'silu_left')
    g.output(node('Mul', node('HardSigmoid', x, alpha=1 / 6), x), 'hard_swish_of_hard_sigmoid')
    g.output(node('Div', ramp(x), scalar(6)), 'hard_sigmoid_of_clip')
    g.output(node('Div', node('Mul', x, ramp(x)), scalar(6)), 'hard_swish_divided')
    g.output(node('Mul', node('Mul', ramp(x), x), scalar(1 / 6)), 'hard_swish_scaled')
    g.output(node('Mul', x, node('Div', ramp(x), scalar(6))), 'hard_swish_of_divided')
    g.output(node('Mul', x, node('Mul', scalar(0.16666667), ramp(x))), 'hard_swish_keras')
    g.output(node('Mul', node('Mul', x, scalar(1 / 6)), ramp(x)), 'hard_swish_scaled_first')
    g.output(node('Mul', x, g.clip(g.add(x, scalar(2)), 0.0, 3.0)), 'no_hard_swish')
    g.output(node('Mul', node('Sigmoid', x), g.conv(x, 20, 20)), 'gate')
    g.output(g.relu(node('LeakyRelu', g.conv(x, 20, 8), alpha=-0.5)), 'clamped')
    slopes = lambda *shape: g.initializer(g.normal(*shape, scale=0.3))
    g.output(node('PRelu', g.conv(x, 20, 8), slopes(8, 1, 1)), 'slopes')
    g.output(node('PRelu', x, slopes(1)), 'slope')
    kernel = g.initializer(g.normal(20, 6, 4, 4, scale=0.1))
    wider = node('ConvTranspose', x, kernel, g.initializer(g.normal(6)), strides=[2, 2], pads=[1] * 4)
    g.output(g.conv(g.relu(wider), 6, 8), 'widened')
    pooled = node('GlobalAveragePool', x)
    g.output(node('Mul', x, pooled), 'scaled')
    g.output(g.relu6(node('Mul', pooled, x)), 'scaled_left')
    g.output(node('Mul', pooled, node('Sigmoid', pooled)), 'pooled')


def to_nchw(g, x):
    return g.node('Transpose', [x], perm=[0, 3, 1, 2])


def to_nhwc(g, x):
    return g.node('Transpose', [x], perm=[0, 2, 3, 1])


@model(since=7)
def nhwc(g):
    """TensorFlow's MobileNet with squeeze-and-excite: a Transpose around every convolution, channels last.

    The image is normalised before the first Transpose.
    """
    around = lambda x, run: to_nhwc(g, run(to_nchw(g, x)))
    bias = lambda x, channels: g.add(x, g.initializer(g.normal(channels, scale=0.1)))
    x = g.input(32, 32, 3)
    x = g.node('Mul', [g.node('Sub', [x, g.initializer([0.4, 0.5, 0.6])]), g.initializer([2.0, 3.0, 2.5])])
    x = g.relu6(bias(around(x, lambda v: g.conv(v, 3, 8, 3, stride=2, auto_pad='SAME_UPPER', bias=False)), 8))
    y = g.relu6(around(x, lambda v: g.conv(v, 8, 24)))
    y = g.relu6(bias(around(y, lambda v: g.depthwise(v, 24, pad=1)), 24))
    gate = g.mean(y, keepdims=True, axes=(1, 2))
    gate = g.node('Sigmoid', [around(g.relu(around(gate, lambda v: g.conv(v, 24, 6))), lambda v: g.conv(v, 6, 24))])
    y = g.node('Mul', [y, gate])
    x = g.add(around(y, lambda v: g.conv(v, 24, 8)), x)
    x = g.pad(x, 0, 1, 1, 0, 0, 1, 1, 0)
    x = g.relu(bias(around(x, lambda v: g.conv(v, 8, 16, 3, stride=2)), 16))
    x = g.mean(x, keepdims=False, axes=(1, 2))
    x = g.add(g.node('MatMul', [x, g.weight(16, 10)]), g.initializer(g.normal(10)))
    g.output(g.node('Softmax', [x], axis=1))


@model(since=7)
def transposes(g):
    """Transposes that stay: of inputs, outputs, before a Flatten; of planes of one element, which move nothing."""
    x = g.input(6, 7, 5)
    y = g.relu(g.conv(to_nchw(g, x), 5, 20, 3))
    g.output(to_nhwc(g, y), 'map')
    g.output(g.gemm(g.node('Flatten', [to_nhwc(g, y)]), 4 * 5 * 20, 7), 'flattened')
    g.output(g.relu(to_nhwc(g, g.node('GlobalAveragePool', [y]))), 'pooled')
    g.output(g.node('Flatten', [to_nhwc(g, g.node('GlobalAveragePool', [y]))]), 'pooled_row')
    g.output(to_nhwc(g, to_nchw(g, x)), 'itself')
    g.output(g.node('Transpose', [x], perm=[0, 3, 1, 2]), 'moved')
    g.output(g.add(to_nhwc(g, y), to_nhwc(g, g.conv(y, 20, 20))), 'sum')
    g.output(g.node('Transpose', [g.node('Reshape', [x, g.integers(0, 42, 5)])], perm=[0, 2, 1]), 'matrix')
    if g.opset >= 13:
        g.output(g.node('Softmax', [to_nhwc(g, y)]), 'softmax')


@model(since=6)
def old_spellings(g):
    """Bounds, axes, pads and broadcasting as attributes below opsets 7, 10, 11 and 13; training flags that are off."""
    x = g.batch_norm(g.conv(g.pad(g.input(3, 16, 16), 0, 0, 1, 1, 0, 0, 1, 1), 3, 12, 3), 12)
    x = g.clip(x, -1.0, 2.0)
    x = g.clip(g.per_channel('Mul', x, g.normal(12), 4), 0.0)
    x = g.per_channel('Add', g.relu(g.per_channel('Sub', x, g.normal(12), 4)), g.normal(12), 4)
    x = g.output(x, 'scaled')
    rows = g.node('Slice', [g.node('Shape', [x])], starts=[0], ends=[1]) if g.opset < 10 else g.node(
        'Slice', [g.node('Shape', [x]), g.integers(0), g.integers(1)])
    flat = g.node('Reshape', [x, g.node('Concat', [rows, g.constant([-1], numpy.int64)], axis=0)])
    g.output(g.gemm(flat, 12 * 256, 6), 'flat')
    pooled = g.squeeze(g.node('AveragePool', [x], kernel_shape=[16, 16]), 2, 3)
    g.output(g.node('Softmax', [g.dropout(g.gemm(pooled, 12, 10))], axis=1), 'classes')
    g.output(g.unsqueeze(g.mean(x, keepdims=False), 2, 3), 'mean')


@model(since=19)
def pools_that_count(g):
    """Means over padding that counts, whose windows ceil_mode lets the end cut off: at both axes, one or none. Before
    opset 19 there are no dilations."""
    x = g.input(4, 13, 16)
    for i, (kernel, stride, pads, dilation) in enumerate((
            (3, 2, [1, 1, 1, 1], 1), (2, 2, [0, 0, 0, 0], 1), (2, 3, [1, 1, 1, 1], 1), (4, 3, [2, 1, 2, 1], 1),
            (3, 3, [2, 2, 2, 2], 1), (5, 4, [0, 2, 0, 2], 1), (3, 2, [1, 1, 1, 1], 2))):
        dilated = {'dilations': [dilation] * 2} if g.opset >= 19 else {}
        g.output(g.node('AveragePool', [x], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, ceil_mode=1,
                        count_include_pad=1, **dilated), f'mean_{i}')
