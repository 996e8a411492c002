"""The shipped sparse encoders: what their files hold, read without the scripts that wrote them, and how near one is."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy as np
import onnx
import pytest

from conftest import SHIPPED, program

UNSTRUCTURED, VECTORS = 'minilm_wordnet_sparse90', 'minilm_wordnet_shfl_bw64_sparse90'
DTYPES = {'F16': np.float16, 'I64': np.int64, 'U8': np.uint8}
HIDDEN, HEADS, LAYERS = 384, 12, 6
SAMPLE = pathlib.Path(__file__).resolve().parents[1] / 'testdata' / 'minilm_sample.npz'  # encoder_sample.py made it


def read_tensors(model):
    """The file's tensors by name, read as the format's description has it."""
    data = (SHIPPED / f'{model}.safetensors').read_bytes()
    (length,) = struct.unpack_from('<Q', data)
    header = json.loads(data[8:8 + length])
    header.pop('__metadata__', None)
    return {name: np.frombuffer(data[8 + length:][slice(*entry['data_offsets'])],
                                DTYPES[entry['dtype']]).reshape(entry['shape']) for name, entry in header.items()}


def stated(model):
    return json.loads((SHIPPED / f'{model}.json').read_text())


def matrices(tensors):
    """The sparse matrices, made dense."""
    dense = {}
    for name in sorted(name.removesuffix('.bitmask') for name in tensors if name.endswith('.bitmask')):
        dense[name] = np.zeros(tensors[f'{name}.shape'], np.float16)
        kept = np.unpackbits(tensors[f'{name}.bitmask'], axis=1, bitorder='little', count=dense[name].shape[1])
        dense[name][kept.astype(bool)] = tensors[f'{name}.compressed']
    return dense


@pytest.mark.parametrize('model', [UNSTRUCTURED, VECTORS])
def test_every_matrix_is_a_valid_bitmask_of_the_stated_sparsity(model):
    tensors = read_tensors(model)
    names = sorted(name.removesuffix('.bitmask') for name in tensors if name.endswith('.bitmask'))
    assert len(names) == 6 * LAYERS
    for name in names:
        rows, columns = tensors[f'{name}.shape']
        bits = np.unpackbits(tensors[f'{name}.bitmask'], axis=1, bitorder='little')
        counts = bits.sum(axis=1, dtype=np.int64)
        assert bits.shape == (rows, columns)
        assert tensors[f'{name}.compressed'].shape == (counts.sum(),)
        assert np.all(tensors[f'{name}.compressed'] != 0)
        np.testing.assert_array_equal(tensors[f'{name}.row_offsets'], np.cumsum(counts) - counts)
        sparsity = round(1 - counts.sum() / (rows * columns), 4)
        # Whole vectors go: the share is the nearest that they give.
        assert sparsity == stated(model)['layer_sparsity'][name] >= (0.9 if model == UNSTRUCTURED else 0.899)


@pytest.mark.parametrize('model', [UNSTRUCTURED, VECTORS])
def test_the_file_holds_the_encoder_alone(model):
    dense = {name: tensor.shape for name, tensor in read_tensors(model).items() if name.endswith(('.weight', '.bias'))}
    assert all(name.startswith('encoder.layer.') for name in dense)
    assert dense['encoder.layer.5.output.LayerNorm.weight'] == (HIDDEN,)
    assert (SHIPPED / f'{model}.safetensors').stat().st_size < 4_000_000


def test_its_figures_are_within_the_bounds_set_beforehand():
    results = stated(UNSTRUCTURED)['results']
    assert results['mean_cosine'] >= 0.9
    assert results['knn_accuracy_sparse'] >= results['knn_accuracy_dense'] - 2


def test_vectors_are_within_a_point_of_the_dense_model():
    results = stated(VECTORS)['results']
    assert results['knn_accuracy_sparse'] >= results['knn_accuracy_dense'] - 1


def test_rows_keep_their_columns_by_64():
    for name, matrix in matrices(read_tensors(VECTORS)).items():
        _, sizes = np.unique(matrix != 0, axis=0, return_counts=True)
        assert np.all(sizes % 64 == 0) and len(sizes) > 1, name


@pytest.fixture(scope='module')
def small_vocabulary(tmp_path_factory):
    """The encoder with the embeddings of a sample of glosses, as an ONNX model; and the sample."""
    sys.path.insert(0, str(SHIPPED))
    import minilm_onnx

    sample = np.load(SAMPLE)
    tensors = read_tensors(VECTORS)
    weights = {name: sample[name].astype(np.float32) for name in sample.files if name.startswith('embeddings.')}
    weights |= {name: tensor.astype(np.float32) for name, tensor in (tensors | matrices(tensors)).items()}
    config = {'hidden_size': HIDDEN, 'num_attention_heads': HEADS, 'num_hidden_layers': LAYERS, 'layer_norm_eps': 1e-12,
              'max_position_embeddings': len(sample['embeddings.position_embeddings.weight'])}
    file = tmp_path_factory.mktemp('encoder') / 'model.onnx'
    onnx.save(minilm_onnx.make_model(weights, config), file)
    return file, sample


def test_is_stored_and_run_in_vectors(small_vocabulary):
    packed = small_vocabulary[0].with_suffix('.swz')
    subprocess.run([program('swizzle-pack'), 'pack', small_vocabulary[0], packed, '--format=shfl-bw'], check=True,
                   timeout=300)
    text = subprocess.run([program('swizzle-pack'), 'inspect', packed, '-o', 'json', '--tuning-budget=0'], check=True,
                          timeout=300, capture_output=True, text=True).stdout
    linear = [layer['weight'] for layer in json.loads(text)['layers'] if layer['op'] == 'Conv']
    assert [weight['format'] for weight in linear] == 4 * LAYERS * ['shfl-bw']
    assert all(weight['structure']['name'] == '16-row vectors' for weight in linear)  # the longest that has a name
    values, rows = (sum(weight[what] for weight in linear) for what in ('nonzeros', 'rows'))
    # An index for each 64 values, the order of rows, and a little: vectors of 32 would take more.
    assert sum(weight['stored_bytes'] for weight in linear) < 4 * (values * (1 + 1.25 / 64) + rows)


def test_a_sample_is_as_near_to_the_dense_model_as_its_card_says(small_vocabulary, tmp_path):
    model, sample = small_vocabulary
    lengths = sample['lengths'].astype(int)
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = sample['tokens']
    inputs = {'input_ids': ids, 'attention_mask': mask.astype(np.int64), 'token_type_ids': np.zeros_like(ids)}
    for name, array in inputs.items():
        np.save(tmp_path / f'{name}.npy', array)
    files = [f'--input={name}={tmp_path / name}.npy' for name in inputs]
    subprocess.run([program('swizzle-pack'), 'run', model, *files, f'--output-dir={tmp_path}'], check=True, timeout=300,
                   capture_output=True)
    hidden = np.load(tmp_path / 'last_hidden_state.npy')
    means = np.where(mask[:, :, None], hidden, 0).sum(1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosine = np.sum(means * sample['sentences'].astype(np.float32), axis=1).mean()
    assert abs(cosine - stated(VECTORS)['sample_mean_cosine']) < 1e-3
    assert abs(cosine - stated(VECTORS)['results']['mean_cosine']) < 0.03
