"""Architectures that no plan takes whole run in regions: as many as are said here, with so few interpreted nodes
between them, and what they compute equals ONNX Runtime's outputs."""

import re

import numpy
import onnx
import pytest

import make_architectures
import text_architectures  # noqa: F401: it adds to those of make_architectures
import vision_architectures  # noqa: F401: likewise
from command_line_test import pack
from conformance_test import expected_outputs, run_model

TOLERANCE = 2e-4  # largest difference over largest magnitude, per output
FREE = {'batch': 3, 'sequence': 20, 'height': 64, 'width': 96}

# name -> regions, layers that they hold, interpreted nodes; the same with layer norms and GELUs written out, but for
# WRITTEN. None: it is planned whole
EXPECTED = {
    'vit': (1, 19, 0),
    'roberta': None,
    'mpnet': None,
    'gpt2': None,
    'convnext': None,
    'regnet': None,
    'yolov8': None,
    'dbnet': (1, 14, 0),
    'svtr': (3, 21, 4),
    'crnn': (8, 14, 7),
    'swin': (2, 41, 1),
    'mobilevit': (7, 38, 28),
    'segformer': (13, 54, 8),
    'whisper_encoder': (1, 18, 0),
    'clip_text': None,
    'modernbert': None,
    'qwen3': None,
    't5_encoder': None,
    't5_encoder_any_length': None,
    'deberta': None,
    'deberta_any_length': None,
    'mobilebert': (1, 27, 6),
    'albert': None,
    'sentence_embedder': None,
    'deit': (1, 22, 0),
    'beit': (1, 19, 0),
    'dinov2': (1, 21, 0),
    'clip_vision': (1, 21, 0),
    'wav2vec2': (4, 29, 0),
    'yolov5': (2, 37, 20),
    'direction_classifier': None,
    'unet': (1, 14, 0),
    'densenet': None,
    'shufflenet': None,
    'yolox': None,
    'gated': None,
    'grouped_norms': None,
    'mixer': (7, 17, 7),
    'super_resolution': (1, 9, 0),
    'generator': None,
    'detr': (8, 42, 17),
    'tcn': (8, 12, 7),
    'mobilevit_s': (6, 53, 22),
    'yolov5s': (2, 52, 20),
}
WRITTEN = {'convnext': (16, 54, 6)}
SPELLINGS = {'opset17': {}, 'written-sparse': {'written': True, 'sparsity': 0.9},
             'opset11': {'opset': 11, 'written': True}, 'opset14': {'opset': 14, 'written': True},
             'opset20': {'opset': 20}}


def draw_inputs(model):
    random = numpy.random.default_rng(1)
    inputs = {}
    for value in model.graph.input:
        shape = [d.dim_value or FREE[d.dim_param] for d in value.type.tensor_type.shape.dim]
        if value.name == 'attention_mask':
            inputs[value.name] = (numpy.arange(shape[1]) < numpy.resize([20, 13, 1], shape[0])[:, None]).astype('int64')
        elif value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            inputs[value.name] = random.integers(0, make_architectures.VOCABULARY, shape)
        else:
            inputs[value.name] = random.normal(0, 1, shape).astype(numpy.float32)
    return inputs


def compare(actual, expected, mask=None, tolerance=TOLERANCE):
    """Outputs per token, [batch, length, ...], where the mask is 1: plans leave the others out."""
    assert actual.keys() == expected.keys()
    for output, array in expected.items():
        assert actual[output].shape == array.shape, output
        difference = numpy.abs(actual[output] - array)
        if mask is not None and array.shape[:2] == mask.shape:
            difference = difference[mask == 1]
        difference = difference.max() / numpy.abs(array).max()
        assert difference <= tolerance, f'{output}: {difference}'


def regions_of(said):
    found = re.search(r'regions: (\d+) planned \((\d+) layers\), (\d+) interpreted nodes', said)
    assert found or 'interpreter' not in said, said
    return found and tuple(int(number) for number in found.groups())


def prune_in_vectors(name, folder):
    onnx.save(make_architectures.build(name, make_architectures.SMALL[name]), folder / 'model.onnx')
    file = folder / 'pruned.onnx'
    pack('prune', folder / 'model.onnx', file, '--method=vector-wise', '--vector=16', '--sparsity=0.75')
    return file, draw_inputs(onnx.load(file))


def check_packed(file, inputs, folder):
    """In every format it computes what the file does, in as many regions, and none takes less than the one of the least."""
    expected, said = run_model(file, inputs, folder)
    stored = {}
    for weights in ('shfl-bw', 'csr', 'auto'):
        packed = folder / f'{weights}.swz'
        pack('pack', file, packed, f'--format={weights}')
        stored[weights] = packed.stat().st_size
        actual, said_of_packed = run_model(packed, inputs, folder)
        assert regions_of(said_of_packed) == regions_of(said)
        for output, array in expected.items():
            numpy.testing.assert_array_equal(actual[output], array)
    assert stored['auto'] <= min(stored.values())


# Of encoders that are one region, of windows, of a free length, and of planes.
@pytest.mark.parametrize('name', ['vit', 'swin', 't5_encoder_any_length', 'yolov5', 'segformer'])
def test_packed_in_vectors(name, tmp_path):
    """What is pruned in vectors of rows is packed so, like models that are planned whole, and computes the same."""
    check_packed(*prune_in_vectors(name, tmp_path), tmp_path)


@pytest.mark.parametrize('name', ['vit', 'swin', 'yolov5'])
def test_packed_whole_numbers(name, tmp_path):
    """Likewise of weights that take a byte each."""
    file, inputs = prune_in_vectors(name, tmp_path)
    numpy.savez(tmp_path / 'calibration.npz', **inputs)
    pack('quantize', file, tmp_path / 'quantised.onnx', f'--calibration={tmp_path / "calibration.npz"}')
    check_packed(tmp_path / 'quantised.onnx', inputs, tmp_path)


@pytest.mark.parametrize('spelling', SPELLINGS)
@pytest.mark.parametrize('name', make_architectures.ARCHITECTURES)
def test_regions(name, spelling, tmp_path):
    model = make_architectures.build(name, make_architectures.SMALL[name], **SPELLINGS[spelling])
    file = tmp_path / 'model.onnx'
    onnx.save(model, file)
    inputs = draw_inputs(model)
    actual, said = run_model(file, inputs, tmp_path)
    expected = (WRITTEN if SPELLINGS[spelling].get('written') else {}).get(name, EXPECTED[name])
    compare(actual, expected_outputs(file, inputs), inputs.get('attention_mask') if expected is None else None)
    assert regions_of(said) == expected
