"""What requests of ever other sizes cost a model that leaves height and width free.

    PYTHON tests/bench/changing_shapes.py [--binaries=build/dev/bin] [--sparsity=0.9] [--sizes=100] [--requests=1000]
        [--threads=2] [--limit=1.3]

The model is the text detector of tests/integration/make_architectures.py in full size. First come requests of one size,
then of many, drawn from a fixed list: a first pass over all of them, in order, and what is left at random. Times are
round trips over the pixels of the request; resident memory is read after each pass of as many requests as there are
sizes. Prints JSON; ends with 1 where the median is more than --limit times that of one size, or memory grows by more
than 2 % after the second pass. PYTHON has onnx and tritonclient.
"""

import argparse
import json
import pathlib
import random
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import tritonclient.grpc

from served import Served

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'integration'))
import make_architectures  # noqa: E402

GRAIN = 32  # of sizes, which the model halves so often
GROWTH = 1.02


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build' / 'dev' / 'bin')
    parser.add_argument('--sparsity', type=float, default=0.9)
    parser.add_argument('--sizes', type=int, default=100)
    parser.add_argument('--requests', type=int, default=1000)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--limit', type=float, default=1.3)
    return parser.parse_args()


class Client:
    """Sends images; keeps nanoseconds a pixel of each."""

    def __init__(self, address, name):
        self.client, self.name = tritonclient.grpc.InferenceServerClient(address), name
        random_numbers = np.random.default_rng(1)
        self.pixels = random_numbers.normal(0, 1, 3 * 1024 * 1024).astype(np.float32)

    def ask(self, height, width):
        image = self.pixels[:3 * height * width].reshape(1, 3, height, width)
        tensor = tritonclient.grpc.InferInput(self.name, image.shape, 'FP32')
        tensor.set_data_from_numpy(image)
        start = time.perf_counter()
        self.client.infer('model', [tensor])
        return (time.perf_counter() - start) * 1e9 / (height * width)


def sizes_of(count):
    """That many sizes, from 160 to 640 pixels a side."""
    sides = range(160, 641, GRAIN)
    sizes = [(height, width) for height in sides for width in sides]
    return random.Random(1).sample(sizes, count)


def main():
    arguments = parse()
    full = make_architectures.FULL['dbnet'] | {'image': ('height', 'width')}
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / 'models' / 'model' / '1' / 'model.onnx'
        file.parent.mkdir(parents=True)
        model = make_architectures.build('dbnet', full, sparsity=arguments.sparsity)
        onnx.save(onnx.shape_inference.infer_shapes(model), file)
        flags = (f'--threads={arguments.threads}', '--tuning-budget=5')
        with Served(arguments.binaries, file.parents[2], scratch, *flags) as served:
            client = Client(served.grpc_address, model.graph.input[0].name)
            one = [client.ask(384, 384) for _ in range(arguments.sizes)]
            sizes = sizes_of(arguments.sizes)
            draw = random.Random(2)
            times, memory = [], []
            while len(times) < arguments.requests:
                order = sizes if not times else draw.choices(sizes, k=len(sizes))
                times += [client.ask(*size) for size in order]
                memory.append(round(served.resident_mib()))
    first, later = times[:len(sizes)], times[len(sizes):]
    result = {
        'ns_per_pixel': {'one size': round(statistics.median(one), 2), 'changing': round(statistics.median(times), 2),
                         'first of a size': round(statistics.median(first), 2),
                         'later': round(statistics.median(later), 2)},
        'ratio': round(statistics.median(times) / statistics.median(one), 3), 'resident_mib': memory}
    print(json.dumps(result))
    return int(result['ratio'] > arguments.limit or memory[-1] > GROWTH * memory[1])


if __name__ == '__main__':
    sys.exit(main())
