"""The Python package of the build under test, for the tests that import it."""

import importlib.machinery
import os
import subprocess
import sys

import pytest

from conftest import BUILD, SANITIZED

FOLDER = BUILD / 'python'
IS_BUILT = any((FOLDER / 'swizzle_engine' / f'_engine{suffix}').exists()
               for suffix in importlib.machinery.EXTENSION_SUFFIXES)
needs_module = pytest.mark.skipif(
    SANITIZED or not IS_BUILT, reason='the Python module is built where nanobind is installed, for the Python that it '
                                      'is installed in, and without sanitizers')

swizzle_engine = None
if IS_BUILT and not SANITIZED:
    sys.path.append(str(FOLDER))
    import swizzle_engine
    import swizzle_engine.onnxruntime


def run_python(script, *arguments, check=True, timeout=300, cwd=None):
    """A Python of its own that runs this text with the package; what it printed, and its errors."""
    done = subprocess.run([sys.executable, '-c', script, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, cwd=cwd, env={**os.environ, 'PYTHONPATH': str(FOLDER)})
    if check:
        assert done.returncode == 0, f'{done.returncode}\n{done.stdout}{done.stderr}'
    return done
