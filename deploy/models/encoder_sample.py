#!/usr/bin/env python3
"""Cuts a sample of the glosses for the tests of a shipped MiniLM encoder, with what of the dense model they need.

    python3 encoder_sample.py --encoder=FILE.safetensors [--wordnet=DIR] [--pack=FILE] [--count=24] -o FILE.npz

The sample has held-out glosses as rows of the few word embeddings that they use, those embeddings, and the dense
model's sentence embeddings. The encoder's mean cosine to these goes to the JSON file beside the encoder.
"""

import argparse
import json
import pathlib
import tempfile

import numpy as np

import minilm_files
import minilm_onnx
import patterns
import quantised_accuracy
import sparse_bitmask
import wordnet_glosses

HERE = pathlib.Path(__file__).resolve().parent
EMBEDDINGS = 'embeddings.'
WORDS = 'embeddings.word_embeddings.weight'
POSITIONS = 'embeddings.position_embeddings.weight'
LONGEST = 32  # tokens of a gloss in the sample


def drawn(folder, count, wordnet):
    """Returns (wordpieces in one row, lengths) of held-out glosses that are not long."""
    glosses, _ = wordnet_glosses.read(wordnet)
    pieces, lengths = wordnet_glosses.tokenise(glosses, folder / 'tokenizer.json')
    starts = np.cumsum(lengths) - lengths
    short = np.flatnonzero(wordnet_glosses.held_out(glosses) & (lengths <= LONGEST))
    chosen = np.sort(np.random.default_rng(1).choice(short, count, replace=False))
    return np.concatenate([pieces[starts[i]:starts[i] + lengths[i]] for i in chosen]), lengths[chosen]


def sentence_embeddings(arguments, encoder, sample, folder):
    """Unit vectors, of a model with the sample's embeddings and the encoder's tensors, by swizzle-pack run."""
    config = json.loads((minilm_files.dense_model() / 'config.json').read_text(encoding='utf-8'))
    tensors = {name: sample[name].astype(np.float32) for name in sample if name.startswith(EMBEDDINGS)}
    tensors |= {name: tensor.astype(np.float32) for name, tensor in encoder.items()}
    minilm_onnx.write(folder / 'model.onnx', tensors, config | {'max_position_embeddings': LONGEST})
    return quantised_accuracy.embeddings(arguments, folder / 'model.onnx', sample['tokens'].astype(np.int64),
                                         sample['lengths'].astype(np.int64), folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--encoder', type=pathlib.Path, required=True)
    parser.add_argument('--wordnet', type=pathlib.Path, metavar='DIR', default=wordnet_glosses.FOLDER)
    parser.add_argument('--pack', type=pathlib.Path, default=HERE.parents[1] / 'build/release/bin/swizzle-pack')
    parser.add_argument('--count', type=int, default=24)
    parser.add_argument('-o', '--output', type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.binaries = arguments.pack.parent
    source = minilm_files.dense_model()
    pieces, lengths = drawn(source, arguments.count, arguments.wordnet)
    used, rows = np.unique(pieces, return_inverse=True)
    dense = minilm_files.load_dense(source)
    sample = {name: tensor.astype(np.float16) for name, tensor in dense.items() if name.startswith(EMBEDDINGS)
              and tensor.dtype == np.float32}
    sample[WORDS], sample[POSITIONS] = sample[WORDS][used], sample[POSITIONS][:LONGEST]
    sample |= {'tokens': rows.astype(np.uint16), 'lengths': lengths.astype(np.uint16)}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        layers = {name: tensor for name, tensor in dense.items() if name.startswith('encoder.')}
        taught = sentence_embeddings(arguments, layers, sample, folder)
        learnt = sentence_embeddings(arguments, sparse_bitmask.load(arguments.encoder), sample, folder)
    sample['sentences'] = taught.astype(np.float16)
    np.savez_compressed(arguments.output, **sample)
    cosine = float(np.sum(taught * learnt, axis=1).mean())
    log_file = arguments.encoder.with_suffix('.json')
    log = json.loads(log_file.read_text(encoding='utf-8'))
    log['sample_mean_cosine'] = round(cosine, 4)
    patterns.write_log(log_file, log)
    print(f'{arguments.output}: {len(lengths)} glosses, {len(used)} wordpieces, mean cosine {cosine:.4f}')


if __name__ == '__main__':
    main()
