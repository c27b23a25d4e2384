// Two runs next to each other: one time cursor, one range, one scale.
const root = document.documentElement;
const sides = data.sides;
sides.forEach(side => decode(side.grid));
const measured = sides.filter(side => side.grid);
const endOf = side => side.grid.edges[side.grid.edges.length - 1];
const longest = Math.max(...measured.map(endOf), 1e-9);
// Seconds: what is in view, the selected range, the cursor.
const time = { view: [0, longest], selection: null, cursor: null, anchor: null };
const shownRange = () => time.selection || time.view;
const isAll = () => !time.selection && time.view[0] === 0 && time.view[1] === longest;
const SIDE_COLOURS = ["compute", "mpi"];

function columnOf(of, seconds) {
  if (seconds < of.edges[0] || seconds >= of.edges[of.edges.length - 1]) return null;
  let low = 0, high = of.columns.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (of.edges[middle] <= seconds) low = middle; else high = middle - 1;
  }
  return low;
}
// Columns whose middle is in the range.
function columnsIn(of, [from, until]) {
  const found = [];
  for (let column = 0; column < of.columns.length; column++) {
    const middle = (of.edges[column] + of.edges[column + 1]) / 2;
    if (middle >= from && middle <= until) found.push(column);
  }
  return found;
}
const parallelAt = (of, column) => { const total = of.totals[column]; return total && total[2] > 0 ? total[0] / total[2] : null; };

function sumsOf(of, range) {
  const all = columnsIn(of, range);
  return of.rows.map((unused, row) => {
    let compute = 0, spent = 0, known = false;
    for (const column of all) {
      const at = row * of.columns.length + column;
      compute += of.compute[at]; spent += of.time[at]; known = known || of.state[at] > 0;
    }
    return { compute, time: spent, known };
  });
}
function factorsOf(of, range) {
  const all = columnsIn(of, range).filter(column => of.totals[column]);
  if (!all.length) return null;
  let mean = 0, most = 0, elapsed = 0;
  for (const column of all) { mean += of.totals[column][0]; most += of.totals[column][1]; elapsed += of.totals[column][2]; }
  const own = sumsOf(of, range), total = own.reduce((sum, row) => sum + row.time, 0), computed = own.reduce((sum, row) => sum + row.compute, 0);
  const pools = of.rows.some(row => row[0] !== row[1]);
  if (!pools && all.length === columnsIn(of, range).length) { most = Math.max(...own.map(row => row.compute)); elapsed = Math.max(...own.map(row => row.time)); }
  return elapsed > 0 ? { parallel: mean / elapsed, balance: most > 0 ? mean / most : null, communication: most / elapsed, mpi: total > 0 ? 1 - computed / total : null } : null;
}

const MARGIN = 56, HEAD = 6, FOOT = 34;
const placeOf = (seconds, inner) => MARGIN + (seconds - time.view[0]) / (time.view[1] - time.view[0]) * inner;
function timeAxis(pen, inner, y) {
  pen.fillStyle = colour("text"); pen.textBaseline = "top";
  for (let part = 0; part <= 4; part++) {
    pen.textAlign = part === 0 ? "left" : part === 4 ? "right" : "center";
    pen.fillText(seconds(time.view[0] + (time.view[1] - time.view[0]) * part / 4), MARGIN + inner * part / 4, y + 4);
  }
  pen.textAlign = "center"; pen.fillText("since MPI_Init returned", MARGIN + inner / 2, y + 19);
}
function marks(pen, inner, height) {
  if (time.selection) {
    const [from, until] = time.selection.map(at => Math.min(Math.max(placeOf(at, inner), MARGIN), MARGIN + inner));
    pen.fillStyle = colour("select"); pen.fillRect(from, HEAD, until - from, height);
    pen.strokeStyle = colour("link"); pen.strokeRect(from, HEAD, until - from, height);
  }
  if (time.cursor !== null && time.cursor >= time.view[0] && time.cursor <= time.view[1]) {
    pen.strokeStyle = colour("text"); pen.beginPath();
    pen.moveTo(placeOf(time.cursor, inner), HEAD); pen.lineTo(placeOf(time.cursor, inner), HEAD + height); pen.stroke();
  }
}
function clipped(pen, inner, height, draw) {
  pen.save(); pen.beginPath(); pen.rect(MARGIN, 0, inner, height + HEAD + 2); pen.clip(); draw(); pen.restore();
}

function drawCourse() {
  const canvas = element("course-map");
  if (!canvas) return;
  const width = canvas.parentElement.clientWidth - 2, high = 170, pen = prepare(canvas, width, high + HEAD + FOOT), inner = width - MARGIN - 8;
  pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const part of [0, 0.5, 1]) {
    const y = HEAD + high * (1 - part);
    pen.strokeStyle = colour("line"); pen.beginPath(); pen.moveTo(MARGIN, y); pen.lineTo(MARGIN + inner, y); pen.stroke();
    pen.fillText(percent(part), MARGIN - 6, Math.max(y, HEAD + 6));
  }
  clipped(pen, inner, high, () => sides.forEach((side, index) => {
    if (!side.grid) return;
    pen.strokeStyle = colour(SIDE_COLOURS[index]); pen.lineWidth = 2; pen.setLineDash(index ? [] : [6, 3]); pen.beginPath();
    let draws = false;
    side.grid.columns.forEach((unused, column) => {
      const share = parallelAt(side.grid, column);
      if (share === null) { draws = false; return; }
      const y = HEAD + high * (1 - Math.min(share, 1)), from = placeOf(side.grid.edges[column], inner), until = placeOf(side.grid.edges[column + 1], inner);
      if (draws) pen.lineTo(from, y); else pen.moveTo(from, y);
      pen.lineTo(until, y);
      draws = true;
    });
    pen.stroke(); pen.setLineDash([]);
  }));
  pen.lineWidth = 1;
  timeAxis(pen, inner, HEAD + high);
  marks(pen, inner, high);
  canvas.ampl = { inner };
}

function drawHeatOf(canvas) {
  const side = sides[canvas.dataset.heat], of = side.grid, width = canvas.parentElement.clientWidth - 2, cell = Math.min(Math.max(Math.floor(320 / of.rows.length), 2), 22);
  const high = of.rows.length * cell, inner = width - MARGIN - 8, pen = prepare(canvas, width, high + HEAD + FOOT), hatch = hatching(pen);
  clipped(pen, inner, high, () => of.columns.forEach((unused, column) => {
    const from = placeOf(of.edges[column], inner), wide = placeOf(of.edges[column + 1], inner) - from;
    if (from > MARGIN + inner || from + wide < MARGIN) return;
    for (let row = 0; row < of.rows.length; row++) {
      const at = row * of.columns.length + column;
      pen.fillStyle = of.state[at] === 0 || of.mpi[at] === 65535 ? hatch : SHADES[Math.round(of.mpi[at] / 65534 * 255)];
      pen.fillRect(from, HEAD + row * cell, Math.max(wide, 0.6) + 0.3, cell + (cell < 9 ? 0.3 : -0.5));
    }
  }));
  pen.fillStyle = colour("text"); pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const row of ticks(of.rows.length, Math.max(Math.floor(high / 16), 1))) pen.fillText(String(of.rows[row][0]), MARGIN - 6, HEAD + row * cell + cell / 2);
  pen.save(); pen.translate(10, HEAD + high / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center"; pen.fillText("rank", 0, 0); pen.restore();
  timeAxis(pen, inner, HEAD + high);
  marks(pen, inner, high);
  canvas.ampl = { inner };
}

function drawRanksOf(canvas, most) {
  const of = sides[canvas.dataset.ranks].grid, width = canvas.parentElement.clientWidth - 2, high = 120, inner = width - MARGIN - 8;
  const pen = prepare(canvas, width, high + HEAD + FOOT), sums = sumsOf(of, shownRange()), bar = inner / sums.length, hatch = hatching(pen);
  sums.forEach((row, index) => {
    const x = MARGIN + index * bar, wide = Math.max(bar - (bar > 4 ? 1 : 0), 0.5), y = value => HEAD + high * (1 - value / most);
    if (!row.known) { pen.fillStyle = hatch; pen.fillRect(x, HEAD, wide, high); return; }
    pen.fillStyle = colour("compute"); pen.fillRect(x, y(row.compute), wide, HEAD + high - y(row.compute));
    pen.fillStyle = colour("mpi"); pen.fillRect(x, y(row.time), wide, y(row.compute) - y(row.time));
  });
  pen.fillStyle = colour("text"); pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const part of [0, 0.5, 1]) pen.fillText(seconds(part * most / 1e9), MARGIN - 6, HEAD + high * (1 - part) + (part === 1 ? 5 : 0));
  pen.textAlign = "center"; pen.textBaseline = "top";
  for (const row of ticks(sums.length, Math.max(Math.floor(inner / 40), 1))) pen.fillText(String(of.rows[row][0]), MARGIN + (row + 0.5) * bar, HEAD + high + 4);
  pen.fillText("rank", MARGIN + inner / 2, HEAD + high + 19);
}

function drawSideScale() {
  const canvas = element("side-scale");
  if (!canvas) return;
  const pen = prepare(canvas, 320, 34);
  canvas.style.width = "320px";
  for (let at = 0; at < 240; at++) { pen.fillStyle = SHADES[Math.round(at / 239 * 255)]; pen.fillRect(at + 4, 2, 1.2, 12); }
  pen.fillStyle = colour("text"); pen.textBaseline = "top";
  for (const part of [0, 0.5, 1]) { pen.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center"; pen.fillText(percent(part), 4 + part * 240, 18); }
}

function drawSides() {
  drawCourse();
  for (const canvas of document.querySelectorAll("[data-heat]")) drawHeatOf(canvas);
}
function follow() {
  drawSides();
  const range = shownRange(), most = Math.max(...measured.flatMap(side => sumsOf(side.grid, range).map(row => row.time)), 1);
  for (const canvas of document.querySelectorAll("[data-ranks]")) drawRanksOf(canvas, most);
  sides.forEach((side, index) => {
    const found = side.grid && factorsOf(side.grid, range);
    for (const place of document.querySelectorAll(`#side-${index} [data-factor]`)) {
      place.hidden = isAll();
      place.textContent = found ? `in the range: ${percent(found[place.dataset.factor])}` : "in the range: not known";
    }
  });
  const words = isAll() ? null : `${seconds(range[0])} to ${seconds(range[1])}`;
  element("range").textContent = words || "whole runs";
  for (const place of document.querySelectorAll(".of-range")) place.textContent = words ? `in ${words}` : "over the whole run";
  element("zoom").disabled = !time.selection;
  element("reset").disabled = isAll();
}
function setTime(at) {
  time.cursor = at === null ? null : Math.min(Math.max(at, time.view[0]), time.view[1]);
  drawSides();
  if (time.cursor === null) return;
  const texts = sides.map(side => {
    const column = side.grid ? columnOf(side.grid, time.cursor) : null, share = column === null ? null : parallelAt(side.grid, column);
    return `${side.name} ` + (column === null ? "had no window" : share === null ? "not measured by all ranks" : `${percent(share)} parallel`);
  });
  element("readout").textContent = `${seconds(time.cursor)}: ${texts.join(", ")}`;
}
function selectTime(from, until) {
  time.selection = from === null || from === until ? null : [Math.min(from, until), Math.max(from, until)];
  follow();
}
function zoomTime() { if (time.selection) { time.view = time.selection; time.selection = null; follow(); } }
function resetTime() { time.view = [0, longest]; time.selection = null; time.anchor = null; follow(); }
function moveTime(steps, selects) {
  const step = (time.view[1] - time.view[0]) / 100, from = time.cursor === null ? time.view[steps > 0 ? 0 : 1] : time.cursor;
  const to = Math.min(Math.max(from + steps * step, time.view[0]), time.view[1]);
  if (!selects) time.anchor = null;
  else { if (time.anchor === null) time.anchor = from; selectTime(time.anchor, to); }
  setTime(to);
}
function setTheme(name) { root.dataset.theme = name; drawSideScale(); drawSideKey(); follow(); }
function drawSideKey() {
  const place = element("course-key");
  if (!place) return;
  place.replaceChildren(...sides.map((side, index) => {
    const mark = document.createElement("canvas"), item = document.createElement("span");
    mark.width = mark.height = 11;
    const pen = mark.getContext("2d");
    pen.fillStyle = colour(SIDE_COLOURS[index]); pen.fillRect(0, 0, 11, 11);
    item.append(mark, `${side.name}${index ? "" : " (dashed)"}`);
    return item;
  }));
}

for (const canvas of document.querySelectorAll("canvas.over")) {
  let start = null;
  const at = event => {
    const box = canvas.getBoundingClientRect(), share = (event.clientX - box.left - MARGIN) / canvas.ampl.inner;
    return time.view[0] + Math.min(Math.max(share, 0), 1) * (time.view[1] - time.view[0]);
  };
  canvas.addEventListener("pointerdown", event => { start = at(event); canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", event => { if (start !== null) selectTime(start, at(event)); setTime(at(event)); });
  canvas.addEventListener("pointerup", () => { start = null; });
}
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const actions = {
    ArrowLeft: () => moveTime(-1, event.shiftKey), ArrowRight: () => moveTime(1, event.shiftKey), "[": () => moveTime(-10, false), "]": () => moveTime(10, false),
    z: zoomTime, Escape: resetTime, t: () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"),
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

const FEW_ROWS = 15;
function listRows(id, all) {
  const body = document.querySelector(`#${id} tbody`), wanted = document.querySelector(`[data-filter=${id}]`).value.toLowerCase();
  let shown = 0;
  for (const row of body.rows) {
    const fits = !wanted || row.cells[0].textContent.toLowerCase().includes(wanted);
    row.hidden = !fits || (!all && !wanted && shown >= FEW_ROWS);
    shown += !row.hidden;
  }
  document.querySelector(`[data-count=${id}]`).textContent = `${shown} of ${body.rows.length} shown`;
  document.querySelector(`[data-all=${id}]`).hidden = shown === body.rows.length;
}
root.classList.add("scripted");
element("bar").hidden = false;
for (const filter of document.querySelectorAll("[data-filter]")) {
  const id = filter.dataset.filter, button = document.querySelector(`[data-all=${id}]`);
  filter.addEventListener("input", () => listRows(id, false));
  button.addEventListener("click", () => listRows(id, true));
  listRows(id, false);
}
element("zoom").addEventListener("click", zoomTime);
element("reset").addEventListener("click", resetTime);
element("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
setTheme(prefersDark.matches ? "dark" : "light");
prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
let themeBefore = null;
window.addEventListener("beforeprint", () => {
  themeBefore = root.dataset.theme;
  if (themeBefore === "dark") setTheme("light");
  for (const row of document.querySelectorAll("tbody tr")) row.hidden = false;
});
window.addEventListener("afterprint", () => {
  if (themeBefore === "dark") setTheme("dark");
  for (const filter of document.querySelectorAll("[data-filter]")) listRows(filter.dataset.filter, false);
});
let frame = 0;
window.addEventListener("resize", () => { cancelAnimationFrame(frame); frame = requestAnimationFrame(follow); });
