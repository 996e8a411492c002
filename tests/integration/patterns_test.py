"""deploy/models/patterns.py: what it says goes together is what swizzle-pack prune takes together."""

import sys

import numpy as np
import pytest

from conftest import SHIPPED, program

sys.path.insert(0, str(SHIPPED))

import patterns  # noqa: E402

MODEL = SHIPPED / 'resnet18_thin_fashion.onnx'
SHAPES = {'blocks.4.second.conv.weight': (64, 64, 3, 3), 'blocks.6.shortcut.conv.weight': (128, 64, 1, 1),
          'blocks.7.first.conv.weight': (128, 128, 3, 3)}


@pytest.mark.parametrize('name', [name for name, pattern in patterns.PATTERNS.items() if pattern.rows > 1])
def test_cells_are_pruned_whole(name, tmp_path):
    pattern, sparsity = patterns.PATTERNS[name], 0.8
    patterns.pruned(program('swizzle-pack'), MODEL, tmp_path / 'pruned.onnx', pattern, sparsity, set(SHAPES))
    dense, pruned = patterns.matrices(MODEL), patterns.matrices(tmp_path / 'pruned.onnx')
    for weight, matrix in pruned.items():
        if weight not in SHAPES:
            np.testing.assert_array_equal(matrix, dense[weight])
            continue
        kept = matrix != 0
        groups = patterns.groups_of(kept, pattern.rows) if pattern.method == 'shfl-bw' else None
        cells = patterns.cells_of(pattern, SHAPES[weight], groups)
        sizes, left = np.bincount(cells), np.bincount(cells, kept.reshape(-1))
        assert np.all((left == 0) | (left == sizes)), weight
        assert np.sum(left == 0) == int(sparsity * len(sizes) + 0.5), weight


def test_every_weight_is_a_cell_without_a_pattern_of_rows():
    cells = patterns.cells_of(patterns.PATTERNS['unstructured'], (4, 3, 3, 3))
    np.testing.assert_array_equal(cells, np.arange(4 * 3 * 9))


def test_groups_are_rows_that_keep_the_same_columns():
    kept = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
    groups = patterns.groups_of(kept, 2)
    assert groups[0] == groups[2] != groups[1] == groups[3]
    with pytest.raises(ValueError, match='groups of 2'):
        patterns.groups_of(np.array([[1, 0], [1, 0], [1, 0], [0, 1]], bool), 2)


def test_flags_are_those_of_the_tool():
    assert patterns.PATTERNS['Shfl-BW 64'].flags(0.9) == ['--method=shfl-bw', '--sparsity=0.9', '--vector=64']
    assert patterns.PATTERNS['2:4'].flags(0.5) == ['--method=n-m', '--sparsity=0.5', '--pattern=2:4']
