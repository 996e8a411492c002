#!/usr/bin/env python3
"""Puts PyTorch's times beside those of cuda_conv_bench, whose output it reads: cuda_conv_bench | cuda_conv_bench.py

PyTorch runs torch.nn.functional.conv2d alone, without bias or ReLU, in both memory formats, without TF32, as many times
in one CUDA graph: by cuDNN's graph API, the fastest of the plans that it proposes.
Sums are over a network's layers; a layer that a row has not got is left out of both sides of its ratio.
"""
import collections
import re
import statistics
import sys

import torch

RUNS, REPLAYS = 100, 7
DTYPES = {"FP32": torch.float32, "FP16": torch.float16, "BF16": torch.bfloat16}


def torch_time(dtype, batch, layer, memory_format):
    channels, size, out, kernel, _, stride = map(int, re.match(r"(\d+)x(\d+)-(\d+)-(\d+)x(\d+)/(\d+)", layer).groups())
    x = torch.randn(batch, channels, size, size, device="cuda", dtype=dtype).to(memory_format=memory_format)
    w = torch.randn(out, channels, kernel, kernel, device="cuda", dtype=dtype).to(memory_format=memory_format)
    run = lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=kernel // 2)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(RUNS):
            run()
    times = []
    for _ in range(REPLAYS + 1):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) * 1000 / RUNS)
    return statistics.median(times[1:])


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0  # all of them
    ours, counts = collections.defaultdict(dict), {}
    for line in sys.stdin:
        words = line.split()
        if len(words) != 6 or words[0] not in DTYPES:
            print(line, end="")
            continue
        dtype, batch, layer, row, time, count = words
        ours[dtype, int(batch), layer][re.sub("_(f32|f16|bf16)", "", row)] = float(time)
        counts[layer] = int(count)
    theirs = {}
    for key in ours:
        for name, memory_format in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
            theirs[key, name] = torch_time(DTYPES[key[0]], key[1], key[2], memory_format)
    rows = sorted({row for times in ours.values() for row in times})
    print("us".ljust(28), "torch nchw nhwc", *rows)
    for key, times in ours.items():
        shown = [f"{times[row]:7.1f}" if row in times else "      -" for row in rows]
        print(f"{key[0]} {key[1]} {key[2]}".ljust(28), f"{theirs[key, 'nchw']:7.1f} {theirs[key, 'nhwc']:7.1f}", *shown)
    for dtype, batch in sorted({key[:2] for key in ours}):
        keys = [key for key in ours if key[:2] == (dtype, batch)]
        total = lambda of, some: sum(of(key) * counts[key[2]] for key in some)
        print(dtype, batch, "torch nchw %.0f nhwc %.0f us" % tuple(
            total(lambda key: theirs[key, name], keys) for name in ("nchw", "nhwc")), end="; ratios to the better:")
        better = min(("nchw", "nhwc"), key=lambda name: total(lambda key: theirs[key, name], keys))
        for suffix in rows + ["nhwc", "rows"]:
            best = lambda key: min((t for row, t in ours[key].items() if suffix in row), default=None)
            some = [key for key in keys if best(key) is not None]
            if some:
                ratio = total(lambda key: theirs[key, better], some) / total(best, some)
                print(f" {suffix} {ratio:.2f} ({len(some)})", end="")
        print()


main()
