"""The Python package through forks, signals, callbacks that raise, and the end of the interpreter.

Each in a Python of its own, which has to end well and to say nothing.
"""

import pytest

from conftest import DENSE, SHIPPED, SPARSE
from python_module import needs_module, run_python

pytestmark = needs_module
MODEL = SHIPPED / f'{SPARSE}.onnx'
PRELUDE = '''
import os, signal, sys, threading
import numpy
import swizzle_engine
signal.signal(signal.SIGINT, signal.default_int_handler)  # what starts in the background may inherit that it is ignored
path = sys.argv[1]
images = numpy.random.default_rng(1).random((3, 1, 28, 28), dtype=numpy.float32)
def answer(model):
    return next(iter(model(images).values()))
def ends_well(child):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, code
'''


def run(script, *arguments):
    done = run_python(PRELUDE + script, MODEL, *arguments)
    assert done.stderr == ''
    return done.stdout


def test_a_child_of_a_fork_opens_models():
    """What is imported before the fork works after it, in both."""
    run('''
import swizzle_engine.model
child = os.fork()
result = answer(swizzle_engine.Model(path))
assert result.shape[0] == 3
if child == 0:
    sys.exit(0)
ends_well(child)
''')


def test_a_child_of_a_fork_runs_its_parents_model():
    run('''
model = swizzle_engine.Model(path, threads=2)
before = answer(model)
for _ in range(3):
    child = os.fork()
    if child == 0:
        assert (answer(model) == before).all()
        sys.exit(0)
    assert (answer(model) == before).all()
    ends_well(child)
''')


def test_a_fork_in_the_midst_of_a_run_leaves_the_child_able_to_end():
    run('''
model = swizzle_engine.Model(path, threads=1)
stop = threading.Event()
def work():
    while not stop.is_set():
        answer(model)
worker = threading.Thread(target=work)
worker.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        try:
            answer(model)
        except swizzle_engine.ModelError as error:
            assert 'fork' in str(error), error
        sys.exit(0)
    ends_well(child)
stop.set()
worker.join()
''')


def test_multiprocessing_forks():
    run('''
import multiprocessing
model = swizzle_engine.Model(path, threads=1)
def work(number):
    return float(answer(model).sum()) if number % 2 else float(answer(swizzle_engine.Model(path, threads=1)).sum())
if __name__ == '__main__':
    expected = float(answer(model).sum())
    with multiprocessing.get_context('fork').Pool(2) as pool:
        sums = pool.map(work, range(6))
    assert all(abs(each - expected) < 1e-3 for each in sums), (sums, expected)
''')


def test_ctrl_c_during_runs_is_a_keyboard_interrupt_after_which_the_model_runs():
    run('''
model = swizzle_engine.Model(path, threads=1)
before = answer(model)
begun = threading.Event()
threading.Thread(target=lambda: (begun.wait(), os.kill(os.getpid(), signal.SIGINT))).start()
try:
    while True:
        answer(model)
        begun.set()
except KeyboardInterrupt:
    pass
assert (answer(model) == before).all()
''')


@pytest.mark.parametrize('raised', ['ValueError("enough")', 'KeyboardInterrupt()'])
def test_a_callback_that_raises_ends_the_work(tmp_path, raised):
    said = run(f'''
output = sys.argv[2]
def tell(line):
    print(line)
    raise {raised}
try:
    swizzle_engine.prune(path, output, sparsity=0.5, progress=tell)
except ({raised.partition('(')[0]}) as error:
    assert repr(error) == repr({raised}), error
else:
    sys.exit('nothing was raised')
assert not os.path.exists(output)
''', tmp_path / 'pruned.onnx')
    assert said.count('\n') == 1


def test_ctrl_c_ends_the_work_on_a_file(tmp_path):
    run('''
output = sys.argv[2]
told = []
def tell(line):
    told.append(line)
    if len(told) == 3:
        signal.raise_signal(signal.SIGINT)
try:
    swizzle_engine.prune(path, output, sparsity=0.5, progress=tell)
except KeyboardInterrupt:
    assert 3 <= len(told) <= 4, told
else:
    sys.exit('nothing was raised')
assert not os.path.exists(output)
''', tmp_path / 'pruned.onnx')


EXITS = {
    'a global': 'model = swizzle_engine.Model(path); answer(model)',
    'in a cycle': '''
class Holder: pass
holder = Holder(); holder.self = holder; holder.model = swizzle_engine.Model(path); answer(holder.model); del holder
import gc; gc.freeze()''',
    'tuning': 'model = swizzle_engine.Model(path, tuning_budget=60); answer(model)',
    'running in a daemon': '''
model = swizzle_engine.Model(path)
begun = threading.Event()
def work():
    while True:
        answer(model)
        begun.set()
threading.Thread(target=work, daemon=True).start()
begun.wait()''',
    'exit by an exception': '''
model = swizzle_engine.Model(path)
sys.excepthook = lambda *_: None
raise SystemExit(0)''',
    'exit in a thread of its own': '''
def work():
    global model
    model = swizzle_engine.Model(path)
    answer(model)
threading.Thread(target=work).start()''',
}


@pytest.mark.parametrize('how', EXITS)
def test_the_interpreter_ends_with_a_model_open(how):
    run(EXITS[how])


def test_files_are_made_of_others(tmp_path):
    pruned, packed = tmp_path / 'pruned.onnx', tmp_path / 'packed.swz'
    said = run_python(PRELUDE + '''
pruned, packed = sys.argv[2:]
lines = []
print(swizzle_engine.prune(path, pruned, sparsity=0.75, skip='classifier*', progress=lines.append))
assert lines and all(isinstance(line, str) for line in lines)
print(swizzle_engine.pack(pruned, packed))
first, second = (answer(swizzle_engine.Model(each)) for each in (pruned, packed))
assert abs(first - second).max() <= 1e-4 * abs(first).max()
arrays = {info.name: images for info in swizzle_engine.Model(path).inputs}
numpy.savez(packed + '.npz', **arrays)
print(swizzle_engine.quantize(path, packed + '.onnx', calibration=packed + '.npz', progress=lines.append))
assert answer(swizzle_engine.Model(packed + '.onnx')).shape == first.shape
''', SHIPPED / f'{DENSE}.onnx', pruned, packed)
    assert said.stderr == '' and pruned.exists() and packed.exists()


def test_wrong_options_are_named_as_in_python(tmp_path):
    said = run_python(PRELUDE + '''
made = sys.argv[2]
for function, options in ((swizzle_engine.prune, {'sparsity': 1.5}), (swizzle_engine.prune, {'sparsity': '0.5'}),
                          (swizzle_engine.prune, {'sparsity': 0.5, 'vector_rows': 2.5}),
                          (swizzle_engine.prune, {'sparsity': 0.5, 'skip': [3]}),
                          (swizzle_engine.quantize, {'observer': None}), (swizzle_engine.quantize, {}),
                          (swizzle_engine.pack, {'threads': -1}), (swizzle_engine.pack, {'threads': 'all'})):
    try:
        function(path, made, **options)
        sys.exit(f'{function} took {options}')
    except (TypeError, ValueError) as error:
        print(type(error).__name__, str(error).removeprefix(path + ': '))
''', SHIPPED / f'{DENSE}.onnx', tmp_path / 'made.swz')
    assert said.stdout.splitlines() == [
        "ValueError option 'sparsity': '1.5' is not from 0 to 1; of 90 % it is 0.9",
        "TypeError option 'sparsity' is '0.5'; a number is needed",
        "TypeError option 'vector_rows' is 2.5; a whole number is needed",
        "TypeError option 'skip' is [3]; a list of str is needed",
        "TypeError option 'observer' is None; a str is needed",
        "ValueError a convolutional model needs option 'calibration'",
        "ValueError option 'threads': -1 is no number from 0 to 1024",
        "TypeError option 'threads' is 'all'; a whole number is needed"]


def test_importing_loads_little():
    """Neither the engine nor numpy comes before it is used; the programs need neither."""
    said = run_python('''
import sys
import swizzle_engine, swizzle_engine.programs
assert 'numpy' not in sys.modules and 'swizzle_engine._engine' not in sys.modules
assert sorted(dir(swizzle_engine)) == sorted(swizzle_engine.__all__)
swizzle_engine.Model
assert 'numpy' in sys.modules and 'swizzle_engine.onnxruntime' not in sys.modules
print(swizzle_engine.__version__)
try:
    swizzle_engine.Modell
except AttributeError as error:
    print(error)
''').stdout
    assert said.endswith("module 'swizzle_engine' has no attribute 'Modell'\n")
