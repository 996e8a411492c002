"""Writes a BERT encoder as an ONNX model, with the operators that PyTorch's exporter uses, from its tensors alone.

Inputs input_ids, attention_mask and token_type_ids, int64 [batch, sequence]; output last_hidden_state, float32
[batch, sequence, hidden]. Opset 17. Zeros in weights are stored like any other value.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
ACTIVATIONS = {'gelu': 'gelu', 'gelu_new': 'tanh_gelu', 'gelu_pytorch_tanh': 'tanh_gelu', 'relu': 'relu'}
INPUTS = ('input_ids', 'attention_mask', 'token_type_ids')


class GraphWriter:
    """Nodes and initializers in the order in which they are added; every method returns the name of a value."""

    def __init__(self):
        self.nodes, self.initializers = [], {}

    def constant(self, name, array):
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def node(self, operator, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name


class EncoderWriter(GraphWriter):
    """The parts of the encoder, from tensors under Hugging Face's names."""

    def __init__(self, tensors, config):
        super().__init__()
        self.tensors, self.config = tensors, config
        self.hidden, self.heads = config['hidden_size'], config['num_attention_heads']

    def tensor(self, name):
        return self.constant(name, self.tensors[name])

    def scalar(self, name, value):
        return self.constant(name, np.array(value, np.float32))

    def layer_norm(self, x, prefix):
        return self.node('LayerNormalization', x, self.tensor(f'{prefix}.weight'), self.tensor(f'{prefix}.bias'),
                         name=f'{prefix}.output', axis=-1, epsilon=self.config['layer_norm_eps'])

    def linear(self, x, prefix):
        """A linear layer: its weight is stored as [inputs, outputs], as exporters do."""
        weight = self.constant(f'{prefix}.weight', self.tensors[f'{prefix}.weight'].T)
        product = self.node('MatMul', x, weight, name=f'{prefix}.product')
        return self.node('Add', product, self.tensor(f'{prefix}.bias'), name=f'{prefix}.output')

    def embeddings(self):
        """The normalised sum of word, type and position embeddings."""
        positions = np.arange(self.config['max_position_embeddings'], dtype=np.int64)[None]
        shape = self.node('Shape', 'input_ids', name='embeddings.shape')
        length = self.node('Gather', shape, self.constant('one', np.array([1], np.int64)), name='embeddings.length')
        ids = self.node('Slice', self.constant('embeddings.position_ids', positions),
                        self.constant('zero', np.array([0], np.int64)), length, 'one', name='embeddings.positions')
        parts = [self.node('Gather', self.tensor(f'embeddings.{kind}_embeddings.weight'), which,
                           name=f'embeddings.{kind}_embeddings.output')
                 for kind, which in (('word', 'input_ids'), ('token_type', 'token_type_ids'), ('position', ids))]
        typed = self.node('Add', parts[0], parts[1], name='embeddings.typed')
        total = self.node('Add', typed, parts[2], name='embeddings.total')
        return self.layer_norm(total, 'embeddings.LayerNorm')

    def additive_mask(self):
        """0 where a position may be attended to, the lowest float32 where not: [batch, 1, 1, sequence]."""
        axes = self.constant('mask.axes', np.array([1, 2], np.int64))
        wide = self.node('Unsqueeze', 'attention_mask', axes, name='mask.unsqueezed')
        numbers = self.node('Cast', wide, name='mask.float', to=TensorProto.FLOAT)
        absent = self.node('Sub', self.scalar('mask.one', 1.0), numbers, name='mask.absent')
        return self.node('Mul', absent, self.scalar('mask.lowest', np.finfo(np.float32).min), name='mask.additive')

    def attention(self, x, mask, prefix):
        size = self.hidden // self.heads
        split = self.constant('heads.shape', np.array([0, 0, self.heads, size], np.int64))

        def heads(part, permutation):
            projected = self.node('Reshape', self.linear(x, f'{prefix}.self.{part}'), split,
                                  name=f'{prefix}.self.{part}.heads')
            return self.node('Transpose', projected, name=f'{prefix}.self.{part}.transposed', perm=permutation)

        query, key, value = heads('query', [0, 2, 1, 3]), heads('key', [0, 2, 3, 1]), heads('value', [0, 2, 1, 3])
        scores = self.node('MatMul', query, key, name=f'{prefix}.self.scores')
        scores = self.node('Div', scores, self.scalar('heads.scale', np.sqrt(size)), name=f'{prefix}.self.scaled')
        scores = self.node('Add', scores, mask, name=f'{prefix}.self.masked')
        shares = self.node('Softmax', scores, name=f'{prefix}.self.softmax', axis=-1)
        context = self.node('MatMul', shares, value, name=f'{prefix}.self.context')
        context = self.node('Transpose', context, name=f'{prefix}.self.context.transposed', perm=[0, 2, 1, 3])
        joined = self.constant('hidden.shape', np.array([0, 0, self.hidden], np.int64))
        context = self.node('Reshape', context, joined, name=f'{prefix}.self.output')
        attended = self.linear(context, f'{prefix}.output.dense')
        attended = self.node('Add', attended, x, name=f'{prefix}.output.residual')
        return self.layer_norm(attended, f'{prefix}.output.LayerNorm')

    def gelu(self, x, prefix):
        scaled = self.node('Div', x, self.scalar('gelu.sqrt2', np.sqrt(2)), name=f'{prefix}.gelu.scaled')
        erf = self.node('Erf', scaled, name=f'{prefix}.gelu.erf')
        shifted = self.node('Add', erf, self.scalar('gelu.one', 1.0), name=f'{prefix}.gelu.shifted')
        product = self.node('Mul', x, shifted, name=f'{prefix}.gelu.product')
        return self.node('Mul', product, self.scalar('gelu.half', 0.5), name=f'{prefix}.gelu.output')

    def tanh_gelu(self, x, prefix):
        square = self.node('Mul', x, x, name=f'{prefix}.gelu.square')
        scaled = self.node('Mul', square, self.scalar('gelu.cubic', 0.044715), name=f'{prefix}.gelu.scaled')
        factor = self.node('Add', scaled, self.scalar('gelu.one', 1.0), name=f'{prefix}.gelu.factor')
        sum_of_powers = self.node('Mul', x, factor, name=f'{prefix}.gelu.sum')
        inner = self.node('Mul', sum_of_powers, self.scalar('gelu.root', np.sqrt(2 / np.pi)), name=f'{prefix}.gelu.inner')
        shifted = self.node('Add', self.node('Tanh', inner, name=f'{prefix}.gelu.tanh'), 'gelu.one',
                            name=f'{prefix}.gelu.shifted')
        product = self.node('Mul', x, shifted, name=f'{prefix}.gelu.product')
        return self.node('Mul', product, self.scalar('gelu.half', 0.5), name=f'{prefix}.gelu.output')

    def relu(self, x, prefix):
        return self.node('Relu', x, name=f'{prefix}.relu.output')

    def feed_forward(self, x, prefix):
        activation = getattr(self, ACTIVATIONS[self.config.get('hidden_act', 'gelu')])
        inner = activation(self.linear(x, f'{prefix}.intermediate.dense'), f'{prefix}.intermediate')
        outer = self.node('Add', self.linear(inner, f'{prefix}.output.dense'), x, name=f'{prefix}.output.residual')
        return self.layer_norm(outer, f'{prefix}.output.LayerNorm')


def make_model(tensors, config):
    """Returns the model; raises ValueError for a config.json that says something else than this file writes."""
    for key, known in (('model_type', ('bert',)), ('hidden_act', ACTIVATIONS), ('position_embedding_type', ('absolute',))):
        if config.get(key, next(iter(known))) not in known:
            raise ValueError(f'config.json: {key} is {config[key]!r}; only {", ".join(known)} can be written')
    writer = EncoderWriter(tensors, config)
    x, mask = writer.embeddings(), writer.additive_mask()
    for layer in range(config['num_hidden_layers']):
        prefix = f'encoder.layer.{layer}'
        x = writer.feed_forward(writer.attention(x, mask, f'{prefix}.attention'), prefix)
    writer.nodes[-1].output[0] = 'last_hidden_state'
    shape = ['batch', 'sequence']
    graph = helper.make_graph(
        writer.nodes, 'encoder',
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in INPUTS],
        [helper.make_tensor_value_info('last_hidden_state', TensorProto.FLOAT, [*shape, writer.hidden])],
        list(writer.initializers.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', OPSET)], ir_version=IR_VERSION,
                             producer_name='swizzle')


def write(path, tensors, config):
    model = make_model(tensors, config)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
