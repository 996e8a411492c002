"""How long a server takes from its start to ready, with a ResNet-50 of 224x224 of which 90 % is zeros (drawn).

Three ways: model.onnx with no kernel measured (--tuning-budget=0), model.swz with every time in the tuning cache, and
model.swz with nothing known, which measures.

    build/venv/bin/python tests/bench/load_times.py [--rounds=5] [--binaries=build/release/bin] [-o json]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'integration'))

import make_cnns  # noqa: E402
import onnx_graph  # noqa: E402
from served import Served  # noqa: E402


def write_resnet50(path):
    graph = onnx_graph.Graph(17, seed=1)
    graph.output(make_cnns.resnet(graph, True, (3, 4, 6, 3), widths=(64, 128, 256, 512), image=224, classes=1000,
                                  sparsity=0.9))
    onnx.save(graph.finish('resnet50'), path)


def seconds_to_ready(binaries, repository, scratch, *flags):
    with Served(binaries, repository, scratch, *flags) as server:
        return server.seconds_to_ready


def measure(binaries, rounds, scratch):
    onnx_file = scratch / 'onnx' / 'resnet50' / '1' / 'model.onnx'
    packed_file = scratch / 'swz' / 'resnet50' / '1' / 'model.swz'
    for file in (onnx_file, packed_file):
        file.parent.mkdir(parents=True)
    write_resnet50(onnx_file)
    subprocess.run([binaries / 'swizzle-pack', 'pack', onnx_file, packed_file], check=True, stdout=subprocess.DEVNULL)
    cache = f'--tuning-cache={scratch / "times.jsonl"}'
    ways = {
        'model.onnx, nothing measured': (scratch / 'onnx', '--tuning-budget=0'),
        'model.swz, tuning cache warm': (scratch / 'swz', cache),
        'model.swz, nothing known': (scratch / 'swz',),
    }
    seconds_to_ready(binaries, scratch / 'swz', scratch, cache)
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (repository, *flags) in ways.items():
            times[name].append(seconds_to_ready(binaries, repository, scratch, *flags))
    return {'onnx_mib': onnx_file.stat().st_size / 2**20, 'swz_mib': packed_file.stat().st_size / 2**20,
            'seconds_to_ready': {name: statistics.median(values) for name, values in times.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build' / 'release' / 'bin')
    parser.add_argument('-o', choices=('text', 'json'), default='text', dest='output')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        result = measure(arguments.binaries.resolve(), arguments.rounds, pathlib.Path(scratch))
    if arguments.output == 'json':
        print(json.dumps(result, indent=2))
        return
    print(f'ResNet-50, model.onnx {result["onnx_mib"]:.0f} MiB, model.swz {result["swz_mib"]:.0f} MiB; medians')
    for name, seconds in result['seconds_to_ready'].items():
        print(f'  {name:<30} {seconds:6.2f} s to ready')


if __name__ == '__main__':
    main()
