"""What a wheel is made of, and how one is built. With SWIZZLE_WHEEL=FILE in the environment a wheel that was built is
installed into an environment of its own, and used as README says; with SWIZZLE_CUDA_WHEEL=FILE that of the CUDA module,
too, with NVIDIA's wheels.
"""

import ast
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile

import pytest

from conftest import BUILD, ROOT, SHIPPED, SPARSE, run
from cuda_stand_ins import MODULE, make_driver, make_no_driver
from install_test import HAS_CUDA
from python_module import FOLDER, needs_module, run_python, swizzle_engine

SOURCES = ROOT / 'server/python/swizzle_engine'
PROJECT = tomllib.loads((ROOT / 'deploy/wheel/pyproject.toml').read_text())
CUDA_PROJECT = tomllib.loads((ROOT / 'deploy/wheel-cuda/pyproject.toml').read_text())
WHEEL, CUDA_WHEEL = os.environ.get('SWIZZLE_WHEEL'), os.environ.get('SWIZZLE_CUDA_WHEEL')
needs_wheel = pytest.mark.skipif(not WHEEL, reason='SWIZZLE_WHEEL names no wheel: a release is built for one by '
                                                   'deploy/build-wheel, which takes as long as all tests')
needs_cuda_wheel = pytest.mark.skipif(not (WHEEL and CUDA_WHEEL), reason='SWIZZLE_CUDA_WHEEL names no wheel: the CUDA '
                                      'module of a release takes hours to build')
PROGRAMS = ('swizzle', 'swizzle-server', 'swizzle-pack')
MOST_BYTES = 40_000_000


def test_each_file_of_the_package_is_in_it():
    sources = {path.name for path in SOURCES.iterdir() if path.is_file()}
    listed = re.search(r'set\(python_files (.*?)\)', (ROOT / 'server/python/CMakeLists.txt').read_text(), re.DOTALL)[1]
    assert set(listed.split()) == sources


@needs_module
def test_the_component_is_the_package(tmp_path):
    """Nothing but it, and it is in no installation that does not ask for it (install_test.py)."""
    run('cmake', '--install', BUILD, '--prefix', tmp_path, '--component', 'python')
    assert [path.name for path in tmp_path.iterdir()] == ['swizzle_engine']
    package = tmp_path / 'swizzle_engine'
    names = {path.name for path in package.iterdir()}
    module, = package.glob('_engine*.so')
    assert names == {path.name for path in SOURCES.iterdir() if path.is_file()} | {'bin', 'licenses', module.name}
    assert {path.name for path in (package / 'bin').iterdir()} == {'swizzle', 'swizzle-server'}
    assert all(path.stat().st_mode & stat.S_IXUSR for path in (package / 'bin').iterdir())
    licences = {path.stem for path in (package / 'licenses').iterdir()}
    assert {'LICENSE', 'nanobind', 'libdnnl2'} <= licences or {'LICENSE', 'nanobind', 'libdnnl3.6'} <= licences


@needs_module
@pytest.mark.parametrize('name', PROGRAMS)
def test_each_program_of_the_component_runs(tmp_path, name):
    """swizzle-pack is in the server's file there: the engine is large, and both have it."""
    run('cmake', '--install', BUILD, '--prefix', tmp_path, '--component', 'python')
    script = f'import swizzle_engine.programs as p; p.{name.replace("-", "_")}()'
    done = subprocess.run([sys.executable, '-c', script, '--version'], capture_output=True, text=True, timeout=60,
                          cwd=tmp_path, env={**os.environ, 'PYTHONPATH': str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, f'{name} {swizzle_engine.__version__}\n'), done.stderr


def test_scripts_are_the_programs():
    scripts = PROJECT['project']['scripts']
    assert scripts == {name: f'swizzle_engine.programs:{name.replace("-", "_")}' for name in PROGRAMS}
    defined = {node.name for node in ast.parse((SOURCES / 'programs.py').read_text()).body
               if isinstance(node, ast.FunctionDef)}
    assert {target.rpartition(':')[2] for target in scripts.values()} <= defined


@pytest.mark.parametrize('arguments, program', [
    (['-m', 'swizzle_engine', 'serve', 'a model.onnx', '--flag'], 'swizzle'),
    (['-c', 'import swizzle_engine.programs as p; p.swizzle_server()', 'serve', 'a model.onnx', '--flag'],
     'swizzle-server')])
def test_a_program_takes_the_place_of_python(tmp_path, arguments, program):
    """It gets the arguments as they are, and finds the others on its PATH."""
    (tmp_path / 'swizzle_engine/bin').mkdir(parents=True)
    for path in SOURCES.glob('*.py'):
        (tmp_path / 'swizzle_engine' / path.name).write_text(path.read_text())
    file = tmp_path / 'swizzle_engine/bin' / program
    file.write_text('#!/bin/sh\nprintf "%s\\n" "$$" "${PATH%%:*}" "$@"\n')
    file.chmod(0o755)
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                               env={**os.environ, 'PYTHONPATH': str(tmp_path)})
    said = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0
    assert said == [str(process.pid), str(file.parent), 'serve', 'a model.onnx', '--flag']


def test_a_package_without_programs_says_so(tmp_path):
    (tmp_path / 'swizzle_engine').mkdir()
    for path in SOURCES.glob('*.py'):
        (tmp_path / 'swizzle_engine' / path.name).write_text(path.read_text())
    done = subprocess.run([sys.executable, '-m', 'swizzle_engine'], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and 'swizzle is missing in' in done.stderr


@needs_module
def test_programs_of_the_build_run():
    for name in PROGRAMS:
        said = run_python(f'import swizzle_engine.programs as p; p.{name.replace("-", "_")}()', '--help').stdout
        assert name in said and '--help' in said


@needs_module
def test_the_version_is_the_builds():
    version = re.search(r'project\(swizzle VERSION ([\d.]+)', (ROOT / 'CMakeLists.txt').read_text())[1]
    assert swizzle_engine.__version__ == version
    for project, folder in ((PROJECT, 'wheel'), (CUDA_PROJECT, 'wheel-cuda')):
        settings = project['tool']['dynamic-metadata'][0]
        file = ROOT / 'deploy' / folder / settings['input']
        assert settings['field'] == 'version' and re.search(settings['regex'], file.read_text())['value'] == version


def stub_names(body):
    return {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


@needs_module
def test_the_modules_stubs_name_what_it_has():
    module = swizzle_engine.model._engine if hasattr(swizzle_engine, 'model') else __import__(
        'swizzle_engine._engine', fromlist=['_engine'])
    stubs = stub_names(ast.parse((SOURCES / '_engine.pyi').read_text()).body)
    assert set(stubs) == {name for name in dir(module) if not name.startswith('_')}
    for name, node in stubs.items():
        if isinstance(node, ast.ClassDef):
            own = {each for each in vars(getattr(module, name)) if not each.startswith('_')}
            assert set(stub_names(node.body)) - {'__init__'} == own, name


def test_the_packages_stubs_name_what_it_has():
    listed = ast.parse((SOURCES / '__init__.pyi').read_text()).body
    names = {alias.asname for node in listed if isinstance(node, ast.ImportFrom) for alias in node.names}
    exported = re.search(r'__all__ = \[(.*?)\]', (SOURCES / '__init__.py').read_text())[1]
    assert names | {'__version__'} == set(re.findall(r'\w+', exported))


def test_what_building_takes_is_pinned():
    command = (ROOT / 'deploy/build-wheel').read_text()
    tools = re.search(r"'\^\((\S+)\)=='", command)[1].split('|')
    pins = (ROOT / 'tests/requirements.txt').read_text()
    for tool in tools:
        assert re.search(rf'^{re.escape(tool)}==\d', pins, re.MULTILINE), tool
    for project in (PROJECT, CUDA_PROJECT):
        assert {re.match(r'[\w-]+', each)[0] for each in project['build-system']['requires']} <= set(tools)


def test_the_cuda_module_needs_the_same_version_and_what_it_links_to():
    """Its RPATH leads to the folders where NVIDIA's wheels have the libraries that the wheel leaves out."""
    settings = CUDA_PROJECT['tool']['dynamic-metadata'][1]
    assert settings['field'] == 'dependencies'
    needed = dict(re.match(r'([\w-]+)(.*)', each).groups() for each in settings['result'])
    assert needed.keys() == {'swizzle-engine', 'nvidia-cublas', 'nvidia-cudnn-cu13'}
    assert needed['swizzle-engine'] == '=={project[version]}'
    left_out = re.findall(r"--exclude '(\S+)'", (ROOT / 'deploy/build-wheel').read_text())
    assert left_out == ['libcublasLt.so.*', 'libcudnn.so.*']
    folders = CUDA_PROJECT['tool']['scikit-build']['cmake']['define']['CMAKE_INSTALL_RPATH']
    assert folders == ['$ORIGIN/../nvidia/cu13/lib', '$ORIGIN/../nvidia/cudnn/lib']
    options = (ROOT / 'kernels/cuda/CMakeLists.txt').read_text()
    assert 'COMPONENT python-cuda' in options and CUDA_PROJECT['tool']['scikit-build']['install'] == {
        'components': ['python-cuda']}


@pytest.mark.skipif(not HAS_CUDA, reason='this build has no CUDA backend')
def test_the_component_of_the_cuda_module_is_its_package(tmp_path):
    run('cmake', '--install', BUILD, '--prefix', tmp_path, '--component', 'python-cuda')
    assert [path.name for path in tmp_path.iterdir()] == ['swizzle_engine_cuda']
    names = {path.name for path in (tmp_path / 'swizzle_engine_cuda').iterdir()}
    assert names == {MODULE, 'licenses'}
    assert (tmp_path / 'swizzle_engine_cuda/licenses/LICENSE').exists()


@pytest.mark.parametrize('arguments, message', (
    (('--fast',), "unknown argument '--fast'"),
    (('--jobs=none',), '--jobs needs a number'),
    (('--python=no-such-python',), "there is no program 'no-such-python'"),
))
def test_the_command_refuses_what_it_does_not_know(arguments, message):
    done = subprocess.run([ROOT / 'deploy/build-wheel', *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and message in done.stderr


def test_the_command_says_what_it_does():
    said = run(ROOT / 'deploy/build-wheel', '--help')
    assert said.startswith('Usage: deploy/build-wheel') and '--python=PROGRAM' in said and '--cuda' in said


def test_the_command_needs_nvcc_for_the_cuda_module(tmp_path):
    for tool in ('bash', 'dirname', 'readlink', 'nproc'):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    done = subprocess.run([ROOT / 'deploy/build-wheel', '--cuda'], capture_output=True, text=True, timeout=60,
                          env={'PATH': str(tmp_path)})
    assert done.returncode == 1 and '--cuda needs nvcc on the PATH' in done.stderr


@pytest.fixture(scope='module')
def environment(tmp_path_factory):
    """A fresh environment with the wheel, and what it asks for, installed."""
    folder = tmp_path_factory.mktemp('environment')
    run(sys.executable, '-m', 'venv', folder)
    run(folder / 'bin/python', '-m', 'pip', 'install', '--quiet', WHEEL)
    return folder


@needs_wheel
def test_the_wheel_is_small_and_needs_nothing_but_glibc():
    assert pathlib.Path(WHEEL).stat().st_size <= MOST_BYTES
    assert re.search(r'-manylinux_2_3\d_x86_64\.whl$', WHEEL)
    names = zipfile.ZipFile(WHEEL).namelist()
    for library in ('dnnl', 'protobuf', 'grpc', 'hwy'):
        assert any(re.match(rf'swizzle_engine\.libs/lib{library}', name) for name in names), library
    assert not any(name.endswith('.pc') or '/include/' in name for name in names)


@needs_wheel
def test_the_wheel_runs_a_model(environment, tmp_path):
    script = '''
import sys, numpy, swizzle_engine
model = swizzle_engine.Model(sys.argv[1])
print({name: array.shape for name, array in model(numpy.zeros((2, 1, 28, 28), numpy.float32)).items()})
print(model.inspect())
print(swizzle_engine.__file__)
'''
    said = run(environment / 'bin/python', '-c', script, SHIPPED / f'{SPARSE}.onnx', cwd=tmp_path)
    assert '(2, 10)' in said and str(environment) in said and str(FOLDER) not in said


@needs_wheel
def test_the_wheel_takes_nothing_else_of_the_machine(environment, tmp_path):
    """But what every Linux of its kind has, and what Python itself brings."""
    script = '''
import sys, numpy, swizzle_engine
before = {line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}
swizzle_engine.Model(sys.argv[1])(numpy.zeros((1, 1, 28, 28), numpy.float32))
print(*({line.split()[-1] for line in open('/proc/self/maps') if '.so' in line} - before), sep='\\n')
'''
    taken = run(environment / 'bin/python', '-c', script, SHIPPED / f'{SPARSE}.onnx', cwd=tmp_path).split()
    assert any('/swizzle_engine.libs/' in path for path in taken)
    usual = re.compile(r'/(ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z|ffi|crypto|ssl))\.so|/lib-dynload/')
    assert not [path for path in taken if str(environment) not in path and not usual.search(path)]


@needs_wheel
def test_the_wheels_programs_serve(environment, tmp_path):
    from conftest import START_SECONDS, STOP_SECONDS, wait_until
    import json
    ports = tmp_path / 'ports.json'
    server = subprocess.Popen([environment / 'bin/swizzle-server', f'--model={SHIPPED / SPARSE}.onnx,name=fashion',
                               '--grpc-address=127.0.0.1:0', '--metrics-address=127.0.0.1:0',
                               f'--port-file={ports}', '--tuning-budget=0'], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: ports.exists() and ports.read_text(), START_SECONDS, 'the start of the server')
        address = f'--address=127.0.0.1:{json.loads(ports.read_text())["grpc"]}'
        run(environment / 'bin/swizzle', address, 'health', 'fashion', f'--wait={START_SECONDS}')
        assert '20 requests' in run(environment / 'bin/swizzle', address, 'bench', 'fashion', '--requests=20')
        server.terminate()
        assert server.wait(STOP_SECONDS) == 0
    finally:
        server.kill()
        server.wait(STOP_SECONDS)


@pytest.fixture(scope='module')
def cuda_environment(environment):
    """With the CUDA module, and NVIDIA's wheels, which it asks for."""
    run(environment / 'bin/python', '-m', 'pip', 'install', '--quiet', CUDA_WHEEL)
    return environment


@needs_cuda_wheel
def test_the_cuda_wheel_leaves_nvidias_libraries_to_nvidia():
    assert re.search(r'swizzle_engine_cuda-[\d.]+-py3-none-manylinux_2_3\d_x86_64\.whl$', CUDA_WHEEL)
    names = zipfile.ZipFile(CUDA_WHEEL).namelist()
    package = {name for name in names if re.match(r'swizzle_engine_cuda/[^/]+$', name)}
    assert package == {'swizzle_engine_cuda/__init__.py', f'swizzle_engine_cuda/{MODULE}'}
    assert not [name for name in names if re.search(r'lib(cu|nv)', name)]


@needs_cuda_wheel
def test_the_cuda_wheel_is_found_with_nvidias_libraries(cuda_environment, tmp_path):
    """As far as a driver that knows nothing lets it come, in Python and in programs; without one it is not loaded."""
    script = '''
import re, sys, swizzle_engine
try:
    swizzle_engine.Model(sys.argv[1], device='cuda')
except OSError as error:
    print(error)
ours = re.compile(r'lib(cublasLt|cudnn|swizzle_cuda)')
print(*sorted({line.split()[-1] for line in open('/proc/self/maps') if ours.search(line)}))
'''
    python, model = cuda_environment / 'bin/python', SHIPPED / f'{SPARSE}.onnx'
    usual = {name: value for name, value in os.environ.items() if name != 'SWIZZLE_CUDA_MODULE'}
    environment = {**usual, 'LD_LIBRARY_PATH': str(make_driver(tmp_path).parent)}
    said, *loaded = run(python, '-c', script, model, env=environment, cwd=tmp_path).splitlines()
    assert said == "there is no NVIDIA driver on this machine; the device 'cpu' needs none"
    packages, = (cuda_environment / 'lib').glob('python3.*/site-packages')
    assert loaded[0].split() == [str(packages / path) for path in (
        'nvidia/cu13/lib/libcublasLt.so.13', 'nvidia/cudnn/lib/libcudnn.so.9', f'swizzle_engine_cuda/{MODULE}')]
    for program in (['swizzle-pack', 'inspect', model], ['swizzle-server', f'--model={model}']):
        done = subprocess.run([cuda_environment / 'bin' / program[0], *program[1:], '--device=cuda'], env=environment,
                              capture_output=True, text=True, timeout=120)
        assert done.returncode in (1, 2) and said in done.stdout + done.stderr
    environment['LD_LIBRARY_PATH'] = str(make_no_driver(tmp_path).parent)
    said, *loaded = run(python, '-c', script, model, env=environment, cwd=tmp_path).splitlines()
    assert 'no NVIDIA driver on this machine (libcuda.so.1)' in said and not ''.join(loaded)
