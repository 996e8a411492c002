"""Operators that only the interpreter runs equal ONNX Runtime's, in the variants that ONNX's own tests lack: many nodes
in one model, one a variant."""

import itertools

import numpy
import onnx
import pytest
from onnx import helper

from conformance_test import expected_outputs, run_model

TOLERANCE = 2e-5  # largest difference over largest magnitude, per output
STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 6, 4
LENGTHS = [5, 2, 1]


class Nodes:
    """A model that grows node by node; whatever a node makes is an output."""

    def __init__(self, opset):
        self.opset, self.random = opset, numpy.random.default_rng(7)
        self.nodes, self.constants, self.outputs, self.inputs, self.functions = [], [], [], {}, []

    def draw(self, *shape):
        return self.random.normal(0, 0.6, shape).astype(numpy.float32)

    def constant(self, array):
        name = f'c{len(self.constants)}'
        self.constants.append(onnx.numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def input(self, name, array):
        self.inputs[name] = array
        return name

    def add(self, op, inputs, outputs=1, **attributes):
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        names = [f'{op}_{len(self.nodes)}_{i}' if want else '' for i, want in enumerate(wanted)]
        inputs = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        self.outputs += [name for name in names if name]
        return names

    def check(self, folder, tolerance=TOLERANCE, compute=expected_outputs):
        tensor = onnx.helper.np_dtype_to_tensor_dtype
        model = helper.make_model(
            helper.make_graph(
                self.nodes, 'nodes',
                [helper.make_tensor_value_info(name, tensor(array.dtype), array.shape)
                 for name, array in self.inputs.items()],
                [onnx.ValueInfoProto(name=name) for name in self.outputs], self.constants),
            opset_imports=[helper.make_opsetid('', self.opset), helper.make_opsetid('com.microsoft', 1),
                           helper.make_opsetid('ai.onnx.ml', 2), helper.make_opsetid('own', 1)],
            ir_version=8 if self.opset < 21 else 10, functions=self.functions)
        onnx.save(model, folder / 'model.onnx')
        expected = compute(folder / 'model.onnx', self.inputs)
        actual, said = run_model(folder / 'model.onnx', self.inputs, folder)
        assert actual.keys() == expected.keys()
        for name, array in expected.items():
            assert actual[name].shape == array.shape, name
            assert actual[name].dtype == array.dtype, name
            if array.dtype.kind != 'f':
                assert (actual[name] == array).all(), name
            elif array.size > 0:
                difference = numpy.abs(actual[name] - array).max() / max(numpy.abs(array).max(), 1e-30)
                assert difference <= tolerance, f'{name}: {difference}'
        return said


def recurrent(nodes, op, gates, outputs, *, hidden, planned, directions=1, bias=True, lengths=None, initial=False,
              peepholes=False, **attributes):
    """A node with drawn weights, which are inputs of the model unless they are to be planned, and then mostly zeros;
    what is not asked for is left out."""
    def weight(inputs):
        drawn = nodes.draw(directions, gates * hidden, inputs)
        drawn[nodes.random.random(drawn.shape) < (0.8 if planned else 0)] = 0
        return drawn if planned else nodes.input(f'weight{len(nodes.inputs)}', drawn)

    inputs = ['x', weight(INPUTS), weight(hidden),
              nodes.draw(directions, 2 * gates * hidden) if bias else '',
              '' if lengths is None else numpy.array(lengths, numpy.int32),
              nodes.draw(directions, BATCH, hidden) if initial else '']
    if op == 'LSTM':
        inputs.append(nodes.draw(directions, BATCH, hidden) if initial else '')
        inputs.append(nodes.draw(directions, 3 * hidden) if peepholes else '')
    while isinstance(inputs[-1], str) and not inputs[-1]:
        inputs.pop()
    nodes.add(op, inputs, outputs, hidden_size=hidden, **attributes)


VARIANTS = (
    {},
    {'direction': 'reverse', 'lengths': LENGTHS, 'initial': True},
    {'direction': 'bidirectional', 'directions': 2},
    {'direction': 'bidirectional', 'directions': 2, 'lengths': LENGTHS, 'initial': True, 'clip': 0.3},
    {'bias': False, 'initial': True},
)


# Units whose products fill vectors, and do not.
@pytest.mark.parametrize('hidden, planned', ((4, False), (4, True), (32, True)))
@pytest.mark.parametrize('op, gates, outputs, more', (
    ('LSTM', 4, 3, (
        {'peepholes': True, 'initial': True},
        {'directions': 2, 'direction': 'bidirectional', 'peepholes': True, 'lengths': LENGTHS},
        {'input_forget': 1, 'initial': True},
        {'activations': ['HardSigmoid', 'Softsign', 'ScaledTanh'], 'activation_alpha': [0.3, 0.8],
         'activation_beta': [0.4, 0.7]},
        {'activations': ['Sigmoid', 'Relu', 'Elu']},
    )),
    ('GRU', 3, 2, (
        {'linear_before_reset': 1},
        {'linear_before_reset': 1, 'directions': 2, 'direction': 'bidirectional', 'lengths': LENGTHS, 'initial': True},
        {'linear_before_reset': 1, 'bias': False},
        {'activations': ['HardSigmoid', 'LeakyRelu'], 'activation_alpha': [0.25, 0.05], 'activation_beta': [0.45]},
    )),
    ('RNN', 1, 2, (
        {'activations': ['Relu']},
        {'activations': ['Affine'], 'activation_alpha': [0.5], 'activation_beta': [0.1]},
        {'activations': ['LeakyRelu', 'ThresholdedRelu'], 'activation_alpha': [0.2, 0.3], 'directions': 2,
         'direction': 'bidirectional'},
    )),
))
def test_recurrent(op, gates, outputs, more, hidden, planned, tmp_path):
    nodes = Nodes(14)
    nodes.input('x', nodes.draw(STEPS, BATCH, INPUTS))
    for variant in VARIANTS + more:
        recurrent(nodes, op, gates, outputs, hidden=hidden, planned=planned, **variant)
    said = nodes.check(tmp_path)
    assert (' 0 interpreted nodes' in said) == planned, said


EQUATIONS = (
    ('bhid,bhjd->bhij', (2, 3, 4, 5), (2, 3, 6, 5)),
    ('bhij,bhjd->bihd', (2, 3, 4, 6), (2, 3, 6, 5)),
    ('bchw,hkc->bkhw', (2, 3, 4, 5), (4, 6, 3)),
    ('...ij,jk', (2, 3, 4), (4, 5)),
    ('...ij,...jk->...ik', (2, 5, 3, 4), (2, 5, 4, 2)),
    ('ij->ji', (3, 4)),
    ('ij', (3, 4)),
    ('ii->i', (4, 4)),
    ('bii->b', (2, 4, 4)),
    ('ijk->', (2, 3, 4)),
    ('i,j->ij', (3,), (4,)),
    ('ij,ij->i', (3, 4), (3, 4)),
    ('ijk,jl,kl->il', (2, 3, 4), (3, 5), (4, 5)),
    ('ij,k->i', (3, 4), (5,)),
    ('b i , b o -> b i o', (2, 3), (2, 4)),
)


def test_einsum(tmp_path):
    nodes = Nodes(12)
    nodes.input('x', nodes.draw(1))
    for equation, *shapes in EQUATIONS:
        nodes.add('Einsum', [nodes.draw(*shape) for shape in shapes], equation=equation)
    nodes.add('Einsum', [numpy.arange(6).reshape(2, 3), numpy.arange(12).reshape(3, 4)], equation='ij,jk->ik')
    nodes.check(tmp_path)


def test_grid_sample(tmp_path):
    nodes = Nodes(16)
    image = nodes.input('x', nodes.draw(2, 3, 5, 7))
    grid = (2.2 * nodes.random.random((2, 4, 6, 2)) - 1.1).astype(numpy.float32)
    grid[0, 0, 0] = -3.7, 2.9  # far outside
    for mode, padding, align in itertools.product(('bilinear', 'nearest', 'bicubic'),
                                                  ('zeros', 'border', 'reflection'), (0, 1)):
        nodes.add('GridSample', [image, grid], mode=mode, padding_mode=padding, align_corners=align)
    nodes.check(tmp_path)


def test_roi_align(tmp_path):
    nodes = Nodes(16)
    image = nodes.input('x', nodes.draw(2, 3, 10, 12))
    rois = numpy.array([[0, 0, 11, 9], [2.3, 1.7, 5.5, 8.1], [-4, -4, 30, 20], [5, 5, 5.2, 5.3]], numpy.float32)
    images = numpy.array([0, 1, 1, 0])
    for mode, corners, sampling in itertools.product(('avg', 'max'), ('half_pixel', 'output_half_pixel'), (0, 2)):
        nodes.add('RoiAlign', [image, rois, images], mode=mode, coordinate_transformation_mode=corners,
                  sampling_ratio=sampling, output_height=3, output_width=2, spatial_scale=0.75)
    nodes.check(tmp_path)


def test_non_max_suppression(tmp_path):
    nodes = Nodes(11)
    corners = nodes.random.random((2, 60, 2)) * 20
    boxes = numpy.concatenate([corners, corners + nodes.random.random((2, 60, 2)) * 6], axis=2).astype(numpy.float32)
    scores = nodes.input('x', nodes.random.random((2, 3, 60)).astype(numpy.float32))
    flipped = boxes[:, :, [2, 1, 0, 3]]
    for given, centred in ((boxes, 0), (flipped, 0), (boxes, 1)):
        for most, overlap, score in ((100, 0.5, 0.3), (4, 0.2, 0.0), (100, 0.0, 0.6)):
            nodes.add('NonMaxSuppression', [given, scores, numpy.array([most]), numpy.array([overlap], numpy.float32),
                                            numpy.array([score], numpy.float32)], center_point_box=centred)
    nodes.check(tmp_path)


def test_unique_and_fourier(tmp_path):
    nodes = Nodes(17)
    whole = nodes.random.integers(0, 4, (4, 3, 2))
    nodes.input('x', nodes.draw(1))
    for axis in ({}, {'axis': 0}, {'axis': 1}, {'axis': -1}):
        for ordered in (0, 1):
            nodes.add('Unique', [whole[:, :1] if axis else whole, ], 4, sorted=ordered, **axis)
    for length in (8, 12, 15, 49, 14):
        signal = nodes.draw(2, length, 3, 1)
        nodes.add('DFT', [signal], axis=1)
        nodes.add('DFT', [signal], axis=1, onesided=1)
        nodes.add('DFT', [nodes.draw(2, 3, length, 2)], axis=2, inverse=1)
    nodes.add('DFT', [nodes.draw(2, 10, 1), numpy.array(16)], axis=1)
    nodes.add('STFT', [nodes.draw(2, 40, 1), numpy.array(5), nodes.draw(12), numpy.array(12)])
    nodes.add('STFT', [nodes.draw(2, 40, 1), numpy.array(7), '', numpy.array(9)], onesided=0)
    nodes.check(tmp_path)
