"""Graphs of whole numbers from end to end, as ONNX Runtime's quantiser writes them in QOperator form, 90 % of their
weights zeros: every bit of the output is ONNX Runtime's, on each instruction set that the processor has."""

import pathlib

import numpy
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import QuantFormat, QuantType

import conformance_test
import make_cnns  # noqa: F401, adds to make_models.MODELS
import make_models
import parity_test
import quantised_test

CPUS = ('base', 'avx2', 'avx512', 'vnni', 'all')
# What each takes of /proc/cpuinfo's flags.
NEEDS = {'base': (), 'avx2': ('avx2',), 'avx512': ('avx512bw',), 'vnni': ('avx512_vnni',), 'all': ()}
NETWORKS = ('mobilenet_v1', 'mobilenet_v2', 'resnet', 'resnet18', 'resnet50_v1_5')
FLAGS = set(pathlib.Path('/proc/cpuinfo').read_text().split())
TYPES = ((QuantType.QUInt8, QuantType.QInt8, True), (QuantType.QInt8, QuantType.QInt8, False))


@pytest.fixture(params=CPUS)
def cpu(request, monkeypatch):
    if not FLAGS.issuperset(NEEDS[request.param]):
        pytest.skip('not on this processor')
    monkeypatch.setenv('SWIZZLE_CPU', request.param)
    return request.param


def folded(model, folder):
    """With its batch norms in the convolutions before them, as what is quantised has them."""
    given, file = folder / 'given.onnx', folder / 'folded.onnx'
    onnx.save(model, given)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(file)
    onnxruntime.InferenceSession(str(given), options, providers=['CPUExecutionProvider'])
    return onnx.load(file)


def write(name, folder, activations, weights, per_channel):
    """The network's file and its inputs."""
    model = folded(make_models.build(name, quantised_test.OPSET), folder)
    parity_test.prune(model, 0.9)
    inputs = conformance_test.draw_inputs(model)
    file = quantised_test.quantise(model, folder, inputs, QuantFormat.QOperator, activations, weights, per_channel,
                                   reduce_range=conformance_test.saturates())
    return file, inputs


def check(file, inputs, folder):
    assert not quantised_test.report_of(file).get('fallback')
    expected = conformance_test.expected_outputs(file, inputs)
    actual, said = conformance_test.run_model(file, inputs, folder)
    assert not said
    for name, array in expected.items():
        assert numpy.array_equal(actual[name], array), (name, numpy.abs(actual[name] - array).max())


@pytest.mark.parametrize('types', TYPES, ids=('u8s8', 's8s8'))
@pytest.mark.parametrize('name', NETWORKS)
def test_network(name, types, cpu, tmp_path):
    """Of pruned weights, of which some layers are dense, since they are drawn so or depthwise."""
    file, inputs = write(name, tmp_path, *types)
    operators = {node.op_type for node in onnx.load(file).graph.node}
    assert 'QLinearConv' in operators and not operators & {'Conv', 'Gemm', 'MatMul', 'Add', 'GlobalAveragePool'}
    check(file, inputs, tmp_path)


@pytest.mark.parametrize('types', TYPES, ids=('u8s8', 's8s8'))
def test_squeeze_and_excite(types, cpu, tmp_path):
    """Factors a channel, and SiLU in two operators: QLinearSigmoid and QLinearMul."""
    file, inputs = write('efficientnet_b0', tmp_path, *types)
    assert 'QLinearMul' in {node.op_type for node in onnx.load(file).graph.node}
    layers = quantised_test.report_of(file)['layers']
    operators = {layer['op'] for layer in layers if '_u8' not in (layer['kernel'] or '_u8')}
    assert not operators
    check(file, inputs, tmp_path)
