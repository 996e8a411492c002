"""Where the CUDA module is: in the package swizzle_engine_cuda, which pip install swizzle-engine-cuda brings.

It is found, not imported. The variable of the environment that names the module's file comes first, in this process and
in programs.
"""

import importlib.util
import os

VARIABLE = 'SWIZZLE_CUDA_MODULE'
FILE = 'libswizzle_cuda.so'


def find_module() -> str | None:
    """The module's file; none where there is no such package."""
    if named := os.environ.get(VARIABLE):
        return named
    spec = importlib.util.find_spec('swizzle_engine_cuda')
    folders = spec.submodule_search_locations if spec is not None else None
    files = [os.path.join(folder, FILE) for folder in folders or ()]
    return next(filter(os.path.exists, files), None)


def environment() -> dict[str, str]:
    """This process's, for programs, which then know the module."""
    module = find_module()
    return {**os.environ, VARIABLE: module} if module is not None else dict(os.environ)
