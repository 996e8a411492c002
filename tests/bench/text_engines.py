"""Texts in, vectors out: sentences a second of Swizzle, beside ONNX Runtime and, where it is installed, OpenVINO, with
`tokenizers` in one process.

    text_engines.py [--binaries=build/dev/bin] [--threads=2] [--rounds=5] [--seconds=4] [--json=FILE]

All run one file: the shipped MiniLM with 90 % zeros, quantised by ONNX Runtime (quantise.py), which Swizzle packs. A
text is a sentence of words that has 128 tokens. At concurrency 1 the next is sent when the one before was answered; at
32 a server has 32 requests of one text in flight, over gRPC from a process of their own, and the others, which form no
batches, are given 32 texts at a time, and, beside that, 32 threads with one each. The engines take turns; figures are
medians of the rounds, with the processor time of a sentence, the client's of a server left out, and the load of the
machine. Needs what tests/requirements.txt has, and the Python packages that client/python/requirements.txt names for
--prepare.
"""

import argparse
import asyncio
import concurrent.futures
import importlib.util
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy

import long_beside_short
import traffic

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPARSE = ROOT / 'deploy' / 'models' / 'minilm_wordnet_sparse90.safetensors'
TOKENS, CONCURRENCY = 128, 32
PIPELINE = ('modules.json', '1_Pooling/config.json', 'sentence_bert_config.json')


def prepare(folder, binaries):
    """FOLDER/int8.onnx, and the folder of a packed model with its tokeniser; returns both."""
    sys.path.insert(0, str(ROOT / 'deploy' / 'models'))
    import minilm_files

    dense, packed = minilm_files.dense_model(), folder / 'packed'
    minilm_files.assemble(SPARSE, dense, packed)
    ids = numpy.ones((1, TOKENS), numpy.int64)
    numpy.savez(folder / 'inputs.npz', input_ids=ids, attention_mask=ids, token_type_ids=ids * 0)
    quantised = folder / 'int8.onnx'
    subprocess.run([sys.executable, pathlib.Path(__file__).with_name('quantise.py'), packed / 'model.onnx',
                    folder / 'inputs.npz', quantised], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([binaries / 'swizzle-pack', 'pack', quantised, packed / 'model.swz'], check=True,
                   stdout=subprocess.DEVNULL)
    for name in ('model.onnx', 'model.safetensors'):
        (packed / name).unlink()
    for name in PIPELINE:
        (packed / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(dense / name, packed / name)
    return quantised, packed


def sentences(count, tokenizer):
    """Of just TOKENS tokens each."""
    made = []
    for seed in range(count):
        words = random.Random(seed).choices(long_beside_short.WORDS, k=TOKENS)
        while len(tokenizer.encode(' '.join(words)).ids) > TOKENS:
            words.pop()
        made.append(' '.join(words))
    assert all(len(tokenizer.encode(text).ids) == TOKENS for text in made)
    return made


def open_tokenizer(packed):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(packed / 'tokenizer.json'))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    return tokenizer


def of_seconds(seconds, count, took, cpu):
    """What is reported of calls that took so long each, of so many sentences together."""
    return {'sentences_per_s': count / took, 'cpu_ms_per_sentence': cpu / count * 1e3,
            'p50_ms': traffic.percentile(sorted(seconds), .5) * 1e3,
            'p99_ms': traffic.percentile(sorted(seconds), .99) * 1e3}


def onnx_runtime(quantised, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(quantised), options, providers=['CPUExecutionProvider'])
    return lambda inputs: session.run(['last_hidden_state'], inputs)[0]


def openvino(quantised, threads):
    """Each thread has a request of its own."""
    import openvino
    model = openvino.Core().compile_model(str(quantised), 'CPU', {'INFERENCE_NUM_THREADS': threads})
    own = threading.local()

    def run(inputs):
        if not hasattr(own, 'request'):
            own.request = model.create_infer_request()
        return own.request.infer(inputs)['last_hidden_state']
    return run


class Engine:
    """One that runs in this process, behind a tokeniser."""

    def __init__(self, run, packed):
        self.run, self.tokenizer, self.tokenising = run, open_tokenizer(packed), 0.0

    def embed(self, texts):
        start = time.perf_counter()
        encoded = self.tokenizer.encode_batch(texts)
        ids = numpy.array([item.ids for item in encoded], numpy.int64)
        mask = numpy.array([item.attention_mask for item in encoded], numpy.int64)
        self.tokenising += time.perf_counter() - start
        inputs = {'input_ids': ids, 'attention_mask': mask, 'token_type_ids': numpy.zeros_like(ids)}
        states = self.run(inputs)
        weights = mask[:, :, None].astype(states.dtype)
        means = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return means / numpy.linalg.norm(means, axis=1, keepdims=True)

    def one_by_one(self, texts, seconds, at_once=1):
        times, begin, cpu, at, self.tokenising = [], time.perf_counter(), time.process_time(), 0, 0.0
        while time.perf_counter() < begin + seconds:
            start = time.perf_counter()
            self.embed([texts[(at + i) % len(texts)] for i in range(at_once)])
            times.append(time.perf_counter() - start)
            at += at_once
        took = time.perf_counter() - begin
        return of_seconds(times, at, took, time.process_time() - cpu) | {'tokenising': self.tokenising / took}

    def by_threads(self, texts, seconds):
        end = time.perf_counter() + seconds

        def client(first):
            times = []
            while time.perf_counter() < end:
                start = time.perf_counter()
                self.embed([texts[(first + len(times)) % len(texts)]])
                times.append(time.perf_counter() - start)
            return times

        begin, cpu = time.perf_counter(), time.process_time()
        with concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as pool:
            times = [each for its in pool.map(client, range(CONCURRENCY)) for each in its]
        return of_seconds(times, len(times), time.perf_counter() - begin, time.process_time() - cpu)


async def ask(address, texts, concurrency, seconds):
    import grpc
    from tritonclient.grpc import service_pb2
    requests, times = [long_beside_short.message([text]) for text in texts], []
    async with grpc.aio.insecure_channel(address, options=traffic.CHANNEL) as channel:
        call = channel.unary_unary('/inference.GRPCInferenceService/ModelInfer',
                                   service_pb2.ModelInferRequest.SerializeToString,
                                   service_pb2.ModelInferResponse.FromString)
        begin = time.perf_counter()

        async def client(at):
            while time.perf_counter() < begin + seconds:
                start = time.perf_counter()
                await call(requests[at % len(requests)])
                times.append(time.perf_counter() - start)
                at += concurrency

        await asyncio.gather(*(client(first) for first in range(concurrency)))
        return times, time.perf_counter() - begin


def client(address, texts, concurrency, seconds, pipe):
    pipe.send(None)
    pipe.send(asyncio.run(ask(address, texts, concurrency, seconds)))


def serve_load(server, texts, concurrency, seconds):
    processes = multiprocessing.get_context('spawn')
    ours, theirs = processes.Pipe()
    process = processes.Process(target=client, args=(server.address, texts, concurrency, seconds, theirs))
    process.start()
    ours.recv()  # that it begins
    before = long_beside_short.cpu_seconds(server)
    times, took = ours.recv()
    cpu = long_beside_short.cpu_seconds(server) - before
    process.join()
    return of_seconds(times, len(times), took, cpu)


def check(server, engine, texts):
    """Both compute the same, as far as whole numbers are."""
    import urllib.request
    body = json.dumps({'inputs': texts[:4], 'truncate': True}).encode()
    with urllib.request.urlopen(f'http://127.0.0.1:{server.ports["http"]}/embed', body) as answer:
        ours = numpy.array(json.loads(answer.read()))
    cosines = (ours * engine.embed(texts[:4])).sum(axis=1)
    assert cosines.min() > .98, cosines


def measure(server, engines, texts, arguments):
    runs = {('Swizzle', 1): lambda: serve_load(server, texts, 1, arguments.seconds)}
    for name, engine in engines.items():
        runs[name, 1] = lambda engine=engine: engine.one_by_one(texts, arguments.seconds)
        runs[f'{name}, batches of 32', CONCURRENCY] = \
            lambda engine=engine: engine.one_by_one(texts, arguments.seconds, CONCURRENCY)
        runs[f'{name}, 32 threads', CONCURRENCY] = lambda engine=engine: engine.by_threads(texts, arguments.seconds)
    runs['Swizzle', CONCURRENCY] = lambda: serve_load(server, texts, CONCURRENCY, arguments.seconds)
    rounds = []
    for _ in range(arguments.rounds + 1):  # the first is no figure
        rounds.append({name: run() for name, run in runs.items()})
    return [{'engine': engine, 'concurrency': concurrency,
             **{key: statistics.median(each[engine, concurrency][key] for each in rounds[1:])
                for key in rounds[0][engine, concurrency]}} for engine, concurrency in runs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build' / 'dev' / 'bin')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=4)
    parser.add_argument('--json', type=pathlib.Path, help='where to keep the figures')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        quantised, packed = prepare(pathlib.Path(scratch), arguments.binaries)
        engines = {'ONNX Runtime': Engine(onnx_runtime(quantised, arguments.threads), packed)}
        if importlib.util.find_spec('openvino'):
            engines['OpenVINO'] = Engine(openvino(quantised, arguments.threads), packed)
        texts = sentences(64, engines['ONNX Runtime'].tokenizer)
        with traffic.Server(arguments.binaries / 'swizzle-server', lambda models: models.mkdir(),
                            f'--model={packed / "model.swz"},name=model,text=embedding', '--http-address=127.0.0.1:0',
                            f'--threads={arguments.threads}', '--ready=all', '--tune=before-ready') as server:
            for engine in engines.values():
                check(server, engine, texts)
            before = os.getloadavg()[0]
            figures = measure(server, engines, texts, arguments)
            kept = {'texts': f'{TOKENS} tokens', 'threads': arguments.threads, 'rounds': arguments.rounds,
                    'load_before_and_after': [before, os.getloadavg()[0]], 'figures': figures}
    for entry in figures:
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in entry.items()})
    print('load', kept['load_before_and_after'])
    if arguments.json:
        arguments.json.write_text(json.dumps(kept, indent=2) + '\n')


if __name__ == '__main__':
    main()
