#!/usr/bin/env python3
"""Finds the texts nearest in meaning to a query, by the embeddings of a sparse MiniLM on a running swizzle-server.

  semantic_search.py --prepare=minilm              once: fetches the model and makes a model repository of it
  swizzle-server --model-repository=minilm/models   in another terminal
  semantic_search.py "a query"                     as often as you like
"""

import argparse
import pathlib
import shutil
import sys

import numpy as np

import connection

MODEL = 'minilm'
DEPLOYED = pathlib.Path(__file__).resolve().parents[2] / 'deploy' / 'models'
PIPELINE = ('modules.json', '1_Pooling/config.json', 'sentence_bert_config.json')
TEXTS = (
    'A domesticated cat sleeps most of the day.',
    'The orchestra tuned its instruments before the concert.',
    'Interest rates were raised to slow inflation.',
    'Photosynthesis turns light, water and carbon dioxide into sugar.',
    'The goalkeeper saved a penalty in the last minute.',
    'To return an article, send it back within thirty days for a refund.',
    'The volcano erupted and covered the village in ash.',
    'Whisk the eggs, add flour and milk, and let the batter rest.',
    'The train to the coast leaves from platform four.',
    'A vaccine teaches the immune system to recognise a virus.',
    'The program crashed because it read memory that it had freed.',
    'The judge found the defendant guilty of fraud.',
    'A comet is a body of ice and dust that grows a tail near the sun.',
    'She planted tomatoes and beans in the garden.',
    'The bridge was closed after engineers found cracks in its cables.',
    'He learned to play the piano at the age of six.',
)


def embed(texts, args):
    """Returns the embeddings of texts, of length 1, asking the server for a batch at a time."""
    parts = []
    for start in range(0, len(texts), args.batch):
        rows = np.array([[text.encode()] for text in texts[start:start + args.batch]], np.object_)
        parts.append(connection.infer(args.address, MODEL, {'text': rows}, 'embedding'))
    return np.concatenate(parts)


def nearest(query, embeddings, count):
    """Returns [(cosine, index)] of the `count` rows of `embeddings` nearest to `query`, the nearest first."""
    cosines = embeddings @ query
    return [(float(cosines[i]), int(i)) for i in np.argsort(-cosines, kind='stable')[:count]]


def prepare(folder):
    """Makes the model repository: FOLDER/models/minilm, with the encoder, its tokeniser and what says how to pool."""
    for module in ('onnx', 'safetensors'):
        connection.need(module)
    sys.path.insert(0, str(DEPLOYED))
    import minilm_files

    model = folder / 'models' / MODEL
    try:
        dense = minilm_files.dense_model()
        minilm_files.assemble(DEPLOYED / 'minilm_wordnet_sparse90.safetensors', dense, model / '1')
        (model / '1' / 'model.onnx').unlink()  # the checkpoint says the same
        for name in PIPELINE:
            (model / '1' / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(dense / name, model / '1' / name)
        (model / 'config.pbtxt').write_text('parameters { key: "text" value { string_value: "embedding" } }\n')
    except (OSError, ValueError) as error:
        raise connection.Failure(error) from None
    print(f'{model} is ready; now: swizzle-server --model-repository={folder / "models"}')


def read_texts(path):
    if path is None:
        return list(TEXTS)
    try:
        texts = [line.strip() for line in path.read_text(encoding='utf-8').splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise connection.Failure(f'{path} cannot be read: {error}') from None
    if not texts:
        raise connection.Failure(f'{path} has no text; it should have one a line')
    return texts


def parse_args(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('query', nargs='*', help='what to look for; several words are one query')
    add('--prepare', type=pathlib.Path, metavar='DIR', help='fetch the model, write DIR/models, leave')
    add('--texts', type=pathlib.Path, metavar='FILE', help='texts to search, one a line (default: 16 of its own)')
    add('--count', type=int, metavar='N', default=3, help='how many texts to print (default: 3)')
    add('--batch', type=int, metavar='N', default=8, help='texts a request (default: 8)')
    add('--address', metavar='HOST:PORT', default='localhost:8001', help="the server's gRPC (default: localhost:8001)")
    args = parser.parse_args(arguments)
    if bool(args.query) == bool(args.prepare):
        parser.error('give either a query or --prepare')
    if args.count < 1 or args.batch < 1:
        parser.error('--count and --batch must be at least 1')
    return args


def main():
    args = parse_args()
    if args.prepare:
        prepare(args.prepare)
        return
    texts = read_texts(args.texts)
    embeddings = embed([' '.join(args.query), *texts], args)
    for cosine, index in nearest(embeddings[0], embeddings[1:], args.count):
        print(f'{cosine:.3f}  {texts[index]}')


if __name__ == '__main__':
    connection.run(main)
