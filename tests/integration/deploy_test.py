"""What is in deploy/ for containers and Kubernetes: it is well formed, it fits the server, and its parts fit each other.
What scales it is autoscale_test's."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import grpc
import kubernetes_validate
import pytest
import yaml

import kustomize
from conftest import BUILD, ROOT, SANITIZED, program
from operations_test import SERVING, health_check

DEPLOY = ROOT / 'deploy'
KUBERNETES = DEPLOY / 'kubernetes'
FOLDERS = sorted(path.parent for path in KUBERNETES.rglob('kustomization.yaml'))
COMPONENTS = [folder for folder in FOLDERS if folder.parent.name == 'components']
ROOTS = [folder for folder in FOLDERS if folder not in COMPONENTS]
YAML_FILES = sorted(DEPLOY.rglob('*.yaml'))

# What kubernetes-validate knows nothing of.
CUSTOM = {'PodMonitor', 'PrometheusRule', 'ClusterServingRuntime', 'InferenceService'}
KUBERNETES_VERSIONS = ('1.29', kubernetes_validate.latest_version())
IMAGE_VOLUMES_SINCE = '1.33'

LAYER_BYTES = 60_000_000
FLUSH = 5  # seconds that answers have to reach their clients, as the comment in deployment.yaml has them


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **options)


def tool(name):
    """A program of the Python environment."""
    return pathlib.Path(sys.executable).parent / name


def with_components(folder, *components):
    """A folder that adds the components to the base."""
    def relative(path):
        return os.path.relpath(path, folder)

    kustomization = {'resources': [relative(KUBERNETES / 'base')], 'components': [relative(each) for each in components]}
    (folder / 'kustomization.yaml').write_text(yaml.safe_dump(kustomization))
    return folder


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request, tmp_path):
    return with_components(tmp_path, request.param) if request.param in COMPONENTS else request.param


def find(objects, kind, name='swizzle'):
    found = [each for each in objects if (each['kind'], each['metadata']['name']) == (kind, name)]
    assert len(found) == 1, f'{len(found)} objects {kind} {name}'
    return found[0]


def pod_of(objects):
    return find(objects, 'Deployment')['spec']['template']


def base():
    return kustomize.render(KUBERNETES / 'base')


def flags_of(container):
    return dict(argument.removeprefix('--').split('=') for argument in container['args'])


# Files.

def test_yaml_lints():
    rules = '{extends: default, rules: {document-start: disable, line-length: {max: 120}, braces: {max-spaces-inside: 0}}}'
    result = run(tool('yamllint'), '--strict', '-d', rules, *YAML_FILES)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize('file', sorted((DEPLOY / 'container').glob('Dockerfile*')), ids=lambda file: file.name)
def test_container_files_lint(file):
    result = run(tool('hadolint'), '--no-color', file)
    assert result.returncode == 0 and not result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize('file', sorted((DEPLOY / 'container').glob('Dockerfile*')), ids=lambda file: file.name)
def test_container_files_copy_what_is_in_the_context(file):
    """Whatever is copied exists and .dockerignore lets it through."""
    allowed = {line[1:] for line in (ROOT / '.dockerignore').read_text().splitlines() if line.startswith('!')}
    copied = [name for line in re.findall(r'^COPY (?!--from)(.*)$', file.read_text(), re.MULTILINE)
              for name in line.split()[:-1] if name != '.']
    assert copied
    for name in [*copied, *allowed]:
        assert (ROOT / name).exists(), name
    assert set(copied) <= allowed


@pytest.mark.parametrize('file', sorted((DEPLOY / 'container').glob('Dockerfile*')), ids=lambda file: file.name)
def test_container_files_build_every_source_folder(file):
    """A folder that CMake needs and .dockerignore keeps out would fail in the image only."""
    needed = set(re.findall(r'^add_subdirectory\((\w+)\)', (ROOT / 'CMakeLists.txt').read_text(), re.MULTILINE))
    allowed = (ROOT / '.dockerignore').read_text().split()
    assert needed and {f'!{name}' for name in needed} <= set(allowed)
    version = re.search(r'project\(swizzle VERSION ([\d.]+)', (ROOT / 'CMakeLists.txt').read_text())[1]
    assert f'ARG VERSION={version}\n' in file.read_text()


@pytest.fixture(scope='module')
def context(tmp_path_factory):
    """What .dockerignore lets through, configured as the image is built."""
    folder = tmp_path_factory.mktemp('context')
    allowed = [line[1:] for line in (ROOT / '.dockerignore').read_text().splitlines() if line.startswith('!')]
    listed = run('git', '-c', 'safe.directory=*', 'ls-files', '--cached', '--others', '--exclude-standard', '--', *allowed,
                 cwd=ROOT)
    assert listed.returncode == 0, listed.stderr
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    configured = run('cmake', '--preset', 'release', cwd=folder)
    assert configured.returncode == 0, configured.stdout + configured.stderr
    return folder


def test_what_the_image_installs_is_in_the_context(context):
    scripts = (context / 'build' / 'release').rglob('cmake_install.cmake')
    named = {path for script in scripts for path in re.findall(rf'"({context}/[^"]*)"', script.read_text())}
    given = {path for path in named if '/build/release' not in path}
    assert len(given) > 3
    for path in given:
        assert pathlib.Path(path).exists(), f'{path} is kept out by .dockerignore'


def installed_components(file):
    return re.findall(r'cmake --install \S+ --strip --prefix=/installed --component=(\S+)', file.read_text())


def test_images_hold_what_is_installed():
    cpu, cuda = (installed_components(DEPLOY / 'container' / name) for name in ('Dockerfile', 'Dockerfile.cuda'))
    assert cpu == ['server', 'tools'] and cuda == [*cpu, 'cuda']
    for file in (DEPLOY / 'container').glob('Dockerfile*'):
        assert 'COPY --from=build /installed/ /usr/local/\n' in file.read_text()


@pytest.mark.skipif(SANITIZED, reason='sanitizers make programs larger')
def test_the_layer_of_the_programs_is_small(tmp_path, record_testsuite_property):
    file = DEPLOY / 'container' / 'Dockerfile'
    for component in installed_components(file):
        result = run('cmake', '--install', BUILD, '--strip', '--prefix', tmp_path, '--component', component)
        assert result.returncode == 0, result.stderr
    entry = json.loads(re.search(r'^ENTRYPOINT (.*)$', file.read_text(), re.MULTILINE)[1])
    assert (tmp_path / entry[0].removeprefix('/usr/local/')).stat().st_mode & 0o111
    layer = sum(path.stat().st_size for path in tmp_path.rglob('*') if path.is_file())
    record_testsuite_property('layer_bytes', layer)
    assert 10_000_000 < layer < LAYER_BYTES


def packages_of_group(group):
    return set(run(DEPLOY / 'install-deps', '--list', group).stdout.split())


def owner(library):
    """The Debian package of a shared library, which may be recorded below /lib or below /usr/lib."""
    real = os.path.realpath(library)
    for path in (real, real.removeprefix('/usr'), f'/usr{real}'):
        result = run('dpkg', '-S', path)
        if result.returncode == 0:
            return result.stdout.split(':')[0]
    raise AssertionError(f'{library} is in no package')


@pytest.mark.skipif(SANITIZED, reason='sanitizers bring libraries of their own')
@pytest.mark.skipif(not shutil.which('dpkg'), reason='this is not a Debian system')
def test_the_run_time_packages_are_what_programs_link_against():
    direct, indirect = set(), {}
    for name in ('swizzle-server', 'swizzle', 'swizzle-pack'):
        direct |= set(re.findall(r'NEEDED\)\s+Shared library: \[(.*)\]', run('readelf', '-d', program(name)).stdout))
        indirect.update(re.findall(r'^\s*(\S+) => (/\S+)', run('ldd', program(name)).stdout, re.MULTILINE))
    always = {'libc6', 'libgcc-s1'}  # in every Debian
    owners = {library: owner(path) for library, path in indirect.items()}
    assert {owners[library] for library in direct if library in owners} - always == packages_of_group('run')

    reached, todo = set(always), list(packages_of_group('run'))
    while todo:
        package = todo.pop()
        reached.add(package)
        depends = run('dpkg-query', '--show', '--showformat=${Depends}', package).stdout
        todo += [name for name in re.findall(r'(?:^|[,|]\s*)([a-z0-9][a-z0-9+.-]*)', depends)
                 if name not in reached and run('dpkg-query', '--show', name).returncode == 0]
    assert set(owners.values()) <= reached


# Manifests.

def test_every_file_is_used():
    """By a kustomization, but for what a person copies elsewhere."""
    by_hand = {'rules.yaml', 'rules_test.yaml', 'scrape.yaml', 'adapter-rules.yaml', 'scaled-object.yaml', 'envoy.yaml'}
    used = set()
    for path in DEPLOY.rglob('kustomization.yaml'):
        kustomization = yaml.safe_load(path.read_text())
        names = kustomization.get('resources', []) + [patch['path'] for patch in kustomization.get('patches', ())]
        used |= {(path.parent / name).resolve() for name in names} | {path}
    unused = {path for path in YAML_FILES if path.resolve() not in used and path.name not in by_hand}
    assert not unused


def test_objects_validate(folder):
    objects = kustomize.render(folder)
    checked = 0
    for each in objects:
        if each['kind'] in CUSTOM:
            continue
        for version in KUBERNETES_VERSIONS:
            if version < IMAGE_VOLUMES_SINCE and any('image' in volume for volume in volumes_of(each)):
                continue
            kubernetes_validate.validate(each, version, strict=True)
            checked += 1
    assert checked or folder.name == 'kserve'


def volumes_of(each):
    return each['spec']['template']['spec']['volumes'] if each['kind'] == 'Deployment' else []


@pytest.mark.parametrize('overlay', ['cpu', 'gpu'])
def test_overlays_need_nothing_that_a_cluster_does_not_have(overlay):
    """No definitions of an operator's: kubectl apply refuses kinds that it does not know, and the rest with them."""
    objects = kustomize.render(KUBERNETES / 'overlays' / overlay)
    groups = {each['apiVersion'].rpartition('/')[0] for each in objects}
    assert groups == {'', 'apps', 'policy', 'networking.k8s.io'}
    assert not CUSTOM & {each['kind'] for each in objects}


def test_the_validator_finds_mistakes():
    deployment = find(base(), 'Deployment')
    deployment['spec']['template']['spec']['containers'][0]['livenessProbe'] = {'gprc': {'port': 8001}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, KUBERNETES_VERSIONS[0], strict=True)


@pytest.mark.skipif(not shutil.which('kubectl'), reason='kubectl is not installed')
def test_kubectl_renders_the_same(folder):
    result = run('kubectl', 'kustomize', folder)
    assert result.returncode == 0, result.stderr

    def order(objects):
        return sorted(objects, key=lambda each: (each['kind'], each['metadata']['name']))

    assert order(yaml.safe_load_all(result.stdout)) == order(kustomize.render(folder))


def test_selectors_find_the_pods(folder):
    objects = kustomize.render(folder)
    if folder.name == 'kserve':
        return
    pod = pod_of(objects)
    labels, container = pod['metadata']['labels'], pod['spec']['containers'][0]
    ports = {port['name'] for port in container['ports']}
    selectors = [each['spec'].get('selector') or each['spec'].get('podSelector') for each in objects
                 if each['kind'] in ('Service', 'PodDisruptionBudget', 'PodMonitor', 'NetworkPolicy', 'Deployment')]
    assert len(selectors) >= 4
    for selector in selectors:
        assert selector.get('matchLabels', selector).items() <= labels.items()
    for each in objects:
        if each['kind'] == 'Service':
            assert {port['targetPort'] for port in each['spec']['ports']} <= ports
        if each['kind'] == 'PodMonitor':
            assert {endpoint['port'] for endpoint in each['spec']['podMetricsEndpoints']} <= ports
            assert labels[each['spec']['jobLabel']] == 'swizzle', 'the job that the rules look for'
        if each['kind'] == 'NetworkPolicy':
            allowed = [port['port'] for rule in each['spec']['ingress'] for port in rule['ports']]
            assert set(allowed) == ports
        if each['kind'] == 'HorizontalPodAutoscaler':
            assert each['spec']['scaleTargetRef']['name'] == find(objects, 'Deployment')['metadata']['name']
            assert 'replicas' not in find(objects, 'Deployment')['spec']
    mounts = {mount['name'] for mount in container['volumeMounts']}
    assert mounts == {volume['name'] for volume in pod['spec']['volumes']}


def test_http_is_open_to_those_who_may_call(tmp_path):
    folder = KUBERNETES / 'components'
    objects = kustomize.render(with_components(tmp_path, folder / 'network-policy', folder / 'http'))
    clients, scrapes = find(objects, 'NetworkPolicy')['spec']['ingress']
    assert [port['port'] for port in clients['ports']] == ['grpc', 'http']
    assert [port['port'] for port in scrapes['ports']] == ['metrics']
    container = pod_of(objects)['spec']['containers'][0]
    http, = (port for port in container['ports'] if port['name'] == 'http')
    assert flags_of(container)['http-address'] == f'0.0.0.0:{http["containerPort"]}'
    assert run(program('swizzle-server'), *container['args'], '--list-kernels').returncode == 0


def containers():
    """(name, container, its pod's security context or none) of all that a cluster would run."""
    for folder in ROOTS:
        for each in kustomize.render(folder):
            if each['kind'] == 'Deployment':
                spec = each['spec']['template']['spec']
                yield folder.name, spec['containers'][0], spec['securityContext']
            if each['kind'] == 'ClusterServingRuntime':
                yield folder.name, each['spec']['containers'][0], {}


CONTAINERS = list(containers())


@pytest.mark.parametrize('name, container, of_pod', CONTAINERS, ids=[each[0] for each in CONTAINERS])
def test_containers_are_confined(name, container, of_pod):
    context = {**of_pod, **container['securityContext']}
    assert context['runAsNonRoot'] and context['readOnlyRootFilesystem'] and not context['privileged']
    assert context['capabilities'] == {'drop': ['ALL']} and not context['allowPrivilegeEscalation']
    assert context['seccompProfile'] == {'type': 'RuntimeDefault'}
    assert f'USER {context["runAsUser"]}:' in (DEPLOY / 'container' / 'Dockerfile').read_text()
    assert container['resources']['requests'] == container['resources']['limits']


@pytest.mark.parametrize('name, container, of_pod', CONTAINERS, ids=[each[0] for each in CONTAINERS])
def test_the_server_takes_the_flags(name, container, of_pod):
    result = run(program('swizzle-server'), *container['args'], '--list-kernels')
    assert result.returncode != 2, result.stderr  # 2: the command line is wrong
    assert flags_of(container)['device'] == ('cuda' if name == 'gpu' else 'cpu')
    for probe in ('startupProbe', 'readinessProbe', 'livenessProbe'):
        port = next(iter(container[probe].values()))['port']
        names = {each['name']: each['containerPort'] for each in container['ports']}
        assert names.get(port, port) in (8001, 8002)


def seconds_to_end(container):
    """From SIGTERM to the end, at most: no request is queued for longer than --max-deadline."""
    flags = flags_of(container)
    return int(flags['drain-delay']) + int(flags['max-deadline']) + FLUSH


@pytest.mark.parametrize('folder', ['base', 'overlays/cpu', 'overlays/gpu', 'overlays/autoscaled'])
def test_the_grace_period_covers_the_drain(folder):
    pod = pod_of(kustomize.render(KUBERNETES / folder))['spec']
    container = pod['containers'][0]
    assert pod['terminationGracePeriodSeconds'] >= seconds_to_end(container)
    assert 'lifecycle' not in container, 'the delay does what the sleep of a preStop hook would'
    readiness = container['readinessProbe']
    assert int(flags_of(container)['drain-delay']) >= 2 * readiness['periodSeconds'] * readiness['failureThreshold'], (
        'readiness must be seen to end')


def test_the_grace_period_of_kserve_covers_the_drain():
    objects = kustomize.render(KUBERNETES / 'overlays' / 'kserve')
    grace = find(objects, 'InferenceService', 'swizzle-example')['spec']['predictor']['terminationGracePeriodSeconds']
    assert grace >= seconds_to_end(find(objects, 'ClusterServingRuntime')['spec']['containers'][0])


@pytest.mark.parametrize('folder', ['base', 'overlays/cpu', 'overlays/autoscaled', 'overlays/gpu'])
def test_a_rollout_leaves_pods_to_serve(folder):
    objects = kustomize.render(KUBERNETES / folder)
    deployment = find(objects, 'Deployment')['spec']
    replicas = deployment.get('replicas')
    if replicas is None:
        replicas = find(objects, 'HorizontalPodAutoscaler')['spec']['minReplicas']
    rolling = deployment['strategy']['rollingUpdate']
    if folder == 'overlays/gpu':  # a GPU for one more pod may not be there
        assert rolling == {'maxSurge': 0, 'maxUnavailable': 1}
    else:
        assert rolling['maxUnavailable'] == 0 and rolling['maxSurge'] >= 1
    assert replicas > max(rolling['maxUnavailable'], find(objects, 'PodDisruptionBudget')['spec']['maxUnavailable'])
    startup = deployment['template']['spec']['containers'][0]['startupProbe']
    assert deployment['progressDeadlineSeconds'] > startup['periodSeconds'] * startup['failureThreshold']


def test_the_gpu_overlay_asks_for_a_gpu():
    pod = pod_of(kustomize.render(KUBERNETES / 'overlays' / 'gpu'))['spec']
    assert pod['containers'][0]['resources']['limits']['nvidia.com/gpu'] == '1'
    assert pod['tolerations'] == [{'key': 'nvidia.com/gpu', 'operator': 'Exists', 'effect': 'NoSchedule'}]
    assert pod['nodeSelector']['nvidia.com/gpu.present'] == 'true'
    assert 'ENV NVIDIA_VISIBLE_DEVICES=all' in (DEPLOY / 'container' / 'Dockerfile.cuda').read_text()


def test_probes_of_the_deployment_answer(start, repository):
    """The server, as the deployment starts it, satisfies the probes that the deployment makes."""
    container = pod_of(base())['spec']['containers'][0]
    kept = [argument for argument in container['args'] if not re.match('--(model-rep|tuning-c|drain-d)', argument)]
    server = start(repository.identity(), *kept)
    assert server.http(container['startupProbe']['httpGet']['path'])[0] == 200
    with grpc.insecure_channel(server.grpc) as channel:
        for probe in ('readinessProbe', 'livenessProbe'):
            service = container[probe]['grpc'].get('service', '')
            assert health_check(channel, service.encode()) == SERVING
    runtime = find(kustomize.render(KUBERNETES / 'overlays' / 'kserve'), 'ClusterServingRuntime')['spec']
    for probe in ('startupProbe', 'readinessProbe', 'livenessProbe'):
        assert server.http(runtime['containers'][0][probe]['httpGet']['path'])[0] == 200
    assert server.http(runtime['annotations']['prometheus.kserve.io/path'])[0] == 200
