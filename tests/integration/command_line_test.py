"""The programs `swizzle` and `swizzle-pack` as a person or a script runs them."""

import json
import subprocess

import numpy
import pytest

from conftest import SHIPPED, SPARSE, program


def run(name, *arguments, code=0):
    result = subprocess.run([program(name), *map(str, arguments)], capture_output=True, text=True, timeout=300,
                            stdin=subprocess.DEVNULL)
    assert result.returncode == code, result.stderr
    if code:
        assert result.stderr.startswith(f'{name}: ') and result.stderr.count('\n') == 1, result.stderr
    return result.stderr if code else result.stdout


@pytest.fixture
def swizzle(shared_server):
    return lambda *arguments, code=0: run('swizzle', f'--address={shared_server.grpc}', *arguments, code=code)


def test_health(swizzle):
    assert 'ready' in swizzle('health')
    assert 'ready' in swizzle('health', SPARSE, '--wait=10')
    assert 'nobody' in swizzle('health', 'nobody', code=1)


def test_no_server_has_its_own_exit_code():
    assert '127.0.0.1:1' in run('swizzle', '--address=127.0.0.1:1', 'health', code=3)


def test_metadata(swizzle):
    assert 'image FP32 [-1,1,28,28]' in swizzle('metadata', SPARSE)
    metadata = json.loads(swizzle('metadata', SPARSE, '-o', 'json'))
    properties = metadata['properties']
    assert float(properties['swizzle_sparsity']) > 0.8
    assert int(properties['swizzle_stored_bytes']) < int(properties['swizzle_dense_bytes']) / 2


def test_infer(swizzle, tmp_path, test_images):
    images, labels = test_images
    numpy.save(tmp_path / 'images.npy', images[:8])
    arguments = ('infer', SPARSE, '--input', f'image={tmp_path}/images.npy')
    result = json.loads(swizzle(*arguments, '--top=1', '-o', 'json', '--output-dir', tmp_path))
    logits = numpy.load(tmp_path / 'logits.npy')
    numpy.testing.assert_allclose(numpy.ravel(result['outputs'][0]['data']), logits.ravel(), rtol=1e-6)
    best = [row[0]['index'] for row in result['outputs'][0]['top']]
    assert best == logits.argmax(axis=1).tolist()
    assert sum(best == labels[:8]) >= 6
    assert 'row 7: ' in swizzle(*arguments, '--top=3')
    numpy.save(tmp_path / 'wide.npy', images[:8].astype(numpy.float64))
    assert 'FP64' in swizzle('infer', SPARSE, '--input', f'image={tmp_path}/wide.npy', code=1)
    assert 'no file' in swizzle('infer', SPARSE, '--input', 'image=nothing.npy', code=2)


def test_bench(swizzle):
    report = json.loads(swizzle('bench', SPARSE, '--concurrency=2', '--requests=20', '--batch=4', '-o', 'json'))
    assert report['requests'] == 20
    assert report['latency_ms']['p99'] >= report['latency_ms']['p50'] > 0
    assert report['server_compute_ms']['p50'] > 0
    assert 'server compute' in swizzle('bench', 'identity', '--requests=5')
    assert '8' in swizzle('bench', 'identity', '--requests=5', '--batch=9', code=1)


def test_classify(swizzle, tmp_path, test_images):
    images, labels = test_images
    numpy.save(tmp_path / 'images.npy', images[:100])
    numpy.save(tmp_path / 'labels.npy', labels[:100])
    report = json.loads(swizzle('classify', SPARSE, f'--images={tmp_path}/images.npy',
                                f'--labels={tmp_path}/labels.npy', f'--predictions={tmp_path}/predictions.npy',
                                '--batch=32', '-o', 'json'))
    predictions = numpy.load(tmp_path / 'predictions.npy')
    assert report['correct'] == (predictions == labels[:100]).sum() >= 85


def pack(*arguments, code=0):
    return run('swizzle-pack', *arguments, code=code)


def test_inspect():
    model = SHIPPED / f'{SPARSE}.onnx'
    report = json.loads(pack('inspect', model, '--tuning-budget=0', '-o', 'json'))
    assert len(report['layers']) == 29
    assert sum((layer.get('weight') or {}).get('format') == 'csr' for layer in report['layers']) == 13
    assert '/blocks/blocks.12/pointwise/conv/Conv' in [layer['name'] for layer in report['layers']]
    assert '/blocks/blocks.12/po...nv/Conv' in pack('inspect', model, '--tuning-budget=0')


def test_prune_pack_validate(tmp_path):
    dense = SHIPPED / 'mobilenet_v1_fashion.onnx'
    pruned, packed = tmp_path / 'pruned.onnx', tmp_path / 'pruned.swz'
    pack('prune', dense, pruned, '--method=magnitude', '--sparsity=0.8')
    pack('pack', pruned, packed)
    assert packed.stat().st_size < dense.stat().st_size / 2
    assert 'equal' in pack('validate', pruned, packed)
    different = subprocess.run([program('swizzle-pack'), 'validate', dense, packed], capture_output=True, timeout=300)
    assert different.returncode == 1


def test_pack_refuses_bad_files(tmp_path):
    garbage = tmp_path / 'garbage.onnx'
    garbage.write_bytes(b'\xff' * 100)
    assert 'garbage.onnx' in pack('pack', garbage, tmp_path / 'out.swz', code=2)
    assert not (tmp_path / 'out.swz').exists()
    assert 'nothing.onnx' in pack('inspect', tmp_path / 'nothing.onnx', code=2)
    pack('fly', code=2)


def test_compressed_inputs_are_named_so(tmp_path):
    """However small zeros are once they are compressed."""
    numpy.savez_compressed(tmp_path / 'inputs.npz', image=numpy.zeros((64, 1, 28, 28), numpy.float32))
    model = SHIPPED / 'mobilenet_v1_fashion.onnx'
    said = pack('validate', model, model, f'--inputs={tmp_path}/inputs.npz', code=2)
    assert "array 'image': it is compressed; save it with numpy.savez" in said
