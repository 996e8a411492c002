"""The shipped sparse encoder: what its file holds, read without the scripts that wrote it."""

import json
import struct

import numpy as np

from conftest import SHIPPED

FILE = SHIPPED / 'minilm_wordnet_sparse90.safetensors'
DTYPES = {'F16': np.float16, 'I64': np.int64, 'U8': np.uint8}
HIDDEN, LAYERS = 384, 6


def read_tensors():
    """The file's tensors by name, read as the format's description has it."""
    data = FILE.read_bytes()
    (length,) = struct.unpack_from('<Q', data)
    header = json.loads(data[8:8 + length])
    header.pop('__metadata__', None)
    return {name: np.frombuffer(data[8 + length:][slice(*entry['data_offsets'])],
                                DTYPES[entry['dtype']]).reshape(entry['shape']) for name, entry in header.items()}


def test_every_matrix_is_a_valid_bitmask_of_the_stated_sparsity():
    tensors = read_tensors()
    names = sorted(name.removesuffix('.bitmask') for name in tensors if name.endswith('.bitmask'))
    assert len(names) == 6 * LAYERS
    stated = json.loads((SHIPPED / 'minilm_wordnet_sparse90.json').read_text())
    for name in names:
        rows, columns = tensors[f'{name}.shape']
        bits = np.unpackbits(tensors[f'{name}.bitmask'], axis=1, bitorder='little')
        counts = bits.sum(axis=1, dtype=np.int64)
        assert bits.shape == (rows, columns)
        assert tensors[f'{name}.compressed'].shape == (counts.sum(),)
        assert np.all(tensors[f'{name}.compressed'] != 0)
        np.testing.assert_array_equal(tensors[f'{name}.row_offsets'], np.cumsum(counts) - counts)
        assert round(1 - counts.sum() / (rows * columns), 4) == stated['layer_sparsity'][name] >= 0.9


def test_the_file_holds_the_encoder_alone():
    dense = {name: tensor.shape for name, tensor in read_tensors().items() if name.endswith(('.weight', '.bias'))}
    assert all(name.startswith('encoder.layer.') for name in dense)
    assert dense['encoder.layer.5.output.LayerNorm.weight'] == (HIDDEN,)
    assert FILE.stat().st_size < 4_000_000


def test_its_figures_are_within_the_bounds_set_beforehand():
    results = json.loads((SHIPPED / 'minilm_wordnet_sparse90.json').read_text())['results']
    assert results['mean_cosine'] >= 0.9
    assert results['knn_accuracy_sparse'] >= results['knn_accuracy_dense'] - 2
