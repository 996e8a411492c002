"""BERT-like encoders with drawn weights, of which a share is zeros, against ONNX Runtime dense on the same file.

Serves the packed model and reports, in one run: the largest difference from ONNX Runtime over its largest magnitude, at
several lengths and mixed; what 16 requests of mixed lengths take against the same number of tokens in equal lengths;
resident memory. whole_models.py measures their speed.

    build/venv/bin/python tests/bench/encoders.py [--model=minilm] [--sparsity=0.9] [--rounds=10] [-o json]
"""

import argparse
import json
import pathlib
import queue
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import tritonclient.grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'integration'))

import encoder_graph  # noqa: E402
import make_encoders  # noqa: E402
from drawn_onnx import ENCODERS  # noqa: E402
from served import Served  # noqa: E402

encoder_graph.VOCABULARY, encoder_graph.POSITIONS = 30522, 512
OUTPUTS = ('last_hidden_state', 'pooler_output')


def draw_inputs(lengths, seed=1):
    """One row for each of the lengths, padded to the longest."""
    random = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths))
    mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype(np.int64)
    return {'input_ids': random.integers(0, encoder_graph.VOCABULARY, shape), 'attention_mask': mask,
            'token_type_ids': np.zeros(shape, np.int64)}


def wire(inputs):
    tensors = []
    for name, array in inputs.items():
        tensors.append(tritonclient.grpc.InferInput(name, array.shape, 'INT64'))
        tensors[-1].set_data_from_numpy(array)
    return tensors


class Encoder:
    def __init__(self, address):
        self.client = tritonclient.grpc.InferenceServerClient(address)

    def infer(self, inputs):
        """Returns (outputs, compute milliseconds, round-trip milliseconds)."""
        tensors = wire(inputs)
        start = time.perf_counter()
        result = self.client.infer('encoder', tensors)
        elapsed = time.perf_counter() - start
        compute = result.get_response().parameters['swizzle_compute_us'].int64_param / 1e3
        return {name: result.as_numpy(name) for name in OUTPUTS}, compute, elapsed * 1e3

    def infer_together(self, requests):
        """Milliseconds from the first request sent to the last answer."""
        answers = queue.Queue()
        prepared = [wire(inputs) for inputs in requests]
        start = time.perf_counter()
        for tensors in prepared:
            self.client.async_infer('encoder', tensors, lambda result, error: answers.put(error))
        errors = [answers.get(timeout=60) for _ in prepared]
        assert not any(errors), errors
        return (time.perf_counter() - start) * 1e3


def largest_difference(encoder, session, lengths):
    inputs = draw_inputs(lengths)
    actual, expected = encoder.infer(inputs)[0], dict(zip(OUTPUTS, session.run(OUTPUTS, inputs)))
    keep = inputs['attention_mask'] == 1
    pairs = [(actual['last_hidden_state'][keep], expected['last_hidden_state'][keep]),
             (actual['pooler_output'], expected['pooler_output'])]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def compare_lengths(encoder, rounds):
    """16 requests of drawn lengths against 16 of equal lengths with as many tokens, in turns: sent together, and as the
    rows of one request, whose compute time counts."""
    random = np.random.default_rng(7)
    lengths = random.integers(8, 129, 16)
    equal = [len(part) for part in np.array_split(np.arange(lengths.sum()), 16)]
    mixed_requests, equal_requests = ([draw_inputs([n], i) for i, n in enumerate(ns)] for ns in (lengths, equal))
    times = {'requests': ([], []), 'rows': ([], [])}
    for _ in range(rounds):
        times['requests'][0].append(encoder.infer_together(mixed_requests))
        times['requests'][1].append(encoder.infer_together(equal_requests))
        times['rows'][0].append(encoder.infer(draw_inputs(lengths))[1])
        times['rows'][1].append(encoder.infer(draw_inputs(equal))[1])
    return {name: statistics.median(mixed) / statistics.median(same) for name, (mixed, same) in times.items()}


def measure(arguments, scratch):
    spelling = dict(ENCODERS[arguments.model], sparsity=arguments.sparsity, opset=17, layer_norm='op', head='pooler')
    make_encoders.encoder('bench', **spelling)
    file = scratch / 'model.onnx'
    onnx.save(make_encoders.build('bench'), file)
    packed = scratch / 'models' / 'encoder' / '1' / 'model.swz'
    packed.parent.mkdir(parents=True)
    command = 'quantize' if arguments.int8 else 'pack'
    subprocess.run([arguments.binaries / 'swizzle-pack', command, file, packed], check=True, stdout=subprocess.DEVNULL)
    session = onnxruntime.InferenceSession(str(file), providers=['CPUExecutionProvider'])
    with Served(arguments.binaries, scratch / 'models', scratch) as server:
        encoder = Encoder(server.grpc_address)
        memory = {'ready_mib': server.resident_mib()}
        encoder.infer(draw_inputs([128] * 8))
        memory['serving_mib'] = server.resident_mib()
        lengths = {'1': [1], '5': [5], '128': [128], '384': [384], '512': [512], 'batch of 7': [128] * 7,
                   'mixed': [1, 5, 128, 384, 512, 17, 64]}
        result = {'difference': {name: largest_difference(encoder, session, ns) for name, ns in lengths.items()}}
        result['mixed over equal lengths'] = compare_lengths(encoder, arguments.rounds)
        onnx_mib = file.stat().st_size / 2**20
        hidden = ENCODERS[arguments.model]['hidden']
        tables = (encoder_graph.VOCABULARY + encoder_graph.POSITIONS + encoder_graph.TYPES) * hidden * 4 / 2**20
        result['memory'] = memory | {'onnx_mib': onnx_mib, 'embeddings_mib': tables,
                                     'swz_mib': packed.stat().st_size / 2**20,
                                     'after_3584_tokens_mib': server.resident_mib(), 'bound_mib': 0.35 * onnx_mib + 100}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', choices=ENCODERS, default='minilm')
    parser.add_argument('--sparsity', type=float, default=0.9)
    parser.add_argument('--int8', action='store_true', help='linear layers in whole numbers')
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--binaries', type=pathlib.Path, default=ROOT / 'build' / 'release' / 'bin')
    parser.add_argument('-o', choices=('text', 'json'), default='text', dest='output')
    arguments = parser.parse_args()
    arguments.binaries = arguments.binaries.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        result = measure(arguments, pathlib.Path(scratch))
    if arguments.output == 'json':
        print(json.dumps(result, indent=2))
        return
    print(f'{arguments.model}, {arguments.sparsity:.0%} zeros; medians')
    for section, figures in result.items():
        print(f'  {section}')
        for name, figure in figures.items():
            print(f'    {name:<16} {figure:.3g}')


if __name__ == '__main__':
    main()
