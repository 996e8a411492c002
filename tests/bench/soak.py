"""Every kind of client at once, for a long time: good ones, bad ones, some that cancel, time out or vanish.

    soak.py [--server=PROGRAM] [--models=DIR] [--minutes=30] [--clients=2] [--tuning-budget=15]

Serves identity models (a quick one and a slow one), the shipped convolutional ones, and one that can't be loaded. Every
client sends what its kind sends, again and again, and knows which answer is right. For two seconds of every ten all
rest, in which plans are tuned and replaced. Once a minute (or ten times, if that is more often) a line says how many
calls ended how, what memory and files the server holds, and how many plans were replaced. Ends with 1 if an answer was
wrong, a call ended as its kind can't, the server ended, files were left open, memory grew by 1 % or more after the first
sixth (minute 5 of 30), or --least-replacements plans were not replaced.
"""

import argparse
import collections
import http.client
import json
import math
import pathlib
import random
import shutil
import socket
import sys
import threading
import time

import grpc
import numpy
from tritonclient.grpc import service_pb2

import traffic
from raw_http2 import PREFACE

REST_EVERY, REST = 10.0, 2.0  # seconds
REAL = [f'{model}{pruned}' for model in ('mobilenet_v1_fashion', 'resnet18_thin_fashion')
        for pruned in ('', '_sparse90')]
OVERLOADED = {'OK', 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED'}


def prepare(directory):
    def write(models):
        for name, delay in (('quick', 0), ('slow', 30)):
            (models / name / '1').mkdir(parents=True)
            (models / name / 'config.pbtxt').write_text(traffic.identity_config(delay, 4))
        for name in REAL:
            (models / name / '1').mkdir(parents=True)
            shutil.copy(pathlib.Path(directory) / f'{name}.onnx', models / name / '1' / 'model.onnx')
        (models / 'broken' / '1').mkdir(parents=True)
        (models / 'broken' / '1' / 'model.onnx').write_bytes(b'garbage')
    return write


def outputs(answer):
    return numpy.frombuffer(service_pb2.ModelInferResponse.FromString(answer).raw_output_contents[0], numpy.float32)


class Soak:
    """What the clients share."""

    def __init__(self, server, seconds):
        self.server = server
        self.lock = threading.Lock()
        self.ends, self.wrong = collections.Counter(), collections.Counter()
        self.images = numpy.random.default_rng(1).random((8, 1, 1, 28, 28), numpy.float32)
        with grpc.insecure_channel(server.address, options=traffic.CHANNEL) as channel:
            call = channel.unary_unary(traffic.METHOD)
            self.logits = {model: [outputs(call(traffic.message(model, image, 'image'), timeout=60))
                                   for image in self.images] for model in REAL}
        self.end = time.monotonic() + seconds

    def going_on(self):
        return time.monotonic() < self.end and self.server.process.poll() is None

    def count(self, kind, code, right=True):
        with self.lock:
            self.ends[f'{kind} {code}'] += 1
            if not right:
                self.wrong[f'{kind} {code}'] += 1


PATIENCE = 120  # seconds; what is late on a machine with other work is not wrong


def finish(call, wire, timeout=PATIENCE):
    """(code, answer)"""
    try:
        return 'OK', call(wire, timeout=timeout)
    except grpc.RpcError as error:
        return error.code().name, None


def echoes(soak, call, draw, model):
    values = numpy.asarray([[draw.random() for _ in range(16)] for _ in range(draw.randint(1, 4))], numpy.float32)
    code, answer = finish(call, traffic.message(model, values))
    soak.count(f'good {model}', code, code in OVERLOADED and (
        code != 'OK' or numpy.array_equal(outputs(answer), values.reshape(-1))))


def good_quick(soak, call, draw):
    echoes(soak, call, draw, 'quick')


def good_slow(soak, call, draw):
    echoes(soak, call, draw, 'slow')


def good_real(soak, call, draw):
    model, which = draw.choice(REAL), draw.randrange(len(soak.images))
    code, answer = finish(call, traffic.message(model, soak.images[which], 'image'))
    soak.count(f'good {model}', code, code in OVERLOADED and (
        code != 'OK' or numpy.allclose(outputs(answer), soak.logits[model][which], rtol=1e-3, atol=1e-3)))


def bad(soak, call, draw):
    wire, expected = draw.choice((
        (traffic.message('quick', numpy.ones((1, 15))), 'INVALID_ARGUMENT'),
        (traffic.message('quick', numpy.ones((5, 16))), 'INVALID_ARGUMENT'),
        (traffic.message('quick', numpy.ones((1, 16)), 'other'), 'INVALID_ARGUMENT'),
        (traffic.message(f'nobody {draw.random()}', numpy.ones((1, 16))), 'NOT_FOUND'),
        (traffic.message('broken', numpy.ones((1, 16))), 'INTERNAL'),
        (draw.randbytes(100), None)))
    code, _ = finish(call, wire)
    soak.count('bad', code, code != 'OK' and expected in (None, code))


def cancelled(soak, call, draw):
    future = call.future(traffic.message('slow', numpy.ones((1, 16))), timeout=PATIENCE)
    time.sleep(draw.random() * 0.05)
    future.cancel()
    code = future.code().name
    soak.count('cancelled', code, code in OVERLOADED | {'CANCELLED'})


def late(soak, call, draw):
    code, _ = finish(call, traffic.message('slow', numpy.ones((1, 16))), draw.random() * 0.05)
    soak.count('late', code, code in OVERLOADED)


def vanishing(soak, _, draw):
    """A channel that is closed under its calls, or a connection that ends within a frame."""
    if draw.random() < 0.5:
        channel = grpc.insecure_channel(soak.server.address, options=traffic.CHANNEL)
        future = channel.unary_unary(traffic.METHOD).future(traffic.message('slow', numpy.ones((1, 16))), timeout=PATIENCE)
        time.sleep(draw.random() * 0.02)
        channel.close()
        soak.count('vanishing', future.code().name, future.code().name in OVERLOADED | {'CANCELLED', 'UNAVAILABLE'})
        return
    host, port = soak.server.address.split(':')
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        start = PREFACE + bytes(3) + b'\4' + bytes(5) + draw.randbytes(40)
        connection.sendall(start[:draw.randrange(len(start))])
    soak.count('vanishing', 'connection')


KINDS = (good_quick, good_slow, good_real, bad, cancelled, late, vanishing)


def client(soak, kind, seed):
    draw = random.Random(seed)
    with grpc.insecure_channel(soak.server.address, options=traffic.CHANNEL) as channel:
        call = channel.unary_unary(traffic.METHOD)
        while soak.going_on():
            kind(soak, call, draw)
            time.sleep(draw.random() * 0.01)
            while soak.going_on() and time.monotonic() % REST_EVERY < REST:
                time.sleep(0.01)


def replaced(server):
    """NaN where the server has no time for it."""
    try:
        return server.metric('swizzle_plan_replacements_total')
    except (OSError, http.client.HTTPException):
        return math.nan


def anonymous(server):
    """In MiB; what files there are, programs and libraries, grows as code first runs."""
    return f'{server.resident_bytes("RssAnon") / 2**20:.1f}' if server.process.poll() is None else '-'


def watch(soak, seconds):
    """Samples of (seconds, resident bytes), a line for each of the most important."""
    samples, start, told = [], time.monotonic(), 0.0
    while soak.going_on():
        time.sleep(min(1.0, seconds / 100))
        now = time.monotonic() - start
        if soak.server.process.poll() is None:
            samples.append((now, soak.server.resident_bytes()))
        if now - told >= min(60.0, seconds / 10):
            told = now
            print(f'{now:.0f} s, {samples[-1][1] / 2**20:.1f} MiB ({anonymous(soak.server)} of no file),',
                  f'{soak.server.open_files()} files,',
                  f'{sum(soak.ends.values())} calls, wrong: {dict(soak.wrong)},',
                  f'{replaced(soak.server):.0f} plans replaced', flush=True)
    return samples


def growth(samples, seconds):
    """Of the last sixth's median over that of the sixth after the first."""
    sixth = seconds / 6
    early = [size for when, size in samples if sixth <= when < 2 * sixth]
    last = [size for when, size in samples if when >= 5 * sixth]
    return numpy.median(last) / numpy.median(early) - 1


def run(options):
    seconds = options.minutes * 60
    with traffic.Server(options.server, prepare(options.models), f'--tuning-budget={options.tuning_budget}',
                        '--connection-age=0',  # else a call may meet its end, which only clients that retry survive
                        *options.flag) as server:
        files = server.open_files()
        soak = Soak(server, seconds)
        clients = [threading.Thread(target=client, args=(soak, kind, f'{kind.__name__} {i}'))
                   for kind in KINDS for i in range(options.clients)]
        for thread in clients:
            thread.start()
        samples = watch(soak, seconds)
        for thread in clients:
            thread.join()
        alive = server.process.poll() is None
        patience = time.monotonic() + 30
        left, inflight = 0, -1
        while alive:  # what the metrics are read through is a file itself
            left = max(0, server.open_files() - files)
            inflight = server.metric('swizzle_inflight_requests')
            if left == 0 and inflight == 0 or time.monotonic() >= patience:
                break
            time.sleep(0.1)
        tuned = {name: server.metric(f'swizzle_{name}') if alive else None
                 for name in ('model_tuning_seconds_total', 'plan_replacements_total')}
        server.process.terminate()
        code = server.process.wait(60)
        if code:
            print(server.log_file.read_text()[-4000:])
        return {'ends': dict(sorted(soak.ends.items())), 'wrong': dict(soak.wrong), 'exit_code': code,
                'alive': alive, 'files_left': left, 'inflight': inflight,
                **tuned, 'growth': growth(samples, seconds), 'resident_mib': samples[-1][1] / 2**20}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', default='build/dev/bin/swizzle-server')
    parser.add_argument('--models', default='deploy/models')
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--clients', type=int, default=2, help='of each kind')
    parser.add_argument('--tuning-budget', type=float, default=15, help='0: plans are not tuned')
    parser.add_argument('--most-growth', type=float, default=0.01)
    parser.add_argument('--least-replacements', type=int, default=1)
    parser.add_argument('--flag', action='append', default=[], help='another flag for the server')
    result = run(options := parser.parse_args())
    print(json.dumps(result, indent=2))
    sys.exit(bool(result['wrong'] or result['exit_code'] or result['files_left'] or result['inflight'] or
                  result['growth'] >= options.most_growth or
                  options.tuning_budget and result['plan_replacements_total'] < options.least_replacements))


if __name__ == '__main__':
    main()
