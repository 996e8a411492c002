"""A server on the GPU under load: sparse models beside dense ones, what more streams and GPUs bring, how busy they are, and
what the server adds to a plan's time and a bare echo of the same bytes.

One client's times and many clients' rates are from echo_overhead_bench, each of whose clients has a connection of its own;
its echo runs in the same rounds. Busy is nvidia-smi's: the share of time in which some kernel ran.
"""

import json
import signal
import statistics
import subprocess
import threading
import time

READY_SECONDS = 240
CONFIG = 'max_batch_size: 64\ninstance_group [ {{ count: {streams} }} ]\n'  # no dynamic batching: a batch is a request
MODELS = ('mobilenet_v1', 'resnet50', 'minilm', 'bert-base')


class Server:
    """Serves the repository until the end of its block."""

    def __init__(self, programs, repository, scratch, *flags):
        self.port_file = scratch / 'ports.json'
        self.port_file.unlink(missing_ok=True)
        self.log = (scratch / 'server.log').open('w')
        self.process = subprocess.Popen(
            programs.command('swizzle-server', f'--model-repository={repository}', '--grpc-address=127.0.0.1:0',
                             '--metrics-address=127.0.0.1:0', f'--port-file={self.port_file}', *flags),
            stdout=self.log, stderr=subprocess.STDOUT)
        end = time.time() + READY_SECONDS
        while not self.port_file.exists():
            if self.process.poll() is not None or time.time() > end:
                self.process.kill()
                raise RuntimeError('the server did not start: ' + (scratch / 'server.log').read_text()[-1500:])
            time.sleep(0.05)
        self.address = f'127.0.0.1:{json.loads(self.port_file.read_text())["grpc"]}'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.log.close()


class BusyWatch:
    """Asks how busy the GPUs are, until the end of its block; `median` in percent, of the busiest second half."""

    def __init__(self, gpus):
        self.gpus, self.samples, self.ended = gpus, [], threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.ended.wait(0.1):
            asked = subprocess.run(['nvidia-smi', f'--id={self.gpus}', '--query-gpu=utilization.gpu',
                                    '--format=csv,noheader,nounits'], capture_output=True, text=True, check=False)
            values = [float(line) for line in asked.stdout.split() if line.strip().isdigit()]
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


def beside_echo(programs, server, model, clients, rounds=4, seconds=1):
    return programs.json('echo_overhead_bench', f'--address={server.address}', f'--model={model}', f'--clients={clients}',
                         f'--rounds={rounds}', '--requests=300', f'--seconds={seconds}')


def write_model(programs, repository, model, sparsity):
    folder = repository / model / '1'
    folder.mkdir(parents=True)
    written = programs.run('plan_bench', f'--model={model}', f'--sparsity={sparsity}', f'--write={folder / "model.swz"}')
    if written.returncode != 0:
        raise RuntimeError('plan_bench wrote no model: ' + written.stderr[-500:])


def measure_one(programs, arguments, scratch, model, device='cuda:0', streams=1, clients=16, sparsity=0.9):
    """One client, and many, of a model of which each device has this many executors."""
    repository = scratch / f'{model} {sparsity}'
    if not repository.exists():
        write_model(programs, repository, model, sparsity)
    (repository / model / 'config.pbtxt').write_text(CONFIG.format(streams=streams))
    with Server(programs, repository, scratch, f'--device={device}', f'--tuning-cache={scratch / "tuning_cache"}',
                f'--tuning-budget={arguments.budget}') as server:
        with BusyWatch(device.removeprefix('cuda:')) as busy:
            served = beside_echo(programs, server, model, clients)
    one = served['served']
    over = one['p50_us'] - one['compute_p50_us'] - served['echo']['p50_us']
    result = {'sparsity': sparsity, 'device': device, 'streams': streams, 'over_compute_and_echo_us': over,
              'busy_percent': busy.median(), **served}
    print(f'{model} {sparsity:.0%} zeros on {device}, {streams} streams each: p50 {one["p50_us"]:.0f} us, of which compute '
          f'{one["compute_p50_us"]:.0f}, echo {served["echo"]["p50_us"]:.0f}, over both {over:.0f}; {clients} clients '
          f'{one["requests_per_second"]:.0f}/s, echo {served["echo"]["requests_per_second"]:.0f}/s; busy '
          f'{busy.median()} %', flush=True)
    return result


def measure(programs, arguments, scratch, gpus, figures):
    figures['streams'] = [measure_one(programs, arguments, scratch, 'mobilenet_v1', streams=streams) for streams in (1, 2, 4)]
    figures['models'] = [measure_one(programs, arguments, scratch, model, streams=2, sparsity=sparsity)
                         for model in MODELS for sparsity in (0.9, 0.0)]
    if gpus > 1:
        figures['gpus'] = [measure_one(programs, arguments, scratch, 'resnet50', device, streams=2, clients=clients)
                           for device, clients in (('cuda:0', 16), ('cuda:0,1', 32))]
