"""The architectures that Swizzle is for, at several sparsities, batches and lengths: planned whole, fused as expected, and
equal to ONNX Runtime's outputs on the same file.

Networks are as deep as the real ones and narrower (make_cnns.py, make_models.py); encoders are as wide as the real ones
and two layers deep. tests/bench/encoders.py compares them at full size.
"""

import json
import subprocess

import numpy
import onnx
import pytest
from onnx import numpy_helper

import conformance_test
import encoder_graph
import encoders_test
import make_cnns  # noqa: F401, adds to make_models.MODELS
import make_encoders
import make_models
from conftest import program

SPARSITIES = (0.0, 0.5, 0.9)
OPSET = 17

# How often each pass applied: batch norms folded, residuals and clamps fused, depthwise convolutions recognised.
CNNS = {
    'resnet18': {'fold_affine': 20, 'fuse_residual': 8, 'fuse_activation': 17},
    'resnet50_v1_5': {'fold_affine': 53, 'fuse_residual': 16, 'fuse_activation': 49},
    'mobilenet_v1': {'recognise_depthwise': 3, 'fold_affine': 7, 'fuse_activation': 7},
    'mobilenet_v2': {'recognise_depthwise': 4, 'fuse_residual': 2, 'fuse_activation': 10},
    'mobilenet_v3_large': {'recognise_depthwise': 15, 'fuse_residual': 10, 'fuse_activation': 19},
    'mobilenet_v3_small': {'recognise_depthwise': 8, 'fuse_residual': 3, 'fuse_activation': 11},
    'efficientnet_lite': {'recognise_depthwise': 9, 'fuse_residual': 4, 'fuse_activation': 19},
}

ENCODER_LAYERS = 2
ENCODERS = {'minilm': {'hidden': 384, 'heads': 12, 'inner': 1536}, 'bert_base': {'hidden': 768, 'heads': 12, 'inner': 3072}}
LENGTHS = ([1], [5], [128], [384], [512], [128] * 7, [1, 5, 128, 384, 512, 17, 64])


def prune(model, sparsity):
    """Makes so much of every dense convolution's and linear layer's weight zero, at drawn places."""
    random = numpy.random.default_rng(1)
    depthwise = {node.input[1] for node in model.graph.node if node.op_type == 'Conv'
                 for attribute in node.attribute if attribute.name == 'group' and attribute.i > 1}
    weights = {node.input[1] for node in model.graph.node if node.op_type in ('Conv', 'Gemm', 'MatMul')} - depthwise
    for initializer in model.graph.initializer:
        if initializer.name in weights:
            array = numpy_helper.to_array(initializer).copy()
            array[random.random(array.shape) < sparsity] = 0
            initializer.CopyFrom(numpy_helper.from_array(array, initializer.name))


def fusions(model_file):
    command = [program('swizzle-pack'), 'inspect', str(model_file), '-o', 'json', '--tuning-budget=0']
    report = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)
    assert not report.get('fallback'), report
    return {name: count for name, count in report['fusions'].items() if count > 0}


@pytest.mark.parametrize('sparsity', SPARSITIES)
@pytest.mark.parametrize('name', CNNS)
def test_cnn(name, sparsity, tmp_path):
    model = make_models.build(name, OPSET)
    if sparsity > 0:
        prune(model, sparsity)
    file = tmp_path / 'model.onnx'
    onnx.save(model, file)
    found = fusions(file)
    for tidied in ('resolve_constants', 'remove_no_ops'):  # what an exporter left
        found.pop(tidied, None)
    assert found == CNNS[name]
    image = conformance_test.draw_inputs(model)
    for batch in (1, 7):
        inputs = {name: numpy.resize(array, (batch,) + array.shape[1:]) for name, array in image.items()}
        actual, said = conformance_test.run_model(file, inputs, tmp_path)
        assert not said
        encoders_test.assert_close(actual, conformance_test.expected_outputs(file, inputs), None)


@pytest.fixture
def long_positions(monkeypatch):
    monkeypatch.setattr(encoder_graph, 'POSITIONS', 512)


@pytest.mark.parametrize('sparsity', SPARSITIES)
@pytest.mark.parametrize('name', ENCODERS)
def test_encoder(name, sparsity, tmp_path, long_positions, monkeypatch):
    spelling = make_encoders.DEFAULT | ENCODERS[name] | {'layers': ENCODER_LAYERS, 'sparsity': sparsity, 'head': 'pooler'}
    monkeypatch.setitem(make_encoders.ENCODERS, name, spelling)
    model = make_encoders.build(name)
    file = tmp_path / 'model.onnx'
    onnx.save(model, file)
    found = fusions(file)
    assert found['embedding'] == 3
    assert found['attention'] == found['gelu'] == ENCODER_LAYERS
    assert found['layer_norm'] == 1 + 2 * ENCODER_LAYERS
    assert found['linear'] == 6 * ENCODER_LAYERS + 1  # and the pooler
    assert found['fuse_residual'] == 2 * ENCODER_LAYERS
    for lengths in LENGTHS:
        random = numpy.random.default_rng(len(lengths))
        shape = (len(lengths), max(lengths))
        mask = (numpy.arange(shape[1]) < numpy.array(lengths)[:, None]).astype(numpy.int64)
        inputs = {'input_ids': random.integers(0, make_encoders.VOCABULARY, shape), 'attention_mask': mask,
                  'token_type_ids': random.integers(0, make_encoders.TYPES, shape)}
        actual, said = conformance_test.run_model(file, inputs, tmp_path)
        assert not said
        encoders_test.assert_close(actual, conformance_test.expected_outputs(file, inputs), mask)
