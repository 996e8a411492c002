"""Networks with 1x4 blocks of zeros in the spellings of SparseML's exporters: planned in whole numbers, each product of
them, and within a step of what ONNX Runtime computes."""

import numpy
import onnx
import pytest

import conformance_test
import make_cnns  # noqa: F401, adds to make_models.MODELS
import make_models
import quantised_bits_test
import quantised_test
import sparseml_export

SPARSITY = 0.82
STEPS = 1.0  # of 255 over the range of the output
ISLANDS = {'qat': 0, 'qlinear': 1, 'integer': 0}  # layers in real numbers: a bias that is added behind QLinearMatMul


def check(model, inputs, folder, islands):
    file = folder / 'model.onnx'
    onnx.save(model, file)
    report = quantised_test.report_of(file)
    assert not report.get('fallback')
    products = [layer['kernel'] for layer in report['layers'] if layer['op'] in ('Conv', 'DepthwiseConv')]
    real = [kernel for kernel in products if '_u8' not in kernel]
    assert len(products) > 7 and len(real) <= islands, real
    expected = conformance_test.expected_outputs(file, inputs)
    actual, said = conformance_test.run_model(file, inputs, folder)
    assert not said
    for name, array in expected.items():
        step = (array.max() - array.min()) / 255
        assert numpy.abs(actual[name] - array).max() <= STEPS * step, (numpy.abs(actual[name] - array).max(), step)


def pruned(name, folder):
    model = quantised_bits_test.folded(make_models.build(name, quantised_test.OPSET), folder)
    sparseml_export.prune_blocks(model, SPARSITY)
    return model, conformance_test.draw_inputs(model)


@pytest.mark.parametrize('form', sparseml_export.FORMS)
@pytest.mark.parametrize('name', ('mobilenet_v1', 'resnet18', 'resnet50_v1_5'))
def test_network(name, form, tmp_path):
    model, inputs = pruned(name, tmp_path)
    check(sparseml_export.export(model, inputs, form), inputs, tmp_path, ISLANDS[form])


@pytest.mark.parametrize('form', ('qlinear', 'integer'))
def test_bytes(form, tmp_path):
    """Without its first QuantizeLinear: requests bring whole numbers."""
    model, inputs = pruned('resnet18', tmp_path)
    exported = sparseml_export.export(model, inputs, form, bytes_in=True)
    port = exported.graph.input[0]
    assert port.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    random = numpy.random.default_rng(3)
    shape = next(iter(inputs.values())).shape
    check(exported, {port.name: random.integers(0, 256, shape).astype(numpy.uint8)}, tmp_path, ISLANDS[form])
