// Asks the server again and again, and shows what it says. Nothing here changes anything there.

const EVERY_MS = 2000, LOOKS_KEPT = 60;
const STATES = {READY: 'good', LOADING: 'wait', UNLOADING: 'wait', UNAVAILABLE: 'bad'};

const looks = [];  // the last ones, oldest first: {time, metrics, status}
// Models of which more is shown, as keyOf says them; the page's address has them behind its '#'.
const shown = new Set(location.hash.slice(1).split(',').filter(key => key).map(decodeURIComponent));
let token = '';

function keyOf(model) {
  return `${model.name}/${model.version ?? ''}`;
}

function labelsOf(model) {
  return {model: model.name, version: model.version};
}

async function ask(path, read) {
  const response = await fetch(path, {headers: token ? {Authorization: `Bearer ${token}`} : {}, cache: 'no-store'});
  if (response.status === 401 || response.status === 403) throw {needsToken: true};
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return read(response);
}

function allVisible(value) {
  if (typeof value === 'string') return visible(value);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(allVisible);
  return Object.fromEntries(Object.entries(value).map(([key, its]) => [visible(key), allVisible(its)]));
}

function setState(text, kind) {
  const state = document.getElementById('state');
  if (state.textContent === text) return;
  state.textContent = text;
  state.className = `state ${kind}`;
  document.title = `${text} - Swizzle`;
}

// ---- Figures: the last look beside the one some seconds before ----

function recent() {
  const now = looks[looks.length - 1], before = looks[Math.max(looks.length - 6, 0)];
  return {now, before, seconds: Math.max((now.time - before.time) / 1000, 1e-3)};
}

function rateOf(name, labels) {
  const {now, before, seconds} = recent();
  return now === before ? undefined : rate(total(now.metrics, name, labels), total(before.metrics, name, labels) ?? 0, seconds);
}

function trendOf(name, labels) {
  return looks.map((look, i) => i === 0 ? undefined : rate(
    total(look.metrics, name, labels), total(looks[i - 1].metrics, name, labels) ?? 0, (look.time - looks[i - 1].time) / 1000));
}

function recentHistogram(name, labels) {
  const {now, before} = recent();
  return since(histogram(now.metrics, name, labels),
               now === before ? undefined : histogram(before.metrics, name, labels));
}

function numberText(value) {
  if (value === undefined || Number.isNaN(value)) return '–';
  return value >= 999.5 || Number.isInteger(value) ? Math.round(value).toLocaleString('en') : digits(value);
}

function secondsText(seconds) {
  return seconds === undefined ? '–' : timeText(seconds * 1e6);
}

function ageText(seconds) {
  if (!(seconds >= 0)) return '';
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} days`;
}

// ---- Parts of the page ----

function showServer({status, metrics, time}) {
  setState(status.ready ? 'ready' : 'not ready', status.ready ? 'good' : 'wait');
  const started = total(metrics, 'process_start_time_seconds');
  const devices = status.devices.map(device => device.name === 'cpu' ? device.device : `${device.name}: ${device.device}`);
  document.getElementById('server').textContent =
    [`version ${status.version}`, ...devices, `up ${ageText(time / 1000 - started)}`].join(' · ');
}

function requestsTile() {
  const element = tile('Requests a second', numberText(rateOf('swizzle_requests_total')),
                       `${numberText(failureRate())} a second not answered OK`);
  element.append(sparkline(trendOf('swizzle_requests_total'), 'Requests a second of the last two minutes'));
  return element;
}

function failureRate() {
  const all = rateOf('swizzle_requests_total'), fine = rateOf('swizzle_requests_total', {code: 'OK'});
  return all === undefined ? undefined : Math.max(all - (fine ?? 0), 0);
}

function gpuTiles(metrics) {
  return matching(metrics, 'swizzle_gpu_memory_used_bytes').map(({labels, value}) => tile(
    `Memory of ${labels.device}`, bytesText(value),
    `of ${bytesText(total(metrics, 'swizzle_gpu_memory_total_bytes', {device: labels.device}) ?? 0)}`));
}

function showTotals({metrics}) {
  const latency = recentHistogram('swizzle_request_duration_seconds');
  const limit = total(metrics, 'swizzle_memory_limit_bytes');
  const section = document.getElementById('totals');
  section.replaceChildren(make('dl', {class: 'tiles'},
    requestsTile(),
    tile('Half are answered in', secondsText(quantile(latency, .5)), `99 % in ${secondsText(quantile(latency, .99))}`),
    tile('Queued', numberText(total(metrics, 'swizzle_queue_depth') ?? 0),
         `of ${numberText(total(metrics, 'swizzle_inflight_requests') ?? 0)} in flight, ` +
         `${numberText(total(metrics, 'swizzle_connections') ?? 0)} connections`),
    tile('Memory', bytesText(total(metrics, 'process_resident_memory_bytes') ?? 0),
         limit ? `resident, of ${bytesText(limit)} that it may take` : 'resident'),
    ...gpuTiles(metrics)));
  section.hidden = false;
}

function stateOf(model) {
  return make('span', {class: `state ${STATES[model.state] ?? 'wait'}`}, (model.state ?? 'unknown').toLowerCase());
}

// A cell for each title; the last one, of a model that does not serve, says why.
const TITLES = ['Model', 'State', 'Zeros', 'Weights', 'Requests a second', 'Half in', '99 % in', 'Rows a batch', 'Queued', 'Trend'];

function modelCells(model, metrics) {
  const labels = labelsOf(model), opened = shown.has(keyOf(model));
  const button = make('button', {type: 'button', class: 'name', 'aria-expanded': opened, 'data-model': keyOf(model)},
                      isolated(model.version ? `${model.name} ${model.version}` : model.name));
  const cells = [[button], [stateOf(model)]];
  if (!model.serving) return [...cells, [isolated(model.reason ?? '')]];
  const latency = recentHistogram('swizzle_request_duration_seconds', labels);
  const stored = total(metrics, 'swizzle_model_weight_bytes', {...labels, kind: 'stored'});
  const batches = rateOf('swizzle_batches_total', labels), rows = rateOf('swizzle_inferences_total', labels);
  const sparsity = total(metrics, 'swizzle_model_sparsity_ratio', labels);
  return [...cells, [stored ? percentText(sparsity) : '–'], [stored ? bytesText(stored) : '–'],
          [numberText(rateOf('swizzle_requests_total', labels))],
          [secondsText(quantile(latency, .5))], [secondsText(quantile(latency, .99))],
          [batches > 0 ? numberText(rows / batches) : '–'], [numberText(total(metrics, 'swizzle_queue_depth', labels))],
          [sparkline(trendOf('swizzle_requests_total', labels), `Requests a second to ${model.name}`)]];
}

function modelRow(model, metrics) {
  return make('tr', {}, ...modelCells(model, metrics).map((children, i, cells) => {
    const isReason = !model.serving && i === cells.length - 1;
    const kind = isReason ? 'reason' : TITLES[i] === 'Trend' ? 'trend' : i >= 2 ? 'number' : '';
    const attributes = {class: kind, 'data-title': isReason ? '' : TITLES[i]};
    if (isReason) attributes.colspan = TITLES.length - i;
    return make('td', attributes, ...children);
  }));
}

function showModels({status, metrics}) {
  const section = document.getElementById('models');
  const focused = document.activeElement?.dataset?.model;
  const head = TITLES.map((title, i) => make('th', {class: i >= 2 && title !== 'Trend' ? 'number' : '', scope: 'col'}, title));
  section.querySelector('.scroll').replaceChildren(status.models.length === 0 ?
    make('p', {}, 'There is no model yet.') :
    make('table', {}, make('thead', {}, make('tr', {}, ...head)),
         make('tbody', {}, ...status.models.map(model => modelRow(model, metrics)))));
  for (const button of section.querySelectorAll('button.name')) {
    button.addEventListener('click', () => toggle(button.dataset.model));
    if (button.dataset.model === focused) button.focus();
  }
  section.hidden = false;
}

function toggle(key) {
  if (!shown.delete(key)) shown.add(key);
  history.replaceState(null, '', `#${[...shown].map(encodeURIComponent).join(',')}`);
  draw();
}

function countsTable(metrics, name, labels, label, title) {
  const rows = matching(metrics, name, labels).filter(sample => sample.value > 0)
    .map(sample => [isolated(sample.labels[label]), numberText(sample.value)]);
  return rows.length ? makeTable([{text: title}, {text: '', number: true}], rows) : make('p', {class: 'quiet'}, 'none');
}

function tensorsTable(title, tensors) {
  return makeTable([{text: title}, {text: 'type'}, {text: 'shape'}], (tensors ?? []).map(tensor =>
    [isolated(tensor.name), tensor.datatype, `[${(tensor.shape ?? []).join(', ')}]`]));
}

function part(title, ...children) {
  return make('div', {}, make('h3', {}, title), ...children);
}

function kernelsTable(metrics, labels) {
  const used = matching(metrics, 'swizzle_kernel_selected', labels).filter(sample => sample.value > 0);
  if (!used.length) return make('p', {class: 'quiet'}, 'no plan');
  return makeTable([{text: 'operation'}, {text: 'kernel'}, {text: 'on'}, {text: 'layers', number: true}],
                   used.map(({labels: its, value}) => [its.op, its.kernel, its.device, numberText(value)]));
}

function modelDetails(model, metrics) {
  const labels = labelsOf(model);
  const state = matching(metrics, 'swizzle_model_tuning_state', labels).find(sample => sample.value === 1)?.labels.state;
  const title = make('h2', {}, isolated(`${model.name} ${model.version ?? ''}`));
  if (!model.serving) {
    return make('article', {class: 'card'}, title, make('p', {}, isolated(model.reason ?? 'It does not serve.')));
  }
  const facts = [`batches up to ${model.serving.max_batch_size ?? 0}`, countText(model.serving.executors, 'executor', 'executors')];
  if (state) facts.push(`tuning: ${state}`);
  const note = model.reason ? [make('p', {class: 'bad'}, isolated(model.reason))] : [];
  return make('article', {class: 'card'}, title, make('p', {class: 'quiet'}, isolated(facts.join(' · '))), ...note,
    make('div', {class: 'detail'},
      part('Time to answer, since the start', histogramBars(
        histogram(metrics, 'swizzle_request_duration_seconds', labels), secondsText)),
      part('Rows of batches', histogramBars(histogram(metrics, 'swizzle_batch_size', labels), bound => numberText(bound))),
      part('Kernels', kernelsTable(metrics, labels)),
      part('Inputs and outputs', tensorsTable('input', model.serving.inputs), tensorsTable('output', model.serving.outputs)),
      part('Requests by how they ended', countsTable(metrics, 'swizzle_requests_total', labels, 'code', 'code')),
      part('Requests that never ran', countsTable(metrics, 'swizzle_rejected_requests_total', labels, 'reason', 'reason'))));
}

function showDetails({status, metrics}) {
  document.getElementById('details').replaceChildren(
    ...status.models.filter(model => shown.has(keyOf(model))).map(model => modelDetails(model, metrics)));
}

function draw() {
  const look = looks[looks.length - 1];
  if (!look) return;
  for (const show of [showServer, showTotals, showModels, showDetails]) show(look);
}

async function look() {
  try {
    const [metrics, status] = await Promise.all([ask('metrics', response => response.text()),
                                                 ask('status', response => response.json())]);
    looks.push({time: Date.now(), metrics: parseMetrics(metrics), status: allVisible(status)});
    if (looks.length > LOOKS_KEPT) looks.shift();
    document.getElementById('ask').hidden = true;
    draw();
  } catch (error) {
    document.getElementById('ask').hidden = !error.needsToken;
    setState(error.needsToken ? 'token needed' : 'no answer', error.needsToken ? 'wait' : 'bad');
  }
  setTimeout(look, EVERY_MS);
}

document.getElementById('ask').addEventListener('submit', event => {
  event.preventDefault();
  token = document.getElementById('token').value.trim();
});
look();
