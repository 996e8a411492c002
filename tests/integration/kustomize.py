"""As much of kustomize as deploy/ uses, so that its manifests are checked where kubectl is missing.

Fields of a kustomization: resources and components (files or folders), images, namespace, patches (JSON patches in a
file, with a target), configMapGenerator (files, without the hash in the name). Any other is an error.
"""

import copy
import pathlib

import yaml

CLUSTER_WIDE = {'Namespace', 'ClusterServingRuntime'}
OPTIONAL = {'NetworkPolicy'}  # which only a component brings: kustomize passes over patches for what is not there
FIELDS = {'apiVersion', 'kind', 'resources', 'components', 'images', 'namespace', 'patches', 'configMapGenerator'}


def render(folder):
    """The objects of a folder that has a kustomization.yaml."""
    return _apply(pathlib.Path(folder), [])


def _apply(folder, objects):
    kustomization = yaml.safe_load((folder / 'kustomization.yaml').read_text())
    assert set(kustomization) <= FIELDS, f'{folder}: unknown fields {set(kustomization) - FIELDS}'
    objects = objects + [each for name in kustomization.get('resources', ()) for each in _load(folder / name)]
    objects += [_config_map(folder, generator) for generator in kustomization.get('configMapGenerator', ())]
    for name in kustomization.get('components', ()):
        objects = _apply(folder / name, objects)
    for patch in kustomization.get('patches', ()):
        _patch(objects, patch['target'], yaml.safe_load((folder / patch['path']).read_text()))
    for image in kustomization.get('images', ()):
        _name_image(objects, image)
    if 'namespace' in kustomization:
        for each in objects:
            if each['kind'] not in CLUSTER_WIDE:
                each['metadata']['namespace'] = kustomization['namespace']
    identities = [(each['kind'], each['metadata']['name']) for each in objects]
    assert len(identities) == len(set(identities)), f'{folder}: an object twice among {identities}'
    return objects


def _load(path):
    if path.is_dir():
        return render(path)
    # A copy of each: objects read through YAML's anchors would share parts.
    return [copy.deepcopy(each) for each in yaml.safe_load_all(path.read_text()) if each]


def _config_map(folder, generator):
    options = generator['options']
    assert options['disableNameSuffixHash'], 'hashes in names are not implemented'
    data = {key: (folder / file).read_text() for key, file in (item.split('=') for item in generator['files'])}
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'data': data,
            'metadata': {'name': generator['name'], 'labels': dict(options['labels'])}}


def _name_image(objects, image):
    def visit(node):
        if isinstance(node, list):
            for item in node:
                visit(item)
        elif isinstance(node, dict):
            for container in node.get('containers') or ():
                if container.get('image') == image['name']:
                    container['image'] = f'{image["newName"]}:{image["newTag"]}'
            for value in node.values():
                visit(value)

    visit(objects)


def _patch(objects, target, operations):
    found = [each for each in objects if (each['kind'], each['metadata']['name']) == (target['kind'], target['name'])]
    assert len(found) == 1 or not found and target['kind'] in OPTIONAL, f'the patch for {target} has {len(found)} targets'
    for each in found:
        for operation in operations:
            apply_operation(each, operation)


def apply_operation(document, operation):
    """One operation of RFC 6902: add, replace, remove or test, where the place exists."""
    *parents, last = [part.replace('~1', '/').replace('~0', '~') for part in operation['path'].split('/')[1:]]
    node = document
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node[part]
    if isinstance(node, list):
        last = len(node) if last == '-' else int(last)
    kind = operation['op']
    if kind == 'add':
        node.insert(last, operation['value']) if isinstance(node, list) else node.update({last: operation['value']})
    elif kind == 'replace':
        node[last]  # has to be there
        node[last] = operation['value']
    elif kind == 'remove':
        del node[last]
    elif kind == 'test':
        assert node[last] == operation['value'], f'{operation["path"]} is {node[last]}, not {operation["value"]}'
    else:
        raise AssertionError(f'unknown operation {kind}')
