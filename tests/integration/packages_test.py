"""The Debian packages of this build: what is in them, what they need, and that what they start serves."""

import gzip
import json
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, SANITIZED, START_SECONDS, STOP_SECONDS, run, wait_until

PACKAGES = ROOT / 'deploy' / 'packages'
HAS_CUDA = re.search(r'CPACK_COMPONENTS_ALL ".*;cuda"', (BUILD / 'CPackConfig.cmake').read_text()) is not None
NAMES = ['libswizzle-client-dev', 'libswizzle-dev', 'libswizzle-engine', 'libswizzle-engine-dev',
         *(['swizzle-cuda'] if HAS_CUDA else []), 'swizzle-server', 'swizzle-tools']
PROGRAMS = {'swizzle-server': 'swizzle-server', 'swizzle': 'swizzle-tools', 'swizzle-pack': 'swizzle-tools'}
UNIT = 'usr/lib/systemd/system/swizzle-server.service'

pytestmark = [
    pytest.mark.skipif(SANITIZED, reason='packages are of other builds'),
    pytest.mark.skipif(not shutil.which('dpkg-shlibdeps') or not shutil.which('cpack') or not shutil.which('file'),
                       reason='Debian package dpkg-dev, cmake or file is missing')]


@pytest.fixture(scope='module')
def packages(tmp_path_factory):
    """Name -> .deb, made of what is built already."""
    folder = tmp_path_factory.mktemp('packages')
    run('cpack', '--config', BUILD / 'CPackConfig.cmake', '-B', folder, '-D', 'CPACK_DEBIAN_COMPRESSION_TYPE=gzip')
    return {path.name.partition('_')[0]: path for path in folder.glob('*.deb')}


@pytest.fixture(scope='module')
def root(packages, tmp_path_factory):
    """Where all of them are unpacked."""
    folder = tmp_path_factory.mktemp('root')
    for path in packages.values():
        run('dpkg-deb', '--extract', path, folder)
    return folder


def field(package, name):
    return run('dpkg-deb', '--field', package, name).strip()


def contents(package):
    """Path -> (mode, owner) of what dpkg would unpack."""
    lines = [line.split(None, 5) for line in run('dpkg-deb', '--contents', package).splitlines()]
    return {line[5].removeprefix('./'): (line[0], line[1]) for line in lines}


def test_every_component_is_a_package(packages):
    assert sorted(packages) == NAMES
    version = re.search(r'project\(swizzle VERSION ([\d.]+)', (ROOT / 'CMakeLists.txt').read_text())[1]
    architecture = run('dpkg', '--print-architecture').strip()
    for name, path in packages.items():
        assert path.name == f'{name}_{version}_{architecture}.deb'
        assert re.fullmatch(r'.+ <.+@.+>', field(path, 'Maintainer'))
        assert field(path, 'Description').count('\n') >= 1


def test_packages_hold_what_is_theirs(packages):
    owners = {}
    for name, path in packages.items():
        files = contents(path)
        assert files[f'usr/share/doc/{name}/copyright'] == ('-rw-r--r--', 'root/root')
        for file, (mode, owner) in files.items():
            is_link = mode[0] == 'l'
            assert owner == 'root/root' and not re.search('[st]', mode.lower()), file
            assert is_link or (mode[5] != 'w' and mode[8] != 'w'), file
            if not file.endswith('/'):
                owners.setdefault(file, []).append(name)
    assert {file: names for file, names in owners.items() if len(names) > 1} == {}
    for program, name in PROGRAMS.items():
        assert owners[f'usr/bin/{program}'] == owners[f'usr/share/man/man1/{program}.1.gz'] == [name]
        assert owners[f'usr/share/bash-completion/completions/{program}'] == [name]
    assert owners[UNIT] == owners['etc/default/swizzle-server'] == ['swizzle-server']
    assert 'var/lib/swizzle/models/' in contents(packages['swizzle-server'])
    if HAS_CUDA:
        assert owners['usr/lib/swizzle/libswizzle_cuda.so'] == ['swizzle-cuda']


def test_packages_need_what_their_programs_link_to(packages, root):
    for program, name in PROGRAMS.items():
        path = root / 'usr' / 'bin' / program
        assert not re.search(r'RPATH|RUNPATH', run('readelf', '--dynamic', path))
        assert 'stripped' in run('file', path).replace('not stripped', '')
        needed = field(packages[name], 'Depends')
        for library in ('libc6', 'libstdc++6', 'libgrpc++') if program != 'swizzle-pack' else ('libc6', 'libdnnl'):
            assert library in needed
    engine = field(packages['libswizzle-engine'], 'Depends')
    assert 'libdnnl' in engine and 'libabsl' in engine and 'grpc' not in engine and 'ssl' not in engine
    version = field(packages['libswizzle-dev'], 'Version')
    assert f'libswizzle-dev (= {version}), libswizzle-engine (= {version})' in field(
        packages['libswizzle-engine-dev'], 'Depends')
    development = field(packages['libswizzle-client-dev'], 'Depends')
    assert f'libswizzle-dev (= {version})' in development
    assert re.search(r'libgrpc\+\+-dev \(>= [\d.]+\), libgrpc\+\+-dev \(<< [\d.]+~\)', development)
    assert 'protobuf-compiler-grpc' in development.split(', ')
    for requirement in (each for each in development.split(', ') if '(' in each and 'swizzle' not in each):
        package, operator, version = re.fullmatch(r'(\S+) \((\S+) (\S+)\)', requirement).groups()
        installed = run('dpkg-query', '--show', '--showformat=${Version}', package)
        run('dpkg', '--compare-versions', installed, operator, version)
    if HAS_CUDA:
        assert f'swizzle-server (= {field(packages["swizzle-server"], "Version")})' in field(
            packages['swizzle-cuda'], 'Depends')


def test_the_configuration_is_the_administrators(packages, tmp_path):
    run('dpkg-deb', '--control', packages['swizzle-server'], tmp_path)
    assert (tmp_path / 'conffiles').read_text() == '/etc/default/swizzle-server\n'
    for script in ('postinst', 'prerm', 'postrm'):
        run('sh', '-n', tmp_path / script)
        assert (tmp_path / script).stat().st_mode & 0o777 == 0o755


def test_removing_for_good_leaves_the_models(packages, tmp_path):
    """The scripts of the package, in place of dpkg; where no systemd runs, they ask for none."""
    run('dpkg-deb', '--control', packages['swizzle-server'], tmp_path)
    text = (tmp_path / 'postrm').read_text()
    assert '/var/cache/' in text and '/var/lib/' not in text
    sandboxed = text.replace('/run/systemd/system', '/no/such').replace('/var/', f'{tmp_path}/var/')
    (tmp_path / 'var/cache/swizzle').mkdir(parents=True)
    (tmp_path / 'var/lib/swizzle/models').mkdir(parents=True)
    for action, is_left in (('remove', True), ('purge', False)):
        run('sh', '-c', sandboxed, 'postrm', action)
        assert (tmp_path / 'var/cache/swizzle').exists() == is_left
    assert (tmp_path / 'var/lib/swizzle/models').exists()


def unit_settings(root, section='Service'):
    part = (root / UNIT).read_text().split(f'[{section}]\n')[1].split('\n[')[0]
    return [line.partition('=')[::2] for line in part.splitlines() if line and not line.startswith('#')]


def flags(text):
    """The flags of the line SWIZZLE_SERVER_FLAGS=... of a file that systemd reads."""
    return re.search(r'^SWIZZLE_SERVER_FLAGS="(.*)"$', text, re.MULTILINE)[1].split(' ')


@pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='Debian package systemd is missing')
def test_the_unit_is_sound_and_hardened(root):
    checked = subprocess.run(['systemd-analyze', 'verify', '--man=no', str(root / UNIT)], capture_output=True, text=True)
    complaints = [line for line in checked.stderr.splitlines() if 'swizzle-server is not executable' not in line]
    assert not [line for line in complaints if 'swizzle' in line], complaints
    run('systemd-analyze', 'security', '--offline=true', '--threshold=20', root / UNIT)


def test_the_unit_drains_as_the_pod_does(root):
    settings = dict(unit_settings(root))
    assert settings['Type'] == 'exec' and settings['ExecStart'] == 'swizzle-server $SWIZZLE_SERVER_FLAGS'
    grace = re.search(r'terminationGracePeriodSeconds: (\d+)',
                      (ROOT / 'deploy/kubernetes/base/deployment.yaml').read_text())[1]
    assert settings['TimeoutStopSec'] == grace


def test_without_a_file_of_flags_the_server_is_for_this_host_alone_too(root):
    own = shlex.split(dict(unit_settings(root))['Environment'])[0].removeprefix('SWIZZLE_SERVER_FLAGS=').split(' ')
    given = flags((root / 'etc/default/swizzle-server').read_text())
    assert set(own) <= set(given)
    addresses = [flag.partition('=')[2] for flag in own if '-address=' in flag]
    assert addresses == ['127.0.0.1:8001', '127.0.0.1:8002']


def test_a_model_that_is_put_there_is_served(root, repository, tmp_path):
    """The server with the flags of the package, but for its ports and folders; the tools ask it."""
    ports, cache = tmp_path / 'ports.json', tmp_path / 'cache'
    cache.mkdir()
    places = {'/var/lib/swizzle/models': str(repository), '127.0.0.1:8001': '127.0.0.1:0',
              '127.0.0.1:8002': '127.0.0.1:0', '/var/cache/swizzle': str(cache)}
    given = []
    for flag in flags((root / 'etc/default/swizzle-server').read_text()):
        name, _, value = flag.partition('=')
        for before, after in places.items():
            value = value.replace(before, after)
        given.append(f'{name}={value}')
    process = subprocess.Popen([root / 'usr/bin/swizzle-server', *given, f'--port-file={ports}', '--device=cpu',
                                '--repository-poll-secs=0.05', '--tuning-budget=0'],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: ports.exists() and ports.read_text(), START_SECONDS, 'the start of the server')
        address = f'127.0.0.1:{json.loads(ports.read_text())["grpc"]}'
        repository.identity()
        run(root / 'usr/bin/swizzle', f'--address={address}', 'health', 'identity', f'--wait={START_SECONDS}')
        shown = run(root / 'usr/bin/swizzle', f'--address={address}', 'bench', 'identity', '--requests=10')
        assert '10 requests' in shown
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0
    finally:
        process.kill()
        process.wait(STOP_SECONDS)


def test_tools_work_from_where_they_are_unpacked(root, tmp_path):
    model = ROOT / 'deploy/models/mobilenet_v1_fashion_sparse90.onnx'
    run(root / 'usr/bin/swizzle-pack', 'pack', model, tmp_path / 'model.swz')
    assert (tmp_path / 'model.swz').stat().st_size > 1000


def test_pages_are_compressed_as_gzip_does(root):
    for program in PROGRAMS:
        with gzip.open(root / f'usr/share/man/man1/{program}.1.gz', 'rt') as page:
            assert f'.TH "{program.upper()}" 1'.replace('-', r'\-') in page.read()


@pytest.mark.parametrize('arguments, message', (
    (('--fast',), "unknown argument '--fast'"),
    (('--jobs=none',), '--jobs needs a number'),
    (('--maintainer=me',), '--maintainer needs a name and an address'),
))
def test_the_command_refuses_what_it_does_not_know(arguments, message):
    result = subprocess.run([ROOT / 'deploy/build-packages', *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and message in result.stderr
    assert (ROOT / 'deploy/build-packages').stat().st_mode & 0o111
