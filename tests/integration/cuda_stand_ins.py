"""What stands in for NVIDIA's driver and for the CUDA module, on any machine: libraries to be found and loaded, which
compute nothing. LD_LIBRARY_PATH leads to a driver, before the machine's own."""

import subprocess

DRIVER, MODULE = 'libcuda.so.1', 'libswizzle_cuda.so'
LIBRARIES = ('nvidia/cu13/lib/libcublasLt.so.13', 'nvidia/cudnn/lib/libcudnn.so.9')
# Of another build than any program, which says so once it has loaded it.
_MODULE = '''
static const struct { const char* build; void* functions[5]; } module = {"another", {0}};
const void* SwizzleCudaModule(void) { return &module; }
'''


def _compile(file, source, *options):
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(['cc', '-shared', '-fPIC', '-x', 'c', '-', '-x', 'none', *options, '-o', file], input=source,
                   text=True, check=True)
    return file


def make_driver(folder):
    """A driver that can be loaded, and knows nothing: CUDA takes it for none."""
    return _compile(folder / 'driver' / DRIVER, 'void nothing(void) {}')


def make_no_driver(folder):
    """What is in a driver's place, and cannot be loaded: as where there is none."""
    file = folder / 'no_driver' / DRIVER
    file.parent.mkdir()
    file.write_text('no library')
    return file


def make_libraries(folder):
    """NVIDIA's libraries where pip puts them in `folder`. They have what CUDA's own lack, which a machine may know."""
    return [_compile(folder / name, f'void StandIn{number}(void) {{}}', f'-Wl,-soname,{name.rpartition("/")[2]}')
            for number, name in enumerate(LIBRARIES)]


def make_package(folder, libraries=()):
    """The package swizzle_engine_cuda with a module that is of another build, to be found in `folder`. It links to
    these libraries, and does not know where they are."""
    calls = ''.join(f'void StandIn{number}(void); void Call{number}(void) {{ StandIn{number}(); }}'
                    for number in range(len(libraries)))
    return _compile(folder / 'swizzle_engine_cuda' / MODULE, _MODULE + calls, *libraries)
