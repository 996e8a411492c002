"""The benchmarks of kernels and of whole models: which runs are made, and how they are printed."""

import json
import pathlib
import subprocess

TORCH_MODELS = pathlib.Path(__file__).resolve().parents[1] / 'bench' / 'torch_models.py'

MODELS = (
    # model, precision, batch sizes, sequence length
    ('mobilenet_v1', 'FP32', (1, 8, 64), 0),  # also with several streams
    ('mobilenet_v1:1.3', 'FP32', (1,), 0),
    ('mobilenet_v1:1.4', 'FP32', (1,), 0),
    ('mobilenet_v1:1.8', 'FP32', (1,), 0),
    ('resnet50', 'FP32', (1, 8), 0),
    ('minilm', 'FP32', (1, 8), 128),
    ('bert-base', 'FP32', (1, 8), 128),
    ('mobilenet_v1', 'TF32', (1, 8, 64), 0),
    ('resnet50', 'TF32', (1, 8), 0),
    ('minilm', 'TF32', (1, 8), 128),
    ('bert-base', 'TF32', (1, 8), 128),
    ('mobilenet_v1', 'FP16', (1, 8, 64), 0),
    ('resnet50', 'FP16', (1, 8), 0),
    ('minilm', 'FP16', (1, 8), 128),
    ('bert-base', 'FP16', (1, 8), 128),
    ('minilm', 'BF16', (1, 8), 128),
    ('bert-base', 'BF16', (1, 8), 128),
)

# Runs of cuda_spmm_bench: the collection's patterns, and from which sparsity on halves are faster than cuBLAS.
SPMM_RUNS = (('dlmc',), ('crossover_f16', '--crossover', '--dtype=f16'))


def key(figure):
    return [figure[name] for name in ('model', 'precision', 'batch', 'length')]


def models(programs, arguments, figures):
    """Each replaces what was known of the same model, precision and batch."""
    programs.need('plan_bench')
    print(f'{"model, 90 % zeros":<20}{"type":<6}{"batch":>6}{"sparse us":>11}{"dense us":>11}{"gain":>7}  kernels', flush=True)
    failed = []
    for model, precision, batches, length in MODELS:
        for batch in batches:
            try:
                result = programs.json('plan_bench', f'--model={model}', '--device=cuda', f'--batch={batch}',
                                       f'--precision={precision}', f'--length={length or 1}',
                                       f'--tuning-budget={arguments.budget}',
                                       f'--streams={4 if model == "mobilenet_v1" and batch == 1 else 1}')
            except RuntimeError as error:
                print(f'{model:<20}{precision:<6}{batch:>6}  {error}', flush=True)
                failed.append(model)
                continue
            figures[:] = [figure for figure in figures if key(figure) != key(result)] + [result | arguments.stamp]
            kernels = ', '.join(f'{count} {name}' for name, count in
                                sorted(result['kernels'].items(), key=lambda item: -item[1])[:4])
            print(f'{model:<20}{precision:<6}{batch:>6}{result["sparse_us"]:>11.1f}{result["dense_us"]:>11.1f}'
                  f'{result["speed_up"]:>6.2f}x  {kernels}', flush=True)
            if 'batches_per_second' in result:
                print('  batches a second by streams:', result['batches_per_second'], flush=True)
    return not failed


def torch_models(arguments, figures):
    """PyTorch's times, put beside those of the same model, precision and batch where there are some."""
    done = subprocess.run([arguments.python, str(TORCH_MODELS)], capture_output=True, text=True, timeout=400, check=False)
    for line in done.stdout.splitlines():
        result = json.loads(line)
        key = [result[name] for name in ('model', 'precision', 'batch')]
        ours = next((row for row in figures if [row[name] for name in ('model', 'precision', 'batch')] == key), None)
        beside = ''
        if ours is not None:
            ours['torch_us'] = result['torch_us']
            beside = f', ours dense {ours["dense_us"]:.1f}: {result["torch_us"] / ours["dense_us"]:.2f}x as fast'
        print(f'PyTorch {" ".join(map(str, key))}: {result["torch_us"]:.1f} us {result["torch"]}{beside}', flush=True)
    if done.returncode != 0:
        raise RuntimeError('torch_models.py: ' + done.stderr.strip()[-1000:])


def text_of(programs, name, *arguments):
    done = programs.run(name, *arguments)
    if done.returncode != 0:
        raise RuntimeError(f'{name}: {(done.stderr or done.stdout).strip()[-2000:]}')
    return done.stdout


def kernels(programs, arguments, scratch, figures):
    """Attention writes JSON lines to standard output, the sparse products one JSON file."""
    programs.need('cuda_attention_bench', 'cuda_spmm_bench')
    measured = figures['kernels'] = dict(arguments.stamp)
    lines = text_of(programs, 'cuda_attention_bench', '-o', 'json').splitlines()
    measured['attention'] = [json.loads(line) for line in lines if line.startswith('{')]
    print(f'cuda_attention_bench: {len(measured["attention"])} figures', flush=True)
    for name, *flags in SPMM_RUNS:
        if name == 'dlmc' and not arguments.dlmc:
            print('cuda_spmm_bench: no --dlmc, so only drawn patterns', flush=True)
            continue
        flags = [f'--dlmc={arguments.dlmc}'] if name == 'dlmc' else flags
        results = scratch / 'spmm.json'
        print(text_of(programs, 'cuda_spmm_bench', *flags, f'--output={results}'), flush=True)
        measured[f'spmm_{name}'] = json.loads(results.read_text())
