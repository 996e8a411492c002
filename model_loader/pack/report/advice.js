// What `advise` found: the model's latency at each sparsity, and the same of each layer.

const ADVICE_HEIGHT = 180;  // of the plot of the whole model

function batchText(b) {
  return report.counts_tokens ? `${report.measured_batches[b]} tokens` : `batch ${report.measured_batches[b]}`;
}

// From the least sparsity to the largest, and from no time to the dense one or more.
function adviceScales(series) {
  const first = report.sparsities[0], last = report.sparsities.at(-1);
  const most = Math.max(1, ...series.flat());
  return {x: sparsity => 100 * (sparsity - first) / (last - first), y: (value, height) => (height - 4) * (1 - value / most) + 2};
}

// A line with a point at each sparsity; values are shares of 1, where a dotted line stands.
function adviceCurve(kind, values, height, scales) {
  const points = report.sparsities.map((sparsity, s) => [scales.x(sparsity), scales.y(values[s], height)]);
  const lines = points.slice(1).map(([x, y], i) =>
    makeSvg('line', {class: `curve ${kind}`, x1: `${points[i][0]}%`, y1: points[i][1], x2: `${x}%`, y2: y}));
  const dots = points.map(([x, y], s) => makeSvg('circle', {class: `curve-point ${kind}`, cx: `${x}%`, cy: y,
    r: report.sparsities[s] === report.wanted ? 4 : 2}));
  return [...lines, ...dots];
}

function denseLine(height, scales) {
  const y = scales.y(1, height);
  return makeSvg('line', {class: 'grid dense-line', x1: 0, x2: '100%', y1: y, y2: y});
}

// By sparsity.
function sharesOf(times, dense, b) {
  return times.map(at => dense[b] > 0 ? at[b] / dense[b] : 1);
}

function makeAdviceTotal(b) {
  const values = sharesOf(report.microseconds, report.dense_microseconds, b);
  const scales = adviceScales([values]);
  const label = (at, y, text, attributes = {}) => makeSvg('text', {class: 'plot-text', x: `${at}%`, y, ...attributes}, text);
  const texts = report.sparsities.map((sparsity, s) => [
    label(scales.x(sparsity), ADVICE_HEIGHT + 16, `${Math.round(100 * sparsity)} %`, {'text-anchor': 'middle'}),
    label(scales.x(sparsity), scales.y(values[s], ADVICE_HEIGHT) - 8, timeText(report.microseconds[s][b]), {'text-anchor': 'middle'})]);
  return make('figure', {class: 'advice-total'},
    make('figcaption', {}, make('strong', {}, `At ${batchText(b)}`),
         make('span', {class: 'quiet'}, `dense: ${timeText(report.dense_microseconds[b])}, the line above`)),
    makeSvg('svg', {class: 'track', height: ADVICE_HEIGHT + 22, role: 'img',
                    'aria-label': `Predicted time at ${batchText(b)}, at each sparsity`},
            denseLine(ADVICE_HEIGHT, scales), ...adviceCurve('time', values, ADVICE_HEIGHT, scales), ...texts.flat()));
}

function adviceColumns() {
  const scales = adviceScales([]);
  const scale = {ticks: report.sparsities.map(sparsity => ({at: scales.x(sparsity), text: `${Math.round(100 * sparsity)} %`}))};
  const wanted = report.sparsities.indexOf(report.wanted);
  const times = [...new Set([0, report.measured_batches.length - 1])].map((b, c) => ({
    id: `time-${c}`, title: `Time at ${batchText(b)}, of dense`, scale,
    marks: layer => {
      const values = sharesOf(layer.at.map(at => at.microseconds), layer.dense_microseconds, b);
      const own = adviceScales([values]);
      return [denseLine(22, own), ...adviceCurve('time', values, 22, own)];
    },
    value: layer => timesText(layer.dense_microseconds[b] / layer.at[wanted].microseconds[b])}));
  return [...times, {
    id: 'zeros', title: 'Squared weights removed in one shot', scale,
    marks: layer => layer.at[0].removed_squares === null ? [] :
      [denseLine(22, scales), ...adviceCurve('removed', layer.at.map(at => at.removed_squares), 22, scales)],
    value: layer => layer.at[wanted].removed_squares === null ? '–' : percentText(layer.at[wanted].removed_squares)}];
}

function makeAdviceRow(layer, index, columns) {
  const summary = `${index + 1}. ${layer.name}, ${layer.rows} by ${layer.cols}, ${percentText(layer.share)} of the dense time; ${layer.advice}`;
  return make('div', {class: `row${layer.advised_sparsity > 0 ? '' : ' left'}`, title: summary},
    make('div', {class: 'label'}, make('span', {class: 'number quiet'}, `${index + 1}`), makeName(layer.name)),
    ...columns.map((column, c) => make('div', {class: `cell column-${column.id}`, 'data-column': c},
      makeTrack(column, column.marks(layer), column.scale.ticks), make('span', {class: 'value'}, column.value(layer)))));
}

function showAdviceTable() {
  const number = text => ({text, number: true});
  const wanted = report.sparsities.indexOf(report.wanted);
  const titles = [number('#'), {text: 'layer'}, number('weight'), number('share'), number('dense'),
                  ...report.sparsities.map(sparsity => number(`${Math.round(100 * sparsity)} %`)), {text: 'kernel'},
                  number('pays from'), {text: 'advice'}];
  const rows = report.layers.map((layer, i) => [
    `${i + 1}`, make('span', {class: 'long', title: layer.name}, isolated(layer.name)),
    shapeText(layer) + (layer.places > 1 ? `, ${layer.places} times` : ''), percentText(layer.places * layer.share),
    timeText(layer.dense_microseconds[0]), ...layer.at.map(at => timeText(at.microseconds[0])),
    layer.at[wanted].kernel, layer.pays_from === null ? 'never' : percentText(layer.pays_from), layer.advice]);
  show('table').querySelector('.scroll').append(makeTable(titles, rows));
}

function showAdvice() {
  const left = report.layers.filter(layer => layer.advised_sparsity === 0);
  const tiles = report.measured_batches.map((_, b) => tile(
    `As advised, at ${batchText(b)}`, timeText(report.advised_microseconds[b]),
    `${timesText(report.dense_microseconds[b] / report.advised_microseconds[b])} as fast as dense (${timeText(report.dense_microseconds[b])})`));
  show('totals', make('dl', {class: 'tiles'},
                      tile('Advice', `${Math.round(100 * report.wanted)} % zeros`,
                           `in ${report.layers.length - left.length} of ${countText(report.layers.length, 'layer', 'layers')}`), ...tiles),
       make('p', {class: 'quiet'}, `Times are predicted: sums of measured kernels at zeros of ${report.method}` +
            (report.vector_rows ? ` of ${report.vector_rows}` : '') + ' pruning. ' +
            (report.in_regions ? 'What lies between regions is in none of them. ' : '')),
       make('div', {class: 'advice-totals'}, ...report.measured_batches.map((_, b) => makeAdviceTotal(b))));
  const columns = adviceColumns(), chart = document.getElementById('chart');
  const overview = chart.parentElement;
  document.getElementById('overview-title').textContent = 'Layers, at each sparsity';
  overview.dataset.shown = columns[0].id;
  chart.style.setProperty('--columns', columns.length);
  chart.replaceChildren(makeHead(columns), make('div', {class: 'rows'}, ...report.layers.map((layer, i) => makeAdviceRow(layer, i, columns))));
  document.getElementById('shown').replaceChildren(...makeChoice(columns, overview));
  overview.querySelector('p').textContent = 'The line above each curve is the dense time, or all of the weight. Large points ' +
    `are at ${Math.round(100 * report.wanted)} %, and so are the numbers. Pale layers are better left as they are.`;
  show('overview');
  showAdviceTable();
}
