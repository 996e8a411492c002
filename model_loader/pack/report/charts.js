// The layers as rows of plots: zeros, bytes, and the times of all kernels at each measured batch.

function linearScale(limit, ticks, text) {
  return {position: value => 100 * value / limit, ticks: ticks.map(tick => ({at: 100 * tick / limit, text: text(tick)}))};
}

function bytesScale() {
  const limit = Math.max(1, ...report.layers.map(layer => layer.weight ? layer.weight.dense_bytes : 0));
  const step = 2 ** Math.floor(Math.log2(limit / 1.5));
  const ticks = [0];
  while (ticks.at(-1) + step <= limit) ticks.push(ticks.at(-1) + step);
  return linearScale(limit, ticks, bytes => bytes ? bytesText(bytes).replace(/\.0+ /, ' ') : '0');
}

// Logarithmic, from the shortest to the longest time; three ticks at most, at powers of ten.
function timeScale(b) {
  const times = report.layers.flatMap(layer => timed(layer, b).map(candidate => candidate.microseconds[b]));
  const log = times.length ? times.map(Math.log10) : [0];
  let [low, high] = [log.reduce((a, c) => Math.min(a, c)), log.reduce((a, c) => Math.max(a, c))];
  if (Math.floor(high) < Math.ceil(low)) [low, high] = [Math.floor(low), Math.ceil(high)];
  const span = Math.max(high - low, 0.1);
  const position = time => 100 * (Math.log10(time) - low) / span;
  const step = Math.max(1, Math.ceil((Math.floor(high) - Math.ceil(low)) / 2));
  const ticks = [];
  for (let power = Math.ceil(low); power <= high; power += step) {
    ticks.push({at: position(10 ** power), text: timeText(10 ** power).replace(/\.0+ /, ' ')});
  }
  return {position, ticks};
}

function bar(kind, width, height) {
  return makeSvg('rect', {class: kind, x: 0, y: 11 - height / 2, width: `${width}%`, height, rx: 1.5});
}

function sparsityMarks(scale, layer) {
  if (!layer.weight) return [];
  return [bar('mark-room', 100, 10), bar('mark-zeros', scale.position(layer.weight.sparsity), 10)];
}

function bytesMarks(scale, layer) {
  if (!layer.weight) return [];
  const {dense_bytes: dense, stored_bytes: stored} = layer.weight;
  return [bar('mark-dense-bytes', scale.position(dense), 14), bar('mark-stored-bytes', scale.position(stored), 7)];
}

// Dense kernels are squares, sparse ones circles; the chosen one is filled.
function kernelMark(candidate, x) {
  const kind = `${candidate.chosen ? 'mark-chosen' : 'mark-rejected'} ${isDense(candidate) ? 'dense' : 'sparse'}`;
  const radius = candidate.chosen ? 5 : 4;
  if (!isDense(candidate)) return makeSvg('circle', {class: kind, cx: `${x}%`, cy: 11, r: radius});
  const side = 2 * radius - 1;
  return makeSvg('rect', {class: kind, x: `${x}%`, y: 11 - side / 2, width: side, height: side,
                          transform: `translate(${-side / 2} 0)`});
}

function timed(layer, b) {
  return layer.candidates.filter(candidate => candidate.microseconds[b] > 0);
}

function timeMarks(scale, layer, b) {
  const candidates = timed(layer, b);
  if (!candidates.length) return [];
  const places = candidates.map(candidate => scale.position(candidate.microseconds[b]));
  const line = makeSvg('line', {class: 'mark-range', x1: `${Math.min(...places)}%`, x2: `${Math.max(...places)}%`,
                                y1: 11, y2: 11});
  const marks = candidates.map((candidate, i) => kernelMark(candidate, places[i]));
  return [line, ...marks.filter((_, i) => !candidates[i].chosen), ...marks.filter((_, i) => candidates[i].chosen)];
}

function makeColumns() {
  const percent = linearScale(1, [0, 0.5, 1], share => `${100 * share} %`);
  const bytes = bytesScale();
  return [
    {id: 'zeros', title: 'Zeros', scale: percent, marks: layer => sparsityMarks(percent, layer),
     value: layer => layer.weight ? percentText(layer.weight.sparsity) : '–'},
    {id: 'bytes', title: 'Bytes', scale: bytes, marks: layer => bytesMarks(bytes, layer),
     value: layer => layer.weight ? bytesText(layer.weight.stored_bytes) : '–'},
    ...batchColumns().map((batch, b) => {
      const time = timeScale(b);
      return {id: `time-${b}`, title: `Time at ${batch}`, scale: time, batch: b,
              marks: layer => timeMarks(time, layer, b), value: layer => kernelTimeText(chosenOf(layer), b)};
    }),
  ];
}

// Both ends of a name can be read when it is too long.
function makeName(name) {
  const letters = Array.from(name);
  const split = Math.max(0, letters.length - 18);
  return make('span', {class: 'name'}, make('bdi', {class: 'head'}, letters.slice(0, split).join('')),
              make('bdi', {class: 'tail'}, letters.slice(split).join('')));
}

// Those with room for their text: a label takes up to nearly half a column.
function labelledTicks(ticks) {
  let free = 0;
  return ticks.filter(tick => {
    const fits = tick.at >= free;
    if (fits) free = tick.at + 46;
    return fits;
  });
}

function makeTrack(column, marks, ticks) {
  const lines = ticks.map(tick => makeSvg('line', {class: 'grid', x1: `${tick.at}%`, x2: `${tick.at}%`, y1: 0, y2: 22}));
  return makeSvg('svg', {class: 'track', height: 22, 'aria-hidden': 'true'}, ...lines, ...marks);
}

function makeHead(columns) {
  const cells = columns.map((column, c) => make('div', {class: `cell column-${column.id}`, 'data-column': c},
    make('strong', {}, column.title),
    make('div', {class: 'ticks quiet'}, ...labelledTicks(column.scale.ticks).map(tick => {
      const label = make('span', {}, tick.text);
      label.style.left = `${tick.at}%`;
      return label;
    }))));
  return make('div', {class: 'row head', 'aria-hidden': 'true'}, make('div', {class: 'label'}, 'Layer'), ...cells);
}

function makeRow(layer, index, columns) {
  const cells = columns.map((column, c) => make('div', {class: `cell column-${column.id}`, 'data-column': c},
    makeTrack(column, column.marks(layer), column.scale.ticks), make('span', {class: 'value'}, column.value(layer))));
  return make('div', {class: 'row', role: 'option', id: `row-${index}`, 'aria-selected': 'false',
                      'aria-label': layerSummary(layer, index)},
              make('div', {class: 'label'}, make('span', {class: 'number quiet'}, `${index + 1}`), makeName(layer.name)),
              ...cells);
}

function swatch(mark) {
  return makeSvg('svg', {width: 22, height: 22, 'aria-hidden': 'true'}, mark);
}

function makeLegend() {
  const kernel = (chosen, sparse) => swatch(kernelMark({chosen, sparse}, 50));
  const entry = (column, mark, text) => make('span', {'data-column': column}, mark, text);
  return [
    entry('zeros', swatch(bar('mark-zeros', 90, 10)), 'zeros'),
    entry('bytes', swatch(bar('mark-dense-bytes', 90, 14)), 'bytes, were it dense'),
    entry('bytes', swatch(bar('mark-stored-bytes', 90, 7)), 'bytes stored'),
    entry('time', kernel(true, true), 'chosen kernel, sparse'),
    entry('time', kernel(true, false), 'chosen, dense'),
    entry('time', kernel(false, true), 'rejected, sparse'),
    entry('time', kernel(false, false), 'rejected, dense'),
  ];
}

// Where there is no room for all columns, one is shown: the style sheet looks at data-shown.
function makeChoice(columns, overview) {
  return columns.map((column, c) => {
    const input = make('input', {type: 'radio', name: 'shown', id: `shown-${c}`});
    input.checked = c === 0;
    input.addEventListener('change', () => { overview.dataset.shown = column.id; });
    return make('label', {for: `shown-${c}`}, input, make('span', {}, column.title.replace('Time at', 'Time,')));
  });
}

// The tooltip of a row: the layer, and at a column of times all kernels with theirs.
function tooltipLines(layer, index, column) {
  const lines = layerSummary(layer, index).split('; ').slice(1);
  const head = make('strong', {}, `${index + 1}. `, isolated(layer.name));
  const rows = [head, make('div', {class: 'quiet'}, layer.op)];
  if (column?.batch === undefined) return [...rows, ...lines.map(line => make('div', {}, line))];
  const candidates = timed(layer, column.batch)
    .sort((a, b) => a.microseconds[column.batch] - b.microseconds[column.batch]);
  const table = make('table', {}, ...candidates.map(candidate => make('tr', {class: candidate.chosen ? 'chosen' : ''},
    make('td', {}, swatch(kernelMark(candidate, 50))), make('td', {}, candidate.kernel),
    make('td', {class: 'number'}, kernelTimeText(candidate, column.batch)))));
  return [...rows, make('div', {}, column.title), candidates.length ? table : 'moves no data: nothing to run'];
}

function addTooltips(list, columns) {
  const tooltip = document.getElementById('tooltip');
  let shown = '';
  const hide = () => { tooltip.hidden = true; shown = ''; };
  list.addEventListener('pointermove', event => {
    const row = event.target.closest('.row');
    if (!row || event.pointerType === 'touch') return hide();
    const index = Number(row.id.slice(4));
    const column = event.target.closest('.cell')?.dataset.column;
    if (shown !== `${index} ${column}`) {
      tooltip.replaceChildren(...tooltipLines(report.layers[index], index, columns[column]));
      shown = `${index} ${column}`;
    }
    tooltip.hidden = false;
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tooltip.offsetWidth - 8);
    const below = event.clientY + 18;
    const top = below + tooltip.offsetHeight > innerHeight ? event.clientY - tooltip.offsetHeight - 10 : below;
    tooltip.style.left = `${Math.max(4, left)}px`;
    tooltip.style.top = `${Math.max(4, top)}px`;
  });
  list.addEventListener('pointerleave', hide);
  addEventListener('scroll', hide, true);
}

// A list box: one stop for the keyboard, arrow keys move. choose(index, byPointer) is called for what the user does.
function makeChart(chart, choose) {
  const columns = makeColumns();
  const list = make('div', {role: 'listbox', tabindex: '0', 'aria-label': 'Layers, as executed', class: 'rows'},
                    ...report.layers.map((layer, i) => makeRow(layer, i, columns)));
  chart.style.setProperty('--columns', columns.length);
  const overview = chart.parentElement;
  overview.dataset.shown = columns[0].id;
  chart.replaceChildren(makeHead(columns), list);
  document.getElementById('shown').replaceChildren(...makeChoice(columns, overview));
  document.getElementById('legend').replaceChildren(...makeLegend());
  list.addEventListener('click', event => {
    const row = event.target.closest('.row');
    if (row) choose(Number(row.id.slice(4)), true);
  });
  list.addEventListener('keydown', event => {
    const now = Number(list.getAttribute('aria-activedescendant').slice(4));
    const page = 10, last = report.layers.length - 1;
    const target = {ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: last, PageDown: now + page, PageUp: now - page};
    if (!(event.key in target)) return;
    event.preventDefault();
    choose(Math.max(0, Math.min(last, target[event.key])), false);
  });
  addTooltips(list, columns);
  return list;
}

function markChosenRow(list, index) {
  list.querySelector('[aria-selected=true]')?.setAttribute('aria-selected', 'false');
  const row = list.children[index];
  row.setAttribute('aria-selected', 'true');
  list.setAttribute('aria-activedescendant', row.id);
  return row;
}
