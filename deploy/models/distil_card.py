"""What distil.py measures of a sparse encoder, and the page that it writes about it."""

import statistics
import subprocess
import sys
import tempfile
import time
import pathlib

import retrieval
import retrieval_texts

SPEED_TEXTS, SPEED_ROUNDS, TUNING_SECONDS = 32, 7, 20.0


def speed(models, texts, threads):
    """Returns {model's name: (texts/s of a batch, ms of one text)} by swizzle_engine: medians of rounds in turn."""
    import swizzle_engine

    opened = {name: swizzle_engine.Model(path, text='embedding', threads=threads, max_batch=SPEED_TEXTS,
                                         tuning_budget=TUNING_SECONDS, tune_now=True) for name, path in models.items()}
    seconds = {name: ([], []) for name in models}
    for _ in range(SPEED_ROUNDS):
        for name, model in opened.items():
            for times, batch in zip(seconds[name], (texts, texts[:1])):
                started = time.perf_counter()
                model(batch)
                times.append(time.perf_counter() - started)
    for model in opened.values():
        model.close()
    return {name: (round(len(texts) / statistics.median(many), 1), round(1000 * statistics.median(one), 3))
            for name, (many, one) in seconds.items()}


def packed_bytes(models, pack):
    """Returns {model's name: bytes of its .swz file}; none where a model can't be packed."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in models.items():
            file = pathlib.Path(folder) / 'model.swz'
            if subprocess.run([str(pack), 'pack', str(path), str(file)], capture_output=True).returncode == 0:
                found[name] = file.stat().st_size
    return found


def measure(models, args):
    """Returns {'texts', 'retrieval', 'speed', 'bytes'}, what there is of them; {} without swizzle_engine."""
    if 'swizzle' not in retrieval.at_hand():
        print('retrieval and speed are not measured: there is no package swizzle_engine', file=sys.stderr)
        return {}
    try:
        tasks = retrieval_texts.Texts(args.packages).test()
    except OSError as error:
        print(f'retrieval and speed are not measured: {error}', file=sys.stderr)
        return {}
    results = retrieval.compare(models.values(), tasks, ['swizzle'], args.threads,
                                lambda result: print(f'{result["model"]}: {result["figures"]["mean"]}', file=sys.stderr))
    found = {'texts': retrieval_texts.fingerprint(tasks), 'threads': args.threads,
             'retrieval': {name: result['figures'] for name, result in zip(models, results)},
             'speed': speed(models, tasks['manuals'].documents[:SPEED_TEXTS], args.threads)}
    if args.pack.is_file():
        found['bytes'] = packed_bytes(models, args.pack)
    return found


def figures_table(measured):
    names = list(measured['retrieval'])
    rows = []
    for task in measured['retrieval'][names[0]]:
        for kind, title in (('ndcg', 'nDCG@10'), ('recall', 'recall@10')):
            rows.append((f'{title}, {task}', [f'{measured["retrieval"][name][task][kind]:.2f} %' for name in names]))
    first = measured['retrieval'][names[0]]['mean']['ndcg']
    rows.append(('of the dense nDCG@10', [f'{100 * measured["retrieval"][name]["mean"]["ndcg"] / first:.1f} %'
                                          for name in names]))
    rows.append((f'texts/s, {SPEED_TEXTS} at a time', [str(measured['speed'][name][0]) for name in names]))
    rows.append(('ms for one text', [str(measured['speed'][name][1]) for name in names]))
    if 'bytes' in measured:
        rows.append(('bytes, packed', [f'{measured["bytes"][name]:,}' if name in measured['bytes'] else '-'
                                       for name in names]))
    lines = [f'| | {" | ".join(names)} |', '|---|' + '---:|' * len(names)]
    return '\n'.join(lines + [f'| {title} | {" | ".join(cells)} |' for title, cells in rows])


def page(dense, name, log, measured):
    """Returns README.md: figures, recipe, and the sparsity of each layer."""
    recipe = log['recipe']
    pattern = f'in vectors of {log["vector"]} rows (Shfl-BW)' if log['vector'] > 1 else 'anywhere'
    parts = [f'# {dense}, {100 * recipe["sparsity"]:g} % sparse',
             f'The encoder {dense}, {100 * log["sparsity"]:.1f} % of the weights of its linear layers zero, {pattern}. It '
             'was pruned while its dense self taught it. Tokeniser, embeddings and pooling are as they were.',
             f'```\nswizzle-server --model={name},name=encoder,text=embedding --http-address=127.0.0.1:8000\n```']
    if measured:
        parts += ['## Figures', figures_table(measured),
                  f"By Swizzle on {measured['threads'] or 'all'} threads, from text to vector. Retrieval: texts of Debian's "
                  f'packages (set {measured["texts"]}), of which none was trained on; `retrieval.py` says more. Speed: '
                  'descriptions of manual pages, of 100 words at most; medians.']
    last = log['epochs'][-1][log['epoch_columns'].index('train_cosine')]
    parts += ['## Recipe',
              f'- Texts: {log["texts"]:,}, {log["tokens"]:,} tokens, {log["epochs"][-1][0]} times; mean cosine to the dense '
              f'vectors at the end, on these: {last:.3f}.',
              f'- Sparsity grows to {recipe["sparsity"]:g} in the first {100 * recipe["prune_fraction"]:g} % of the training; '
              'then the zeros stay where they are.',
              f'- Adam, peak rate {recipe["rate"]:g}, batches of {recipe["batch_tokens"]:,} tokens, seed {recipe["seed"]}; '
              f'{log["seconds"]:,} s on {log["hardware"]}.',
              '## Sparsity of each layer',
              '\n'.join(['| weight | zeros |', '|---|---:|',
                         *(f'| `{weight}` | {100 * share:.2f} % |' for weight, share in log['layer_sparsity'].items())])]
    return '\n\n'.join(parts) + '\n'
