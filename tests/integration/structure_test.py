"""The structure of the source tree: which folder may include what, what lies where, and that links lead somewhere."""

import fnmatch
import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

import function_lengths

ROOT = pathlib.Path(__file__).resolve().parents[2]

TOP_LEVEL = {
    'CMakeLists.txt', 'CMakePresets.json', 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'LICENSE',
    'proto', 'server', 'kernels', 'model_loader', 'client', 'deploy', 'tests',
}
CODE_SUFFIXES = {'.h', '.cc', '.cu', '.cuh', '.proto', '.py', '.cmake'}
MAX_LINES = 450
MAX_PAGE_LINES = 250
MAX_FUNCTION_LINES, MAX_KERNEL_LINES = 60, 120  # the latter of functions that CUDA runs on the device
MAX_BRANCHES = 20  # of a function; a switch is one
MAX_COLUMNS = 120

# Folder of ours -> the folders of ours that it may include.
DEPENDENCIES = {
    'kernels': {'kernels'},
    'model_loader': {'model_loader', 'kernels', 'proto'},
    'server': {'server', 'model_loader', 'kernels', 'proto'},
    'client': {'client', 'proto'},
    'tests': {'tests', 'client', 'server', 'model_loader', 'kernels', 'proto'},
}

# What is included -> the only files outside tests/ that may.
CONTAINMENT = {
    'cuda*': ['kernels/cuda/*'],
    'cu[bsd]*.h': ['kernels/cuda/*'],
    'hwy/*': ['kernels/cpu/*'],
    'dnnl*': ['kernels/cpu/*'],
    'cuda_*.h': ['kernels/cuda/*'],
    'cublas*': ['kernels/cuda/*'],
    'cudnn*': ['kernels/cuda/*'],
    'oneapi/*': ['kernels/cpu/*'],
    'omp.h': ['kernels/cpu/*'],
    'pthreadpool.h': ['kernels/cpu/*'],
    'onnx/*': ['model_loader/onnx/*'],
    'proto/packed_model.pb.h': ['model_loader/packed/*'],
    'proto/model_config.pb.h': ['server/config/*', 'server/repository/*', 'server/rpc/model_description*'],
    'proto/grpc_service*.pb.h': ['server/rpc/*', 'server/rest/*', 'client/client.cc', 'client/infer_stream*',
                                'client/wire_format*'],
    'proto/health*.pb.h': ['server/rpc/health*'],
    'proto/opentelemetry/*': ['server/tracing/*'],
    'grpcpp/*': ['server/rpc/*', 'server/rest/*', 'server/server*', 'server/libraries/versions.h', 'server/tracing/trace_exporter.cc',
                 'client/client.cc', 'client/channel*', 'client/infer_stream*'],
    'grpc/*': ['server/libraries/versions.h', 'server/rpc/channelz.cc', 'server/rpc/grpc_threads.cc',
               'server/rpc/tls_credentials.cc'],
    'openssl/*': ['server/security/*'],
    'google/protobuf/*': ['model_loader/onnx/*', 'model_loader/packed/*', 'server/config/*', 'server/rpc/*',
                          'server/rest/*', 'proto/*', 'client/wire_format*'],
    'boost/*': ['server/http/*'],
    'prometheus/*': ['server/telemetry/*'],
    'spdlog/*': ['server/*', 'client/*'],
    'CLI/*': ['server/options*', 'client/cli/cli.cc', 'client/cli/*flags*', 'model_loader/pack/options*'],
    'unicode/*': ['model_loader/text/*'],
    'nanobind/*': ['server/python/*'],
    'nlohmann/*': ['server/*', 'client/*', 'model_loader/*', 'proto/*'],
}


def source_files():
    """Every file that is, or would be, under version control."""
    command = ['git', '-c', 'safe.directory=*', 'ls-files', '--cached', '--others', '--exclude-standard', '-z']
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return sorted(pathlib.PurePath(name) for name in listed.split('\0') if name and (ROOT / name).is_file())


FILES = source_files()
CPP_FILES = [file for file in FILES if file.suffix in {'.h', '.cc', '.cu', '.cuh'}]


def read(file):
    return (ROOT / file).read_text(encoding='utf-8')


def includes(file):
    return re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', read(file), re.MULTILINE)


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(str(name), pattern) for pattern in patterns)


def test_there_are_files_to_look_at():
    assert len(CPP_FILES) > 40
    assert includes(pathlib.PurePath('client/client.cc'))


def test_top_level():
    unknown = {file.parts[0] for file in FILES if not file.parts[0].startswith('.')} - TOP_LEVEL
    assert not unknown, f'not part of the fixed top level: {sorted(unknown)}'


@pytest.mark.parametrize('folder', DEPENDENCIES)
def test_dependencies_point_one_way(folder):
    wrong = [f'{file}: {name}' for file in CPP_FILES if file.parts[0] == folder for name in includes(file)
             if (top := name.split('/')[0]) in TOP_LEVEL and '/' in name and top not in DEPENDENCIES[folder]]
    assert not wrong, wrong


def folder_graph(top):
    """Folder -> the folders below `top` that its files include from, with an include as witness."""
    graph = {}
    for file in CPP_FILES:
        if file.parts[0] != top:
            continue
        for name in includes(file):
            target = pathlib.PurePath(name).parent
            if target.parts[:1] == (top,) and target != file.parent:
                graph.setdefault(str(file.parent), {}).setdefault(str(target), f'{file} includes {name}')
    return graph


def find_cycle(graph):
    """The includes that lead from some folder back to it; none if there are no such."""
    done = set()

    def visit(folder, path):
        for target, witness in graph.get(folder, {}).items():
            names = [name for name, _ in path]
            if target in names:
                return [w for _, w in path[names.index(target) + 1:]] + [witness]
            if target not in done and (cycle := visit(target, path + [(target, witness)])):
                return cycle
        done.add(folder)
        return None

    return next((cycle for folder in graph if (cycle := visit(folder, [(folder, '')]))), None)


def test_a_cycle_of_folders_is_found():
    assert find_cycle({'a': {'b': '1'}, 'b': {'c': '2'}}) is None
    assert find_cycle({'x': {'a': '0'}, 'a': {'b': '1'}, 'b': {'c': '2'}, 'c': {'a': '3'}})


@pytest.mark.parametrize('top, folders', [('kernels', 6), ('model_loader', 6), ('server', 6), ('client', 1)])
def test_folders_form_no_cycle(top, folders):
    assert len(folder_graph(top)) >= folders
    assert not find_cycle(folder_graph(top))


@pytest.mark.parametrize('library', CONTAINMENT)
def test_libraries_stay_where_they_belong(library):
    wrong = [f'{file}: {name}' for file in CPP_FILES if file.parts[0] != 'tests' for name in includes(file)
             if matches(name, [library]) and not matches(file, CONTAINMENT[library])]
    assert not wrong, f'{library} may be included only by {CONTAINMENT[library]}: {wrong}'


def test_only_the_clock_asks_for_wall_time():
    """Latencies and deadlines are of the monotonic clock; the wall clock's are for stamps, by Clock::WallNow."""
    wall = re.compile(r'absl::Now\(|GetCurrentTimeNanos|system_clock::now|gettimeofday|CLOCK_REALTIME|\btime\(nullptr')
    asks = [str(file) for file in CPP_FILES if file.parts[0] != 'tests' and wall.search(read(file))]
    assert asks == ['client/cli/clock.cc', 'server/threading/clock.cc']


def test_nothing_parses_kernel_names():
    """What there is to know of a row stands in its fields; its name is for reports."""
    asks = 'find|rfind|substr|starts_with|ends_with|contains|compare|remove_prefix|remove_suffix'
    parses = re.compile(rf'\bkernels?(\[\w+\]|_name)?((\.|->)(name|family|kernel))?\.({asks})\(')
    part = re.compile(r'"[^"\n]*(conv_(csr|dense|vector|block)|_(avx2|avx512|onednn|cudnn|cublaslt|sm\d\d))')
    tables = ('kernel_table.cc', 'attention_rows.h', 'byte_rows.h', 'norm_rows.h', 'part_rows.h', 'stem_rows.h',
              'target_rows.h')
    product = [file for file in CPP_FILES if file.parts[0] != 'tests' and file.name not in tables]
    lines = [(file, line) for file in product for line in read(file).splitlines() if not line.startswith('#')]
    wrong = [f'{file}: {line}' for file, line in lines if parses.search(line) or part.search(line.split('//')[0])]
    assert not wrong
    assert parses.search('if (kernel.name.starts_with("x"))') and part.search('"_avx512"') and len(lines) > 10000


def test_attributes_that_many_operators_read_have_one_reader():
    """What keepdims, allowzero, approximate and Cast's target mean stands in model_loader/semantics; others ask it."""
    reads = re.compile(r'(?:Attribute\([^"]*|(?:Int|String)\()"(?:keepdims|allowzero|approximate|to)"')
    readers = {str(file.parent) for file in CPP_FILES if reads.search(read(file))}
    assert readers == {'model_loader/semantics'}


@pytest.mark.skipif(not shutil.which('clang-format'), reason='Debian package clang-format is missing')
def test_sources_are_formatted():
    command = ['clang-format', '--dry-run', '-Werror', *map(str, CPP_FILES)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr[-4000:]


def test_files_are_short():
    scripts = [file for file in FILES if not file.suffix and file.name != 'LICENSE']
    code = [file for file in FILES if file.suffix in CODE_SUFFIXES] + scripts
    long = {str(file): lines for file in code if (lines := read(file).count('\n')) > MAX_LINES}
    assert not long, f'more than {MAX_LINES} lines: {long}'


# Scripts that stay as they were when they made what is shipped.
AS_THEY_RAN = {'deploy/models/fashion_training.py'}


def test_functions_are_short():
    long = []
    for file in (file for file in FILES if file in CPP_FILES or file.suffix == '.py' and str(file) not in AS_THEY_RAN):
        for name, line, lines, branches in function_lengths.of(ROOT / file):
            if lines > (MAX_KERNEL_LINES if function_lengths.KERNEL in name else MAX_FUNCTION_LINES):
                long.append(f'{file}:{line}: {name} has {lines} lines')
            if branches > MAX_BRANCHES:
                long.append(f'{file}:{line}: {name} branches {branches} times; {MAX_BRANCHES} is the limit')
    assert not long, long


def test_long_functions_are_found():
    source = """
        namespace a {
        // { not a brace
        struct S {
          int x = f({1, 2});
          S() : x(1) {}
          int Get(const char* text = "}") const {
            if (x) {
              return R"({)"[0];
            }
            return [] {
              return '{';
            }();
          }
        };
        template <int n>
        __global__ void Run(int* x) {
          *x = n;
        }
        }  // namespace a
        """
    assert function_lengths.of_cpp(source) == [('S', 6, 1, 0), ('Get', 7, 8, 1), ('__global__ Run', 17, 3, 0)]
    nested = 'def f():\n  def g():\n    pass\n  return g\n'
    assert function_lengths.of_python(nested) == [('f', 1, 4, 0), ('g', 2, 2, 0)]


def test_branches_are_counted():
    source = 'int F(int x) {\n  for (;;) if (x) return x ? 1 : 2;\n  switch (x) {\n    case 1: case 2: break;\n  }\n}\n'
    assert function_lengths.of_cpp(source) == [('F', 1, 6, 4)]
    assert function_lengths.of_python('def f(x):\n  for y in x:\n    if y: return 1 if x else 2\n') == [('f', 1, 3, 3)]


def test_lines_are_short():
    long = [f'{file}:{number}' for file in CPP_FILES
            for number, line in enumerate(re.sub(r'R"(\w*)\(.*?\)\1"', function_lengths.blank, read(file),
                                                 flags=re.DOTALL).split('\n'), 1) if len(line) > MAX_COLUMNS]
    assert not long, f'more than {MAX_COLUMNS} columns: {long}'


def test_header_guards_follow_paths():
    wrong = []
    for file in CPP_FILES:
        guard = 'SWIZZLE_' + re.sub(r'[/.]', '_', str(file)).upper() + '_'
        included_once = file.suffix == '.h' and not file.name.endswith('-inl.h')  # those: once per SIMD target
        if included_once and f'#ifndef {guard}\n#define {guard}\n' not in read(file):
            wrong.append(f'{file}: {guard}')
    assert not wrong, wrong


def test_names_say_what_a_file_is():
    vague = [str(file) for file in FILES if re.search(r'(^|_)(utils?|helpers?|common|misc|manager)(_|$)', file.stem)]
    assert not vague, vague


def listed_sources(cmake_file):
    """The sources that a CMakeLists.txt names, by their paths from the root."""
    names = re.findall(r'[^\s()"]+\.cc\b', read(cmake_file))
    paths = [name.replace('${PROJECT_SOURCE_DIR}', str(ROOT)) for name in names]
    return {(ROOT / cmake_file.parent / path).resolve() for path in paths}


def test_every_source_is_built():
    listed = set().union(*(listed_sources(file) for file in FILES if file.name == 'CMakeLists.txt'))
    forgotten = [str(file) for file in CPP_FILES if file.suffix == '.cc' and ROOT / file not in listed]
    assert not forgotten, f'in no CMakeLists.txt: {forgotten}'


def test_every_listed_source_is_there():
    """Those of targets that only another preset configures, too, as the fuzz targets are."""
    listed = set().union(*(listed_sources(file) for file in FILES if file.name == 'CMakeLists.txt'))
    made = {ROOT / 'precompiled.cc'}
    missing = sorted(str(path) for path in listed - made if not re.search(r'[$*]', str(path)) and not path.exists())
    assert not missing, f'named in a CMakeLists.txt: {missing}'


def anchors(markdown):
    """The anchors of a page's headings, as GitHub makes them."""
    return {re.sub(r'[^\w\- ]', '', title.strip().lower()).replace(' ', '-')
            for title in re.findall(r'^#+\s+(.*)$', markdown, re.MULTILINE)}


def test_gpus_run_every_test_of_theirs():
    pages = [ROOT / f'tests/{folder}/CMakeLists.txt' for folder in ('kernels', 'model_loader')]
    built = {name for page in pages for name in re.findall(r'swizzle_test\((cuda_\w+)', page.read_text())}
    run = (ROOT / 'tests/gpu/run').read_text()
    tested, sanitized = (run.split(f'{table} = ')[1].split('))\n')[0] for table in ('TEST_PROGRAMS', 'SANITIZED'))
    assert built and built == set(re.findall(r'cuda_\w+', tested))
    assert built - {'cuda_lost_device_test'} == set(re.findall(r'cuda_\w+', sanitized))


def test_links_in_markdown_resolve():
    broken = []
    for file in (file for file in FILES if file.suffix == '.md'):
        for link in re.findall(r'\]\(([^)\s]+)\)', read(file)):
            path, _, anchor = link.partition('#')
            if re.match(r'[a-z]+:', link):
                continue
            target = (ROOT / file).parent / path if path else ROOT / file
            if not target.exists() or anchor and anchor not in anchors(target.read_text(encoding='utf-8')):
                broken.append(f'{file}: {link}')
    assert not broken, broken


def test_paths_named_in_markdown_exist():
    folders = '|'.join(sorted(name for name in TOP_LEVEL if '.' not in name and name != 'LICENSE'))
    missing = []
    for file in (file for file in FILES if file.suffix == '.md'):
        for name in re.findall(rf'`\.?/?((?:{folders})/[\w/.\-]+)', read(file)):
            if not list(ROOT.glob(f'{name.rstrip("./")}*')):  # `server/batcher` stands for its .h and .cc
                missing.append(f'{file}: {name}')
    assert not missing, missing


@pytest.mark.parametrize('page', ['ARCHITECTURE.md', 'CONTRIBUTING.md'])
def test_names_in_pages_are_names_in_the_code(page):
    known = set().union(*(re.findall(r'\w+', read(file)) for file in FILES if file.suffix in CODE_SUFFIXES))
    named = re.findall(r'`((?:\w+::)*(?:[A-Z]\w*[a-z]\w*|k[A-Z]\w+))(?:<.*?>|\(.*?\))?`', read(page))
    assert named
    unknown = sorted(name for name in set(named) if not known.issuperset(name.split('::')))
    assert not unknown, unknown


def load_module(path):
    spec = importlib.util.spec_from_file_location(pathlib.PurePath(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_shows_the_figures_that_are_kept():
    tables = load_module('tests/bench/readme_tables.py')
    assert 'README.md' in tables.PAGES
    stale = [page for page in tables.PAGES if tables.with_tables(page, read(page)) != read(page)]
    stale += [str(file) for file, content in tables.plots().items() if file.read_text() != content]
    assert not stale, f'run tests/bench/readme_tables.py: {stale}'


def test_the_page_of_five_papers_shows_the_figures_that_are_kept():
    seeds = load_module('tests/bench/seeds/make_page.py')
    folder = ROOT / 'tests/bench/seeds'
    stale = [str(file) for file, content in seeds.plots().items() if (folder / file).read_text() != content]
    if seeds.page() != (folder / 'README.md').read_text():
        stale.append('a page')
    assert not stale, f'run tests/bench/seeds/make_page.py: {stale}'


def test_pages_of_performance_have_no_figures_of_their_own():
    kept = load_module('tests/bench/kept_tables.py')
    for page in kept.FILES:
        typed = [match['head'] for match in kept.typed(read(page))]
        assert not typed, f'put <!-- name: new --> above, and run tests/bench/readme_tables.py --keep: {typed}'
        tables = kept.read(page)
        assert kept.text_of(tables) == (kept.RESULTS / kept.FILES[page]).read_text(), 'not as --keep writes it'
        for name, table in tables.items():
            assert table['measured_on'] and re.fullmatch(r'20\d\d-\d\d-\d\d', table['date']), f'{name} says not on what'
            assert table['command'] != '', f'{name} says not by what command; null if it was not kept'
            assert all(len(row) == len(table['columns']) for row in table['rows']), name


def test_typed_tables_are_taken_up(tmp_path):
    kept = load_module('tests/bench/kept_tables.py')
    kept.RESULTS, kept.FILES = tmp_path, {'page': 'tables.json'}
    kept.write('page', {})
    text = kept.keep('page', 'Above:\n\n<!-- two: new -->\n| a | b |\n|---|---|\n| 1 | |\n\nBelow.\n')
    assert kept.read('page')['two']['columns'] == ['a', 'b'] and kept.read('page')['two']['rows'] == [['1', '']]
    assert kept.makers('page')['two']() == '| a | b |\n| --- | --- |\n| 1 |  |'
    assert not kept.typed(text) and text.startswith('Above:\n\n<!-- two: tests/bench/readme_tables.py -->\n')
    with pytest.raises(SystemExit, match='of a name of its own'):
        kept.keep('page', text + '\n| c |\n|---|\n| 3 |\n')


def test_the_readme_names_no_commits():
    assert not re.findall(r'\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b', read('README.md'))


@pytest.mark.parametrize('page', ['README.md', 'ARCHITECTURE.md'])
def test_pages_are_short(page):
    assert read(page).count('\n') <= MAX_PAGE_LINES
