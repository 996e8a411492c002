"""Man pages and completions, which are made of the pages of flags: all that --help tells of is in them."""

import re
import shutil
import subprocess

import pytest

from conftest import BUILD, program

PROGRAMS = ['swizzle-server', 'swizzle', 'swizzle-pack']
FOLDER = BUILD / 'packages'


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60, **options)
    assert result.returncode == 0 and not result.stderr, result.stdout + result.stderr
    return result.stdout


def commands_of(name):
    """The commands that the program's help lists; none of one without."""
    return re.findall(r'^  (\w+) ', run(program(name), '--help').partition('\nSubcommands:')[2], re.MULTILINE)


def entries(text):
    """Flag -> what it means, of a program's or command's help. Meanings stand in one column, perhaps a line below."""
    lines = text.partition('\nSubcommands:')[0].splitlines()
    column = next(line.index('Print this') for line in lines if '--help ' in line)
    found = {}
    for line, below in zip(lines, [*lines[1:], '']):
        if flag := re.match(r'  (?:-\w,)?(--[\w-]+)', line):
            found[flag[1]] = (below if below.startswith('   ') else line)[column:]
    return found


def helps(name):
    """Command, '' for the program itself -> its flags."""
    return {'': entries(run(program(name), '--help'))} | {
        command: entries(run(program(name), command, '--help')) for command in commands_of(name)}


@pytest.mark.skipif(not shutil.which('groff'), reason='Debian package groff-base is missing')
@pytest.mark.parametrize('name', PROGRAMS)
def test_the_man_page_tells_what_help_does(name):
    page = FOLDER / f'{name}.1'
    shown = run('groff', '-man', '-ww', '-Kutf8', '-Tascii', '-P-cbou', '-rHY=0', '-rLL=2000n', page)  # no word is cut
    text = ' '.join(shown.split())
    for command, flags in helps(name).items():
        if command:
            assert re.search(rf'^   {command}( |$)', shown, re.MULTILINE), command
        for flag, meaning in flags.items():
            assert re.search(rf'^ +(-\w, )?{flag}(=| |$)', shown, re.MULTILINE), flag
            assert ' '.join(meaning.split()) in text, meaning
    for heading in ('NAME', 'SYNOPSIS', 'SEE ALSO'):
        assert re.search(rf'^{heading}$', shown, re.MULTILINE)
    assert re.search(rf'NAME {name} - \w', text)


@pytest.mark.skipif(not shutil.which('groff'), reason='Debian package groff-base is missing')
def test_examples_and_exit_codes_are_on_the_page():
    text = ' '.join(run('groff', '-man', '-Tascii', '-P-cbou', '-rHY=0', '-rLL=2000n', FOLDER / 'swizzle-pack.1').split())
    assert "swizzle-pack prune model.onnx pruned.onnx --sparsity=0.9 --skip='*stem*' --skip='classifier.*'" in text
    assert 'Exit codes: 0 done, 1 a check failed' in text


def completed(name, *words):
    """What bash offers for the last of the words; readline cuts them at each =, as here."""
    given = ' '.join(f"'{word}'" for word in words)
    return run('bash', '--norc', '-c', f'''
        source "{FOLDER / name}"
        COMP_WORDS=({name} {given}) COMP_CWORD={len(words)}
        $(complete -p {name} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}"''').split()


@pytest.mark.parametrize('name', PROGRAMS)
def test_all_flags_are_offered(name):
    everywhere = set(helps(name)[''])
    for command, flags in helps(name).items():
        words = [command] if command else []
        assert sorted(completed(name, *words, '--')) == sorted(everywhere | set(flags))
        assert completed(name, *words, '--no-such') == []


def test_commands_are_offered_where_one_may_stand():
    commands = commands_of('swizzle')
    assert len(commands) > 5
    assert completed('swizzle', '') == completed('swizzle', '--tls', '') == commands
    assert completed('swizzle', '--timeout', '=', '5', 'unl') == ['unload']
    assert completed('swizzle', 'health', '') == completed('swizzle', '--timeout', '') == []


def test_folders_are_offered_for_a_folder(tmp_path, monkeypatch):
    (tmp_path / 'models').mkdir()
    (tmp_path / 'mine.txt').touch()
    monkeypatch.chdir(tmp_path)
    assert completed('swizzle-server', '--model-repository', 'm') == ['models']
    assert completed('swizzle-server', '--model-repository', '=', 'm') == ['models']
    assert completed('swizzle-server', '--model-repository', '=') == ['models']
    assert completed('swizzle-server', '--port-file', '=', 'm') == []  # bash itself offers files
