"""An ONNX graph under construction, in the spellings of its opset."""

import numpy
from onnx import TensorProto, helper, numpy_helper

IR_VERSIONS = {6: 4, 7: 4, 9: 4, 11: 6, 13: 7, 14: 7, 17: 8, 18: 8, 20: 9, 23: 11}


class Graph:
    """A graph under construction. Methods that add a node return the name of its output."""

    def __init__(self, opset, seed):
        self.opset = opset
        self.random = numpy.random.default_rng(seed)
        self.inputs, self.outputs, self.nodes, self.initializers = [], [], [], []
        self.initializers_are_inputs = False
        self.typed_data = False
        self.count = 0

    def finish(self, name):
        inputs = list(self.inputs)
        if self.initializers_are_inputs:
            inputs += [helper.make_tensor_value_info(i.name, i.data_type, i.dims) for i in self.initializers]
        graph = helper.make_graph(self.nodes, name, inputs, self.outputs, self.initializers)
        ir_version = 3 if self.initializers_are_inputs else IR_VERSIONS[self.opset]
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)], ir_version=ir_version,
                                 producer_name='make_models')

    # Ports and constants.

    def input(self, *shape, batch='batch', name='image'):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, (batch,) + shape))
        return name

    def output(self, value, name='output'):
        """Makes the value an output and returns its name: renamed where nothing reads it yet, else by an Identity."""
        for node in self.nodes:
            taken = any(value in other.input for other in self.nodes) or any(value == o.name for o in self.outputs)
            if value in node.output and not taken:
                node.output[list(node.output).index(value)] = name
                value = name
        if value != name:
            self.nodes.append(helper.make_node('Identity', [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        return name

    def initializer(self, array, dtype=numpy.float32):
        array = numpy.asarray(array, dtype)
        name = self.fresh('constant')
        if self.typed_data:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            self.initializers.append(helper.make_tensor(name, kind, array.shape, array.flatten().tolist()))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def integers(self, *values):
        return self.initializer(values, numpy.int64)

    def constant(self, array, dtype=numpy.float32):
        return self.node('Constant', [], value=numpy_helper.from_array(numpy.asarray(array, dtype)))

    def normal(self, *shape, scale=1.0):
        return self.random.normal(0, scale, shape).astype(numpy.float32)

    # Nodes.

    def fresh(self, prefix):
        self.count += 1
        return f'{prefix}_{self.count}'

    def node(self, op, inputs, **attributes):
        name = self.fresh(op)
        self.nodes.append(helper.make_node(op, inputs, [f'/{name}_output'], name=f'/{name}', **attributes))
        return f'/{name}_output'

    def weight(self, *shape, sparsity=0.0):
        weight = self.normal(*shape, scale=(2.0 / numpy.prod(shape[1:])) ** 0.5)
        weight[self.random.random(shape) < sparsity] = 0
        return self.initializer(weight)

    def conv(self, x, inputs, outputs, kernel=1, bias=True, sparsity=0.0, group=1, **attributes):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        if 'stride' in attributes:
            attributes['strides'] = [attributes.pop('stride')] * 2
        if 'pad' in attributes:
            attributes['pads'] = [attributes.pop('pad')] * 4
        operands = [x, self.weight(outputs, inputs // group, *kernel, sparsity=sparsity)]
        if bias:
            operands.append(self.initializer(self.normal(outputs, scale=0.1)))
        return self.node('Conv', operands, group=group, kernel_shape=kernel, **attributes)

    def depthwise(self, x, channels, kernel=3, **attributes):
        return self.conv(x, channels, channels, kernel, group=channels, **attributes)

    def batch_norm(self, x, channels):
        statistics = [1 + self.normal(channels, scale=0.2), self.normal(channels, scale=0.2),
                      self.normal(channels, scale=0.2), numpy.exp(self.normal(channels, scale=0.3))]
        old = {'is_test': 1, 'spatial': 1} if self.opset < 7 else {'spatial': 1} if self.opset < 9 else {}
        return self.node('BatchNormalization', [x] + [self.initializer(s) for s in statistics], epsilon=1e-3, **old)

    def clip(self, x, low=None, high=None):
        """Bounds are inputs from opset 11 on; an omitted one is an empty name."""
        if self.opset < 11:
            given = (('min', low), ('max', high))
            return self.node('Clip', [x], **{name: bound for name, bound in given if bound is not None})
        bounds = ['' if bound is None else self.constant(bound) for bound in (low, high)]
        return self.node('Clip', [x] + (bounds if high is not None else bounds[:1]))

    def relu6(self, x):
        return self.clip(x, 0.0, 6.0)

    def relu(self, x):
        return self.node('Relu', [x])

    def with_axes(self, op, x, *axes):
        if self.opset < 13:
            return self.node(op, [x], axes=list(axes))
        return self.node(op, [x, self.integers(*axes)])

    def unsqueeze(self, x, *axes):
        return self.with_axes('Unsqueeze', x, *axes)

    def squeeze(self, x, *axes):
        return self.with_axes('Squeeze', x, *axes)

    def mean(self, x, keepdims, axes=None):
        axes = axes or ((2, 3) if keepdims or self.opset < 11 else (-2, -1))
        return self.reduce('ReduceMean', x, axes, since=18, keepdims=keepdims)

    def reduce(self, op, x, axes, since, keepdims=True):
        """`since`: the opset from which the axes are an input."""
        if self.opset < since:
            return self.node(op, [x], axes=axes, keepdims=int(keepdims))
        return self.node(op, [x, self.integers(*axes)], keepdims=int(keepdims))

    def pad(self, x, *pads):
        if self.opset < 11:
            return self.node('Pad', [x], pads=pads)
        return self.node('Pad', [x, self.integers(*pads)])

    def dropout(self, x):
        if self.opset < 12:
            return self.node('Dropout', [x], ratio=0.2, **({'is_test': 1} if self.opset < 7 else {}))
        return self.node('Dropout', [x, self.constant(0.2)])

    def gemm(self, x, inputs, outputs, sparsity=0.0):
        return self.node('Gemm', [x, self.weight(outputs, inputs, sparsity=sparsity),
                                  self.initializer(self.normal(outputs))], transB=1,
                         **({'broadcast': 1} if self.opset < 7 else {}))

    def add(self, a, b):
        return self.node('Add', [a, b])

    def multiply(self, a, b):
        return self.node('Mul', [a, b])

    def per_channel(self, op, x, vector, rank):
        """The vector along dimension 1; below opset 7 an attribute says so."""
        if self.opset < 7:
            return self.node(op, [x, self.initializer(vector)], broadcast=1, axis=1)
        return self.node(op, [x, self.initializer(vector.reshape([-1] + [1] * (rank - 2)))])
