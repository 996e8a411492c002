"""A model that is loaded again and again under load: what its clients see, what another model's do, and what is left.

    reload.py [--server=PROGRAM] [--mb=100] [--reloads=50] [--clients=4] [--cycles=1000] [--models=DIR]

Serves a drawn model of `mb` megabytes, whose file is replaced in turn by one of other weights, and a shipped one beside
it. First the other model's client alone; then with `clients` of the large one beside it; then with reloads, too. Every
answer of the large model has to be one of its two. Last, `cycles` times, a small model is loaded and unloaded, and
memory, threads and open files are read before and after. Prints JSON, and ends with 1 if a request failed, or an answer
was wrong, or memory, once it was quiet, is more than 2 % up, or a thread or a file is left.

The other model's p99 beside reloads is compared with that beside the same load without them: the bound is 20 %. It is
printed, and no reason to end with 1, for a machine with few processors has none to load with.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

import grpc
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

import traffic

OTHER = 'mobilenet_v1_fashion_sparse90'
WIDTH = 1024
FLAGS = ('--model-control=explicit', '--control-address=127.0.0.1:0', '--tuning-budget=0', '--drain-delay=0')


def draw(file, megabytes, seed):
    """Layers of 1024 x 1024, 4 MiB each."""
    random = numpy.random.default_rng(seed)
    layers = max(1, round(megabytes * 1e6 / (WIDTH * WIDTH * 4)))
    nodes, weights = [], []
    for i in range(layers):
        values = random.standard_normal((WIDTH, WIDTH), numpy.float32) / WIDTH ** 0.5
        weights.append(numpy_helper.from_array(values, f'w{i}'))
        nodes.append(helper.make_node('MatMul', [f'x{i}' if i else 'INPUT0', f'w{i}'], [f'x{i + 1}']))
    nodes[-1].output[0] = 'OUTPUT0'
    graph = helper.make_graph(nodes, 'drawn',
                              [helper.make_tensor_value_info('INPUT0', TensorProto.FLOAT, ['n', WIDTH])],
                              [helper.make_tensor_value_info('OUTPUT0', TensorProto.FLOAT, ['n', WIDTH])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)
    file.write_bytes(model.SerializeToString())


def replace(server, model, source):
    target = pathlib.Path(server.folder.name) / 'models' / model / '1' / 'model.onnx'
    part = target.with_name('.part')
    part.unlink(missing_ok=True)
    os.link(source, part)
    os.replace(part, target)


class Orders:
    def __init__(self, server):
        self.channel = grpc.insecure_channel(f'127.0.0.1:{server.ports["control"]}')
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def load(self, model):
        self.stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name=model), timeout=300)

    def unload(self, model):
        self.stub.RepositoryModelUnload(service_pb2.RepositoryModelUnloadRequest(model_name=model), timeout=300)


def output_of(answer):
    return numpy.frombuffer(service_pb2.ModelInferResponse.FromString(answer).raw_output_contents[0], numpy.float32)


class Clients:
    """Of the large model, each of which waits for its answer."""

    def __init__(self, address, wire, known, clients):
        self.tally, self.wrong, self.stopping = traffic.Tally(), 0, False
        self.threads = [threading.Thread(target=self.send, args=(address, wire, known)) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def send(self, address, wire, known):
        with grpc.insecure_channel(address, options=traffic.CHANNEL) as channel:
            call = channel.unary_unary(traffic.METHOD)
            while not self.stopping:
                answer = traffic.call_once(call, wire, self.tally)
                if answer is not None and not any(numpy.allclose(output_of(answer), right, rtol=1e-2, atol=1e-3)
                                                  for right in known):
                    self.wrong += 1

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def ask_other(server, wire, until):
    tally = traffic.Tally()
    with grpc.insecure_channel(server.address, options=traffic.CHANNEL) as channel:
        call = channel.unary_unary(traffic.METHOD)
        while not until():
            traffic.call_once(call, wire, tally)
            time.sleep(0.002)
    return tally


def percentiles(tally):
    return {f'p{int(share * 100)}_ms': round(traffic.percentile(tally.seconds(), share) * 1000, 2)
            for share in (0.5, 0.9, 0.99)}


def quiet_bytes(server):
    """Resident of no file, once what was freed has been given back."""
    least = server.resident_bytes('RssAnon')
    for _ in range(20):
        time.sleep(0.5)
        least = min(least, server.resident_bytes('RssAnon'))
    return least


def reload(options, server, orders, files):
    random = numpy.random.default_rng(1)
    large = traffic.message('large', random.standard_normal((1, WIDTH)))
    other = traffic.message(OTHER, random.random((1, 1, 28, 28)), 'image')
    known = []
    with grpc.insecure_channel(server.address, options=traffic.CHANNEL) as channel:
        call = channel.unary_unary(traffic.METHOD)
        for file in (files[1], files[0]):
            replace(server, 'large', file)
            orders.load('large')
            known.append(output_of(call(large, timeout=60)))
    assert not numpy.allclose(*known, rtol=1e-2, atol=1e-3)
    end = time.monotonic() + options.seconds
    result = {'other_alone': percentiles(ask_other(server, other, lambda: time.monotonic() > end))}
    clients = Clients(server.address, large, known, options.clients)
    end = time.monotonic() + options.seconds
    result['other_beside_load'] = percentiles(ask_other(server, other, lambda: time.monotonic() > end))
    done, seconds = threading.Event(), []

    def reload_all():
        try:
            for i in range(options.reloads):
                replace(server, 'large', files[(i + 1) % 2])
                start = time.monotonic()
                orders.load('large')
                seconds.append(time.monotonic() - start)
        finally:
            done.set()

    before = server.resident_bytes('RssAnon')
    thread = threading.Thread(target=reload_all)
    thread.start()
    beside = ask_other(server, other, done.is_set)
    thread.join()
    clients.stop()
    result['other_beside_reloads'] = percentiles(beside)
    result['p99_ratio'] = round(result['other_beside_reloads']['p99_ms'] / result['other_beside_load']['p99_ms'], 2)
    result['reloads'] = len(seconds)
    result['reload_seconds'] = round(sum(seconds) / max(len(seconds), 1), 3)
    result['codes'] = {'large': dict(clients.tally.codes()), 'other': dict(beside.codes())}
    result['wrong'] = clients.wrong
    result['memory_before_mib'], result['memory_after_mib'] = before >> 20, quiet_bytes(server) >> 20
    good = all(set(codes) == {'OK'} for codes in result['codes'].values()) and not clients.wrong
    return result, good and result['memory_after_mib'] <= 1.02 * result['memory_before_mib'] + 1


def cycle(options, server, orders):
    def taken():
        return {'memory': quiet_bytes(server), 'files': server.open_files(),
                'threads': len(list(pathlib.Path(f'/proc/{server.process.pid}/task').iterdir()))}

    def run(times):
        for _ in range(times):
            orders.load('small')
            orders.unload('small')

    run(20)
    before = taken()
    start = time.monotonic()
    run(options.cycles)
    seconds = time.monotonic() - start
    after = taken()
    good = (after['memory'] <= 1.02 * before['memory'] + (1 << 20) and after['files'] <= before['files']
            and after['threads'] <= before['threads'])
    return {'cycles': options.cycles, 'ms_a_cycle': round(seconds / max(options.cycles, 1) * 1000, 2), 'before': before,
            'after': after}, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', default='build/dev/bin/swizzle-server')
    parser.add_argument('--models', default='deploy/models')
    parser.add_argument('--mb', type=float, default=100)
    parser.add_argument('--reloads', type=int, default=50)
    parser.add_argument('--clients', type=int, default=4)
    parser.add_argument('--seconds', type=float, default=8, help='without reloads')
    parser.add_argument('--cycles', type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        files = [pathlib.Path(scratch) / f'{seed}.onnx' for seed in (1, 2)]
        for seed, file in enumerate(files):
            draw(file, options.mb, seed)

        def prepare(models):
            for name, file in (('large', files[0]), (OTHER, pathlib.Path(options.models) / f'{OTHER}.onnx'),
                               ('small', pathlib.Path(options.models) / f'{OTHER}.onnx')):
                (models / name / '1').mkdir(parents=True)
                shutil.copy(file, models / name / '1' / 'model.onnx')

        with traffic.Server(options.server, prepare, *FLAGS, '--load-model=large', f'--load-model={OTHER}') as server:
            orders = Orders(server)
            reloaded, good = reload(options, server, orders, files)
            orders.unload('large')
            cycled, leaks_nothing = cycle(options, server, orders)
    print(json.dumps({'reload': reloaded, 'cycle': cycled}, indent=2))
    sys.exit(not (good and leaks_nothing))


if __name__ == '__main__':
    main()
