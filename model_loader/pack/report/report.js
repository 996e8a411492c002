// Puts the page together.

const MOST_LISTED = 2000;  // rows of a plain table

function show(id, ...children) {
  const section = document.getElementById(id);
  section.append(...children);
  section.hidden = false;
  return section;
}

function fact(title, ...text) {
  return make('div', {class: 'fact'}, make('dt', {class: 'quiet'}, title), make('dd', {}, ...text));
}

function showHeader() {
  document.title = `${report.model} - Swizzle`;
  document.getElementById('model').append(isolated(report.model));
  const origin = [report.container, report.producer || 'unknown producer'];
  if (report.fallback) origin.push(`opset ${report.opset}`, countText(report.fallback_nodes.length, 'node', 'nodes'));
  else origin.push(countText(report.layers.length, 'layer', 'layers'));
  document.getElementById('origin').append(isolated(origin.join(' · ')));
  const device = report.device_name ?? report.device;
  if (!report.layers.length) return;
  const batches = report.max_batch ? [`batches up to ${report.max_batch}`] : [];
  document.getElementById('device').append(isolated(
    [device, report.features, countText(report.threads, 'thread', 'threads'), ...batches].join(' · ')));
}

function showTotals() {
  const weights = report.layers.filter(layer => layer.weight);
  const sparse = weights.filter(layer => layer.weight.sparse).length;
  const tiles = [
    tile('Zeros', percentText(report.sparsity), `${sparse} of ${countText(weights.length, 'weight', 'weights')} stored sparse`),
    tile('Weights', bytesText(report.stored_bytes),
         `stored, of ${bytesText(report.dense_bytes)} dense: ${timesText(report.dense_bytes / report.stored_bytes)} smaller`),
    ...(report.measured_batches ?? []).map((batch, b) => tile(
      `Time at batch ${batch}`, timeText(report.microseconds[b]),
      `${timesText(report.dense_microseconds[b] / report.microseconds[b])} as fast as dense (${timeText(report.dense_microseconds[b])})`)),
  ];
  show('totals', make('dl', {class: 'tiles'}, ...tiles),
       make('p', {class: 'quiet'},
            isMeasured() ? 'Times with a ~ are those of a like layer, or estimates. ' :
              'Times are estimates by rule of thumb, for no time was given to measure kernels (--tuning-budget). ',
            'Times are sums over the layers of the kernels chosen, and of the fastest dense kernel of each; ' +
            'conversions between layouts are left out.'));
}

function showTable() {
  const number = text => ({text, number: true});
  const titles = [number('#'), {text: 'layer'}, {text: 'operator'}, number('weight'), number('plane'), number('zeros'),
                  {text: 'structure'}, number('dense'), number('stored'), {text: 'kernel'}];
  if (report.fallback) titles.splice(1, 0, number('region'));
  const batches = batchColumns();
  for (const batch of batches) titles.push(number(batch), number('vs. dense'));
  const rows = report.layers.map((layer, i) => {
    const weight = layer.weight, chosen = chosenOf(layer);
    const name = make('span', {class: 'long', title: layer.name}, isolated(layer.name));
    const row = [`${i + 1}`, name, layer.op, weight ? shapeText(weight) : '–', planeText(layer.output),
                 weight ? percentText(weight.sparsity) : '–', weight ? weight.structure.name : '–',
                 weight ? bytesText(weight.dense_bytes) : '–', weight ? bytesText(weight.stored_bytes) : '–',
                 layer.kernel ?? '–'];
    if (report.fallback) row.splice(1, 0, `${layer.region}`);
    batches.forEach((_, b) => {
      const ratio = speedUp(layer, b);
      row.push(kernelTimeText(chosen, b), ratio === undefined ? '–' : timesText(ratio));
    });
    return row;
  });
  show('table').querySelector('.scroll').append(makeTable(titles, rows));
}

function showMore() {
  const fusions = Object.entries(report.fusions).filter(([, count]) => count > 0).map(([pass, count]) => `${pass} ${count}`).join(', ');
  show('more', make('h2', {}, 'Plan'), make('dl', {class: 'facts'},
    fact('As the kernels hold them', `${bytesText(report.device_bytes)} of weights`),
    fact('Arena', report.fallback ? `${bytesText(report.arena_bytes)}, the largest of ${report.regions.length}`
                                  : `${bytesText(report.arena_bytes)} for batches up to ${report.max_batch}`),
    fact('Layout conversions', `${report.conversions}`),
    fact('Kernel times', `${report.timed_now} measured for this page, ${report.timed_before} from the tuning cache`),
    fact('Suspect', report.suspect ? `${report.suspect} measurements were disturbed; their times are too long, or estimated` : 'none'),
    report.fallback ? null :
      fact('Fusions', fusions || (report.container === 'swz' ? 'done when the file was packed' : 'none'))));
}

function makeFacts(layer) {
  const facts = [fact('Operator', layer.op), fact('Output', `${layer.output.channels} channels of ${planeText(layer.output)}`)];
  if (report.fallback) {
    const places = report.regions[layer.region - 1].places;
    facts.push(fact('Region', `${layer.region}` + (places > 1 ? `, at ${places} places` : '')));
  }
  const weight = layer.weight;
  if (weight) {
    const {zero_rows: rows, zero_cols: cols, zero_channels: channels} = weight.structure;
    facts.push(
      fact('Weight', `${shapeText(weight)}, ${countText(weight.nonzeros, 'nonzero', 'nonzeros')}`),
      fact('Zeros', percentText(weight.sparsity)),
      fact('Structure', structureSentence(weight.structure)),
      fact('Wholly zero', `${countText(rows, 'row', 'rows')}, ${countText(cols, 'column', 'columns')}, ` +
                          countText(channels, 'input channel', 'input channels')),
      fact('Bytes', `${bytesText(weight.stored_bytes)} stored (${weight.format}), ${bytesText(weight.dense_bytes)} dense, ` +
                    `${bytesText(weight.device_bytes)} as the kernel holds it`));
  }
  return make('dl', {class: 'facts'}, ...facts);
}

function makeCandidates(layer) {
  if (!layer.candidates.length) return make('p', {class: 'quiet'}, 'It moves no data: there is no kernel to choose.');
  const titles = [{text: 'kernel'}, ...batchesOf(layer).map(batch => ({text: `batch ${batch}`, number: true})),
                  {text: 'weights'}];
  const table = makeTable(titles, layer.candidates.map(candidate => [
    make('span', {class: 'kernel'}, swatch(kernelMark(candidate, 50)),
         candidate.kernel + (candidate.chosen ? ' (chosen)' : '') + (candidate.suspect ? ' (suspect)' : '') +
           (candidate.copied < 1 ? ` (${percentText(candidate.copied)} copied, the rest lies in place)` : '')),
    ...batchesOf(layer).map((_, b) => kernelTimeText(candidate, b)), candidate.weights]));
  return make('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Kernels of this layer'}, table);
}

function showLayer(index, choose) {
  const layer = report.layers[index];
  const step = (text, label, target) => {
    const button = make('button', {type: 'button', 'aria-label': label}, text);
    button.disabled = !(target in report.layers);
    button.addEventListener('click', () => {
      choose(target, false);
      const again = document.querySelector(`#layer button[aria-label="${label}"]`);
      (again.disabled ? document.querySelector('#layer button:enabled') : again)?.focus({preventScroll: true});
    });
    return button;
  };
  const section = document.getElementById('layer');
  section.replaceChildren(
    make('div', {class: 'layer-head'}, make('h2', {id: 'layer-name'}, `${index + 1}. `, isolated(layer.name)),
         make('div', {class: 'steps'}, step('‹', 'Layer before', index - 1), step('›', 'Layer after', index + 1))),
    make('div', {class: 'layer-body'}, layer.picture ? makePictures(layer)
           : make('p', {class: 'quiet'}, 'This layer has no weight.'),
         make('div', {class: 'layer-facts'}, makeFacts(layer), makeCandidates(layer))));
  section.hidden = false;
  return section;
}

// What a run's regions and interpreted operators took, the longest first; nothing where it was not measured.
function makeTimes() {
  if (!report.interpreted) return '';
  const rows = report.regions.map((region, i) =>
    [`Region ${i + 1}, ${countText(region.layers.length, 'layer', 'layers')}`, region.microseconds]);
  if (report.attention_microseconds > 0) rows.push(['Attention between regions', report.attention_microseconds]);
  if (report.recurrent_microseconds > 0) rows.push(['Recurrent nodes', report.recurrent_microseconds]);
  const operators = new Map();
  for (const {op, microseconds} of report.interpreted) operators.set(op, (operators.get(op) ?? 0) + microseconds);
  for (const [op, microseconds] of operators) rows.push([isolated(`${op}, interpreted`), microseconds]);
  const all = rows.reduce((sum, row) => sum + row[1], 0);
  const number = text => ({text, number: true});
  return make('div', {}, make('h2', {}, 'Where the time goes'),
    makeTable([{text: 'part'}, number('ms'), number('share')],
              rows.sort((a, b) => b[1] - a[1]).map(([part, microseconds]) =>
                [part, (microseconds / 1000).toFixed(2), `${Math.round(100 * microseconds / all)} %`])));
}

function showFallback() {
  const counts = new Map();
  for (const node of report.fallback_nodes) counts.set(node.op, (counts.get(node.op) ?? 0) + 1);
  const number = text => ({text, number: true});
  const byCount = [...counts].sort((a, b) => b[1] - a[1]).map(([op, count]) => [isolated(op), `${count}`]);
  const listed = report.fallback_nodes.slice(0, MOST_LISTED);
  show('fallback',
    make('div', {class: 'notice', role: 'note'}, make('strong', {}, 'No optimised plan takes this model whole. '),
         report.regions.length > 0 ?
           `${countText(report.regions.length, 'region', 'regions')} of it, with ` +
           `${countText(report.planned_layers, 'layer', 'layers')}, are planned; ` +
           `${countText(report.interpreted_nodes, 'node', 'nodes')} between them run on the fallback executor.` :
           `All ${countText(report.fallback_nodes.length, 'node', 'nodes')} run on the fallback executor, one by one ` +
           'and dense; there are no kernels to compare.', make('p', {}, 'Why: ', isolated(report.fallback_reason))),
    make('dl', {class: 'tiles'}, tile('Weights', bytesText(report.weight_bytes), 'held dense'),
         tile('Nodes', `${report.fallback_nodes.length}`, countText(counts.size, 'operator', 'operators'))),
    makeTimes(),
    make('h2', {}, 'Operators'), makeTable([{text: 'operator'}, number('nodes')], byCount),
    make('h2', {}, 'Nodes, as executed'),
    make('div', {class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'Nodes, as executed'},
         makeTable([number('#'), {text: 'operator'}, {text: 'name'}],
                   listed.map((node, i) => [`${i + 1}`, isolated(node.op), isolated(node.name)]))),
    listed.length < report.fallback_nodes.length ? `The first ${MOST_LISTED}.` : '');
}

function showPlan() {
  showTotals();
  const chart = document.getElementById('chart');
  let chosen = 0, list = null;
  const choose = (index, byPointer) => {
    chosen = index;
    const row = markChosenRow(list, index);
    const section = showLayer(index, choose);
    if (!byPointer) row.scrollIntoView({block: 'nearest'});
    const narrow = matchMedia('(max-width: 60rem)').matches;
    if (byPointer && narrow) section.scrollIntoView({behavior: 'smooth', block: 'start'});
  };
  list = makeChart(chart, choose);
  show('overview');
  showTable();
  showMore();
  const sizes = report.layers.map(({weight}) => weight ? weight.dense_bytes * (weight.sparse ? 1 : 1e-9) : 0);
  choose(sizes.indexOf(Math.max(...sizes)), false);
  chart.scrollTop = 0;
  scrollTo(0, 0);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => showLayer(chosen, choose));
}

showHeader();
if (report.advice) {
  showAdvice();
} else {
  if (report.fallback) showFallback();
  if (report.layers.length) showPlan();
}
