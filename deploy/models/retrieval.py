#!/usr/bin/env python3
"""Measures how well encoders of text find what answers a query, on texts of Debian's packages.

    retrieval.py MODEL... [--engines=swizzle,onnxruntime] [--packages=DIR] [-o json]

MODEL is a folder as Sentence Transformers has them, or an ONNX encoder with the tokeniser beside it. The first one is
what the others are compared with. retrieval_texts.py says what the three tasks are; the packages are fetched at the
first call, and kept. nDCG@10: how high the right documents stand among the first ten, 100 % being all of them before
any other. recall@10: which share of the right documents is among the first ten.

Swizzle's package is found in this project's build, or where it is installed; onnxruntime needs onnx and tokenizers, too.
"""

import argparse
import datetime
import importlib.util
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

import retrieval_texts

BUILDS = [pathlib.Path(__file__).resolve().parents[2] / 'build' / preset / 'python' for preset in ('release', 'dev')]
DEPTH = 10
BATCH = 64
ENGINES = {'swizzle': ('swizzle_engine',), 'onnxruntime': ('onnxruntime', 'onnx', 'tokenizers')}


def figures(scores, relevant, depth=DEPTH):
    """Returns {'ndcg': [queries], 'recall': [queries]} of scores [queries, documents]; equal scores by their place.

    Args:
      relevant: for each query the indices of the documents that are right, at least one.
    """
    order = np.argsort(-scores, axis=1, kind='stable')[:, :depth]
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    ndcg, recall = np.zeros(len(order)), np.zeros(len(order))
    for i, (found, right) in enumerate(zip(order, relevant)):
        hits = np.isin(found, right)
        ndcg[i] = discounts[:len(found)][hits].sum() / discounts[:len(right)].sum()
        recall[i] = hits.sum() / len(right)
    return {'ndcg': ndcg, 'recall': recall}


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def measure(embed, tasks):
    """Returns {task: {'ndcg', 'recall'}} in percent, and 'mean' of the tasks; embed: texts -> [texts, dimensions]."""
    results = {}
    for name, task in tasks.items():
        scores = unit(embed(task.queries)) @ unit(embed(task.documents)).T
        results[name] = {kind: round(100 * float(values.mean()), 2)
                         for kind, values in figures(scores, task.relevant).items()}
    results['mean'] = {kind: round(float(np.mean([figure[kind] for figure in results.values()])), 2)
                       for kind in ('ndcg', 'recall')}
    return results


def in_batches(run, texts):
    """Texts of like length together."""
    order = np.argsort([len(text) for text in texts], kind='stable')
    parts = [run([texts[i] for i in order[start:start + BATCH]]) for start in range(0, len(texts), BATCH)]
    vectors = np.concatenate(parts)
    result = np.empty_like(vectors)
    result[order] = vectors
    return result


def swizzle(model, threads):
    """Returns the function that embeds texts by swizzle_engine: from text to vector as a server does it."""
    import swizzle_engine

    opened = swizzle_engine.Model(model, text='embedding', threads=threads, max_batch=BATCH)
    output = opened.outputs[0].name
    return lambda texts: in_batches(lambda batch: opened(batch)[output], texts)


def pooling_of(folder):
    """'mean' or 'cls', as Sentence Transformers' files say."""
    file = folder / '1_Pooling' / 'config.json'
    settings = json.loads(file.read_text(encoding='utf-8')) if file.is_file() else {}
    if settings.get('pooling_mode_cls_token'):
        return 'cls'
    if any(settings.get(f'pooling_mode_{kind}') for kind in ('max_tokens', 'lasttoken', 'mean_sqrt_len_tokens')):
        raise ValueError(f'{file}: only the mean and the first token are pooled here')
    return 'mean'


def tokenizer_of(folder, most=None):
    """PyTorch's and ONNX Runtime's way from texts to ids: the folder's tokeniser, cutting off where its files say."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / 'tokenizer.json'))
    tokenizer.no_padding()
    file = folder / 'sentence_bert_config.json'
    stated = json.loads(file.read_text(encoding='utf-8')).get('max_seq_length') if file.is_file() else None
    limits = [limit for limit in (most, stated, (tokenizer.truncation or {}).get('max_length')) if limit]
    if limits:
        tokenizer.enable_truncation(min(limits))
    return tokenizer


def onnx_of(model, work):
    """The ONNX file of a model: itself, or one that is written of a checkpoint of BERT's."""
    if model.is_file():
        return model
    import bert_checkpoint
    import minilm_onnx

    checkpoint = bert_checkpoint.read(model)
    minilm_onnx.write(work / 'model.onnx', checkpoint.tensors, checkpoint.config)
    return work / 'model.onnx'


def onnx_runtime(model, threads):
    """Returns the function that embeds texts by ONNX Runtime, with the tokeniser of the library tokenizers."""
    import onnxruntime

    folder = model.parent if model.is_file() else model
    tokenizer, pooling = tokenizer_of(folder), pooling_of(folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as work:
        file = onnx_of(model, pathlib.Path(work))
        session = onnxruntime.InferenceSession(str(file), options, providers=['CPUExecutionProvider'])
    names = {tensor.name for tensor in session.get_inputs()}

    def run(texts):
        encoded = tokenizer.encode_batch(texts)
        longest = max(len(item.ids) for item in encoded)
        ids, mask = np.zeros((2, len(texts), longest), np.int64)
        for row, item in enumerate(encoded):
            ids[row, :len(item.ids)], mask[row, :len(item.ids)] = item.ids, 1
        inputs = {'input_ids': ids, 'attention_mask': mask, 'token_type_ids': np.zeros_like(ids)}
        states = session.run(None, {name: array for name, array in inputs.items() if name in names})[0]
        if pooling == 'cls':
            return states[:, 0]
        return np.where(mask[:, :, None], states, 0).sum(1) / mask.sum(1, keepdims=True)

    return lambda texts: in_batches(run, texts)


def find_swizzle():
    """Makes the package of this project's build importable, if none is installed."""
    if importlib.util.find_spec('swizzle_engine') is None:
        sys.path += [str(folder) for folder in BUILDS if (folder / 'swizzle_engine').is_dir()][:1]


def at_hand():
    """The engines whose packages are installed."""
    find_swizzle()
    return [name for name, packages in ENGINES.items() if all(map(importlib.util.find_spec, packages))]


def compare(models, tasks, engines, threads=0, report=None):
    """Returns a list of {'model', 'engine', 'seconds', 'figures'}, one for each model and engine."""
    results = []
    for model in models:
        for engine in engines:
            embed = {'swizzle': swizzle, 'onnxruntime': onnx_runtime}[engine](model, threads)
            started = time.perf_counter()
            measured = measure(embed, tasks)
            results.append({'model': str(model), 'engine': engine, 'seconds': round(time.perf_counter() - started, 1),
                            'figures': measured})
            if report:
                report(results[-1])
    return results


def table(results):
    """Markdown: nDCG@10 of each task, the means, and what of the first model's nDCG@10 is left."""
    names = list(results[0]['figures'])
    tasks = ' | '.join(f'nDCG@{DEPTH}, {name}' for name in names)
    lines = [f'| model | by | {tasks} | recall@{DEPTH}, mean | of the first |', '|---|---|' + '---:|' * (len(names) + 2)]
    for result in results:
        first = next(other for other in results if other['engine'] == result['engine'])
        found = result['figures']
        cells = ' | '.join(f'{found[name]["ndcg"]:.2f} %' for name in names)
        share = 100 * found['mean']['ndcg'] / first['figures']['mean']['ndcg']
        lines.append(f'| {result["model"]} | {result["engine"]} | {cells} | {found["mean"]["recall"]:.2f} % | {share:.1f} % |')
    return '\n'.join(lines)


def parse_args(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', metavar='MODEL', nargs='+', type=pathlib.Path)
    parser.add_argument('--engines', help='swizzle, onnxruntime, or both with a comma; without it, all that are installed')
    parser.add_argument('--packages', type=pathlib.Path, metavar='DIR',
                        help='where each Debian package is unpacked in a folder of its name; without it, they are fetched')
    parser.add_argument('--threads', type=int, default=0, help='0: all processors')
    parser.add_argument('-o', '--output', choices=('text', 'json'), default='text', help='how to print')
    args = parser.parse_args(arguments)
    args.engines = args.engines.split(',') if args.engines else at_hand()
    if unknown := [engine for engine in args.engines if engine not in ENGINES]:
        parser.error(f'{unknown[0]!r} is no engine; there are {", ".join(ENGINES)}')
    if missing := [engine for engine in args.engines if engine not in at_hand()]:
        parser.error(f'{missing[0]} needs the packages {", ".join(ENGINES[missing[0]])}')
    if not args.engines:
        parser.error('there is neither swizzle_engine nor onnxruntime; build Swizzle, or install one of them')
    return args


def main():
    args = parse_args(sys.argv[1:])
    try:
        tasks = retrieval_texts.Texts(args.packages).test()
        known = retrieval_texts.fingerprint(tasks)
        results = compare(args.models, tasks, args.engines, args.threads,
                          lambda result: print(json.dumps(result), file=sys.stderr))
    except (OSError, ValueError, NotImplementedError) as error:
        sys.exit(f'retrieval: {error}')
    if args.output == 'json':
        print(json.dumps({'date': str(datetime.date.today()), 'texts': known, 'results': results}, indent=2))
        return
    of_debian = "Debian 12's" if known == retrieval_texts.DEBIAN_12 else "not Debian 12's, and not to be compared with these"
    print(f'{table(results)}\n\ntexts {known}, {of_debian}')


if __name__ == '__main__':
    main()
