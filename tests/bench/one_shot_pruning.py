"""Top-1 of the shipped image classifiers, pruned in one shot by every method, without and with calibration.

    one_shot_pruning.py [--pack=build/release/bin/swizzle-pack] [--images=256] [--tests=2500]
                        [--sparsities=0.5,0.6,0.7,0.8] [-o tests/bench/results/one_shot_fashion.json]

Calibration data are the first images that Fashion-MNIST has for training, and what is right is counted over the first
that it has for tests (Debian: dataset-fashion-mnist). Stems and classifiers stay dense. Needs numpy. What is in the
output file already is not run again.
"""

import argparse
import datetime
import gzip
import json
import pathlib
import subprocess
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path('/usr/share/datasets/fashion-mnist')
MODELS = {'thin ResNet-18': 'resnet18_thin_fashion', 'MobileNetV1': 'mobilenet_v1_fashion'}
METHODS = {
    'unstructured': ['--method=magnitude'],
    '2:4': ['--method=n-m', '--pattern=2:4'],
    'Shfl-BW 32': ['--method=shfl-bw', '--vector=32'],
    'Shfl-BW 64': ['--method=shfl-bw', '--vector=64'],
    'vector-wise 32': ['--method=vector-wise', '--vector=32'],
    'block 32': ['--method=block', '--vector=32'],
}


def images(name, count):
    with gzip.open(DATA / f'{name}-images-idx3-ubyte.gz') as file:
        pixels = numpy.frombuffer(file.read(16 + count * 784), numpy.uint8, offset=16)
    return pixels.reshape(-1, 1, 28, 28).astype(numpy.float32) / 255


def labels(name, count):
    with gzip.open(DATA / f'{name}-labels-idx1-ubyte.gz') as file:
        return numpy.frombuffer(file.read(8 + count), numpy.uint8, offset=8)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        numpy.savez(folder / 'calibration.npz', image=images('train', options.images))
        numpy.save(folder / 'tests.npy', images('t10k', options.tests))
        self.labels = labels('t10k', options.tests)

    def pack(self, *arguments):
        subprocess.run([self.options.pack, *arguments], check=True, capture_output=True, text=True)

    def top1(self, model):
        self.pack('run', model, f'--input=image={self.folder / "tests.npy"}', f'--output-dir={self.folder}')
        logits = numpy.load(self.folder / 'logits.npy')
        return float((logits.argmax(1) == self.labels).mean())

    def pruned(self, model, flags, sparsity, calibrated):
        output = self.folder / 'pruned.onnx'
        flags = [*flags, f'--sparsity={sparsity}', '--skip=*stem*', '--skip=*classifier*']
        if calibrated:
            flags.append(f'--calibration={self.folder / "calibration.npz"}')
        self.pack('prune', model, output, *flags)
        return self.top1(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--pack', default=str(ROOT / 'build/release/bin/swizzle-pack'))
    parser.add_argument('--images', type=int, default=256)
    parser.add_argument('--tests', type=int, default=2500)
    parser.add_argument('--sparsities', default='0.5,0.6,0.7,0.8')
    parser.add_argument('-o', '--output', type=pathlib.Path, default=ROOT / 'tests/bench/results/one_shot_fashion.json')
    options = parser.parse_args()
    figures = {'date': datetime.date.today().isoformat(), 'images': options.images, 'tests': options.tests,
               'dense': {}, 'rows': []}
    if options.output.exists():
        figures = json.loads(options.output.read_text())
    done = {(row['model'], row['method'], row['sparsity']) for row in figures['rows']}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))
        for name, file in MODELS.items():
            model = ROOT / f'deploy/models/{file}.onnx'
            figures['dense'][name] = bench.top1(model)
            for sparsity in map(float, options.sparsities.split(',')):
                for method, flags in METHODS.items():
                    if (name, method, sparsity) in done:
                        continue
                    plain, calibrated = (bench.pruned(model, flags, sparsity, with_data) for with_data in (False, True))
                    figures['rows'].append({'model': name, 'method': method, 'sparsity': sparsity,
                                            'top1': plain, 'top1_calibrated': calibrated})
                    options.output.write_text(json.dumps(figures, indent=1) + '\n')
                    print(f'{name}, {method}, {sparsity:.0%}: {plain:.1%}, calibrated {calibrated:.1%}', flush=True)


if __name__ == '__main__':
    main()
