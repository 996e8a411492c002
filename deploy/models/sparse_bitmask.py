"""Reads and writes the layout `sparse-bitmask` of compressed-tensors in safetensors files.

A sparse tensor NAME of shape [rows, columns] becomes four:
  NAME with the suffix
    .shape        int64 [2]
    .compressed   [nnz], the nonzeros, row by row
    .bitmask      uint8 [rows, ceil(columns / 8)], lowest bit first
    .row_offsets  int64 [rows], where each row begins in .compressed

  [[0, 3, 0], [5, 0, 7]]  ->  shape [2, 3], compressed [3, 5, 7], bitmask [[2], [5]], row_offsets [0, 1]

Other tensors are stored as they are.
"""

import numpy as np
from safetensors import numpy as safetensors

PARTS = ('shape', 'compressed', 'bitmask', 'row_offsets')


def compress(name, dense):
    """Returns the four tensors of a matrix, by name."""
    if dense.ndim != 2:
        raise ValueError(f'{name}: rank {dense.ndim}; only matrices are stored sparse')
    present = dense != 0
    counts = present.sum(axis=1, dtype=np.int64)
    parts = (np.array(dense.shape, np.int64), dense[present], np.packbits(present, axis=1, bitorder='little'),
             np.cumsum(counts) - counts)
    return {f'{name}.{part}': value for part, value in zip(PARTS, parts)}


def decompress(name, tensors):
    """Returns the matrix whose four tensors are in `tensors`; raises ValueError where they do not fit together."""
    shape, values, bitmask, offsets = (tensors[f'{name}.{part}'] for part in PARTS)
    rows, columns = (int(n) for n in shape.reshape(-1))
    if bitmask.shape != (rows, (columns + 7) // 8):
        raise ValueError(f'{name}: the bitmask has shape {bitmask.shape}, which is not that of {rows} x {columns}')
    present = np.unpackbits(bitmask, axis=1, bitorder='little', count=columns).astype(bool)
    counts = present.sum(axis=1, dtype=np.int64)
    if values.shape != (counts.sum(),) or not np.array_equal(offsets, np.cumsum(counts) - counts):
        raise ValueError(f'{name}: the bitmask does not fit the values or the row offsets')
    dense = np.zeros((rows, columns), values.dtype)
    dense[present] = values
    return dense


def save(path, tensors, sparse):
    """Writes `tensors`, those whose names are in `sparse` compressed."""
    stored = {}
    for name, value in tensors.items():
        stored.update(compress(name, value) if name in sparse else {name: value})
    safetensors.save_file({name: np.ascontiguousarray(value) for name, value in stored.items()}, path,
                          metadata={'format': 'pt'})


def load(path):
    """Returns the file's tensors by name, all dense."""
    stored = safetensors.load_file(path)
    names = {name.removesuffix('.bitmask') for name in stored if name.endswith('.bitmask')}
    parts = {f'{name}.{part}' for name in names for part in PARTS}
    missing = sorted(parts - set(stored))
    if missing:
        raise ValueError(f'{path}: {missing[0]} is missing')
    return {name: value for name, value in stored.items() if name not in parts} | {
        name: decompress(name, stored) for name in sorted(names)}
