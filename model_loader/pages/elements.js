'use strict';

// Elements of a page, and numbers in words. Names come from untrusted models: they become text nodes and attributes,
// never markup.

// Letters that a name may not have here: they would reorder or hide what stands beside them.
const UNSAFE_LETTERS = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function visible(text) {
  return text.replace(UNSAFE_LETTERS, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

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

function tile(title, value, note) {
  return make('div', {class: 'tile'}, make('dt', {class: 'quiet'}, title), make('dd', {},
              make('strong', {}, value), make('span', {class: 'quiet'}, note)));
}

function makeTable(titles, rows) {
  const cell = (text, c, tag = 'td') => make(tag, {class: titles[c].number ? 'number' : ''}, text);
  return make('table', {},
    make('thead', {}, make('tr', {}, ...titles.map((title, c) => cell(title.text, c, 'th')))),
    make('tbody', {}, ...rows.map(row => make('tr', {}, ...row.map((text, c) => cell(text, c))))));
}
