"""Prometheus rules and the Grafana dashboard in deploy/: promtool takes them, and a real server has what they ask for."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import numpy
import pytest
import tritonclient.grpc as triton
import yaml

from certificates import Authority
from conftest import ROOT, SANITIZED, SPARSE, lasting_server, wait_until

PROMETHEUS = ROOT / 'deploy' / 'prometheus'
RULES = yaml.safe_load((PROMETHEUS / 'rules.yaml').read_text())
ALL_RULES = [rule for group in RULES['groups'] for rule in group['rules']]
RECORDS = {rule['record']: rule['expr'] for rule in ALL_RULES if 'record' in rule}
ALERTS = {rule['alert']: rule for rule in ALL_RULES if 'alert' in rule}
RULE_TESTS = yaml.safe_load((PROMETHEUS / 'rules_test.yaml').read_text())['tests']
DASHBOARD = json.loads((ROOT / 'deploy' / 'grafana' / 'dashboard.json').read_text())
PANELS = [panel for panel in DASHBOARD['panels'] if panel['type'] != 'row']
VARIABLES = {variable['name']: variable for variable in DASHBOARD['templating']['list']}

# Labels that Prometheus adds to what it scrapes.
SCRAPED = {'job', 'instance', 'namespace', 'pod'}

needs_prometheus = pytest.mark.skipif(not shutil.which('prometheus'), reason='Debian package prometheus is missing')


def expressions():
    """(name, PromQL) of every rule and panel."""
    yield from RECORDS.items()
    for name, rule in ALERTS.items():
        yield name, rule['expr']
    for panel in PANELS:
        for target in panel['targets']:
            yield panel['title'], target['expr']


EXPRESSIONS = list(expressions())
# What the reference page says there is, which server_test holds to the code's table: {metric: its labels}.
FAMILIES = {name: set(re.findall(r'`(\w+)`', labels)) for name, labels in re.findall(
    r'^\| `(\w+)` \| (?:counter|gauge|histogram) \| (.*?) \|', (ROOT / 'server/METRICS.md').read_text(), re.MULTILINE)}


def family_of(metric):
    """The family that a sample's name belongs to."""
    stem = re.sub(r'_(bucket|sum|count)$', '', metric)
    return metric if metric in FAMILIES else stem


def selectors(expression):
    """(metric, {label: value to match}) of every selector in the PromQL that has a prefix of ours."""
    for name, labels in re.findall(r'\b((?:swizzle|process)[\w:]*|up)\b(?:\{(.*?)\})?', expression, re.DOTALL):
        yield name, {label: value for label, value in re.findall(r'(\w+)\s*=~?\s*"(.*?)"', labels)}


@needs_prometheus
@pytest.mark.parametrize('command', [['check', 'rules', 'rules.yaml'], ['test', 'rules', 'rules_test.yaml']],
                         ids=lambda command: command[0])
def test_promtool(command):
    result = subprocess.run(['promtool', *command], cwd=PROMETHEUS, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0 and 'SUCCESS' in result.stdout, result.stdout + result.stderr


def test_the_operators_rules_are_the_same():
    rule = yaml.safe_load((PROMETHEUS / 'prometheus-rule.yaml').read_text())
    assert rule['kind'] == 'PrometheusRule' and rule['spec'] == RULES


@pytest.mark.parametrize('alert', ALERTS)
def test_each_alert_is_tested_and_has_a_runbook(alert):
    tests = [test for each in RULE_TESTS for test in each.get('alert_rule_test', ()) if test['alertname'] == alert]
    assert any(test['exp_alerts'] for test in tests), 'no test makes it fire'
    page, _, anchor = ALERTS[alert]['annotations']['runbook'].partition('#')
    titles = re.findall('^## (.*)$', (ROOT / page).read_text(), re.MULTILINE)
    assert anchor in {title.lower().replace(' ', '-') for title in titles}


# The dashboard.

def test_every_panel_says_what_it_is():
    for panel in PANELS:
        assert panel['title'] and panel['description'] and panel['fieldConfig']['defaults']['unit'], panel['title']
        assert panel['datasource']['uid'] == '${datasource}' and panel['targets']
        assert {target['datasource']['uid'] for target in panel['targets']} == {'${datasource}'}
        for window in re.findall(r'\[(.*?)\]', ' '.join(target['expr'] for target in panel['targets'])):
            assert window == '$__rate_interval', panel['title']
    assert VARIABLES['datasource']['type'] == 'datasource' and {'job', 'instance', 'model'} <= set(VARIABLES)


def test_panels_have_their_own_numbers_and_places():
    ids = [panel['id'] for panel in DASHBOARD['panels']]
    assert len(ids) == len(set(ids))
    taken = {}
    for panel in DASHBOARD['panels']:
        at = panel['gridPos']
        assert 0 <= at['x'] and at['x'] + at['w'] <= 24
        for cell in ((x, y) for x in range(at['x'], at['x'] + at['w']) for y in range(at['y'], at['y'] + at['h'])):
            assert cell not in taken, f'{panel["title"]} overlaps {taken[cell]}'
            taken[cell] = panel['title']


# Against a real server, watched by a real Prometheus.

class Prometheus:
    def __init__(self, directory, target, rules):
        self.log_file = directory / 'log'
        config = {'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'}, 'rule_files': [str(rules)],
                  'scrape_configs': [{'job_name': 'swizzle', 'static_configs': [
                      {'targets': [target], 'labels': {'namespace': 'test', 'pod': 'test-0'}}]}]}
        (directory / 'prometheus.yml').write_text(yaml.safe_dump(config))
        with open(self.log_file, 'wb') as log:
            self.process = subprocess.Popen(
                ['prometheus', f'--config.file={directory / "prometheus.yml"}', '--web.listen-address=127.0.0.1:0',
                 f'--storage.tsdb.path={directory / "data"}'], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.address = wait_until(self._address, 120, 'the start of Prometheus')
        except BaseException:
            self.stop()
            raise

    def _address(self):
        assert self.process.poll() is None, self.log_file.read_text()
        found = re.search(r'msg="Listening on" address=(\S+)', self.log_file.read_text())
        return found and found[1]

    def query(self, expression):
        """The samples that the expression has now: none after a scrape that failed, as on a busy machine it may."""
        url = f'http://{self.address}/api/v1/query?' + urllib.parse.urlencode({'query': expression})
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)['data']['result']
        except urllib.error.HTTPError as error:
            if error.code == 503:  # not ready yet
                return []
            raise AssertionError(f'{expression}: {error.read().decode()}') from None

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)


@pytest.fixture(scope='module')
def watched(tmp_path_factory):
    """A server that has all metrics, after some requests."""
    folder = tmp_path_factory.mktemp('watched')
    authority = Authority(folder)
    pair = authority.issue('server')
    with lasting_server(folder, f'--tls-cert={pair.certificate}', f'--tls-key={pair.key}') as server:
        ask(server, authority)
        yield server


def ask(server, authority):
    with triton.InferenceServerClient(server.grpc, ssl=True, root_certificates=str(authority.certificate)) as client:
        for model, name, shape in (('identity', 'INPUT0', [1, 16]), (SPARSE, 'image', [1, 1, 28, 28])):
            tensor = triton.InferInput(name, shape, 'FP32')
            tensor.set_data_from_numpy(numpy.zeros(shape, numpy.float32))
            for _ in range(3):
                client.infer(model, [tensor])


@pytest.fixture(scope='module')
def exposed(watched):
    """{metric: {label: values}} of all that the server exposes."""
    found = {}
    for name, labels in re.findall(r'^(\w+)(?:\{(.*)\})? ', watched.http('/metrics')[1], re.MULTILINE):
        for label, value in re.findall(r'(\w+)="(.*?)"', labels):
            found.setdefault(name, {}).setdefault(label, set()).add(value)
        found.setdefault(name, {})
    return found


@pytest.fixture(scope='module')
def prometheus(watched, tmp_path_factory):
    if not shutil.which('prometheus') or SANITIZED:
        pytest.skip('needs the Debian package prometheus, and is about expressions, not about the server')
    running = Prometheus(tmp_path_factory.mktemp('prometheus'), watched.metrics.removeprefix('http://'),
                         PROMETHEUS / 'rules.yaml')
    try:
        # A rate needs two scrapes.
        wait_until(lambda: running.query('count_over_time(swizzle_build_info[1m]) >= 3'), 120, 'three scrapes')
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize('name, expression', EXPRESSIONS, ids=[name for name, _ in EXPRESSIONS])
def test_the_server_has_what_the_expression_selects(exposed, name, expression):
    found = list(selectors(expression))
    assert found, 'it selects nothing'
    for metric, labels in found:
        if metric in RECORDS or metric == 'up':
            continue
        assert family_of(metric) in FAMILIES, metric
        assert set(labels) - SCRAPED - {'le'} <= FAMILIES[family_of(metric)], metric
        if metric.startswith('swizzle_gpu_') and metric not in exposed:  # no GPU here; metrics_test has its labels
            continue
        assert metric in exposed, metric
        for label, wanted in labels.items():
            if label in SCRAPED or wanted == '$model':
                continue
            assert label in exposed[metric], f'{metric} has no label {label}'
            missing = set(wanted.split('|')) - exposed[metric][label]
            assert not missing, f'{metric}{{{label}}} is never {missing}'


def test_the_server_exports_the_families_of_the_page(watched):
    exported = set(re.findall(r'^# TYPE (\w+) ', watched.http('/metrics')[1], re.MULTILINE))
    assert len(FAMILIES) > 20
    assert exported | {name for name in FAMILIES if name.startswith(('swizzle_gpu_', 'nv_'))} == set(FAMILIES)


def grafana(expression):
    """The expression with what Grafana puts in for its variables."""
    expression = expression.replace('$__rate_interval', '1m')
    return re.sub(r'\$(?:job|instance|model)\b', '.*', expression)


@pytest.mark.parametrize('panel', PANELS, ids=lambda panel: panel['title'])
def test_every_panel_has_data(prometheus, panel):
    for target in panel['targets']:
        if 'swizzle_gpu_' in target['expr'] and not prometheus.query('swizzle_gpu_memory_total_bytes'):
            pytest.skip('there is no GPU here')
        samples = wait_until(lambda: prometheus.query(grafana(target['expr'])), 60, f'data for {panel["title"]}')
        for label in re.findall(r'\{\{(\w+)\}\}', target['legendFormat']):
            assert all(label in sample['metric'] for sample in samples), f'the legend wants {label}'


@pytest.mark.parametrize('record', RECORDS)
def test_every_recording_rule_has_data(prometheus, record):
    wait_until(lambda: prometheus.query(record), 60, f'data for {record}')


def test_no_alert_fires_on_a_healthy_server(prometheus):
    wait_until(lambda: prometheus.query('up{job="swizzle"} == 1'), 60, 'a scrape')
    assert not prometheus.query('ALERTS{alertstate="firing"}')


def test_variables_find_something(prometheus):
    for name in ('job', 'instance', 'model'):
        query, label = re.fullmatch(r'label_values\((.*), (\w+)\)', VARIABLES[name]['definition']).groups()
        assert VARIABLES[name]['query']['query'] == VARIABLES[name]['definition']
        samples = wait_until(lambda: prometheus.query(grafana(query)), 60, f'something for {name}')
        assert all(sample['metric'].get(label) for sample in samples), name
