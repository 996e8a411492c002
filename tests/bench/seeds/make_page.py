"""The page README.md beside this and its plots, from what the programs of this folder wrote into results/:
`python tests/bench/seeds/make_page.py`."""

import json
import math
import pathlib
import statistics
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import kept_tables  # noqa: E402
import speed_plot  # noqa: E402

# In the order of the page: file, program, and what the page says of what cannot be repeated.
SEEDS = (
    ('sputnik', 'seeds_sputnik --dlmc=DLMC', 'Volta\'s placement of blocks, that version of cuSPARSE, and accuracies '
     'after training cannot be repeated. The sparse Transformer, SDDMM and MobileNetV1 have figures of their own '
     '([GPU](../../../kernels/cuda/PERFORMANCE.md)).'),
    ('magicube', 'seeds_magicube --dlmc=DLMC --fused=FILE', 'Hopper emulates products of 4 bits, so these are stored '
     'in 4 and computed in 8. Their shuffle of indices lets two nibbles of different rows share a byte without '
     'shifting each: bytes take one nibble each, so nothing is left for it to save. What is offline here is the order '
     'in which the numbers of a step\'s columns lie, so that a lane has its own by one load; "index order" is that '
     'against loads one by one. Parts are left out one at a time, of the kernel with two copies ahead; prefetch is one '
     'copy ahead against none, since two are slower. The paper adds its parts one after the other. The published '
     'figures are sums over the artefact\'s logs, not the paper\'s own. Widths other than 8-8 are functions of the '
     'library (`kernels/cuda/int8/spmm_bytes.h`): no row of the kernel table has them, so no plan chooses them. So it is '
     'with attention, whose "error" is against attention that rounds nothing, of normal draws; against the same whole '
     'numbers it is at most 1 % and, with 4-4, 3 %. An encoder is four layers\' attention and products by cuBLAS, '
     'without sums and norms. cuDNN\'s and FlashAttention\'s times are PyTorch\'s, by events around each call, which '
     'cost short calls more. Accuracies after training are not repeated.'),
    ('dual_side', 'seeds_dual_side', 'All of the paper but unfolding ran on a simulated chip, whose products skip '
     'steps inside; a GPU\'s do not. "Model" is how many times fewer such steps scattered zeros leave, by our '
     'reckoning.'),
    ('shfl_bw', 'seeds_shfl_bw', 'V100 and T4 are not here, and what BLEU the pruned networks reach takes their '
     'training. Weights are drawn as their search leaves them: groups of rows that keep the same columns.'),
    ('hb_ell', 'seeds_hb_ell', 'The paper simulated a chip; its instructions are in none. Blocks are expanded when a '
     'model is loaded, and strays computed with them, as columns of 64 rows each: a part of their own, in a kernel of '
     'its own or in one with the blocks, was slower ([GPU](../../../kernels/cuda/PERFORMANCE.md)).'),
)
COLOURS = ('#0b6e4f', '#e09f3e', '#8d99ae', '#9e2a2b', '#3d5a80')
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 300, 68, 46, 150, 44


def kept(name):
    """What its program wrote; of parts that were run by themselves (<name>_<part>.json) all, with each of them in
    'runs'."""
    files = [HERE / 'results' / f'{name}.json', *sorted((HERE / 'results').glob(f'{name}_*.json'))]
    runs = [json.loads(file.read_text(encoding='utf-8')) for file in files if file.exists()]
    if not runs:
        return None
    joined = {what: [one for run in runs for one in run[what]] for what in ('claims', 'cases')}
    machines = dict.fromkeys(run['machine'].removeprefix('NVIDIA ') for run in runs)
    return {**runs[0], **joined, 'machine': ' and '.join(machines), 'runs': runs}


def origins(runs):
    """Of each where, when and how; where there are several, of which workloads."""
    for run in runs:
        of = ', '.join(dict.fromkeys(case['workload'] for case in run['cases'])) + ': ' if len(runs) > 1 else ''
        yield (f'{of}{run["machine"]}, {run["date"]}, commit {run["commit"]}, {len(run["cases"])} cases; '
               f'{run["method"]}.')


def mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def curve(cases, x, over, of, wanted=lambda case: True):
    """Geometric means of over / of, by x."""
    points = {}
    for case in cases:
        if wanted(case) and case.get(over) and case.get(of):
            points.setdefault(case[x], []).append(case[over] / case[of])
    return sorted((at, mean(ratios)) for at, ratios in points.items())


def plot(title, x_label, curves):
    """An SVG: ratios on a logarithmic axis, a line at 1; x is a category each."""
    marks = sorted({x for _, points in curves for x, _ in points})
    ratios = [y for _, points in curves for _, y in points] + [1]
    low, high = math.floor(math.log2(min(ratios))), math.ceil(math.log2(max(ratios)))
    if low == high:
        high += 1
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    x_of = {x: LEFT + across * (i + 0.5) / len(marks) for i, x in enumerate(marks)}

    def y_of(ratio):
        return TOP + down * (high - math.log2(ratio)) / (high - low)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             'font-size="12">', '<rect width="100%" height="100%" fill="#fff"/>',
             speed_plot.text(LEFT, 22, title, font_size='14', font_weight='bold')]
    for power in range(low, high + 1):
        y = y_of(2 ** power)
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + across}" y2="{y:.1f}" '
                     f'stroke="{"#555" if power == 0 else "#ddd"}"/>')
        lines.append(speed_plot.text(LEFT - 8, round(y + 4, 1), f'{2 ** power:g}x', text_anchor='end', fill='#555'))
    for x, at in x_of.items():
        lines.append(speed_plot.text(round(at, 1), HEIGHT - BOTTOM + 18, f'{x:g}', text_anchor='middle', fill='#555'))
    lines.append(speed_plot.text(LEFT + across / 2, HEIGHT - 8, x_label, text_anchor='middle'))
    for i, (label, points) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        path = ' '.join(f'{x_of[x]:.1f},{y_of(y):.1f}' for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{x_of[x]:.1f}" cy="{y_of(y):.1f}" r="3" fill="{colour}">'
                  f'<title>{label}: {y:.2f}x</title></circle>' for x, y in points]
        lines.append(f'<rect x="{LEFT + across + 12}" y="{TOP + 18 * i}" width="11" height="11" fill="{colour}"/>')
        lines.append(speed_plot.text(LEFT + across + 28, TOP + 10 + 18 * i, label))
    return '\n'.join(lines + ['</svg>', ''])


def plot_sputnik(cases):
    def rounded(case):
        return {**case, 's': round(case['sparsity'], 1)}
    cases = [rounded(case) for case in cases if case['workload'] == 'recurrent']
    return [(label, curve(cases, 's', over, of)) for label, over, of in (
        ('ours / cuSPARSE', 'cusparse_us', 'ours_us'), ('ours / dense FP32', 'cublas_us', 'ours_us'),
        ('theirs / cuSPARSE', 'cusparse_us', 'sputnik_us'))]


def plot_magicube(cases):
    cases = [case for case in cases if case['workload'] == 'SpMM']
    return [(label, curve(cases, 'sparsity', over, 'ours_us')) for label, over in (
        ('cuSPARSE FP16', 'cusparse_f16_us'), ('dense FP16', 'cublas_f16_us'), ('dense INT8', 'cublas_s8_us'))]


def plot_dual_side(cases):
    def both(case):
        return case['workload'] == 'product' and case['w_sparsity'] == case['x_sparsity']
    return [(label, curve(cases, 'w_sparsity', over, 'ours_us', both)) for label, over in (
        ('dense FP16', 'cublas_us'), ('cuSPARSE', 'cusparse_us'))]


def plot_shfl_bw(cases):
    cases = [case for case in cases if case['workload'] == 'Transformer']
    return [(f'V {vector}', curve(cases, 'density', 'cublas_us', 'ours_us', lambda case, v=vector: case['vector'] == v))
            for vector in sorted({case['vector'] for case in cases})] + [
                ('scattered, CSR', curve(cases, 'density', 'cublas_us', 'csr_us'))]


def plot_hb_ell(cases):
    return [(label, curve(cases, 'density', over, 'ours_us')) for label, over in (
        ('cuSPARSE CSR', 'csr_us'), ('blocked-ELL', 'blocked_ell_us'), ('dense FP16', 'dense_us'))]


PLOTS = {
    'sputnik': ('Recurrent layers, FP32: times as fast', 'share of zeros', plot_sputnik),
    'magicube': ('INT8 in vectors of 8 rows: times as fast as', 'share of zeros', plot_magicube),
    'dual_side': ('Both sides sparse, 4096 x 4096 x 4096, FP16: times as fast as', 'share of zeros on either side',
                  plot_dual_side),
    'shfl_bw': ('Transformer layers, FP16: times as fast as dense', 'share that is kept', plot_shfl_bw),
    'hb_ell': ('Blocks and strays, FP16: times as fast as', 'share that is kept', plot_hb_ell),
}


def plots():
    """{file: SVG} of what was measured."""
    drawn = {}
    for name, (title, x_label, make) in PLOTS.items():
        result = kept(name)
        if result:
            drawn[f'{name}.svg'] = plot(title, x_label, [curve for curve in make(result['cases']) if curve[1]])
    return drawn


def ratio(value):
    return f'{value:.2f}x' if value else ''


def claim_rows(claims):
    for claim in claims:
        where = claim['hardware'] + (', simulated' if claim['simulated'] else '')
        what = claim['what'] + (f' ({claim["of"]})' if claim['of'] else '')
        yield [what, ratio(claim['published']), where if claim['published'] else '', ratio(claim['ours']),
               claim['verdict']]


def dual_side_tables(cases):
    products = [case for case in cases if case['workload'] == 'product']
    as_next = {'Y stored, then encoded': 'stored_then_encoded_us', 'Y leaves encoded': 'leaves_encoded_us'}
    as_next = {head: column for head, column in as_next.items() if column in products[0]}
    yield kept_tables.markdown(
        ('zeros of W + X', 'cuBLASLt', 'cuSPARSE', 'ours, encoding included', 'gain over dense', 'X dense', *as_next,
         'model'),
        [[f'{case["w_sparsity"] * 100:g} + {case["x_sparsity"] * 100:g} %', f'{case["cublas_us"]:.0f} µs',
          f'{case["cusparse_us"]:.0f} µs' if 'cusparse_us' in case else '', f'{case["ours_us"]:.0f} µs',
          ratio(case['cublas_us'] / case['ours_us']), f'{case["w_only_us"]:.0f} µs',
          *(f'{case[column]:.0f} µs' for column in as_next.values()), ratio(case['model_gain'])] for case in products])
    unfolding = [case for case in cases if case['workload'] == 'unfolding']
    yield kept_tables.markdown(
        ('batch', 'zeros', 'unfolding, dense', 'encoding', 'unfolding bitmaps', 'gain'),
        [[str(case['batch']), f'{case["sparsity"] * 100:g} %', f'{case["dense_us"]:.1f} µs',
          f'{case["encode_us"]:.1f} µs', f'{case["unfold_us"]:.1f} µs', ratio(case['dense_us'] / case['ours_us'])]
         for case in unfolding])
    layers = {}
    encoded = any('leaves_encoded_us' in case for case in cases if case['workload'] == 'convolution')
    for case in cases:
        if case['workload'] == 'convolution':
            layers.setdefault((case['model'], case['channels'], case['plane']), []).append(case)
    rows = []
    for (model, channels, plane), group in layers.items():
        def best(case):
            return min(case['ours_us'], case.get('leaves_encoded_us', math.inf))
        winning = [case['x_sparsity'] for case in group if best(case) < case['dense_us']]
        rows.append([f'{model}, {channels}x{plane}x{plane}', f'{group[0]["dense_us"]:.1f} µs'] +
                    [f'{best(case):.1f} µs' for case in group] +
                    ([ratio(mean([case['ours_us'] / best(case) for case in group]))] if encoded else []) +
                    [f'{min(winning) * 100:g} %' if winning else 'none'])
    heads = [f'{case["x_sparsity"] * 100:g} %' for case in next(iter(layers.values()))] if layers else []
    gain = ('over encoding apart',) if encoded else ()
    yield kept_tables.markdown(('layer, 3x3, weights 90 % zeros', 'dense', *heads, *gain, 'wins from'), rows)
    if encoded:
        yield 'Inputs and outputs of layers are encoded: by the epilogue of the layer before, whose time is in.'


def magicube_tables(cases):
    def of(workload):
        return [case for case in cases if case['workload'] == workload]
    yield times_table('magicube', of('SpMM'))
    yield 'Geometric means of times, and of what the best of cuSPARSE takes of ours; the least of these.'
    widths = ('16-16', '16-8', '16-4', '12-4', '8-4', '4-4')
    groups = {}
    for case in of('SpMM'):
        if '4-4_us' in case:
            groups.setdefault(case['sparsity'], []).append(case)
    yield kept_tables.markdown(
        ('zeros, N 256', 'dense FP16, cuBLAS', *widths),
        [[f'{sparsity * 100:.0f} %', *(f'{mean([case[column] for case in group]):.1f} µs' for column in (
            'cublas_f16_us', *(f'{width}_us' for width in widths)))] for sparsity, group in sorted(groups.items())])
    groups = {}
    for case in of('SDDMM'):
        groups.setdefault((case['sparsity'], case['k']), []).append(case)
    columns = ('cublas_f16_us', 'cusparse_f16_us', '16-16_us', '8-8_us', '4-4_us')
    yield kept_tables.markdown(
        ('SDDMM, zeros', 'K', 'products', 'dense FP16, cuBLAS', 'cuSPARSE FP16', '16-16', '8-8', '4-4',
         '8-8 over cuSPARSE', 'least'),
        [[f'{sparsity * 100:.0f} %', str(depth), str(len(group)),
          *(f'{mean([case[column] for case in group]):.1f} µs' for column in columns),
          *(ratio(join([case['cusparse_f16_us'] / case['8-8_us'] for case in group])) for join in (mean, min))]
         for (sparsity, depth), group in sorted(groups.items())])
    yield kept_tables.markdown(
        ('attention: tokens', 'heads of 64', 'zeros', 'dense FP16, in parts', 'fused, ours', 'fused, cuDNN',
         'fused, FlashAttention 2', 'ours, 8-8', 'over parts', 'over the fastest fused', 'error'),
        [[f'{case["sequences"]} x {case["tokens"]:,}', str(case['heads']), f'{case["sparsity"] * 100:.0f} %',
          *(f'{case[by]:.0f} µs' if by in case else ''
            for by in ('parts_us', 'fused_us', 'cudnn_us', 'flash_us', 'ours_us')),
          ratio(case['parts_us'] / case['ours_us']),
          ratio(min(case[by] for by in ('fused_us', 'cudnn_us', 'flash_us') if by in case) / case['ours_us']),
          f'{case["error"] * 100:.1f} %'] for case in of('attention')])
    if any('16-8_us' in case for case in of('attention')):
        yield kept_tables.markdown(
            ('attention by widths: tokens', 'heads of 64', 'zeros',
             *(f'{width}{what}' for width in ('16-8', '8-8', '8-4', '4-4') for what in ('', ', error'))),
            [[f'{case["sequences"]} x {case["tokens"]:,}', str(case['heads']), f'{case["sparsity"] * 100:.0f} %',
              *(text for time, error in (('16-8_us', '16-8_error'), ('ours_us', 'error'), ('8-4_us', '8-4_error'),
                                         ('4-4_us', '4-4_error'))
                for text in (f'{case[time]:.0f} µs', f'{case[error] * 100:.1f} %'))] for case in of('attention')])
    parts = ('full', 'no_banks_apart', 'no_transpose', 'no_index_order', 'one_ahead', 'no_prefetch')
    yield kept_tables.markdown(
        ('ablation', 'zeros', 'two copies ahead', 'banks not apart', 'transposed byte by byte', 'no index order',
         'one copy ahead', 'none'),
        [[case['widths'], f'{case["sparsity"] * 100:.0f} %',
          *(f'{case["operations"] / case[f"{part}_us"] / 1e6:.1f} TOP/s' for part in parts)]
         for case in of('ablation')])


# Of each system without tables of its own: what a row is of, and whose times stand in it.
TIMES = {
    'sputnik': (lambda case: (case['workload'], f'{case["sparsity"] * 100:.0f} %'), ('workload', 'zeros'), {
        'dense, cuBLAS': 'cublas_us', 'cuSPARSE': 'cusparse_us', 'theirs, rewritten': 'sputnik_us', 'ours': 'ours_us'}),
    'magicube': (lambda case: (f'{case["sparsity"] * 100:.0f} %', case['n']), ('zeros', 'N'), {
        'dense FP16, cuBLAS': 'cublas_f16_us', 'dense INT8, cuBLASLt': 'cublas_s8_us',
        'cuSPARSE FP16': 'cusparse_f16_us', 'ours, 8-8': 'ours_us'}),
    'shfl_bw': (lambda case: (case['workload'], f'{100 - case["density"] * 100:.0f} %', case['vector'])
                if 'density' in case else (f'{case["workload"]}, {case["model"]}', '50 %', ''),
                ('workload', 'zeros', 'V'), {
        'dense FP16, cuBLASLt': 'cublas_us', 'cuSPARSE, scattered': 'cusparse_us', 'ours, scattered': 'csr_us',
        'ours': 'ours_us'}),
    'hb_ell': (lambda case: (f'{100 - case["density"] * 100:.0f} %', case['n']), ('zeros', 'N'), {
        'dense FP16, cuBLASLt': 'dense_us', 'cuSPARSE CSR': 'csr_us', 'cuSPARSE blocked-ELL': 'blocked_ell_us',
        'ours': 'ours_us'}),
}


def times_table(name, cases):
    """Geometric means of the times by workload and sparsity, and by how much the best of cuSPARSE is above ours."""
    key_of, heads, columns = TIMES[name]
    groups = {}
    for case in cases:
        groups.setdefault(key_of(case), []).append(case)
    best = [column for head, column in columns.items() if head.startswith('cuSPARSE')]
    rows = []
    for key, group in groups.items():
        gains = [min(case[column] for column in best) / case['ours_us'] for case in group if best[0] in case]
        rows.append([*map(str, key), str(len(group)),
                     *(f'{mean([case[column] for case in group]):.1f} µs' if column in group[0] else ''
                       for column in columns.values()),
                     ratio(mean(gains)) if gains else '', ratio(min(gains)) if gains else ''])
    return kept_tables.markdown((*heads, 'products', *columns, 'over cuSPARSE', 'least'), rows)


TABLES = {'dual_side': dual_side_tables, 'magicube': magicube_tables}


def section(name, program, limits):
    result = kept(name)
    lines = [f'## {result["system"]}' if result else f'## {name}', '']
    if not result:
        return lines + ['Not measured yet.', '']
    title = PLOTS[name][0]
    lines += [textwrap.fill(f'{result["paper"]}; `{program}`. {limits}', 120, break_long_words=False,
                            break_on_hyphens=False), '',
              kept_tables.markdown(('claim', 'published', 'on', 'here', 'verdict'), list(claim_rows(result['claims']))),
              '', f'![{title}]({name}.svg)', '']
    if name in TABLES:
        lines += [line for table in TABLES[name](result['cases']) for line in (table, '')]
    else:
        lines += [times_table(name, result['cases']), '',
                  'Geometric means of times, and of what the best of cuSPARSE takes of ours; the least of these.', '']
    return lines + [line for origin in origins(result['runs']) for line in (origin, '')]


def page():
    head = ['# Five papers on today\'s GPU', '', textwrap.fill(
        'Each section makes a paper\'s workloads anew and puts its published figures beside those of this GPU. '
        'Figures are ratios of times. "Reproduced" is nine tenths of a published ratio and half of what it gains, '
        '"weaker" less, "refuted" no gain; of published losses "better here" is a ratio half as large again, "worse '
        'here" one below two thirds; "new": nothing was published. What was simulated in the paper is marked. Our '
        'products of FP32 and FP16 are checked against sums in double precision before they are timed, those of '
        'whole numbers in 16 rows to the bit. Dual-side\'s unfolding and convolutions are timed alone: '
        '`tests/kernels/cuda/bitmap_test.cc` checks them. Baselines are of the same run: the fastest of cuBLASLt\'s '
        'heuristics or cuBLAS, and the fastest of cuSPARSE\'s algorithms. '
        '`make_page.py` writes this page.', 120, break_long_words=False, break_on_hyphens=False), '', textwrap.fill(
        'In short, published claims that can be tried here, those of their algorithms as rewritten included:', 120),
            '', summary(), '']
    return '\n'.join(head + [line for seed in SEEDS for line in section(*seed)]).rstrip() + '\n'


# The columns of the summary, by verdict; of as many claims the later one counts.
OUTCOMES = {'reproduced, or better': ('reproduced', 'better here'), 'weaker': ('weaker',),
            'refuted, or worse': ('refuted', 'worse here')}


def summary_rows():
    """How many of a system's claims came out how, and as what most did; which ones, its section says."""
    for name, _, _ in SEEDS:
        result = kept(name)
        if not result:
            continue
        verdicts = [claim['verdict'] for claim in result['claims'] if claim['published']]
        counts = [sum(verdict in words for verdict in verdicts) for words in OUTCOMES.values()]
        most = max(range(len(counts)), key=lambda i: (counts[i], i))
        link = f'[{result["system"]}](#{result["system"].lower().replace(" ", "-")})'
        yield [f'{link} ({result["paper"]})', result['machine'], *map(str, counts), list(OUTCOMES)[most].split(',')[0]]


def summary():
    return kept_tables.markdown(('system', 'on', *OUTCOMES, 'most are'), list(summary_rows()))


def main():
    (HERE / 'README.md').write_text(page(), encoding='utf-8')
    for name, drawn in plots().items():
        (HERE / name).write_text(drawn, encoding='utf-8')


if __name__ == '__main__':
    main()
