"""What has to be edited to add a format of weights, and that nothing else knows one by name.

That the rest follows, tests/kernels/format/made_up/made_up_format_test.cc holds by adding one.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Beside its own header, source and test: where each kind of line for a format or for a kernel that takes it stands.
EDITED = {
    'kernels/format/format.h': 'its enumerator',
    'kernels/format/format_list.h': 'its row: name, whether it is sparse',
    'kernels/CMakeLists.txt': 'its sources, and its kernels',
    'kernels/cpu/kernel_table.cc': "its kernels' rows",
    'tests/kernels/CMakeLists.txt': 'its tests',
}

# Who else may name a format, and why.
NAMED = {
    'kernels/backend/backend.cc': 'dense kernels take every format',
    'kernels/cuda/kernel_table.cc': "the rows of the GPU's kernels",
    'kernels/cuda/attention/attention_rows.h': 'those of attention',
    'kernels/cuda/int8/byte_rows.h': 'those of bytes',
    'kernels/cuda/conv/shfl_bw/norm_rows.h': 'those of products with the norm behind them',
    'kernels/cuda/conv/parts/part_rows.h': 'those of products of halves',
    'kernels/cuda/conv/stem/stem_rows.h': 'those of first layers',
    'model_loader/network/validate_layer.cc': 'weights of some operators are always dense, of sparse attention patterns',
}


def code_of(file):
    return re.sub(r'//.*', '', file.read_text(encoding='utf-8'))


def product_files():
    for folder in ('kernels', 'model_loader', 'server', 'client'):
        for file in sorted((ROOT / folder).rglob('*')):
            if file.suffix in {'.h', '.cc', '.cu', '.cuh'}:
                yield str(file.relative_to(ROOT)), code_of(file)


def enumerators():
    text = re.search(r'enum class Format : uint8_t \{([^}]*)\}', code_of(ROOT / 'kernels/format/format.h')).group(1)
    return [name.strip() for name in text.split(',')][1:]  # without kNone


def test_at_most_five_existing_files_are_edited():
    assert len(EDITED) <= 5
    assert all((ROOT / file).is_file() for file in EDITED)
    # None of them reads, writes, hashes or reports.
    assert not [file for file in EDITED if file.startswith(('model_loader/', 'server/', 'proto/'))]


def test_contributing_lists_these_files():
    text = (ROOT / 'CONTRIBUTING.md').read_text(encoding='utf-8')
    table = text[text.index('## Adding a weight format'):].split('\n\n')[2]
    listed = {name for row in table.splitlines()[2:] for name in re.findall(r'`([^`]+)`', row.split('|')[1])}
    assert listed - {'kernels/cuda/kernel_table.cc'} == set(EDITED), 'a GPU kernel has a table of its own'


def test_every_format_has_its_lines():
    rows = re.findall(r'MakeFormatRow<(\w+)>', code_of(ROOT / 'kernels/format/format_list.h'))
    assert len(rows) == len(enumerators()) >= 3
    sources = (ROOT / 'kernels/CMakeLists.txt').read_text(encoding='utf-8')
    for matrix, name in zip(rows, enumerators()):
        homes = [file for file, code in product_files()
                 if f'struct {matrix} {{' in code and f'kFormat = Format::{name};' in code]
        assert len(homes) == 1 and homes[0].startswith('kernels/format/'), f'{matrix}: {homes}'
        assert homes[0].removeprefix('kernels/').replace('.h', '.cc') in sources


def test_nothing_else_names_a_format():
    named = re.compile(r'(?<!\w)Format::(?:%s)\b' % '|'.join(enumerators()))
    found = {file for file, code in product_files() if named.search(code)}
    found = {file for file in found if not file.startswith('kernels/format/')} - set(EDITED) - set(NAMED)
    assert not found, f'these switch on formats instead of asking their rows (kernels/format/format.h): {found}'


def test_nothing_names_a_format_that_does_not():
    assert not [file for file in NAMED if 'Format::k' not in code_of(ROOT / file)]


def test_matrices_are_asked_for_by_those_who_take_them_only():
    """Kernels, and what makes or checks a weight; files, hashes and reports see any format's parts."""
    found = [file for file, code in product_files()
             if re.search(r'\b(?:As|In)<\w*(?:Matrix|Pattern)>', code) and not file.startswith('kernels/')]
    assert found == ['model_loader/network/network.cc'], found
