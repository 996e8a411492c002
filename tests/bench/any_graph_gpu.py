#!/usr/bin/env python3
"""The models of any_graph.py on a GPU, beside PyTorch on the same files (torch_graph.py), in the same run.

    python3 tests/bench/any_graph_gpu.py --bench=build/cuda/bin/plan_bench [--models=vit,swin] [--sparsities=0,0.9]
        [--precisions=FP32,FP16] [--batch=1] [--tuning-budget=5] [--no-torch] [--staged] [--check] [--output=FILE]

Inputs are in memory that the device reads, as a server has them and as PyTorch's are; --staged measures, too, what it
takes where they are not. Several processes read models at once; one at a time uses the device. Python has onnx, numpy
and torch. --output keeps rows as JSON; what the file holds of other models, precisions and batches stays.
"""

import argparse
import concurrent.futures
import datetime
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'integration'))
import make_architectures  # noqa: E402
import text_architectures  # noqa: E402, F401: it adds to those of make_architectures
import vision_architectures  # noqa: E402, F401: it adds to those of make_architectures

READERS = 5
# Of those in full size, what is left out here: PyTorch's LSTM spells its gates otherwise.
MODELS = [name for name in make_architectures.FULL if name != 'crnn']


def write(task):
    name, sparsity, file = task
    if pathlib.Path(file).exists():
        return
    model = make_architectures.build(name, make_architectures.FULL[name], sparsity=sparsity)
    onnx.save(onnx.shape_inference.infer_shapes(model), file)


def json_lines(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return rows if done.returncode == 0 else [*rows, {'error': done.stderr.strip()[-300:]}]


def ours(arguments, scratch, name, sparsity):
    """Rows, one a precision."""
    command = [arguments.bench, f'--model={scratch / name}_{sparsity}.onnx', f'--lock={scratch}/lock', '--alone', '-o', 'json',
               f'--precision={",".join(arguments.precisions)}', f'--batch={arguments.batch}', '--threads=4',
               f'--tuning-budget={arguments.tuning_budget}', f'--rounds={arguments.rounds}',
               f'--tuning-cache={scratch / name}_{sparsity}.times',
               *(['--check'] if arguments.check else [])]
    rows = [row | {'model': name, 'sparsity': sparsity} for row in json_lines(command)]
    staged = json_lines([*command, '--staged']) if arguments.staged else []
    return [row | {'staged_ms': other['ms']} if 'ms' in other else row
            for row, other in itertools.zip_longest(rows, staged, fillvalue={})]


def torchs(arguments, scratch):
    """What PyTorch takes, by model and precision."""
    command = [sys.executable, HERE / 'torch_graph.py', f'--precisions={",".join(arguments.precisions)}',
               f'--batch={arguments.batch}', f'--lock={scratch}/lock',
               *(f'{scratch / name}_{arguments.sparsities[0]}.onnx' for name in arguments.models)]
    rows = json_lines(command)
    print(*(row['error'] for row in rows if 'error' in row), sep='\n')
    return {(pathlib.Path(row['file']).stem.rsplit('_', 1)[0], row['precision']): row['ms']
            for row in rows if 'error' not in row}


def measure(arguments, scratch):
    files = [(name, s, f'{scratch / name}_{s}.onnx') for name in arguments.models for s in arguments.sparsities]
    with concurrent.futures.ProcessPoolExecutor(14) as pool:
        list(pool.map(write, files))
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        torch = None if arguments.no_torch else pool.submit(torchs, arguments, scratch)
        runs = [pool.submit(ours, arguments, scratch, name, sparsity)
                for name in arguments.models for sparsity in arguments.sparsities]
        rows = []
        for run in concurrent.futures.as_completed(runs):
            print(*(json.dumps(row) for row in run.result()), sep='\n', flush=True)
            rows += run.result()
    peer = torch.result() if torch else {}
    for (name, precision), ms in peer.items():
        print(name, precision, 'PyTorch', round(ms, 3))
    return [row | {'torch_ms': peer.get((row['model'], row.get('precision')))} for row in rows]


def keep(file, rows):
    """Writes rows in the place of those of the same models, sparsities, precisions and batches."""
    kept = json.loads(file.read_text())['rows'] if file.exists() else []
    key = lambda row: (row['model'], row['sparsity'], row['precision'], row['batch'])  # noqa: E731
    merged = list(({key(row): row for row in kept} | {key(row): row for row in rows}).values())
    file.write_text(json.dumps({'rows': merged}, indent=1) + '\n')


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bench', required=True)
    parser.add_argument('--models', type=lambda text: text.split(','), default=MODELS)
    parser.add_argument('--sparsities', type=lambda text: [float(s) for s in text.split(',')], default=[0.0, 0.9])
    parser.add_argument('--precisions', type=lambda text: text.split(','), default=['FP32', 'FP16'])
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=101)
    parser.add_argument('--tuning-budget', type=float, default=5)
    parser.add_argument('--no-torch', action='store_true')
    parser.add_argument('--staged', action='store_true', help='also with inputs in memory that the device cannot read')
    parser.add_argument('--check', action='store_true', help="compare outputs with the host's")
    parser.add_argument('--models-folder', type=pathlib.Path, help='where models are kept, and taken from')
    parser.add_argument('--output', type=pathlib.Path)
    return parser.parse_args()


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory() as scratch:
        rows = measure(arguments, arguments.models_folder or pathlib.Path(scratch))
    date = datetime.date.today().isoformat()
    rows = [row | {'date': date} for row in rows if 'error' not in row]
    if arguments.output:
        keep(arguments.output, rows)


if __name__ == '__main__':
    main()
