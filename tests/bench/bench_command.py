"""`swizzle bench` beside a load by tritonclient's asyncio client: do both measure the same?

    bench_command.py [--binaries=build/dev/bin] [--rounds=3] [--seconds=2] [--models=5:1,20:4,0:1,0:8]

Serves identity models. A model of the list, DELAY:CONCURRENCY, takes so many milliseconds, and has so many requests in
flight. Both measure it in turn. Prints a line for each measurement, then, as JSON, medians over the rounds: requests a
second, the 50th and 99th percentile of the latency in milliseconds, and the ratios of bench to asyncio.
"""

import argparse
import asyncio
import json
import pathlib
import statistics
import subprocess
import time

import numpy
import tritonclient.grpc.aio as triton

import traffic

WARM_SECONDS = 0.3


def prepare(delays):
    def write(models):
        for delay in delays:
            (models / f'takes_{delay}_ms' / '1').mkdir(parents=True)
            (models / f'takes_{delay}_ms' / 'config.pbtxt').write_text(traffic.identity_config(delay, 8))
    return write


def by_bench(binaries, address, model, concurrency, seconds):
    told = subprocess.run([binaries / 'swizzle', f'--address={address}', 'bench', model, '-o', 'json', '--warmup=100',
                           f'--concurrency={concurrency}', f'--duration={seconds}'], capture_output=True, check=True)
    report = json.loads(told.stdout)
    return report['requests_per_second'], report['latency_ms']['p50'], report['latency_ms']['p99']


async def by_asyncio(address, model, concurrency, seconds):
    tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
    tensor.set_data_from_numpy(numpy.zeros((1, 16), numpy.float32))
    latencies = []

    async def ask_until(client, end):
        while (begin := time.perf_counter()) < end:
            await client.infer(model, [tensor])
            latencies.append(time.perf_counter() - begin)

    async with triton.InferenceServerClient(address) as client:
        for length in (WARM_SECONDS, seconds):
            latencies.clear()
            begin = time.perf_counter()
            await asyncio.gather(*(ask_until(client, begin + length) for _ in range(concurrency)))
            took = time.perf_counter() - begin
    p50, p99 = numpy.quantile(latencies, [0.5, 0.99]) * 1000
    return len(latencies) / took, float(p50), float(p99)


def measure(options, address, delay, concurrency):
    rounds = {'bench': [], 'asyncio': []}
    for _ in range(options.rounds):
        arguments = address, f'takes_{delay}_ms', concurrency, options.seconds
        rounds['bench'].append(by_bench(options.binaries, *arguments))
        rounds['asyncio'].append(asyncio.run(by_asyncio(*arguments)))
        for name, figures in rounds.items():
            rate, p50, p99 = figures[-1]
            print(f'{name:8} {delay:3} ms, {concurrency:3} in flight: {rate:9.1f}/s  p50 {p50:8.3f}  p99 {p99:8.3f}')
    medians = {name: [statistics.median(column) for column in zip(*figures)] for name, figures in rounds.items()}
    ratios = [ours / theirs for ours, theirs in zip(medians['bench'], medians['asyncio'])]
    return {'delay_ms': delay, 'in_flight': concurrency, **medians, 'ratios': ratios}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--binaries', type=pathlib.Path, default=pathlib.Path('build/dev/bin'))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--models', default='5:1,20:4,0:1,0:8')
    options = parser.parse_args()
    models = [tuple(map(int, model.split(':'))) for model in options.models.split(',')]
    with traffic.Server(options.binaries / 'swizzle-server', prepare({delay for delay, _ in models})) as server:
        print(json.dumps([measure(options, server.address, *model) for model in models]))


if __name__ == '__main__':
    main()
