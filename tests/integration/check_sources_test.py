"""tests/tidy/check_sources.py: which files it reads, and that what it is for is found."""

import importlib.util
import json
import shutil

import pytest

from conftest import ROOT

_spec = importlib.util.spec_from_file_location('check_sources', ROOT / 'tests/tidy/check_sources.py')
check_sources = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_sources)

needs_clang = pytest.mark.skipif(not shutil.which('clang++'), reason='Debian package clang is missing')
COUNTER = '''#include "kernels/base/mutex.h"
namespace swizzle {
class Counter {
 public:
  int value() { %sreturn value_; }
 private:
  Mutex mutex_;
  int value_ ABSL_GUARDED_BY(mutex_) = 0;
};
int Read() { return Counter().value(); }
}
'''


@needs_clang
@pytest.mark.parametrize('lock, complains', [('MutexLock lock(mutex_); ', False), ('', True)], ids=['held', 'not held'])
def test_what_is_guarded_is_read_under_its_lock(tmp_path, lock, complains):
    file = tmp_path / 'counter.cc'
    file.write_text(COUNTER % lock)
    said = check_sources.check_locks(['clang++', '-std=c++20', f'-I{ROOT}', str(file)])
    assert ("requires holding mutex 'mutex_'" in said) == complains, said


def test_a_source_sees_what_its_headers_include(tmp_path):
    files = {name: tmp_path / name for name in ('guarded.h', 'between.h', 'user.cc', 'other.cc')}
    check_sources.ROOT, root = tmp_path, check_sources.ROOT
    try:
        files['guarded.h'].write_text('int x ABSL_GUARDED_BY(m);\n')
        files['between.h'].write_text('#include "guarded.h"\n')
        files['user.cc'].write_text('#include <vector>\n\n#include "between.h"\n')
        files['other.cc'].write_text('#include "elsewhere.h"\n')
        found = check_sources.including({files['guarded.h']}, list(files.values()))
        assert found == {files['guarded.h'], files['between.h'], files['user.cc']}
    finally:
        check_sources.ROOT = root


def test_the_servers_batcher_is_among_the_files_whose_locks_are_checked():
    files = check_sources.sources()
    seeds = {file for file in files if check_sources.ANNOTATED.search(file.read_text())}
    annotated = check_sources.including(seeds, files)
    assert {ROOT / 'server/batching/batcher.cc', ROOT / 'server/server.cc'} <= annotated


def test_commands_are_those_of_the_build_without_its_output(tmp_path):
    command = r'/usr/bin/ccache /usr/bin/clang++ -DVERSION=\"0.1\" -I/a -o x.o -c /a/x.cc'
    (tmp_path / 'compile_commands.json').write_text(json.dumps([{'file': '/a/x.cc', 'command': command}]))
    (words,) = check_sources.compile_commands(tmp_path).values()
    assert words == ['/usr/bin/clang++', '-DVERSION="0.1"', '-I/a', '/a/x.cc']


def test_units_hold_what_is_compiled_alike_in_one_folder(tmp_path):
    def source(name, arguments, text=''):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file, ['clang++', *arguments, str(file)]

    commands = dict(source(f'a/{i}.cc', ['-O1']) for i in range(7))
    commands |= dict([source('b/0.cc', ['-O1']), source('a/other.cc', ['-O2']), source('a/x.cc', ['-O1'], 'int main() {')])
    units = check_sources.units(set(commands), commands)
    assert sorted(file for unit in units for file in unit) == sorted(commands)
    assert sorted([file.name for file in unit] for unit in units) == [
        ['0.cc'], ['0.cc', '1.cc', '2.cc', '3.cc', '4.cc'], ['5.cc', '6.cc'], ['other.cc'], ['x.cc']]


needs_clang_tidy = pytest.mark.skipif(not shutil.which('clang-tidy'), reason='Debian package clang-tidy is missing')
WRONG = 'namespace { int Same(int x) { return x; } }\nbool %s(int x) { return %s; }\n'


@needs_clang_tidy
@pytest.mark.parametrize('expression, finds', [('Same(x) == x', False), ('x == x', True)])
def test_sources_with_things_of_one_name_are_read_apart(tmp_path, monkeypatch, expression, finds):
    monkeypatch.setattr(check_sources, 'ROOT', tmp_path)
    (tmp_path / '.clang-tidy').write_text("Checks: '-*,misc-redundant-expression'\n")
    files = [tmp_path / 'a.cc', tmp_path / 'b.cc']
    files[0].write_text(WRONG % ('First', 'Same(x) > x'))
    files[1].write_text(WRONG % ('Second', expression))
    commands = {file: ['clang++', '-std=c++20', str(file)] for file in files}
    said = check_sources.check_tidy(files, commands, tmp_path)
    assert ('misc-redundant-expression' in said) == finds, said
    assert 'clang-diagnostic-error' not in said


@needs_clang_tidy
def test_findings_in_sources_that_are_read_as_one_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(check_sources, 'ROOT', tmp_path)
    (tmp_path / 'tests').mkdir()
    (tmp_path / '.clang-tidy').write_text("Checks: '-*,misc-redundant-expression'\nHeaderFilterRegex: '/tests/'\n")
    files = [tmp_path / 'tests/a.cc', tmp_path / 'tests/b.cc']
    files[0].write_text('bool First(int x) { return x > 1; }\n')
    files[1].write_text('bool Second(int x) { return x > x; }\n')
    commands = {file: ['clang++', '-std=c++20', str(file)] for file in files}
    said = check_sources.check_tidy(files, commands, tmp_path)
    assert f'{files[1]}:1:' in said and 'misc-redundant-expression' in said
