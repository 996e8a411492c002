"""swizzle-pack quantize of networks that split, join and enlarge their features, as detectors do: each convolution is in
whole numbers, other engines run the file, and both containers hold the same."""

import subprocess

import numpy
import onnx
import onnxruntime
import pytest

import conformance_test
import make_architectures
import quantised_test
import vision_architectures  # noqa: F401, adds to make_architectures.SMALL
from conftest import program

LEAST_DECIBELS = 25  # of the outputs, signal over noise against FP32
WHOLE = ('concat', 'conv', 'function', 'max_pool', 'resize', 'slice')  # rows that have whole numbers in these networks


def decibels(signal, other):
    return 10 * numpy.log10(numpy.square(signal).sum() / numpy.square(signal - other).sum())


def outputs_of(file, inputs, folder):
    """What Swizzle computes of the first rows."""
    name, array = next(iter(inputs.items()))
    numpy.save(folder / 'rows.npy', array)
    command = [program('swizzle-pack'), 'run', file, f'--input={name}={folder}/rows.npy', f'--output-dir={folder}/out']
    subprocess.run(command, check=True, timeout=300)
    return numpy.load(next((folder / 'out').iterdir()))


@pytest.fixture(scope='module', params=('yolov8', 'yolox'))
def quantised(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    model = make_architectures.build(request.param, make_architectures.SMALL[request.param], sparsity=0.8)
    onnx.save(onnx.shape_inference.infer_shapes(model), folder / 'real.onnx')
    shape = [8, *(dimension.dim_value for dimension in model.graph.input[0].type.tensor_type.shape.dim[1:])]
    images = {model.graph.input[0].name: numpy.random.default_rng(0).normal(0, 1, shape).astype(numpy.float32)}
    numpy.savez(folder / 'images.npz', **images)
    for container in ('onnx', 'swz'):
        subprocess.run([program('swizzle-pack'), 'quantize', f'--calibration={folder}/images.npz', folder / 'real.onnx',
                        folder / f'int8.{container}'], check=True, timeout=300)
    return folder, images


def test_is_in_whole_numbers(quantised):
    for container in ('onnx', 'swz'):
        report = quantised_test.report_of(quantised[0] / f'int8.{container}')
        kernels = [layer['kernel'] for layer in report['layers'] if (layer['kernel'] or '').startswith(WHOLE)]
        real = [kernel for kernel in kernels if '_u8' not in kernel]
        assert len(kernels) > 30 and not [kernel for kernel in real if kernel.startswith(('conv', 'resize', 'max_pool'))]
        assert len(real) <= 4, real  # the last ones, of what the model's outputs are made


def test_equals_onnx_runtime(quantised):
    folder, images = quantised
    sessions = [onnxruntime.InferenceSession(str(folder / f'{name}.onnx'), providers=['CPUExecutionProvider'])
                for name in ('real', 'int8')]
    real, expected = (session.run(None, images)[0] for session in sessions)
    assert decibels(real, expected) > LEAST_DECIBELS
    for container in ('onnx', 'swz'):
        actual = outputs_of(folder / f'int8.{container}', images, folder)
        assert decibels(real, actual) > LEAST_DECIBELS
        assert decibels(expected, actual) > LEAST_DECIBELS + 10


def test_transposed_convolutions_move_bytes(tmp_path):
    """A ConvTranspose is a convolution, whose blocks of channels then become positions: as bytes, between others."""
    random = numpy.random.default_rng(0)

    def weight(name, *shape):
        return onnx.numpy_helper.from_array(random.normal(0, .2, shape).astype(numpy.float32), name)

    make = onnx.helper.make_node
    nodes = [make('Conv', ['x', 'a'], ['p'], pads=[1] * 4), make('Relu', ['p'], ['q']),
             make('ConvTranspose', ['q', 'b'], ['r'], strides=[2, 2]), make('Relu', ['r'], ['s']),
             make('Conv', ['s', 'c'], ['t'], pads=[1] * 4), make('DepthToSpace', ['t'], ['u'], blocksize=2, mode='CRD'),
             make('Conv', ['u', 'd'], ['y'])]
    graph = onnx.helper.make_graph(
        nodes, 'decoder', [onnx.helper.make_tensor_value_info('x', onnx.TensorProto.FLOAT, ['n', 8, 12, 10])],
        [onnx.helper.make_tensor_value_info('y', onnx.TensorProto.FLOAT, ['n', 4, 48, 40])],
        [weight('a', 32, 8, 3, 3), weight('b', 32, 16, 2, 2), weight('c', 64, 16, 3, 3), weight('d', 4, 16, 1, 1)])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 17)], ir_version=8),
              tmp_path / 'real.onnx')
    images = {'x': random.normal(0, 1, (8, 8, 12, 10)).astype(numpy.float32)}
    numpy.savez(tmp_path / 'images.npz', **images)
    subprocess.run([program('swizzle-pack'), 'quantize', f'--calibration={tmp_path}/images.npz', tmp_path / 'real.onnx',
                    tmp_path / 'int8.onnx'], check=True, timeout=300)
    kernels = [layer['kernel'] for layer in quantised_test.report_of(tmp_path / 'int8.onnx')['layers']]
    assert sum(kernel.startswith('depth_to_space_full_panels_u8_') for kernel in kernels if kernel) == 2, kernels
    real, expected = (onnxruntime.InferenceSession(str(tmp_path / f'{name}.onnx'), providers=['CPUExecutionProvider'])
                      .run(None, images)[0] for name in ('real', 'int8'))
    actual = outputs_of(tmp_path / 'int8.onnx', images, tmp_path)
    assert decibels(real, actual) > LEAST_DECIBELS
    if not conformance_test.saturates():
        assert decibels(real, expected) > LEAST_DECIBELS
        assert decibels(expected, actual) > LEAST_DECIBELS + 10
