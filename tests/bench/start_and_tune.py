"""How soon a server is ready, and how good the plans are that it finds later, beside busy processes too.

    build/venv/bin/python tests/bench/start_and_tune.py ready [--rounds=5] [--models=resnet50,mobilenet_v1,minilm]
    build/venv/bin/python tests/bench/start_and_tune.py tune [--busy=3] [--minutes=10] [--budget=120] [--rounds=7]

`ready`, with nothing cached: seconds from the start of the process until /readyz says yes, and from the log how long
the model was read (file to network) and planned. What counts is the whole over what can't be done without: the start of
a server without models, and reading.

`tune`: models are tuned in the background on a machine that is left alone, and again beside processes that do nothing
but count; each keeps its own cache of times. Then servers that measure nothing more start with each of these caches,
and with none (estimates), and answer requests of 1 and 8 rows in turn. What counts is the ratio of swizzle_compute_us, in
the median of rounds. Both kinds of start are made of one build, in one run; figures of a machine that is busy otherwise
mean nothing.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import onnx

import drawn_onnx
import traffic

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUSY = 'while True: pass'


class Server(traffic.Server):
    """A server of a repository, asked to stop, and waited for, when the block that it stands in ends."""

    def __init__(self, binaries, repository, *flags):
        super().__init__(binaries / 'swizzle-server', lambda models: models.symlink_to(repository), '--device=cpu',
                         '--log-format=json', *flags)

    def events(self, message):
        lines = [json.loads(line) for line in self.log_file.read_text().splitlines() if line.startswith('{')]
        return [line for line in lines if message in line.values()]

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(60)
        super().__exit__(*error)


def write_models(models, scratch):
    for model in models:
        file = scratch / model / model / '1' / 'model.onnx'
        file.parent.mkdir(parents=True)
        onnx.save(drawn_onnx.make(model, 0.9), file)
    (scratch / 'empty').mkdir()


def measure_ready(arguments, scratch):
    rows = []
    for model in arguments.models:
        bare, whole, read, planned = [], [], [], []
        for _ in range(arguments.rounds):
            with Server(arguments.binaries, scratch / 'empty') as server:
                bare.append(server.seconds_to_ready)
            with Server(arguments.binaries, scratch / model) as server:
                whole.append(server.seconds_to_ready)
                read.append(server.events('model read')[0]['ms'] / 1e3)
                planned.append(server.events('model planned')[0]['ms'] / 1e3)
        row = {'model': model, 'bare_s': statistics.median(bare), 'read_s': statistics.median(read),
               'planned_s': statistics.median(planned), 'ready_s': statistics.median(whole)}
        row['ratio'] = statistics.median(w / (b + r) for w, b, r in zip(whole, bare, read))
        print(f'{model:<14} ready {row["ready_s"]:.3f} s, of which reading {row["read_s"]:.3f}, planning '
              f'{row["planned_s"]:.3f}; {row["ratio"]:.2f} of a bare start and reading', flush=True)
        rows.append(row)
    return rows


def tune(model, cache, busy, arguments, scratch):
    neighbours = [subprocess.Popen([sys.executable, '-c', BUSY]) for _ in range(busy)]
    try:
        with Server(arguments.binaries, scratch / model, f'--tuning-cache={cache}',
                    f'--tuning-budget={arguments.budget}') as server:
            end = time.monotonic() + 60 * arguments.minutes
            while time.monotonic() < end and not server.events('model tuned'):
                time.sleep(0.5)
            text = server.metrics()
            facts = {name: float(re.search(f'^swizzle_{name}{{.*?}} (.*)$', text, re.M)[1])
                     for name in ('model_tuning_seconds_total', 'plan_replacements_total', 'suspect_measurements')}
            facts['done'] = bool(server.events('model tuned'))
            return facts
    finally:
        for neighbour in neighbours:
            os.kill(neighbour.pid, signal.SIGKILL)
            neighbour.wait()


class Asked:
    """Compute times of a model behind a server."""

    def __init__(self, server, model, batch):
        import tritonclient.grpc as triton
        self.client, self.model, self.inputs = triton.InferenceServerClient(server.address), model, []
        for name, array in drawn_onnx.draw_inputs(model, batch).items():
            dtype = 'FP32' if array.dtype.kind == 'f' else 'INT64'
            self.inputs.append(triton.InferInput(name, array.shape, dtype))
            self.inputs[-1].set_data_from_numpy(array)

    def milliseconds(self, runs=8):
        times = []
        for _ in range(runs):
            response = self.client.infer(self.model, self.inputs).get_response()
            times.append(response.parameters['swizzle_compute_us'].int64_param / 1e3)
        return min(times)


def compare(model, caches, arguments, scratch):
    rows = []
    for batch in (1, 8):
        times = {way: [] for way in caches}
        for _ in range(arguments.rounds):
            for way, cache in caches.items():
                with Server(arguments.binaries, scratch / model, '--tune=off',
                            *([f'--tuning-cache={cache}'] if cache else [])) as server:
                    times[way].append(Asked(server, model, batch).milliseconds())
        row = {'model': model, 'batch': batch, **{way: statistics.median(values) for way, values in times.items()}}
        row['busy_over_quiet'] = statistics.median(b / q for b, q in zip(times['busy'], times['quiet']))
        print(f'{model:<14} batch {batch}: ' + ', '.join(f'{way} {row[way]:.2f} ms' for way in caches) +
              f'; busy over quiet {row["busy_over_quiet"]:.3f}', flush=True)
        rows.append(row)
    return rows


def measure_tuning(arguments, scratch):
    rows = []
    for model in arguments.models:
        caches = {'quiet': scratch / f'{model}.quiet', 'busy': scratch / f'{model}.busy', 'estimated': None}
        for way, busy in (('quiet', 0), ('busy', arguments.busy)):
            facts = tune(model, caches[way], busy, arguments, scratch)
            print(f'{model:<14} tuned {way}: {facts}', flush=True)
        rows += compare(model, caches, arguments, scratch)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('ready', 'tune'))
    parser.add_argument('--models', default='resnet50,mobilenet_v1,minilm')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--busy', type=int, default=3, help='processes beside the one that tunes')
    parser.add_argument('--minutes', type=float, default=10, help='for the tuning of a model')
    parser.add_argument('--budget', type=float, default=120, help='--tuning-budget of servers that tune')
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build' / 'dev' / 'bin')
    parser.add_argument('--output', type=pathlib.Path, help='keep the figures here as JSON')
    arguments = parser.parse_args()
    arguments.models = arguments.models.split(',')
    arguments.binaries = arguments.binaries.resolve()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        write_models(arguments.models, scratch)
        rows = measure_ready(arguments, scratch) if arguments.what == 'ready' else measure_tuning(arguments, scratch)
    if arguments.output:
        arguments.output.write_text(json.dumps({'what': arguments.what, 'rows': rows}, indent=2) + '\n')


if __name__ == '__main__':
    main()
