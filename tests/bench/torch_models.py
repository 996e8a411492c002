#!/usr/bin/env python3
"""PyTorch's times for the models of plan_bench, whole and dense, each run a CUDA graph: the bar for our dense plans.

Weights are drawn, architectures as in tests/support/drawn_models.h. As in a plan, a run copies its inputs from pinned host
memory and its outputs back, and its time is the host's. The better of both memory formats counts for convolutions; the
encoders attend by scaled_dot_product_attention, and run with and without torch.compile where that works. Prints one line
of JSON a model, precision and batch.

    python3 tests/bench/torch_models.py [--compile] [--models=resnet50,minilm] [--precisions=FP16] [--batches=32]
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

PRECISIONS = {'FP32': torch.float32, 'TF32': torch.float32, 'FP16': torch.float16,
              'BF16': torch.bfloat16}
WARM_UP, RUNS = 10, 200


def conv(inputs, outputs, kernel, stride, activation, groups=1):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups)]  # batch norm is folded
    return nn.Sequential(*layers, activation(inplace=True)) if activation else layers[0]


def mobilenet_v1():
    blocks = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
    layers, channels = [conv(3, 32, 3, 2, nn.ReLU6)], 32
    for outputs, stride in blocks:
        layers += [conv(channels, channels, 3, stride, nn.ReLU6, channels), conv(channels, outputs, 1, 1, nn.ReLU6)]
        channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class Bottleneck(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        outputs = 4 * channels
        self.shortcut = conv(inputs, outputs, 1, stride, None) if stride != 1 or inputs != outputs else nn.Identity()
        self.branch = nn.Sequential(conv(inputs, channels, 1, 1, nn.ReLU), conv(channels, channels, 3, stride, nn.ReLU),
                                    conv(channels, outputs, 1, 1, None))

    def forward(self, x):
        return torch.relu_(self.branch(x) + self.shortcut(x))


def resnet50():
    layers, inputs = [conv(3, 64, 7, 2, nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for channels, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(blocks):
            layers.append(Bottleneck(inputs, channels, 2 if i == 0 and channels > 64 else 1))
            inputs = 4 * channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class EncoderBlock(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.mix = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.inner, self.outer = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)

    def forward(self, x):
        batch, length, channels = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.mix(attended.transpose(1, 2).reshape(batch, length, channels)))
        return self.norm2(x + self.outer(nn.functional.gelu(self.inner(x))))


class Encoder(nn.Module):
    def __init__(self, layers, channels, heads, pooler):
        super().__init__()
        self.words, self.places = nn.Embedding(30522, channels), nn.Embedding(512, channels)
        self.norm = nn.LayerNorm(channels)
        self.blocks = nn.Sequential(*(EncoderBlock(channels, heads) for _ in range(layers)))
        self.pooler = nn.Linear(channels, channels) if pooler else None

    def forward(self, ids):
        x = self.blocks(self.norm(self.words(ids) + self.places.weight[:ids.shape[1]]))
        return torch.tanh(self.pooler(x[:, 0])) if self.pooler else x.mean(1)


def precisions_of(name):
    """Of images, BF16 is left out: it takes what FP16 takes."""
    return [precision for precision in PRECISIONS if precision != 'BF16' or name in ('minilm', 'bert-base')]


def draw(name, batch):
    """The model and an input for it."""
    if name in ('mobilenet_v1', 'resnet50'):
        return {'mobilenet_v1': mobilenet_v1, 'resnet50': resnet50}[name](), torch.randn(batch, 3, 224, 224)
    encoder = Encoder(6, 384, 12, False) if name == 'minilm' else Encoder(12, 768, 12, True)
    return encoder, torch.randint(0, 30522, (batch, 128))


def graph_of(model, host_input, dtype, memory_format):
    """A graph of one run, and where its outputs come to be."""
    pinned = host_input.pin_memory()
    is_image = host_input.is_floating_point()

    def run():
        x = pinned.to('cuda', non_blocking=True)
        if is_image:
            x = x.to(dtype=dtype, memory_format=memory_format)
        return model(x).float()

    output = torch.empty_like(run(), device='cpu').pin_memory()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            output.copy_(run(), non_blocking=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output.copy_(run(), non_blocking=True)
    return graph, output


def median_us(graph):
    times = []
    for _ in range(WARM_UP + RUNS):
        start = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times[WARM_UP:])


def measure(name, precision, batch, compiled):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == 'TF32'
    dtype, times = PRECISIONS[precision], {}
    model, x = draw(name, batch)
    model = model.eval().cuda().to(dtype)
    formats = {'nchw': torch.contiguous_format, 'nhwc': torch.channels_last} if x.is_floating_point() else {'': None}
    for label, memory_format in formats.items():
        if memory_format is not None:
            model = model.to(memory_format=memory_format)
        graph, output = graph_of(model, x, dtype, memory_format)
        times[label or 'eager'] = median_us(graph)
        if not torch.isfinite(output).all():
            raise RuntimeError(f'{name} in {precision}: outputs are not finite')
        if compiled:
            graph, _ = graph_of(torch.compile(model), x, dtype, memory_format)
            times[f'compiled {label}'.strip()] = median_us(graph)
    return {'model': name, 'precision': precision, 'batch': batch, 'torch_us': min(times.values()), 'torch': times}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--models', default='mobilenet_v1,resnet50,minilm,bert-base')
    parser.add_argument('--precisions', default=','.join(PRECISIONS))
    parser.add_argument('--batches', default='1,8')
    parser.add_argument('--compile', action='store_true')
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    with torch.inference_mode():
        for name in arguments.models.split(','):
            for precision in (each for each in precisions_of(name) if each in arguments.precisions.split(',')):
                for batch in map(int, arguments.batches.split(',')):
                    print(json.dumps(measure(name, precision, batch, arguments.compile)), flush=True)


if __name__ == '__main__':
    main()
