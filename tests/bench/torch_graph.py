#!/usr/bin/env python3
"""PyTorch's times for ONNX files of any_graph.py: their nodes as PyTorch's functions, dense, each run one CUDA graph.

GELUs that are written out and attention become gelu and scaled_dot_product_attention, as PyTorch's own models have
them. A run copies its inputs from pinned host memory and its outputs back, and its time is the host's. Of networks of
images the better of both memory formats counts. Prints a line of JSON a file and precision.

    python3 tests/bench/torch_graph.py [--precisions=FP32,FP16] [--batch=1] [--runs=100] FILE.onnx ...
"""

import argparse
import contextlib
import fcntl
import json
import statistics
import time

import numpy
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

PRECISIONS = {'FP32': torch.float32, 'FP16': torch.float16, 'BF16': torch.bfloat16}
VOCABULARY = 200


def attributes_of(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def spatial(a, rank):
    pads = a.get('pads', [0] * 2 * rank)
    assert pads[:rank] == pads[rank:], 'padding is not the same on both sides'
    return {'stride': a.get('strides', [1] * rank), 'padding': pads[:rank]}


def conv(a, x, w, b=None):
    function = functional.conv2d if x.dim() == 4 else functional.conv1d
    return function(x, w, b, **spatial(a, x.dim() - 2), groups=a.get('group', 1))


def slices(a, x, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else axes.tolist()
    places = [slice(None)] * x.dim()
    for i, axis in enumerate(axes):
        places[axis] = slice(int(starts[i]), int(min(ends[i], 1 << 40)), int(steps[i]) if steps is not None else 1)
    return x[tuple(places)]


def split(a, x, sizes=None):
    axis = a.get('axis', 0)
    return torch.split(x, sizes.tolist() if sizes is not None else x.shape[axis] // a['outputs'], axis)


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape.tolist())])


def axes_of(a, given):
    return given.tolist() if given is not None else list(a['axes'])


def squeeze(a, x, axes=None):
    return x.squeeze(tuple(axes_of(a, axes)))


def unsqueeze(a, x, axes=None):
    for axis in sorted(axes_of(a, axes)):
        x = x.unsqueeze(axis)
    return x


def gather(a, x, indices):
    axis = a.get('axis', 0) % x.dim()
    picked = x.index_select(axis, indices.reshape(-1).to(x.device))
    return picked.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1:])


def attend(a, q, k, v, bias=None):
    return functional.scaled_dot_product_attention(q, k.transpose(-1, -2), v, attn_mask=bias, scale=a['scale'])


def constant_of_shape(a, shape):
    return torch.full(shape.tolist(), numpy_helper.to_array(a['value']).item())


TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool}
FUNCTIONS = {
    'Abs': lambda a, x: x.abs(), 'And': lambda a, x, y: x & y, 'Cos': lambda a, x: x.cos(), 'Sin': lambda a, x: x.sin(),
    'Less': lambda a, x, y: x < y, 'Neg': lambda a, x: -x, 'Not': lambda a, x: ~x, 'Sqrt': lambda a, x: x.sqrt(),
    'Add': lambda a, x, y: x + y, 'Mul': lambda a, x, y: x * y,
    'Sub': lambda a, x, y: x - y, 'Pow': lambda a, x, y: x ** y, 'Min': lambda a, x, y: torch.minimum(x, y),
    'Max': lambda a, x, y: torch.maximum(x, y), 'GatherElements': lambda a, x, i: x.gather(a.get('axis', 0), i),
    'Div': lambda a, x, y: x / y if x.is_floating_point() else torch.div(x, y, rounding_mode='trunc'),
    'Equal': lambda a, x, y: x == y, 'Where': lambda a, c, x, y: torch.where(c, x, y),
    'AveragePool': lambda a, x: functional.avg_pool2d(x, a['kernel_shape'], **spatial(a, 2)),
    'MaxPool': lambda a, x: functional.max_pool2d(x, a['kernel_shape'], **spatial(a, 2)),
    'GlobalAveragePool': lambda a, x: x.mean((2, 3), keepdim=True),
    'Cast': lambda a, x: x.to(TYPES[a['to']]), 'Concat': lambda a, *x: torch.cat(x, a['axis']),
    'ConstantOfShape': constant_of_shape, 'Conv': conv, 'Attend': attend,
    'ConvTranspose': lambda a, x, w, b=None: functional.conv_transpose2d(x, w, b, **spatial(a, 2)),
    'CumSum': lambda a, x, axis: x.cumsum(int(axis)), 'Erf': lambda a, x: x.erf(), 'Gelu': lambda a, x: functional.gelu(x),
    'Expand': lambda a, x, shape: x.expand(torch.broadcast_shapes(x.shape, tuple(shape.tolist()))),
    'Flatten': lambda a, x: x.flatten(a.get('axis', 1)), 'Gather': gather,
    'Gemm': lambda a, x, w, b=None: functional.linear(x, w if a.get('transB') else w.t(), b),
    'HardSigmoid': lambda a, x: (x * a.get('alpha', 0.2) + a.get('beta', 0.5)).clamp(0, 1),
    'LayerNormalization': lambda a, x, w, b=None: functional.layer_norm(x, w.shape, w, b, a.get('epsilon', 1e-5)),
    'Log': lambda a, x: x.log(), 'MatMul': lambda a, x, y: x @ y, 'Identity': lambda a, x: x,
    'Range': lambda a, first, end, step: torch.arange(first.item(), end.item(), step.item()),
    'ReduceMean': lambda a, x, axes=None: x.mean(axes_of(a, axes), keepdim=bool(a.get('keepdims', 1))),
    'Relu': lambda a, x: x.relu(), 'Reshape': reshape, 'Shape': lambda a, x: torch.tensor(x.shape),
    'Resize': lambda a, x, roi, factors: functional.interpolate(x, scale_factor=factors.tolist()[2:], mode='nearest'),
    'Sigmoid': lambda a, x: x.sigmoid(), 'Slice': slices, 'Softmax': lambda a, x: x.softmax(a.get('axis', -1)),
    'Split': split, 'Squeeze': squeeze, 'Tanh': lambda a, x: x.tanh(), 'Unsqueeze': unsqueeze,
    'Transpose': lambda a, x: x.permute(a['perm']),
}
# Inputs that say how, and are read on the host.
HOST_INPUTS = {'Reshape': 1, 'Slice': 1, 'Split': 1, 'Squeeze': 1, 'Unsqueeze': 1, 'Expand': 1, 'ReduceMean': 1,
               'Resize': 1, 'Range': 0, 'ConstantOfShape': 0, 'CumSum': 1}


class Step:
    def __init__(self, op, inputs, outputs, attributes):
        self.op, self.inputs, self.outputs = op, list(inputs), list(outputs)
        self.attributes = attributes | {'outputs': len(self.outputs)}


def fused(steps, scalars):
    """With Gelu and Attend in the places of what spells them."""
    made = {output: step for step in steps for output in step.outputs}
    readers = {}
    for step in steps:
        for value in step.inputs:
            readers.setdefault(value, []).append(step)

    def only_reader(step):
        found = readers.get(step.outputs[0], [])
        return found[0] if len(found) == 1 else None

    gone = set()
    for step in steps:
        if step.op == 'Erf':
            divided, added = made[step.inputs[0]], only_reader(step)
            product = only_reader(added)
            last = only_reader(product)
            if divided.op == 'Div' and divided.inputs[0] in product.inputs and scalars.get(last.inputs[1]) == 0.5:
                gone |= {divided, step, added, product}
                last.op, last.inputs = 'Gelu', [divided.inputs[0]]
        if step.op == 'Softmax':
            scores, last, bias, added = made[step.inputs[0]], only_reader(step), [], set()
            if scores.op == 'Add':
                bias, added, scores = [scores.inputs[1]], {scores}, made.get(scores.inputs[0], step)
            product = made.get(scores.inputs[0], step)
            if scores.op != 'Div' or product.op != 'MatMul' or last is None or last.op != 'MatMul':
                continue
            gone |= {scores, product, step} | added
            last.op, last.inputs = 'Attend', [*product.inputs, last.inputs[1], *bias]
            last.attributes['scale'] = 1.0 / scalars[scores.inputs[1]]
    return [step for step in steps if step not in gone]


class Model:
    def __init__(self, graph, dtype, batch, channels_last):
        self.dtype, self.channels_last = dtype, channels_last
        self.host = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in graph.initializer}
        steps = []
        for node in graph.node:
            a = attributes_of(node)
            if node.op_type == 'Constant':
                self.host[node.output[0]] = torch.from_numpy(numpy.array(numpy_helper.to_array(a['value'])))
            else:
                steps.append(Step(node.op_type, node.input, node.output, a))
        scalars = {name: value.item() for name, value in self.host.items() if value.numel() == 1}
        self.steps, self.device = fused(steps, scalars), {}
        self.outputs = [output.name for output in graph.output]
        self.inputs = {value.name: self.draw(value, batch) for value in graph.input}

    def draw(self, value, batch):
        kind = value.type.tensor_type
        shape = [d.dim_value or (batch if i == 0 else 128) for i, d in enumerate(kind.shape.dim)]
        if kind.elem_type == onnx.TensorProto.INT64:
            ids = torch.ones(shape, dtype=torch.int64) if 'mask' in value.name else torch.randint(VOCABULARY, shape)
            return ids.pin_memory()
        return torch.randn(shape).pin_memory()

    def placed(self, x):
        x = x.to('cuda', self.dtype if x.is_floating_point() else x.dtype)
        return x.to(memory_format=torch.channels_last) if self.channels_last and x.dim() == 4 else x

    def known(self, name):
        if name not in self.device:
            self.device[name] = self.placed(self.host[name])
        return self.device[name]

    def run(self, inputs):
        """What depends on no input is kept in self.host when it is first computed."""
        values = dict(inputs)
        for step in self.steps:
            on_host = all(not name or name in self.host for name in step.inputs)
            if on_host and step.outputs[0] in self.host:
                continue
            first = 0 if on_host else HOST_INPUTS.get(step.op, len(step.inputs))
            read = [None if not name else values[name] if name in values else
                    self.host[name] if i >= first else self.known(name) for i, name in enumerate(step.inputs)]
            made = FUNCTIONS[step.op](step.attributes, *read)
            made = made if isinstance(made, tuple) else (made,)
            if step.op == 'Cast' and made[0].is_floating_point() and not on_host:
                made = (made[0].to(self.dtype),)
            (self.host if on_host or step.op == 'Shape' else values).update(zip(step.outputs, made, strict=False))
        return [values[name] for name in self.outputs]


def milliseconds(model, runs):
    arrived = {name: model.placed(array) for name, array in model.inputs.items()}
    staged = {name: array.to('cuda') for name, array in model.inputs.items()}

    def whole():
        for name, array in model.inputs.items():
            staged[name].copy_(array, non_blocking=True)
            arrived[name].copy_(staged[name])
        return [output.float() for output in model.run(arrived)]

    with torch.inference_mode():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                made = whole()
        stream.synchronize()
        answers = [torch.empty(output.shape).pin_memory() for output in made]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for answer, output in zip(answers, whole(), strict=True):
                answer.copy_(output, non_blocking=True)
        times = []
        for _ in range(runs + 10):
            start = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[10:])


@contextlib.contextmanager
def alone(file):
    if not file:
        yield
        return
    with open(file, 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='+')
    parser.add_argument('--precisions', type=lambda text: text.split(','), default=['FP32', 'FP16'])
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--lock', help='a file whose lock is held while the device is used')
    arguments = parser.parse_args()
    for file in arguments.files:
        graph = onnx.load(file).graph
        planes = sum(node.op_type == 'Conv' for node in graph.node) > 2  # else formats are all the same
        for precision in arguments.precisions:
            with alone(arguments.lock):
                times = [milliseconds(Model(graph, PRECISIONS[precision], arguments.batch, last), arguments.runs)
                         for last in (False, True)[:1 + planes]]
            print(json.dumps({'file': file, 'precision': precision, 'batch': arguments.batch, 'ms': min(times),
                              'torch': torch.__version__}), flush=True)


if __name__ == '__main__':
    main()
