"""The pages that `inspect --report` and `advise --report` write, for shipped, drawn and hostile models."""

import html.parser
import json
import re
import shutil
import subprocess

import numpy
import onnx
import pytest
from onnx import numpy_helper

import make_cnns  # noqa: F401, adds to MODELS
import onnx_graph
from conftest import SHIPPED, SPARSE, program
from onnx_node_tests_test import make_model as make_fallback_model

HOSTILE = ['</script><script>document.title="owned"</script>', '<img src=x onerror=alert(1)>', '"\'`&quot;><b>bold',
           '<!--<script>', '\u202egnp.evil\u2028', 'n' * 1000, 'слой/層/\U0001f600', '{{script}}']


class Page(html.parser.HTMLParser):
    """What a browser makes of a page: its elements, and the text of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.scripts = [], [], []
        self.in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == 'script':
            self.scripts.append('')
        self.in_script = tag == 'script'

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if self.in_script:
            self.scripts[-1] += data

    @property
    def data(self):
        return json.loads(self.scripts[0])


def inspect(model, directory, *flags, command='inspect'):
    """(the page's text, what was printed)"""
    file = directory / 'report.html'
    command = [program('swizzle-pack'), command, str(model), '--tuning-budget=0', f'--report={file}', *flags]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stderr
    return file.read_text(encoding='ascii', errors='surrogateescape'), result.stdout


def draw_model(path, names=()):
    """A ResNet with one pruning pattern a layer, whose first nodes have these names."""
    graph = onnx_graph.Graph(17, 5)
    graph.output(make_cnns.resnet(graph, True, (2, 2, 1, 1), widths=(32, 64, 64, 64)))
    model = graph.finish('drawn')
    random = numpy.random.default_rng(1)
    weights = [tensor for tensor in model.graph.initializer if len(tensor.dims) == 4 and tensor.dims[1] >= 32]
    patterns = {}
    for i, tensor in enumerate(weights):
        out, channels, height, width = shape = tuple(tensor.dims)
        masks = {
            'unstructured': random.random(shape) < 0.15,
            '1x4 blocks': numpy.repeat(random.random((out, channels // 4, height, width)) < 0.2, 4, axis=1),
            '4x1 blocks': numpy.repeat(random.random((out // 4, channels, height, width)) < 0.2, 4, axis=0),
            '2:4': (numpy.argsort(random.random((out, channels // 4, 4, height, width)), axis=2) < 2).reshape(shape),
            'zero rows': numpy.broadcast_to(numpy.arange(out).reshape(-1, 1, 1, 1) % 3 != 1, shape),
            'dense': numpy.ones(shape, bool),
        }
        pattern = list(masks)[i % len(masks)]
        values = random.uniform(0.1, 1, shape) * masks[pattern]
        tensor.CopyFrom(numpy_helper.from_array(values.astype(numpy.float32), tensor.name))
        patterns[tensor.name] = pattern
    expected = {}
    for i, node in enumerate(model.graph.node):
        node.name = names[i] if i < len(names) else f'/layer{i}/{node.op_type}'
        if len(node.input) > 1 and node.input[1] in patterns:
            expected[node.name] = patterns[node.input[1]]
    onnx.save(model, path)
    return expected


def assert_self_contained(text):
    page = Page(text)
    assert page.tags.count('script') == 2 and page.tags.count('style') == 1
    assert not {'img', 'link', 'iframe', 'object', 'base', 'b'} & set(page.tags)
    assert not {'src', 'href', 'style'} & {name for name, _ in page.attributes}
    assert not any(name.startswith('on') for name, _ in page.attributes)
    without_data = text.replace(page.scripts[0], '')
    assert re.findall(r'\w+://[^\'" ]*', without_data) == ['http://www.w3.org/2000/svg']
    assert not re.search(r'@import|url\(|fetch\(|innerHTML', without_data)
    return page


def test_shipped_model(tmp_path):
    text, printed = inspect(SHIPPED / f'{SPARSE}.onnx', tmp_path, '-o', 'json')
    data = assert_self_contained(text).data
    assert len(text) < 1 << 20
    assert len(data['layers']) == 29
    with_picture = [layer for layer in data['layers'] if 'picture' in layer]
    assert len(with_picture) == sum(layer['weight'] is not None for layer in data['layers']) == 28
    for layer in with_picture:
        weight, picture = layer['weight'], layer.pop('picture')
        assert (picture['rows'], picture['cols']) == (min(96, weight['rows']), min(96, weight['cols']))
        assert len(picture['density']) == picture['rows'] * picture['cols']
        assert len(picture['corner']) == picture['corner_rows'] == min(64, weight['rows'])
        assert {len(row) for row in picture['corner']} == {(min(64, weight['cols']) + 3) // 4}
        pattern = 'unstructured' if weight['format'] == 'csr' else 'dense'
        assert weight['structure']['name'] == pattern, layer['name']
    assert data == json.loads(printed)


def test_picture_shows_the_weight(tmp_path):
    model = onnx.load(SHIPPED / f'{SPARSE}.onnx')
    data = Page(inspect(SHIPPED / f'{SPARSE}.onnx', tmp_path)[0]).data
    layer = next(layer for layer in data['layers'] if layer['name'] == '/blocks/blocks.12/pointwise/conv/Conv')
    node = next(node for node in model.graph.node if node.name == layer['name'])
    weight = numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == node.input[1]))
    nonzero = weight.reshape(weight.shape[0], -1) != 0
    picture = layer['picture']
    corner = [[digit >> bit & 1 for digit in (int(letter, 16) for letter in row) for bit in (3, 2, 1, 0)]
              for row in picture['corner']]
    numpy.testing.assert_array_equal(numpy.array(corner, bool), nonzero[:64, :64])
    edges = numpy.arange(97) * 1024 // 96
    sums = numpy.add.reduceat(numpy.add.reduceat(nonzero.astype(int), edges[:-1], axis=0), edges[:-1], axis=1)
    share = sums / numpy.outer(numpy.diff(edges), numpy.diff(edges))
    alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    levels = numpy.array([alphabet.index(letter) for letter in picture['density']]).reshape(96, 96)
    assert abs(levels / 63 - share).max() <= 1 / 63
    assert ((levels == 0) == (share == 0)).all()


def test_structure_of_drawn_patterns(tmp_path):
    expected = draw_model(tmp_path / 'drawn.onnx')
    assert len(set(expected.values())) == 6
    layers = Page(inspect(tmp_path / 'drawn.onnx', tmp_path)[0]).data['layers']
    found = {layer['name']: layer['weight']['structure']['name'] for layer in layers if layer['name'] in expected}
    assert found == expected


def test_hostile_names(tmp_path):
    draw_model(tmp_path / 'hostile.onnx', HOSTILE)
    text, printed = inspect(tmp_path / 'hostile.onnx', tmp_path)
    data = assert_self_contained(text).data
    names = {layer['name'] for layer in data['layers']}
    assert len(names & set(HOSTILE)) >= 3 and HOSTILE[0] in names
    assert 'unstructured' in printed


def test_fallback_model(tmp_path):
    model = make_fallback_model(tmp_path / 'model.onnx')
    text, printed = inspect(model, tmp_path)
    data = assert_self_contained(text).data
    assert data['fallback'] and data['fallback_reason']
    assert [node['op'] for node in data['fallback_nodes']] == ['Gather', 'Erf', 'Transpose', 'MatMul', 'Softmax']
    assert 'interpreter' in printed


def test_advice(tmp_path):
    draw_model(tmp_path / 'hostile.onnx', HOSTILE)
    text, printed = inspect(tmp_path / 'hostile.onnx', tmp_path, '-o', 'json', command='advise')
    data = assert_self_contained(text).data
    assert data == json.loads(printed) and data['advice']
    assert {layer['name'] for layer in data['layers']} & set(HOSTILE)
    assert all(len(layer['at']) == len(data['sparsities']) for layer in data['layers'])


def test_page_must_end_in_html(tmp_path):
    model = tmp_path / 'model.onnx'
    draw_model(model)
    before = model.read_bytes()
    command = [program('swizzle-pack'), 'inspect', str(model), f'--report={model}']
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 2 and 'does not end in .html' in result.stderr
    assert model.read_bytes() == before


def browser_dom(file, directory, *flags):
    """The document after its scripts ran, as Chromium prints it."""
    command = ['chromium', '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={directory}/chromium',
               '--virtual-time-budget=5000', *flags, '--dump-dom', file.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=300, check=True).stdout.decode()


@pytest.mark.skipif(shutil.which('chromium') is None, reason='Chromium is not installed')
def test_browser_draws_it(tmp_path):
    draw_model(tmp_path / 'hostile.onnx', HOSTILE)
    inspect(tmp_path / 'hostile.onnx', tmp_path)
    page = Page(browser_dom(tmp_path / 'report.html', tmp_path))
    data = page.data
    assert page.attributes.count(('role', 'option')) == len(data['layers'])
    assert page.attributes.count(('aria-selected', 'true')) == 1
    assert page.tags.count('canvas') in (1, 2)
    assert page.tags.count('script') == 2 and 'img' not in page.tags and 'b' not in page.tags


@pytest.mark.skipif(shutil.which('chromium') is None, reason='Chromium is not installed')
def test_browser_draws_advice(tmp_path):
    draw_model(tmp_path / 'hostile.onnx', HOSTILE)
    inspect(tmp_path / 'hostile.onnx', tmp_path, command='advise')
    page = Page(browser_dom(tmp_path / 'report.html', tmp_path))
    data = page.data
    assert page.attributes.count(('class', 'advice-total')) == len(data['measured_batches'])
    assert page.tags.count('tr') == 1 + len(data['layers'])
    assert page.tags.count('circle') >= len(data['layers']) * len(data['sparsities'])
    assert page.tags.count('script') == 2 and 'img' not in page.tags and 'b' not in page.tags


@pytest.mark.skipif(shutil.which('chromium') is None, reason='Chromium is not installed')
def test_browser_draws_a_fallback_model(tmp_path):
    inspect(make_fallback_model(tmp_path / 'model.onnx'), tmp_path)
    page = Page(browser_dom(tmp_path / 'report.html', tmp_path))
    assert ('class', 'notice') in page.attributes
    assert page.tags.count('tr') == 2 + 5 + 5  # heads, operators, nodes
