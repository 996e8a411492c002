"""The tables of figures in README.md, deploy/README.md and the PERFORMANCE.md pages, and their plots, made from what
tests/gpu/run, tests/bench/whole_models.py and others kept, and of what kept_tables.py holds: `python
tests/bench/readme_tables.py` writes them, with --keep after it has taken up tables that were typed into the pages."""

import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import kept_tables  # noqa: E402
import speed_plot  # noqa: E402
from any_graph_tables import (any_graph_gpu_batch_table, any_graph_gpu_table, any_graph_int8_table,  # noqa: E402
                              exported_vision_table)
from pattern_tables import gaps_table, longer_table, patterns_table, retrieval_table  # noqa: E402
from scale_out_tables import scale_out_table  # noqa: E402
from table_text import (RESULTS, each, gpus, kept, kept_seed, note, processor_of, provenance, table,  # noqa: E402
                        times, us)

NAMES = speed_plot.NAMES

# README.md: a few columns and rows of each device.

def best_dense_int8(row):
    return min(row['ms'][engine] for engine in ('onnxruntime int8', 'openvino int8'))


def cpu_summary():
    figures, quantised = cpu_figures(), kept('cpu_int8_models.json')
    rows = [row for row in figures['rows'] if row['sparsity'] == 0.9]
    whole = {(row['model'], row['batch']): row for row in quantised['rows'] if row['sparsity'] == 0.9}

    def against(row, dense, name):
        return f'{dense:.1f} ms', f'{row["ms"][name]:.1f} ms', times(dense / row['ms'][name])

    def line(row):
        int8 = whole.get((row['model'], row['batch']))
        return (NAMES[row['model']], row['batch'], *against(row, speed_plot.best_dense(row), 'swizzle'),
                *(against(int8, best_dense_int8(int8), 'swizzle int8') if int8 else (None,) * 3))

    text = table('model', 'batch', 'best dense engine', 'Swizzle, 90 % zeros', 'gain', 'best dense engine, INT8',
                 'Swizzle, INT8', 'gain in INT8', rows=map(line, rows))
    return text + note(f'{figures["threads"]} threads of an {processor(figures)}, medians, {each("date", rows)}; INT8, '
                       f'all engines on one quantised file, on an {processor(quantised)}, '
                       f'{each("date", quantised["rows"])}: a line\'s halves do not compare. The dense engines are '
                       'ONNX Runtime and OpenVINO.')


def processor(figures):
    """With its generation, which its own name keeps silent about."""
    generations = {17: 'Zen 4', 2: 'Zen 5'}  # by the model that the processor states
    machine = figures['machine']
    return f'{machine["processor"]} ({generations[machine["model"]]})'


def int8_table():
    figures = kept('cpu_int8_models.json')
    engines = ('swizzle int8', 'onnxruntime int8', 'openvino int8', 'deepsparse int8', 'deepsparse', 'swizzle')

    def line(row):
        ours, found = row['ms']['swizzle int8'], row['ms'].get
        theirs = [found(name) for name in ('deepsparse int8', 'deepsparse') if found(name)]
        return (NAMES[row['model']], f'{row["sparsity"]:.0%}', row['batch'],
                *(f'{found(name):.2f}' if found(name) else None for name in engines),
                times(best_dense_int8(row) / ours), times(min(theirs) / ours) if theirs else None)

    text = table('model', 'zeros', 'batch', 'Swizzle, INT8, ms', 'ONNX Runtime, INT8', 'OpenVINO, INT8',
                 'DeepSparse, INT8', 'DeepSparse, FP32', 'Swizzle, FP32', 'against the best dense INT8',
                 'against the faster DeepSparse', rows=map(line, figures['rows']))
    versions = ', '.join(f'{name} {version}' for name, version in figures['versions'].items())
    return text + note(f'{processor_of(figures)}: `build/peers/bin/python tests/bench/whole_models.py --int8=build/'
                       f'venv/bin/python --real-engines=deepsparse`; {versions}. Medians of runs in turn.')


def avx2_table():
    figures = kept('cpu_models_avx2.json')
    engines = ('swizzle', 'onnxruntime', 'openvino', 'swizzle int8', 'onnxruntime int8', 'openvino int8')

    def line(row):
        ms = row['ms']
        return (NAMES[row['model']], row['batch'], *(f'{ms[name]:.1f}' for name in engines),
                times(speed_plot.best_dense(row) / ms['swizzle']), times(best_dense_int8(row) / ms['swizzle int8']))

    text = table('model', 'batch', 'Swizzle, ms', 'ONNX Runtime', 'OpenVINO', 'Swizzle, INT8', 'ONNX Runtime, INT8',
                 'OpenVINO, INT8', 'gain', 'gain in INT8', rows=map(line, figures['rows']))
    versions = ', '.join(f'{name} {version}' for name, version in figures['versions'].items())
    return text + note(f'{processor_of(figures)} (AVX2 alone), 90 % zeros: `build/peers/bin/python tests/bench/'
                       f'whole_models.py --binaries=build/release/bin --int8=build/venv/bin/python --rounds=5`; '
                       f'{versions}. Medians of runs in turn.')


def any_graph_table():
    figures = kept('any_graph.json')
    text = table('model like', 'zeros', 'ONNX Runtime', 'Swizzle', 'gain', rows=[
        (row['model'], f'{row["sparsity"]:.0%}', f'{row["ms"]["onnxruntime"]:.1f} ms', f'{row["ms"]["swizzle"]:.1f} ms',
         times(row['ms']['onnxruntime'] / row['ms']['swizzle'])) for row in figures['rows']])
    return text + note(f'{processor_of(figures)}: `tests/bench/any_graph.py --sparsities=0.9,0`. Batch 1, medians of '
                       'runs in turn, kernels measured for fifteen seconds a model, as by a server. `swizzle-pack '
                       'inspect` shows what interpreted nodes take.')


def gpu_summary():
    rows = {(row['model'], row['precision'], row['batch']): row for row in kept('gpu_h200.json')['models']}
    vectors = {(row['model'], row['batch']): row for row in kept('cuda_shfl_bw_h200.json')['models']
               if row['vector_rows'] == 64 and row.get('images') != 'UINT8'}
    shown = [(model, batch) for model in NAMES for batch in (1, 8, 32)
             if (model, 'FP32', batch) in rows or (model, batch) in vectors]

    def gain(found):
        return times(found['speed_up']) if found else None

    def line(model, batch):
        row = rows.get((model, 'FP32', batch), {})
        return (NAMES[model], batch, *(us(row[name]) if name in row else None
                                       for name in ('torch_us', 'dense_us', 'sparse_us')),
                gain(row), gain(rows.get((model, 'FP16', batch))), gain(vectors.get((model, batch))))

    text = table('model', 'batch', 'PyTorch, dense', 'Swizzle, dense', 'Swizzle, 90 % zeros', 'gain', 'gain in FP16',
                 'FP16, zeros in vectors', rows=[line(*key) for key in shown])
    used = [rows[model, 'FP32', batch] for model, batch in shown if (model, 'FP32', batch) in rows]
    halves = [row for key in shown for row in (rows.get((key[0], 'FP16', key[1])), vectors.get(key)) if row]
    return text + note(f'{gpus(used)}, medians, copies included, {each("date", used)}; in FP16 {each("date", halves)}. '
                       'Vectors are of 64 rows.')


# kernels/cuda/PERFORMANCE.md.

def gpu_table():
    models = kept('gpu_h200.json')['models']

    def line(row):
        tokens = ', 128 tokens' if row['length'] > 1 else ''
        torch = us(row['torch_us']) if 'torch_us' in row else None
        return (row['model'] + tokens, row['precision'], row['batch'], us(row['sparse_us']), us(row['dense_us']),
                times(row['speed_up']), torch)

    rates = next(row['batches_per_second'] for row in models if 'batches_per_second' in row)
    torch_dates = ', '.join(sorted({row.get('torch_date', row['date']) for row in models if 'torch_us' in row}))
    text = table('model, 90 % zeros drawn', 'precision', 'batch', 'sparse', 'dense', 'gain', 'PyTorch, dense',
                 rows=map(line, models))
    return text + note(
        f'{provenance(models)}. Medians, copies from and to the host included. Dense is the same network with dense '
        f'kernels alone, run in turn. PyTorch runs it as a CUDA graph, in its better memory format ({torch_dates}). '
        'MobileNetV1 in FP32 '
        f'on 1, 2 and 4 streams: {rates["1"]:.0f}, {rates["2"]:.0f} and {rates["4"]:.0f} batches of one a second.')


def served_table():
    server = kept('gpu_h200.json')['server']

    def line(row):
        one = row['served']
        return (row['model'], f'{row["sparsity"]:.0%}', row['streams'], us(one['p50_us']), us(one['compute_p50_us']),
                us(row['echo']['p50_us']), us(row['busy_echo']['p50_us']), f'{one["requests_per_second"]:.0f}',
                f'{row["busy_percent"]:.0f} %')

    def transformer_line(row):
        one = row['served']
        return ('band and 5 % drawn' if row['attention'] == 'sparse' else 'all pairs', row['precision'],
                f'{row["tokens_per_second"]:.0f}', f'{row["memory_mib"]:.0f} MiB', f'{one["p50_us"] / 1000:.1f} ms',
                f'{one["compute_p50_us"] / 1000:.1f} ms')

    models = table('model, FP32', 'zeros', 'streams', 'one client, p50', 'of which compute', 'bare echo',
                   'echo as busy', '16 clients, requests/s', 'GPU busy',
                   rows=map(line, server['streams'] + server['models']))
    one, two = (row['served']['requests_per_second'] for row in server['gpus'])
    transformer = table('Transformer of 12,288 tokens, served from ONNX', 'precision', 'tokens/s', 'device memory',
                        'one client, p50', 'of which compute', rows=map(transformer_line, server['transformer']))
    measured = server['streams'] + server['models'] + server['gpus'] + server['transformer']
    text = note(
        f'{provenance(measured)}. Requests are of one image (602 KB) or 128 tokens; clients run on the same machine, '
        'each with a connection. The echo is a bare gRPC service that answers with as many bytes; as busy, it computes '
        f'as long as the model does first. ResNet-50 on two GPUs: {two:.0f} requests a second, {two / one:.2f} times '
        f'those of one. Tokens a second are of {server["transformer"][0]["clients"]} clients.')
    return f'{models}{text}\n\n{transformer}'


def attention_table():
    """The fused kernel over PyTorch's dense one, and the kernels in parts over cuSPARSE's."""
    figures = kept('cuda_attention_h200.json')
    by_blocks = ('by_blocks_over_dense', 'band_by_blocks_over_dense')
    rows = [(row['dtype'], row['head_dim'], f'{row["dense_us"]:.0f} µs ({row["dense_row"].rpartition("_")[2]})',
             times(row['fused_over_dense']), times(row['blocks_over_dense']), times(row['band_over_dense']),
             *(times(row[name]) if name in row else None for name in by_blocks),
             times(row['fused_over_cusparse']), times(row['parts_over_cusparse']), times(row['sddmm_over_cusparse']),
             times(row['spmm_over_cusparse']), f'{row["softmax_share_of_copy"]:.0%}') for row in figures['ratios']]
    text = table('type', 'channels a head', 'dense, PyTorch', 'fused, pattern of Sputnik\'s Transformer',
                 'blocks of 128, 4.5 % of all', 'a band', 'by blocks: these blocks', 'by blocks: a band',
                 'fused against cuSPARSE', 'in parts', 'of which SDDMM', 'SpMM', 'softmax, share of copy speed',
                 rows=rows)
    patterns = figures['patterns']
    return text + note(f'{figures["machine"]["gpu"]}, {figures["date"]}, by blocks {figures["by_blocks_date"]}, commit '
                       f'{figures["commit"]}: {figures["method"]}. Patterns: {patterns["seed"]}; {patterns["blocks"]}; '
                       f'{patterns["band"]}.')


def vectors_table():
    """Products of weights whose rows share columns over cuBLASLt."""
    figures = kept('cuda_shfl_bw_h200.json')
    rows = [(f'{row["m"]}x{row["k"]}', row['n'], f'{row["sparsity"]:.0%}', f'{row["dense_us"]:.1f} µs',
             f'{row["ours_us"]:.1f} µs', times(row['dense_us'] / row['ours_us']),
             times(row['dense_cold_us'] / row['ours_cold_us'])) for row in figures['cases']]
    text = table('weight', 'positions', 'zeros', 'cuBLASLt', 'vectors of 64 rows', 'gain', 'gain, cold', rows=rows)
    return text + note(f'{figures["machine"]}, {figures["date"]}, commit {figures["commit"]}, FP16, rows shuffled, '
                       'random values. Medians of replayed CUDA graphs of ten launches; cold: 128 MiB are written '
                       'before each. cuBLASLt is the fastest of up to 16 heuristics in either layout.')


def vector_models_table():
    """Plans of models with such weights over dense plans."""
    figures = kept('cuda_shfl_bw_h200.json')

    def line(row):
        alone = row.get('sparse_compute_us')
        rates = row.get('batches_per_second')
        return (row['model'], row.get('images'), row['batch'], row['vector_rows'], us(row['sparse_us']),
                us(row['dense_us']), times(row['speed_up']), us(alone) if alone else None,
                times(row['dense_compute_us'] / alone) if alone else None,
                f'{rates["1"]:.0f}, {rates["2"]:.0f}' if rates else None, row['commit'])

    text = table('model, FP16, 90 % zeros in vectors', 'images', 'batch', 'rows of a vector', 'sparse', 'dense', 'gain',
                 'sparse without copies', 'gain without copies', 'batches/s of one, two executors', 'commit',
                 rows=map(line, figures['models']))
    return text + note(f'{figures["machine"]}, {each("date", figures["models"])}: `plan_bench --precision=FP16 '
                       '--vector=64 --rounds=200` (2026-11-24: 60 or 100; 2026-11-27, too, with '
                       '`--tuning-budget=45`), images as UINT8 by `--byte-images`, sequences of 128 tokens; medians of '
                       'runs in turn, copies from and to the host included. Two executors copy while the other '
                       'computes.')


def early_launch_table():
    """Encoders before and after their kernels were launched while the one before ends."""
    figures = kept('cuda_shfl_bw_h200.json')
    early = figures['early_launch']

    def line(row):
        before, after = (statistics.mean(row[name]) for name in ('before_us', 'after_us'))
        return row['model'], row['batch'], us(before), us(after), times(before / after)

    text = table('model, FP16, 90 % zeros in vectors of 64', 'batch', 'launched in turn', 'while the one before ends',
                 'gain', rows=map(line, early['rows']))
    return text + note(f'{figures["machine"]}, {early["date"]}, commits {" and ".join(early["commits"])}: `plan_bench` '
                       'as above, the same kernels chosen, means of two medians in turn.')


def two_of_four_table():
    """Products of 2:4 sparse weights over cuBLASLt."""
    figures = kept('cuda_n_m_h200.json')
    rows = [(f'{row["m"]}x{row["k"]}', row['n'], f'{row["dense_us"]:.1f} µs', f'{row["ours_us"]:.1f} µs',
             times(row['dense_us'] / row['ours_us']), times(row['dense_cold_us'] / row['ours_cold_us']))
            for row in figures['cases']]
    text = table('weight', 'positions', 'cuBLASLt', '2:4', 'gain', 'gain, cold', rows=rows)
    return text + note(f'{figures["machine"]}, {figures["date"]}, `cuda_n_m_bench`: FP16, random values, as above.')


def whole_numbers_table():
    """Products of whole numbers over cuSPARSE and cuBLAS, by sparsity, and without parts of the kernel."""
    figures = kept_seed('magicube')
    products = [case for case in figures['cases'] if case['workload'] == 'SpMM']
    widths = ('16-16', '16-8', '16-4', '12-4', '8-4', '4-4')

    def line(sparsity):
        cases = [case for case in products if case['sparsity'] == sparsity]
        over = [case['cusparse_f16_us'] / case['ours_us'] for case in cases]
        wider = [case for case in cases if '4-4_us' in case]
        return (f'{sparsity:.0%}', len(cases), times(statistics.geometric_mean(over)), times(min(over)),
                times(statistics.geometric_mean(case['cublas_s8_us'] / case['ours_us'] for case in cases)),
                times(statistics.geometric_mean(case['cublas_f16_us'] / case['ours_us'] for case in cases)),
                *(times(statistics.geometric_mean(case['cublas_f16_us'] / case[f'{width}_us'] for case in wider))
                  for width in widths))

    text = table('zeros', 'products', 'cuSPARSE FP16', 'least', 'cuBLAS INT8', 'cuBLAS FP16',
                 *(f'{width}, cuBLAS FP16' for width in widths),
                 rows=map(line, sorted({case['sparsity'] for case in products})))
    text += note(f'{figures["machine"]}, {figures["date"]}, commit {figures["commit"]}, `seeds_magicube`: how many '
                 'times as long what the head names takes as ours, geometric means; 8-8 bits where no width is named. '
                 'Patterns of the DLMC, 90 % as they are and others drawn, each entry a vector of 8 rows; N is 128, '
                 '256 and 512, of other widths 256. cuSPARSE is its best CSR algorithm, cuBLAS the best of up to 16 '
                 'heuristics in INT8.')
    parts = ('full', 'one_ahead', 'no_prefetch', 'no_banks_apart', 'no_transpose', 'no_index_order')
    rows = [(row['widths'], f'{row["sparsity"]:.0%}',
             *(f'{row["operations"] / row[f"{part}_us"] / 1e6:.1f}' for part in parts))
            for row in figures['cases'] if row['workload'] == 'ablation']
    text += '\n\n' + table('bits', 'zeros', 'TOP/s, two copies ahead', 'one copy ahead', 'none',
                           'two, banks not kept apart', 'two, words put together from bytes',
                           'two, column numbers one by one', rows=rows)
    return text + note('The same run, by gathering: 256x2304, rows of one length, in vectors of 8, N 512.')


def byte_attention_table():
    """Sparse attention in whole numbers over dense attention in parts and fused."""
    figures = kept_seed('magicube_attention')
    fused = ('fused_us', 'cudnn_us', 'flash_us')
    rows = [(f'{row["sequences"]} x {row["tokens"]}', row['heads'], f'{row["sparsity"]:.0%}',
             f'{row["parts_us"]:.0f} µs', ', '.join(f'{row[by]:.0f}' for by in fused) + ' µs',
             f'{row["ours_us"]:.0f} µs', times(row['parts_us'] / row['ours_us']),
             times(min(row[by] for by in fused) / row['ours_us']), f'{row["error"]:.1%}')
            for row in figures['cases'] if row['workload'] == 'attention']
    text = table('tokens', 'heads', 'zeros', 'dense FP16, in parts', 'fused: ours, cuDNN, FlashAttention 2',
                 'ours, 8-8', 'over parts', 'over the fastest fused', 'error', rows=rows)
    return text + note(f'{figures["machine"]}, {figures["date"]}, commit {figures["commit"]}, `seeds_magicube`: '
                       'vectors of 8 queries, heads of 64. In parts: cuBLAS, softmax, cuBLAS. Errors of the '
                       'largest output.')


def gpu_tests_table():
    """What was seen of the tests of the CUDA backend, and of them under compute-sanitizer."""
    tests = kept('gpu_h200.json')['tests']

    def seen(name):
        row = tests.get(name)
        return (re.sub('[A-Z]+ SUMMARY: ', '', row['summary']) + ('' if row['passed'] else ' (not passed)')
                if row else '')

    programs = [name for name in tests if name.endswith('_test') and ' ' not in name]
    text = table('program', 'tests', 'memcheck', 'racecheck', 'on', rows=[
        (f'`{name}`', seen(name).removesuffix(' tests passed'), seen(f'memcheck {name}'), seen(f'racecheck {name}'),
         f'{tests[name]["machine"]["gpus"][0].split(",")[0]}, {tests[name]["date"]}, {tests[name]["commit"]}')
        for name in programs])
    return text + note('`tests/gpu/run --only=tests,sanitizer`.')


def mixed_blocks_table():
    """Products of weights in blocks and beside them over cuSPARSE and cuBLASLt."""
    figures = kept_seed('hb_ell')
    rows = [(f'{row["size"]}x{row["size"]}', row['n'], f'{row["density"]:.0%}', f'{row["csr_us"]:.1f} µs',
             f'{row["blocked_ell_us"]:.1f} µs', f'{row["dense_us"]:.1f} µs', f'{row["ours_us"]:.1f} µs',
             times(min(row['csr_us'], row['blocked_ell_us']) / row['ours_us']), times(row['dense_us'] / row['ours_us']),
             f'{row["parts_us"]:.1f} µs') for row in figures['cases']]
    text = table('weight', 'positions', 'nonzeros', 'cuSPARSE CSR', 'cuSPARSE blocked-ELL', 'cuBLASLt', 'ours',
                 'against the better of cuSPARSE', 'against cuBLASLt', 'blocks, then strays by CSR', rows=rows)
    return text + note(f'{figures["machine"]}, {figures["date"]}, commit {figures["commit"]}, `seeds_hb_ell`: FP16, '
                       'half of the nonzeros in full blocks of 16x16, half scattered.')


def window_table():
    """Convolutions of weights whose rows share columns over cuDNN."""
    figures = kept('cuda_conv_h200.json')
    rows = [(row['layer'], f'{row["sparsity"]:.0%}',
             *(f'{row[way + "_us"]:.1f} µs' for way in ('cudnn', 'unfolded', 'ours', 'batched')),
             times(row['cudnn_us'] / row['batched_us'])) for row in figures['cases']]
    text = table('layer', 'zeros', 'dense, cuDNN', 'unfolded whole', 'along its width', 'batch innermost', 'gain',
                 rows=rows)
    return text + note(
        f'{figures["machine"]}, {figures["date"]}, `cuda_conv_bench --dtypes=FP16 --batches=32 --vector=64 '
        '--sparsity=0.75 --window=3`, and 0.9: warm, bias and ReLU included. With the batch innermost by a program of '
        'the kernel alone.')


def one_shot_table():
    """Accuracy of networks that were pruned without training."""
    figures = kept('one_shot_fashion.json')
    rows = [(row['model'], f'{row["sparsity"]:.0%}', row['method'], f'{row["top1"]:.1%}',
             f'{row["top1_calibrated"]:.1%}')
            for row in figures['rows']]
    dense = ', '.join(f'{model} {top1:.1%}' for model, top1 in figures['dense'].items())
    text = table('model', 'zeros', 'pruned by', 'top-1', 'calibrated', rows=rows)
    return text + note(f'{figures["date"]}, `tests/bench/one_shot_pruning.py`: Fashion-MNIST, calibrated with '
                       f'{figures["images"]} images of those for training, the first {figures["tests"]:,} of those for '
                       f'tests; stem and classifier dense. Dense: {dense}.')


# kernels/cpu/PERFORMANCE.md.

def cpu_figures():
    """With rows in order: most zeros first."""
    figures = kept('cpu_models.json')
    models = list(NAMES)
    figures['rows'].sort(key=lambda row: (-row['sparsity'], models.index(row['model']), row['batch']))
    return figures


def cpu_table():
    figures = cpu_figures()
    engines = ('onnxruntime', 'openvino', 'deepsparse')

    def line(row):
        ms = row['ms']
        return (NAMES[row['model']], f'{row["sparsity"]:.0%}', row['batch'], f'{ms["swizzle"]:.1f}',
                f'{row["round_trip_ms"]:.1f}', *(f'{ms[name]:.1f}' if name in ms else '-' for name in engines),
                times(speed_plot.best_dense(row) / ms['swizzle']),
                times(ms['deepsparse'] / ms['swizzle']) if 'deepsparse' in ms else '-')

    text = table('model', 'zeros', 'batch', 'Swizzle, ms', 'through gRPC', 'ONNX Runtime', 'OpenVINO', 'DeepSparse',
                 'against the best dense', 'against DeepSparse', rows=map(line, figures['rows']))
    machine, rows = figures['machine'], figures['rows']
    versions = ', '.join(f'{name} {version}' for name, version in figures['versions'].items())
    return text + note(
        f'Images of 224x224, sequences of 128 tokens, FP32, {figures["threads"]} threads of an {machine["processor"]} '
        f'({", ".join(machine["extensions"])}), {each("date", rows)}, commit {each("commit", rows)}. Medians of runs '
        'in turn on the same file with zeros drawn: Swizzle\'s `swizzle_compute_us`, and the round trip; '
        f'{versions} in their own processes. The machine is shared: numbers of one line compare, those of two lines '
        'need not.') + ('\n\n![speed of whole models, as multiples of the best dense engine]'
                  '(../../tests/bench/results/cpu_models.svg)')


def plots():
    """{file: what it should hold}"""
    rows = [row for row in cpu_figures()['rows'] if row['sparsity'] == 0.9]
    title, threads = 'Speed against the best dense engine', 'FP32, 90 % of the weights are zero, 2 threads'
    return {RESULTS / 'cpu_models.svg': speed_plot.svg(rows, f'{title}; {threads}'),
            RESULTS / 'speed.svg': speed_plot.svg([row for row in rows if row['batch'] == 1],
                                                  f'{title}, one input at a time', threads)}


PAGES = {
    'README.md': {'cpu summary': cpu_summary, 'gpu summary': gpu_summary},
    'model_loader/pack/README.md': {'one shot': one_shot_table},
    'deploy/models/PATTERNS.md': {'patterns': patterns_table, 'pattern gaps': gaps_table,
                                  'longer trainings': longer_table},
    'deploy/models/DISTIL.md': {'retrieval': retrieval_table},
    'deploy/README.md': {'scale out': scale_out_table},
    'kernels/cpu/PERFORMANCE.md': {'cpu figures': cpu_table, 'int8 figures': int8_table, 'avx2 figures': avx2_table,
                                   'any graph': any_graph_table, 'quantized': any_graph_int8_table},
    'kernels/cuda/PERFORMANCE.md': {'gpu tests': gpu_tests_table, 'gpu figures': gpu_table,
                                    'served figures': served_table, 'any graph on a gpu': any_graph_gpu_table,
                                    'any graph on a gpu in batches': any_graph_gpu_batch_table,
                                    'exported vision models': exported_vision_table,
                                    'attention figures': attention_table, 'vector figures': vectors_table,
                                    'vector models': vector_models_table, 'early launch': early_launch_table,
                                    'two of four figures': two_of_four_table,
                                    'whole numbers': whole_numbers_table,
                                    'byte attention': byte_attention_table,
                                    'mixed blocks': mixed_blocks_table,
                                    'window figures': window_table},
}


def with_tables(page, text):
    """The text of a page with its tables as they should be."""
    kept_makers = kept_tables.makers(page) if page in kept_tables.FILES else {}
    for name, make in (PAGES[page] | kept_makers).items():
        begin, end = f'<!-- {name}: tests/bench/readme_tables.py -->', f'<!-- end of {name} -->'
        pattern = re.compile(re.escape(begin) + '.*?' + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            sys.exit(f'{page} has no {begin}')
        text = pattern.sub(lambda _: f'{begin}\n{make()}\n{end}', text)
    return text


if __name__ == '__main__':
    for page in PAGES:
        text = (ROOT / page).read_text()
        if '--keep' in sys.argv and page in kept_tables.FILES:
            text = kept_tables.keep(page, text)
        (ROOT / page).write_text(with_tables(page, text))
    for file, content in plots().items():
        file.write_text(content)
