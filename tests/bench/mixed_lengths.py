#!/usr/bin/env python3
"""Texts of mixed lengths, 8 to 512 tokens, log-uniform: packed, against padding to the longest, beside ONNX Runtime.

    mixed_lengths.py --package=build/dev/python [--models=modernbert] [--sparsities=0,0.9] [--texts=16] [--threads=2]

One request holds all texts, padded, with their mask; where the mask is all ones, ours computes the padding, too, as ONNX
Runtime always does. All take turns. Prints a line of JSON a model: medians in milliseconds, and tokens that are none
of padding per second. Python has onnx, numpy and onnxruntime.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))
import make_architectures  # noqa: E402
import text_architectures  # noqa: E402, F401: it adds to those of make_architectures

SHORTEST, LONGEST = 8, 512


def measure(model, sparsity, arguments, folder):
    import swizzle_engine
    random = numpy.random.default_rng(1)
    lengths = numpy.exp(random.uniform(numpy.log(SHORTEST), numpy.log(LONGEST), arguments.texts)).astype(int)
    lengths[0] = LONGEST
    mask = (numpy.arange(LONGEST) < lengths[:, None]).astype('int64')
    ids = random.integers(0, make_architectures.VOCABULARY, mask.shape)
    file = str(folder / 'model.onnx')
    onnx.save(make_architectures.build(model, make_architectures.FULL[model], sparsity=sparsity), file)
    ours = swizzle_engine.Model(file, threads=arguments.threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    theirs = onnxruntime.InferenceSession(file, options)
    packed = {'input_ids': ids, 'attention_mask': mask}
    padded = packed | {'attention_mask': numpy.ones_like(mask)}
    runs = {'packed': lambda: ours.run(packed), 'padded': lambda: ours.run(padded),
            'onnxruntime': lambda: theirs.run(None, packed)}
    times = {name: [] for name in runs}
    for round_ in range(1 + arguments.rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            if round_ > 0:
                times[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(its) for name, its in times.items()}
    return {'model': model, 'sparsity': sparsity, 'tokens': int(lengths.sum()), 'places': int(mask.size),
            'ms': {name: round(1e3 * its, 1) for name, its in medians.items()},
            'tokens_per_second': {name: round(lengths.sum() / its) for name, its in medians.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--package', required=True, help='the folder that holds swizzle_engine')
    parser.add_argument('--models', type=lambda text: text.split(','), default=['modernbert'])
    parser.add_argument('--sparsities', type=lambda text: [float(s) for s in text.split(',')], default=[0.0, 0.9])
    parser.add_argument('--texts', type=int, default=16)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=3)
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.package)
    for model in arguments.models:
        for sparsity in arguments.sparsities:
            with tempfile.TemporaryDirectory() as folder:
                print(json.dumps(measure(model, sparsity, arguments, pathlib.Path(folder))), flush=True)


if __name__ == '__main__':
    main()
