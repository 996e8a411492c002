#!/usr/bin/env python3
"""Models that run in regions, on a GPU beside the CPU: whether both say the same, and what was left to the host.

    tests/gpu/regions.py --tool=build/cuda/bin/swizzle-pack [--device=cuda] [--models=vit,swin]

Models are the small ones of tests/integration/make_architectures.py, without zeros and with 90 %. Python needs onnx and
numpy. Ends with 1 if outputs differ, or a model does not run on the device.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))
import make_architectures  # noqa: E402
import text_architectures  # noqa: E402, F401: it adds to those of make_architectures
import vision_architectures  # noqa: E402, F401: likewise

TOLERANCE = 5e-4  # largest difference over largest magnitude: sums are in other orders
FREE = {'batch': 3, 'sequence': 20, 'height': 64, 'width': 96}
SPELLINGS = {'': {}, ' 90 %': {'written': True, 'sparsity': 0.9}}


def draw_inputs(model, folder):
    random = numpy.random.default_rng(1)
    flags = []
    for value in model.graph.input:
        shape = [d.dim_value or FREE[d.dim_param] for d in value.type.tensor_type.shape.dim]
        if value.name == 'attention_mask':
            array = (numpy.arange(shape[1]) < numpy.resize([20, 13, 1], shape[0])[:, None]).astype('int64')
        elif value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            array = random.integers(0, make_architectures.VOCABULARY, shape)
        else:
            array = random.normal(0, 1, shape).astype(numpy.float32)
        numpy.save(folder / f'{value.name}.npy', array)
        flags.append(f'--input={value.name}={folder / value.name}.npy')
    return flags


def outputs_on(tool, device, file, flags, folder):
    """What it computes there, and what it says of that."""
    done = subprocess.run([tool, 'run', str(file), *flags, f'--device={device}', f'--output-dir={folder}'],
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return {output.name: numpy.load(output) for output in sorted(folder.glob('*.npy'))}, done.stderr


def compare(tool, device, name, spelling):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        model = make_architectures.build(name, make_architectures.SMALL[name], **SPELLINGS[spelling])
        onnx.save(model, folder / 'model.onnx')
        flags = draw_inputs(model, folder)
        expected, _ = outputs_on(tool, 'cpu', folder / 'model.onnx', flags, folder / 'cpu')
        actual, said = outputs_on(tool, device, folder / 'model.onnx', flags, folder / 'device')
    difference = max(numpy.abs(actual[output] - array).max() / numpy.abs(array).max()
                     for output, array in expected.items())
    counts = re.search(r'(\d+) interpreted nodes, which the interpreter runs one by one: ([^;\n]*)(; all[^\n]*)?', said)
    where = 'planned whole' if not counts else f'{counts[1]} on the host {counts[2]}{counts[3] or ""}'
    good = difference <= TOLERANCE and 'on the CPU' not in where
    print(f'{"ok    " if good else "FAILED"} {name}{spelling}: {difference:.1e}, {where}', flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--tool', required=True)
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--models', type=lambda text: text.split(','), default=list(make_architectures.ARCHITECTURES))
    arguments = parser.parse_args()
    good = True
    for name in arguments.models:
        for spelling in SPELLINGS:
            try:
                good &= compare(arguments.tool, arguments.device, name, spelling)
            except RuntimeError as error:
                print(f'FAILED {name}{spelling}: {error}', flush=True)
                good = False
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
