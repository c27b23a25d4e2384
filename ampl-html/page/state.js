"use strict";
// Data of the page, the selected range, the time cursor, and everyone who draws them.
const data = JSON.parse(document.getElementById("data").textContent);
const grid = data.grid;
const element = id => document.getElementById(id);

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}
// Numbers of a grid's cells, in place of their text.
function decode(of) {
  if (!of) return;
  of.mpi = new Uint16Array(bytesOf(of.mpi).buffer);
  of.compute = new Float32Array(bytesOf(of.compute).buffer);
  of.time = new Float32Array(bytesOf(of.time).buffer);
  of.state = bytesOf(of.state);
}
decode(grid);
const columns = grid ? grid.columns.length : 0;
const rows = grid ? grid.rows.length : 0;
const poolsRanks = grid ? grid.sizes.some(size => size > 1) : false;
const poolsWindows = grid ? grid.columns.some(of => of[0] !== of[1]) : false;

const state = { cursor: null, anchor: null, selection: null, view: [0, Math.max(columns - 1, 0)] };
const drawers = [];
// Calls `draw` whenever the range, the cursor or the colours change; `what` says which.
function onChange(draw) { drawers.push(draw); }
function changed(what) { for (const draw of drawers) draw(what); }
const range = () => state.selection || state.view;
const isWhole = () => !state.selection && state.view[0] === 0 && state.view[1] === columns - 1;

function setCursor(column) {
  if (!columns) return;
  const at = column === null ? null : Math.min(Math.max(column, 0), columns - 1);
  if (at === state.cursor) return;
  state.cursor = at;
  changed("cursor");
}
function select(first, last) {
  const within = at => Math.min(Math.max(at, 0), columns - 1);
  state.selection = first === null ? null : [within(Math.min(first, last)), within(Math.max(first, last))];
  changed("range");
}
function zoom() {
  if (!state.selection) return;
  state.view = state.selection;
  state.selection = null;
  changed("range");
}
function reset() {
  state.selection = null;
  state.anchor = null;
  state.view = [0, columns - 1];
  changed("range");
}

// Column of a time in seconds; time of a window.
function columnAt(seconds) {
  let low = 0, high = columns - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (grid.edges[middle] <= seconds) low = middle; else high = middle - 1;
  }
  return low;
}
function timeOf(window) {
  let low = 0, high = columns - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (grid.columns[middle][0] <= window) low = middle; else high = middle - 1;
  }
  const [first, last] = grid.columns[low], from = grid.edges[low], until = grid.edges[low + 1];
  return from + (until - from) * (window - first) / (last - first + 1);
}

// Text for people.
const digits = value => value === 0 ? "0" : Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
const percent = share => share === null || share === undefined || Number.isNaN(share) ? "not known" : digits(100 * share) + " %";
function scaled(value, steps) {
  if (value === 0) return "0 " + steps[0][1];
  for (const [size, unit] of steps) if (Math.abs(value) >= size) return digits(value / size) + " " + unit;
  const [size, unit] = steps[steps.length - 1];
  return digits(value / size) + " " + unit;
}
const seconds = value => scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
const bytes = value => value === 0 ? "0 B" : scaled(value, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
const amount = (value, unit) => unit === "ns" ? seconds(value / 1e9) : unit === "B" ? bytes(value) : digits(value);
const span = (name, [first, last]) => first === last ? `${name} ${first}` : `${name}s ${first} to ${last}`;
const windowsOf = ([first, last]) => span("window", [grid.columns[first][0], grid.columns[last][1]]);
// A row has one rank, or several of one stratum.
const ranksOf = row => {
  const [first, last] = grid.rows[row], size = grid.sizes[row];
  return size === 1 || size === last - first + 1 ? span("rank", [first, last]) : `${size} ranks of ${first} to ${last}`;
};

// Colours: those of the theme, and a scale that reads the same without colour vision (after cividis).
const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const SCALE = [[0, 34, 78], [33, 60, 109], [74, 91, 110], [107, 110, 119], [136, 131, 120], [168, 155, 112], [205, 184, 91], [254, 232, 56]];
function shade(share) {
  const at = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1), low = Math.min(Math.floor(at), SCALE.length - 2), part = at - low;
  return SCALE[low].map((from, index) => Math.round(from + part * (SCALE[low + 1][index] - from)));
}
// Okabe and Ito's colours for strata, without those of computing and MPI. What comes after the last has one colour.
const PALETTE = ["#009e73", "#cc79a7", "#f0e442", "#d55e00", "#7a5230", "#9ad8b5", "#b5a2ff"];
const paint = number => number < PALETTE.length ? PALETTE[number] : "#8a8a8a";

// Sums of each row over the range: compute, time, whether some of it was measured.
function rowSums([first, last]) {
  const sums = [];
  for (let row = 0; row < rows; row++) {
    let compute = 0, time = 0, measured = false;
    for (let column = first; column <= last; column++) {
      const at = row * columns + column;
      compute += grid.compute[at];
      time += grid.time[at];
      measured = measured || grid.state[at] > 0;
    }
    sums.push({ compute, time, measured });
  }
  return sums;
}

// Efficiencies of the range, from columns that all ranks measured.
function efficiencies([first, last]) {
  let mean = 0, most = 0, elapsed = 0, known = 0;
  const own = new Float64Array(rows), times = new Float64Array(rows);
  for (let column = first; column <= last; column++) {
    const total = grid.totals[column];
    if (!total) continue;
    known++;
    mean += total[0];
    most += total[1];
    elapsed += total[2];
    for (let row = 0; row < rows; row++) {
      own[row] += grid.compute[row * columns + column];
      times[row] += grid.time[row * columns + column];
    }
  }
  if (!known || elapsed <= 0) return null;
  const ofAll = values => values.reduce((sum, value, row) => sum + value * grid.sizes[row], 0), all = ofAll(times), computed = ofAll(own);
  if (!poolsRanks) { most = Math.max(...own); elapsed = Math.max(...times); }
  return {
    parallel: mean / elapsed, balance: most > 0 ? mean / most : null, communication: most / elapsed,
    mpi: all > 0 ? 1 - computed / all : null, known, of: last - first + 1,
  };
}
