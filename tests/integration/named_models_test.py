"""Models that are served by themselves, without a repository: files and folders that --model names."""

import shutil
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from conftest import DENSE, SHIPPED, SPARSE, program, wait_until

EXPLICIT = ['--model-control=explicit', '--control-address=127.0.0.1:0']


def logits(client, model, image):
    tensor = triton.InferInput('image', list(image.shape), 'FP32')
    tensor.set_data_from_numpy(image)
    return client.infer(model, [tensor]).as_numpy('logits')


def served(client):
    return {(model.name, model.version, model.state) for model in client.get_model_repository_index().models}


def test_a_file_is_served_under_its_name(start, test_images):
    server = start(None, f'--model={SHIPPED / SPARSE}.onnx')
    with triton.InferenceServerClient(server.grpc) as client:
        assert served(client) == {(SPARSE, '1', 'READY')}
        assert logits(client, SPARSE, test_images[0][:2]).shape == (2, 10)
    assert server.stop() == 0


def test_names_folders_and_repositories_go_together(start, repository, tmp_path, test_images):
    repository.identity()
    versioned = tmp_path / 'versioned'
    for version in ('1', '3'):
        (versioned / version).mkdir(parents=True)
        shutil.copy(SHIPPED / f'{DENSE}.onnx', versioned / version / 'model.onnx')
    (versioned / 'config.pbtxt').write_text('max_batch_size: 4 version_policy { all { } }')
    server = start(repository, f'--model={versioned}/', f'--model={SHIPPED / SPARSE}.onnx,name=sparse')
    with triton.InferenceServerClient(server.grpc) as client:
        assert served(client) == {('identity', '1', 'READY'), ('sparse', '1', 'READY'), ('versioned', '1', 'READY'),
                                  ('versioned', '3', 'READY')}
        assert client.get_model_config('versioned').config.max_batch_size == 4
        assert logits(client, 'sparse', test_images[0][:2]).shape == (2, 10)
    assert server.stop() == 0


def test_operators_load_it_again_once_it_is_another(start, tmp_path, test_images):
    model = tmp_path / 'net.onnx'
    shutil.copy(SHIPPED / f'{DENSE}.onnx', model)
    (tmp_path / 'another.txt').write_text('is no part of the model')
    server = start(None, f'--model={model}', '--load-model=*', *EXPLICIT)
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        dense = logits(client, 'net', test_images[0][:2])
        control.load_model('net')
        assert 'model unchanged' in server.log()
        shutil.copy(SHIPPED / f'{SPARSE}.onnx', model)
        control.load_model('net')
        assert not numpy.array_equal(logits(client, 'net', test_images[0][:2]), dense)
        model.write_bytes(b'no model')
        with pytest.raises(InferenceServerException, match="model 'net' failed to load") as failed:
            control.load_model('net')
        assert str(tmp_path) not in str(failed.value)
    assert server.stop() == 0


def test_polling_sees_the_file_change(start, tmp_path):
    model = tmp_path / 'net.onnx'
    shutil.copy(SHIPPED / f'{DENSE}.onnx', model)
    server = start(None, f'--model={model}', '--model-control=poll', '--repository-poll-secs=1')
    wait_until(lambda: server.http('/readyz')[0] == 200, 60, 'the model')
    shutil.copy(SHIPPED / f'{SPARSE}.onnx', model)
    wait_until(lambda: 'model replaced' in server.log(), 60, 'the other model')
    assert server.stop() == 0


@pytest.mark.parametrize('given, said', [
    ('/nowhere/net.onnx', "there is no file and no folder '/nowhere/net.onnx'"),
    (f'{SHIPPED / SPARSE}.onnx,name=a b', "'a b' is no name for a model"),
    (f'{SHIPPED / SPARSE}.onnx,name=', f"give it one: {SHIPPED / SPARSE}.onnx,name=NAME")])
def test_what_cannot_be_served_is_said_in_one_line(given, said):
    done = subprocess.run([program('swizzle-server'), f'--model={given}'], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count('\n') == 1, done.stderr
