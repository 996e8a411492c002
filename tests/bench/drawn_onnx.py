"""The architectures that Swizzle is measured on, at full size, as ONNX files with drawn weights of which a share is zeros:
what tests/support/drawn_models.h draws as networks, in the spelling of exporters, for engines that read files."""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))

import encoder_graph  # noqa: E402
import make_encoders  # noqa: E402

VOCABULARY, LENGTH = 30522, 128

# Output channels and stride of the depthwise-separable blocks (Howard et al., "MobileNets", 2017, table 1).
MOBILENET_BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
RESNET_STAGES = [(64, 3), (128, 4), (256, 6), (512, 3)]  # channels and blocks (He et al., 2015, table 1)
ENCODERS = {  # the dimensions of all-MiniLM-L6-v2 and bert-base-uncased
    'minilm': {'hidden': 384, 'heads': 12, 'layers': 6, 'inner': 1536},
    'bert-base': {'hidden': 768, 'heads': 12, 'layers': 12, 'inner': 3072},
}
MODELS = ('resnet50', 'mobilenet_v1', *ENCODERS)


class Builder:
    """Appends ONNX nodes and drawn weights, one convolution at a time."""

    def __init__(self, cell=(1, 1), seed=1):
        self.random = np.random.default_rng(seed)
        self.cell = cell  # neighbouring output and input channels that are zero together
        self.nodes, self.weights = [], []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def draw(self, shape, sparsity):
        fan_in = np.prod(shape[1:]) * (1.0 - sparsity)
        values = self.random.standard_normal(shape) * np.sqrt(2.0 / max(fan_in, 1.0))
        if sparsity > 0:
            rows, channels = self.cell
            zeros = np.zeros((-(-shape[0] // rows), -(-shape[1] // channels), *shape[2:]), bool)
            zeros.reshape(-1)[self.random.permutation(zeros.size)[: round(sparsity * zeros.size)]] = True
            values[zeros.repeat(rows, 0).repeat(channels, 1)[: shape[0], : shape[1]]] = 0.0
        return values

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def conv(self, name, source, shape, stride=1, groups=1, sparsity=0.0, gain=1.0):
        weight = self.weight(name + '.weight', gain * self.draw(shape, sparsity))
        bias = self.weight(name + '.bias', self.random.standard_normal(shape[0]) * 0.1)
        return self.node('Conv', [source, weight, bias], name, group=groups, strides=[stride] * 2,
                         kernel_shape=[shape[2]] * 2, pads=[shape[2] // 2] * 4)

    def classify(self, value, channels):
        weight, bias = self.weight('classifier.weight', self.draw((1000, channels), 0.0)), self.weight(
            'classifier.bias', np.zeros(1000))
        features = self.node('Flatten', [self.node('GlobalAveragePool', [value], 'pool')], 'features')
        self.node('Gemm', [features, weight, bias], 'logits', transB=1)

    def finish(self, name):
        graph = helper.make_graph(self.nodes, name,
                                  [helper.make_tensor_value_info('image', TensorProto.FLOAT, ['batch', 3, 224, 224])],
                                  [helper.make_tensor_value_info('logits', TensorProto.FLOAT, ['batch', 1000])],
                                  self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7)
        onnx.checker.check_model(model)
        return model


def mobilenet_v1(sparsity, cell=(1, 1)):
    b = Builder(cell)
    bounds = [b.weight('low', 0.0), b.weight('high', 6.0)]
    x, channels = b.conv('stem', 'image', (32, 3, 3, 3), 2), 32
    for index, (outputs, stride) in enumerate(MOBILENET_BLOCKS):
        name = f'block{index}'
        x = b.node('Clip', [x, *bounds], f'{name}.input')
        x = b.conv(f'{name}.depthwise', x, (channels, 1, 3, 3), stride, channels)
        x = b.node('Clip', [x, *bounds], f'{name}.middle')
        x = b.conv(f'{name}.pointwise', x, (outputs, channels, 1, 1), sparsity=sparsity)
        channels = outputs
    b.classify(b.node('Clip', [x, *bounds], 'last'), channels)
    return b.finish('mobilenet_v1')


def resnet50(sparsity, cell=(1, 1)):
    """With strides in the 3x3 convolutions, as PyTorch has them; the stem and the classifier are dense."""
    b = Builder(cell)
    x = b.node('Relu', [b.conv('stem', 'image', (64, 3, 7, 7), 2)], 'stem.relu')
    x, inputs = b.node('MaxPool', [x], 'pool1', kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for stage, (channels, blocks) in enumerate(RESNET_STAGES):
        for block in range(blocks):
            name, stride, outputs = f'stage{stage}.{block}', 2 if stage and not block else 1, 4 * channels
            shortcut = x if block else b.conv(f'{name}.shortcut', x, (outputs, inputs, 1, 1), stride, sparsity=sparsity)
            y = b.node('Relu', [b.conv(f'{name}.1', x, (channels, inputs, 1, 1), sparsity=sparsity)], f'{name}.1.relu')
            y = b.conv(f'{name}.2', y, (channels, channels, 3, 3), stride, sparsity=sparsity)
            # Residual branches are small, so that what is drawn stays in range over sixteen blocks.
            y = b.conv(f'{name}.3', b.node('Relu', [y], f'{name}.2.relu'), (outputs, channels, 1, 1), sparsity=sparsity,
                       gain=0.3)
            x, inputs = b.node('Relu', [b.node('Add', [y, shortcut], f'{name}.sum')], f'{name}.relu'), outputs
    b.classify(x, inputs)
    return b.finish('resnet50')


def encoder(name, sparsity, cell=(1, 1)):
    """As PyTorch exports BERT at opset 14, which is what every engine knows best: layer norm and GELU written out."""
    encoder_graph.VOCABULARY, encoder_graph.POSITIONS = VOCABULARY, 512
    make_encoders.ENCODERS.pop(name, None)
    make_encoders.encoder(name, **ENCODERS[name], sparsity=sparsity, opset=14, head='pooler',
                          cell=cell)
    return make_encoders.build(name)


def make(name, sparsity, cell=(1, 1)):
    """Whole cells are zero: so many neighbouring output and input channels, of convolutions at a tap."""
    if name in ENCODERS:
        return encoder(name, sparsity, cell)
    return {'resnet50': resnet50, 'mobilenet_v1': mobilenet_v1}[name](sparsity, cell)


def draw_inputs(name, batch, seed=2):
    """A batch of requests, by input; attention masks are all ones."""
    random = np.random.default_rng(seed)
    if name not in ENCODERS:
        return {'image': random.random((batch, 3, 224, 224), np.float32)}
    shape = (batch, LENGTH)
    return {'input_ids': random.integers(0, VOCABULARY, shape), 'attention_mask': np.ones(shape, np.int64),
            'token_type_ids': np.zeros(shape, np.int64)}
