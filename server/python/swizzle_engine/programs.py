"""The programs that the package brings: the server, its client on the command line, and the tool for model files."""

import os
import pathlib
import sys
from typing import NoReturn

from swizzle_engine import cuda

FOLDER = pathlib.Path(__file__).parent / 'bin'


def _become(name: str) -> NoReturn:
    """Runs the program in this process's place, which signals then reach. The others are on its PATH, and it knows
    where the CUDA module is."""
    path = FOLDER / name
    if name == 'swizzle-pack' and not path.exists():
        path = FOLDER / 'swizzle-server'  # is both in a wheel, by the name that it is called by
    if not path.exists():
        sys.exit(f'{name} is missing in {FOLDER}: this package was built without programs')
    folders = [str(FOLDER), *filter(None, [os.environ.get('PATH')])]
    os.execve(path, [name, *sys.argv[1:]], {**cuda.environment(), 'PATH': os.pathsep.join(folders)})


def swizzle() -> NoReturn:
    _become('swizzle')


def swizzle_server() -> NoReturn:
    _become('swizzle-server')


def swizzle_pack() -> NoReturn:
    _become('swizzle-pack')
