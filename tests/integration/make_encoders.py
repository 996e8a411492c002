"""Small Transformer encoders with drawn weights, in the spellings that exporters of BERT and its kin write.

    make_encoders.py DIRECTORY    writes each of ENCODERS as DIRECTORY/NAME.onnx
"""

import pathlib
import sys
import zlib

import onnx

from encoder_graph import POSITIONS, TYPES, VOCABULARY, EncoderGraph  # noqa: F401, the former are also their users'

ENCODERS = {}  # name -> spelling
DEFAULT = {
    'opset': 14, 'hidden': 32, 'heads': 4, 'layers': 2, 'sparsity': 0.0, 'inner': 64,
    'layer_norm': 'written', 'gelu': 'divided', 'attention': 'bert', 'mask': 'ten_thousand', 'shapes': 'chain',
    'types': 'input', 'positions': 'slice', 'fixed': None, 'head': 'hidden',
    'heads_left': None,  # of each layer, where heads were pruned
    'cell': (1, 1),  # outputs and inputs of a weight that are zero together
    'bias_first': False,
    'pairs': None,  # a constant mask of pairs of tokens, which needs fixed sizes and no mask of tokens
}


def encoder(name, **spelling):
    unknown = spelling.keys() - DEFAULT.keys()
    assert not unknown and name not in ENCODERS, (name, unknown)
    ENCODERS[name] = DEFAULT | spelling


def build(name):
    """The model of that name. Its weights depend on what it computes alone, not on how it is spelled."""
    spelling = ENCODERS[name]
    drawn = [spelling[key] for key in ('hidden', 'heads', 'layers', 'sparsity', 'inner', 'heads_left')]
    g = EncoderGraph(spelling, zlib.crc32(repr(drawn).encode()))
    g.encode()
    return g.finish(name)


for OPSET in (11, 12, 13, 14, 17, 18, 20, 23):
    encoder(f'bert_opset{OPSET}', opset=OPSET, layer_norm='op' if OPSET >= 17 else 'written',
            gelu='op' if OPSET >= 20 else 'divided', head='pooler')
    encoder(f'bert_opset{OPSET}_written', opset=OPSET, shapes='constant', mask='lowest', positions='range',
            bias_first=True)
for GELU in ('half_first', 'half_inside', 'half_of_factor', 'multiplied', 'tanh', 'tanh_of_product', 'quick', 'silu',
             'relu'):
    encoder(f'gelu_{GELU}', gelu=GELU)
encoder('gelu_op_tanh', opset=20, gelu='op_tanh')
for NORM in ('reciprocal', 'power'):
    encoder(f'norm_{NORM}', layer_norm=NORM)
for ATTENTION in ('multiplied', 'k_twice', 'scaled_both', 'scaled_query', 'qkv', 'qkv_unbound'):
    encoder(f'attention_{ATTENTION}', attention=ATTENTION)
    encoder(f'attention_{ATTENTION}_opset11', attention=ATTENTION, opset=11)
encoder('attention_flat', attention='flat', mask='none')
for ATTENTION in ('op3', 'op4'):
    for MASK in ('bool', 'lowest', 'expanded', 'none'):
        encoder(f'attention_{ATTENTION}_{MASK}', opset=23, attention=ATTENTION, mask=MASK, layer_norm='op', gelu='op')
for MASK in ('lowest', 'where', 'expanded', 'scores_where', 'scores_equal', 'ones', 'none'):
    encoder(f'mask_{MASK}', mask=MASK)
for SHAPES in ('constant', 'chain'):
    for TYPES_FROM in ('zeros', 'buffer', 'none'):
        encoder(f'types_{TYPES_FROM}_{SHAPES}', types=TYPES_FROM, shapes=SHAPES)
for PLACE in ('range', 'input', 'table', 'past_padding', 'masked'):
    encoder(f'positions_{PLACE}', positions=PLACE)
for HEAD in ('classifier', 'probabilities', 'tokens', 'answers', 'mean', 'mean_of_all'):
    encoder(f'head_{HEAD}', head=HEAD)
    encoder(f'head_{HEAD}_opset11', head=HEAD, opset=11)
encoder('fixed', fixed=(1, 32), head='pooler')  # as long as the hidden size
encoder('fixed_batch', fixed=(2, 8), mask='expanded', head='pooler')
encoder('fixed_mean', fixed=(1, 8), head='mean', positions='range')
encoder('fixed_k_twice', fixed=(3, 8), attention='k_twice', types='zeros', positions='table')
encoder('pruned_heads', heads_left=(3, 1))
encoder('pruned_heads_qkv', heads_left=(1, 2), attention='qkv')
for PAIRS in ('added', 'heads', 'buffer', 'triangle', 'positions'):
    encoder(f'pairs_{PAIRS}', fixed=('batch', 37), mask='none', pairs=PAIRS, opset=17, positions='table')
encoder('pairs_vectors', fixed=('batch', 40), mask='none', pairs='vectors', opset=17, heads=2, hidden=128)
encoder('pairs_of_one_batch', fixed=(2, 20), mask='none', pairs='positions', attention='qkv', head='pooler')
for SPARSITY in (0.5, 0.9):
    encoder(f'sparse_{int(100 * SPARSITY)}', sparsity=SPARSITY, hidden=64, inner=128, head='pooler')
encoder('fused', layer_norm='fused', gelu='bias_gelu', attention='packed', positions='fused', head='pooler', opset=17)
encoder('fused_fast', layer_norm='fused', gelu='fast_gelu', attention='packed', mask='none', opset=12)
encoder('fused_gelu', layer_norm='fused', gelu='com.microsoft', attention='fused_matmul', opset=13)

if __name__ == '__main__':
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for NAME in ENCODERS:
        onnx.save(build(NAME), directory / f'{NAME}.onnx')
