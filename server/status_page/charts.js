// Small plots.

// Of the last looks, oldest first; undefined ones are left out.
function sparkline(values, label) {
  const width = 100, height = 20, points = values.length;
  const known = values.map((value, i) => ({value, x: width * i / Math.max(points - 1, 1)}))
    .filter(point => point.value !== undefined);
  const svg = makeSvg('svg', {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label});
  if (known.length < 2) return svg;
  const most = Math.max(...known.map(point => point.value), 1e-9);
  const path = known.map(point => `${point.x.toFixed(1)},${(height - 1 - (height - 2) * point.value / most).toFixed(1)}`);
  const last = known[known.length - 1].x;
  svg.append(makeSvg('polygon', {class: 'area', points: `${known[0].x},${height} ${path.join(' ')} ${last},${height}`}),
             makeSvg('polyline', {class: 'line', points: path.join(' ')}));
  return svg;
}

// Rows of a histogram from the first to the last that is not empty; `text` says a bound in words.
function histogramBars(histogram, text) {
  const counts = histogram.counts.map((count, i) => count - (i > 0 ? histogram.counts[i - 1] : 0));
  const first = counts.findIndex(count => count > 0), last = counts.findLastIndex(count => count > 0);
  if (first < 0) return make('p', {class: 'quiet'}, 'nothing yet');
  const most = Math.max(...counts), all = observations(histogram);
  const rows = [];
  for (let i = first; i <= last; ++i) {
    const bound = histogram.bounds[i];
    const filled = make('div', {class: 'filled'});
    filled.style.width = `${100 * counts[i] / most}%`;
    rows.push(make('span', {class: 'bound'}, bound === Infinity ? 'more' : `to ${text(bound)}`),
              make('div', {class: 'track'}, filled), make('span', {}, percentText(counts[i] / all)));
  }
  return make('div', {class: 'bars'}, ...rows);
}
