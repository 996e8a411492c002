#!/usr/bin/env python3
"""Measures what train_patterns.py trained, and keeps the figures for the table in PATTERNS.md.

    python3 pattern_accuracy.py --weights=OUT [--pack=../../build/release/bin/swizzle-pack] [--fashion=DIR] [-o FILE]

Weights of image classifiers in OUT become ONNX models again. swizzle-pack runs them on the 10,000 test images: its
answers are what a server gives. Then it prunes each once more by the same method, which must change nothing: what was
trained is what it would prune. MiniLM's figures are those that were written when it was trained. What the file of
figures has is not measured again. tests/bench/readme_tables.py makes the table.
"""

import argparse
import datetime
import json
import pathlib
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper

import minilm_files
import patterns
import quantised_accuracy
import sparse_bitmask
from train_patterns import FASHION, slug

HERE = pathlib.Path(__file__).resolve().parent
IMAGES_A_RUN = 2500


def write_onnx(dense, tensors, output):
    """Writes the dense ONNX model with other values in the initializers that have their names."""
    model = onnx.load(str(dense))
    for initializer in model.graph.initializer:
        value = tensors.pop(initializer.name, None)
        if value is not None:
            value = value.astype(np.float32).reshape(list(initializer.dims))
            initializer.CopyFrom(onnx.numpy_helper.from_array(value, initializer.name))
    if tensors:
        raise ValueError(f'{dense}: there is no {sorted(tensors)[0]}')
    onnx.save(model, output)


def check_pattern(pack, model, name, sparsity, folder):
    """Raises unless swizzle-pack prunes nothing more. Returns the share of zeros."""
    again = folder / 'again.onnx'
    patterns.pruned(pack, model, again, patterns.PATTERNS[name], sparsity, patterns.prunable(model))
    before, after = patterns.matrices(model), patterns.matrices(again)
    for weight, matrix in before.items():
        if not np.array_equal(matrix, after[weight]):
            raise ValueError(f'{weight}: its zeros are not those that {name} pruning makes')
    weights = [before[weight] for weight in patterns.prunable(model)]
    return 1 - sum(np.count_nonzero(weight) for weight in weights) / sum(weight.size for weight in weights)


class Measurement:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.arguments.binaries = arguments.pack.parent
        self.images = quantised_accuracy.images_of(arguments.fashion / 't10k-images-idx3-ubyte.gz')
        self.labels = quantised_accuracy.read_idx(arguments.fashion / 't10k-labels-idx1-ubyte.gz')

    def top1(self, model):
        logits = [quantised_accuracy.run(self.arguments, model, {'image': self.images[i:i + IMAGES_A_RUN]}, 'logits',
                                         self.folder) for i in range(0, len(self.images), IMAGES_A_RUN)]
        return round(100 * float(np.mean(np.concatenate(logits).argmax(1) == self.labels)), 2)

    def fashion(self, net, row):
        name, sparsity = row['pattern'], row['sparsity']
        model = self.folder / 'model.onnx'
        file = f'{net}_{slug(name, sparsity)}_seed{row["seed"]}.safetensors'
        tensors = sparse_bitmask.load(self.arguments.weights / file)
        write_onnx(HERE / f'{FASHION[net]}.onnx', tensors, model)
        zeros = check_pattern(self.arguments.pack, model, name, sparsity, self.folder)
        return row | {'zeros': round(float(zeros), 4), 'accuracy': self.top1(model)}


def how(log):
    recipe = {name: value for name, value in log['recipe'].items() if name != 'sparsity'}
    return {'recipe': recipe, 'hardware': log['hardware'], 'versions': log['versions']}


def measure_fashion(measurement, net, figures, save):
    log = json.loads((measurement.arguments.weights / f'{net}_patterns.json').read_text())
    kept = figures.setdefault(net, {'rows': []})
    kept |= how(log) | {'epochs': log['epochs']}
    if 'dense' not in kept:
        kept['dense'] = measurement.top1(HERE / f'{FASHION[net]}.onnx')
    done = {(row['pattern'], row['sparsity'], row['seed']) for row in kept['rows']}
    for seed in range(1, len(log['epochs']) + 1):
        for name, sparsity in patterns.combinations():
            if (name, sparsity, seed) in done:
                continue
            kept['rows'].append(measurement.fashion(net, {'pattern': name, 'sparsity': sparsity, 'seed': seed}))
            print(net, kept['rows'][-1], flush=True)
            save()


def read_minilm(arguments, figures, folder):
    rows = []
    for name, sparsity in patterns.combinations():
        file = arguments.weights / f'minilm_{slug(name, sparsity)}.safetensors'
        log = json.loads(file.with_suffix('.json').read_text())
        if file.exists():
            minilm_files.assemble(file, minilm_files.dense_model(arguments.minilm), folder / 'minilm')
            check_pattern(arguments.pack, folder / 'minilm/model.onnx', name, sparsity, folder)
        results = log['results']
        rows.append({'pattern': name, 'sparsity': sparsity, 'seed': log['recipe']['seed'], 'zeros': results['sparsity'],
                     'accuracy': results['knn_accuracy_sparse'], 'cosine': results['mean_cosine']})
        figures['minilm'] = how(log) | {'epochs': [log['epochs'][-1][0]], 'dense': results['knn_accuracy_dense'],
                                        'rows': rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weights', type=pathlib.Path, metavar='DIR', required=True,
                        help='what train_patterns.py wrote')
    parser.add_argument('--pack', type=pathlib.Path, default=HERE.parents[1] / 'build/release/bin/swizzle-pack')
    parser.add_argument('--fashion', type=pathlib.Path, metavar='DIR', default='/usr/share/datasets/fashion-mnist')
    parser.add_argument('--minilm', type=pathlib.Path, metavar='DIR', help='folder of the dense MiniLM')
    parser.add_argument('-o', '--output', type=pathlib.Path,
                        default=HERE.parents[1] / 'tests/bench/results/patterns.json')
    arguments = parser.parse_args()
    figures = {'date': datetime.date.today().isoformat()}
    if arguments.output.exists():
        figures = json.loads(arguments.output.read_text())

    def save():
        arguments.output.write_text(json.dumps(figures, indent=1) + '\n')

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        read_minilm(arguments, figures, folder)
        measurement = Measurement(arguments, folder)
        for net in FASHION:
            measure_fashion(measurement, net, figures, save)
    save()


if __name__ == '__main__':
    main()
