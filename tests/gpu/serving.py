"""A server on the GPU under load: sparse models beside dense ones, what more streams and GPUs bring, how busy they are,
and what the server adds to a plan's time and a bare echo of the same bytes.

One client's times and many clients' rates are from echo_overhead_bench, each of whose clients has a connection of its
own; its echo runs in the same rounds. Busy is nvidia-smi's share of time in which some kernel ran, which is no more
than the sum of the kernels' times; the idler half of the samples, when one client asked or none, does not count.
Memory is what the device has less than before the server started.
"""

import json
import pathlib
import signal
import statistics
import subprocess
import threading
import time

READY_SECONDS = 240
# No dynamic batching: a batch is a request.
CONFIG = 'max_batch_size: {rows}\ninstance_group [ {{ count: {streams} }} ]\n'
PRECISION = 'parameters {{ key: "precision" value {{ string_value: "{precision}" }} }}\n'
TOKENS = 'parameters {{ key: "max_batch_tokens" value {{ string_value: "{tokens}" }} }}\n'
DRAW_TRANSFORMER = pathlib.Path(__file__).resolve().parents[1] / 'bench' / 'sparse_transformer.py'
TRANSFORMER_TOKENS = 12288
MODELS = ('mobilenet_v1', 'mobilenet_v1:1.8', 'resnet50', 'minilm', 'bert-base')


def smi(gpus, field):
    """What nvidia-smi says of each of these GPUs."""
    asked = subprocess.run(['nvidia-smi', f'--id={gpus}', f'--query-gpu={field}', '--format=csv,noheader,nounits'],
                           capture_output=True, text=True, check=False)
    return [float(line) for line in asked.stdout.split() if line.strip().isdigit()]


class Server:
    """Serves the repository until the end of its block. What goes wrong inside of it is told with the server's log."""

    def __init__(self, programs, repository, scratch, *flags, environment=None):
        port_file = scratch / 'ports.json'
        port_file.unlink(missing_ok=True)
        self.log_file = scratch / 'server.log'
        with self.log_file.open('w') as log:
            self.process = subprocess.Popen(
                programs.command('swizzle-server', f'--model-repository={repository}', '--grpc-address=127.0.0.1:0',
                                 '--metrics-address=127.0.0.1:0', f'--port-file={port_file}', *flags),
                stdout=log, stderr=subprocess.STDOUT, env=environment)
        end = time.time() + READY_SECONDS
        while not port_file.exists():
            if self.process.poll() is not None or time.time() > end:
                self.process.kill()
                raise RuntimeError('the server did not start: ' + self.log())
            time.sleep(0.05)
        ports = json.loads(port_file.read_text())
        self.address, self.metrics = f'127.0.0.1:{ports["grpc"]}', f'127.0.0.1:{ports["metrics"]}'

    def log(self):
        return self.log_file.read_text()[-3000:]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        ended = self.process.poll()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError('the server did not stop: ' + self.log()) from error
        if kind is not None:
            state = 'ran' if ended is None else f'had ended with {ended}'
            raise RuntimeError(f'{error}\nthe server {state}; its log:\n{self.log()}') from error


class BusyWatch:
    """Asks how busy the GPUs are, until the end of its block; `median` in percent, of the busiest second half."""

    def __init__(self, gpus):
        self.gpus, self.samples, self.ended = gpus, [], threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.ended.wait(0.1):
            values = smi(self.gpus, 'utilization.gpu')
            if values:
                self.samples.append(statistics.mean(values))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def median(self):
        ascending = sorted(self.samples)
        return statistics.median(ascending[len(ascending) // 2:]) if ascending else None


def beside_echo(programs, server, model, clients, rounds=4, requests=300, seconds=1):
    return programs.json('echo_overhead_bench', f'--address={server.address}', f'--model={model}',
                         f'--clients={clients}', f'--rounds={rounds}', f'--requests={requests}', f'--seconds={seconds}')


def write_model(programs, folder, model, sparsity, *flags):
    folder.mkdir(parents=True)
    written = programs.run('plan_bench', f'--model={model}', f'--sparsity={sparsity}',
                           f'--write={folder / "model.swz"}', *flags)
    if written.returncode != 0:
        raise RuntimeError('plan_bench wrote no model: ' + written.stderr[-500:])


def measure_one(programs, arguments, scratch, model, device='cuda:0', streams=1, clients=16, sparsity=0.9, rows=64,
                precision='FP32', drawn=()):
    """One client, and many, of a model of which each device has this many executors; `drawn` says how it is drawn."""
    name = model.replace(':', '_')
    repository = scratch / ' '.join(map(str, (name, sparsity, *drawn)))
    if not repository.exists():
        write_model(programs, repository / name / '1', model, sparsity, *drawn)
    (repository / name / 'config.pbtxt').write_text(CONFIG.format(rows=rows, streams=streams) +
                                                    PRECISION.format(precision=precision))
    with Server(programs, repository, scratch, f'--device={device}', f'--tuning-cache={scratch / "tuning_cache"}',
                '--tune=before-ready', f'--tuning-budget={arguments.budget}') as server:
        with BusyWatch(device.removeprefix('cuda:')) as busy:
            served = beside_echo(programs, server, name, clients)
    one, echo = served['served'], served['echo']
    over = one['p50_us'] - one['compute_p50_us'] - echo['p50_us']
    over_busy = one['p50_us'] - served['busy_echo']['p50_us']
    result = arguments.stamp | {'sparsity': sparsity, 'device': device, 'streams': streams, 'precision': precision,
              'drawn': list(drawn), 'over_compute_and_echo_us': over, 'over_busy_echo_us': over_busy,
              'busy_percent': busy.median(), **served, 'model': model}
    stages = ', '.join(f'{name.removesuffix("_us")} {us:.0f}' for name, us in served['stages'].items())
    print(f'{model} {sparsity:.0%} zeros in {precision} {" ".join(drawn)} on {device}, {streams} streams each: '
          f'p50 {one["p50_us"]:.0f} us, of which compute {one["compute_p50_us"]:.0f}, echo {echo["p50_us"]:.0f}, '
          f'over both {over:.0f}, over an echo as busy {over_busy:.0f} (means: {stages}); '
          f'{clients} clients {one["requests_per_second"]:.0f}/s, echo {echo["requests_per_second"]:.0f}/s; '
          f'busy {busy.median()} %', flush=True)
    return result


def draw_transformer(arguments, repository, *flags):
    folder = repository / 'transformer' / '1'
    folder.mkdir(parents=True)
    drawn = subprocess.run([arguments.python, str(DRAW_TRANSFORMER), str(folder / 'model.onnx'), *flags],
                           capture_output=True, text=True, timeout=300, check=False)
    if drawn.returncode != 0:
        raise RuntimeError('sparse_transformer.py: ' + drawn.stderr.strip()[-1000:])


def measure_transformer(programs, arguments, scratch, figures):
    """The sparse Transformer of sparse_transformer.py from its ONNX file, and the same whose queries attend to all
    keys."""
    results = figures['transformer'] = []
    for attention, flags in (('sparse', ()), ('dense', ('--dense',))):
        repository = scratch / f'transformer {attention}'
        draw_transformer(arguments, repository, *flags)
        for precision in ('FP32', 'FP16'):
            (repository / 'transformer' / 'config.pbtxt').write_text(
                CONFIG.format(rows=1, streams=2) + PRECISION.format(precision=precision) +
                TOKENS.format(tokens=TRANSFORMER_TOKENS))
            free = smi('0', 'memory.free')
            with Server(programs, repository, scratch, '--device=cuda:0', '--tune=before-ready',
                        f'--tuning-budget={arguments.budget}') as server:
                served = beside_echo(programs, server, 'transformer', clients=4, rounds=3, requests=10, seconds=2)
                memory = free[0] - smi('0', 'memory.free')[0]
                kernels = server.log().split('kernels=')[-1].splitlines()[0]
            one = served['served']
            rate = one['requests_per_second'] * TRANSFORMER_TOKENS
            results.append(arguments.stamp | {'attention': attention, 'precision': precision, 'tokens_per_second': rate,
                            'memory_mib': memory, 'kernels': kernels, **served})
            print(f'Transformer of {TRANSFORMER_TOKENS} tokens, {attention} attention, {precision}: {rate:.0f} '
                  f'tokens/s, {memory:.0f} MiB; one client p50 {one["p50_us"]:.0f} us, of which compute '
                  f'{one["compute_p50_us"]:.0f}, echo {served["echo"]["p50_us"]:.0f}', flush=True)


def measure(programs, arguments, scratch, figures):
    figures['streams'] = [measure_one(programs, arguments, scratch, 'mobilenet_v1', streams=streams)
                          for streams in (1, 2, 4)]
    figures['models'] = [measure_one(programs, arguments, scratch, model, streams=2, sparsity=sparsity)
                         for model in MODELS for sparsity in (0.9, 0.0)]


def measure_halves(programs, arguments, scratch, figures):
    """FP16: zeros in vectors of 64 rows beside none, images of bytes, one executor beside two. A plan serves 16 rows,
    or is tuned longer than this part is to take."""
    figures['halves'] = []
    for model in ('mobilenet_v1', 'resnet50', 'minilm', 'bert-base'):
        bytes_too = ('--byte-images',) if model in ('mobilenet_v1', 'resnet50') else ()
        for sparsity, drawn in ((0.9, ('--vector=64', *bytes_too)), (0.0, bytes_too)):
            figures['halves'] += [measure_one(programs, arguments, scratch, model, streams=streams, sparsity=sparsity,
                                              rows=16, precision='FP16', drawn=drawn) for streams in (1, 2)]


def measure_gpus(programs, arguments, scratch, figures):
    """Two GPUs beside one."""
    if len(smi('0,1', 'utilization.gpu')) < 2:
        raise RuntimeError('this machine has one GPU; leave the part out with --only')
    figures['gpus'] = [measure_one(programs, arguments, scratch, 'resnet50', device, streams=2, clients=clients)
                       for device, clients in (('cuda:0', 16), ('cuda:0,1', 32))]
