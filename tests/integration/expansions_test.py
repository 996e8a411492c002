"""Operators that are written out as others when a model is read compute what ONNX Runtime's own compute:
com.microsoft's, those of new opsets, ai.onnx.ml's, and a model's functions. Many nodes in one model, one a variant."""

import numpy
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from interpreter_test import Nodes

MICROSOFT, LEARNING = {'domain': 'com.microsoft'}, {'domain': 'ai.onnx.ml'}
BATCH, LENGTH, HEADS, SIZE = 2, 5, 4, 16
CHANNELS = HEADS * SIZE


def images(nodes):
    return nodes.input('image', nodes.draw(BATCH, 3, 9, 9))


def tokens(nodes, name='tokens'):
    return nodes.input(name, nodes.draw(BATCH, LENGTH, CHANNELS))


def test_fused_layers(tmp_path):
    nodes = Nodes(17)
    image, rows = images(nodes), nodes.input('rows', nodes.draw(BATCH, 8))
    for activation, parameters in (('Relu', []), ('LeakyRelu', [0.3]), ('Clip', [-0.2, 0.7]), ('Sigmoid', []),
                                   ('Tanh', []), ('HardSigmoid', [0.3, 0.4])):
        more = {'activation_params': parameters} if parameters else {}
        nodes.add('FusedConv', [image, nodes.draw(4, 3, 3, 3), nodes.draw(4)], pads=[1, 1, 1, 1], activation=activation,
                  **more, **MICROSOFT)
    nodes.add('FusedConv', [image, nodes.draw(4, 3, 3, 3), nodes.draw(4), nodes.draw(BATCH, 4, 7, 7)],
              activation='Relu', **MICROSOFT)
    for activation, more in (('Relu', {}), ('LeakyRelu', {'activation_alpha': 0.2}), ('Tanh', {}),
                             ('Elu', {'activation_alpha': 0.5})):
        nodes.add('FusedGemm', [rows, nodes.draw(5, 8), nodes.draw(5)], transB=1, alpha=0.5, beta=2.0,
                  activation=activation, **more, **MICROSOFT)
    nodes.check(tmp_path)


def test_products_with_turned_operands(tmp_path):
    nodes = Nodes(17)
    stack = nodes.input('stack', nodes.draw(2, 3, 4, 5))
    nodes.add('FusedMatMul', [stack, nodes.draw(2, 3, 6, 5)], transB=1, alpha=0.25, **MICROSOFT)
    nodes.add('FusedMatMul', [stack, nodes.draw(2, 3, 4, 6)], transA=1, **MICROSOFT)
    nodes.add('FusedMatMul', [stack, nodes.draw(5, 3)], **MICROSOFT)
    nodes.add('TransposeMatMul', [stack, nodes.draw(2, 3, 6, 5)], transB=1, **MICROSOFT)
    swapped = nodes.add('Transpose', [stack], perm=[0, 2, 1, 3])[0]  # [2, 4, 3, 5]: its rank has to be found out
    nodes.add('FusedMatMul', [swapped, swapped], transB=1, alpha=2.0, **MICROSOFT)
    nodes.check(tmp_path)


def test_functions_and_norms(tmp_path):
    nodes = Nodes(17)
    x, skip = tokens(nodes), tokens(nodes, 'skip')
    bias, scale, shift = nodes.draw(CHANNELS), nodes.draw(CHANNELS), nodes.draw(CHANNELS)
    nodes.add('BiasGelu', [x, bias], **MICROSOFT)
    nodes.add('FastGelu', [x, bias], **MICROSOFT)
    nodes.add('FastGelu', [x], **MICROSOFT)
    nodes.add('Gelu', [x], **MICROSOFT)
    nodes.add('QuickGelu', [x], **MICROSOFT)
    nodes.add('QuickGelu', [x], alpha=1.1, **MICROSOFT)
    nodes.add('SkipLayerNormalization', [x, skip, scale, shift], **MICROSOFT)
    nodes.add('SkipLayerNormalization', [x, skip, scale, shift, bias], [True, False, False, True], epsilon=1e-3,
              **MICROSOFT)
    nodes.add('SkipSimplifiedLayerNormalization', [x, skip, scale], epsilon=1e-5, **MICROSOFT)
    nodes.add('SkipSimplifiedLayerNormalization', [x, skip, scale, bias], [True, False, False, True], **MICROSOFT)
    ids = nodes.input('ids', numpy.array([[1, 4, 0], [2, 2, 3]], numpy.int32))
    nodes.add('EmbedLayerNormalization',
              [ids, ids, nodes.draw(5, 8), nodes.draw(7, 8), nodes.draw(5, 8), nodes.draw(8), nodes.draw(8),
               numpy.array([[1, 1, 0], [1, 1, 1]], numpy.int32)], 2, **MICROSOFT)
    nodes.add('EmbedLayerNormalization',
              [ids, '', nodes.draw(5, 8), nodes.draw(7, 8), '', nodes.draw(8), nodes.draw(8)],
              [True, False], **MICROSOFT)
    nodes.check(tmp_path)


def test_old_opsets_have_the_norms_and_functions_too(tmp_path):
    nodes = Nodes(11)
    x, skip = tokens(nodes), tokens(nodes, 'skip')
    nodes.add('SkipLayerNormalization', [x, skip, nodes.draw(CHANNELS), nodes.draw(CHANNELS)], **MICROSOFT)
    nodes.add('BiasGelu', [x, nodes.draw(CHANNELS)], **MICROSOFT)
    nodes.add('MultiHeadAttention', [x, skip, skip], num_heads=HEADS, **MICROSOFT)
    nodes.check(tmp_path)


def attention_of_one_weight(nodes, x, **attributes):
    return [x, nodes.draw(CHANNELS, 3 * CHANNELS), nodes.draw(3 * CHANNELS)], {'num_heads': HEADS, **attributes}


def test_attention(tmp_path):
    nodes = Nodes(17)
    q, k, v = (tokens(nodes, name) for name in ('q', 'k', 'v'))
    longer = nodes.input('longer', nodes.draw(BATCH, LENGTH + 2, CHANNELS))
    mask = nodes.input('mask', numpy.array([[1] * LENGTH, [1] * 3 + [0] * (LENGTH - 3)], numpy.int32))
    scores = nodes.input('scores', nodes.draw(1, HEADS, LENGTH, LENGTH))
    nodes.add('MultiHeadAttention', [q, k, v], num_heads=HEADS, **MICROSOFT)
    nodes.add('MultiHeadAttention', [q, longer, longer, nodes.draw(3 * CHANNELS)], num_heads=HEADS, scale=0.3,
              **MICROSOFT)
    nodes.add('MultiHeadAttention', [q, k, v, '', mask], num_heads=HEADS, **MICROSOFT)
    nodes.add('MultiHeadAttention', [q, k, v, '', '', scores], num_heads=HEADS, unidirectional=1, **MICROSOFT)
    past = [nodes.draw(BATCH, HEADS, 3, SIZE), nodes.draw(BATCH, HEADS, 3, SIZE)]
    nodes.add('MultiHeadAttention', [q, k, v, '', '', '', *past], 3, num_heads=HEADS, **MICROSOFT)
    inputs, attributes = attention_of_one_weight(nodes, q)
    nodes.add('Attention', inputs, **attributes, **MICROSOFT)
    nodes.add('Attention', [*inputs, mask], mask_filter_value=-5000.0, **attributes, **MICROSOFT)
    nodes.add('Attention', [*inputs, numpy.array([LENGTH, 3], numpy.int32)], **attributes, **MICROSOFT)
    nodes.add('Attention', inputs, unidirectional=1, **attributes, **MICROSOFT)
    nodes.add('Attention', [*inputs, '', nodes.draw(2, BATCH, HEADS, 3, SIZE)], 2, **attributes, **MICROSOFT)
    nodes.check(tmp_path)


def test_rotary_embedding(tmp_path):
    nodes = Nodes(17)
    x, heads = tokens(nodes), nodes.input('heads', nodes.draw(BATCH, HEADS, LENGTH, SIZE))
    places = nodes.input('places', numpy.array([[0, 1, 2, 3, 4], [4, 3, 2, 7, 0]]))
    tables = [nodes.draw(9, SIZE // 2), nodes.draw(9, SIZE // 2)]
    for attributes in ({}, {'interleaved': 1}):
        nodes.add('RotaryEmbedding', [x, places, *tables], **attributes, **MICROSOFT)
        nodes.add('RotaryEmbedding', [heads, places, *tables], **attributes, **MICROSOFT)
    nodes.add('RotaryEmbedding', [x, numpy.array([2]), *tables], **MICROSOFT)
    nodes.add('RotaryEmbedding', [x, places, *(nodes.draw(9, 2) for _ in range(2))], num_heads=HEADS,
              rotary_embedding_dim=4, **MICROSOFT)
    nodes.check(tmp_path)


def test_attention_whose_queries_share_keys(tmp_path):
    nodes = Nodes(17)
    kept, tables = 2, [nodes.draw(16, SIZE // 2), nodes.draw(16, SIZE // 2)]
    small = [nodes.input(name, nodes.draw(BATCH, LENGTH, kept * SIZE)) for name in ('k', 'v')]
    common = {'num_heads': HEADS, 'kv_num_heads': kept, **MICROSOFT}
    empty = [numpy.zeros((BATCH, kept, 0, SIZE), numpy.float32)] * 2
    last, keys = numpy.full(BATCH, LENGTH - 1, numpy.int32), numpy.int32(LENGTH)
    q = tokens(nodes)
    nodes.add('GroupQueryAttention', [q, *small, *empty, last, keys], 3, **common)
    nodes.add('GroupQueryAttention', [q, *small, *empty, last, keys, *tables], 3, do_rotary=1, **common)
    nodes.add('GroupQueryAttention', [q, *small, *empty, last, keys], 3, local_window_size=2, softcap=5.0, scale=0.4,
              **common)
    packed = nodes.input('packed', nodes.draw(BATCH, 1, (HEADS + 2 * kept) * SIZE))
    past = [nodes.draw(BATCH, kept, 3, SIZE), nodes.draw(BATCH, kept, 3, SIZE)]
    nodes.add('GroupQueryAttention',
              [packed, '', '', *past, numpy.full(BATCH, 3, numpy.int32), numpy.int32(4), *tables],
              3, do_rotary=1, rotary_interleaved=1, **common)
    nodes.check(tmp_path)


def pack(codes, bits):
    """Codes of the last dimension, the first of a byte lowest."""
    each = 8 // bits
    codes = numpy.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % each)])
    shifted = [codes[..., i::each].astype(numpy.uint8) << (bits * i) for i in range(each)]
    return numpy.bitwise_or.reduce(shifted)


def test_packed_weights(tmp_path):
    nodes = Nodes(17)
    rows, columns, block = 12, 80, 32
    blocks = -(-columns // block)
    x = nodes.input('x', nodes.draw(BATCH, columns))
    for bits in (4, 8):
        codes = nodes.random.integers(0, 1 << bits, (rows, blocks * block))
        zeros = pack(nodes.random.integers(0, 1 << bits, (rows, blocks)), bits).reshape(-1)
        scales = numpy.abs(nodes.draw(rows, blocks)).reshape(-1)
        packed = pack(codes, bits).reshape(rows, blocks, -1)
        shape = {'K': columns, 'N': rows, 'bits': bits, 'block_size': block}
        nodes.add('MatMulNBits', [x, packed, scales], **shape, **MICROSOFT)
        nodes.add('MatMulNBits', [x, packed, scales, zeros], **shape, **MICROSOFT)
    nodes.check(tmp_path)


def test_scales_in_blocks_and_of_sixteen_bits(tmp_path):
    nodes = Nodes(21)
    x = nodes.input('x', nodes.draw(4, 8))
    weight = nodes.random.integers(-128, 128, (8, 6)).astype(numpy.int8)
    real = nodes.add('DequantizeLinear', [weight, numpy.abs(nodes.draw(2, 6))], axis=0, block_size=4)[0]
    nodes.add('MatMul', [x, real])
    nodes.add('DequantizeLinear', [weight.astype(numpy.int16) * 200, numpy.abs(nodes.draw(6)),
                                   numpy.arange(6, dtype=numpy.int16)], axis=1)
    for dtype in (numpy.uint16, numpy.int16):
        scale, zero = numpy.float32(3e-5), dtype(1000)
        whole = nodes.add('QuantizeLinear', [x, scale, zero])[0]
        nodes.add('DequantizeLinear', [whole, scale, zero])
        if dtype == numpy.uint16:
            whole = nodes.add('QuantizeLinear', [x, scale, zero], **MICROSOFT)[0]
            nodes.add('DequantizeLinear', [whole, scale, zero], **MICROSOFT)
    nodes.check(tmp_path)


def narrow(nodes, kind, shape, packed):
    name = f'c{len(nodes.constants)}'
    nodes.constants.append(helper.make_tensor(name, kind, shape, packed.tobytes(), raw=True))
    return name


def test_weights_of_half_a_byte_and_with_a_point(tmp_path):
    nodes = Nodes(21)
    x = nodes.input('x', nodes.draw(3, 8))
    codes = pack(nodes.random.integers(0, 16, (1, 8 * 6)), 4)
    for kind in (TensorProto.INT4, TensorProto.UINT4):
        weight = narrow(nodes, kind, (8, 6), codes)
        nodes.add('MatMul', [x, nodes.add('DequantizeLinear', [weight, numpy.abs(nodes.draw(6))], axis=1)[0]])
        moved = nodes.add('Transpose', [weight])[0]
        nodes.outputs.remove(moved)
        nodes.add('DequantizeLinear', [moved, numpy.float32(0.1)])
    points = nodes.random.integers(0, 120, 48).astype(numpy.uint8)
    for kind in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
        nodes.add('DequantizeLinear', [narrow(nodes, kind, (8, 6), points), numpy.float32(0.01)])
    nodes.check(tmp_path)


def test_operators_of_new_opsets(tmp_path):
    nodes = Nodes(20)
    whole = nodes.input('whole', numpy.arange(-4, 4, dtype=numpy.int32))
    nodes.add('BitwiseAnd', [whole, numpy.int32(5)])
    nodes.add('BitwiseOr', [whole, numpy.int32(8)])
    nodes.add('BitwiseXor', [whole, numpy.int32(-3)])
    nodes.add('BitwiseNot', [whole])
    columns = nodes.input('columns', nodes.draw(BATCH, 3 * 4, 12))
    nodes.add('Col2Im', [columns, numpy.array([5, 4]), numpy.array([2, 2])])
    nodes.add('Col2Im', [nodes.input('padded', nodes.draw(1, 2 * 9, 9)), numpy.array([5, 5]), numpy.array([3, 3])],
              pads=[1, 1, 1, 1], strides=[2, 2])
    for align in (0, 1):
        nodes.add('AffineGrid', [nodes.input(f'map{align}', nodes.draw(BATCH, 2, 3)), numpy.array([BATCH, 1, 3, 4])],
                  align_corners=align)
        nodes.add('AffineGrid', [nodes.input(f'space{align}', nodes.draw(1, 3, 4)), numpy.array([1, 1, 2, 3, 4])],
                  align_corners=align)
    nodes.check(tmp_path)


def reference(file, inputs):
    """By ONNX's own implementation, for what ONNX Runtime does not have on CPUs."""
    evaluator = ReferenceEvaluator(str(file))
    return dict(zip(evaluator.output_names, evaluator.run(None, inputs)))


def test_deformed_convolutions(tmp_path):
    nodes = Nodes(19)
    image = images(nodes)
    offsets = nodes.input('offsets', nodes.draw(BATCH, 18, 9, 9))
    mask = nodes.input('mask', nodes.draw(BATCH, 9, 9, 9))
    nodes.add('DeformConv', [image, nodes.draw(4, 3, 3, 3), offsets], pads=[1] * 4)
    nodes.add('DeformConv', [image, nodes.draw(4, 3, 3, 3), offsets, nodes.draw(4), mask], pads=[1] * 4)
    wide = nodes.input('wide', nodes.draw(1, 4, 7, 7))
    nodes.add('DeformConv', [wide, nodes.draw(6, 2, 2, 2), nodes.input('moves', nodes.draw(1, 2 * 8, 3, 3))],
              group=2, offset_group=2, strides=[2, 2])
    nodes.check(tmp_path, compute=reference)


def test_images_pooled_by_norms(tmp_path):
    nodes = Nodes(18)
    image = images(nodes)
    nodes.add('LpPool', [image], kernel_shape=[3, 3])
    nodes.add('LpPool', [image], kernel_shape=[3, 2], p=1, strides=[2, 2], pads=[1, 0, 1, 1])
    nodes.add('LpPool', [image], kernel_shape=[2, 2], p=3, auto_pad='SAME_UPPER')
    nodes.add('GlobalLpPool', [image])
    nodes.add('GlobalLpPool', [image], p=3)
    nodes.check(tmp_path)


def test_images_brought_to_a_size(tmp_path):
    nodes = Nodes(18)
    image = images(nodes)
    for size, axes in (([4, 12], [2, 3]), ([12, 4], [-2, -1]), ([9, 9], [2, 3]), ([8], [3])):
        nodes.add('CenterCropPad', [image, numpy.array(size)], axes=axes)
    nodes.add('CenterCropPad', [image, numpy.array([BATCH, 5, 4, 10])])
    nodes.add('CenterCropPad', [image, nodes.input('size', numpy.array([5, 14]))], axes=[2, 3])
    nodes.check(tmp_path, compute=reference)


@pytest.mark.parametrize('opset', (17, 20))
def test_what_the_standard_took_over(opset, tmp_path):
    nodes = Nodes(opset)
    image, rows = images(nodes), nodes.input('rows', nodes.draw(4, 5))
    nodes.add('GatherND', [rows, numpy.array([[1, 2], [3, 0]])], **MICROSOFT)
    grid = nodes.input('grid', nodes.draw(BATCH, 4, 6, 2))
    for mode in ('bilinear', 'nearest', 'bicubic'):
        nodes.add('GridSample', [image, grid], mode=mode, padding_mode='border', **MICROSOFT)
    nodes.add('Pad', [rows, numpy.array([1, 0, 2, 1]), numpy.array(0.5, numpy.float32)], **MICROSOFT)
    nodes.add('Range', [numpy.array(value, numpy.float32) for value in (1, 4, 0.5)], **MICROSOFT)
    nodes.add('Trilu', [rows, numpy.array(1)], upper=0, **MICROSOFT)
    nodes.check(tmp_path)


def test_what_onnx_runtime_has_no_kernels_for(tmp_path):
    nodes = Nodes(13)
    rows, bias = nodes.input('rows', nodes.draw(4, 5)), nodes.draw(1, 5)
    expanded, = nodes.add('ExpandDims', [rows, numpy.array(-1, numpy.int32)], **MICROSOFT)
    computed, = nodes.add('ExpandDims', [rows, nodes.input('axis', numpy.array(1, numpy.int32))], **MICROSOFT)
    softened, = nodes.add('BiasSoftmax', [rows, bias], axis=1, is_inner_broadcast=0, **MICROSOFT)

    def by_hand(_file, inputs):
        powers = numpy.exp(inputs['rows'] + bias)
        return {expanded: inputs['rows'][:, :, None], computed: inputs['rows'][:, None],
                softened: powers / powers.sum(axis=1, keepdims=True)}

    nodes.check(tmp_path, compute=by_hand)


def test_preparation_of_features(tmp_path):
    nodes = Nodes(17)
    x = nodes.input('x', nodes.draw(4, 3))
    nodes.add('Scaler', [x], offset=[0.1, 0.2, 0.3], scale=[2.0, 3.0, 4.0], **LEARNING)
    nodes.add('Scaler', [nodes.input('whole', numpy.arange(6).reshape(2, 3))], offset=[1.0], scale=[0.5], **LEARNING)
    for norm in ('MAX', 'L1', 'L2'):
        nodes.add('Normalizer', [nodes.input(norm, numpy.abs(nodes.draw(4, 3)))], norm=norm, **LEARNING)
    nodes.add('Binarizer', [x], threshold=0.1, **LEARNING)
    nodes.add('LinearRegressor', [x], coefficients=[1.0, 2.0, 3.0, -1.0, 0.5, 2.0], intercepts=[0.5, -0.5], targets=2,
              **LEARNING)
    for after in ('NONE', 'SOFTMAX', 'LOGISTIC'):
        nodes.add('LinearClassifier', [x], 2, coefficients=[1.0, 2.0, 3.0, -1.0, 0.5, 2.0, 0.3, 0.2, -2.0],
                  intercepts=[0.5, -0.5, 0.1], classlabels_ints=[7, 3, 5], post_transform=after, **LEARNING)
    nodes.add('Imputer', [x], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float('nan'), **LEARNING)
    nodes.add('ArrayFeatureExtractor', [x, numpy.array([2, 0])], **LEARNING)
    nodes.add('FeatureVectorizer', [x, x], inputdimensions=[3, 3], **LEARNING)
    labels = nodes.input('labels', numpy.array([3, 1, 9]))
    nodes.add('LabelEncoder', [labels], keys_int64s=[1, 3], values_floats=[0.25, 0.75], default_float=-2.0, **LEARNING)
    nodes.add('LabelEncoder', [x], keys_floats=[0.5], values_int64s=[1], default_int64=0, **LEARNING)
    nodes.check(tmp_path)


def test_functions_of_the_model(tmp_path):
    nodes = Nodes(18)
    slope = onnx.AttributeProto(name='alpha', type=onnx.AttributeProto.FLOAT, ref_attr_name='slope')
    leak = helper.make_node('LeakyRelu', ['a'], ['b'])
    leak.attribute.append(slope)
    opsets = [helper.make_opsetid('', 18), helper.make_opsetid('own', 1)]
    nodes.functions = [
        helper.make_function('own', 'Leak', ['a'], ['b'], [leak], opsets, attributes=['slope']),
        helper.make_function('own', 'Twice', ['a'], ['c', 'd'],
                             [helper.make_node('Leak', ['a'], ['c'], domain='own', slope=0.5),
                              helper.make_node('Leak', ['c'], ['d'], domain='own', slope=0.25)], opsets),
    ]
    x = nodes.input('x', nodes.draw(3, 4))
    nodes.add('Leak', [x], slope=0.1, domain='own')
    first, second = nodes.add('Twice', [x], 2, domain='own')
    nodes.add('Add', [first, second])
    nodes.check(tmp_path)
