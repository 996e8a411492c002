"""More architectures on tokens, in small: what exporters write of them. See make_architectures.py."""

import numpy
from onnx import TensorProto

from make_architectures import BASE, TRANSFORMER, VOCABULARY, architecture

LENGTH = {**TRANSFORMER, 'length': 20}


def masked_scores(g, mask):
    """What is added to the scores of keys that the mask leaves out."""
    kept = g.node('Cast', [g.unsqueeze(mask, 1, 2)], to=TensorProto.FLOAT)
    return g.multiply(g.node('Sub', [g.scalar(1.0), kept]), g.scalar(-10000.0))


@architecture(LENGTH)
def clip_text(g, s):
    """A causal mask; the answer is the token of the largest id."""
    ids = g.tokens('batch', s.length)
    x = g.add(g.table(VOCABULARY, s.hidden, ids), g.initializer(g.normal(s.length, s.hidden)))
    causal = g.constant(numpy.where(numpy.tri(s.length), 0, numpy.finfo('float32').min)[None, None])
    quick_gelu = lambda y: g.multiply(y, g.node('Sigmoid', [g.multiply(g.scalar(1.702), y)]))  # noqa: E731
    for _ in range(s.layers):
        x = g.block(x, s.hidden, s.heads, s.inner, causal, activation=quick_gelu)
    x = g.layer_norm(x, s.hidden)
    end = g.node('ArgMax', [ids], axis=1, keepdims=1)
    chosen = g.node('Expand', [g.unsqueeze(end, 2), g.integers(1, 1, s.hidden)])
    g.output(g.linear(g.squeeze(g.node('GatherElements', [x, chosen], axis=1), 1), s.hidden, 48, bias=False))


def apart_in(g, ids):
    """How far queries are from keys, in FP32, which Min and Max take in each opset, and the length."""
    length = g.node('Gather', [g.node('Shape', [ids]), g.constant(1, 'int64')], axis=0)
    places = g.node('Range', [g.constant(0, 'int64'), length, g.constant(1, 'int64')])
    apart = g.node('Sub', [g.unsqueeze(places, 1), g.unsqueeze(places, 0)])
    return g.node('Cast', [apart], to=TensorProto.FLOAT), length


def rms_norm(g, x, channels):
    """By the root mean square of the last dimension."""
    squares = g.last_mean(g.node('Pow', [x, g.scalar(2.0)]))
    inverse = g.node('Div', [g.scalar(1.0), g.node('Sqrt', [g.add(squares, g.scalar(1e-6))])])
    return g.multiply(g.initializer(1 + g.normal(channels, scale=0.1)), g.multiply(x, inverse))


def waves(g, ids, size, base):
    """Cosines and sines of positions for all channels of a head, [1, 1, length, size]."""
    length = g.node('Gather', [g.node('Shape', [ids]), g.constant(1, 'int64')], axis=0)
    places = g.node('Range', [g.constant(0, 'int64'), length, g.constant(1, 'int64')])
    places = g.node('Cast', [g.unsqueeze(places, 0, 1)], to=TensorProto.FLOAT)
    frequencies = (base ** (-numpy.arange(0, size, 2) / size)).astype('float32')
    angles = g.transpose(g.node('MatMul', [g.initializer(frequencies[None, :, None]), places]), 0, 2, 1)
    angles = g.concat([angles, angles], -1)
    return g.unsqueeze(g.node('Cos', [angles]), 1), g.unsqueeze(g.node('Sin', [angles]), 1)


def turned(g, x, cosines, sines, size):
    """Rotary embedding of halves, as transformers has it, of [batch, heads, length, size]."""
    def part(begin, end):
        return g.node('Slice', [x, g.integers(begin), g.integers(end), g.integers(3)])

    halves = g.concat([g.node('Neg', [part(size // 2, size)]), part(0, size // 2)], -1)
    return g.add(g.multiply(x, cosines), g.multiply(halves, sines))


@architecture({**LENGTH, 'local': 8}, {**BASE, 'layers': 22, 'inner': 1152, 'local': 128})
def modernbert(g, s):
    """Rotary embeddings, local attention but in every third layer, gated layers without biases, norms before."""
    ids, mask = g.tokens('batch', 'sequence'), g.tokens('batch', 'sequence', name='attention_mask')
    size, lowest = s.hidden // s.heads, float(numpy.finfo('float32').min)
    kept = g.node('Cast', [g.unsqueeze(mask, 1, 2)], to=TensorProto.BOOL)
    of_mask = g.node('Where', [kept, g.scalar(0.0), g.scalar(lowest)])
    apart = g.node('Abs', [apart_in(g, ids)[0]])
    near = g.node('Not', [g.node('Less', [g.scalar(s.local // 2), apart])])
    of_near = g.node('Where', [g.unsqueeze(near, 0, 1), of_mask, g.scalar(lowest)])
    norm = lambda x: g.node('LayerNormalization', [x, g.initializer(1 + g.normal(s.hidden, scale=0.1))],  # noqa: E731
                            axis=-1, epsilon=1e-5)
    both = [(*waves(g, ids, size, base), bias) for base, bias in ((160000.0, of_mask), (10000.0, of_near))]
    x = norm(g.table(VOCABULARY, s.hidden, ids))
    for layer in range(s.layers):
        cosines, sines, bias = both[layer % 3 > 0]
        qkv = g.reshape(g.linear(norm(x) if layer > 0 else x, s.hidden, 3 * s.hidden, bias=False), 0, -1, 3, s.heads, size)
        q, k, v = (g.squeeze(y, 2) for y in g.split(g.transpose(qkv, 0, 3, 2, 1, 4), 1, 1, 1, axis=2))
        q, k = (turned(g, y, cosines, sines, size) for y in (q, k))
        scores = g.node('Div', [g.node('MatMul', [q, g.transpose(k, 0, 1, 3, 2)]), g.scalar(size ** 0.5)])
        y = g.node('MatMul', [g.node('Softmax', [g.add(scores, bias)], axis=-1), v])
        y = g.reshape(g.transpose(y, 0, 2, 1, 3), 0, -1, s.hidden)
        x = g.add(x, g.linear(y, s.hidden, s.hidden, bias=False))
        inner, gate = g.split(g.linear(norm(x), s.hidden, 2 * s.inner, bias=False), s.inner, s.inner, axis=2)
        x = g.add(x, g.linear(g.multiply(g.gelu(inner), gate), s.inner, s.hidden, bias=False))
    g.output(norm(x))


@architecture({**LENGTH, 'groups': 2, 'size': 24}, {'hidden': 1024, 'layers': 28, 'heads': 16, 'groups': 8, 'size': 128,
                                                    'inner': 3072})
def qwen3(g, s):
    """A decoder as an encoder: causal, heads that share keys and values, queries and keys normalised by head."""
    ids, mask = g.tokens('batch', 'sequence'), g.tokens('batch', 'sequence', name='attention_mask')
    cosines, sines = waves(g, ids, s.size, 1e6)
    later = g.node('Less', [g.scalar(0.0), g.node('Neg', [apart_in(g, ids)[0]])])
    seen = g.node('And', [g.node('Not', [g.unsqueeze(later, 0, 1)]),
                          g.node('Cast', [g.unsqueeze(mask, 1, 2)], to=TensorProto.BOOL)])
    bias = g.node('Where', [seen, g.scalar(0.0), g.scalar(float(numpy.finfo('float32').min))])
    shape = g.node('Shape', [ids])
    batch, length = (g.node('Slice', [shape, g.integers(i), g.integers(i + 1)]) for i in range(2))
    several = g.concat([batch, g.integers(s.groups), g.integers(s.heads // s.groups), length, g.integers(s.size)], 0)

    def heads_of(x, heads):
        return g.reshape(g.linear(x, s.hidden, heads * s.size, bias=False), 0, -1, heads, s.size)

    def repeated(x):
        return g.reshape(g.node('Expand', [g.unsqueeze(x, 2), several]), 0, s.heads, -1, s.size)

    x = g.table(VOCABULARY, s.hidden, ids)
    for _ in range(s.layers):
        y = rms_norm(g, x, s.hidden)
        q, k = (g.transpose(rms_norm(g, heads_of(y, heads), s.size), 0, 2, 1, 3) for heads in (s.heads, s.groups))
        v = g.transpose(heads_of(y, s.groups), 0, 2, 1, 3)
        q, k = (turned(g, z, cosines, sines, s.size) for z in (q, k))
        scores = g.node('MatMul', [q, g.transpose(repeated(k), 0, 1, 3, 2)])
        scores = g.node('Div', [scores, g.scalar(s.size ** 0.5)])
        y = g.node('MatMul', [g.node('Softmax', [g.add(scores, bias)], axis=-1), repeated(v)])
        y = g.reshape(g.transpose(y, 0, 2, 1, 3), 0, -1, s.heads * s.size)
        x = g.add(x, g.linear(y, s.heads * s.size, s.hidden, bias=False))
        y = rms_norm(g, x, s.hidden)
        gate = g.silu(g.linear(y, s.hidden, s.inner, bias=False))
        x = g.add(x, g.linear(g.multiply(gate, g.linear(y, s.hidden, s.inner, bias=False)), s.inner, s.hidden, bias=False))
    g.output(rms_norm(g, x, s.hidden))


def t5_stack(g, s, ids, mask, bucket):
    """Norms without means, no scale of scores, and a bias by relative position beside the mask's."""
    bias = g.unsqueeze(g.transpose(g.table(s.buckets, s.heads, bucket), 2, 0, 1), 0)
    bias = g.add(bias, masked_scores(g, mask))
    x, size = g.table(VOCABULARY, s.hidden, ids), s.hidden // s.heads
    for _ in range(s.layers):
        y = rms_norm(g, x, s.hidden)
        q, k, v = (g.reshape(g.linear(y, s.hidden, s.hidden, bias=False), 0, -1, s.heads, size) for _ in range(3))
        q, k, v = g.transpose(q, 0, 2, 1, 3), g.transpose(k, 0, 2, 3, 1), g.transpose(v, 0, 2, 1, 3)
        y = g.node('MatMul', [g.node('Softmax', [g.add(g.node('MatMul', [q, k]), bias)], axis=-1), v])
        y = g.linear(g.reshape(g.transpose(y, 0, 2, 1, 3), 0, -1, s.hidden), s.hidden, s.hidden, bias=False)
        x = g.add(x, y)
        y = g.linear(g.relu(g.linear(rms_norm(g, x, s.hidden), s.hidden, s.inner, bias=False)), s.inner, s.hidden, bias=False)
        x = g.add(x, y)
    g.output(rms_norm(g, x, s.hidden))


@architecture({**LENGTH, 'buckets': 8})
def t5_encoder(g, s):
    """The relative positions of a fixed length are a constant."""
    ids, mask = g.tokens('batch', s.length), g.tokens('batch', s.length, name='attention_mask')
    apart = numpy.abs(numpy.arange(s.length)[:, None] - numpy.arange(s.length))
    bucket = numpy.minimum(numpy.log2(apart + 1), s.buckets - 1).astype('int64')
    t5_stack(g, s, ids, mask, g.constant(bucket, 'int64'))


@architecture({**LENGTH, 'buckets': 8})
def t5_encoder_any_length(g, s):
    """The relative positions are computed of the length."""
    ids, mask = g.tokens('batch', 'sequence'), g.tokens('batch', 'sequence', name='attention_mask')
    apart = g.node('Abs', [apart_in(g, ids)[0]])
    # Half a step more, so that no bucket's limit is a whole distance: logarithms differ in their last bits.
    log2 = g.multiply(g.node('Log', [g.add(apart, g.scalar(1.5))]), g.scalar(1 / numpy.log(2)))
    bucket = g.node('Min', [log2, g.scalar(s.buckets - 1)])
    t5_stack(g, s, ids, mask, g.node('Cast', [bucket], to=TensorProto.INT64))


def deberta_stack(g, s, ids, mask, by_query, by_key, span, sides):
    """Scores of contents with positions, both ways, moved to their places; keys left out by Where, twice."""
    x = g.layer_norm(g.table(VOCABULARY, s.hidden, ids), s.hidden)
    size = s.hidden // s.heads
    left_out = g.node('Not', [g.node('Cast', [g.unsqueeze(mask, 1, 2)], to=TensorProto.BOOL)])
    table = g.initializer(g.normal(2 * span, s.hidden))

    def at_places(tokens, index):
        places = g.transpose(g.reshape(g.linear(table, s.hidden, s.hidden), 2 * span, s.heads, size), 1, 2, 0)
        products = g.node('MatMul', [tokens, g.unsqueeze(places, 0)])
        shape = g.concat([g.node('Slice', [g.node('Shape', [products]), g.integers(0), g.integers(1)]),
                          g.integers(s.heads), sides, sides], 0)
        products = g.node('GatherElements', [products, g.node('Expand', [index, shape])], axis=3)
        return g.node('Div', [products, g.scalar((3 * size) ** 0.5)])

    for _ in range(s.layers):
        q, k, v = (g.transpose(g.reshape(g.linear(x, s.hidden, s.hidden), 0, -1, s.heads, size), 0, 2, 1, 3)
                   for _ in range(3))
        scaled = g.node('Div', [g.transpose(k, 0, 1, 3, 2), g.scalar((3 * size) ** 0.5)])
        placed = g.add(at_places(q, by_query), g.transpose(at_places(k, by_key), 0, 1, 3, 2))
        scores = g.add(g.node('MatMul', [q, scaled]), placed)
        scores = g.node('Where', [left_out, g.scalar(numpy.finfo('float32').min), scores])
        weights = g.node('Where', [left_out, g.scalar(0.0), g.node('Softmax', [scores], axis=-1)])
        y = g.node('MatMul', [weights, v])
        y = g.linear(g.reshape(g.transpose(y, 0, 2, 1, 3), 0, -1, s.hidden), s.hidden, s.hidden)
        x = g.layer_norm(g.add(x, y), s.hidden)
        y = g.linear(g.gelu(g.linear(x, s.hidden, s.inner)), s.inner, s.hidden)
        x = g.layer_norm(g.add(x, y), s.hidden)
    g.output(x)


@architecture(LENGTH)
def deberta(g, s):
    """The places of a fixed length are constants."""
    ids, mask = g.tokens('batch', s.length), g.tokens('batch', s.length, name='attention_mask')
    length = s.length
    apart = numpy.arange(length)[:, None] - numpy.arange(length)
    by_query, by_key = (g.constant(numpy.clip(places + length, 0, 2 * length - 1)[None, None], 'int64')
                        for places in (apart, -apart))
    deberta_stack(g, s, ids, mask, by_query, by_key, length, g.integers(length))


@architecture({**LENGTH, 'span': 16}, {**BASE, 'span': 256})
def deberta_any_length(g, s):
    """The places are computed of the length; those far apart share the table's ends."""
    ids, mask = g.tokens('batch', 'sequence'), g.tokens('batch', 'sequence', name='attention_mask')
    apart, length = apart_in(g, ids)

    def places(distance):
        kept = g.node('Max', [g.add(distance, g.scalar(s.span)), g.scalar(0.0)])
        kept = g.node('Min', [kept, g.scalar(2 * s.span - 1)])
        return g.unsqueeze(g.node('Cast', [kept], to=TensorProto.INT64), 0, 1)

    deberta_stack(g, s, ids, mask, places(apart), places(g.node('Neg', [apart])), s.span, g.unsqueeze(length, 0))


@architecture({**LENGTH, 'embedding': 24, 'bottleneck': 48})
def mobilebert(g, s):
    """Embeddings beside their neighbours', layers in bottlenecks, norms that only scale and shift."""
    def scale_and_shift(x, channels):
        x = g.multiply(x, g.initializer(1 + g.normal(channels, scale=0.1)))
        return g.add(x, g.initializer(g.normal(channels, scale=0.1)))

    ids = g.tokens('batch', s.length)
    x = g.table(VOCABULARY, s.embedding, ids)
    after = g.node('Pad', [g.node('Slice', [x, g.integers(1), g.integers(s.length), g.integers(1)]),
                           g.integers(0, 0, 0, 0, 1, 0)])
    before = g.node('Pad', [g.node('Slice', [x, g.integers(0), g.integers(s.length - 1), g.integers(1)]),
                            g.integers(0, 1, 0, 0, 0, 0)])
    x = g.linear(g.concat([after, x, before], 2), 3 * s.embedding, s.hidden)
    x = scale_and_shift(g.add(x, g.initializer(g.normal(s.length, s.hidden))), s.hidden)
    for _ in range(s.layers):
        y = scale_and_shift(g.linear(x, s.hidden, s.bottleneck), s.bottleneck)
        z = scale_and_shift(g.add(y, g.attend(y, s.bottleneck, s.heads)), s.bottleneck)
        for _ in range(2):
            w = g.linear(g.relu(g.linear(z, s.bottleneck, s.inner)), s.inner, s.bottleneck)
            z = scale_and_shift(g.add(z, w), s.bottleneck)
        x = scale_and_shift(g.add(x, g.linear(z, s.bottleneck, s.hidden)), s.hidden)
    g.output(x)


@architecture({**LENGTH, 'embedding': 24})
def albert(g, s):
    """All layers have the same weights."""
    ids, mask = g.tokens('batch', 'sequence'), g.tokens('batch', 'sequence', name='attention_mask')
    bias = masked_scores(g, mask)
    x = g.linear(g.layer_norm(g.table(VOCABULARY, s.embedding, ids), s.embedding), s.embedding, s.hidden)
    first, shared = None, len(g.initializers)
    for _ in range(s.layers):
        before = len(g.initializers)
        x = g.block_after(x, s.hidden, s.heads, s.inner, bias)
        made = [tensor.name for tensor in g.initializers[before:]]
        if first is None:
            first, shared = made, len(g.initializers)
            continue
        same = dict(zip(made, first))
        for node in g.nodes:
            node.input[:] = [same.get(name, name) for name in node.input]
        del g.initializers[shared:]
    g.output(g.node('Gather', [x, g.constant(0, 'int64')], axis=1))


@architecture(LENGTH)
def sentence_embedder(g, s):
    """The mean of the tokens that the mask leaves, divided by its length as torch.nn.functional.normalize does."""
    ids, mask = g.tokens('batch', 'sequence'), g.tokens('batch', 'sequence', name='attention_mask')
    bias = masked_scores(g, mask)
    x = g.layer_norm(g.table(VOCABULARY, s.hidden, ids), s.hidden)
    for _ in range(s.layers):
        x = g.block_after(x, s.hidden, s.heads, s.inner, bias)
    kept = g.node('Expand', [g.unsqueeze(mask, 2), g.node('Shape', [x])])
    kept = g.node('Cast', [kept], to=TensorProto.FLOAT)
    total = g.reduce('ReduceSum', g.multiply(x, kept), [1], since=13, keepdims=False)
    count = g.clip(g.reduce('ReduceSum', kept, [1], since=13, keepdims=False), 1e-9)
    mean = g.node('Div', [total, count])
    length = g.clip(g.reduce('ReduceL2', mean, [1], since=18), 1e-12)
    g.output(g.node('Div', [mean, g.node('Expand', [length, g.node('Shape', [mean])])]))
