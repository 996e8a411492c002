"""What PyTorch itself exports, by opset, computes what it does in ONNX Runtime, in a plan or in regions, and from a
packed file, too, where it is planned whole; what is written for other engines runs there."""

import subprocess

import numpy
import onnx
import pytest

from conformance_test import expected_outputs, run_model, saturates
from conftest import ROOT, program
from regions_test import compare, regions_of

EXPORTS = ROOT / 'tests' / 'testdata' / 'exports'
QUANTISED_TOLERANCE = 0.05  # largest difference over largest magnitude
BATCH, TOKENS, LENGTHS = 3, 11, [11, 5, 1]
VOCABULARY = 40
TEXTS = ('bert', 'camembert', 'clip_text', 'deberta', 'distilbert', 'electra', 'gemma3', 'modernbert', 'mpnet', 'qwen3',
         'roberta', 't5')
PADDING = {'roberta': 1, 'camembert': 1, 'mpnet': 1}  # the id, where positions are made of ids; else 0

# name -> regions, layers that they hold, interpreted nodes. None: it is planned whole
EXPECTED = {
    'bert_opset11': None,
    'bert_opset17': None,
    'bert_sdpa_opset14': None,
    'camembert_opset14': None,
    'clip_text_opset17': None,
    'clip_text_opset20': None,
    'convnext_opset17': (5, 19, 13),
    'deberta_opset17': None,
    'deberta_opset20': None,
    'densenet_opset9': None,
    'dinov2_opset20': (1, 17, 0),
    'dinov3_opset20': (1, 19, 0),
    'distilbert_opset14': None,
    'electra_opset12': None,
    'gemma3_opset20': None,
    'modernbert_opset17': None,
    'modernbert_opset20': None,
    'mpnet_opset13': None,
    'pools_opset10': (1, 6, 1),
    'pools_opset17': (1, 6, 1),
    'qwen3_opset20': None,
    'recurrent_opset11': (6, 7, 6),
    'recurrent_opset17': (6, 7, 6),
    'roberta_opset11': None,
    'roberta_opset17': None,
    'segformer_opset12': (17, 37, 34),
    'shufflenet_opset11': None,
    'siglip_opset17': (1, 26, 0),
    'siglip_opset20': (1, 26, 0),
    'swin_opset11': (6, 32, 25),
    'swin_torchvision_opset17': (1, 24, 0),
    'swin_v2_torchvision_opset17': (1, 36, 0),
    't5_opset12': None,
    'upsampled_opset11': None,
    'upsampled_opset16': None,
    'vit_opset11': (3, 10, 8),
    'vit_opset17': (3, 10, 8),
    'vit_torchvision_opset17': (1, 19, 0),
    'vit_torchvision_opset20': (1, 19, 0),
}
PLANNED = [name for name, regions in EXPECTED.items() if regions is None]
ENCODERS = [name for name in PLANNED if name.startswith(TEXTS)]


def draw_inputs(name):
    """Texts are padded on the right. The same in every run."""
    random = numpy.random.default_rng(1)
    mask = (numpy.arange(TOKENS) < numpy.array(LENGTHS)[:, None]).astype('int64')
    inputs = {}
    for value in onnx.load(EXPORTS / f'{name}.onnx').graph.input:
        if value.name == 'attention_mask':
            inputs[value.name] = mask
        elif value.name == 'input_ids':
            ids = random.integers(3, VOCABULARY, mask.shape)
            inputs[value.name] = numpy.where(mask == 1, ids, PADDING.get(name.split('_')[0], 0))
        else:
            shape = [d.dim_value or BATCH for d in value.type.tensor_type.shape.dim]
            inputs[value.name] = random.normal(0, 1, shape).astype(numpy.float32)
    return inputs


def mask_of(name, inputs):
    """What is left out of the comparison; regions compute every token."""
    return inputs.get('attention_mask') if EXPECTED[name] is None else None


def pack(*arguments):
    done = subprocess.run([program('swizzle-pack'), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def names():
    return sorted(file.stem for file in EXPORTS.glob('*.onnx'))


def test_each_export_is_expected():
    assert names() == sorted(EXPECTED)


@pytest.mark.parametrize('name', names())
def test_export(name, tmp_path):
    file, inputs = EXPORTS / f'{name}.onnx', draw_inputs(name)
    expected = expected_outputs(file, inputs)
    actual, said = run_model(file, inputs, tmp_path)
    compare(actual, expected, mask_of(name, inputs))
    assert regions_of(said) == EXPECTED[name]


@pytest.mark.parametrize('name', PLANNED)
def test_packed(name, tmp_path):
    file, inputs = EXPORTS / f'{name}.onnx', draw_inputs(name)
    pack('pack', file, tmp_path / 'model.swz')
    actual, _ = run_model(tmp_path / 'model.swz', inputs, tmp_path)
    compare(actual, expected_outputs(file, inputs), mask_of(name, inputs))


@pytest.mark.parametrize('name', names())
def test_pruned_runs_elsewhere(name, tmp_path):
    """ONNX Runtime takes what prune writes, of any opset, and computes the same from it."""
    inputs = draw_inputs(name)
    pack('prune', EXPORTS / f'{name}.onnx', tmp_path / 'pruned.onnx', '--sparsity=0.5')
    actual, _ = run_model(tmp_path / 'pruned.onnx', inputs, tmp_path)
    compare(actual, expected_outputs(tmp_path / 'pruned.onnx', inputs), mask_of(name, inputs))


@pytest.mark.skipif(saturates(), reason="ONNX Runtime's sums of bytes saturate on this processor, which has no VNNI")
@pytest.mark.parametrize('name', ENCODERS)
def test_quantised_runs_elsewhere(name, tmp_path):
    """So it does what quantize writes of encoders, which keep their opset."""
    file, inputs = EXPORTS / f'{name}.onnx', draw_inputs(name)
    pack('quantize', file, tmp_path / 'quantised.onnx')
    operators = {node.op_type for node in onnx.load(tmp_path / 'quantised.onnx').graph.node}
    assert operators >= {'DynamicQuantizeLinear', 'MatMulInteger'}
    actual = expected_outputs(tmp_path / 'quantised.onnx', inputs)
    compare(actual, expected_outputs(file, inputs), mask_of(name, inputs), QUANTISED_TOLERANCE)


def padded_unusually():
    """Ids and masks that disagree, padding on the left, and padding within texts: 1 is padding."""
    random = numpy.random.default_rng(3)
    ids = random.integers(3, VOCABULARY, (len(LENGTHS), TOKENS))
    mask = (numpy.arange(TOKENS) < numpy.array(LENGTHS)[:, None]).astype('int64')
    padded, hole = numpy.where(mask == 1, ids, 1), numpy.arange(TOKENS) == 3
    return {'masked ids': (ids, mask), 'on the left': (padded[:, ::-1], mask[:, ::-1]),
            'masked ids on the left': (ids, mask[:, ::-1]), 'unmasked padding': (padded, numpy.ones_like(mask)),
            'unmasked padding within': (numpy.where(hole, 1, padded), mask),
            'masked within': (ids, numpy.where(hole, 0, mask)),
            'masked padding within': (numpy.where(hole, 1, padded), numpy.where(hole, 0, mask))}


@pytest.mark.parametrize('case', padded_unusually())
@pytest.mark.parametrize('name', ('camembert_opset14', 'mpnet_opset13', 'roberta_opset11', 't5_opset12'))
def test_positions_made_of_ids(name, case, tmp_path):
    """They count the ids before that are not padding, and distances all tokens, whatever the mask says."""
    ids, mask = padded_unusually()[case]
    inputs = {'input_ids': numpy.ascontiguousarray(ids), 'attention_mask': numpy.ascontiguousarray(mask)}
    file = EXPORTS / f'{name}.onnx'
    compare(run_model(file, inputs, tmp_path)[0], expected_outputs(file, inputs), mask_of(name, inputs))
