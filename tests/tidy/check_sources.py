#!/usr/bin/env python3
"""Reads the C++ and CUDA sources with Clang's tools and builds nothing: see --help.

Format: clang-format has nothing to change. Locks: Clang's -Wthread-safety, in every file that sees an annotation. Tidy:
the checks of .clang-tidy, in the files that differ from the last commit (or from --base), or in all. The last two read
a source as build/tidy (the preset tidy) would compile it; CUDA sources are checked for format alone.

With --all, tidy reads up to five sources of a folder as one: most of its time goes into what they all include. What one
of them uses then hides that another does not, such as a using declaration; read alone, when it changes, it is found.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNIT = 5  # sources
SUFFIXES = {'.h', '.cc', '.cu', '.cuh'}
ANNOTATED = re.compile(r'ABSL_(?:GUARDED_BY|EXCLUSIVE_LOCKS_REQUIRED|LOCKABLE)|base/mutex\.h|threading/clock\.h')


def run(command, **options):
    return subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, **options)


def git(*arguments):
    return run(['git', '-c', 'safe.directory=*', *arguments], check=True).stdout.split()


def sources():
    names = git('ls-files', '--cached', '--others', '--exclude-standard')
    return sorted(ROOT / name for name in names if pathlib.Path(name).suffix in SUFFIXES and (ROOT / name).exists())


def changed(base):
    """Sources that differ from where this branch left `base`, or that nobody has added yet."""
    start = git('merge-base', 'HEAD', base)[0]
    names = git('diff', '--name-only', start) + git('ls-files', '--others', '--exclude-standard')
    return {ROOT / name for name in names if pathlib.Path(name).suffix in SUFFIXES}


def includes(file):
    return {ROOT / name for name in re.findall(r'^#include "(.+?)"', file.read_text(), re.MULTILINE)}


def including(headers, files):
    """The files that include one of the headers, through however many others; headers among them too."""
    found, last = set(headers), -1
    while len(found) != last:
        last = len(found)
        found |= {file for file in files if file not in found and includes(file) & found}
    return found


def check_format(files):
    result = run(['clang-format', '--dry-run', '-Werror', *files])
    return result.stderr


def compile_commands(build):
    """{source: its compiler's arguments}, without what makes an object file."""
    commands = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        words = shlex.split(entry['command'])
        words = words[next(i for i, word in enumerate(words) if word.endswith('clang++')):]
        output = words.index('-o')
        words = [word for word in words[:output] + words[output + 2:] if word != '-c']
        commands[pathlib.Path(entry['file'])] = words
    return commands


def check_locks(command):
    """What -Wthread-safety says of one source, as errors."""
    result = run([*command, '-fsyntax-only', '-Wno-everything', '-Wthread-safety', '-Werror'])
    return '' if result.returncode == 0 else result.stderr


def units(files, commands):
    """The sources in lists, each of one folder and compiled by the same arguments."""
    alike = {}
    for file in sorted(files):
        arguments = tuple(word for word in commands[file] if word != str(file))
        # There is one main, and what Highway compiles for each target includes itself.
        alone = file if re.search(r'^int main\(|HWY_TARGET_INCLUDE', file.read_text(), re.MULTILINE) else None
        alike.setdefault((file.parent, arguments, alone), []).append(file)
    return [group[i:i + UNIT] for group in alike.values() for i in range(0, len(group), UNIT)]


def check_tidy(unit, commands, build):
    """What the checks of .clang-tidy say of sources, read as one if they can be."""
    source = unit[0]
    arguments = [word for word in commands[source][1:] if word != str(source)]
    if len(unit) > 1:
        source = build / 'units' / '_'.join(unit[0].relative_to(ROOT).with_suffix('').parts + (f'{len(unit)}.cc',))
        source.parent.mkdir(exist_ok=True)
        source.write_text(''.join(f'#include "{file}"\n' for file in unit))
    config = next(file for folder in unit[0].parents if (file := folder / '.clang-tidy').exists())
    checks = '--checks=-bugprone-suspicious-include'  # which is meant for what the script does here
    result = run(['clang-tidy', '--quiet', f'--config-file={config}', checks, '--warnings-as-errors=*', source, '--',
                  *arguments])
    if len(unit) > 1 and '[clang-diagnostic-' in result.stdout:  # two things of one name, or one that shadows another
        half = len(unit) // 2
        return check_tidy(unit[:half], commands, build) + check_tidy(unit[half:], commands, build)
    return '' if result.returncode == 0 else result.stdout


def in_parallel(check, items, jobs):
    """Whether check(item) has nothing to say of any."""
    failed = False
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for said in pool.map(check, items):
            failed |= bool(said)
            print(said, end='', flush=True)
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build/tidy', help='of the preset tidy')
    parser.add_argument('--base', default='HEAD', help='tidy what differs from where this branch left that one')
    parser.add_argument('--all', action='store_true', help='tidy all files, not only those that differ')
    parser.add_argument('--only', choices=['format', 'locks', 'tidy'], help='one of the three')
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()

    files = sources()
    good = True
    if options.only in (None, 'format'):
        print(f'format: {len(files)} files', flush=True)
        said = check_format(files)
        good &= not said
        print(said, end='')
    if options.only == 'format':
        return 0 if good else 1

    commands = compile_commands(options.build)
    if options.only in (None, 'locks'):
        annotated = including({file for file in files if ANNOTATED.search(file.read_text())}, files)
        locked = sorted(file for file in annotated if file in commands)
        print(f'locks: {len(locked)} files', flush=True)
        good &= in_parallel(lambda file: check_locks(commands[file]), locked, options.jobs)
    if options.only in (None, 'tidy'):
        wanted = set(files)
        if not options.all:
            wanted = changed(options.base)
        tidied = sorted(file for file in wanted if file in commands)
        print(f'tidy: {len(tidied)} files', flush=True)
        read = units(tidied, commands) if options.all else [[file] for file in tidied]
        good &= in_parallel(lambda unit: check_tidy(unit, commands, options.build), read, options.jobs)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
