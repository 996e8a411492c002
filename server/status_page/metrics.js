// Prometheus's text, and what follows from two of them.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

// Samples by their name: [{labels, value}, ...].
function parseMetrics(text) {
  const samples = new Map();
  for (const line of text.split('\n')) {
    const parts = line.startsWith('#') ? null : SAMPLE.exec(line);
    if (!parts) continue;
    const labels = {};
    for (const [, name, value] of (parts[2] ?? '').matchAll(LABEL)) {
      labels[name] = visible(value.replace(/\\(.)/g, (_, letter) => letter === 'n' ? '\n' : letter));
    }
    if (!samples.has(parts[1])) samples.set(parts[1], []);
    samples.get(parts[1]).push({labels, value: Number(parts[3].replace('Inf', 'Infinity'))});
  }
  return samples;
}

function matching(metrics, name, labels = {}) {
  return (metrics.get(name) ?? []).filter(sample =>
    Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
}

// Undefined where there is no such sample.
function total(metrics, name, labels) {
  const samples = matching(metrics, name, labels);
  return samples.length ? samples.reduce((sum, sample) => sum + sample.value, 0) : undefined;
}

// How many observations lie at most at each bound, over all series: {bounds, counts}; counts grow with their bounds.
function histogram(metrics, name, labels) {
  const counts = new Map();
  for (const sample of matching(metrics, `${name}_bucket`, labels)) {
    const bound = Number(sample.labels.le.replace('Inf', 'Infinity'));
    counts.set(bound, (counts.get(bound) ?? 0) + sample.value);
  }
  const bounds = [...counts.keys()].sort((a, b) => a - b);
  return {bounds, counts: bounds.map(bound => counts.get(bound))};
}

// What came between two looks at a histogram; all of it where there was none before, or it began anew.
function since(now, before) {
  const last = now.counts.length - 1;
  if (!before || before.counts.length !== now.counts.length || before.counts[last] > now.counts[last]) return now;
  return {bounds: now.bounds, counts: now.counts.map((count, i) => count - before.counts[i])};
}

function observations(histogram) {
  return histogram.counts.length ? histogram.counts[histogram.counts.length - 1] : 0;
}

// Between the bounds of the bucket that it is in; undefined where nothing was observed.
function quantile(histogram, share) {
  const {bounds, counts} = histogram, all = observations(histogram);
  if (!(all > 0)) return undefined;
  const i = counts.findIndex(count => count >= share * all);
  const below = i > 0 ? counts[i - 1] : 0, from = i > 0 ? bounds[i - 1] : 0;
  if (bounds[i] === Infinity) return from;
  return from + (bounds[i] - from) * (share * all - below) / (counts[i] - below);
}

// A second; undefined where it is not known twice, or began anew.
function rate(now, before, seconds) {
  return now === undefined || before === undefined || now < before ? undefined : (now - before) / seconds;
}
