"""Repositories with models that can't be served: each is reported, and the good ones beside them serve."""

import os
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from conftest import SHIPPED, SPARSE, program

ONNX = SHIPPED / f'{SPARSE}.onnx'


@pytest.fixture(scope='module')
def packed(tmp_path_factory):
    """The shipped sparse model as a .swz file."""
    file = tmp_path_factory.mktemp('packed') / 'model.swz'
    subprocess.run([program('swizzle-pack'), 'pack', str(ONNX), str(file)], check=True, timeout=300)
    return file


def infer(client, model, images):
    tensor = triton.InferInput('image', list(images.shape), 'FP32')
    tensor.set_data_from_numpy(images)
    return client.infer(model, [tensor]).as_numpy('logits')


def flipped(content, position):
    damaged = bytearray(content)
    damaged[position] ^= 0x10
    return bytes(damaged)


def test_broken_models_do_not_keep_good_ones_from_serving(start, repository, packed, test_images):
    onnx, swz = ONNX.read_bytes(), packed.read_bytes()
    broken = {
        'onnx_truncated': ('model.onnx', onnx[:len(onnx) // 2]),
        'onnx_cut_at_the_end': ('model.onnx', onnx[:-1]),
        'onnx_empty': ('model.onnx', b''),
        'onnx_garbage': ('model.onnx', os.urandom(10000)),
        'onnx_text': ('model.onnx', b'<!DOCTYPE html><html>404</html>\n'),
        'swz_truncated': ('model.swz', swz[:len(swz) // 2]),
        'swz_cut_at_the_end': ('model.swz', swz[:-1]),
        'swz_header_only': ('model.swz', swz[:16]),
        'swz_empty': ('model.swz', b''),
        'swz_garbage': ('model.swz', os.urandom(10000)),
        'swz_damaged_head': ('model.swz', flipped(swz, 20)),
        'swz_damaged_middle': ('model.swz', flipped(swz, len(swz) // 2)),
        'swz_damaged_end': ('model.swz', flipped(swz, len(swz) - 1)),
        'swz_called_onnx': ('model.onnx', swz),
        'onnx_called_swz': ('model.swz', onnx),
    }
    for name, (file, content) in broken.items():
        repository.file(name, file, content)
    repository.file('good_onnx', 'model.onnx', ONNX).file('good_swz', 'model.swz', packed)
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.is_server_live()
        for name in broken:
            with pytest.raises(InferenceServerException) as raised:
                infer(client, name, test_images[0][:1])
            assert 'INTERNAL' in raised.value.status(), name
            assert str(repository) not in raised.value.message(), 'a message to a client names no path'
            assert name in server.log()
        onnx_logits = infer(client, 'good_onnx', test_images[0][:4])
        swz_logits = infer(client, 'good_swz', test_images[0][:4])
    numpy.testing.assert_allclose(onnx_logits, swz_logits, rtol=1e-4, atol=1e-4)
    assert server.metric('swizzle_model_load_failures_total') == len(broken)
    assert server.stop() == 0


@pytest.mark.parametrize('config, word', [
    ('max_batch_size: 8\nflying: true', 'flying'),
    ('sequence_batching { oldest { max_candidate_sequences: 4 } }', 'sequence_batching'),
    ('max_batch_size: -1', 'max_batch_size'),
    ('backend: "python"', 'python'),
    ('name: "another"', 'another'),
    ('parameters { key: "colour" value { string_value: "red" } }', 'colour'),
    ('input [ { name: "picture" data_type: TYPE_FP32 dims: [ 1, 28, 28 ] } ]', 'picture'),
    ('input [ { name: "image" data_type: TYPE_INT8 dims: [ 1, 28, 28 ] } ]', 'image'),
    ('instance_group [ { count: 100000 } ]', 'count'),
    ('{{{', '1:'),
])
def test_config_that_can_not_be_honoured_is_refused_by_name(start, repository, config, word):
    repository.shipped().config(SPARSE, config).identity()
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.is_model_ready('identity')
        with pytest.raises(InferenceServerException) as raised:
            client.get_model_metadata(SPARSE)
    assert word in raised.value.message() or word in server.log(), server.log()


def test_config_is_honoured(start, repository, test_images):
    repository.shipped().config(SPARSE, f'''
        name: "{SPARSE}"
        max_batch_size: 4
        input [ {{ name: "image" data_type: TYPE_FP32 dims: [ 1, 28, 28 ] }} ]
        output [ {{ name: "logits" data_type: TYPE_FP32 dims: [ 10 ] }} ]
        instance_group [ {{ count: 2 }} ]
        dynamic_batching {{ max_queue_delay_microseconds: 100 }}
        ''')
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        config = client.get_model_config(SPARSE).config
        assert config.max_batch_size == 4
        assert config.instance_group[0].count == 2
        assert config.dynamic_batching.max_queue_delay_microseconds == 100
        assert infer(client, SPARSE, test_images[0][:4]).shape == (4, 10)
        with pytest.raises(InferenceServerException):
            infer(client, SPARSE, test_images[0][:5])


def test_what_changes_nothing_is_accepted_with_a_line_in_the_log(start, repository, test_images):
    """A file as people have it, whose model was served by ONNX Runtime on a GPU."""
    repository.file(SPARSE, 'net.onnx', ONNX).config(SPARSE, f'''
        name: "{SPARSE}"
        platform: "onnxruntime_onnx"
        default_model_filename: "net.onnx"
        version_policy: {{ latest {{ num_versions: 1 }} }}
        max_batch_size: 4
        input [ {{ name: "image" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 1, 28, 28 ] }} ]
        output [ {{ name: "logits" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "labels.txt" }} ]
        instance_group [ {{ count: 1 kind: KIND_GPU gpus: [ 0 ] }} ]
        optimization {{
          graph : {{ level : 1 }}
          execution_accelerators {{ gpu_execution_accelerator : [ {{ name : "tensorrt" }} ] }}
        }}
        parameters {{ key: "intra_op_thread_count" value: {{ string_value: "2" }} }}
        ''')
    server = start(repository, '--device=cpu')
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.get_model_config(SPARSE).config.input[0].format == 2, 'clients read how images are to be given'
        assert infer(client, SPARSE, test_images[0][:4]).shape == (4, 10)
    lines = [line for line in server.log().splitlines() if f'model={SPARSE}' in line]
    for field in ('input.format', 'output.label_filename', 'instance_group.kind',
                  'optimization.graph', 'optimization.execution_accelerators', 'parameters.intra_op_thread_count'):
        assert sum(f'field={field} ' in line for line in lines) == 1, f'{field}: {lines}'
    assert sum('field=' in line for line in lines) == 6, lines


def test_tensors_are_reshaped(start, repository, test_images):
    repository.shipped().config(SPARSE, '''
        max_batch_size: 4
        input [ { name: "image" data_type: TYPE_FP32 dims: [ 784 ] reshape { shape: [ 1, 28, 28 ] } } ]
        output [ { name: "logits" data_type: TYPE_FP32 dims: [ 2, 5 ] reshape { shape: [ 10 ] } } ]
        ''').file('plain', 'model.onnx', ONNX)
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        metadata = client.get_model_metadata(SPARSE)
        assert list(metadata.inputs[0].shape) == [-1, 784] and list(metadata.outputs[0].shape) == [-1, 2, 5]
        expected = infer(client, 'plain', test_images[0][:3])
        assert numpy.array_equal(infer(client, SPARSE, test_images[0][:3].reshape(3, 784)).reshape(3, 10), expected)
        with pytest.raises(InferenceServerException, match=r'\[-1,784\] is expected'):
            infer(client, SPARSE, test_images[0][:3])


def test_latest_version_serves(start, repository, test_images):
    repository.file('model', 'model.onnx', ONNX, version=1).file('model', 'model.onnx', ONNX, version=10)
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.get_model_metadata('model').versions == ['10']
        assert client.is_model_ready('model', '10')
        tensor = triton.InferInput('image', [1, 1, 28, 28], 'FP32')
        tensor.set_data_from_numpy(test_images[0][:1])
        assert client.infer('model', [tensor]).get_response().model_version == '10'


def test_an_empty_repository_is_told_of(start, tmp_path):
    """A model that was put one folder too high looks like no model at all."""
    (tmp_path / 'models').mkdir()
    (tmp_path / 'models' / 'model.onnx').write_bytes(ONNX.read_bytes())
    server = start(tmp_path / 'models')
    assert 'there is no model' in server.log()
    assert 'MODEL/1/model.onnx' in server.log()


def test_missing_repository_is_an_error():
    result = subprocess.run([program('swizzle-server'), '--model-repository=no/such/directory'], capture_output=True,
                            text=True, timeout=60)
    assert result.returncode != 0
    assert 'no/such/directory' in result.stderr + result.stdout


def test_wrong_command_line_is_an_error():
    repository = '--model-repository=.'
    for flags in ([], ['--fly'], [repository, '--grpc-address=8001'], [repository, '--device=tpu']):
        result = subprocess.run([program('swizzle-server'), *flags], capture_output=True, text=True, timeout=60)
        assert result.returncode == 2, flags
        assert result.stderr, flags
