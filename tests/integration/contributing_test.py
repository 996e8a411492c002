"""That CONTRIBUTING's lists of what a new part needs are true of the parts that there are.

formats_test.py holds the list for formats of weights.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / 'CONTRIBUTING.md').read_text(encoding='utf-8')

# Beside CONTRIBUTING's list for an element type: who else names BF16, and why. Where it is a switch over all types, the
# compiler stops at a type that it lacks.
NAMES_BFLOAT16 = {
    'kernels/backend/point_functions.h': 'a switch over all types',
    'kernels/cuda/attention/attention_mma.cu': 'instantiates',
    'kernels/cuda/attention/attention_mma_rows.cu': 'instantiates',
    'kernels/cuda/attention/attention_wgmma.cu': 'instantiates',
    'kernels/cuda/conv/dense/conv_dense_cudnn.cc': "cuDNN's number, of VisitReal",
    'kernels/cuda/attention/attention_rows.h': 'rows of the table',
    'kernels/cuda/conv/shfl_bw/norm_rows.h': 'rows of the table',
    'kernels/cuda/conv/stem/stem_rows.h': 'rows of the table',
    'kernels/cuda/int8/byte_rows.h': 'rows of the table',
    'kernels/cuda/runtime/cublas_matmul.cc': "cuBLAS's number, of VisitReal",
    'kernels/cuda/tokens/embedding.cu': 'instantiates',
    'model_loader/onnx/proto_values.cc': 'a switch over all types',
    'model_loader/packed/file_layout.cc': 'a switch over all types',
    'model_loader/semantics/element_types.h': 'a switch over all types',
    'server/repository/warm_up.cc': 'a switch over all types',
    'server/rest/element_json.cc': 'a switch over all types',
    'server/rpc/wire_contents.cc': 'a switch over all types',
    'server/rpc/wire_survey.cc': 'a switch over all types',
}

# Who asks whether a type is one half, and what it takes all others for.
ASKS_FOR_ONE_HALF = {
    'kernels/base/half_bits.cc': 'instructions that convert FP16',
    'kernels/base/half_bits.h': 'behind a static_assert that it is one of both',
    'kernels/base/real_types.h': 'checks that it is FP16',
    'kernels/cpu/simd/bfloat16.h': 'checks that it is BF16',
    'kernels/cuda/conv/dense/conv_dense_cudnn.cc': 'one of both, or the compiler stops',
    'kernels/cuda/runtime/cublas_matmul.cc': 'one of both, or the compiler stops',
    'model_loader/expansions/site.cc': 'clamps what FP16 cannot hold',
    'model_loader/interpreter/operators/quantised/quantise.cc': 'FP16 stands for FP8 there',
    'model_loader/onnx/narrow_types.cc': 'FP16 holds FP8 there',
    'model_loader/pack/sparse_inputs.cc': 'plans in FP16',
}


def code_of(file):
    return re.sub(r'//.*', '', (ROOT / file).read_text(encoding='utf-8'))


def product_code():
    """Each source file of the product, and its code without comments."""
    files = [file for folder in ('kernels', 'model_loader', 'server', 'client') for file in (ROOT / folder).rglob('*')]
    return {name: code_of(name) for file in sorted(files) if file.suffix in {'.h', '.cc', '.cu', '.cuh'}
            for name in [str(file.relative_to(ROOT))]}


CODE = product_code()


def listed(heading):
    """The files that the first table below a heading, or a line in bold, names."""
    table = PAGE[PAGE.index(heading):].split('\n|---|---|\n')[1].split('\n\n')[0]
    return {name for row in table.splitlines() for name in re.findall(r'`([^`]*/[^`]+)`', row)}


def files_with(pattern):
    return {file for file, code in CODE.items() if re.search(pattern, code)}


def test_files_of_all_lists_are_there():
    for heading in re.findall(r'^## Adding .*$', PAGE, re.MULTILINE):
        section = PAGE[PAGE.index(heading):].split('\n## ')[0]
        names = re.findall(r'`((?:kernels|model_loader|server|client|proto|tests)/[\w./-]+)`', section)
        assert names, heading
        missing = [name for name in names if not (ROOT / name).exists() and not list(ROOT.glob(name + '.*'))]
        assert not missing, f'{heading}: {missing}'


def test_element_types_are_named_where_the_list_says():
    found = files_with(r'DType::kBFloat16\b')
    expected = {file for file in listed('## Adding an element type') if file in CODE}
    assert found - expected == set(NAMES_BFLOAT16), 'a list that names types by hand forgets the next one'


def test_no_half_type_passes_for_another():
    found = files_with(r'[!=]=\s*DType::k(BFloat16|Float16)\b')
    assert found == set(ASKS_FOR_ONE_HALF), 'kernels/base/real_types.h has the visitors: VisitHalf, VisitReal'


def test_switches_over_types_and_formats_are_whole():
    """A `default` would take an enumerator that is added for another."""
    wrong = set()
    for file, code in CODE.items():
        for switch in re.findall(r'\bswitch \(.*?\n  \s*\}\n', code, re.DOTALL):
            if re.search(r'case (DType|Format|Layout|Precision|Numerics|Op)::', switch) and 'default:' in switch:
                wrong.add(file)
    assert not wrong


def test_commands_of_the_client_stand_where_the_list_says():
    expected = listed('**Of `swizzle`**')
    header = code_of('client/cli/command.h')
    runs = re.findall(r'absl::Status (Run\w+)\(', header)
    titles = re.findall(r'^## swizzle (\w+)$', (ROOT / 'client/FLAGS.md').read_text(encoding='utf-8'), re.MULTILINE)
    assert sorted(run.removeprefix('Run').lower() for run in runs) == sorted(titles) and len(titles) > 10
    for run in runs:
        kinds = set()
        for file in sorted(files_with(rf'\b{run}\b')):
            if file.startswith('client/cli/'):
                kinds.add(re.sub(r'/(\w+_)?(flags|command|commands)\.cc$', r'/*\2.cc', file).replace('commands', 'command'))
        assert {'client/cli/command.h', 'client/cli/*flags.cc', 'client/cli/*command.cc'} <= kinds, f'{run}: {kinds}'
    assert {'client/cli/command.h', 'client/cli/*_command.cc', 'client/cli/*flags.cc', 'client/CMakeLists.txt'} <= expected


def test_commands_of_the_packer_stand_where_the_list_says():
    expected = listed('**Of `swizzle-pack`**')
    commands = re.findall(r'^struct (\w+)Command \{', code_of('model_loader/pack/commands.h'), re.MULTILINE)
    assert len(commands) > 4
    for command in commands:
        files = files_with(rf'StatusOr<Outcome> Execute\(const {command}Command& ')
        assert 'model_loader/pack/commands.h' in files and len(files) == 2, f'{command}: {files}'
        assert re.search(rf'\b{command}Command\b', CODE['model_loader/pack/options.cc']), command
    assert {'model_loader/pack/commands.h', 'model_loader/pack/options.cc', 'model_loader/CMakeLists.txt'} <= expected


def test_operators_of_the_interpreter_stand_where_the_list_says():
    rows = re.findall(r'\{"(\w+)", (?:\w+<)?(\w+)>?\}', CODE['model_loader/interpreter/operators/functions.cc'])
    assert len(rows) > 150
    declared = set(re.findall(r'^StatusOr<\w+> (\w+)\(Call& call\);', CODE['model_loader/interpreter/operators/operators.h'],
                              re.MULTILINE))
    missing = {function for _, function in rows} - declared
    assert not missing, f'model_loader/interpreter/operators/operators.h declares none of {sorted(missing)}'
    for function in declared:
        homes = files_with(rf'^StatusOr<\w+> {function}\(Call& call\) \{{')
        assert len(homes) <= 1 and all(home.startswith('model_loader/interpreter/') for home in homes), f'{function}: {homes}'
    page = PAGE[PAGE.index('**An ONNX operator**'):]
    assert all(name in page for name in ('model_loader/interpreter/operators/operators.h', 'model_loader/interpreter/operators/functions.cc'))
