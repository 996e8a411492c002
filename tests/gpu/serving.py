"""A server on the GPU under load: what a second, third and fourth stream bring, and what gRPC adds to a plan's time."""

import json
import os
import signal
import subprocess
import time

READY_SECONDS = 240
MODEL = 'mobilenet_v1'
CONFIG = 'max_batch_size: 64\ninstance_group [ {{ count: {streams} }} ]\n'  # no dynamic batching: a batch is a request


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


def bench(programs, server, concurrency, seconds):
    return programs.json('swizzle', 'bench', MODEL, f'--address={server.address}', f'--concurrency={concurrency}',
                         f'--duration={seconds}', '--warmup=200')


def measure(programs, arguments, scratch, figures):
    repository = scratch / 'repository'
    (repository / MODEL / '1').mkdir(parents=True)
    written = programs.run('plan_bench', f'--model={MODEL}', '--sparsity=0.9', f'--write={repository / MODEL / "1" / "model.swz"}')
    if written.returncode != 0:
        raise RuntimeError('plan_bench wrote no model: ' + written.stderr[-500:])
    cache = scratch / 'tuning_cache'
    devices = (('cuda:0', (1, 2, 4)),)
    if len(json.loads(os.environ.get('SWIZZLE_GPUS', '[0]'))) > 1:
        devices += (('cuda', (4,)),)
    for device, counts in devices:
        for streams in counts:
            (repository / MODEL / 'config.pbtxt').write_text(CONFIG.format(streams=streams))
            with Server(programs, repository, scratch, f'--device={device}', f'--tuning-cache={cache}',
                        f'--tuning-budget={arguments.budget}') as server:
                one = bench(programs, server, 1, 3)
                many = bench(programs, server, 4 * streams, 4)
            figures[f'{device}, {streams} streams'] = {'one client': one, f'{4 * streams} clients': many}
            print(f'{device}, {streams} streams: {json.dumps(one)}\n  {json.dumps(many)}', flush=True)
