"""Latency against throughput on the CPU: one executor on all processors, or several that share them out.

For each model of plan_bench, drawn with 90 % zeros, and each `instance_group` count: one client's median latency and
compute, and requests a second of many clients, each request one image or sequence (no dynamic batching, so that only
the executors differ). All servers run at once and take turns, round by round.

    python3 tests/bench/instances.py [--binaries=build/release/bin] [--models=mobilenet_v1,resnet50] [--counts=1,2]
        [--clients=8] [--rounds=5] [-o json]
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from served import Served

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = 'max_batch_size: 8\ninstance_group [ {{ count: {count}, kind: KIND_CPU }} ]\n'


def write_repository(arguments, model, count, scratch):
    repository = scratch / f'{model} {count}'
    version = repository / model / '1'
    version.mkdir(parents=True)
    (repository / model / 'config.pbtxt').write_text(CONFIG.format(count=count))
    subprocess.run([arguments.binaries / 'plan_bench', f'--model={model}', '--sparsity=0.9',
                    f'--write={version / "model.swz"}'], check=True, stdout=subprocess.DEVNULL)
    return repository


def ask(arguments, server, model):
    """One round of one client, then of all."""
    done = subprocess.run([arguments.binaries / 'echo_overhead_bench', f'--address={server.grpc_address}',
                           f'--model={model}', f'--clients={arguments.clients}', '--rounds=1', '--requests=40',
                           '--seconds=2', '-o', 'json'],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)['served']


def measure(arguments, model, scratch):
    """A row for each count."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for count in arguments.counts:
            repository = write_repository(arguments, model, count, scratch)
            cache = f'--tuning-cache={scratch / "times.jsonl"}'
            servers[count] = stack.enter_context(Served(arguments.binaries, repository, scratch, cache, '--device=cpu'))
        rounds = [{count: ask(arguments, server, model) for count, server in servers.items()}
                  for _ in range(arguments.rounds)]

    def median(count, name):
        return statistics.median(each[count][name] for each in rounds)
    return [{'model': model, 'instances': count, 'p50_ms': median(count, 'p50_us') / 1e3,
             'compute_ms': median(count, 'compute_p50_us') / 1e3, 'clients': arguments.clients,
             'requests_per_second': median(count, 'requests_per_second')} for count in arguments.counts]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build/release/bin')
    parser.add_argument('--models', default='mobilenet_v1,resnet50')
    parser.add_argument('--counts', default=f'1,{len(os.sched_getaffinity(0))}')
    parser.add_argument('--clients', type=int, default=8)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('-o', choices=('text', 'json'), default='text', dest='output')
    arguments = parser.parse_args()
    arguments.binaries = arguments.binaries.resolve()
    arguments.models = arguments.models.split(',')
    arguments.counts = [int(count) for count in arguments.counts.split(',')]
    return arguments


def main():
    arguments, rows = parse_arguments(), []
    with tempfile.TemporaryDirectory() as scratch:
        for model in arguments.models:
            rows += measure(arguments, model, pathlib.Path(scratch))
    if arguments.output == 'json':
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f'{row["model"]:<14} {row["instances"]:>3} instances: one client p50 {row["p50_ms"]:7.2f} ms, compute '
              f'{row["compute_ms"]:7.2f} ms; {row["clients"]} clients {row["requests_per_second"]:8.1f} requests/s',
              flush=True)


if __name__ == '__main__':
    main()
