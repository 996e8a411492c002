"""The Python package: models, arrays in and out, threads, errors, and what stands in for ONNX Runtime."""

import concurrent.futures
import html
import json
import pickle
import threading

import ml_dtypes
import numpy
import onnx
import onnxruntime
import pytest

from conftest import SHIPPED, SPARSE
from python_module import needs_module, swizzle_engine

pytestmark = needs_module
TYPE = onnx.TensorProto


def save(path, nodes, inputs, outputs, initializers=(), opset=17):
    """A model of these nodes; values are (name, type, shape)."""
    values = [[onnx.helper.make_tensor_value_info(*value) for value in side] for side in (inputs, outputs)]
    graph = onnx.helper.make_graph(nodes, 'graph', *values, list(initializers))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', opset)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('models')


@pytest.fixture(scope='module')
def linear(folder):
    """y = x times 2, and s, the sum of rows of it and bias."""
    nodes = [onnx.helper.make_node('MatMul', ['x', 'w'], ['y']), onnx.helper.make_node('Add', ['y', 'bias'], ['s'])]
    weight = onnx.numpy_helper.from_array(2 * numpy.eye(4, dtype=numpy.float32), 'w')
    return save(folder / 'linear.onnx', nodes, [('x', TYPE.FLOAT, ['N', 4]), ('bias', TYPE.FLOAT, ['N', 4])],
                [('y', TYPE.FLOAT, ['N', 4]), ('s', TYPE.FLOAT, ['N', 4])], [weight])


@pytest.fixture(scope='module')
def model(linear):
    with swizzle_engine.Model(linear, threads=1) as opened:
        yield opened


def echo(folder, type_, name):
    """y = x of a type."""
    file = save(folder / f'{name}.onnx', [onnx.helper.make_node('Identity', ['x'], ['y'])],
                [('x', type_, ['N', 3])], [('y', type_, ['N', 3])])
    return swizzle_engine.Model(file, threads=1)


ROWS = numpy.arange(8, dtype=numpy.float32).reshape(2, 4)
ZEROS = numpy.zeros((2, 4), numpy.float32)


class Exporter:
    """What exports its elements by DLPack, and in no other way."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device or array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_inputs_and_outputs_are_named_and_typed(model):
    assert [(info.name, info.datatype, info.dtype, info.shape) for info in model.inputs] == [
        ('x', 'FP32', numpy.float32, (None, 4)), ('bias', 'FP32', numpy.float32, (None, 4))]
    assert [info.name for info in model.outputs] == ['y', 's'] and model.name == 'linear'
    assert repr(model) == ("<swizzle_engine.Model 'linear' (x: FP32[?, 4], bias: FP32[?, 4]) -> "
                           '(y: FP32[?, 4], s: FP32[?, 4])>')
    assert model.properties['swizzle_format'] and model.max_batch > 0


def test_a_model_is_called_in_several_ways(model):
    for results in (model(x=ROWS, bias=ZEROS), model(ROWS, ZEROS), model(ROWS, bias=ZEROS),
                    model.run({'bias': ZEROS, 'x': ROWS})):
        assert list(results) == ['y', 's']
        numpy.testing.assert_array_equal(results['y'], 2 * ROWS)
    assert list(model.run({'x': ROWS, 'bias': ZEROS}, ['s'])) == ['s']
    assert list(model.run({'x': ROWS, 'bias': ZEROS}, ['s', 'y'])) == ['s', 'y']
    with pytest.raises(TypeError, match="input 'x' was given twice"):
        model(ROWS, x=ROWS, bias=ZEROS)
    with pytest.raises(TypeError, match='has 2 inputs, and 3 were given'):
        model(ROWS, ZEROS, ROWS)


@pytest.mark.parametrize('value', [
    ROWS, ROWS.tolist(), list(ROWS), tuple(map(list, ROWS)), Exporter(ROWS), memoryview(ROWS), ROWS.astype('>f4'),
    numpy.asfortranarray(ROWS), numpy.repeat(ROWS, 2, axis=1)[:, ::2], Exporter(numpy.asfortranarray(ROWS)),
    ROWS.astype(int).tolist()], ids=[
    'array', 'lists', 'list of arrays', 'tuple of lists', 'dlpack', 'memoryview', 'big-endian', 'columns first',
    'every second', 'dlpack, columns first', 'whole numbers'])
def test_whatever_holds_the_elements_is_an_input(model, value):
    numpy.testing.assert_array_equal(model(x=value, bias=ZEROS)['y'], 2 * ROWS)


def test_elements_are_read_where_they_are():
    frozen = ROWS.copy()
    frozen.flags.writeable = False
    unaligned = numpy.frombuffer(b'.' + ROWS.tobytes(), numpy.float32, offset=1).reshape(2, 4)
    for value in (ROWS, frozen, ROWS[1:], unaligned):
        _, shape, address, copied = swizzle_engine._engine.view_of('x', 'FP32', value)
        assert (shape, address, copied) == (value.shape, value.ctypes.data, False)
    for value in (ROWS, ROWS[1:]):
        _, shape, address, copied = swizzle_engine._engine.view_of('x', 'FP32', Exporter(value))
        assert (shape, address, copied) == (value.shape, value.ctypes.data, False)
    assert swizzle_engine._engine.view_of('x', 'FP32', ROWS[:, ::2])[3]


def test_tensors_of_pytorch_come_and_go(folder, linear):
    """Without a copy where they lie as inputs do, and out of outputs, which PyTorch then shares."""
    torch = pytest.importorskip('torch', reason='PyTorch is not installed; PyPI has it for GPUs alone')
    rows = torch.arange(8, dtype=torch.float32).reshape(2, 4)
    _, shape, address, copied = swizzle_engine._engine.view_of('x', 'FP32', rows)
    assert (shape, address, copied) == ((2, 4), rows.data_ptr(), False)
    opened = swizzle_engine.Model(linear, threads=1)
    for given in (rows, rows.t().contiguous().t(), rows.clone().requires_grad_().detach()):
        output = opened(given, torch.zeros(2, 4))['y']
        assert torch.equal(torch.from_dlpack(output), 2 * rows)
    assert torch.from_dlpack(output).data_ptr() == torch.from_numpy(output).data_ptr() == output.ctypes.data
    brain = echo(folder, TYPE.BFLOAT16, 'torch_brain')
    halves = torch.tensor([[1.0, -2.5, 3.140625]], dtype=torch.bfloat16)
    assert swizzle_engine._engine.view_of('x', 'BF16', halves)[2:] == (halves.data_ptr(), False)
    assert torch.equal(torch.from_dlpack(brain(halves)['y']).to(torch.bfloat16), halves)
    with pytest.raises(ValueError, match="'x'"):
        opened(rows.double(), torch.zeros(2, 4))


def test_outputs_are_the_callers_own(linear):
    opened = swizzle_engine.Model(linear, threads=1)
    output = opened(ROWS, ZEROS)['y']
    holder = output.base
    assert isinstance(holder, swizzle_engine._engine.OutputBytes) and output.flags.writeable
    assert numpy.frombuffer(holder, numpy.uint8).ctypes.data == output.ctypes.data
    opened.close()
    del opened, holder
    output += 1
    numpy.testing.assert_array_equal(output, 2 * ROWS + 1)


@pytest.mark.parametrize('value, error, message', [
    (numpy.zeros((2, 4)), ValueError, "input 'x'.*FP64.*FP32|FP32.*FP64"),
    (numpy.zeros((2, 5), numpy.float32), ValueError, "'x'"),
    (numpy.zeros(4, numpy.float32), ValueError, "'x'"),
    (ROWS + 1j, TypeError, "input 'x' has elements of type complex64, and FP32 is needed"),
    ([[1, 2, 3, 4], [5]], ValueError, "input 'x': "),
    (['one'], TypeError, "input 'x' has elements like .*'one'.*, and FP32 is needed"),
    ({'a': 1}, TypeError, "input 'x' has elements like {'a': 1}, and FP32 is needed"),
    (None, TypeError, "input 'x' has elements like None"),
    (Exporter(ROWS, device=(2, 0)), TypeError, "input 'x' does not lie in the host's memory"),
])
def test_refused_inputs_are_named(model, value, error, message):
    with pytest.raises(error, match=message):
        model(x=value, bias=ZEROS)
    numpy.testing.assert_array_equal(model(x=ROWS, bias=ZEROS)['y'], 2 * ROWS)


def test_refused_calls_say_what_is_wrong(model):
    for call, message in ((lambda: model(x=ROWS), 'bias'), (lambda: model(x=ROWS, bias=ZEROS, z=ROWS), "'z'"),
                          (lambda: model(x=ROWS, bias=ZEROS, z=[1]), "'z'"),
                          (lambda: model.run({'x': ROWS, 'bias': ZEROS}, ['none']), "'none'")):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match='inputs go by name'):
        model.run({1: ROWS})


def test_errors_of_opening_are_pythons(folder, linear):
    with pytest.raises(FileNotFoundError, match='missing.onnx'):
        swizzle_engine.Model(folder / 'missing.onnx')
    (folder / 'broken.onnx').write_bytes(b'not a model')
    with pytest.raises(ValueError, match='broken.onnx'):
        swizzle_engine.Model(folder / 'broken.onnx')
    with pytest.raises((ValueError, NotImplementedError), match='quantum'):
        swizzle_engine.Model(linear, device='quantum')
    with pytest.raises(ValueError, match='fp7'):
        swizzle_engine.Model(linear, precision='fp7')
    unknown = save(folder / 'unknown.onnx', [onnx.helper.make_node('Optional', ['x'], ['y'])],
                   [('x', TYPE.FLOAT, [1])], [('y', TYPE.FLOAT, [1])])
    with pytest.raises((NotImplementedError, ValueError), match='Optional'):
        swizzle_engine.Model(unknown)


def test_a_model_that_no_input_helps_has_an_error_of_its_own(folder):
    grid = onnx.numpy_helper.from_array(numpy.zeros((1, 3, 4, 5, 3), numpy.float32), 'grid')
    for op, inputs, shape, initializers, message in (
            ('Det', ['x'], (4, 3), [], 'Det.*the model is at fault'),
            ('GridSample', ['x', 'grid'], (1, 2, 3, 4, 5), [grid], 'GridSample.*lacks that')):
        hopeless = save(folder / 'hopeless.onnx', [onnx.helper.make_node(op, inputs, ['y'])],
                        [('x', TYPE.FLOAT, shape)], [('y', TYPE.FLOAT, None)], initializers, opset=20)
        with pytest.raises(swizzle_engine.ModelError, match=message):
            swizzle_engine.Model(hopeless)
    error = pickle.loads(pickle.dumps(swizzle_engine.ModelError('why')))
    assert type(error) is swizzle_engine.ModelError and isinstance(error, RuntimeError) and str(error) == 'why'


def test_a_closed_model_runs_no_more(linear):
    with swizzle_engine.Model(linear) as opened:
        assert not opened.closed
    assert opened.closed
    for use in (lambda: opened(ROWS, ZEROS), lambda: opened.properties, lambda: str(opened.inspect())):
        with pytest.raises(ValueError, match='the model is closed'):
            use()
    opened.close()


@pytest.mark.parametrize('type_, datatype, dtype', [
    (TYPE.FLOAT16, 'FP16', 'f2'), (TYPE.DOUBLE, 'FP64', 'f8'), (TYPE.INT64, 'INT64', 'i8'), (TYPE.INT32, 'INT32', 'i4'),
    (TYPE.INT16, 'INT16', 'i2'), (TYPE.INT8, 'INT8', 'i1'), (TYPE.UINT8, 'UINT8', 'u1'), (TYPE.UINT16, 'UINT16', 'u2'),
    (TYPE.UINT32, 'UINT32', 'u4'), (TYPE.UINT64, 'UINT64', 'u8'), (TYPE.BOOL, 'BOOL', '?')])
def test_elements_of_each_type_come_and_go(folder, type_, datatype, dtype):
    opened = echo(folder, type_, datatype)
    assert (opened.inputs[0].datatype, opened.inputs[0].dtype) == (datatype, numpy.dtype(dtype))
    values = numpy.array([[1, 0, 1], [0, 1, 1]], dtype)
    for given in (values, values.tolist(), Exporter(values)):
        output = opened(given)['y']
        assert output.dtype == values.dtype
        numpy.testing.assert_array_equal(output, values)


def test_numbers_that_would_be_cut_off_are_refused(folder):
    opened = echo(folder, TYPE.UINT8, 'bytes')
    with pytest.raises(ValueError, match="input 'x' has numbers that UINT8 does not hold: it goes from 0 to 255"):
        opened([[1, 2, 256]])
    with pytest.raises(TypeError, match="input 'x' has elements like .*1.5.*, and UINT8 is needed"):
        opened([[1.5, 2, 3]])


def test_bfloat16_is_float32_to_numpy(folder):
    opened = echo(folder, TYPE.BFLOAT16, 'brain')
    assert (opened.inputs[0].datatype, opened.inputs[0].dtype) == ('BF16', numpy.float32)
    values = numpy.array([[1.0, -2.5, 3.14159], [1e30, numpy.inf, numpy.nan]], numpy.float32)
    rounded = values.astype(ml_dtypes.bfloat16)
    for given in (values, rounded, values.tolist()):
        output = opened(given)['y']
        assert output.dtype == numpy.float32
        numpy.testing.assert_array_equal(output, rounded.astype(numpy.float32))


def test_strings_come_and_go(folder):
    opened = echo(folder, TYPE.STRING, 'text')
    assert opened.inputs[0].dtype == numpy.dtype(object)
    expected = numpy.array([['a', 'früh', ''], ['b\0', 'x' * 300, 'é']], object)
    for given in (expected, expected.tolist(), [[text.encode() for text in row] for row in expected]):
        output = opened(given)['y']
        assert output.shape == (2, 3) and output.tolist() == expected.tolist()
    with pytest.raises(TypeError, match="input 'x' has an element that is no str or bytes: 3"):
        opened([['a', 'b', 3]])
    with pytest.raises(TypeError, match="input 'x' has elements of type float32, and strings are needed"):
        opened(ROWS)


def test_reports_are_text_data_and_a_page(model):
    report = model.inspect()
    assert str(report) == repr(report) and 'linear' in str(report)
    assert json.dumps(report.to_dict())
    page = report.to_html()
    assert page.lstrip().lower().startswith('<!doctype html>')
    frame = report._repr_html_()
    assert frame.startswith('<iframe srcdoc="') and 'sandbox="allow-scripts"' in frame and html.escape(page) in frame


def test_several_threads_run_one_model(linear):
    with swizzle_engine.Model(linear, threads=2, concurrency=2) as opened:
        def work(number):
            rows = numpy.full((number % 5 + 1, 4), number, numpy.float32)
            return all((opened(rows, 0 * rows)['y'] == 2 * number).all() for _ in range(20))
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(40)))


def test_other_threads_run_python_meanwhile():
    """While a run computes, another thread gets the interpreter, which no switch of its own gave it."""
    import sys
    opened = swizzle_engine.Model(SHIPPED / f'{SPARSE}.onnx', threads=1)
    images = numpy.zeros((2048, 1, 28, 28), numpy.float32)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        for _ in range(20):
            state = []
            thread = threading.Thread(target=lambda: (state.append('begun'), opened(images), state.append('done')))
            thread.start()
            while not state:
                threading.Event().wait(0.001)
            seen = list(state)
            thread.join()
            if seen == ['begun']:
                return
    finally:
        sys.setswitchinterval(interval)
    pytest.fail('no thread ran before the run was done')


def sessions(path):
    return [maker(str(path), providers=['CPUExecutionProvider'])
            for maker in (onnxruntime.InferenceSession, swizzle_engine.onnxruntime.InferenceSession)]


def test_the_session_is_as_onnx_runtimes(linear):
    theirs, ours = sessions(linear)
    for side in ('get_inputs', 'get_outputs'):
        pairs = list(zip(getattr(theirs, side)(), getattr(ours, side)(), strict=True))
        for expected, actual in pairs:
            assert (actual.name, actual.type) == (expected.name, expected.type)
            assert actual.shape == [size if isinstance(size, int) else None for size in expected.shape]
    feed = {'x': ROWS, 'bias': ROWS}
    for names in (None, ['s'], ['s', 'y'], []):
        expected, actual = theirs.run(names, feed), ours.run(names, feed)
        assert isinstance(actual, list) and len(actual) == len(expected)
        for one, other in zip(expected, actual):
            assert one.dtype == other.dtype
            numpy.testing.assert_allclose(one, other)
    assert ours.get_providers() == theirs.get_providers()


def test_the_session_takes_what_callers_of_onnx_runtime_give(linear):
    drop_in = swizzle_engine.onnxruntime
    options = drop_in.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = 99
    options.add_session_config_entry('session.intra_op.allow_spinning', '0')
    session = drop_in.InferenceSession(linear.read_bytes(), options, providers=[
        ('CUDAExecutionProvider', {'arena': 'small'}), 'CPUExecutionProvider'])
    numpy.testing.assert_array_equal(session.run(['y'], {'x': ROWS, 'bias': ZEROS})[0], 2 * ROWS)
    assert drop_in.get_available_providers() == ['CPUExecutionProvider'] and drop_in.get_device() == 'CPU'
    with pytest.raises(FileNotFoundError):
        drop_in.InferenceSession('missing.onnx')
