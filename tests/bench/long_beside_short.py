"""What a bulk job of long texts does to short queries of the same model, and they to it.

    long_beside_short.py --model=FOLDER [--server=PROGRAM ...] [--bulk=http|grpc|single] [--rounds=3] [--seconds=8]

Serves a folder of Sentence Transformers. One connection sends jobs of `--texts` texts of `--words` words, one after the
other: to /embed as a whole (http), over gRPC in requests of 64 rows, two at a time (grpc), or in requests of one row,
64 at a time (single). Another, from another process, sends short queries, each once the one before was answered. In
turn both are alone and together. Prints a line a program and round: the short ones' p50 and p99 alone and beside, in
milliseconds, how many of them were answered and refused, texts of the job a second alone and beside, the server's
processor time for each, and the medians of the rounds. What is refused is sent again after a moment. Several programs
take turns, so that what disturbs the machine disturbs them alike.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import statistics
import time

import grpc
import grpc.aio
from tritonclient.grpc import service_pb2

import traffic

WORDS = ('river stone light market winter garden letter window forest engine music paper silver harbour bridge morning '
         'number colour people answer').split()
ROWS, PAUSE = 64, 0.01


def text(count, seed):
    return ' '.join(random.Random(seed).choices(WORDS, k=count))


def message(texts):
    request = service_pb2.ModelInferRequest(model_name='model')
    request.inputs.add(name='text', datatype='BYTES', shape=[len(texts), 1])
    encoded = [one.encode() for one in texts]
    request.raw_input_contents.append(b''.join(len(one).to_bytes(4, 'little') + one for one in encoded))
    return request


def prepare(models, options):
    shutil.copytree(options.model, models / 'model' / '1')
    parameters = ['text=embedding', *options.parameter]
    (models / 'model' / 'config.pbtxt').write_text('\n'.join(
        'parameters {{ key: "{}" value {{ string_value: "{}" }} }}'.format(*each.split('=')) for each in parameters))


def post(connection, texts):
    body = json.dumps({'inputs': texts, 'truncate': True})
    connection.request('POST', '/embed', body, {'Content-Type': 'application/json'})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status in (200, 429), body
    return answer.status == 200


async def send_all(address, texts, rows, outstanding):
    requests = [message(texts[at:at + rows]) for at in range(0, len(texts), rows)]
    async with grpc.aio.insecure_channel(address, options=traffic.CHANNEL) as channel:
        call = channel.unary_unary('/inference.GRPCInferenceService/ModelInfer',
                                   service_pb2.ModelInferRequest.SerializeToString,
                                   service_pb2.ModelInferResponse.FromString)

        async def client(at):
            while True:
                try:
                    await call(requests[at % len(requests)])
                    at += outstanding
                except grpc.aio.AioRpcError as error:
                    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
                    await asyncio.sleep(PAUSE)

        await asyncio.gather(*(client(first) for first in range(outstanding)))


def bulk(ports, options):
    """Until it is ended."""
    texts = [text(options.words, seed) for seed in range(options.texts)]
    if options.bulk == 'http':
        connection = http.client.HTTPConnection('127.0.0.1', ports['http'])
        while True:
            post(connection, texts)
    rows, outstanding = (ROWS, 2) if options.bulk == 'grpc' else (1, ROWS)
    asyncio.run(send_all(f'127.0.0.1:{ports["grpc"]}', texts, rows, outstanding))


def short(ports, seconds):
    """Seconds of each query, sorted, and how many were refused."""
    connection, times, refused = http.client.HTTPConnection('127.0.0.1', ports['http']), [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        query = text(6, len(times))
        start = time.monotonic()
        if post(connection, [query]):
            times.append(time.monotonic() - start)
        else:
            refused += 1
        time.sleep(PAUSE)
    return sorted(times), refused


def cpu_seconds(server):
    """Of all threads of the server so far."""
    fields = pathlib.Path(f'/proc/{server.process.pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def one_round(server, options):
    """Texts of the job are counted as the server computes them, whichever requests they are of."""
    def beside_bulk(measured):
        process = multiprocessing.get_context('spawn').Process(target=bulk, args=(server.ports, options))
        process.start()
        time.sleep(2)
        start, before, computed = time.monotonic(), server.metric('swizzle_inferences_total'), cpu_seconds(server)
        result = measured()
        rate = (server.metric('swizzle_inferences_total') - before, time.monotonic() - start,
                cpu_seconds(server) - computed)
        process.terminate()
        process.join()
        time.sleep(.5)
        return result, rate

    alone, _ = short(server.ports, options.seconds / 2)
    _, (texts_alone, seconds_alone, cpu_alone) = beside_bulk(lambda: time.sleep(options.seconds))
    (beside, refused), (texts, seconds, _) = beside_bulk(lambda: short(server.ports, options.seconds))
    times = {f'short_{where}_p{int(share * 100)}': traffic.percentile(its, share) * 1e3
             for where, its in (('alone', alone), ('beside', beside)) for share in (.5, .99)}
    return {**times, 'short_beside_answered': len(beside), 'short_beside_refused': refused,
            'bulk_alone_texts_per_s': texts_alone / seconds_alone,
            'bulk_alone_cpu_ms_per_text': cpu_alone * 1e3 / max(texts_alone, 1),
            'bulk_beside_texts_per_s': (texts - len(beside)) / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', action='append')
    parser.add_argument('--model', required=True)
    parser.add_argument('--bulk', choices=('http', 'grpc', 'single'), default='http')
    parser.add_argument('--texts', type=int, default=2000)
    parser.add_argument('--words', type=int, default=400)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=8)
    parser.add_argument('--flag', action='append', default=[], help='of the server, as --flag=--threads=2')
    parser.add_argument('--parameter', action='append', default=[], help='of config.pbtxt, NAME=VALUE')
    options = parser.parse_args()
    programs = options.server or ['build/dev/bin/swizzle-server']
    results = [[] for _ in programs]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(traffic.Server(
            program, lambda models: prepare(models, options), '--http-address=127.0.0.1:0', '--ready=all',
            '--tune=before-ready', *options.flag)) for program in programs]
        for server in servers:
            short(server.ports, 1)
        for _ in range(options.rounds):
            for program, server, its in zip(programs, servers, results):
                its.append(one_round(server, options))
                print(program, {name: round(value, 1) for name, value in its[-1].items()}, flush=True)
    for program, its in zip(programs, results):
        medians = {name: round(statistics.median(entry[name] for entry in its), 1) for name in its[0]}
        print(json.dumps({'program': program, 'bulk': options.bulk, **medians}))


if __name__ == '__main__':
    main()
