"""What `cmake --install` installs: all of it, nothing that tells of the build, and libraries that others can use."""

import os
import re
import subprocess

import numpy
import onnx
import pytest
from onnx_graph import Graph

from conftest import BUILD, ROOT, SANITIZED, run

CACHE = (BUILD / 'CMakeCache.txt').read_text()
HAS_CUDA = re.search(r'CPACK_COMPONENTS_ALL ".*;cuda"', (BUILD / 'CPackConfig.cmake').read_text()) is not None
NUMBERS = [str(number) for number in range(16)]


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """A prefix that everything is installed into, and that is then moved: nothing may name where it was."""
    folder = tmp_path_factory.mktemp('install')
    run('cmake', '--install', BUILD, '--prefix', folder / 'first')
    return (folder / 'first').rename(folder / 'moved')


def files_of(folder):
    return sorted(path for path in folder.rglob('*') if path.is_file() or path.is_symlink())


@pytest.fixture(scope='module')
def libdir(installed):
    return next(installed.rglob('libswizzle_client.a')).parent


def test_programs_libraries_headers_and_pages_are_installed(installed, libdir):
    names = {str(path.relative_to(installed)) for path in files_of(installed)}
    lib = libdir.relative_to(installed)
    expected = {'bin/swizzle-server', 'bin/swizzle', 'bin/swizzle-pack', f'{lib}/libswizzle_client.a',
                f'{lib}/pkgconfig/swizzle-client.pc', f'{lib}/cmake/Swizzle/SwizzleConfig.cmake',
                f'{lib}/cmake/Swizzle/SwizzleConfigVersion.cmake', f'{lib}/cmake/Swizzle/SwizzleTargets.cmake',
                f'{lib}/cmake/Swizzle/client.cmake', f'{lib}/cmake/Swizzle/engine.cmake',
                f'{lib}/cmake/Swizzle/SwizzleEngineTargets.cmake', f'{lib}/pkgconfig/swizzle-engine.pc',
                f'{lib}/libswizzle_engine.so', f'{lib}/libswizzle_engine.so.0.1', f'{lib}/libswizzle_engine.so.0.1.0',
                'include/swizzle/engine/engine.h',
                'include/swizzle/client/client.h', 'include/swizzle/client/model_statistics.h',
                'include/swizzle/client/tensor.h',
                'lib/systemd/system/swizzle-server.service', 'share/doc/swizzle-server/README.md',
                'share/doc/swizzle-server/copyright', 'share/man/man1/swizzle-server.1', 'share/man/man1/swizzle.1',
                'share/man/man1/swizzle-pack.1', 'share/bash-completion/completions/swizzle'}
    if HAS_CUDA:
        expected |= {'lib/swizzle/libswizzle_cuda.so', 'lib/systemd/system/swizzle-server.service.d/gpus.conf',
                     'share/doc/swizzle-cuda/copyright'}
    assert expected <= names
    code = {name for name in names if not name.startswith('share/') and '/cmake/' not in name}
    assert code == {name for name in expected if not name.startswith('share/') and '/cmake/' not in name}


def test_nothing_that_is_installed_names_the_build(installed):
    texts = [path for path in files_of(installed) if path.suffix in ('.cmake', '.pc', '.h', '.md', '.cc')]
    assert len(texts) > 8
    for path in texts:
        text = path.read_text()
        assert str(BUILD) not in text and str(ROOT) not in text and str(installed.parent) not in text, path
    binaries = [path for path in files_of(installed) if path.parent.name == 'bin' or path.suffix == '.so']
    assert len(binaries) >= 3
    for path in binaries:
        assert not re.search(r'RPATH|RUNPATH', run('readelf', '--dynamic', path)), path
        if 'CMAKE_BUILD_TYPE:STRING=Release\n' in CACHE:
            assert str(ROOT).encode() not in path.read_bytes(), path


def test_components_are_apart(tmp_path, installed):
    """No file is in two components, and together they are everything."""
    packages = ['server', 'tools', 'engine', 'dev', 'client-dev', 'engine-dev', *(['cuda'] if HAS_CUDA else [])]
    names = []
    for component in packages:
        run('cmake', '--install', BUILD, '--prefix', tmp_path / component, '--component', component)
        names += [str(path.relative_to(tmp_path / component)) for path in files_of(tmp_path / component)]
    assert sorted(names) == sorted(str(path.relative_to(installed)) for path in files_of(installed))


def test_installed_programs_run(installed):
    for name in ('swizzle-server', 'swizzle', 'swizzle-pack'):
        assert name in run(installed / 'bin' / name, '--help')


@pytest.mark.skipif(SANITIZED, reason='what links the library would have to be sanitized, too')
@pytest.mark.parametrize('way', ('find_package', 'pkg-config'))
def test_a_program_uses_the_installed_client(way, installed, libdir, tmp_path, repository, start):
    example = next(installed.rglob('infer.cc')).parent
    environment = {**os.environ, 'PKG_CONFIG_PATH': str(libdir / 'pkgconfig')}
    if way == 'find_package':
        run('cmake', '-S', example, '-B', tmp_path / 'build', f'-DCMAKE_PREFIX_PATH={installed}')
        run('cmake', '--build', tmp_path / 'build')
        infer, stream = tmp_path / 'build' / 'infer', tmp_path / 'build' / 'stream'
    else:
        infer, stream = tmp_path / 'infer', None
        flags = run('pkg-config', '--cflags', '--libs', 'swizzle-client', env=environment).split()
        run('g++', '-std=c++20', example / 'infer.cc', *flags, '-o', infer)
    server = start(repository.identity())
    assert run(infer, server.grpc, 'identity', *NUMBERS) == f'OUTPUT0 [1,16]: {" ".join(NUMBERS)}\n'
    refused = subprocess.run([infer, server.grpc, 'identity', '1'], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and 'INPUT0' in refused.stderr
    if stream:
        other = start(repository)
        lines = run(stream, f'{server.grpc},{other.grpc}', 'identity', 3, *NUMBERS)
        assert lines == ''.join(f'{i}: OUTPUT0 [1,16]\n' for i in range(3))


@pytest.fixture(scope='module')
def linear(tmp_path_factory):
    """A model: [rows, 2] times [[1, 2, 3], [4, 5, 6]]."""
    graph = Graph(17, 0)
    weight = graph.initializer(numpy.arange(1, 7).reshape(2, 3))
    graph.output(graph.node('MatMul', [graph.input(2, name='x'), weight]), 'y')
    path = tmp_path_factory.mktemp('model') / 'linear.onnx'
    onnx.save(graph.finish('linear'), path)
    return path


@pytest.mark.skipif(SANITIZED, reason='what links the library would have to be sanitized, too')
@pytest.mark.parametrize('way', ('find_package', 'pkg-config'))
def test_a_program_uses_the_installed_engine(way, installed, libdir, tmp_path, linear):
    example = next(installed.rglob('run_model.cc')).parent
    environment = {**os.environ, 'PKG_CONFIG_PATH': str(libdir / 'pkgconfig'), 'LD_LIBRARY_PATH': str(libdir)}
    if way == 'find_package':
        run('cmake', '-S', example, '-B', tmp_path / 'build', f'-DCMAKE_PREFIX_PATH={installed}')
        run('cmake', '--build', tmp_path / 'build')
        program = tmp_path / 'build' / 'run_model'
    else:
        program = tmp_path / 'run_model'
        flags = run('pkg-config', '--cflags', '--libs', 'swizzle-engine', env=environment).split()
        # ONNX's own library beside it: both have the messages of its schema, and one protobuf.
        run('g++', '-std=c++20', example / 'run_model.cc', *flags, '-Wl,--no-as-needed', '-lonnx', '-o', program)
    assert run(program, linear, '1', '2', '3', '4', env=environment) == 'y [2,3]: 9 12 15 19 26 33\n'
    refused = subprocess.run([program, linear, '1', '2', '3'], capture_output=True, text=True, timeout=60,
                             env=environment)
    assert refused.returncode == 1
    assert refused.stderr == "run_model: input 'x' of model 'linear' has 12 bytes; FP32 [1,2] needs 8\n"


def test_the_engine_brings_no_network_and_shows_nothing_but_itself(libdir):
    library = libdir / 'libswizzle_engine.so'
    needed = run('readelf', '--dynamic', library)
    assert not re.search(r'NEEDED.*(grpc|ssl|crypto|prometheus|boost|spdlog|onnx)', needed)
    symbols = run('nm', '--dynamic', '--demangle', '--defined-only', library).splitlines()
    shown = {re.search(r'swizzle::engine::(\w+)', line)[1] for line in symbols}
    functions = {'Version', 'UseCudaModule', 'Prune', 'Quantize', 'Pack', 'Model'}
    assert functions <= shown <= functions | {'PruneOptions'}  # whose destructor is inline


@pytest.mark.skipif(SANITIZED, reason='the same library')
@pytest.mark.parametrize('missing', ('client', 'engine'))
def test_a_library_that_is_not_installed_is_not_found(missing, installed, tmp_path):
    other = {'client': 'engine', 'engine': 'client'}[missing]
    for component in ('dev', 'engine', f'{other}-dev'):
        run('cmake', '--install', BUILD, '--prefix', tmp_path / 'prefix', '--component', component)
    for name in (missing, other):
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'CMakeLists.txt').write_text(
            'cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n'
            f'find_package(Swizzle REQUIRED COMPONENTS {name})\nget_target_property(type Swizzle::{name} TYPE)\n')
        result = subprocess.run(['cmake', '-S', folder, '-B', folder / 'build',
                                 f'-DCMAKE_PREFIX_PATH={tmp_path / "prefix"}'], capture_output=True, text=True,
                                timeout=120)
        assert (result.returncode == 0) == (name == other), result.stderr


@pytest.mark.skipif(SANITIZED, reason='the same library')
def test_another_version_is_not_found(installed, tmp_path):
    (tmp_path / 'CMakeLists.txt').write_text(
        'cmake_minimum_required(VERSION 3.25)\nproject(newer LANGUAGES NONE)\nfind_package(Swizzle 99.0 REQUIRED)\n')
    result = subprocess.run(['cmake', '-S', tmp_path, '-B', tmp_path / 'build', f'-DCMAKE_PREFIX_PATH={installed}'],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode != 0 and 'version: 0.1' in result.stderr
