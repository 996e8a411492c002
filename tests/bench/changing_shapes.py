"""What requests of ever other sizes cost a model that leaves height and width free, and what the first of a shape does.

    PYTHON tests/bench/changing_shapes.py [--binaries=build/dev/bin] [--sparsity=0.9] [--sizes=100] [--requests=1000]
        [--threads=2] [--limit=1.3] [--first=dbnet,svtr,vit,roberta] [--first-shapes=24]

The model is the text detector of tests/integration/make_architectures.py in full size. First come requests of one size,
then of many, drawn from a fixed list: a first pass over all of them, in order, and what is left at random. Times are
round trips over the pixels of the request; resident memory is read after each pass of as many requests as there are
sizes. With --requests=0 that is left out.

Then each model of --first, a detector, a text recogniser, a vision transformer and an encoder, of which the last two
have fewer layers than in full size, gets --first-shapes shapes that it has not seen, one after another, thrice each.
`first` is what the server computed for the first of a shape (swizzle_compute_us), `known` for the last; medians in
milliseconds. `beyond` is the most that a first one took beyond 1.5 times its known one.

Prints JSON; ends with 1 where the median is more than --limit times that of one size, memory grows by more than 2 %
after the second pass, or a first request takes more than 2 ms beyond in the median. PYTHON has onnx and tritonclient.
"""

import argparse
import contextlib
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
FIRST_RATIO, FIRST_BEYOND_MS = 1.5, 2.0
# What is free of a model's inputs, and which shapes come: functions of how many came before.
FIRST = {
    'dbnet': ({'image': ('height', 'width')}, lambda i: (1, 3, GRAIN * (5 + i * 7 % 11), GRAIN * (5 + i * 3 % 13))),
    'svtr': ({'image': (48, 'width')}, lambda i: (1, 3, 48, 8 * (12 + i * 5 % 61))),
    'vit': ({'layers': 4}, lambda i: (1 + i % 12, 3, 224, 224)),
    'roberta': ({'layers': 4}, lambda i: (1, 5 + i * 7 % 101)),
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build' / 'dev' / 'bin')
    parser.add_argument('--sparsity', type=float, default=0.9)
    parser.add_argument('--sizes', type=int, default=100)
    parser.add_argument('--requests', type=int, default=1000)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--limit', type=float, default=1.3)
    parser.add_argument('--first', type=lambda text: text.split(',') if text else [], default=list(FIRST))
    parser.add_argument('--first-shapes', type=int, default=24)
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


@contextlib.contextmanager
def served(name, overrides, arguments):
    """The model behind a server, and the names and types of its inputs."""
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / 'models' / 'model' / '1' / 'model.onnx'
        file.parent.mkdir(parents=True)
        model = make_architectures.build(name, make_architectures.FULL[name] | overrides, sparsity=arguments.sparsity)
        onnx.save(onnx.shape_inference.infer_shapes(model), file)
        flags = (f'--threads={arguments.threads}', '--tuning-budget=5')
        with Served(arguments.binaries, file.parents[2], scratch, *flags) as server:
            yield server, [(i.name, i.type.tensor_type.elem_type) for i in model.graph.input]


def first_requests(name, arguments):
    """Milliseconds of the first request of a shape, and of one that is known."""
    overrides, shape_of = FIRST[name]
    random_numbers = np.random.default_rng(1)
    first, known = [], []
    with served(name, overrides, arguments) as (server, inputs):
        client = tritonclient.grpc.InferenceServerClient(server.grpc_address)
        shapes = list(dict.fromkeys(shape_of(i) for i in range(arguments.first_shapes + 1)))
        for shape in shapes:
            tensors = []
            for tensor, dtype in inputs:
                ids = dtype == onnx.TensorProto.INT64
                tensors.append(tritonclient.grpc.InferInput(tensor, shape, 'INT64' if ids else 'FP32'))
                tensors[-1].set_data_from_numpy(np.ones(shape, np.int64) if ids else
                                                random_numbers.normal(0, 1, shape).astype(np.float32))
            times = [client.infer('model', tensors).get_response().parameters['swizzle_compute_us'].int64_param / 1e3
                     for _ in range(3)]
            first.append(times[0])
            known.append(min(times[1:]))
    first, known = first[1:], known[1:]  # the first of all waits for memory, too
    beyond = [a - FIRST_RATIO * b for a, b in zip(first, known)]
    return {'first': round(statistics.median(first), 2), 'known': round(statistics.median(known), 2),
            'beyond': round(max(beyond), 2), 'median beyond': round(statistics.median(beyond), 2)}


def changing_sizes(arguments):
    with served('dbnet', {'image': ('height', 'width')}, arguments) as (server, inputs):
        client = Client(server.grpc_address, inputs[0][0])
        one = [client.ask(384, 384) for _ in range(arguments.sizes)]
        sizes = sizes_of(arguments.sizes)
        draw = random.Random(2)
        times, memory = [], []
        while len(times) < arguments.requests:
            order = sizes if not times else draw.choices(sizes, k=len(sizes))
            times += [client.ask(*size) for size in order]
            memory.append(round(server.resident_mib()))
    first, later = times[:len(sizes)], times[len(sizes):]
    return {
        'ns_per_pixel': {'one size': round(statistics.median(one), 2), 'changing': round(statistics.median(times), 2),
                         'first of a size': round(statistics.median(first), 2),
                         'later': round(statistics.median(later or first), 2)},
        'ratio': round(statistics.median(times) / statistics.median(one), 3), 'resident_mib': memory}


def main():
    arguments = parse()
    broken = False
    if arguments.requests > 0:
        result = changing_sizes(arguments)
        print(json.dumps(result), flush=True)
        memory = result['resident_mib']
        broken = result['ratio'] > arguments.limit or (len(memory) > 2 and memory[-1] > GROWTH * memory[1])
    for name in arguments.first:
        result = first_requests(name, arguments)
        print(json.dumps({'model': name, 'first request, ms': result}), flush=True)
        broken = broken or result['median beyond'] > FIRST_BEYOND_MS
    return int(broken)


if __name__ == '__main__':
    sys.exit(main())
