"""The README's tables of figures and its plot, made from what tests/gpu/run and tests/bench/whole_models.py kept:
`python tests/bench/readme_tables.py` writes them."""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import speed_plot  # noqa: E402

README, PLOT = ROOT / 'README.md', ROOT / 'tests/bench/results/cpu_models.svg'


def provenance(figures):
    """On what, when and from which commits these were measured."""
    machines = sorted({f'{len(row["machine"]["gpus"])} x {row["machine"]["gpus"][0].split(",")[0]}' for row in figures})
    dates, commits = (sorted({row[name] for row in figures}) for name in ('date', 'commit'))
    return f'{" and ".join(machines)}, {", ".join(dates)}, commit {", ".join(commits)}'


def gpu_table():
    figures = json.loads((ROOT / 'tests/bench/results/gpu_h200.json').read_text())
    lines = ['| model, 90 % zeros drawn | precision | batch | sparse | dense | gain | PyTorch, dense |', '|---|---|---|---|---|---|---|']
    for row in figures['models']:
        tokens = ', 128 tokens' if row['length'] > 1 else ''
        torch = f'{row["torch_us"]:.0f} µs' if 'torch_us' in row else ''
        lines.append(f'| {row["model"]}{tokens} | {row["precision"]} | {row["batch"]} | {row["sparse_us"]:.0f} µs | '
                     f'{row["dense_us"]:.0f} µs | {row["speed_up"]:.2f}x | {torch} |')
    rates = next(row['batches_per_second'] for row in figures['models'] if 'batches_per_second' in row)
    lines += ['', f'{provenance(figures["models"])}; medians, copies from and '
              'to the host included; dense is the same network with dense kernels alone, run in turn; PyTorch runs it as a CUDA graph, in its better memory format. MobileNetV1 in FP32 on 1, 2 and 4 '
              f'streams: {rates["1"]:.0f}, {rates["2"]:.0f} and {rates["4"]:.0f} batches of one a second.']
    return '\n'.join(lines)


def served_table():
    server = json.loads((ROOT / 'tests/bench/results/gpu_h200.json').read_text())['server']
    lines = ['| model, FP32 | zeros | streams | one client, p50 | of which compute | bare echo | echo as busy | 16 clients, requests/s | GPU busy |',
             '|---|---|---|---|---|---|---|---|---|']
    for row in server['streams'] + server['models']:
        one = row['served']
        lines.append(f'| {row["model"]} | {row["sparsity"]:.0%} | {row["streams"]} | {one["p50_us"]:.0f} µs | {one["compute_p50_us"]:.0f} µs | '
                     f'{row["echo"]["p50_us"]:.0f} µs | {row["busy_echo"]["p50_us"]:.0f} µs | '
                     f'{one["requests_per_second"]:.0f} | {row["busy_percent"]:.0f} % |')
    one, two = (row['served']['requests_per_second'] for row in server['gpus'])
    lines += ['', f'{provenance(server["streams"] + server["models"] + server["gpus"] + server["transformer"])}; requests of one image (602 KB) or 128 tokens, clients on the same machine, '
              'each with a connection. The echo is a bare gRPC service that answers with as many bytes; as busy, it computes as long as the '
              f'model does first. ResNet-50 on two GPUs: {two:.0f} requests a second, {two / one:.2f} times those of one. Tokens a second are of '
              f'{server["transformer"][0]["clients"]} clients.', '',
              '| Transformer of 12,288 tokens, served from ONNX | precision | tokens/s | device memory | one client, p50 | of which compute |',
              '|---|---|---|---|---|---|']
    for row in server['transformer']:
        one, attention = row['served'], 'band and 5 % drawn' if row['attention'] == 'sparse' else 'all pairs'
        lines.append(f'| {attention} | {row["precision"]} | {row["tokens_per_second"]:.0f} | {row["memory_mib"]:.0f} MiB | '
                     f'{one["p50_us"] / 1000:.1f} ms | {one["compute_p50_us"] / 1000:.1f} ms |')
    return '\n'.join(lines)


def cpu_figures():
    """With rows in order: most zeros first."""
    figures = json.loads((ROOT / 'tests/bench/results/cpu_models.json').read_text())
    models = list(speed_plot.NAMES)
    figures['rows'].sort(key=lambda row: (-row['sparsity'], models.index(row['model']), row['batch']))
    return figures


def cpu_table():
    figures = cpu_figures()
    lines = ['| model | zeros | batch | Swizzle, ms | through gRPC | ONNX Runtime | OpenVINO | DeepSparse | against the best dense | against DeepSparse |',
             '|---|---|---|---|---|---|---|---|---|---|']
    for row in figures['rows']:
        ms = row['ms']
        times = ' | '.join(f'{ms[name]:.1f}' if name in ms else '-' for name in ('onnxruntime', 'openvino', 'deepsparse'))
        sparse = f'{ms["deepsparse"] / ms["swizzle"]:.2f}x' if 'deepsparse' in ms else '-'
        lines.append(f'| {speed_plot.NAMES[row["model"]]} | {row["sparsity"]:.0%} | {row["batch"]} | {ms["swizzle"]:.1f} | {row["round_trip_ms"]:.1f} | '
                     f'{times} | {speed_plot.best_dense(row) / ms["swizzle"]:.2f}x | {sparse} |')
    machine, versions = figures['machine'], figures['versions']
    dates, commits = (sorted({row[name] for row in figures['rows']}) for name in ('date', 'commit'))
    lines += ['', f'Images of 224x224, sequences of 128 tokens, FP32, {figures["threads"]} threads of an {machine["processor"]} '
              f'({", ".join(machine["extensions"])}), {", ".join(dates)}, commit {", ".join(commits)}; medians of runs in turn on the same '
              'file with zeros drawn: Swizzle\'s `swizzle_compute_us`, and the round trip; ' +
              ', '.join(f'{name} {version}' for name, version in versions.items()) + ' in their own processes. '
              'The machine is shared: numbers of one line compare, those of two lines need not.', '',
              '![speed of whole models, as multiples of the best dense engine](tests/bench/results/cpu_models.svg)']
    return '\n'.join(lines)


def cpu_plot():
    rows = [row for row in cpu_figures()['rows'] if row['sparsity'] == 0.9]
    return speed_plot.svg(rows, 'Speed against the best dense engine, FP32, 90 % zeros, 2 threads')


TABLES = {'gpu figures': gpu_table, 'served figures': served_table, 'cpu figures': cpu_table}


def with_table(text):
    """The text of the README with its tables as they should be."""
    for name, table in TABLES.items():
        begin, end = f'<!-- {name}: tests/bench/readme_tables.py -->', f'<!-- end of {name} -->'
        pattern = re.compile(re.escape(begin) + '.*?' + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            sys.exit(f'README.md has no {begin}')
        text = pattern.sub(lambda _: f'{begin}\n{table()}\n{end}', text)
    return text


if __name__ == '__main__':
    README.write_text(with_table(README.read_text()))
    PLOT.write_text(cpu_plot())
