"""Architectures that no plan takes whole, beside ONNX Runtime on the same file, in the same run.

    PYTHON tests/bench/any_graph.py [--binaries=build/dev/bin] [--models=vit,yolov8,...] [--sparsities=0,0.9]
        [--threads=2] [--rounds=6] [--tuning-budget=15] [--int8] [--engines=onnxruntime] [--before=FOLDER]
        [--output=FILE]

Models are those of tests/integration/make_architectures.py in full size, with zeros in layers of more than 32
channels. Swizzle serves the file, measured as swizzle_compute_us; both take turns (whole_models.py), and what stands in
the result are medians. Kernels are measured at load, for as long as a server's default. --output keeps it as JSON; what
the file holds of other models stays. With --int8 swizzle-pack quantizes the model first, and all run that file. PYTHON has
onnx, tritonclient and the engines, as that of peers_requirements.txt does. With --before another build's programs serve the
same file, and take turns with ours: has a change cost speed? --engines= then leaves the engines out.
"""

import argparse
import contextlib
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import tritonclient.grpc

from served import Served
from whole_models import Peer, Swizzle, commit, machine, take_turns

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'integration'))
import make_architectures  # noqa: E402
import text_architectures  # noqa: E402, F401: it adds to those of make_architectures
import vision_architectures  # noqa: E402, F401: it adds to those of make_architectures


def draw_inputs(model):
    random = np.random.default_rng(1)
    inputs = {}
    for value in model.graph.input:
        shape = [dimension.dim_value or (1 if i == 0 else 128)
                 for i, dimension in enumerate(value.type.tensor_type.shape.dim)]
        if value.name == 'attention_mask':
            inputs[value.name] = np.ones(shape, np.int64)
        elif value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            inputs[value.name] = random.integers(0, make_architectures.VOCABULARY, shape)
        else:
            inputs[value.name] = random.normal(0, 1, shape).astype(np.float32)
    return inputs


def measure(name, sparsity, arguments, scratch):
    model = make_architectures.build(name, make_architectures.FULL[name], sparsity=sparsity)
    model = onnx.shape_inference.infer_shapes(model)
    file = scratch / 'models' / 'model' / '1' / 'model.onnx'
    file.parent.mkdir(parents=True)
    inputs = draw_inputs(model)
    np.savez(scratch / 'inputs.npz', **inputs)
    onnx.save(model, scratch / 'real.onnx' if arguments.int8 else file)
    if arguments.int8:
        # Tokens are quantised when the model runs.
        of_tokens = all(array.dtype == np.int64 for array in inputs.values())
        calibration = [] if of_tokens else [f'--calibration={scratch}/inputs.npz']
        subprocess.run([arguments.binaries / 'swizzle-pack', 'quantize', scratch / 'real.onnx', file, *calibration],
                       check=True, stdout=subprocess.DEVNULL)
    row = {'model': name, 'sparsity': sparsity, 'ms': {}}
    with contextlib.ExitStack() as open_until_then:
        contenders = {}
        for build, binaries in (('swizzle', arguments.binaries), ('before', arguments.before)):
            if binaries:
                contenders[build] = open_until_then.enter_context(serve(binaries, scratch / build, file, inputs, arguments))
        for engine in arguments.engines:
            contenders[engine] = Peer(engine, file, scratch / 'inputs.npz', arguments.threads, scratch)
        for engine, times in take_turns(contenders, arguments.rounds).items():
            row['ms'][engine] = round(statistics.median(times), 3)
        actual, expected = (contenders[contender].output for contender in ('swizzle', others(arguments)[0]))
        row['difference'] = float(np.abs(actual - expected).max() / np.abs(expected).max())
        for contender in contenders.values():
            contender.close()
    return row


@contextlib.contextmanager
def serve(binaries, scratch, file, inputs, arguments):
    """The model behind a server of that build."""
    scratch.mkdir()
    flags = (f'--threads={arguments.threads}', f'--tuning-budget={arguments.tuning_budget}')
    with Served(binaries, file.parents[2], scratch, *flags) as served:
        yield Swizzle(tritonclient.grpc.InferenceServerClient(served.grpc_address), 'model', inputs)


def others(arguments):
    """Who is measured beside this build."""
    return [*arguments.engines, *(['before'] if arguments.before else [])]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build' / 'dev' / 'bin')
    parser.add_argument('--models', type=lambda text: text.split(','), default=list(make_architectures.FULL))
    parser.add_argument('--sparsities', type=lambda text: [float(s) for s in text.split(',')], default=[0.0, 0.9])
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=6)
    parser.add_argument('--tuning-budget', type=float, default=15, metavar='SECONDS')
    parser.add_argument('--int8', action='store_true')
    parser.add_argument('--engines', type=lambda text: text.split(',') if text else [], default=['onnxruntime'])
    parser.add_argument('--before', type=pathlib.Path, metavar='FOLDER')
    parser.add_argument('--output', type=pathlib.Path)
    arguments = parser.parse_args()
    if not others(arguments):
        parser.error('nothing is measured beside Swizzle: name --engines or --before')
    return arguments


def keep(file, threads, rows):
    """Writes rows in the place of those of the same models and sparsities."""
    kept = json.loads(file.read_text())['rows'] if file.exists() else []
    key = lambda row: (row['model'], row['sparsity'])  # noqa: E731
    merged = list(({key(row): row for row in kept} | {key(row): row for row in rows}).values())
    file.write_text(json.dumps({'machine': machine(), 'threads': threads, 'rows': merged}, indent=1) + '\n')


def main():
    arguments = parse()
    when = {'date': datetime.date.today().isoformat(), 'commit': commit()}
    rows = []
    for name in arguments.models:
        for sparsity in arguments.sparsities:
            with tempfile.TemporaryDirectory() as scratch:
                rows.append(measure(name, sparsity, arguments, pathlib.Path(scratch)) | when)
            print(json.dumps(rows[-1]), flush=True)
            if arguments.output:
                keep(arguments.output, arguments.threads, rows)
    for sparsity in arguments.sparsities:
        ratios = [min(row['ms'][other] for other in others(arguments)) / row['ms']['swizzle']
                  for row in rows if row['sparsity'] == sparsity]
        print(f'sparsity {sparsity}: {statistics.geometric_mean(ratios):.2f} times as fast as '
              f'{" and ".join(others(arguments))}, {min(ratios):.2f} at least, of {len(ratios)} models')


if __name__ == '__main__':
    main()
