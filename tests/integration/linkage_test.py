"""What the kernels' library exports: nothing that only one of its source files knows.

A function or class that stands in one source file alone, with external linkage, may meet another of its name: the linker
then takes either for both, without a word where they are templates or inline.
"""

import functools
import pathlib
import re
import subprocess

import conftest
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ['libswizzle_formats.a', 'libswizzle_kernels.a']


def without_brackets(text, opening, closing):
    """`text` without what stands in such brackets, however deep."""
    kept, depth = [], 0
    for character in text:
        depth += character == opening
        if depth == 0:
            kept.append(character)
        depth -= character == closing
    return ''.join(kept)


def outermost_name(symbol):
    """The function or class at namespace scope that a demangled symbol is, or is part of; None if it isn't ours."""
    symbol = symbol.replace('(anonymous namespace)', 'anonymous').replace('operator()', 'call')
    symbol = re.sub(r'operator(<=>|<<|>>|<=|>=|->|<|>)', 'operator', symbol)
    name = without_brackets(without_brackets(symbol, '(', ')'), '<', '>')
    found = re.search(r'(?:^|\s)swizzle::(?:(?:cpu|cuda|internal|reference|N_\w+)::)*(\w+)', name)
    return found and found.group(1)


def external_symbols(archive):
    """Pairs of an object file's name and a demangled symbol that it defines for others."""
    listed = subprocess.run(['nm', '--demangle', '--defined-only', '--extern-only', archive], capture_output=True,
                            text=True, check=True).stdout
    member = None
    for line in listed.splitlines():
        if line.endswith('.o:'):
            member = line[:-1]
        elif found := re.match(r'[0-9a-f]+ [A-Za-z] (.*)', line):
            yield member, found.group(1)


@functools.cache
def headers_of(path):
    """The headers of ours that a file includes, themselves or through others."""
    headers = set()
    for name in re.findall(r'^\s*#\s*include\s*"(kernels/[^"]+\.h)"', (ROOT / path).read_text(encoding='utf-8'), re.M):
        headers |= {name} | headers_of(name)
    return headers


@functools.cache
def names_in_headers_of(member):
    sources = [path.relative_to(ROOT) for path in ROOT.glob('kernels/**/' + member.removesuffix('.o'))]
    texts = [(ROOT / header).read_text(encoding='utf-8') for source in sources for header in headers_of(str(source))]
    return set(re.findall(r'\w+', ' '.join(texts)))


@pytest.mark.parametrize('library', LIBRARIES)
def test_external_names_stand_in_a_header(library):
    archive = conftest.BUILD / 'kernels' / library
    symbols = list(external_symbols(archive))
    assert len(symbols) > 50, f'{archive}: nm names few symbols'
    hidden = set()
    for member, symbol in symbols:
        name = outermost_name(symbol)
        if name and name not in names_in_headers_of(member):
            hidden.add(f'{member}: {name}')
    assert not hidden, 'move into an anonymous namespace: ' + ', '.join(sorted(hidden))


def test_a_name_is_found_in_any_symbol():
    assert outermost_name('void swizzle::cpu::N_AVX3::RunCell<1, 0>(swizzle::cpu::VectorCsr const&)') == 'RunCell'
    assert outermost_name('swizzle::cpu::ThreadPool::Run(long, void (*)(void*), void*)') == 'ThreadPool'
    assert outermost_name('vtable for swizzle::cpu::CpuStream') == 'CpuStream'
    assert outermost_name('std::vector<swizzle::Weight, std::allocator<swizzle::Weight> >::~vector()') is None
