"""A Transformer encoder under construction, in the spelling that make_encoders.py asks for."""

import numpy
from onnx import TensorProto, helper

from onnx_graph import Graph

VOCABULARY, POSITIONS, TYPES = 100, 64, 2
IR_VERSIONS = {11: 6, 12: 7, 13: 7, 14: 7, 17: 8, 18: 8, 20: 9, 23: 11}
SQRT2 = float(numpy.float32(numpy.sqrt(2)))


class EncoderGraph(Graph):
    def __init__(self, spelling, seed):
        super().__init__(spelling['opset'], seed)
        self.spelling = spelling
        self.fused = False
        self.ids = self.mask = self.broadcast_mask = None

    def __getattr__(self, name):
        try:
            return self.__dict__['spelling'][name]
        except KeyError:
            raise AttributeError(name) from None

    def finish(self, name):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.initializers)
        opsets = [helper.make_opsetid('', self.opset)]
        if self.fused:
            opsets.append(helper.make_opsetid('com.microsoft', 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSIONS[self.opset],
                                 producer_name='make_encoders')

    def fuse(self, op, inputs, **attributes):
        self.fused = True
        return self.node(op, inputs, domain='com.microsoft', **attributes)

    def token_input(self, name):
        if any(name == value.name for value in self.inputs):
            return name
        shape = self.fixed or ('batch', 'sequence')
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
        return name

    def scalar(self, number, dtype=numpy.float32):
        return self.constant(number, dtype)

    def reduce(self, op, x, *axes, keepdims=True):
        if self.opset >= (13 if op == 'ReduceSum' else 18):
            return self.node(op, [x, self.integers(*axes)], keepdims=int(keepdims))
        return self.node(op, [x], axes=list(axes), keepdims=int(keepdims))

    def size(self, x, axis):
        return self.node('Gather', [self.node('Shape', [x]), self.scalar(axis, numpy.int64)], axis=0)

    def reshape(self, x, *target):
        """Sizes, or names of tensors (scalars) that hold them."""
        if all(isinstance(size, int) for size in target):
            return self.node('Reshape', [x, self.integers(*target)])
        parts = [self.constant([size], numpy.int64) if isinstance(size, int) else self.unsqueeze(size, 0)
                 for size in target]
        return self.node('Reshape', [x, self.node('Concat', parts, axis=0)])

    def batch_and_length(self, x):
        if self.fixed:
            return self.fixed if isinstance(self.fixed[0], int) else (0, self.fixed[1])
        if self.shapes == 'chain':
            return self.size(x, 0), self.size(x, 1)
        return 0, 0

    def linear_weight(self, inputs, outputs):
        weight = self.normal(inputs, outputs, scale=inputs ** -0.5)
        rows, columns = self.cell
        cells = self.random.random((-(-inputs // columns), -(-outputs // rows))) < self.sparsity
        weight[cells.repeat(columns, 0).repeat(rows, 1)[:inputs, :outputs]] = 0
        return weight

    def linear(self, x, inputs, outputs):
        weight = self.initializer(self.linear_weight(inputs, outputs))
        bias, y = self.initializer(self.normal(outputs, scale=0.1)), self.node('MatMul', [x, weight])
        return self.node('Add', [bias, y] if self.bias_first else [y, bias])

    # Layer normalisation.

    def norm(self, x, skip=None):
        scale = self.initializer(1 + self.normal(self.hidden, scale=0.1))
        shift = self.initializer(self.normal(self.hidden, scale=0.1))
        if self.layer_norm == 'fused' and skip:
            return self.fuse('SkipLayerNormalization', [x, skip, scale, shift], epsilon=1e-12)
        if skip:
            x = self.add(x, skip)
        if self.layer_norm in ('op', 'fused'):
            return self.node('LayerNormalization', [x, scale, shift], axis=-1, epsilon=1e-12)
        centred = self.node('Sub', [x, self.reduce('ReduceMean', x, -1)])
        if self.layer_norm == 'reciprocal':
            squares, centred = self.multiply(centred, centred), self.node('Sub', [x, self.reduce('ReduceMean', x, -1)])
        else:
            squares = self.node('Pow', [centred, self.scalar(2.0)])
        shifted = self.add(self.reduce('ReduceMean', squares, -1), self.scalar(1e-12))
        if self.layer_norm == 'reciprocal':
            inverse = self.node('Reciprocal', [self.node('Sqrt', [shifted])])
            normal = self.multiply(inverse, centred)
            return self.add(shift, self.multiply(scale, normal))
        if self.layer_norm == 'power':
            normal = self.multiply(centred, self.node('Pow', [shifted, self.scalar(-0.5)]))
        else:
            normal = self.node('Div', [centred, self.node('Sqrt', [shifted])])
        return self.add(self.multiply(normal, scale), shift)

    # GELU and its kin.

    def activate(self, x):
        half, one = self.scalar(0.5), self.scalar(1.0)
        if self.gelu in ('divided', 'half_first', 'half_inside', 'multiplied', 'half_of_factor'):
            scaled = (self.multiply(x, self.scalar(1 / SQRT2)) if self.gelu == 'multiplied' else
                      self.node('Div', [x, self.scalar(SQRT2)]))
            factor = self.add(self.node('Erf', [scaled]), one)
            if self.gelu == 'half_first':
                return self.multiply(self.multiply(x, half), factor)
            if self.gelu == 'half_inside':
                return self.multiply(x, self.multiply(factor, half))
            if self.gelu == 'half_of_factor':
                return self.multiply(self.multiply(half, factor), x)
            return self.multiply(self.multiply(x, factor), half)
        if self.gelu in ('tanh', 'tanh_of_product'):
            if self.gelu == 'tanh':
                cube = self.node('Pow', [x, self.scalar(3.0)])
                inner = self.add(x, self.multiply(cube, self.scalar(0.044715)))
            else:
                square = self.multiply(self.scalar(0.044715), self.multiply(x, x))
                inner = self.multiply(x, self.add(one, square))
            inner = self.multiply(self.scalar(0.7978845608), inner)
            return self.multiply(self.multiply(half, x), self.add(one, self.node('Tanh', [inner])))
        if self.gelu == 'quick':
            return self.multiply(x, self.node('Sigmoid', [self.multiply(x, self.scalar(1.702))]))
        if self.gelu == 'silu':
            return self.multiply(x, self.node('Sigmoid', [x]))
        if self.gelu == 'relu':
            return self.relu(x)
        if self.gelu == 'op_tanh':
            return self.node('Gelu', [x], approximate='tanh')
        return self.node('Gelu', [x]) if self.gelu == 'op' else self.fuse('Gelu', [x])

    def feed_forward(self, x):
        if self.gelu not in ('bias_gelu', 'fast_gelu'):
            return self.linear(self.activate(self.linear(x, self.hidden, self.inner)), self.inner, self.hidden)
        y = self.node('MatMul', [x, self.initializer(self.linear_weight(self.hidden, self.inner))])
        bias = self.initializer(self.normal(self.inner, scale=0.1))
        y = self.fuse('BiasGelu' if self.gelu == 'bias_gelu' else 'FastGelu', [y, bias])
        return self.linear(y, self.inner, self.hidden)

    # Masks.

    def excluded(self):
        """True where the mask is 0, [batch, 1, 1, length]."""
        mask = self.unsqueeze(self.mask, 1, 2)
        return self.node('Not', [self.node('Cast', [mask], to=TensorProto.BOOL)])

    def mask_bias(self):
        lowest = float(numpy.finfo(numpy.float32).min)
        if self.broadcast_mask is None and self.mask_spelling in ('ten_thousand', 'lowest'):
            mask = self.node('Cast', [self.unsqueeze(self.unsqueeze(self.mask, 1), 2)], to=TensorProto.FLOAT)
            inverted = self.node('Sub', [self.scalar(1.0), mask])
            number = -10000.0 if self.mask_spelling == 'ten_thousand' else lowest
            self.broadcast_mask = self.multiply(inverted, self.scalar(number))
        elif self.broadcast_mask is None and self.mask_spelling == 'where':
            self.broadcast_mask = self.node('Where', [self.excluded(), self.scalar(-numpy.inf), self.scalar(0.0)])
        elif self.broadcast_mask is None:  # expanded
            batch, length = self.size(self.mask, 0), self.size(self.mask, 1)
            one = self.constant([1], numpy.int64)
            parts = [self.unsqueeze(batch, 0), one, self.unsqueeze(length, 0), self.unsqueeze(length, 0)]
            mask = self.node('Expand', [self.unsqueeze(self.mask, 1, 2), self.node('Concat', parts, axis=0)])
            mask = self.node('Cast', [mask], to=TensorProto.FLOAT)
            inverted = self.node('Sub', [self.scalar(1.0), mask])
            excluded = self.node('Cast', [inverted], to=TensorProto.BOOL)
            self.broadcast_mask = self.node('Where', [excluded, self.scalar(lowest), inverted])
        return self.broadcast_mask

    def pair_masked(self, scores):
        length, lowest = self.fixed[1], float(numpy.finfo(numpy.float32).min)
        query, key = numpy.indices((length, length))
        if self.pairs == 'added':  # a window
            return self.add(scores, self.initializer(numpy.where(abs(query - key) < 5, 0, -numpy.inf)))
        if self.pairs == 'heads':  # one for each, all the same: causal
            mask = numpy.broadcast_to(numpy.where(query >= key, 0, -1e9), (1, self.heads, length, length))
            return self.add(self.initializer(mask), scores)
        if self.pairs == 'buffer':  # as GPT-2's, and drawn pairs
            kept = (self.random.random((1, 1, length, length)) < 0.2) | (query == key)
            return self.node('Where', [self.initializer(kept, bool), scores, self.scalar(lowest)])
        if self.pairs == 'vectors':  # drawn, the same for each eight queries
            kept = numpy.repeat(self.random.random((1, 1, length // 8, length)) < 0.1, 8, axis=2)
            kept |= query // 8 == key // 8
            return self.add(scores, self.initializer(numpy.where(kept, 0, -numpy.inf)))
        if self.pairs == 'triangle':
            ones = self.node('ConstantOfShape', [self.integers(length, length)],
                             value=helper.make_tensor('value', TensorProto.FLOAT, [1], [1]))
            upper = self.node('Trilu', [ones, self.scalar(1, numpy.int64)], upper=1)
            return self.node('Where', [self.node('Cast', [upper], to=TensorProto.BOOL), self.scalar(-10000.0), scores])
        zero, one = self.scalar(0, numpy.int64), self.scalar(1, numpy.int64)  # a causal window, from positions
        places = self.node('Range', [zero, self.scalar(length, numpy.int64), one])
        distance = self.node('Sub', [self.unsqueeze(places, 1), places])
        past = self.node('Less', [distance, self.scalar(7, numpy.int64)])
        kept = self.node('And', [past, self.node('Not', [self.node('Less', [distance, zero])])])
        bias = self.node('Where', [kept, self.scalar(0.0), self.scalar(-numpy.inf)])
        return self.add(scores, self.unsqueeze(self.unsqueeze(bias, 0), 0))

    def masked(self, scores):
        if self.pairs:
            return self.pair_masked(scores)
        if self.mask is None:
            return scores
        if self.mask_spelling == 'scores_where':
            return self.node('Where', [self.excluded(), self.scalar(-numpy.inf), scores])
        if self.mask_spelling == 'scores_equal':
            zero = self.node('Equal', [self.unsqueeze(self.mask, 1, 2), self.scalar(0, numpy.int64)])
            batch, length = self.batch_and_length(self.mask)
            zero = self.node('Expand', [self.reshape(zero, batch, 1, 1, length) if not self.fixed else zero,
                                        self.node('Shape', [scores])])
            return self.node('Where', [zero, self.scalar(numpy.finfo(numpy.float32).min), scores])
        return self.add(scores, self.mask_bias())

    # Attention.

    def softmax(self, x):
        return self.node('Softmax', [x], axis=-1 if self.opset >= 13 else 3)

    def split_heads(self, x, heads, size, *perm):
        batch, length = self.batch_and_length(x)
        if self.shapes != 'chain' and not self.fixed:
            x = self.reshape(x, 0, -1, heads, size)
        else:
            x = self.reshape(x, batch, length, heads, size)
        return self.node('Transpose', [x], perm=list(perm))

    def join_heads(self, x, channels):
        x = self.node('Transpose', [x], perm=[0, 2, 1, 3])
        batch, length = self.batch_and_length(x)
        return self.reshape(x, batch, length if self.shapes == 'chain' or self.fixed else -1, channels)

    def attend(self, x, heads):
        """Of a layer, without the residual."""
        size = self.hidden // self.heads
        inner = heads * size
        if self.attention in ('packed', 'qkv', 'qkv_unbound'):
            return self.linear(self.attend_packed(x, heads, size), inner, self.hidden)
        q, k, v = (self.linear(x, self.hidden, inner) for _ in range(3))
        if self.attention == 'op3':
            y = self.node('Attention', [q, k, v] + ([self.mask_of_op()] if self.mask else []),
                          q_num_heads=heads, kv_num_heads=heads)
            return self.linear(y, inner, self.hidden)
        if self.attention == 'flat':
            return self.linear(self.attend_flat(x, q, k, v, heads, size), inner, self.hidden)
        q, v = (self.split_heads(y, heads, size, 0, 2, 1, 3) for y in (q, v))
        k = self.split_heads(k, heads, size, *((0, 2, 1, 3) if self.attention in ('op4', 'k_twice') else (0, 2, 3, 1)))
        if self.attention == 'op4':
            y = self.node('Attention', [q, k, v] + ([self.mask_of_op()] if self.mask else []))
        else:
            y = self.attend_written(q, k, v, heads, size)
        return self.linear(self.join_heads(y, inner), inner, self.hidden)

    def mask_of_op(self):
        """[batch, 1, length, length], which ONNX Runtime asks for."""
        if self.mask_spelling == 'expanded':
            return self.mask_bias()
        batch, length = (self.unsqueeze(self.size(self.mask, axis), 0) for axis in (0, 1))
        shape = self.node('Concat', [batch, self.constant([1], numpy.int64), length, length], axis=0)
        if self.mask_spelling == 'bool':
            kept = self.node('Cast', [self.unsqueeze(self.mask, 1, 2)], to=TensorProto.BOOL)
            return self.node('Expand', [kept, shape])
        return self.node('Expand', [self.mask_bias(), shape])

    def attend_written(self, q, k, v, heads, size):
        root = float(numpy.sqrt(size))
        if self.attention == 'k_twice':  # Reshape, Transpose, Reshape
            batch, length = self.batch_and_length(self.ids)
            k = self.reshape(k, -1, length, size) if self.shapes == 'chain' or self.fixed else k
            k = self.node('Transpose', [k], perm=[0, 2, 1] if self.shapes == 'chain' or self.fixed else [0, 1, 3, 2])
            k = self.reshape(k, batch, heads, size, length) if self.shapes == 'chain' or self.fixed else k
        if self.attention == 'scaled_both':
            scale = self.node('Div', [self.scalar(1.0), self.node('Sqrt', [self.scalar(float(size))])])
            scale = self.node('Sqrt', [scale])
            q, k = self.multiply(q, scale), self.multiply(k, scale)
        if self.attention == 'scaled_query':
            q = self.node('Div', [q, self.scalar(root)])
        scores = self.node('MatMul', [q, k])
        if self.attention in ('bert', 'k_twice'):
            scores = self.node('Div', [scores, self.scalar(root)])
        if self.attention == 'multiplied':
            scores = self.multiply(self.scalar(1 / root), scores)
        if self.attention == 'fused_matmul':
            self.nodes.pop()
            transposed = self.node('Transpose', [k], perm=[0, 1, 3, 2])
            scores = self.fuse('FusedMatMul', [q, transposed], alpha=1 / root, transB=1)
        probabilities = self.softmax(self.masked(scores))
        if self.mask_spelling == 'where':  # as PyTorch makes sure of rows that are masked altogether
            invalid = self.node('IsNaN', [probabilities])
            probabilities = self.node('Where', [invalid, self.scalar(0.0), probabilities])
        return self.node('MatMul', [probabilities, v])

    def attend_flat(self, x, q, k, v, heads, size):
        """[batch * heads, length, size], as torch.nn.MultiheadAttention has it; here without a mask."""
        batch, length = self.batch_and_length(x)
        q, k, v = (self.split_heads(y, heads, size, 0, 2, 1, 3) for y in (q, k, v))
        q, k, v = (self.reshape(y, -1, length, size) for y in (q, k, v))
        scores = self.node('MatMul', [q, self.node('Transpose', [k], perm=[0, 2, 1])])
        scores = self.multiply(scores, self.scalar(float(size ** -0.5)))
        y = self.node('MatMul', [self.node('Softmax', [scores], axis=2), v])
        return self.join_heads(self.reshape(y, batch, heads, length, size), heads * size)

    def attend_packed(self, x, heads, size):
        weight = self.initializer(self.linear_weight(self.hidden, 3 * heads * size))
        bias = self.initializer(self.normal(3 * heads * size, scale=0.1))
        if self.attention == 'packed':
            mask = [self.node('Cast', [self.mask], to=TensorProto.INT32)] if self.mask else []
            return self.fuse('Attention', [x, weight, bias] + mask, num_heads=heads)
        y = self.add(self.node('MatMul', [x, weight]), bias)
        if self.attention == 'qkv':
            parts = [self.fresh('part') for _ in range(3)]
            split = [self.integers(*[heads * size] * 3)] if self.opset >= 13 else []
            old = {} if split else {'split': [heads * size] * 3}
            self.nodes.append(helper.make_node('Split', [y] + split, parts, name=self.fresh('Split'), axis=-1, **old))
            q, k, v = (self.split_heads(part, heads, size, *perm)
                       for part, perm in zip(parts, ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))))
        else:
            batch, length = self.batch_and_length(x)
            y = self.node('Transpose', [self.reshape(y, batch, length, 3, heads, size)], perm=[2, 0, 3, 1, 4])
            q, k, v = (self.node('Gather', [y, self.scalar(i, numpy.int64)], axis=0) for i in range(3))
            k = self.node('Transpose', [k], perm=[0, 1, 3, 2])
        scores = self.masked(self.multiply(self.node('MatMul', [q, k]), self.scalar(float(size ** -0.5))))
        return self.join_heads(self.node('MatMul', [self.softmax(scores), v]), heads * size)

    # The whole.

    def table(self, rows):
        return self.initializer(self.normal(rows, self.hidden, scale=0.5))

    def embed(self):
        words, positions, types = self.table(VOCABULARY), self.table(POSITIONS), self.table(TYPES)
        length = self.size(self.ids, 1)
        if self.positions == 'table':  # a slice of [1, POSITIONS, hidden]
            table = self.initializer(self.normal(1, POSITIONS, self.hidden, scale=0.5))
            place = self.node('Slice', [table, self.integers(0), self.unsqueeze(length, 0), self.integers(1)])
        elif self.positions == 'range':
            zero, one = self.scalar(0, numpy.int64), self.scalar(1, numpy.int64)
            place = self.unsqueeze(self.node('Range', [zero, length, one]), 0)
            shape = self.node('Shape', [self.ids])
            place = self.node('Gather', [positions, self.node('Expand', [place, shape])])
        elif self.positions == 'past_padding':  # RoBERTa's: padding, token 1, is not counted
            kept = self.node('Cast', [self.node('Not', [self.node('Equal', [self.ids, self.scalar(1, numpy.int64)])])],
                             to=TensorProto.INT32)
            count = self.node('CumSum', [kept, self.scalar(1, numpy.int64)])
            count = self.node('Mul', [self.add(count, self.scalar(0, numpy.int32)), kept])
            count = self.node('Cast', [count], to=TensorProto.INT64)
            place = self.node('Gather', [positions, self.add(count, self.scalar(1, numpy.int64))])
        elif self.positions == 'masked':
            mask = self.token_input('attention_mask')
            count = self.node('Mul', [self.node('CumSum', [mask, self.scalar(1, numpy.int64)]), mask])
            place = self.node('Gather', [positions, self.add(count, self.scalar(1, numpy.int64))])
        elif self.positions == 'input':
            place = self.node('Gather', [positions, self.token_input('position_ids')])
        else:
            buffer = self.initializer(numpy.arange(POSITIONS).reshape(1, -1), numpy.int64)
            axes = [self.integers(1)]
            place = self.node('Slice', [buffer, self.integers(0), self.unsqueeze(length, 0)] + axes)
            place = self.node('Gather', [positions, place])
        x = self.node('Gather', [words, self.ids], axis=0)
        if self.types == 'input':
            x = self.add(x, self.node('Gather', [types, self.token_input('token_type_ids')], axis=0))
        elif self.types == 'zeros':
            zeros = self.node('ConstantOfShape', [self.node('Shape', [self.ids])],
                              value=helper.make_tensor('value', TensorProto.INT64, [1], [0]))
            x = self.add(x, self.node('Gather', [types, zeros]))
        elif self.types == 'buffer':
            buffer = self.initializer(numpy.zeros((1, POSITIONS)), numpy.int64)
            zeros = self.node('Slice', [buffer, self.integers(0), self.unsqueeze(length, 0), self.integers(1)])
            shape = self.node('Shape', [self.ids])
            x = self.add(self.node('Gather', [types, self.node('Expand', [zeros, shape])]), x)
        return self.norm(self.add(x, place))

    def embed_fused(self):
        words, positions, types = self.table(VOCABULARY), self.table(POSITIONS), self.table(TYPES)
        scale = self.initializer(1 + self.normal(self.hidden, scale=0.1))
        shift = self.initializer(self.normal(self.hidden, scale=0.1))
        ids, segments = (self.node('Cast', [x], to=TensorProto.INT32)
                         for x in (self.ids, self.token_input('token_type_ids')))
        self.fused = True
        name = self.fresh('EmbedLayerNormalization')
        self.nodes.append(helper.make_node(
            'EmbedLayerNormalization', [ids, segments, words, positions, types, scale, shift],
            [f'/{name}_output', f'/{name}_mask'], name=name, domain='com.microsoft', epsilon=1e-12))
        return f'/{name}_output'

    def encode(self):
        self.mask_spelling = self.spelling['mask']
        self.ids = self.token_input('input_ids')
        self.mask = None
        if self.mask_spelling not in ('none', 'ones'):
            self.mask = self.token_input('attention_mask')
        elif self.mask_spelling == 'ones':
            self.mask = self.node('ConstantOfShape', [self.node('Shape', [self.ids])],
                                  value=helper.make_tensor('value', TensorProto.INT64, [1], [1]))
            self.mask_spelling = 'ten_thousand'
        x = self.embed_fused() if self.positions == 'fused' else self.embed()
        for layer in range(self.layers):
            y = self.attend(self.dropout(x), self.heads_left[layer] if self.heads_left else self.heads)
            x = self.norm(y, x)
            x = self.norm(self.feed_forward(x), x)
        getattr(self, f'end_{self.head}')(x)

    def end_hidden(self, x):
        self.output(x, 'last_hidden_state')

    def pooled(self, x):
        first = self.node('Gather', [x, self.scalar(0, numpy.int64)], axis=1)
        return self.node('Tanh', [self.gemm(first, self.hidden, self.hidden)])

    def end_pooler(self, x):
        pooled = self.pooled(x)
        self.output(x, 'last_hidden_state')
        self.output(pooled, 'pooler_output')

    def end_classifier(self, x):
        self.output(self.gemm(self.dropout(self.pooled(x)), self.hidden, 3), 'logits')

    def end_probabilities(self, x):
        first = self.node('Slice', [x, self.integers(0), self.integers(1), self.integers(1)])
        logits = self.gemm(self.squeeze(first, 1), self.hidden, 3)
        self.output(self.node('Softmax', [logits], axis=1), 'probabilities')

    def end_tokens(self, x):
        self.output(self.linear(x, self.hidden, 5), 'logits')

    def end_answers(self, x):
        y, parts = self.linear(x, self.hidden, 2), [self.fresh('part') for _ in range(2)]
        split = [self.integers(1, 1)] if self.opset >= 13 else []
        old = {} if split else {'split': [1, 1]}
        self.nodes.append(helper.make_node('Split', [y] + split, parts, name=self.fresh('Split'), axis=-1, **old))
        self.output(self.squeeze(parts[0], -1), 'start_logits')
        self.output(self.squeeze(parts[1], -1), 'end_logits')

    def end_mean(self, x):
        """sentence-transformers' mean pooling."""
        mask = self.node('Cast', [self.unsqueeze(self.mask, -1)], to=TensorProto.FLOAT)
        mask = self.node('Expand', [mask, self.node('Shape', [x])])
        total = self.reduce('ReduceSum', self.multiply(x, mask), 1, keepdims=False)
        count = self.node('Clip', [self.reduce('ReduceSum', mask, 1, keepdims=False), self.scalar(1e-9)])
        self.output(self.node('Div', [total, count]), 'sentence_embedding')

    def end_mean_of_all(self, x):
        self.output(self.reduce('ReduceMean', x, 1, keepdims=False), 'sentence_embedding')
