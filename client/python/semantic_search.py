#!/usr/bin/env python3
"""Finds the texts nearest in meaning to a query, by the embeddings of a sparse MiniLM on a running swizzle-server.

  semantic_search.py --prepare=minilm              once: fetches the model and makes a model repository of it
  swizzle-server --model-repository=minilm/models   in another terminal
  semantic_search.py "a query"                     as often as you like
"""

import argparse
import pathlib
import sys

import numpy as np

import connection

MODEL = 'minilm'
DEPLOYED = pathlib.Path(__file__).resolve().parents[2] / 'deploy' / 'models'
MAX_TOKENS = 256
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


def tokenise(texts, tokenizer):
    """Returns the model's inputs: {name: int64 [texts, length]}, padded to the longest text."""
    encoded = tokenizer.encode_batch(list(texts))
    ids = np.array([item.ids for item in encoded], np.int64)
    mask = np.array([item.attention_mask for item in encoded], np.int64)
    return {'input_ids': ids, 'attention_mask': mask, 'token_type_ids': np.zeros_like(ids)}


def pool(states, mask):
    """Returns embeddings [texts, hidden] of length 1: the means of the states at unmasked positions."""
    weights = mask[:, :, None].astype(states.dtype)
    means = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def embed(texts, tokenizer, args):
    """Returns the embeddings of texts, asking the server for a batch at a time."""
    parts = []
    for start in range(0, len(texts), args.batch):
        inputs = tokenise(texts[start:start + args.batch], tokenizer)
        states = connection.infer(args.address, MODEL, inputs, 'last_hidden_state')
        parts.append(pool(states, inputs['attention_mask']))
    return np.concatenate(parts)


def nearest(query, embeddings, count):
    """Returns [(cosine, index)] of the `count` rows of `embeddings` nearest to `query`, the nearest first."""
    cosines = embeddings @ query
    return [(float(cosines[i]), int(i)) for i in np.argsort(-cosines, kind='stable')[:count]]


def prepare(folder):
    """Makes the model repository: FOLDER/minilm/1/model.onnx, and the tokenizer in FOLDER/tokenizer."""
    for module in ('onnx', 'safetensors'):
        connection.need(module)
    sys.path.insert(0, str(DEPLOYED))
    import minilm_files

    tokenizer, version = folder / 'tokenizer', folder / 'models' / MODEL / '1'
    try:
        minilm_files.assemble(DEPLOYED / 'minilm_wordnet_sparse90.safetensors', minilm_files.dense_model(), tokenizer)
        version.mkdir(parents=True, exist_ok=True)
        (tokenizer / 'model.onnx').replace(version / 'model.onnx')
        (tokenizer / 'model.safetensors').unlink()
    except (OSError, ValueError) as error:
        raise connection.Failure(error) from None
    print(f'{version / "model.onnx"} is ready; now: swizzle-server --model-repository={folder / "models"}')


def open_tokenizer(folder):
    tokenizers = connection.need('tokenizers')
    path = folder / 'tokenizer' / 'tokenizer.json'
    if not path.is_file():
        raise connection.Failure(f'{path} is not there; run {sys.argv[0]} --prepare={folder} first')
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


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
    add('--prepare', type=pathlib.Path, metavar='DIR', help='fetch the model, write DIR/models and DIR/tokenizer, leave')
    add('--models', type=pathlib.Path, metavar='DIR', default=pathlib.Path('minilm'),
        help='what --prepare wrote, for its tokenizer (default: minilm)')
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
    tokenizer = open_tokenizer(args.models)
    embeddings = embed([' '.join(args.query), *texts], tokenizer, args)
    for cosine, index in nearest(embeddings[0], embeddings[1:], args.count):
        print(f'{cosine:.3f}  {texts[index]}')


if __name__ == '__main__':
    connection.run(main)
