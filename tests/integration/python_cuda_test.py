"""How the Python package finds the CUDA module and what it says without it: no test here needs a GPU, and none takes
one, since a driver that knows nothing stands in for the machine's."""

import os
import subprocess
import sys

import pytest

from conftest import BUILD, SHIPPED, SPARSE
from cuda_stand_ins import MODULE, make_driver, make_libraries, make_no_driver, make_package
from python_module import FOLDER, needs_module

pytestmark = needs_module
FILE = SHIPPED / f'{SPARSE}.onnx'
NAME = 'swizzle_engine_cuda'
BUILT = BUILD / 'bin' / MODULE

ADDRESSES = ['--grpc-address=127.0.0.1:0', '--metrics-address=127.0.0.1:0']

# Opens a model on each device that is named, and says how each ends.
OPEN = '''
import sys, swizzle_engine
for device in sys.argv[2:]:
    try:
        with swizzle_engine.Model(sys.argv[1], device=device, threads=1) as model:
            print(device, 'open')
    except Exception as error:
        print(device, type(error).__name__, error)
'''


@pytest.fixture(scope='module')
def driver(tmp_path_factory):
    return make_driver(tmp_path_factory.mktemp('stand_ins'))


def run_with(driver, *command, packages=(), module=None):
    """What a command says, with this driver, these folders of packages, and this module named in the environment."""
    environment = {**os.environ, 'LD_LIBRARY_PATH': str(driver.parent),
                   'PYTHONPATH': os.pathsep.join(map(str, [FOLDER, *packages]))}
    environment.pop('SWIZZLE_CUDA_MODULE', None)
    if module is not None:
        environment['SWIZZLE_CUDA_MODULE'] = str(module)
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, env=environment)


def open_on(driver, *devices, script=OPEN, **options):
    done = run_with(driver, sys.executable, '-c', script, FILE, *devices, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_the_module_it_says_what_to_install(driver):
    first, second, third = open_on(driver, 'cuda', 'cuda:1', 'auto')
    for said, device in ((first, 'cuda'), (second, 'cuda:1')):
        assert said.startswith(f'{device} NotImplementedError the CUDA backend (libswizzle_cuda.so) is not installed: '
                               'pip install swizzle-engine-cuda, or ')
        assert '--' not in said  # flags are programs'
    assert third == 'auto open'


def test_the_package_is_found(tmp_path, driver):
    module = make_package(tmp_path)
    first, second, third, fourth = open_on(driver, 'cpu', 'cuda', 'cuda:1', 'auto', packages=[tmp_path])
    loaded = f'OSError {module} is of another build than this program; install both anew'
    assert (first, second, third, fourth) == ('cpu open', f'cuda {loaded}', f'cuda:1 {loaded}', 'auto open')


def test_without_a_driver_it_says_so(tmp_path):
    make_package(tmp_path)
    said, = open_on(make_no_driver(tmp_path), 'cuda', packages=[tmp_path])
    assert said == "cuda OSError there is no NVIDIA driver on this machine (libcuda.so.1); the device 'cpu' needs none"


def test_the_environment_names_another_module(tmp_path, driver):
    make_package(tmp_path)
    other = make_package(tmp_path / 'other')
    said, = open_on(driver, 'cuda', packages=[tmp_path], module=other)
    assert said.startswith(f'cuda OSError {other} is of another build')
    said, = open_on(driver, 'cuda', packages=[tmp_path], module=tmp_path / 'none.so')
    assert said.startswith(f'cuda NotImplementedError the CUDA backend ({tmp_path}/none.so) is not installed')
    (tmp_path / 'text.so').write_text('no library')
    said, = open_on(driver, 'cuda', module=tmp_path / 'text.so')
    assert said.startswith("cuda OSError the CUDA backend cannot be loaded; install CUDA's libraries, ")


def test_what_is_installed_meanwhile_is_found(tmp_path, driver):
    """As in a notebook, which told its user to install it."""
    make_package(tmp_path / 'later')
    install = f'import os; os.rename({str(tmp_path / "later" / NAME)!r}, {str(tmp_path / NAME)!r})'
    first, second = open_on(driver, 'cuda', packages=[tmp_path], script=f'{OPEN}\n{install}\n{OPEN}')
    assert 'is not installed' in first and 'is of another build' in second


def test_threads_find_it_once(tmp_path, driver):
    make_package(tmp_path)
    script = '''
import sys, threading, swizzle_engine
said, start = [], threading.Barrier(8)
def work():
    start.wait()
    try:
        swizzle_engine.Model(sys.argv[1], device='cuda')
    except OSError as error:
        said.append(str(error))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
mapped = sum('swizzle_engine_cuda/' in line and 'r-x' in line for line in open('/proc/self/maps'))
print(len(said), len(set(said)), mapped)
'''
    assert open_on(driver, script=script, packages=[tmp_path]) == ['8 1 1']


def test_the_session_names_cuda_where_the_package_is(tmp_path, driver):
    script = 'import swizzle_engine.onnxruntime as r; print(r.get_available_providers(), r.get_device())'
    assert open_on(driver, script=script) == ["['CPUExecutionProvider'] CPU"]
    make_package(tmp_path)
    assert open_on(driver, script=script, packages=[tmp_path]) == [
        "['CUDAExecutionProvider', 'CPUExecutionProvider'] GPU"]


@pytest.mark.parametrize('program, arguments', [
    ('swizzle_server', [f'--model={FILE}', '--device=cuda', *ADDRESSES]),
    ('swizzle_pack', ['inspect', FILE, '--device=cuda']),
    ('swizzle', ['serve', FILE, '--http-port=0', '--grpc-port=0', '--metrics-port=0', '--', '--device=cuda'])])
def test_the_packages_programs_find_it(tmp_path, driver, program, arguments):
    module = make_package(tmp_path)
    start = f'import swizzle_engine.programs as p; p.{program}()'
    done = run_with(driver, sys.executable, '-c', start, *arguments, packages=[tmp_path])
    assert done.returncode in (1, 2)
    assert f'{module} is of another build than this program' in done.stdout + done.stderr


LOADED = '''
print(*sorted({line.split()[-1] for line in open('/proc/self/maps') if 'libcublasLt' in line or 'libcudnn' in line}))
'''


def test_nvidias_libraries_of_another_environment_are_found(tmp_path, driver):
    """As one with --system-site-packages sees those of the system's."""
    libraries = make_libraries(tmp_path / 'others')
    make_package(tmp_path / 'own', libraries)
    packages = [tmp_path / 'own', tmp_path / 'others']
    said, loaded = open_on(driver, 'cuda', script=OPEN + LOADED, packages=packages)
    assert 'is of another build' in said and loaded.split() == [str(library) for library in libraries]
    start = 'import swizzle_engine.programs as p; p.swizzle_pack()'
    done = run_with(driver, sys.executable, '-c', start, 'inspect', FILE, '--device=cuda', packages=packages)
    assert 'is of another build' in done.stdout + done.stderr


def test_nvidias_libraries_are_not_loaded_without_need(tmp_path, driver):
    """Not twice, where another package has loaded them; not for a CPU; not without a driver."""
    first, second = make_libraries(tmp_path / 'others')
    make_package(tmp_path / 'own', [first, second])
    elsewhere, _ = make_libraries(tmp_path / 'elsewhere')
    packages = [tmp_path / 'own', tmp_path / 'others']
    load = f'import ctypes; ctypes.CDLL({str(elsewhere)!r})\n'
    said, loaded = open_on(driver, 'cuda', script=load + OPEN + LOADED, packages=packages)
    assert 'is of another build' in said and loaded.split() == [str(elsewhere), str(second)]
    assert open_on(driver, 'cpu', script=OPEN + LOADED, packages=packages) == ['cpu open', '']
    said, loaded = open_on(make_no_driver(tmp_path), 'cuda', script=OPEN + LOADED, packages=packages)
    assert 'no NVIDIA driver' in said and not loaded


def test_nvidias_libraries_beside_the_module_are_left_to_it(tmp_path, driver):
    """Its RPATH leads to them. The environment may also name another module, which knows its own."""
    make_libraries(tmp_path / 'own')
    make_libraries(tmp_path / 'others')
    module = make_package(tmp_path / 'own')
    script = '''
import os
from swizzle_engine import cuda
print(cuda.find_libraries(cuda.find_module()), cuda.environment()['LD_LIBRARY_PATH'])
'''
    packages = [tmp_path / 'others', tmp_path / 'own']
    assert open_on(driver, script=script, packages=packages) == [f'[] {driver.parent}']
    assert open_on(driver, script=script, packages=packages, module=module) == [f'[] {driver.parent}']


@pytest.mark.skipif(not BUILT.exists(), reason='this build has no CUDA backend')
def test_the_module_of_the_build_is_loaded(driver):
    """It asks the driver, which knows nothing."""
    said, = open_on(driver, 'cuda', module=BUILT)
    assert said == "cuda OSError there is no NVIDIA driver on this machine; the device 'cpu' needs none"
