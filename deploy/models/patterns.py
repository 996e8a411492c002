"""The patterns of `swizzle-pack prune` that the recipe in PATTERNS.md trains to, and which weights go together in each.

swizzle-pack prunes in one shot. Zeros that come little by little, and are trained with, cost far less. So it is asked
once, of the dense model, which rows Shfl-BW puts together; after that the cells (weights, vectors, blocks) of least
mean magnitude go, more and more of them (pattern_pruning.py). The last choice is one that swizzle-pack would make:
pruning the trained model with it changes nothing any more, which pattern_accuracy.py checks.
"""

import dataclasses
import json
import pathlib
import subprocess
import tempfile

import numpy as np


@dataclasses.dataclass(frozen=True)
class Pattern:
    method: str  # of swizzle-pack prune
    rows: int = 1  # of vectors and blocks
    n: int = 0  # of n-m
    m: int = 0

    def flags(self, sparsity):
        """What swizzle-pack prune is told."""
        of_rows = [f'--vector={self.rows}'] if self.rows > 1 else []
        return [f'--method={self.method}', f'--sparsity={sparsity}', *of_rows,
                *([f'--pattern={self.n}:{self.m}'] if self.m else [])]


PATTERNS = {
    'unstructured': Pattern('magnitude'),
    'Shfl-BW 32': Pattern('shfl-bw', 32),
    'Shfl-BW 64': Pattern('shfl-bw', 64),
    'vector-wise 32': Pattern('vector-wise', 32),
    'block 32': Pattern('block', 32),
    '2:4': Pattern('n-m', n=2, m=4),
}
SPARSITIES = (0.8, 0.9)
LIMITED = 0.5  # of 2:4


def combinations():
    """Yields (pattern's name, sparsity) of all that the table compares."""
    for name, pattern in PATTERNS.items():
        for sparsity in (LIMITED,) if pattern.m else SPARSITIES:
            yield name, sparsity


def write_log(path, log):
    """Writes JSON with one line for each key."""
    lines = ',\n'.join(f'  {json.dumps(key)}: {json.dumps(value)}' for key, value in log.items())
    path.write_text(f'{{\n{lines}\n}}\n', encoding='utf-8')


def groups_of(kept, rows):
    """Returns the group of each row, int64 [outputs], from what Shfl-BW pruning kept, bool [outputs, columns].

    Rows of a group keep the same columns. Two groups that keep the same ones may be taken for each other: that is as
    good. Raises ValueError where rows do not fall into groups of so many.
    """
    _, alike = np.unique(kept, axis=0, return_inverse=True)
    alike = alike.reshape(-1)
    if len(kept) > rows and np.any(np.bincount(alike) % rows):
        raise ValueError(f'rows do not fall into groups of {rows} that keep the same columns')
    groups = np.empty(len(kept), np.int64)
    groups[np.argsort(alike, kind='stable')] = np.arange(len(kept)) // rows
    return groups


def matrices(file):
    """Returns what swizzle-pack prune would prune in an ONNX model, as [outputs, columns], by name."""
    import onnx.numpy_helper

    model = onnx.load(str(file))
    tensors = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    found = {}
    for node in model.graph.node:
        depthwise = any(attribute.name == 'group' and attribute.i > 1 for attribute in node.attribute)
        if depthwise or node.op_type not in ('Conv', 'Gemm', 'MatMul'):
            continue
        if (weight := tensors.get(node.input[1])) is not None:
            found[node.input[1]] = weight.T if node.op_type == 'MatMul' else weight.reshape(len(weight), -1)
    return found


def prunable(file):
    """Returns the names of the weights that the recipe prunes: all but a stem's and a classifier's."""
    return {name for name in matrices(file) if not name.startswith(('stem.', 'classifier.'))}


def pruned(pack, model, output, pattern, sparsity, names):
    """Runs swizzle-pack prune over the weights with these names alone; returns its report."""
    skipped = [f'--skip={name}' for name in matrices(model) if name not in names]
    return subprocess.run([str(pack), 'prune', str(model), str(output), *pattern.flags(sparsity), *skipped], check=True,
                          capture_output=True, text=True).stdout


def shuffled_groups_of(pack, model, pattern, sparsity, names):
    """Returns the rows that Shfl-BW's search puts together: {weight's name: int64 [outputs]}."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / 'pruned.onnx'
        pruned(pack, model, output, pattern, sparsity, names)
        return {weight: groups_of(matrix != 0, pattern.rows) for weight, matrix in matrices(output).items()
                if weight in names}


def shuffled_groups(pack, model, names):
    """The same of all patterns: {(pattern, sparsity, weight's name): int64 [outputs]}."""
    return {(name, sparsity, weight): rows for name, sparsity in combinations() if PATTERNS[name].method == 'shfl-bw'
            for weight, rows in shuffled_groups_of(pack, model, PATTERNS[name], sparsity, names).items()}


def cells_of(pattern, shape, groups=None):
    """Returns the number of the cell that each weight lies in, int64 [elements].

    Args:
      shape: of the weight: outputs, input channels, and perhaps a window.
      groups: of Shfl-BW, the group of each row.
    """
    outputs, channels = shape[:2]
    row, channel, tap = np.indices((outputs, channels, int(np.prod(shape[2:], dtype=np.int64))))
    taps = tap.shape[2]
    if pattern.method == 'block':
        across = -(-channels // pattern.rows)
        cells = (row // pattern.rows * taps + tap) * across + channel // pattern.rows
    elif pattern.method in ('vector-wise', 'shfl-bw'):
        group = row // pattern.rows if groups is None else np.asarray(groups)[row]
        cells = (group * channels + channel) * taps + tap
    else:
        cells = np.arange(row.size)
    return cells.reshape(-1)
