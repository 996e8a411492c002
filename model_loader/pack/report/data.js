'use strict';

// The report, and what is said of it in words. Names come from untrusted models: they become text nodes and attributes,
// never markup.

// Letters that a name may not have here: they would reorder or hide what stands beside them.
const UNSAFE_LETTERS = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function visible(text) {
  return text.replace(UNSAFE_LETTERS, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const report = JSON.parse(document.getElementById('data').textContent,
                          (_, value) => typeof value === 'string' ? visible(value) : value);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Isolated, so that right-to-left letters in a name do not reorder what stands beside it.
function isolated(text) {
  return make('bdi', {}, text);
}

// Three digits: 1.25, 12.5, 125.
function digits(value) {
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

function bytesText(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (bytes /= 1024; bytes >= 1000 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return `${digits(bytes)} ${units[unit]}`;
}

function timeText(microseconds) {
  if (microseconds === undefined || microseconds === null) return '–';
  if (microseconds < 999.5) return `${digits(microseconds)} µs`;
  return microseconds < 999500 ? `${digits(microseconds / 1e3)} ms` : `${digits(microseconds / 1e6)} s`;
}

function percentText(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function timesText(ratio) {
  return `${ratio < 9.95 ? ratio.toFixed(1) : ratio.toFixed(0)}×`;
}

function countText(count, one, many) {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

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
  report.measured_batches.forEach((batch, b) => {
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
