"""In process, models compute what they do through the programs: PyTorch's exports, and ONNX's own test cases."""

import pathlib
import re

import ml_dtypes
import numpy
import onnx
import pytest

import exports_test
from conformance_test import expected_outputs
from conftest import ROOT, SHIPPED
from python_module import needs_module, swizzle_engine
from regions_test import compare

pytestmark = needs_module
DATA = pathlib.Path('/usr/share/libonnx-testdata/data')
# Files that say what no model of a server may: loading refuses them, in the engine and in the server.
REFUSED = {
    'test_constant': 'the graph has no inputs',
    'test_range_int32_type_negative_delta_expanded': "output 'output' is declared as INT32, but the graph makes FP32",
    'test_reshape_allowzero_reordered': 'dimensions are at least 1',
    'test_split_zero_size_splits': 'dimensions are at least 1',
    'test_triu_zero': 'dimensions are at least 1',
}
RELATIVE, ABSOLUTE, BFLOAT16_STEP = 1e-3, 1e-7, 2**-7  # as tests/conformance/onnx_node_tests.cc has them


@pytest.mark.parametrize('name', exports_test.names())
def test_export(name):
    file, inputs = exports_test.EXPORTS / f'{name}.onnx', exports_test.draw_inputs(name)
    with swizzle_engine.Model(file) as model:
        compare(model.run(inputs), expected_outputs(file, inputs), exports_test.mask_of(name, inputs))


@pytest.mark.parametrize('file', sorted(SHIPPED.glob('*.onnx')), ids=lambda file: file.stem)
def test_shipped(file):
    with swizzle_engine.Model(file) as model:
        info, = model.inputs
        images = numpy.random.default_rng(1).random([size or 3 for size in info.shape], dtype=numpy.float32)
        compare(model(images), expected_outputs(file, {info.name: images}))


def read_tensor(path, info):
    """An array for the model's value. Files of BF16 have its bits, some as UINT16."""
    array = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
    if info.datatype == 'BF16' and array.dtype == numpy.uint16:
        array = array.view(ml_dtypes.bfloat16)
    return array.astype(numpy.float32) if array.dtype == ml_dtypes.bfloat16 else array


def ordered(folder, what):
    return sorted(folder.glob(f'{what}_*.pb'), key=lambda path: int(path.stem.rpartition('_')[2]))


def difference_of(actual, expected, is_bfloat16):
    """Empty if it is within ONNX's tolerance."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f'{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}'
    if expected.dtype.kind not in 'f':
        texts = [element.decode() if isinstance(element, bytes) else element for element in expected.flat]
        return '' if list(actual.flat) == texts else 'other elements'
    relative = BFLOAT16_STEP if is_bfloat16 else RELATIVE
    close = numpy.isclose(actual, expected, rtol=relative, atol=ABSOLUTE, equal_nan=True)
    return '' if close.all() else f'{(~close).sum()} elements differ'


def run_case(case):
    """What is wrong with a test case's results; empty if nothing is."""
    try:
        model = swizzle_engine.Model(case / 'model.onnx', threads=1)
    except (RuntimeError, ValueError) as error:  # the former is NotImplementedError's
        return f'not supported: {error}'
    with model:
        for data in sorted(case.glob('test_data_set_*')):
            inputs = [read_tensor(path, info) for info, path in zip(model.inputs, ordered(data, 'input'))]
            try:
                results = model(*inputs)
            except NotImplementedError as error:
                return f'not supported: {error}'
            for info, path in zip(model.outputs, ordered(data, 'output'), strict=True):
                if wrong := difference_of(results[info.name], read_tensor(path, info), info.datatype == 'BF16'):
                    return f'{info.name}: {wrong}'
    return ''


def not_supported(suite):
    """The cases that the page names below the suite's heading."""
    page = (ROOT / 'tests/conformance/ONNX_NODE_TESTS.md').read_text()
    part = page.partition(f'## Not supported of {suite}\n')[2].partition('\n## ')[0]
    return set(re.findall(r'\btest_\w+', ' '.join(line.split('|')[2] for line in part.splitlines() if '|' in line)))


@pytest.mark.skipif(not DATA.is_dir(), reason='libonnx-testdata is not installed: apt-get install it')
@pytest.mark.parametrize('suite, count', [('node', 932), ('pytorch-converted', 82), ('simple', 23)])
def test_onnx_cases(suite, count):
    cases = sorted((DATA / suite).iterdir())
    assert len(cases) == count
    wrong = {case.name: run_case(case) for case in cases if case.name not in not_supported(suite)}
    refused = {name: said for name, said in wrong.items() if said and REFUSED.get(name, 'none') in said}
    failed = {name: said for name, said in wrong.items() if said and name not in refused}
    assert not failed, failed
    assert len(refused) == (len(REFUSED) if suite == 'node' else 0)
