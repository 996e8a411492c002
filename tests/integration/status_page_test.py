"""The page at / of the metrics' address: it holds no data and loads nothing from elsewhere, and draws what /status and
/metrics say."""

import html.parser
import json
import re
import shutil
import subprocess

import numpy
import onnx
import pytest
import tritonclient.grpc as triton

from conftest import SHIPPED, SPARSE

HOSTILE = '<img src=x onerror=alert(1)>'


class Page(html.parser.HTMLParser):
    """Tags, attributes and text of a document."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ''
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def write_hostile(repository):
    """A model whose input is called like markup."""
    value = [onnx.helper.make_tensor_value_info(port, onnx.TensorProto.FLOAT, ['n', 4]) for port in (HOSTILE, 'y')]
    graph = onnx.helper.make_graph([onnx.helper.make_node('Relu', [HOSTILE], ['y'])], 'g', value[:1], value[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 17)], ir_version=8)
    return repository.file('hostile', 'model.onnx', model.SerializeToString())


@pytest.fixture
def server(start, repository):
    write_hostile(repository).identity().file('broken', 'model.onnx', b'no model')
    running = start(repository, f'--model={SHIPPED / SPARSE}.onnx,name=sparse', '--ready=any')
    with triton.InferenceServerClient(running.grpc) as client:
        tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
        tensor.set_data_from_numpy(numpy.zeros((1, 16), numpy.float32))
        for _ in range(5):
            client.infer('identity', [tensor])
    yield running
    assert running.stop() == 0, running.log()


def test_the_page_is_whole_and_holds_no_data(server):
    code, text = server.http('/')
    page = Page(text)
    assert code == 200
    assert 'identity' not in text and 'hostile' not in text
    assert not [value for name, value in page.attributes if name in ('src', 'href')]
    assert not re.search(r'https?://(?!www\.w3\.org/2000/svg)', text)
    assert "default-src 'none'" in text


def test_the_status_tells_of_models_and_devices(server):
    status = json.loads(server.http('/status')[1])
    assert status['ready'] is True
    assert status['devices'][0]['name'] == 'cpu'
    models = {model['name']: model for model in status['models']}
    assert {name: model['state'] for name, model in models.items()} == {
        'broken': 'UNAVAILABLE', 'hostile': 'READY', 'identity': 'READY', 'sparse': 'READY'}
    assert 'not an ONNX model' in models['broken']['reason'] and models['broken']['serving'] is None
    serving = models['sparse']['serving']
    assert serving['inputs'][0] == {'name': 'image', 'datatype': 'FP32', 'shape': [-1, 1, 28, 28]}
    assert float(serving['properties']['swizzle_sparsity']) > 0.8 and serving['max_batch_size'] == 64


@pytest.mark.skipif(shutil.which('chromium') is None, reason='Chromium is not installed')
@pytest.mark.parametrize('flags', [(), ('--window-size=400,900', '--blink-settings=preferredColorScheme=0')],
                         ids=['screen', 'dark phone'])
def test_a_browser_draws_it(server, tmp_path, flags):
    address = f'{server.metrics}/#hostile%2F1,sparse%2F1,broken%2F1'
    command = ['chromium', '--headless=new', '--no-sandbox', '--disable-gpu', f'--user-data-dir={tmp_path}/chromium',
               '--virtual-time-budget=7000', *flags]
    drawn = subprocess.run([*command, '--dump-dom', address], capture_output=True, timeout=300, check=True).stdout.decode()
    page = Page(drawn)
    try:
        assert 'img' not in page.tags and HOSTILE in page.text
        assert page.tags.count('tr') >= 1 + 4 + 3
        assert page.attributes.count(('aria-expanded', 'true')) == 3
        for said in ('ready', 'unavailable', 'not an ONNX model', 'conv_csr', 'Rows of batches', 'Queued'):
            assert said in page.text, said
    except AssertionError:
        subprocess.run([*command, f'--screenshot={tmp_path}/page.png', address], capture_output=True, timeout=300, check=False)
        print(f'the page as it was drawn: {tmp_path}/page.png')
        raise
