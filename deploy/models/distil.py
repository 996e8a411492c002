#!/usr/bin/env python3
"""Makes a sparse encoder of a dense one: prunes it little by little while the dense model teaches it on unlabelled text.

    distil.py CHECKPOINT OUT --sparsity=.9 [--sparsities=FILE] [--vector=64] [--int8] [--texts=FILE]

CHECKPOINT is a folder of Sentence Transformers: config.json and model.safetensors of an encoder of BERT's kind,
tokenizer.json, modules.json. OUT becomes one, too, which `swizzle-server --model=OUT,text=embedding` opens, with a page
about it in README.md. Without --texts it trains on texts of Debian's packages (retrieval_texts.py). Ended early, by
whatever, the same command goes on from OUT/training, which has all that training needs: it can be done elsewhere.

Needs numpy, safetensors, tokenizers, torch and tqdm, in practice an NVIDIA GPU; --vector and --int8 need onnx and the
program swizzle-pack. What the page says of retrieval and speed is measured where the package swizzle_engine is there.
"""

import argparse
import dataclasses
import json
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

import bert_checkpoint
import distil_card
import patterns
import retrieval
import retrieval_texts

HERE = pathlib.Path(__file__).resolve().parent
STEPS = ('prepare', 'train', 'finish')
RATE, RATE_WIDTH = 1.5e-3, 384  # the rate that suits encoders of this width; wider ones get less
TOKENISED_AT_ONCE = 10000


def write_arrays(path, **arrays):
    """Replaces the file whole."""
    temporary = path.with_name(f'{path.stem}.part.npz')
    np.savez_compressed(temporary, **arrays)
    temporary.replace(path)


def read_texts(args):
    """The texts to train on: a line of a file is one."""
    if not args.texts:
        return retrieval_texts.Texts(args.packages).training()
    lines = (line.strip() for file in args.texts for line in file.read_text(encoding='utf-8').splitlines())
    return [line for line in dict.fromkeys(lines) if line]


def prepare_texts(args):
    """Writes training/texts.npz: the tokens of all texts."""
    import tqdm

    path = args.training / 'texts.npz'
    source = json.dumps([str(file) for file in args.texts] + [args.max_tokens])
    if path.is_file():
        if (kept := str(np.load(path)['source'])) != source:
            raise ValueError(f'{path} is of other texts, {kept} and not {source}; remove it to tokenise anew')
        return
    texts = read_texts(args)
    if not texts:
        raise ValueError('there is no text to train on')
    tokenizer, encoded = retrieval.tokenizer_of(args.checkpoint, args.max_tokens), []
    for start in tqdm.trange(0, len(texts), TOKENISED_AT_ONCE, desc='tokenising'):
        encoded += [np.array(item.ids, np.int32)
                    for item in tokenizer.encode_batch(texts[start:start + TOKENISED_AT_ONCE])]
    lengths = np.array([len(ids) for ids in encoded], np.int32)
    tokens = np.concatenate(encoded)
    small = tokens.max() < 1 << 16
    write_arrays(path, tokens=tokens.astype(np.uint16) if small else tokens, lengths=lengths, source=source)
    print(f'{path}: {len(texts)} texts, {len(tokens)} tokens')


def prepare_groups(args, checkpoint):
    """Writes training/groups.npz: which rows lie in one vector, as swizzle-pack's search has them."""
    path = args.training / 'groups.npz'
    source = json.dumps({'vector': args.vector, 'sparsity': args.sparsity})
    if path.is_file():
        if (kept := str(np.load(path)['source'])) != source:
            raise ValueError(f'{path} is of other vectors, {kept} and not {source}; remove it to search anew')
        return
    import minilm_onnx

    model = args.training / 'dense.onnx'
    minilm_onnx.write(model, checkpoint.tensors, checkpoint.config)
    pattern = patterns.Pattern('shfl-bw', args.vector)
    groups = patterns.shuffled_groups_of(args.pack, model, pattern, args.sparsity, patterns.prunable(model))
    model.unlink()
    write_arrays(path, source=source, **{name: rows.astype(np.int32) for name, rows in groups.items()})


def prepare(args):
    args.training.mkdir(parents=True, exist_ok=True)
    checkpoint = bert_checkpoint.read(args.checkpoint)
    left_dense(args, checkpoint)
    prepare_texts(args)
    if args.vector > 1:
        prepare_groups(args, checkpoint)


def left_dense(args, checkpoint):
    """The weights that stay dense, by BERT's names, as args.advice says."""
    if not args.sparsities:
        return []
    advised = {layer['name'].split('/')[0]: layer['advised_sparsity'] for layer in args.advice['layers']}
    shares = {}
    for name in (name for name in checkpoint.names if name.endswith('.weight') and checkpoint.tensors[name].ndim == 2):
        module = re.sub(r'self\.(key|value)', 'self.query', name).removesuffix('.weight')  # one product makes all three
        if module not in advised:
            raise ValueError(f'{args.sparsities} says nothing of {module}; make it by swizzle-pack advise '
                             f'{args.checkpoint} -o json')
        shares[name] = advised[module]
    if not any(shares.values()):
        raise ValueError(f'{args.sparsities} leaves every layer dense: there is nothing to prune')
    return [name for name, share in shares.items() if not share]


def recipe_of(args, checkpoint, on_gpu):
    import distillation

    chosen = {field.name: getattr(args, field.name) for field in dataclasses.fields(distillation.Recipe)
              if getattr(args, field.name, None) is not None}
    chosen.setdefault('rate', RATE * min(1.0, RATE_WIDTH / checkpoint.config['hidden_size']))
    chosen.setdefault('batch_tokens', 16384 if on_gpu else 2048)
    chosen['seconds'] = 0.0 if args.epochs else 60 * args.minutes
    chosen['dense'] = left_dense(args, checkpoint)
    return distillation.Recipe(**chosen)


def pruner_maker(args):
    import distillation
    from pattern_pruning import PatternPruner

    if args.vector == 1:
        return distillation.make_pruner
    groups = np.load(args.training / 'groups.npz')

    def make(student, data, recipe):
        weights = distillation.weights_to_prune(student, recipe)
        pattern = patterns.Pattern('shfl-bw', args.vector)
        return PatternPruner(pattern, weights.values(), [groups[name].astype(np.int64) for name in weights])

    return make


def train(args):
    """Writes training/encoder.safetensors, and training/log.json about it."""
    import torch

    import distillation

    torch.backends.cuda.matmul.allow_tf32 = False
    device = torch.device(args.device or ('cuda' if torch.cuda.is_available() else 'cpu'))
    checkpoint = bert_checkpoint.read(args.checkpoint)
    recipe = recipe_of(args, checkpoint, device.type == 'cuda')
    log_file = args.training / 'log.json'
    if log_file.is_file():
        distillation.require_same(log_file, json.loads(log_file.read_text(encoding='utf-8'))['recipe'], recipe)
        return
    arrays = np.load(args.training / 'texts.npz')
    data = distillation.TrainingTexts(checkpoint.tensors, checkpoint.config, arrays['tokens'], arrays['lengths'], device,
                                      retrieval.pooling_of(args.checkpoint))
    keeper = distillation.Keeper(args.training / 'state.pt', recipe, args.keep_every)
    previous = {number: signal.signal(number, lambda *_: setattr(keeper, 'stop', True))
                for number in (signal.SIGINT, signal.SIGTERM)}
    started = time.perf_counter()
    encoder, epochs = distillation.prune_and_distil(data, recipe, tqdm_print, keeper, pruner_maker(args))
    for number, handler in previous.items():
        signal.signal(number, handler)
    tensors = distillation.as_half(encoder)
    layers, sparsity = distillation.layer_sparsity(tensors)
    distillation.save(args.training / 'encoder.safetensors', tensors)
    log = {'recipe': dataclasses.asdict(recipe), 'vector': args.vector, 'sparsity': round(sparsity, 5),
           'layer_sparsity': layers, 'texts': len(arrays['lengths']), 'tokens': int(arrays['lengths'].sum()),
           'hardware': torch.cuda.get_device_name(0) if device.type == 'cuda' else 'CPU',
           'versions': {'python': platform.python_version(), 'torch': torch.__version__, 'numpy': np.__version__},
           'seconds': round(sum(figure['seconds'] for figure in epochs), 1),
           'last_seconds': round(time.perf_counter() - started, 1),
           'epoch_columns': list(epochs[0]), 'epochs': [list(figures.values()) for figures in epochs]}
    patterns.write_log(log_file, log)
    keeper.path.unlink(missing_ok=True)


def tqdm_print(line):
    import tqdm

    tqdm.tqdm.write(line, file=sys.stderr)


def quantise(args, checkpoint, encoder):
    """Writes OUT/int8: model.onnx in whole numbers, and the files beside it that texts need."""
    import minilm_onnx

    folder, sparse = args.out / 'int8', args.training / 'sparse.onnx'
    folder.mkdir(exist_ok=True)
    minilm_onnx.write(sparse, bert_checkpoint.joined(checkpoint, encoder), checkpoint.config)
    subprocess.run([str(args.pack), 'quantize', str(sparse), str(folder / 'model.onnx')], check=True, stdout=sys.stderr)
    sparse.unlink()
    bert_checkpoint.copy_files(args.checkpoint, folder)


def finish(args):
    import sparse_bitmask

    file = args.training / 'encoder.safetensors'
    log = json.loads((args.training / 'log.json').read_text(encoding='utf-8'))
    checkpoint, encoder = bert_checkpoint.read(args.checkpoint), sparse_bitmask.load(file)
    bert_checkpoint.write(checkpoint, encoder, args.out, args.compressed)
    models = {'dense': args.checkpoint, 'sparse': args.out}
    if args.int8:
        quantise(args, checkpoint, encoder)
        models['sparse, INT8'] = args.out / 'int8' / 'model.onnx'
    measured = distil_card.measure(models, args) if args.measure else {}
    card = distil_card.page(args.checkpoint.resolve().name, args.out.resolve().name, log, measured)
    (args.out / 'README.md').write_text(card, encoding='utf-8')
    print(f'{args.out}: {args.out / bert_checkpoint.WEIGHTS}, {args.out / "README.md"}')


def read_advice(parser, args):
    try:
        args.advice = json.loads(args.sparsities.read_text(encoding='utf-8'))
        wanted = args.advice['wanted'] if args.advice['advice'] else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f'{args.sparsities} is not what swizzle-pack advise CHECKPOINT -o json prints: {error!r}')
    args.sparsity = wanted if args.sparsity is None else args.sparsity


def parse_args(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('checkpoint', metavar='CHECKPOINT', type=pathlib.Path)
    add('out', metavar='OUT', type=pathlib.Path)
    add('--sparsity', type=float, help='share of zeros in the linear layers, as .9')
    add('--sparsities', type=pathlib.Path, metavar='FILE',
        help='what `swizzle-pack advise CHECKPOINT -o json` printed: leaves layers dense as it says, and has its sparsity')
    add('--vector', type=int, default=1, metavar='ROWS',
        help='zeros in vectors of so many rows, which GPUs multiply in half precision without the zeros; else anywhere')
    add('--int8', action='store_true', help='make the whole numbers of it, too, in OUT/int8')
    add('--texts', type=pathlib.Path, action='append', default=[], metavar='FILE',
        help='train on these lines, each of which is a text; may be repeated')
    add('--packages', type=pathlib.Path, metavar='DIR',
        help='where each Debian package is unpacked in a folder of its name; without it, they are fetched')
    add('--max-tokens', type=int, default=128, metavar='N', help='of a text in training (%(default)s)')
    length = parser.add_mutually_exclusive_group()
    length.add_argument('--minutes', type=float, default=20.0, help='how long to train (%(default)s)')
    length.add_argument('--epochs', type=int, help='passes over the texts instead')
    add('--rate', type=float, help=f'peak learning rate of Adam; without it, {RATE}, or less for wide encoders')
    add('--batch-tokens', type=int, metavar='N', help='tokens a step; without it, 16384 on a GPU, else 2048')
    add('--prune-every', type=int, metavar='STEPS', help='steps from one growth of the sparsity to the next; 20')
    add('--seed', type=int, help='of all random numbers; 1')
    add('--graphs', action=argparse.BooleanOptionalAction, default=None, help='replay steps as CUDA graphs')
    add('--device', help='cuda or cpu; without it, cuda where there is one')
    add('--keep-every', type=float, default=60.0, metavar='SECONDS', help='how often training is kept (%(default)s)')
    add('--until', choices=STEPS, default=STEPS[-1], help='end after this step')
    add('--compressed', action='store_true', help="store OUT's matrices as sparse-bitmask, as compressed-tensors does")
    add('--pack', type=pathlib.Path, default=HERE.parents[1] / 'build/release/bin/swizzle-pack',
        help='the program swizzle-pack')
    add('--threads', type=int, default=0, help='to measure with; 0: all processors')
    add('--measure', action=argparse.BooleanOptionalAction, default=True, help='measure retrieval, size and speed')
    args = parser.parse_args(arguments)
    if args.sparsities:
        read_advice(parser, args)
    if args.sparsity is None:
        parser.error('name the share of zeros, as --sparsity=.9, or --sparsities=FILE')
    if not 0 < args.sparsity < 1:
        parser.error(f'--sparsity is {args.sparsity}; it must lie between 0 and 1, as .9')
    if args.vector < 1 or args.vector & (args.vector - 1):
        parser.error(f'--vector is {args.vector}; it must be a power of 2')
    if args.out.resolve() == args.checkpoint.resolve():
        parser.error('OUT is CHECKPOINT; name another folder')
    if (args.vector > 1 or args.int8) and not shutil.which(args.pack) and args.until != 'train':
        parser.error(f'{args.pack} is not there; build Swizzle, or name the program with --pack')
    args.training = args.out / 'training'
    return args


def main():
    args = parse_args(sys.argv[1:])
    try:
        for step in STEPS[:STEPS.index(args.until) + 1]:
            globals()[step](args)
    except KeyboardInterrupt:
        sys.exit(f'distil: ended; the same command goes on from {args.training}')
    except subprocess.CalledProcessError as error:
        sys.exit(f'distil: {error.cmd[0]} {error.cmd[1]} ended with {error.returncode}\n{error.stderr or ""}')
    except (OSError, ValueError) as error:
        sys.exit(f'distil: {error}')


if __name__ == '__main__':
    main()
