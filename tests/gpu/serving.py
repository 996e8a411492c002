"""A server on the GPU under load: what a second, third and fourth stream bring, and what gRPC adds to a plan's time."""

import json
import signal
import subprocess
import time

READY_SECONDS = 240
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


def bench(programs, server, model, concurrency, seconds):
    return programs.json('swizzle', 'bench', model, f'--address={server.address}', f'--concurrency={concurrency}',
                         f'--duration={seconds}', '--warmup=200')


def write_model(programs, repository, model):
    folder = repository / model / '1'
    folder.mkdir(parents=True)
    written = programs.run('plan_bench', f'--model={model}', '--sparsity=0.9', f'--write={folder / "model.swz"}')
    if written.returncode != 0:
        raise RuntimeError('plan_bench wrote no model: ' + written.stderr[-500:])


def measure_one(programs, arguments, scratch, model, device, streams, clients):
    """One client, and many, of a model of which each device has this many executors."""
    repository = scratch / model
    if not repository.exists():
        write_model(programs, repository, model)
    (repository / model / 'config.pbtxt').write_text(CONFIG.format(streams=streams))
    with Server(programs, repository, scratch, f'--device={device}', f'--tuning-cache={scratch / "tuning_cache"}',
                f'--tuning-budget={arguments.budget}') as server:
        result = {'model': model, 'device': device, 'streams': streams, 'one_client': bench(programs, server, model, 1, 3),
                  'many_clients': bench(programs, server, model, clients, 4)}
    one, many = result['one_client'], result['many_clients']
    print(f'{model} on {device}, {streams} streams each: 1 client {one["requests_per_second"]:.0f}/s, p50 '
          f'{one["latency_ms"]["p50"]:.3f} ms of which compute {one["server_compute_ms"]["p50"]:.3f}; {clients} clients '
          f'{many["requests_per_second"]:.0f}/s', flush=True)
    return result


def measure(programs, arguments, scratch, gpus, figures):
    figures['streams'] = [measure_one(programs, arguments, scratch, 'mobilenet_v1', 'cuda:0', streams, 16)
                          for streams in (1, 2, 4)]
    if gpus > 1:
        figures['gpus'] = [measure_one(programs, arguments, scratch, 'resnet50', device, 2, clients)
                           for device, clients in (('cuda:0', 8), ('cuda:0,1', 16))]
