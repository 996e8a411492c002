"""Makes the checkpoints of this folder: tiny encoders with random weights and what Hugging Face's models answer.

Not run by the tests, which read the results. It needs what wrote the real files of these formats:
    pip install torch 'transformers<5' safetensors compressed-tensors==0.14.0.1
    python make_checkpoints.py
Each folder holds config.json, model.safetensors, and expected.safetensors with a model's inputs and outputs.
"""

import pathlib
import shutil

import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.config import BitmaskConfig, Sparse24BitMaskConfig
from compressed_tensors.quantization import (QuantizationArgs, QuantizationConfig, QuantizationScheme,
                                             QuantizationStatus, apply_quantization_config)
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file
from transformers import (BertConfig, BertModel, DebertaV2Config, DebertaV2ForSequenceClassification,
                          DebertaV2Model, DistilBertConfig, DistilBertModel, ModernBertConfig,
                          ModernBertForSequenceClassification, ModernBertModel, MPNetConfig, MPNetModel,
                          RobertaConfig, PretrainedConfig, Qwen2Config, Qwen2Model, Qwen3Config, Qwen3Model,
                          RobertaModel)
from transformers.modeling_outputs import BaseModelOutputWithPooling

FOLDER = pathlib.Path(__file__).parent
HEADS, HEAD_SIZE, INNER, LAYERS, WORDS, POSITIONS = 2, 4, 12, 2, 20, 10
HIDDEN = HEADS * HEAD_SIZE

COMMON = {'vocab_size': WORDS, 'hidden_size': HIDDEN, 'num_attention_heads': HEADS, 'num_hidden_layers': LAYERS,
          'intermediate_size': INNER, 'max_position_embeddings': POSITIONS, 'attn_implementation': 'eager'}


def randomise(model):
    """Weights that matter: as they come from transformers, biases are 0 and every LayerNorm is alike."""
    for parameter in model.parameters():
        parameter.data = torch.randn_like(parameter) * (0.5 if parameter.dim() == 2 else 0.2)
        if parameter.dim() == 1:
            parameter.data += 0.5
    return model.eval()


def prune(model, two_four):
    for module in model.modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        weight = module.weight.data
        if two_four:
            weight.view(-1, 4).scatter_(1, weight.view(-1, 4).abs().topk(2, dim=1, largest=False).indices, 0)
        else:
            weight[torch.rand_like(weight) < 0.7] = 0
    return model


def draw_inputs(with_types):
    """Two sequences, of 7 and 4 tokens, the second padded with token 1, RoBERTa's padding."""
    ids = torch.tensor([[2, 5, 7, 11, 13, 17, 19], [3, 4, 6, 8, 1, 1, 1]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]])
    inputs = {'input_ids': ids, 'attention_mask': mask}
    if with_types:
        inputs['token_type_ids'] = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 0, 0, 0]])
    return inputs


def expected(model, with_types, folder):
    inputs = draw_inputs(with_types)
    with torch.no_grad():
        answer = model.base_model(**inputs)
        tensors = dict(inputs, last_hidden_state=answer.last_hidden_state)
        if 'pooler_output' in answer:
            tensors['pooler_output'] = answer.pooler_output
        if model.base_model is not model:
            tensors['logits'] = model(**inputs).logits
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / 'expected.safetensors')


def quantise(model, weights, activations, with_types=True):
    """Linear layers of whole numbers, calibrated on the inputs that `expected` is of. The model computes with them."""
    scheme = QuantizationScheme(targets=['Linear'], weights=weights, input_activations=activations)
    config = QuantizationConfig(config_groups={'group_0': scheme}, format='int-quantized')
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    reads = {}
    hooks = [module.register_forward_pre_hook(lambda module, args: reads.__setitem__(module, args[0]))
             for module in linear]
    with torch.no_grad():
        model(**draw_inputs(with_types))
    for hook in hooks:
        hook.remove()
    apply_quantization_config(model, config)
    for module in linear:
        by_row = weights.strategy == 'channel'
        low, high = (torch.aminmax(module.weight.data, dim=1, keepdim=True) if by_row else
                     (bound.reshape(1) for bound in torch.aminmax(module.weight.data)))
        for name, value in zip(('weight_scale', 'weight_zero_point'), calculate_qparams(low, high, weights)):
            getattr(module, name).data.copy_(value)
        if activations is not None and not activations.dynamic:
            low, high = (bound.reshape(1) for bound in torch.aminmax(reads[module]))
            for name, value in zip(('input_scale', 'input_zero_point'), calculate_qparams(low, high, activations)):
                getattr(module, name).data.copy_(value)
        module.quantization_status = QuantizationStatus.FROZEN
    return config


def save(name, model, with_types=True, compression=None, quantisation=None):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    expected(model, with_types, folder)
    model.config.save_pretrained(folder)
    state = model.state_dict()
    if compression is not None or quantisation is not None:
        compressor = ModelCompressor(sparsity_config=compression, quantization_config=quantisation)
        state = compressor.compress(model)
        compressor.update_config(folder)
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, folder / 'model.safetensors',
              metadata={'format': 'pt'})


def main():
    torch.manual_seed(4)
    bert = randomise(BertModel(BertConfig(**COMMON, type_vocab_size=2)))
    bert.prune_heads({1: [0]})
    save('bert', bert)
    save('bert_bitmask', prune(randomise(BertModel(BertConfig(**COMMON))), two_four=False),
         compression=BitmaskConfig(format='sparse-bitmask', targets=['Linear'], sparsity_structure='unstructured'))
    save('bert_24_bitmask', prune(randomise(BertModel(BertConfig(**COMMON))), two_four=True),
         compression=Sparse24BitMaskConfig(format='sparse-24-bitmask', targets=['Linear'], sparsity_structure='2:4'))
    save('roberta', randomise(RobertaModel(RobertaConfig(**COMMON, type_vocab_size=1, hidden_act='gelu_new'))), False)
    distil = DistilBertConfig(vocab_size=WORDS, dim=HIDDEN, n_heads=HEADS, n_layers=LAYERS, hidden_dim=INNER,
                              max_position_embeddings=POSITIONS, activation='relu', attn_implementation='eager')
    save('distilbert', randomise(DistilBertModel(distil)), False)
    save_quantised(distil)
    mpnet = MPNetConfig(**COMMON, pad_token_id=1)
    save('mpnet', randomise(MPNetModel(mpnet)), False)
    save_deberta()
    save_modernbert()
    save_nomic_bert()
    save_qwen()


def save_quantised(distil):
    """By scale, and by token with zeros left out; and weights alone."""
    by_row, at_once = QuantizationArgs(strategy='channel'), QuantizationArgs(strategy='tensor')
    bert = randomise(BertModel(BertConfig(**COMMON)))
    save('bert_int8', bert, quantisation=quantise(bert, by_row, QuantizationArgs(strategy='tensor', symmetric=False)))
    bert = prune(randomise(BertModel(BertConfig(**COMMON))), two_four=False)
    by_token = quantise(bert, by_row, QuantizationArgs(strategy='token', dynamic=True))
    save('bert_int8_bitmask', bert, quantisation=by_token,
         compression=BitmaskConfig(format='sparse-bitmask', targets=['Linear'], sparsity_structure='unstructured'))
    distilbert = randomise(DistilBertModel(distil))
    save('distilbert_int8', distilbert, False, quantisation=quantise(distilbert, at_once, None, with_types=False))


def save_deberta():
    """Sequences are longer than the places that are no buckets. One has what v2 leaves out, the other is as v3."""
    torch.manual_seed(6)
    common = COMMON | {'type_vocab_size': 0, 'relative_attention': True, 'position_biased_input': False}
    v2 = DebertaV2Config(**common | {'type_vocab_size': 2}, max_relative_positions=3, pos_att_type='p2c|c2p',
                         embedding_size=6)
    save('deberta_v2', randomise(DebertaV2Model(v2)))
    v3 = DebertaV2Config(**common, position_buckets=4, share_att_key=True, norm_rel_ebd='layer_norm',
                         pos_att_type=['p2c', 'c2p'], num_labels=3)
    model = randomise(DebertaV2ForSequenceClassification(v3))
    v3.architectures = [type(model).__name__]
    save('deberta_v3_classifier', model, False)


def save_modernbert():
    """Sequences are longer than the window of 5 tokens. One has what is left out by default."""
    torch.manual_seed(5)
    special = {name: 1 for name in ('pad_token_id', 'bos_token_id', 'eos_token_id', 'cls_token_id', 'sep_token_id')}
    common = COMMON | special | {'num_hidden_layers': 4, 'local_attention': 5, 'reference_compile': False}
    save('modernbert', randomise(ModernBertModel(ModernBertConfig(**common))), False)
    biases = {name: True for name in ('norm_bias', 'attention_bias', 'mlp_bias', 'classifier_bias')}
    config = ModernBertConfig(**common | biases | {'global_attn_every_n_layers': 2}, num_labels=3,
                              global_rope_theta=100.0, local_rope_theta=None, hidden_activation='gelu_new',
                              classifier_pooling='mean', classifier_activation='silu')
    model = randomise(ModernBertForSequenceClassification(config))
    config.architectures = [type(model).__name__]
    save('modernbert_classifier', model, False)


class NomicBertConfig(PretrainedConfig):
    """The fields by which Nomic's code, which comes with its models, is told what to compute."""
    model_type = 'nomic_bert'


class NomicBert(torch.nn.Module):
    """A model by its definition: what is particular is BERT's, but for positions, perceptrons and names."""

    def __init__(self, config, pooler):
        super().__init__()
        self.config, size, inner = config, config.n_embd, config.n_inner
        self.gated = config.activation_function == 'swiglu'

        def linear(inputs, outputs, bias):
            return torch.nn.Linear(inputs, outputs, bias=bias)

        def norm():
            return torch.nn.LayerNorm(size, eps=config.layer_norm_epsilon)

        def layer():
            perceptron = {name: linear(size, inner, config.mlp_fc1_bias)
                          for name in (('fc11', 'fc12') if self.gated else ('fc1',))}
            parts = {'attn': {'Wqkv': linear(size, 3 * size, config.qkv_proj_bias),
                              'out_proj': linear(size, size, config.qkv_proj_bias)},
                     'mlp': perceptron | {'fc2': linear(inner, size, config.mlp_fc2_bias)}}
            return torch.nn.ModuleDict({name: torch.nn.ModuleDict(part) for name, part in parts.items()} |
                                       {'norm1': norm(), 'norm2': norm()})

        self.embeddings = torch.nn.ModuleDict({'word_embeddings': torch.nn.Embedding(config.vocab_size, size),
                                               'token_type_embeddings': torch.nn.Embedding(2, size)})
        self.emb_ln = norm()
        self.encoder = torch.nn.ModuleDict({'layers': torch.nn.ModuleList(layer() for _ in range(config.n_layer))})
        if pooler:
            self.pooler = torch.nn.ModuleDict({'dense': linear(size, size, True)})

    @property
    def base_model(self):
        return self

    def rotate(self, x):
        """x [batch, sequence, heads, size]: pairs of numbers as complex ones, turned by angles of positions."""
        length, half = x.shape[1], x.shape[3] // 2
        interleaved = self.config.rotary_emb_interleaved
        pairs = x.unflatten(3, (half, 2)) if interleaved else x.unflatten(3, (2, half)).transpose(3, 4)
        base, factor = self.config.rotary_emb_base, self.config.rotary_scaling_factor
        if factor is not None and length > self.config.max_trained_positions:
            ratio = factor * length / self.config.max_trained_positions - (factor - 1)
            base *= ratio ** (half / (half - 1))
        periods = base ** (torch.arange(half) / half)
        angles = torch.arange(length)[:, None] / periods
        turned = torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(angles), angles)[:, None]
        pairs = torch.view_as_real(turned)
        return (pairs if interleaved else pairs.transpose(3, 4)).flatten(3)

    def attention(self, part, x, mask):
        heads = self.config.n_head
        query, key, value = (of.unflatten(2, (heads, -1)) for of in part['Wqkv'](x).chunk(3, dim=2))
        query, key = self.rotate(query), self.rotate(key)
        scores = torch.einsum('bqhi,bkhi->bhqk', query, key) / query.shape[3] ** 0.5
        scores = scores.masked_fill(mask[:, None, None] == 0, torch.finfo(scores.dtype).min)
        return part['out_proj'](torch.einsum('bhqk,bkhi->bqhi', scores.softmax(3), value).flatten(2))

    def perceptron(self, part, x):
        if self.gated:
            return part['fc2'](part['fc11'](x) * torch.nn.functional.silu(part['fc12'](x)))
        return part['fc2'](torch.nn.functional.gelu(part['fc1'](x)))

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.embeddings['word_embeddings'](input_ids)
        x = self.emb_ln(x + self.embeddings['token_type_embeddings'](token_type_ids))
        for layer in self.encoder['layers']:
            x = layer['norm1'](x + self.attention(layer['attn'], x, attention_mask))
            x = layer['norm2'](x + self.perceptron(layer['mlp'], x))
        pooled = self.pooler['dense'](x[:, 0]).tanh() if hasattr(self, 'pooler') else None
        return BaseModelOutputWithPooling(last_hidden_state=x, pooler_output=pooled)


def save_nomic_bert():
    """As those for texts are, and with what no published one has."""
    torch.manual_seed(6)
    common = {'vocab_size': WORDS, 'n_embd': HIDDEN, 'n_head': HEADS, 'n_layer': LAYERS, 'n_inner': INNER,
              'layer_norm_epsilon': 1e-12, 'rotary_emb_fraction': 1.0, 'rotary_emb_base': 1000}
    plain = {name: False for name in ('qkv_proj_bias', 'mlp_fc1_bias', 'mlp_fc2_bias', 'rotary_emb_interleaved')}
    config = NomicBertConfig(**common, **plain, activation_function='swiglu', rotary_scaling_factor=None)
    save('nomic_bert', randomise(NomicBert(config, pooler=False)))
    other = {name: True for name in plain}
    config = NomicBertConfig(**common, **other, activation_function='gelu', rotary_scaling_factor=2,
                             max_trained_positions=5)
    save('nomic_bert_interleaved', randomise(NomicBert(config, pooler=True)))


def save_qwen():
    """Two heads of queries share one of keys and values."""
    torch.manual_seed(7)
    common = COMMON | {'num_key_value_heads': 1, 'use_cache': False}
    save('qwen2', randomise(Qwen2Model(Qwen2Config(**common))), False)
    save('qwen3', randomise(Qwen3Model(Qwen3Config(**common, head_dim=6, rope_theta=1e6))), False)


if __name__ == '__main__':
    main()
