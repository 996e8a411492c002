"""A BERT encoder (Devlin et al., 2018) in PyTorch whose parameters have the names of Hugging Face's checkpoints.

Word embeddings may hold only some rows of the vocabulary: token numbers are then rows. Embeddings are never trained.
"""

import torch
from torch import nn
from torch.nn import functional as F

HEADS = 12
LAYER_NORM_EPSILON = 1e-12
LINEARS = ('attention.self.query', 'attention.self.key', 'attention.self.value', 'attention.output.dense',
           'intermediate.dense', 'output.dense')


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each with a residual and LayerNorm after it."""

    def __init__(self, hidden, intermediate):
        super().__init__()
        sizes = {'intermediate.dense': (hidden, intermediate), 'output.dense': (intermediate, hidden)}
        self.linears = nn.ModuleDict(
            {name.replace('.', '/'): nn.Linear(*sizes.get(name, (hidden, hidden))) for name in LINEARS})
        self.attention_norm = nn.LayerNorm(hidden, LAYER_NORM_EPSILON)
        self.output_norm = nn.LayerNorm(hidden, LAYER_NORM_EPSILON)

    def linear(self, name):
        return self.linears[name.replace('.', '/')]

    def forward(self, x, mask):
        """Returns (what attention adds up to, the layer's output), both [batch, length, hidden]."""
        batch, length, hidden = x.shape
        q, k, v = (self.linear(f'attention.self.{part}')(x).view(batch, length, HEADS, -1).transpose(1, 2)
                   for part in ('query', 'key', 'value'))
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        context = context.transpose(1, 2).reshape(batch, length, hidden)
        attended = self.attention_norm(x + self.linear('attention.output.dense')(context))
        inner = F.gelu(self.linear('intermediate.dense')(attended))
        return attended, self.output_norm(attended + self.linear('output.dense')(inner))


class Encoder(nn.Module):
    """The layers of a checkpoint: `tensors` by Hugging Face's names, of which those under encoder.layer are read."""

    def __init__(self, tensors):
        super().__init__()
        count = 1 + max(int(name.split('.')[2]) for name in tensors if name.startswith('encoder.layer.'))
        intermediate, hidden = tensors['encoder.layer.0.intermediate.dense.weight'].shape
        self.layers = nn.ModuleList(Layer(hidden, intermediate) for _ in range(count))
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
    """Sums of word, position and type embeddings (type 0), normalised; frozen."""

    def __init__(self, tensors):
        super().__init__()

        def tensor(name):
            return torch.as_tensor(tensors[f'embeddings.{name}']).float()

        self.register_buffer('words', tensor('word_embeddings.weight'))
        self.register_buffer('positions', tensor('position_embeddings.weight') + tensor('token_type_embeddings.weight')[0])
        self.register_buffer('scale', tensor('LayerNorm.weight'))
        self.register_buffer('shift', tensor('LayerNorm.bias'))

    @torch.no_grad()
    def forward(self, tokens):
        x = self.words[tokens] + self.positions[:tokens.shape[1]]
        return F.layer_norm(x, x.shape[-1:], self.scale, self.shift, LAYER_NORM_EPSILON)


def pool(states, mask):
    """Returns the sentence embeddings [batch, hidden]: the mean of the states at unmasked positions, of length 1."""
    weights = mask[:, :, None].to(states.dtype)
    return F.normalize((states * weights).sum(1) / weights.sum(1), dim=1)
