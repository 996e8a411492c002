"""The files of Debian packages, fetched with apt-get and unpacked; nothing is installed and none of their scripts run."""

import pathlib
import subprocess
import tempfile

import wheels


def unpacked(package, folders=None):
    """Returns the folder of a package's files, as of the root folder. It is fetched at the first call, and kept.

    Args:
      folders: where each package is unpacked in a folder of its name; then nothing is fetched.

    Raises OSError if apt-get cannot fetch it, FileNotFoundError if it is not in `folders`.
    """
    folder = (pathlib.Path(folders) if folders else wheels.cache_folder() / 'debian') / package
    if folder.is_dir():
        return folder
    if folders:
        raise FileNotFoundError(f"{folder} is not there; unpack Debian's package {package} there with dpkg-deb -x")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        work = pathlib.Path(work)
        # Else root's apt-get warns that its own user can't write here.
        command = ['apt-get', 'download', '-qq', '-o', 'APT::Sandbox::User=root', package]
        if subprocess.run(command, cwd=work).returncode:
            raise OSError(f"apt-get could not download Debian's package {package}; its message is above; 'apt-get update' "
                          'may help, and --packages takes a folder where packages are unpacked')
        (archive,) = work.glob('*.deb')
        subprocess.run(['dpkg-deb', '-x', archive, work / 'files'], check=True)
        (work / 'files').rename(folder)
    return folder
