"""What scales pods: the series that the autoscalers read are recorded, and see requests that never ran."""

import json
import re
import shutil
import string
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton
import yaml
from tritonclient.utils import InferenceServerException

from conftest import QUICK_START, ROOT, SANITIZED, Repository, Server, wait_until
from monitoring_test import PROMETHEUS, RECORDS, Prometheus, needs_prometheus

AUTOSCALE = ROOT / 'deploy' / 'kubernetes' / 'components' / 'autoscale'
ADAPTER = yaml.safe_load((AUTOSCALE / 'adapter-rules.yaml').read_text())['rules']
AUTOSCALER = yaml.safe_load((AUTOSCALE / 'horizontal-pod-autoscaler.yaml').read_text())['spec']
TRIGGERS = yaml.safe_load((AUTOSCALE / 'scaled-object.yaml').read_text())['spec']['triggers']
SERIES = [rule['seriesQuery'].partition('{')[0] for rule in ADAPTER]
DEMAND = 'swizzle:demand:max_ratio_rate2m{pod="test-0"}'
BUSY = ('max by (namespace, pod) (avg by (namespace, pod, model) '
        '(rate(swizzle_stream_busy_seconds_total{job="swizzle"}[2m])))')
MINUTE = 60_000_000

# dynamic_batching of the models, which run one request at a time. Of `full` two wait at most; what waits for `late` times
# out at once; a batch of `piled` waits for rows that do not come.
MODELS = {'full': (100, 'default_queue_policy { max_queue_size: 2 }'),
          'late': (100, 'default_queue_policy { default_timeout_microseconds: 1 }'),
          'piled': (0, f'preferred_batch_size: [ 8 ] max_queue_delay_microseconds: {MINUTE}')}


def test_what_the_autoscalers_read_is_recorded():
    assert set(SERIES) <= set(RECORDS) and DEMAND.partition('{')[0] in SERIES
    wanted = {metric['pods']['metric']['name'] for metric in AUTOSCALER['metrics']}
    assert wanted == {rule['name']['as'] for rule in ADAPTER}
    assert set(re.findall(r'swizzle:[\w:]+', json.dumps(TRIGGERS))) == set(SERIES)


def test_both_autoscalers_have_the_same_targets():
    def value(quantity):
        return int(quantity[:-1]) / 1000 if quantity.endswith('m') else float(quantity)

    target_of = {metric['pods']['metric']['name']: value(metric['pods']['target']['averageValue'])
                 for metric in AUTOSCALER['metrics']}
    for rule, series in zip(ADAPTER, SERIES):
        threshold, = (trigger['metadata']['threshold'] for trigger in TRIGGERS if series in trigger['metadata']['query'])
        assert float(threshold) == target_of[rule['name']['as']]


@needs_prometheus
def test_promtool_takes_the_scrape_job(tmp_path):
    """Debian's promtool knows no discovery by Kubernetes, so that is read here, and the rest there."""
    config = yaml.safe_load((PROMETHEUS / 'scrape.yaml').read_text())
    job, = config['scrape_configs']
    assert job['job_name'] == 'swizzle' and job.pop('kubernetes_sd_configs') == [{'role': 'pod'}]
    labels = {rule['target_label'] for rule in job['relabel_configs'] if 'target_label' in rule}
    assert labels == {'namespace', 'pod'}, 'what the rules sum by'
    (tmp_path / 'prometheus.yml').write_text(yaml.safe_dump(config))
    result = subprocess.run(['promtool', 'check', 'config', tmp_path / 'prometheus.yml'], capture_output=True, text=True,
                            timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


# A real server, and a real Prometheus with the rules.

@pytest.fixture(scope='module')
def watched(tmp_path_factory):
    """(server, Prometheus)"""
    if not shutil.which('prometheus') or SANITIZED:
        pytest.skip('needs the Debian package prometheus, and is about series, not about the server')
    directory = tmp_path_factory.mktemp('autoscale')
    (directory / 'models').mkdir()
    repository = Repository(directory / 'models')
    for model, (delay_ms, batching) in MODELS.items():
        repository.identity(model, delay_ms=delay_ms, dims='[ 1 ]', max_batch_size=8 if model == 'piled' else 1,
                            extra=f'dynamic_batching {{ {batching} }}')
    server = Server(repository, directory, *QUICK_START)
    prometheus = None
    try:
        prometheus = Prometheus(tmp_path_factory.mktemp('prometheus'), server.metrics.removeprefix('http://'),
                                PROMETHEUS / 'rules.yaml')
        wait_until(lambda: prometheus.query(DEMAND), 120, 'a demand')
        yield server, prometheus
    finally:
        if prometheus:
            prometheus.stop()
        server.kill()


def ask(client, model, requests):
    """Sends so many at once. Those that fail have to do so for want of room or time."""
    tensor = triton.InferInput('INPUT0', [1, 1], 'FP32')
    tensor.set_data_from_numpy(numpy.zeros([1, 1], numpy.float32))
    ended = []
    for _ in range(requests):
        client.async_infer(model, [tensor], lambda result, error: ended.append(error))
    wait_until(lambda: len(ended) == requests, 60, 'the end of all requests')
    for error in ended:
        assert error is None or isinstance(error, InferenceServerException) and error.status() in (
            'StatusCode.RESOURCE_EXHAUSTED', 'StatusCode.DEADLINE_EXCEEDED'), error
    return sum(error is not None for error in ended)


def value(prometheus, expression):
    samples = prometheus.query(expression)
    return float(samples[0]['value'][1]) if samples else None


def test_an_idle_server_has_no_demand(watched):
    _, prometheus = watched
    for series in SERIES:
        assert wait_until(lambda: prometheus.query(series + '{pod="test-0"} == 0'), 60, f'{series} of 0')


def test_requests_that_queue_are_demand(watched):
    """Nothing was turned away, and nothing has run, which is what 2 stands for: what waits is what the queue grows by."""
    server, prometheus = watched
    tensor = triton.InferInput('INPUT0', [1, 1], 'FP32')
    tensor.set_data_from_numpy(numpy.zeros([1, 1], numpy.float32))
    with triton.InferenceServerClient(server.grpc) as client:
        calls = [client.async_infer('piled', [tensor], lambda result, error: None) for _ in range(4)]
        wait_until(lambda: server.metric('swizzle_queue_depth', model='piled') == 4, 60, 'four requests waiting')
        wait_until(lambda: prometheus.query(DEMAND + ' == 2'), 50, 'demand for what waits')
        for call in calls:
            call.cancel()


@pytest.mark.parametrize('model, reason', [('full', 'queue_full'), ('late', 'timeout')])
def test_requests_that_never_ran_are_demand(watched, model, reason):
    """More is asked for than the executors are busy, however busy this machine lets them be."""
    server, prometheus = watched

    def more_than_busy():
        assert ask(client, model, 16) > 0
        unmet = prometheus.query(f'swizzle:requests_unmet:rate2m{{model="{model}"}} > 0.5 * swizzle:requests_run:rate2m')
        return unmet and prometheus.query(f'{DEMAND} > on (namespace, pod) (1.5 * {BUSY} > 0)')

    with triton.InferenceServerClient(server.grpc) as client:
        wait_until(more_than_busy, 120, 'demand for what was turned away')
    assert server.metric('swizzle_rejected_requests_total', model=model, reason=reason) > 0


def test_the_adapter_and_keda_get_what_is_recorded(watched):
    """Their queries, as the one fills in its template and the other its namespace."""
    server, prometheus = watched
    with triton.InferenceServerClient(server.grpc) as client:
        wait_until(lambda: ask(client, 'late', 16) and (value(prometheus, DEMAND) or 0) > 0 and
                   prometheus.query(SERIES[0] + ' > 0'), 120, 'values of both series')
    for rule, series in zip(ADAPTER, SERIES):
        template = re.sub(r'<<\.(\w+)>>', r'${\1}', rule['metricsQuery'])
        query = string.Template(template).substitute(
            Series=series, LabelMatchers='namespace="test",pod=~"test-0"', GroupBy='pod')
        sample, = prometheus.query(query)
        assert sample['metric'] == {'pod': 'test-0'} and float(sample['value'][1]) > 0
        assert set(rule['resources']['overrides']) == {'namespace', 'pod'}
    for trigger in TRIGGERS:
        query = trigger['metadata']['query'].replace('namespace="swizzle"', 'namespace="test"')
        assert query != trigger['metadata']['query'] and value(prometheus, query) > 0
