// The report, and what is said of it in words.

const report = JSON.parse(document.getElementById('data').textContent,
                          (_, value) => typeof value === 'string' ? visible(value) : value);

function planeText(extent) {
  return `${extent.height}×${extent.width}`;
}

function shapeText(weight) {
  return `${weight.rows}×${weight.cols}`;
}

function chosenOf(layer) {
  return layer.candidates.find(candidate => candidate.chosen);
}

function isDense(candidate) {
  return !candidate.sparse;
}

// At which the layer's kernels were measured. Those of regions differ.
function batchesOf(layer) {
  return layer.measured_batches ?? report.measured_batches;
}

// What each column of times is of: a batch or, where layers were measured at several, from which to which.
function batchColumns() {
  const columns = [];
  for (const layer of report.layers) batchesOf(layer).forEach((batch, b) => (columns[b] ??= []).push(batch));
  return columns.map(batches => {
    const low = batches.reduce((a, b) => Math.min(a, b)), high = batches.reduce((a, b) => Math.max(a, b));
    return low === high ? `batch ${low}` : `batches ${low} to ${high}`;
  });
}

// Of the kernels that take no sparse weights; undefined if there is none.
function fastestDense(layer, batch) {
  const times = layer.candidates.filter(isDense).map(candidate => candidate.microseconds[batch])
    .filter(time => time !== undefined && time !== null);
  return times.length ? Math.min(...times) : undefined;
}

// How often the chosen kernel runs in the time of the fastest dense one; undefined where there is nothing to compare.
function speedUp(layer, batch) {
  const chosen = chosenOf(layer)?.microseconds[batch];
  const dense = fastestDense(layer, batch);
  return layer.weight && chosen > 0 && dense !== undefined ? dense / chosen : undefined;
}

// Where some times are measured, the others are marked.
function isMeasured() {
  return report.layers.some(layer => layer.candidates.some(candidate => candidate.measured));
}

function kernelTimeText(candidate, b) {
  const time = candidate?.microseconds[b] ?? null;
  return (time === null || candidate.measured || !isMeasured() ? '' : '~') + timeText(time);
}

function layerSummary(layer, index) {
  const parts = [`${index + 1}. ${layer.name}, ${layer.op}`];
  if (layer.weight) {
    parts.push(`${percentText(layer.weight.sparsity)} zeros, ${layer.weight.structure.name}`,
               `${bytesText(layer.weight.stored_bytes)} of ${bytesText(layer.weight.dense_bytes)}`);
  }
  const chosen = chosenOf(layer);
  batchesOf(layer).forEach((batch, b) => {
    if (chosen) parts.push(`batch ${batch}: ${kernelTimeText(chosen, b)}`);
  });
  return parts.join('; ');
}

// What the pattern of a weight means, in a sentence.
function structureSentence(structure) {
  const fill = `${percentText(structure.fill)} of what it keeps is nonzero`;
  switch (structure.pattern) {
    case 'dense': return 'dense: hardly any zeros';
    case 'rows_columns': return `${structure.name}; the rest is dense`;
    case 'blocks':
      return `blocks of ${structure.block_rows} output by ${structure.block_cols} input channels; ${fill}`;
    case 'n_of_m': return `at most ${structure.n} of ${structure.m} neighbouring input channels; ${fill}`;
    case 'row_vectors': return `groups of ${structure.vector_rows} rows with equal places, permuted; ${fill}`;
    default: return 'unstructured: no pattern in the zeros';
  }
}
