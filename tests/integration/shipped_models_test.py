"""The shipped models through gRPC: equal to ONNX Runtime, and as accurate as their card says."""

import numpy
import onnxruntime
import pytest
import tritonclient.grpc as triton

from conftest import DENSE, SANITIZED, SHIPPED, SPARSE

TOLERANCE = 1e-4  # largest difference over largest magnitude


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    import subprocess

    from conftest import Repository, Server, program
    directory = tmp_path_factory.mktemp('shipped')
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models').shipped(SPARSE).shipped(DENSE)
    packed = directory / 'packed.swz'
    subprocess.run([program('swizzle-pack'), 'pack', SHIPPED / f'{SPARSE}.onnx', packed], check=True, timeout=300)
    server = Server(repository.file('packed', 'model.swz', packed), directory)
    yield server
    server.kill()


def served(server, model, images):
    with triton.InferenceServerClient(server.grpc) as client:
        tensor = triton.InferInput('image', list(images.shape), 'FP32')
        tensor.set_data_from_numpy(images)
        return client.infer(model, [tensor]).as_numpy('logits')


@pytest.mark.parametrize('batch', [1, 2, 7, 32, 64])
@pytest.mark.parametrize('model, file', [(SPARSE, SPARSE), (DENSE, DENSE), ('packed', SPARSE)])
def test_equals_onnx_runtime(server, test_images, model, file, batch):
    images = test_images[0][100:100 + batch]
    session = onnxruntime.InferenceSession(SHIPPED / f'{file}.onnx', providers=['CPUExecutionProvider'])
    expected = session.run(['logits'], {'image': images})[0]
    difference = numpy.abs(served(server, model, images) - expected).max() / numpy.abs(expected).max()
    assert difference <= TOLERANCE


@pytest.mark.skipif(SANITIZED, reason='too slow under a sanitizer')
def test_accuracy(server, test_images):
    """All 10,000 images: at least 92.5 %, and within one point of the dense twin."""
    images, labels = test_images
    correct = {}
    for model in ('packed', DENSE):
        logits = numpy.concatenate([served(server, model, images[i:i + 50]) for i in range(0, len(images), 50)])
        correct[model] = (logits.argmax(axis=1) == labels).mean() * 100
    assert correct['packed'] >= 92.5
    assert correct['packed'] >= correct[DENSE] - 1
