#!/usr/bin/env python3
"""Quantises the sparse models here with swizzle-pack, measures what they then get right, and says so in their cards.

    python3 quantised_accuracy.py [--binaries=../../build/release/bin] [--models=mobilenet,resnet,minilm]

The images of Fashion-MNIST (Debian's dataset-fashion-mnist) and the glosses of WordNet (wordnet-base) have to be there;
minilm needs tokenizers, too, and fetches the dense model. All models run by `swizzle-pack run`: its answers are what a
server gives. The tables stand between comments in README.md, RESNET.md and MINILM.md.
"""

import argparse
import gzip
import pathlib
import subprocess
import tempfile

import numpy as np

import minilm_files
import wordnet_glosses

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = '<!-- int8 accuracy: quantised_accuracy.py -->', '<!-- end of int8 accuracy -->'
CALIBRATION = 256  # training images
TOKENS_A_RUN = 1 << 15
NEIGHBOURS = 10


def read_idx(path):
    with gzip.open(path) as file:
        content = file.read()
    shape = [int.from_bytes(content[4 + 4 * i:8 + 4 * i], 'big') for i in range(content[3])]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def images_of(file):
    return (read_idx(file).astype(np.float32) / np.float32(255))[:, None]


def swizzle_pack(arguments, *words):
    return subprocess.run([arguments.binaries / 'swizzle-pack', *map(str, words)], check=True, capture_output=True,
                          text=True).stdout


def run(arguments, model, inputs, output, folder):
    for name, array in inputs.items():
        np.save(folder / f'{name}.npy', array)
    files = [f'--input={name}={folder / name}.npy' for name in inputs]
    swizzle_pack(arguments, 'run', model, *files, f'--output-dir={folder}')
    return np.load(folder / f'{output}.npy')


def write_card(card, table):
    text = (HERE / card).read_text(encoding='utf-8')
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    (HERE / card).write_text(f'{text[:begin]}\n{table}\n{text[end:]}', encoding='utf-8')
    print(f'{card}\n{table}')


def table_of(what, figures):
    """figures: of dense, sparse and quantised, in percent."""
    cells = ' | '.join(f'{figure:.2f} %' for figure in figures)
    return f'| | dense, FP32 | sparse, FP32 | sparse, INT8 |\n| --- | ---: | ---: | ---: |\n| {what} | {cells} |'


def fashion(arguments, stem, card, folder):
    train, test = (images_of(arguments.fashion / f'{part}-images-idx3-ubyte.gz') for part in ('train', 't10k'))
    labels = read_idx(arguments.fashion / 't10k-labels-idx1-ubyte.gz')
    np.savez(folder / 'calibration.npz', image=train[:CALIBRATION])
    dense, sparse, quantised = HERE / f'{stem}.onnx', HERE / f'{stem}_sparse90.onnx', folder / 'quantised.onnx'
    print(swizzle_pack(arguments, 'quantize', sparse, quantised, f'--calibration={folder / "calibration.npz"}'))
    figures = []
    for model in (dense, sparse, quantised):
        logits = [run(arguments, model, {'image': test[i:i + 1000]}, 'logits', folder) for i in range(0, len(test), 1000)]
        figures.append(100 * np.mean(np.concatenate(logits).argmax(1) == labels))
    write_card(card, table_of('top-1 of 10,000 test images', figures))


def embeddings(arguments, model, pieces, lengths, folder):
    """Unit vectors, the means of each gloss's tokens. Glosses of like length run together."""
    starts, order = np.cumsum(lengths) - lengths, np.argsort(lengths, kind='stable')
    vectors = np.empty((len(lengths), 384), np.float32)
    while len(order):
        count = max(1, TOKENS_A_RUN // int(lengths[order[min(len(order), TOKENS_A_RUN // 8) - 1]]))
        rows, order = order[:count], order[count:]
        width = int(lengths[rows].max())
        mask = np.arange(width) < lengths[rows, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate([pieces[starts[row]:starts[row] + lengths[row]] for row in rows])
        hidden = run(arguments, model, {'input_ids': ids, 'attention_mask': mask.astype(np.int64),
                                        'token_type_ids': np.zeros_like(ids)}, 'last_hidden_state', folder)
        means = np.where(mask[:, :, None], hidden, 0).sum(1)
        vectors[rows] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return vectors


def neighbour_accuracy(vectors, classes, held_out):
    """Percent of the held-out whose class is that of most of their nearest neighbours' cosines."""
    known, right = vectors[~held_out].T.copy(), 0
    for rows in np.array_split(np.flatnonzero(held_out), 24):
        cosines = vectors[rows] @ known
        nearest = np.argpartition(-cosines, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        votes = np.zeros((len(rows), wordnet_glosses.CLASSES), np.float32)
        for k in range(NEIGHBOURS):
            place = nearest[:, k:k + 1]
            np.add.at(votes, (np.arange(len(rows)), classes[~held_out][place[:, 0]]),
                      np.take_along_axis(cosines, place, 1)[:, 0])
        right += np.sum(votes.argmax(1) == classes[rows])
    return 100 * right / held_out.sum()


def minilm(arguments, folder):
    source = minilm_files.dense_model(arguments.minilm)
    minilm_files.assemble(HERE / 'minilm_wordnet_sparse90.safetensors', source, folder / 'sparse', False)
    sparse, quantised = folder / 'sparse' / 'model.onnx', folder / 'quantised.onnx'
    print(swizzle_pack(arguments, 'quantize', sparse, quantised))
    glosses, classes = wordnet_glosses.read(arguments.wordnet)
    held_out = wordnet_glosses.held_out(glosses)
    pieces, lengths = wordnet_glosses.tokenise(glosses, source / 'tokenizer.json')
    found = [embeddings(arguments, model, pieces, lengths, folder) for model in (source, sparse, quantised)]
    figures = [neighbour_accuracy(vectors, classes, held_out) for vectors in found]
    cosines = np.sum(found[1] * found[2], axis=1)
    table = table_of('accuracy on the held-out glosses', figures)
    write_card('MINILM.md', f'{table}\n\nThe mean cosine of a quantised embedding to the sparse one is {cosines.mean():.4f}, '
                            f'the least {cosines.min():.3f}.')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--binaries', type=pathlib.Path, default=HERE.parents[1] / 'build/release/bin')
    parser.add_argument('--models', default='mobilenet,resnet,minilm')
    parser.add_argument('--fashion', type=pathlib.Path, metavar='DIR', default='/usr/share/datasets/fashion-mnist')
    parser.add_argument('--wordnet', type=pathlib.Path, metavar='DIR', default=wordnet_glosses.FOLDER)
    parser.add_argument('--minilm', type=pathlib.Path, metavar='DIR', help='folder of the dense model')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for model in arguments.models.split(','):
            if model == 'minilm':
                minilm(arguments, folder)
            elif model == 'resnet':
                fashion(arguments, 'resnet18_thin_fashion', 'RESNET.md', folder)
            else:
                fashion(arguments, 'mobilenet_v1_fashion', 'README.md', folder)


if __name__ == '__main__':
    main()
