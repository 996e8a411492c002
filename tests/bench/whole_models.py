"""Whole models on the CPU beside the engines that a user could pick, on the same file, in the same run.

    python3 -m venv build/peers && build/peers/bin/pip install -r tests/bench/peers_requirements.txt
    build/peers/bin/python tests/bench/whole_models.py [--binaries=build/dev/bin] [--models=minilm,...] [--batches=1,8]
        [--sparsities=0.9] [--cell=1x1] [--rounds=8] [--engines=onnxruntime,openvino,deepsparse] [--int8=PYTHON]
        [--real-engines=onnxruntime,openvino,deepsparse] [--output=FILE]

Models are drawn (drawn_onnx.py), with a share of zeros in the weights that pruning is for. Swizzle serves the file by a
server of its own, measured as swizzle_compute_us: a whole batch from the layout of the requests to the final output.
The others run in processes of their own (engines.py), timed around their call. All take turns, a few runs each, so that
drift of the machine's speed hits all; what stands in the result are medians of all runs. --output keeps it as JSON;
with --merge, what the file holds of other models, batches and sparsities stays. An engine that cannot be imported is
left out.

With --int8, the model is quantised, too, and Swizzle ("swizzle int8") and the engines run the same file, those that
can; PYTHON is one that has what quantise.py needs, such as that of tests/run, build/venv/bin/python. --real-engines are
those that run it in FP32, too.
With --cell=4x1 vectors of four output channels are zero together (SR-BCRS), with 1x4 blocks of four input channels.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import tritonclient.grpc

import drawn_onnx
from served import Served

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ('onnxruntime', 'openvino', 'deepsparse')
PAUSE_SECONDS = 0.05  # threads of the one before spin for a while after a run


class EngineEnded(Exception):
    pass


class Swizzle:
    """The model behind a server, asked over gRPC. `run` gives milliseconds of compute; round trips are kept aside."""

    def __init__(self, client, model, inputs):
        self.client, self.model, self.tensors, self.round_trips = client, model, [], []
        for name, array in inputs.items():
            dtype = 'FP32' if array.dtype == np.float32 else 'INT64'
            self.tensors.append(tritonclient.grpc.InferInput(name, array.shape, dtype))
            self.tensors[-1].set_data_from_numpy(array)
        self.output = self.infer()[0]
        self.round_trips.clear()

    def infer(self):
        start = time.perf_counter()
        result = self.client.infer(self.model, self.tensors)
        self.round_trips.append((time.perf_counter() - start) * 1e3)
        response = result.get_response()
        return result.as_numpy(response.outputs[0].name), response.parameters['swizzle_compute_us'].int64_param / 1e3

    def run(self, count):
        return [self.infer()[1] for _ in range(count)]

    def close(self):
        pass


class Peer:
    """An engine in its process; see engines.py."""

    def __init__(self, engine, model, inputs, threads, scratch):
        output = scratch / 'output.npy'
        script = pathlib.Path(__file__).with_name('engines.py')
        self.process = subprocess.Popen([sys.executable, script, engine, model, inputs, str(threads), output],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.read(dict)['version']
        self.output = np.load(output)

    def read(self, kind):
        """The next line of JSON of that kind; engines print banners of their own."""
        for line in self.process.stdout:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, kind):
                return value
        raise EngineEnded(f'{self.process.args[2]} ended on {self.process.args[3]}; its error is above')

    def run(self, count):
        self.process.stdin.write(f'{count}\n')
        self.process.stdin.flush()
        return self.read(list)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def take_turns(contenders, rounds):
    """Milliseconds of each. As many runs a turn as fit into a quarter of a second, two at least; a first turn warms
    up."""
    times = {name: [] for name in contenders}
    turns = {name: max(2, min(16, round(250 / max(contender.run(2))))) for name, contender in contenders.items()}
    for _ in range(rounds):
        for name, contender in contenders.items():
            time.sleep(PAUSE_SECONDS)
            contender.run(1)
            times[name] += contender.run(turns[name])
    return times


def quantise(model, file, scratch, arguments):
    """The same model in int8, by its weights and what one drawn batch makes of activations; None where none is asked
    for."""
    if not arguments.int8:
        return None
    inputs, quantised = scratch / 'calibration.npz', scratch / 'models' / 'int8' / '1' / 'model.onnx'
    np.savez(inputs, **drawn_onnx.draw_inputs(model, 1))
    quantised.parent.mkdir(parents=True)
    script = pathlib.Path(__file__).with_name('quantise.py')
    subprocess.run([arguments.int8, script, file, inputs, quantised], check=True, stderr=subprocess.DEVNULL)
    return quantised


def start_peers(file, quantised, inputs, scratch, arguments):
    peers = {engine: Peer(engine, file, inputs, arguments.threads, scratch) for engine in arguments.real_engines}
    for engine in arguments.engines if quantised else []:
        try:
            peers[f'{engine} int8'] = Peer(engine, quantised, inputs, arguments.threads, scratch)
        except EngineEnded as ended:
            print(f'{ended}; it is left out', file=sys.stderr)
    return peers


def measure(case, client, file, quantised, scratch, arguments):
    inputs = drawn_onnx.draw_inputs(case['model'], case['batch'])
    np.savez(scratch / 'inputs.npz', **inputs)
    contenders = {'swizzle': Swizzle(client, 'model', inputs)}
    if quantised:
        contenders['swizzle int8'] = Swizzle(client, 'int8', inputs)
    contenders |= start_peers(file, quantised, scratch / 'inputs.npz', scratch, arguments)
    row = dict(case, difference={}, ms={}, least_ms={})
    for name, times in take_turns(contenders, arguments.rounds).items():
        row['ms'][name], row['least_ms'][name] = round(statistics.median(times), 3), round(min(times), 3)
    row['round_trip_ms'] = round(statistics.median(contenders['swizzle'].round_trips), 3)
    for engine in [name for name in contenders if not name.startswith('swizzle')]:
        actual = contenders['swizzle int8' if engine.endswith('int8') else 'swizzle'].output
        expected = contenders[engine].output
        row['difference'][engine] = float(np.abs(actual - expected).max() / np.abs(expected).max())
    for contender in contenders.values():
        contender.close()
    peers = {name: contender for name, contender in contenders.items() if not name.startswith('swizzle')}
    return row, {name.split()[0]: peer.version for name, peer in peers.items()}


def measure_model(model, sparsity, arguments):
    """Rows of all batches, and versions."""
    rows, versions = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        file = scratch / 'models/model/1/model.onnx'
        file.parent.mkdir(parents=True)
        onnx.save(drawn_onnx.make(model, sparsity, arguments.cell), file)
        quantised = quantise(model, file, scratch, arguments)
        with Served(arguments.binaries, scratch / 'models', scratch) as server:
            client = tritonclient.grpc.InferenceServerClient(server.grpc_address)
            for batch in arguments.batches:
                case = {'model': model, 'sparsity': sparsity, 'batch': batch}
                row, found = measure(case, client, file, quantised, scratch, arguments)
                rows.append(row)
                versions |= found
                print(text_of(row), flush=True)
            client.close()
    return rows, versions


def text_of(row):
    ours = row['ms']['swizzle']
    peers = ', '.join(f'{name} {ms:.2f} ({ms / ours:.2f}x)' for name, ms in row['ms'].items() if name != 'swizzle')
    return (f'{row["model"]} batch {row["batch"]} {row["sparsity"]:.0%} zeros, ms: swizzle {ours:.2f} (round trip '
            f'{row["round_trip_ms"]:.2f}), {peers}; largest difference '
            f'{max(row["difference"].values(), default=0):.0e}')


def machine():
    first = pathlib.Path('/proc/cpuinfo').read_text().split('\n\n')[0]
    fields = dict(line.split(':', 1) for line in first.splitlines())
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    extensions = [flag for flag in ('avx2', 'avx512f', 'avx512_vnni', 'avx512_bf16', 'amx_tile')
                  if flag in fields['flags'].split()]
    return {'processor': fields['model name'], 'model': int(fields['model']), 'extensions': extensions,
            'processors': os.cpu_count()}


def commit():
    return subprocess.run(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True,
                          check=True).stdout.strip()


def importable(engine):
    if subprocess.run([sys.executable, '-c', f'import {engine}'], capture_output=True).returncode == 0:
        return True
    print(f'{engine} cannot be imported and is left out', file=sys.stderr)
    return False


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build/release/bin')
    parser.add_argument('--models', default=','.join(drawn_onnx.MODELS))
    parser.add_argument('--batches', default='1,8')
    parser.add_argument('--sparsities', default='0.9')
    parser.add_argument('--cell', default='1x1', help='of zeros: output by input channels; not kept in FILE',
                        type=lambda text: tuple(int(number) for number in text.split('x')))
    parser.add_argument('--engines', default=','.join(PEERS))
    parser.add_argument('--real-engines', help='of the engines, those that run in FP32, too; all')
    parser.add_argument('--int8', metavar='PYTHON')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=8)
    parser.add_argument('--output', type=pathlib.Path)
    parser.add_argument('--merge', action='store_true')
    parser.add_argument('--commit', help='that was built, where this is no clone')
    arguments = parser.parse_args()
    arguments.binaries = arguments.binaries.resolve()
    arguments.models = arguments.models.split(',')
    arguments.batches = [int(batch) for batch in arguments.batches.split(',')]
    arguments.sparsities = [float(sparsity) for sparsity in arguments.sparsities.split(',')]
    arguments.engines = [engine for engine in arguments.engines.split(',') if importable(engine)]
    real = arguments.engines if arguments.real_engines is None else arguments.real_engines.split(',')
    arguments.real_engines = [engine for engine in arguments.engines if engine in real]
    return arguments


def keep(arguments, rows, versions):
    result = {'machine': machine(), 'threads': arguments.threads, 'versions': versions, 'rows': rows}
    if arguments.merge and arguments.output.exists():
        key = lambda row: (row['model'], row['sparsity'], row['batch'])  # noqa: E731
        kept = json.loads(arguments.output.read_text())
        if kept['machine'] != result['machine'] or kept['threads'] != arguments.threads:
            raise SystemExit(f'{arguments.output} is of another machine or number of threads: write another file')
        result['rows'] = list(({key(row): row for row in kept['rows']} | {key(row): row for row in rows}).values())
        result['versions'] = kept['versions'] | versions
    arguments.output.write_text(json.dumps(result, indent=1) + '\n')


def main():
    arguments = parse_arguments()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:arguments.threads])
    rows, versions = [], {}
    when = {'date': datetime.date.today().isoformat(), 'commit': arguments.commit or commit()}
    for sparsity in arguments.sparsities:
        for model in arguments.models:
            found, found_versions = measure_model(model, sparsity, arguments)
            rows += [row | when for row in found]
            versions |= found_versions
            if arguments.output:
                keep(arguments, rows, versions)


if __name__ == '__main__':
    main()
