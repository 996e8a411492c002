"""A model under several times the load that it can bear.

    overload.py [--server=PROGRAM] [--seconds=60] [--factor=4] [--wait-ms=500] [--model=FILE.onnx --rows=N]

Without --model it is an identity model whose batches of 4 take 20 ms. First clients that wait for their answers find
its peak, then calls are sent at `factor` times that, whatever becomes of them. Prints, as JSON, what share of the peak
was answered, how long accepted requests took, and how memory grew; ends with 1 if

  goodput is below 90 % of the peak, both by the processors that the clients left to the server: four times as many
    requests of 602 KB take a tenth of two processors to send,
  the 99th percentile of what was accepted is above the queue's limit and a batch's time, and 20 % more,
  a call had no answer, or one that is neither OK, RESOURCE_EXHAUSTED nor DEADLINE_EXCEEDED,
  or resident memory grew by more than 10 % in the second half.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import threading
import time

import numpy

import traffic

BATCH, DELAY_MS = 4, 20


def prepare(options):
    bound = f'parameters {{ key: "max_queue_wait_ms" value {{ string_value: "{options.wait_ms}" }} }}'

    def write(models):
        folder = models / 'model'
        (folder / '1').mkdir(parents=True)
        if options.model:
            shutil.copy(options.model, folder / '1' / 'model.onnx')
            (folder / 'config.pbtxt').write_text(f'dynamic_batching {{ }} {bound}')
        else:
            (folder / 'config.pbtxt').write_text(traffic.identity_config(DELAY_MS, BATCH, extra=bound))
    return write


def wire_of(options):
    if options.model:
        shape = [int(size) for size in options.shape.split(',')]
        return traffic.message('model', numpy.random.default_rng(1).random([options.rows, *shape]), options.input)
    return traffic.message('model', numpy.ones((1, 16)))


class MemoryWatch:
    """Samples a server's resident memory until it is left."""

    def __init__(self, server):
        self.server, self.samples, self.over = server, [], threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.25):
            self.samples.append(self.server.resident_bytes())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def growth(self):
        """Of the last quarter's mean over the second one's."""
        quarter = max(1, len(self.samples) // 4)
        return numpy.mean(self.samples[-quarter:]) / numpy.mean(self.samples[quarter:2 * quarter]) - 1


def batches_and_seconds(server):
    return server.metric('swizzle_batches_total'), server.metric('swizzle_stage_duration_seconds_sum', stage='compute')


def left_processors(call):
    """(what `call` returns, its seconds, the processors that it left to others)"""
    def clients():
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    before, used = time.monotonic(), clients()
    result = call()
    seconds = time.monotonic() - before
    return result, seconds, len(os.sched_getaffinity(0)) - (clients() - used) / seconds


def measure(options, server):
    wire = wire_of(options)
    traffic.closed_loop(server.address, wire, options.clients, 2)
    peak, seconds, peak_left = left_processors(
        lambda: traffic.closed_loop(server.address, wire, options.clients, options.peak_seconds))
    peak_rate = peak.codes()['OK'] / seconds
    computed = numpy.array(batches_and_seconds(server))
    with MemoryWatch(server) as memory:
        (tally, sent), _, left = left_processors(
            lambda: traffic.open_loop(server.address, wire, options.factor * peak_rate, options.seconds))
    batches, seconds = batches_and_seconds(server) - computed
    service = seconds / batches
    accepted, in_server = tally.seconds(), tally.seconds('OK in the server')
    codes = tally.codes()
    del codes['OK in the server']
    return {
        'peak_per_second': peak_rate,
        'sent_per_second': sent / options.seconds,
        'goodput': (goodput := len(accepted) / options.seconds / peak_rate),
        'left_processors': [peak_left, left],
        'goodput_of_left': goodput * peak_left / left,
        'batch_seconds': service,
        'p50_seconds': traffic.percentile(accepted, 0.5),
        'p99_seconds': traffic.percentile(accepted, 0.99),
        'p99_seconds_in_server': traffic.percentile(in_server, 0.99),
        'p99_bound': 1.2 * (options.wait_ms / 1000 + service),
        'codes': dict(codes),
        'sent': sent,
        'answered': sum(codes.values()),
        'memory_growth': memory.growth(),
        'resident_mib': memory.samples[-1] / 2**20,
    }


def wrong(result):
    return [name for name, holds in {
        'goodput': result['goodput_of_left'] >= 0.9,
        'p99': result['p99_seconds'] <= result['p99_bound'],
        'answers': result['sent'] == result['answered'],
        'codes': set(result['codes']) <= {'OK', 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED'},
        'memory': result['memory_growth'] < 0.1,
    }.items() if not holds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', default='build/dev/bin/swizzle-server')
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--peak-seconds', type=float, default=10)
    parser.add_argument('--factor', type=float, default=4)
    parser.add_argument('--wait-ms', type=int, default=500)
    parser.add_argument('--clients', type=int, default=4 * BATCH)
    parser.add_argument('--model', help='an ONNX file, instead of the identity model')
    parser.add_argument('--input', default='image')
    parser.add_argument('--shape', default='1,28,28', help='of one row')
    parser.add_argument('--rows', type=int, default=8)
    options = parser.parse_args()
    with traffic.Server(options.server, prepare(options), '--tuning-budget=0') as server:
        result = measure(options, server)
        result['wrong'] = wrong(result)
    print(json.dumps(result, indent=2))
    sys.exit(bool(result['wrong']))


if __name__ == '__main__':
    main()
