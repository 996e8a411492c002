"""What one overloaded model does to another's answers.

    fairness.py [--server=PROGRAM] [--models=DIR] [--rounds=5] [--seconds=6] [--factor=4]

Serves two models. One client asks the quiet one, and waits before it asks again. In turn, that client is alone, and
beside calls to the other model at `factor` times what it can bear, which another process sends. Prints a line a round,
and, as JSON, the medians of the rounds: the 50th, 90th and 99th percentile alone and beside, and their ratios, of the time
that the server says it took (queued and computed) and, as "client", of what the client saw.
"""

import argparse
import json
import multiprocessing
import pathlib
import shutil
import statistics
import time

import grpc
import numpy

import traffic

LOUD, QUIET = 'mobilenet_v1_fashion_sparse90', 'resnet18_thin_fashion_sparse90'
PAUSE = 0.02


def prepare(directory):
    def write(models):
        for name in (LOUD, QUIET):
            (models / name / '1').mkdir(parents=True)
            shutil.copy(pathlib.Path(directory) / f'{name}.onnx', models / name / '1' / 'model.onnx')
    return write


def prepare_identity(delay_ms):
    def write(models):
        for name in (LOUD, QUIET):
            (models / name / '1').mkdir(parents=True)
            (models / name / 'config.pbtxt').write_text(traffic.identity_config(delay_ms, 4))
    return write


def ask(address, wire, seconds):
    """The quiet model's client: seconds in the server, and as seen here."""
    tally, inside, end = traffic.Tally(), [], time.monotonic() + seconds
    with grpc.insecure_channel(address, options=traffic.CHANNEL) as channel:
        call = channel.unary_unary(traffic.METHOD)
        while time.monotonic() < end:
            answer = traffic.call_once(call, wire, tally)
            if answer is not None:
                inside.append(traffic.seconds_in_server(answer))
            time.sleep(PAUSE)
    return {'server': sorted(inside), 'client': tally.seconds()}


def measure(options, server):
    random = numpy.random.default_rng(1)
    if options.delay_ms:
        loud, quiet = (traffic.message(name, random.random((1, 16))) for name in (LOUD, QUIET))
    else:
        loud = traffic.message(LOUD, random.random((options.rows, 1, 28, 28)), 'image')
        quiet = traffic.message(QUIET, random.random((options.quiet_rows, 1, 28, 28)), 'image')
    processes = multiprocessing.get_context('spawn')
    peak = traffic.closed_loop(server.address, loud, 4, 5).codes()['OK'] / 5
    ask(server.address, quiet, 1)
    rounds = []
    for _ in range(options.rounds):
        alone = ask(server.address, quiet, options.seconds)
        sender = processes.Process(target=traffic.open_loop,
                                   args=(server.address, loud, options.factor * peak, options.seconds + 4))
        sender.start()
        time.sleep(3)
        refused = server.metric('swizzle_rejected_requests_total', model=LOUD)
        beside = ask(server.address, quiet, options.seconds)
        refused = server.metric('swizzle_rejected_requests_total', model=LOUD) - refused
        sender.join()
        rounds.append({f'{seen}_{where}_p{int(share * 100)}': traffic.percentile(times[seen], share)
                       for where, times in (('alone', alone), ('beside', beside)) for share in (0.5, 0.9, 0.99)
                       for seen in times})
        print({name: round(value * 1000, 2) for name, value in rounds[-1].items()}, 'ms; answers', len(alone['server']),
              'and', len(beside['server']), 'refused to the other', refused, flush=True)
    result = {name: statistics.median(entry[name] for entry in rounds) for name in rounds[0]}
    for seen in ('server', 'client'):
        for share in ('p50', 'p90', 'p99'):
            result[f'{seen}_ratio_{share}'] = statistics.median(
                entry[f'{seen}_beside_{share}'] / entry[f'{seen}_alone_{share}'] for entry in rounds)
    return {'peak_per_second': peak, **result}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', default='build/dev/bin/swizzle-server')
    parser.add_argument('--models', default='deploy/models')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=6)
    parser.add_argument('--factor', type=float, default=4)
    parser.add_argument('--rows', type=int, default=8, help='of a request to the overloaded model')
    parser.add_argument('--quiet-rows', type=int, default=1)
    parser.add_argument('--delay-ms', type=int, help='identity models that take so long, instead of shipped ones: what '
                        'is not the processors\' own sharing')
    options = parser.parse_args()
    models = prepare_identity(options.delay_ms) if options.delay_ms else prepare(options.models)
    with traffic.Server(options.server, models, '--tuning-budget=0') as server:
        print(json.dumps(measure(options, server), indent=2))


if __name__ == '__main__':
    main()
