"""Tables of models that no plan takes whole, of what any_graph_gpu.py kept."""

import statistics

from table_text import each, kept, note, processor_of, table, times

PEERS = ('onnxruntime', 'openvino')


def any_graph_int8_table():
    """Networks that swizzle-pack quantizes, beside the engines that run the file."""
    figures = kept('any_graph_int8.json')
    text = table('model like', 'zeros', 'ONNX Runtime, INT8', 'OpenVINO, INT8', 'Swizzle, INT8', 'against the better',
                 rows=[(row['model'], f'{row["sparsity"]:.0%}', *(f'{row["ms"][engine]:.2f} ms' for engine in PEERS),
                        f'{row["ms"]["swizzle"]:.2f} ms',
                        times(min(row['ms'][engine] for engine in PEERS) / row['ms']['swizzle']))
                       for row in figures['rows']])
    return text + note(
        f'{processor_of(figures)}: `tests/bench/any_graph.py --int8 --engines=onnxruntime,openvino`. Batch 1, medians of '
        'runs in turn, all on the file that `swizzle-pack quantize` wrote.')


def any_graph_gpu_table():
    """Of each model and precision what PyTorch takes, where it was timed, and we with many zeros."""
    rows = [row for row in kept('any_graph_h200.json')['rows'] if row['sparsity'] == 0.9 and row['batch'] == 1]
    found = {(row['model'], row['precision']): row for row in rows}

    timed = any(row['torch_ms'] for row in rows)

    def cells(row):
        peer = row['torch_ms']
        if not timed:
            return (f'{row["ms"]:.2f} ms',)
        gain = (f'{peer:.2f} ms', times(peer / row['ms'])) if peer else (None, None)
        return f'{row["ms"]:.2f} ms', *gain

    def line(model):
        single, half = found[model, 'FP32'], found[model, 'FP16']
        return (model, *cells(single), *cells(half), half['regions'] or 'whole', half['device_nodes'],
                half['host_nodes'])

    def mean(precision):
        ratios = [row['torch_ms'] / row['ms'] for row in rows if row['precision'] == precision and row['torch_ms']]
        return f'{precision} {times(statistics.geometric_mean(ratios))} of {len(ratios)} models' if ratios else None

    peer = ('PyTorch', 'gain') if timed else ()
    text = table('model like', 'FP32', *peer, 'FP16', *peer, 'regions', 'nodes between', 'on the host',
                 rows=[line(model) for model in dict.fromkeys(row['model'] for row in rows)])
    means = ', '.join(filter(None, map(mean, ('FP32', 'FP16'))))
    return text + note(
        f'One {each("device", rows)}, {each("date", rows)}, `tests/bench/any_graph_gpu.py --tuning-budget=1`: batch 1, '
        '90 % zeros, medians of runs with copies of inputs and outputs. ' +
        ('PyTorch runs the same file dense, as one CUDA graph, with attention and GELUs fused. Geometric means against '
         f'it: {means}.' if timed else 'PyTorch was not timed beside them.'))


def any_graph_gpu_batch_table():
    """Dense models at batch 16 beside PyTorch, and where their inputs lie."""
    rows = [row for row in kept('any_graph_h200.json')['rows'] if row['sparsity'] == 0 and row['batch'] == 16]
    mean = statistics.geometric_mean(row['torch_ms'] / row['ms'] for row in rows)
    text = table('model like', 'inputs staged', 'inputs in pinned memory', 'PyTorch', 'against PyTorch',
                 rows=[(row['model'], f'{row["staged_ms"]:.2f} ms', f'{row["ms"]:.2f} ms', f'{row["torch_ms"]:.2f} ms',
                        times(row['torch_ms'] / row['ms'])) for row in rows])
    return text + note(
        f'One {each("device", rows)}, {each("date", rows)}, `tests/bench/any_graph_gpu.py --precisions=FP16 --batch=16 '
        '--sparsities=0 --staged`: no zeros, medians of runs with copies of inputs and outputs. PyTorch runs the same '
        'file as one CUDA graph, with attention and GELUs fused, from pinned memory. Geometric mean against it: '
        f'{times(mean)}.')


def exported_vision_table():
    """Vision models of libraries, as PyTorch exports them, beside the best of eager and torch.compile."""
    rows = [row for row in kept('exported_vision_h200.json')['rows'] if 'ms' in row]

    def best(row):
        name = min(row['torch'], key=row['torch'].get)
        return f'{row["torch_ms"]:.2f} ms, {"compiled" if name.startswith("compiled") else "eager"}'

    def mean(batch):
        return times(statistics.geometric_mean(r['torch_ms'] / r['ms'] for r in rows if r['batch'] == batch))

    text = table('model', 'batch', 'Swizzle', 'PyTorch, the best', 'eager', 'against the best', 'regions',
                 rows=[(row['model'], row['batch'], f'{row["ms"]:.2f} ms', best(row),
                        f'{min(ms for name, ms in row["torch"].items() if "compiled" not in name) / 1000:.2f} ms',
                        times(row['torch_ms'] / row['ms']), row['regions'] or 'whole') for row in rows])
    means = ', '.join(f'{mean(batch)} at batch {batch}' for batch in sorted({row['batch'] for row in rows}))
    return text + note(
        f'One {each("device", rows)}, {each("date", rows)}, commit {each("commit", rows)}, '
        '`tests/bench/exported_vision.py --batches=1,32 --tuning-budget=8 --check`: FP16, drawn weights without zeros, '
        'kernels as a release compiles them, medians of runs with copies of inputs and outputs, PyTorch\'s in CUDA '
        f'graphs. Nothing runs on the host, outputs within {max(row["difference"] for row in rows):.4f} of the '
        'host\'s largest, but for vit_b_16, whose head torchvision draws as zeros: the bench draws it since. Geometric '
        f'means: {means}.')
