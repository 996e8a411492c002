"""Where the CUDA module is: in the package swizzle_engine_cuda, which pip install swizzle-engine-cuda brings.

It is found, not imported. The variable of the environment that names the module's file comes first, in this process and
in programs. The module finds NVIDIA's libraries in wheels that lie beside it. Those of wheels elsewhere on Python's
path, which an environment with --system-site-packages sees, are found here.
"""

import ctypes
import importlib.util
import os
import sys

VARIABLE = 'SWIZZLE_CUDA_MODULE'
FILE = 'libswizzle_cuda.so'
LIBRARIES = ('nvidia/cu13/lib/libcublasLt.so.13', 'nvidia/cudnn/lib/libcudnn.so.9')


def find_module() -> str | None:
    """The module's file; none where there is no such package."""
    if named := os.environ.get(VARIABLE):
        return named
    spec = importlib.util.find_spec('swizzle_engine_cuda')
    folders = spec.submodule_search_locations if spec is not None else None
    files = [os.path.join(folder, FILE) for folder in folders or ()]
    return next(filter(os.path.exists, files), None)


def find_libraries(module: str) -> list[str]:
    """NVIDIA's libraries that the module would not find by itself, and Python's path leads to."""
    if os.environ.get(VARIABLE):
        return []
    beside = os.path.dirname(os.path.dirname(module))
    found = []
    for library in LIBRARIES:
        own, *others = (os.path.join(folder, library) for folder in (beside, *sys.path))
        if not os.path.exists(own):
            found += [file for file in others if os.path.exists(file)][:1]
    return found


def load_libraries(module: str) -> None:
    """So that the module, once it is opened, has them. What another package has loaded is shared."""
    for library in find_libraries(module):
        if _loads('libcuda.so.1') and not _loads(os.path.basename(library), os.RTLD_NOLOAD):
            _loads(library)


def _loads(library: str, mode: int = 0) -> bool:
    try:
        ctypes.CDLL(library, mode=mode)
    except OSError:  # the engine says what it lacks
        return False
    return True


def environment() -> dict[str, str]:
    """This process's, for programs, which then know the module, and find what it links to."""
    module = find_module()
    if module is None:
        return dict(os.environ)
    folders = [os.path.dirname(library) for library in find_libraries(module)]
    path = filter(None, [os.environ.get('LD_LIBRARY_PATH'), *folders])
    return {**os.environ, VARIABLE: module, **({'LD_LIBRARY_PATH': os.pathsep.join(path)} if folders else {})}
