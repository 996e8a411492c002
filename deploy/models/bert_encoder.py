"""An encoder of BERT's kind (Devlin et al., 2018) in PyTorch whose parameters have the names of BERT's checkpoints.

Word embeddings may hold only some rows of the vocabulary: token numbers are then rows. Embeddings are never trained.
"""

import torch
from torch import nn
from torch.nn import functional as F

ACTIVATIONS = {'gelu': F.gelu, 'gelu_new': lambda x: F.gelu(x, approximate='tanh'),
               'gelu_pytorch_tanh': lambda x: F.gelu(x, approximate='tanh'), 'relu': F.relu, 'silu': F.silu}
LINEARS = ('attention.self.query', 'attention.self.key', 'attention.self.value', 'attention.output.dense',
           'intermediate.dense', 'output.dense')


def attention(q, k, v, mask):
    if hasattr(F, 'scaled_dot_product_attention'):  # since PyTorch 2.0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    return torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(3) @ v


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each with a residual and LayerNorm after it.

    Args:
      sizes: (outputs, inputs) of each of LINEARS.
      config: of the checkpoint.
    """

    def __init__(self, sizes, config):
        super().__init__()
        hidden, epsilon = config['hidden_size'], config['layer_norm_eps']
        self.head_size = hidden // config['num_attention_heads']
        self.activation = ACTIVATIONS[config['hidden_act']]
        self.linears = nn.ModuleDict(
            {name.replace('.', '/'): nn.Linear(inputs, outputs) for name, (outputs, inputs) in sizes.items()})
        self.attention_norm = nn.LayerNorm(hidden, epsilon)
        self.output_norm = nn.LayerNorm(hidden, epsilon)

    def linear(self, name):
        return self.linears[name.replace('.', '/')]

    def forward(self, x, mask):
        """Returns (what attention adds up to, the layer's output), both [batch, length, hidden]."""
        batch, length, _ = x.shape
        q, k, v = (self.linear(f'attention.self.{part}')(x).view(batch, length, -1, self.head_size).transpose(1, 2)
                   for part in ('query', 'key', 'value'))
        context = attention(q, k, v, mask)
        context = context.transpose(1, 2).reshape(batch, length, -1)
        attended = self.attention_norm(x + self.linear('attention.output.dense')(context))
        inner = self.activation(self.linear('intermediate.dense')(attended))
        return attended, self.output_norm(attended + self.linear('output.dense')(inner))


class Encoder(nn.Module):
    """The layers of a checkpoint.

    Args:
      tensors: by BERT's names, of which those under encoder.layer are read.
      config: hidden_size, num_attention_heads, hidden_act, layer_norm_eps, as in BERT's config.json.
    """

    def __init__(self, tensors, config):
        super().__init__()
        if config['hidden_act'] not in ACTIVATIONS:
            raise ValueError(f'config.json: hidden_act is {config["hidden_act"]!r}; only {", ".join(ACTIVATIONS)} can be '
                             'trained')
        count = 1 + max(int(name.split('.')[2]) for name in tensors if name.startswith('encoder.layer.'))
        self.layers = nn.ModuleList(
            Layer({name: tensors[f'encoder.layer.{i}.{name}.weight'].shape for name in LINEARS}, config)
            for i in range(count))
        with torch.no_grad():
            for name, parameter in self.checkpoint_names():
                parameter.copy_(torch.as_tensor(tensors[name]))

    def forward(self, x, mask):
        """Returns the states of every layer, two each, from embeddings [batch, length, hidden].

        Args:
          mask: bool [batch, length], false at padding, which nothing attends to.
        """
        states = []
        for layer in self.layers:
            attended, x = layer(x, mask[:, None, None, :])
            states += [attended, x]
        return states

    def checkpoint_names(self):
        """Yields (name in the checkpoint, parameter) of every parameter."""
        for i, layer in enumerate(self.layers):
            modules = {name: layer.linear(name) for name in LINEARS}
            modules |= {'attention.output.LayerNorm': layer.attention_norm, 'output.LayerNorm': layer.output_norm}
            for name, module in modules.items():
                for kind in ('weight', 'bias'):
                    yield f'encoder.layer.{i}.{name}.{kind}', getattr(module, kind)

    def linear_weights(self):
        """Returns the weights to prune: {name in the checkpoint: parameter}."""
        return {name: parameter for name, parameter in self.checkpoint_names() if parameter.dim() == 2}


class Embeddings(nn.Module):
    """Sums of word, position and type embeddings (type 0), normalised; frozen. Padding may lie beyond the positions."""

    def __init__(self, tensors, config, longest=0):
        super().__init__()

        def tensor(name):
            return torch.as_tensor(tensors[f'embeddings.{name}']).float()

        positions = tensor('position_embeddings.weight') + tensor('token_type_embeddings.weight')[0]
        self.register_buffer('words', tensor('word_embeddings.weight'))
        self.register_buffer('positions', F.pad(positions, (0, 0, 0, max(0, longest - len(positions)))))
        self.register_buffer('scale', tensor('LayerNorm.weight'))
        self.register_buffer('shift', tensor('LayerNorm.bias'))
        self.epsilon = config['layer_norm_eps']

    @torch.no_grad()
    def forward(self, tokens):
        x = self.words[tokens] + self.positions[:tokens.shape[1]]
        return F.layer_norm(x, x.shape[-1:], self.scale, self.shift, self.epsilon)


def pool(states, mask, pooling='mean'):
    """Returns the sentence embeddings [batch, hidden], of length 1.

    Args:
      pooling: 'mean' of the states at unmasked positions, or 'cls', the first one.
    """
    if pooling == 'cls':
        return F.normalize(states[:, 0], dim=1)
    weights = mask[:, :, None].to(states.dtype)
    return F.normalize((states * weights).sum(1) / weights.sum(1), dim=1)
