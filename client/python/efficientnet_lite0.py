"""EfficientNet-Lite0 (Tan and Le, 2019, without squeeze-and-excite and with ReLU6) as an ONNX model from its weights.

Input image, FP32 [batch, 3, 224, 224], pixels from -1 to 1; output logits, FP32 [batch, 1000]. Batch normalisation is
folded into the convolutions. Padding is TensorFlow's: where it is odd, the extra row is at the bottom and right.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 224
OPSET = 17
IR_VERSION = 8
EPSILON = 1e-3
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))  # blocks, stride of the first


class Writer:
    """Adds layers to a graph; each method takes the names of values and returns the name of one."""

    def __init__(self, tensors):
        self.tensors, self.nodes, self.initializers = tensors, [], {}
        self.bounds = [self.constant('zero', np.float32(0)), self.constant('six', np.float32(6))]

    def constant(self, name, array):
        self.initializers[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def node(self, operator, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def convolution(self, x, weight, norm, size, stride=1, groups=1, clipped=True):
        """A convolution, batch normalisation and perhaps ReLU6; returns (value, its height and width)."""
        kernel = self.tensors[f'{weight}.weight']
        scale = self.tensors[f'{norm}.weight'] / np.sqrt(self.tensors[f'{norm}.running_var'] + EPSILON)
        shift = self.tensors[f'{norm}.bias'] - self.tensors[f'{norm}.running_mean'] * scale
        extent = kernel.shape[2]
        outputs = -(-size // stride)
        padding = max(0, (outputs - 1) * stride + extent - size)
        before, after = padding // 2, padding - padding // 2
        x = self.node('Conv', x, self.constant(f'{weight}.weight', kernel * scale[:, None, None, None]),
                      self.constant(f'{weight}.bias', shift), name=f'{weight}.output', group=groups,
                      strides=[stride, stride], pads=[before, before, after, after], kernel_shape=[extent, extent])
        if clipped:
            x = self.node('Clip', x, *self.bounds, name=f'{weight}.clipped')
        return x, outputs

    def block(self, x, prefix, size, stride):
        """An inverted residual block (MobileNetV2's)."""
        start = x
        expand = f'{prefix}._expand_conv'
        if f'{expand}.weight' in self.tensors:
            x, size = self.convolution(x, expand, f'{prefix}._bn0', size)
        channels = len(self.tensors[f'{prefix}._depthwise_conv.weight'])
        x, size = self.convolution(x, f'{prefix}._depthwise_conv', f'{prefix}._bn1', size, stride, channels)
        x, size = self.convolution(x, f'{prefix}._project_conv', f'{prefix}._bn2', size, clipped=False)
        inputs = self.tensors[f'{expand}.weight'].shape[1] if f'{expand}.weight' in self.tensors else channels
        if stride == 1 and inputs == len(self.tensors[f'{prefix}._project_conv.weight']):
            x = self.node('Add', x, start, name=f'{prefix}.sum')
        return x, size


def make_model(tensors):
    """Returns the model made of a checkpoint's tensors; KeyError names one that is missing."""
    writer = Writer(tensors)
    x, size = writer.convolution('image', '_conv_stem', '_bn0', SIZE, 2)
    number = 0
    for blocks, first_stride in STAGES:
        for i in range(blocks):
            x, size = writer.block(x, f'_blocks.{number}', size, first_stride if i == 0 else 1)
            number += 1
    x, size = writer.convolution(x, '_conv_head', '_bn1', size)
    x = writer.node('GlobalAveragePool', x, name='pooled')
    x = writer.node('Flatten', x, name='features', axis=1)
    writer.node('Gemm', x, writer.constant('_fc.weight', tensors['_fc.weight']),
                writer.constant('_fc.bias', tensors['_fc.bias']), name='logits', transB=1)
    graph = helper.make_graph(
        writer.nodes, 'efficientnet_lite0',
        [helper.make_tensor_value_info('image', TensorProto.FLOAT, ['batch', 3, SIZE, SIZE])],
        [helper.make_tensor_value_info('logits', TensorProto.FLOAT, ['batch', len(tensors['_fc.bias'])])],
        list(writer.initializers.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', OPSET)], ir_version=IR_VERSION,
                              producer_name='swizzle')
    onnx.checker.check_model(model, full_check=True)
    return model
