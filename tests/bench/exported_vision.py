#!/usr/bin/env python3
"""Vision models of torchvision and transformers on a GPU, as PyTorch exports them, beside PyTorch itself.

Weights are drawn, sizes those of the published models. PyTorch's time is the best of eager and torch.compile, each run
a CUDA graph that copies its inputs from pinned memory and its outputs back (torch_models.py); ours is plan_bench's on
the exported file, in the same run. One thing at a time uses the device.

    python3 tests/bench/exported_vision.py --bench=build/cuda/bin/plan_bench [--models=vit_b_16,swin_t]
        --commit=HASH [--precision=FP16] [--batches=1,16,32] [--tuning-budget=6] [--no-compile] [--check]
        [--output=FILE]

Python has torch, torchvision, transformers and onnx. --output keeps rows as JSON.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import tempfile

import torch
import torchvision
import transformers
from torch import nn
from torch_models import PRECISIONS, graph_of, median_us

BASE = {'image_size': 224, 'patch_size': 16, 'hidden_size': 768, 'num_hidden_layers': 12, 'num_attention_heads': 12,
        'intermediate_size': 3072}


class Chosen(nn.Module):
    """One output of a model of transformers."""

    def __init__(self, model, output):
        super().__init__()
        self.model, self.output = model, output

    def forward(self, pixel_values):
        return getattr(self.model(pixel_values=pixel_values, return_dict=True), self.output)


def dinov2():
    config = transformers.Dinov2WithRegistersConfig(**(BASE | {'patch_size': 14}), num_register_tokens=4)
    return Chosen(transformers.Dinov2WithRegistersModel(config), 'pooler_output')


def deit():
    return Chosen(transformers.DeiTForImageClassificationWithTeacher(transformers.DeiTConfig(**BASE)), 'logits')


def clip():
    config = transformers.CLIPVisionConfig(**BASE, projection_dim=512)
    return Chosen(transformers.CLIPVisionModelWithProjection(config), 'image_embeds')


def siglip():
    return Chosen(transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**BASE)), 'pooler_output')


def vit():
    model = torchvision.models.vit_b_16()
    nn.init.normal_(model.heads.head.weight, std=0.02)  # torchvision's zeros would make every check pass
    return model


MODELS = {'vit_b_16': vit, 'swin_t': torchvision.models.swin_t,
          'swin_v2_t': torchvision.models.swin_v2_t, 'convnext_tiny': torchvision.models.convnext_tiny,
          'regnet_y_800mf': torchvision.models.regnet_y_800mf, 'resnet50': torchvision.models.resnet50,
          'dinov2_base_registers': dinov2, 'deit_base': deit, 'clip_vit_b_16': clip, 'siglip_base': siglip}
SIZES = {'swin_v2_t': 256}
CONVOLUTIONAL = ('convnext_tiny', 'regnet_y_800mf', 'resnet50')  # of which both memory formats are timed


def export(name, model, file):
    """By the exporter of TorchScript, or, where that lacks an operator, by torch.export's."""
    x = torch.randn(2, 3, *[SIZES.get(name, 224)] * 2)
    named = {'input_names': ['x'], 'output_names': ['y']}
    torch.backends.mha.set_fastpath_enabled(False)  # which exporters do not know
    try:
        torch.onnx.export(model, (x,), file, dynamic_axes={'x': {0: 'batch'}}, opset_version=17, dynamo=False, **named)
    except torch.onnx.errors.UnsupportedOperatorError:
        free = ({0: torch.export.Dim('batch', min=2, max=4096)},)
        torch.onnx.export(model, (x,), file, dynamic_shapes=free, opset_version=20, dynamo=True, external_data=False,
                          **named)
    torch.backends.mha.set_fastpath_enabled(True)


def torch_times(name, model, arguments, batch):
    size = SIZES.get(name, 224)
    x, dtype, times = torch.randn(batch, 3, size, size), PRECISIONS[arguments.precision], {}
    formats = {'nchw': torch.contiguous_format}
    formats |= {'nhwc': torch.channels_last} if name in CONVOLUTIONAL else {}
    for label, memory_format in formats.items():
        model = model.to(memory_format=memory_format)
        times[label] = median_us(graph_of(model, x, dtype, memory_format)[0])
        if arguments.compile:
            times[f'compiled {label}'] = median_us(graph_of(torch.compile(model), x, dtype, memory_format)[0])
    return times


def ours(arguments, file, batches):
    """Milliseconds by batch, and what the bench said last where it failed."""
    rows = {}
    for batch in batches:
        done = subprocess.run(
            [arguments.bench, f'--model={file}', '--alone', '-o', 'json', f'--precision={arguments.precision}',
             f'--batch={batch}', '--threads=4', f'--tuning-budget={arguments.tuning_budget}', '--rounds=101',
             f'--tuning-cache={file}.times', *(['--check'] if arguments.check else [])],
            capture_output=True, text=True, timeout=300, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        rows[batch] = lines[-1] if done.returncode == 0 and lines else {'error': done.stderr.strip()[-300:]}
    return rows


def measure(name, arguments, folder):
    torch.manual_seed(1)
    model = MODELS[name]().eval()
    file = folder / f'{name}.onnx'
    export(name, model, file)
    rows = ours(arguments, file, arguments.batches)
    model = model.cuda().to(PRECISIONS[arguments.precision])
    for batch in arguments.batches:
        row = {'precision': arguments.precision, 'batch': batch} | rows[batch] | {'model': name}
        row['torch'] = torch_times(name, model, arguments, batch)
        row['torch_ms'] = min(row['torch'].values()) / 1000
        torch._dynamo.reset()
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bench', required=True)
    parser.add_argument('--models', type=lambda text: text.split(','), default=list(MODELS))
    parser.add_argument('--precision', default='FP16')
    parser.add_argument('--batches', type=lambda text: [int(batch) for batch in text.split(',')], default=[1, 16, 32])
    parser.add_argument('--tuning-budget', type=float, default=6)
    parser.add_argument('--no-compile', dest='compile', action='store_false')
    parser.add_argument('--check', action='store_true', help="compare outputs with the host's")
    parser.add_argument('--commit', required=True, help='that the bench was built from')
    parser.add_argument('--output', type=pathlib.Path)
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows, when = [], {'date': datetime.date.today().isoformat(), 'commit': arguments.commit,
                      'device': torch.cuda.get_device_name()}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name in arguments.models:
            for row in measure(name, arguments, pathlib.Path(folder)):
                rows.append(row | when)
                print(json.dumps(rows[-1]), flush=True)
                if arguments.output:
                    arguments.output.write_text(json.dumps({'rows': rows}, indent=1) + '\n')
    ratios = [row['torch_ms'] / row['ms'] for row in rows if 'ms' in row]
    if ratios:
        print(f'geometric mean of PyTorch over ours: {statistics.geometric_mean(ratios):.2f}')


if __name__ == '__main__':
    main()
