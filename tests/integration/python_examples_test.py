"""The examples under client/python: what they compute, and what they say to a person who made a mistake."""

import pickle
import socket
import struct
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT
from text_test import TEXTS, WORDS, checkpoint, write_tokenizer

__all__ = ['checkpoint']  # a fixture

EXAMPLES = ROOT / 'client' / 'python'
sys.path[:0] = [str(EXAMPLES), str(ROOT / 'deploy' / 'models')]

import classify_photo  # noqa: E402
import connection  # noqa: E402
import semantic_search  # noqa: E402
import torch_checkpoint  # noqa: E402


def run(example, *arguments):
    return subprocess.run([sys.executable, EXAMPLES / example, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize('example', ['semantic_search.py', 'classify_photo.py'])
def test_help(example):
    result = run(example, '--help')
    assert result.returncode == 0
    assert '--prepare' in result.stdout and '--address' in result.stdout


@pytest.mark.parametrize('example,arguments,expected', [
    ('semantic_search.py', [], 'either a query or --prepare'),
    ('semantic_search.py', ['--count=0', 'query'], 'at least 1'),
    ('semantic_search.py', ['--texts=/nowhere', 'query'], '/nowhere cannot be read'),
    ('classify_photo.py', ['--prepare=models', 'photo.png'], 'either a photo or --prepare'),
])
def test_mistakes_are_named(example, arguments, expected):
    result = run(example, *arguments)
    assert result.returncode != 0
    assert expected in result.stderr
    assert 'Traceback' not in result.stderr


def test_a_server_that_is_not_there_is_named():
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))  # and never listens
        address = f'127.0.0.1:{unused.getsockname()[1]}'
        with pytest.raises(connection.Failure, match=f'no server answers at {address}'):
            connection.infer(address, 'minilm', {'x': np.zeros((1, 2), np.int64)}, 'y')


def test_a_model_that_is_not_there_is_named(shared_server):
    with pytest.raises(connection.Failure, match="no model 'nobody'"):
        connection.infer(shared_server.grpc, 'nobody', {'x': np.zeros((1, 2), np.int64)}, 'y')


def test_inference(shared_server):
    values = np.arange(16, dtype=np.float32)[None]
    np.testing.assert_array_equal(connection.infer(shared_server.grpc, 'identity', {'INPUT0': values}, 'OUTPUT0'), values)


def test_texts_are_embedded_in_batches(start, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    server = start(None, f'--model={checkpoint},name=minilm,text=embedding')
    args = semantic_search.parse_args([f'--address={server.grpc}', '--batch=2', 'a query'])
    vectors = semantic_search.embed(TEXTS, args)
    assert vectors.shape == (len(TEXTS), 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(vectors[-2:], semantic_search.embed(TEXTS[-2:], args), atol=1e-5)


def test_the_nearest_come_first():
    embeddings = np.array([[0.0, 1.0], [1.0, 0.0], [0.6, 0.8]])
    assert semantic_search.nearest(np.array([0.0, 1.0]), embeddings, 2) == [(1.0, 0), (0.8, 2)]


def test_photos_are_cropped_in_the_middle():
    assert classify_photo.crop_box(400, 200) == (112, 12, 287, 187)
    image = classify_photo.normalised(np.array([[[127, 255, 0]]], np.uint8))
    np.testing.assert_array_equal(image.ravel(), [0, 1, -127 / 128])


def test_likeliest_classes():
    (first, second) = classify_photo.likeliest(np.log(np.array([1.0, 6.0, 3.0])), 2)
    assert (first[1], second[1]) == (1, 2)
    assert first[0] == pytest.approx(0.6)


def pytorch_checkpoint(path, offset=0, name='_rebuild_tensor_v2'):
    """Writes a checkpoint as PyTorch did before 1.6, with one 2 x 2 tensor of a storage of 5 floats, transposed."""
    storage = b'\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x05NtQ'
    tensor = (b'ctorch._utils\n' + name.encode() + b'\n(' + storage[2:] + bytes([ord('K'), offset]) +
              b'K\x02K\x02\x86K\x01K\x02\x86tR')
    parts = [pickle.dumps(value, 2) for value in (torch_checkpoint.MAGIC, 1001, {})]
    parts += [b'\x80\x02}X\x06\x00\x00\x00weight' + tensor + b's.', pickle.dumps(['0'], 2)]
    path.write_bytes(b''.join(parts) + struct.pack('<q', 5) + np.arange(5, dtype=np.float32).tobytes())
    return path


def test_a_checkpoint_is_read(tmp_path):
    tensors = torch_checkpoint.load(pytorch_checkpoint(tmp_path / 'model.pth', offset=1))
    np.testing.assert_array_equal(tensors['weight'], [[1, 3], [2, 4]])


@pytest.mark.parametrize('change,expected', [
    (dict(offset=2), 'beyond its storage'),
    (dict(name='_rebuild_sparse_tensor'), 'not part of a dictionary of tensors'),
])
def test_a_checkpoint_that_is_wrong_is_refused(tmp_path, change, expected):
    with pytest.raises(ValueError, match=expected):
        torch_checkpoint.load(pytorch_checkpoint(tmp_path / 'model.pth', **change))


def test_a_checkpoint_runs_nothing(tmp_path):
    magic, version, machine = (pickle.dumps(value, 2) for value in (torch_checkpoint.MAGIC, 1001, {}))
    attack = b'cos\nsystem\n(X\x04\x00\x00\x00truetR.'
    (tmp_path / 'model.pth').write_bytes(magic + version + machine + b'\x80\x02' + attack)
    with pytest.raises(ValueError, match='os.system is not part'):
        torch_checkpoint.load(tmp_path / 'model.pth')
