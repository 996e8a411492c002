"""Tables of networks that were trained to patterns of zeros, of what deploy/models/pattern_accuracy.py and retrieval.py
kept."""

import statistics

from table_text import kept, note, table

TRAINED = {'resnet': 'thin ResNet-18', 'mobilenet': 'MobileNetV1', 'minilm': 'MiniLM'}


def trained(figures, net, pattern, sparsity, what='accuracy'):
    """The mean over the seeds."""
    return statistics.fmean(row[what] for row in figures[net]['rows']
                            if (row['pattern'], row['sparsity']) == (pattern, sparsity))


def patterns_table():
    """What networks get right that were trained to each pattern."""
    figures = kept('patterns.json')
    combinations = sorted(((row['sparsity'], row['pattern']) for row in figures['minilm']['rows']),
                          key=lambda pair: pair[0])
    rows = [('none', 'dense', *(f'{figures[net]["dense"]:.2f} %' for net in TRAINED), '1')]
    rows += [(f'{sparsity:.0%}', pattern, *(f'{trained(figures, net, pattern, sparsity):.2f} %' for net in TRAINED),
              f'{trained(figures, "minilm", pattern, sparsity, "cosine"):.3f}') for sparsity, pattern in combinations]
    epochs = ', '.join(f'{name} {" and ".join(map(str, figures[net]["epochs"]))}' for net, name in TRAINED.items())
    hardware = ', '.join(sorted({figures[net]['hardware'] for net in TRAINED}))
    return table('zeros', 'pattern', *TRAINED.values(), 'cosine', rows=rows) + note(
        f'{figures["date"]}, trained on one {hardware}, epochs: {epochs}; a figure is the mean of the runs. Accuracy '
        'of the classifiers: top-1 of 10,000 test images, by `swizzle-pack run`. MiniLM: accuracy on 11,739 held-out '
        'glosses, and the mean cosine of their embeddings to the dense ones, by PyTorch.')


def gaps_table():
    """How far the longest vectors are behind, in points."""
    figures = kept('patterns.json')

    def points(net, sparsity, other):
        gap = (trained(figures, net, 'Shfl-BW 64', sparsity) - trained(figures, net, other, sparsity))
        return f'{gap:+.2f}'

    rows = [(f'{sparsity:.0%}', f'Shfl-BW 64 against {other}', *(points(net, sparsity, other) for net in TRAINED))
            for sparsity in (0.8, 0.9) for other in ('unstructured', 'vector-wise 32', 'Shfl-BW 32', 'block 32')]
    return table('zeros', 'points of accuracy', *TRAINED.values(), rows=rows)


def longer_table():
    """The classifiers again, trained for longer to 80 % zeros alone."""
    figures, before = kept('patterns_longer.json'), kept('patterns.json')
    nets = [net for net in TRAINED if net in figures]
    names = [row['pattern'] for row in figures[nets[0]]['rows'] if row['seed'] == 1]
    rows = [(name, *(f'{trained(of, net, name, 0.8):.2f} %' for net in nets for of in (before, figures)))
            for name in names]
    columns = [f'{TRAINED[net]}, {round(statistics.fmean(of[net]["epochs"]))} epochs'
               for net in nets for of in (before, figures)]
    return table('80 % zeros', *columns, rows=rows)


# The folders that retrieval.py was given: zeros, and how they came about.
ENCODERS = {'all-MiniLM-L6-v2': ('none', 'dense'),
            'minilm80': ('80 %', '`distil.py --sparsity=.8`'),
            'minilm90': ('90 %', '`distil.py --sparsity=.9`'),
            'minilm90/int8/model.onnx': ('90 %', 'the same, INT8'),
            'minilm90-v64': ('90 %', '`distil.py --sparsity=.9 --vector=64`'),
            'minilm_wordnet90': ('90 %', 'the one in this folder, taught on WordNet alone'),
            'pruned80/model.onnx': ('80 %', '`swizzle-pack prune`: one shot, no training'),
            'pruned90/model.onnx': ('90 %', '`swizzle-pack prune`: one shot, no training')}


def retrieval_table():
    """What encoders made of MiniLM still find."""
    figures = kept('retrieval.json')
    dense = figures['results'][0]['figures']['mean']['ndcg']
    rows = []
    for result in figures['results']:
        found = result['figures']
        rows.append((*ENCODERS[result['model']], *(f'{found[task]["ndcg"]:.2f} %' for task in found),
                     f'{found["mean"]["recall"]:.2f} %', f'{found["mean"]["ndcg"] / dense:.1%}'.replace('%', ' %')))
    tasks = [f'nDCG@10, {task}' for task in figures['results'][0]['figures']]
    return table('zeros', 'made by', *tasks, 'recall@10, mean', 'of dense nDCG@10', rows=rows) + note(
        f'{figures["date"]}, `retrieval.py --engines=swizzle -o json`, texts {figures["texts"]}; trained on one NVIDIA H200 '
        'for eight minutes, three of them side by side (`--minutes=8 --batch-tokens=16384`), seed 1.')
