"""Packing a model that runs in regions holds its weights little more than once, whether they are sparse or dense."""

import sys

import onnx
import pytest

import onnx_graph
from conftest import program, run

LAYERS, WIDTH = 12, 1024


def write_model(path, width, sparsity):
    """Products, and a CumSum that no plan takes."""
    graph = onnx_graph.Graph(17, seed=1)
    value = graph.input(width, name='x')
    for _ in range(LAYERS):
        value = graph.node('Relu', [graph.node('MatMul', [value, graph.weight(width, width, sparsity=sparsity)])])
    graph.output(graph.node('CumSum', [value, graph.initializer(1, 'int64')]))
    onnx.save(graph.finish('products'), path)


def peak_bytes(*command):
    """Of a command that a small process starts: it would count what it was forked of."""
    started = ('import resource, subprocess, sys\n'
               'subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n'
               'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)')
    return int(run(sys.executable, '-c', started, *command)) * 1024


@pytest.mark.parametrize('sparsity', [0.0, 0.9])
def test_weights_are_not_held_several_times(tmp_path, sparsity):
    peaks = {}
    for width in (8, WIDTH):
        model = tmp_path / f'{width}.onnx'
        write_model(model, width, sparsity)
        peaks[width] = peak_bytes(program('swizzle-pack'), 'pack', model, tmp_path / 'packed.swz')
    assert peaks[WIDTH] - peaks[8] < 2.2 * (tmp_path / f'{WIDTH}.onnx').stat().st_size
