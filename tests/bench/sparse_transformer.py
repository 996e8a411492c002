"""The sparse Transformer of Sputnik's evaluation (Gale et al., SC20, section 7.3), with drawn weights, as ONNX.

    sparse_transformer.py FILE.onnx [--tokens=12288] [--layers=3] [--hidden=1024] [--heads=8] [--filter=4096] [--dense]
    sparse_transformer.py FILE.onnx --vectors=8 --share=0.1 [...]

Causal; every query attends to the 256 keys up to itself and to 5 % of the earlier ones, drawn without replacement with
p ~ 1 / distance; one mask for all heads and layers. The mask stands as exporters write it: the band is computed from
positions, the drawn part is a boolean constant [1, 1, tokens, tokens]. Weights and the constant lie beside the file, in
FILE.onnx.data; --part=graph or --part=data writes one of the two (data needs NumPy alone). --dense leaves out the mask.
With --vectors so many neighbouring queries attend to the same keys instead: a share of all, drawn, and their own, as in
Magicube's evaluation (Li et al., SC22).
"""

import argparse
import pathlib

import numpy

VOCABULARY = 256
SEED = 1


def drawn_pairs(tokens, width, share, random):
    """[tokens, tokens] of bool: `share` of the pairs whose key lies `width` or more before the query."""
    count = int(share * (tokens - width) * (tokens - width + 1) // 2) if tokens > width else 0
    mask = numpy.zeros((tokens, tokens), bool)
    # Efraimidis and Spirakis (2006): the smallest of Exp(1) * distance; in two passes, so that few are held.
    def draws(query):
        distances = numpy.arange(query, width - 1, -1)
        return random(query).exponential(size=distances.size) * distances
    if not count:
        return mask
    distances = numpy.arange(width, tokens)
    threshold = 1.05 * count / ((tokens - distances) / distances).sum()  # about as many draws lie below it
    while sum((draws(query) <= threshold).sum() for query in range(width, tokens)) < count:
        threshold *= 1.1
    rows = [numpy.flatnonzero(draws(query) <= threshold) for query in range(width, tokens)]
    numbers = [draws(query)[row] for query, row in zip(range(width, tokens), rows)]
    last = numpy.partition(numpy.concatenate(numbers), count - 1)[count - 1]
    for query, row, drawn in zip(range(width, tokens), rows, numbers):
        mask[query, row[drawn <= last]] = True
    return mask


def vector_pairs(tokens, vectors, share):
    """[tokens, tokens] of bool: `vectors` neighbouring queries have the same keys."""
    groups = numpy.arange(tokens) // vectors
    kept = numpy.random.default_rng(SEED).random((groups[-1] + 1, tokens)) < share
    return kept[groups] | (groups[:, None] == groups)


class Model:
    """Tensors by name, in order, and nodes that read them."""

    def __init__(self, options):
        self.options = options
        self.tensors, self.small, self.nodes = [], [], []
        self.embed()
        if not options.dense:
            self.make_mask()
        for layer in range(options.layers):
            self.block(layer)
        self.node('MatMul', [self.x, self.weight('head', options.hidden, VOCABULARY)], 'logits')

    def weight(self, name, *shape):
        self.tensors.append((name, 'float32', shape))
        return name

    def number(self, name, value, dtype='float32'):
        if name not in [each[0] for each in self.small]:
            self.small.append((name, numpy.asarray(value, dtype)))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append((op, list(inputs), output, attributes))
        return output

    def embed(self):
        hidden, tokens = self.options.hidden, self.options.tokens
        words = self.node('Gather', [self.weight('words', VOCABULARY, hidden), 'input_ids'], 'embedded')
        self.x = self.node('Add', [words, self.weight('positions', 1, tokens, hidden)], 'x')

    def make_mask(self):
        tokens = self.options.tokens
        if self.options.vectors:
            self.tensors.append(('drawn', 'bool', (1, 1, tokens, tokens)))
            self.mask = 'drawn'
            return
        whole = [self.number(name, value, 'int64') for name, value in (('zero', 0), ('tokens', tokens), ('one', 1))]
        key = self.node('Range', whole, 'key')
        query = self.node('Unsqueeze', [key, self.number('last', [1], 'int64')], 'query')
        distance = self.node('Sub', [query, key], 'distance')
        past = self.node('GreaterOrEqual', [distance, 'zero'], 'past')
        near = self.node('Less', [distance, self.number('width', self.options.width, 'int64')], 'near')
        band = self.node('And', [past, near], 'band')
        self.tensors.append(('drawn', 'bool', (1, 1, tokens, tokens)))
        self.mask = self.node('Or', [band, 'drawn'], 'mask')

    def linear(self, x, name, inputs, outputs):
        y = self.node('MatMul', [x, self.weight(f'{name}.weight', inputs, outputs)], f'{name}.product')
        return self.node('Add', [y, self.weight(f'{name}.bias', outputs)], f'{name}.output')

    def heads(self, x, name, perm):
        o = self.options
        shape = self.number('split', [0, o.tokens, o.heads, o.hidden // o.heads], 'int64')
        return self.node('Transpose', [self.node('Reshape', [x, shape], f'{name}.split')], f'{name}.heads', perm=perm)

    def attend(self, name):
        o = self.options
        q, k, v = (self.heads(self.linear(self.x, f'{name}.{part}', o.hidden, o.hidden), f'{name}.{part}', perm)
                   for part, perm in (('q', [0, 2, 1, 3]), ('k', [0, 2, 3, 1]), ('v', [0, 2, 1, 3])))
        scores = self.node('MatMul', [q, k], f'{name}.scores')
        scores = self.node('Mul', [scores, self.number('scale', (o.hidden // o.heads) ** -0.5)], f'{name}.scaled')
        if not o.dense:
            scores = self.node('Where', [self.mask, scores, self.number('low', -numpy.inf)], f'{name}.masked')
        weights = self.node('Softmax', [scores], f'{name}.weights', axis=-1)
        y = self.node('Transpose', [self.node('MatMul', [weights, v], f'{name}.context')], f'{name}.turned',
                      perm=[0, 2, 1, 3])
        y = self.node('Reshape', [y, self.number('joined', [0, o.tokens, o.hidden], 'int64')], f'{name}.joined')
        return self.linear(y, f'{name}.out', o.hidden, o.hidden)

    def norm(self, x, name):
        scale, shift = (self.weight(f'{name}.{part}', self.options.hidden) for part in ('scale', 'shift'))
        return self.node('LayerNormalization', [x, scale, shift], name, axis=-1, epsilon=1e-5)

    def block(self, layer):
        o, name = self.options, f'layer{layer}'
        y = self.attend(name)
        self.x = self.norm(self.node('Add', [self.x, y], f'{name}.attended'), f'{name}.norm')
        y = self.node('Relu', [self.linear(self.x, f'{name}.wide', o.hidden, o.filter)], f'{name}.active')
        y = self.linear(y, f'{name}.narrow', o.filter, o.hidden)
        self.x = self.norm(self.node('Add', [self.x, y], f'{name}.sum'), f'{name}.last')

    def write_data(self, file):
        with open(file, 'wb') as data:
            for name, dtype, shape in self.tensors:
                data.write(self.draw(name, dtype, shape).tobytes())

    def draw(self, name, dtype, shape):
        o = self.options
        if dtype == 'bool' and o.vectors:
            return vector_pairs(o.tokens, o.vectors, o.share)
        if dtype == 'bool':
            return drawn_pairs(o.tokens, o.width, o.share, lambda query: numpy.random.default_rng((SEED, query)))
        values = numpy.random.default_rng((SEED, sum(name.encode()), len(name))).standard_normal(shape, numpy.float32)
        if name.endswith('.scale'):
            return 1 + 0.1 * values
        return values * numpy.float32(shape[-2] ** -0.5 if len(shape) == 2 and name != 'words' else 0.1)

    def write_graph(self, file, location):
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        initializers, offset = [numpy_helper.from_array(array, name) for name, array in self.small], 0
        for name, dtype, shape in self.tensors:
            types = {'float32': TensorProto.FLOAT, 'bool': TensorProto.BOOL}
            tensor = TensorProto(name=name, data_type=types[dtype], dims=shape, data_location=TensorProto.EXTERNAL)
            length = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
            for key, value in (('location', location), ('offset', offset), ('length', length)):
                tensor.external_data.add(key=key, value=str(value))
            offset += length
            initializers.append(tensor)
        nodes = [helper.make_node(op, inputs, [output], name=output, **attributes)
                 for op, inputs, output, attributes in self.nodes]
        shape = ['batch', self.options.tokens]
        graph = helper.make_graph(nodes, 'sparse_transformer',
                                  [helper.make_tensor_value_info('input_ids', TensorProto.INT64, shape)],
                                  [helper.make_tensor_value_info('logits', TensorProto.FLOAT, shape + [VOCABULARY])],
                                  initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8,
                                  producer_name='sparse_transformer')
        onnx.save(model, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('file', type=pathlib.Path)
    sizes = {'tokens': 12288, 'layers': 3, 'hidden': 1024, 'heads': 8, 'filter': 4096, 'width': 256}
    for name, value in sizes.items():
        parser.add_argument(f'--{name}', type=int, default=value)
    parser.add_argument('--share', type=float, default=0.05)
    parser.add_argument('--vectors', type=int, default=0)
    parser.add_argument('--dense', action='store_true')
    parser.add_argument('--part', choices=('all', 'graph', 'data'), default='all')
    options = parser.parse_args()
    model = Model(options)
    data = options.file.with_name(options.file.name + '.data')
    if options.part != 'data':
        model.write_graph(options.file, data.name)
    if options.part != 'graph':
        model.write_data(data)


if __name__ == '__main__':
    main()
