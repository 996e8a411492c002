// Pictures of a weight: its density as a map, and its top left corner weight by weight.

const LEVELS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const PICTURE_PIXELS = 288;  // the longer side at most; fits a phone

function styleColour(name) {
  const colour = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
}

// Level 0 is the empty colour, level 63 the full one, and a single nonzero can be told from none.
function levelColour(level) {
  const [empty, low, full] = [styleColour('--empty'), styleColour('--sparse'), styleColour('--full')];
  if (level === 0) return empty;
  return low.map((value, i) => value + (full[i] - value) * (level / 63));
}

// Cells as large as they can be, whole pixels and nearly square.
function cellSize(rows, cols) {
  const square = Math.max(1, Math.floor(PICTURE_PIXELS / Math.max(rows, cols)));
  const stretched = count => Math.max(square, Math.min(4 * square, Math.floor(PICTURE_PIXELS / 4 / count)));
  return {width: stretched(cols), height: stretched(rows)};
}

// colourOf(row, col) -> [red, green, blue]
function drawCells(canvas, rows, cols, colourOf) {
  const size = cellSize(rows, cols);
  canvas.width = cols * size.width;
  canvas.height = rows * size.height;
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  for (let y = 0, at = 0; y < canvas.height; ++y) {
    for (let x = 0; x < canvas.width; ++x, at += 4) {
      const colour = colourOf(Math.floor(y / size.height), Math.floor(x / size.width));
      image.data.set(colour, at);
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

function drawDensity(canvas, picture) {
  const colours = Array.from(LEVELS, (_, level) => levelColour(level));
  const levels = Array.from(picture.density, letter => LEVELS.indexOf(letter));
  drawCells(canvas, picture.rows, picture.cols, (row, col) => colours[levels[row * picture.cols + col]]);
}

function drawCorner(canvas, picture) {
  const [empty, full] = [levelColour(0), levelColour(63)];
  const bit = (row, col) => parseInt(picture.corner[row][col >> 2], 16) >> (3 - col % 4) & 1;
  drawCells(canvas, picture.corner_rows, picture.corner_cols, (row, col) => bit(row, col) ? full : empty);
}

function makeFigure(title, label, draw, note) {
  const canvas = make('canvas', {role: 'img', 'aria-label': label});
  draw(canvas);
  return make('figure', {},
    make('figcaption', {}, make('strong', {}, title), make('span', {class: 'quiet'}, note)),
    make('div', {class: 'axes'},
      make('span', {class: 'axis-x quiet'}, 'input channels × window →'),
      make('span', {class: 'axis-y quiet'}, 'output channels →'), canvas));
}

function makePictures(layer) {
  const {weight, picture} = layer;
  const cell = `${digits(weight.rows / picture.rows)} × ${digits(weight.cols / picture.cols)}`;
  const whole = picture.rows === weight.rows && picture.cols === weight.cols;
  const density = makeFigure('The whole weight',
    `Density of the ${shapeText(weight)} weight: ${percentText(weight.sparsity)} zeros, ${weight.structure.name}`,
    canvas => drawDensity(canvas, picture), whole ? 'each cell is one weight' : `a cell is about ${cell} weights`);
  density.append(make('div', {class: 'ramp quiet'}, make('span', {class: 'box empty'}), 'no nonzeros', make('span',
    {class: 'gradient'}), 'few to all'));
  if (weight.rows === picture.corner_rows && weight.cols === picture.corner_cols) {
    return make('div', {class: 'pictures'}, density);
  }
  const corner = makeFigure(`Its top left ${picture.corner_rows} × ${picture.corner_cols}`,
    `The top left ${picture.corner_rows} by ${picture.corner_cols} weights, one by one`,
    canvas => drawCorner(canvas, picture), 'each cell is one weight');
  corner.append(make('div', {class: 'ramp quiet'}, make('span', {class: 'box empty'}), 'zero', make('span',
    {class: 'box full'}), 'nonzero'));
  return make('div', {class: 'pictures'}, density, corner);
}
