"""The shipped model behind a Cast of UINT8 images, as vision models that take pixels have one: planned, served as UINT8,
packed and quantised, and equal to ONNX Runtime on the same file."""

import json
import subprocess

import numpy
import onnx
import onnxruntime
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper

from conftest import SHIPPED, SPARSE, Repository, Server, program

TOLERANCE = 1e-4  # largest difference over largest magnitude
ORDERS = {'planes': [1, 28, 28], 'pixels': [28, 28, 1]}  # NCHW and NHWC


def with_pixels(order):
    """The shipped model, of images from 0 to 1, fed (pixels - 0) * (1 / 255)."""
    model = onnx.load(SHIPPED / f'{SPARSE}.onnx')
    graph = model.graph
    image = graph.input[0].name
    graph.input[0].CopyFrom(helper.make_tensor_value_info('pixels', TensorProto.UINT8, ['batch'] + ORDERS[order]))
    graph.initializer.append(helper.make_tensor('pixels.scale', TensorProto.FLOAT, [], [1 / 255]))
    nodes = [helper.make_node('Cast', ['pixels'], ['pixels.real'], to=TensorProto.FLOAT, name='pixels.cast')]
    if order == 'pixels':
        nodes.append(helper.make_node('Transpose', ['pixels.real'], ['pixels.nchw'], perm=[0, 3, 1, 2], name='to_nchw'))
    nodes.append(helper.make_node('Mul', [nodes[-1].output[0], 'pixels.scale'], [image], name='pixels.scaled'))
    old = list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes + old)
    return model


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp('pixels')
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models')
    for order in ORDERS:
        file = directory / f'{order}.onnx'
        onnx.save(with_pixels(order), file)
        repository.file(order, 'model.onnx', file)
    packed = directory / 'packed.swz'
    subprocess.run([program('swizzle-pack'), 'pack', directory / 'planes.onnx', packed], check=True, timeout=300)
    server = Server(repository.file('packed', 'model.swz', packed), directory)
    yield server
    server.kill()


@pytest.mark.parametrize('batch', [1, 7, 32])
@pytest.mark.parametrize('model, order', [('planes', 'planes'), ('pixels', 'pixels'), ('packed', 'planes')])
def test_equals_onnx_runtime(server, test_images, model, order, batch):
    floats = test_images[0][200:200 + batch]
    pixels = numpy.rint(floats * 255).astype(numpy.uint8).reshape([batch] + ORDERS[order])
    session = onnxruntime.InferenceSession(with_pixels(order).SerializeToString(), providers=['CPUExecutionProvider'])
    expected = session.run(['logits'], {'pixels': pixels})[0]
    with triton.InferenceServerClient(server.grpc) as client:
        metadata = client.get_model_metadata(model, as_json=True)
        assert metadata['inputs'][0]['datatype'] == 'UINT8'
        tensor = triton.InferInput('pixels', list(pixels.shape), 'UINT8')
        tensor.set_data_from_numpy(pixels)
        actual = client.infer(model, [tensor]).as_numpy('logits')
    assert numpy.abs(actual - expected).max() <= TOLERANCE * numpy.abs(expected).max()


def test_is_planned_whole(tmp_path):
    for order in ORDERS:
        onnx.save(with_pixels(order), tmp_path / 'model.onnx')
        told = subprocess.run([program('swizzle-pack'), 'inspect', '-o', 'json', '--tuning-budget=0',
                               tmp_path / 'model.onnx'], check=True, capture_output=True, text=True, timeout=300)
        report = json.loads(told.stdout)
        assert not report.get('fallback') and len(report['layers']) in (29, 30)


def test_runs_and_quantises(tmp_path, test_images):
    """The tool takes arrays of bytes, and a quantised model reads them as they are."""
    onnx.save(with_pixels('planes'), tmp_path / 'model.onnx')
    pixels = numpy.rint(test_images[0][:64] * 255).astype(numpy.uint8)
    numpy.save(tmp_path / 'pixels.npy', pixels)
    numpy.savez(tmp_path / 'calibration.npz', pixels=pixels)
    pack = program('swizzle-pack')
    subprocess.run([pack, 'quantize', f'--calibration={tmp_path}/calibration.npz', tmp_path / 'model.onnx',
                    tmp_path / 'int8.swz'], check=True, timeout=300)
    subprocess.run([pack, 'quantize', f'--calibration={tmp_path}/calibration.npz', tmp_path / 'model.onnx',
                    tmp_path / 'int8.onnx'], check=True, timeout=300)
    session = onnxruntime.InferenceSession(str(tmp_path / 'int8.onnx'), providers=['CPUExecutionProvider'])
    results = session.run(None, {'pixels': pixels})
    for model in ('model.onnx', 'int8.swz', 'int8.onnx'):
        subprocess.run([pack, 'run', tmp_path / model, f'--input=pixels={tmp_path}/pixels.npy',
                        f'--output-dir={tmp_path}/{model}.out'], check=True, timeout=300)
        results.append(numpy.load(tmp_path / f'{model}.out' / 'logits.npy'))
    for result in results:
        assert (result.argmax(1) == results[1].argmax(1)).mean() >= 0.95
