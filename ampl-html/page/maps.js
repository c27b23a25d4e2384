// Maps on canvases: ranks by windows, ranks of the range, senders by receivers.

// A canvas of CSS size, sharp on any screen; cleared.
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = colour("text");
  return pen;
}

// Diagonal lines over a cell.
function hatching(pen) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const own = tile.getContext("2d");
  own.fillStyle = colour("panel");
  own.fillRect(0, 0, 8, 8);
  own.strokeStyle = colour("soft");
  own.lineWidth = 1;
  own.beginPath();
  own.moveTo(-2, 2); own.lineTo(2, -2); own.moveTo(0, 8); own.lineTo(8, 0); own.moveTo(6, 10); own.lineTo(10, 6);
  own.stroke();
  return pen.createPattern(tile, "repeat");
}

// At most `most` numbers of 0..count, evenly apart.
function ticks(count, most) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find(step => count / step <= most) || count;
  return Array.from({ length: Math.ceil(count / step) }, (unused, index) => index * step);
}

const LEFT = 64, TOP = 6, BOTTOM = 36;
let hoverRow = null;
const SHADES = Array.from({ length: 256 }, (unused, index) => `rgb(${shade(index / 255).join()})`);

// Value of a cell in the chosen metric; null where there is none.
function cellValue(metric, row, column) {
  const at = row * columns + column, total = grid.totals[column];
  if (metric === "kept") return grid.state[at] === 2 ? 1 : null;
  if (grid.state[at] === 0) return null;
  if (metric === "mpi") return grid.mpi[at] === 65535 ? null : grid.mpi[at] / 65534;
  return total && total[0] > 0 ? grid.compute[at] / total[0] : null;
}

function heatScale(metric) {
  if (metric !== "compute") return 1;
  let most = 1;
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) most = Math.max(most, cellValue(metric, row, column) || 0);
  // A last window that is cut off must not take the scale from all others.
  return Math.min(Math.ceil(most * 10) / 10, 4);
}

function drawHeat() {
  const canvas = element("heat-map");
  if (!canvas) return;
  const metric = element("heat-metric").value, width = canvas.parentElement.clientWidth - 2, cell = Math.min(Math.max(Math.floor(400 / rows), 2), 22);
  const height = rows * cell + TOP + BOTTOM, inner = width - LEFT - 8, pen = prepare(canvas, width, height);
  const [first, last] = state.view, shown = last - first + 1, most = heatScale(metric), hatch = hatching(pen);
  const x = column => LEFT + (column - first) * inner / shown;
  for (let row = 0; row < rows; row++) {
    for (let column = first; column <= last; column++) {
      const value = cellValue(metric, row, column);
      if (value === null) pen.fillStyle = hatch;
      else pen.fillStyle = SHADES[Math.round(Math.min(value / most, 1) * 255)];
      pen.fillRect(x(column), TOP + row * cell, Math.max(x(column + 1) - x(column), 0.6) + 0.3, cell + (cell < 9 ? 0.3 : -0.5));
    }
  }
  // Strata beside the rows, as under the bars of ranks.
  if (data.strata.length > 1 && grid.by_strata) for (let row = 0; row < rows; row++) {
    pen.fillStyle = paint(data.stratum_of[grid.rows[row][0]] || 0);
    pen.fillRect(LEFT - 5, TOP + row * cell, 4, cell + 0.3);
  }
  pen.fillStyle = colour("text");
  pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const row of ticks(rows, Math.floor(rows * cell / 16))) pen.fillText(String(grid.rows[row][0]), LEFT - 8, TOP + row * cell + cell / 2);
  pen.save(); pen.translate(12, TOP + rows * cell / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center"; pen.fillText("rank", 0, 0); pen.restore();
  pen.textAlign = "center"; pen.textBaseline = "top";
  for (const at of ticks(shown, Math.floor(inner / 70))) pen.fillText(seconds(grid.edges[first + at]), Math.max(x(first + at), LEFT + 8), TOP + rows * cell + 4);
  pen.fillText("since MPI_Init returned", LEFT + inner / 2, TOP + rows * cell + 20);
  drawScale(metric, most);
  const pooled = [poolsRanks ? (grid.by_strata && data.strata.length > 1 ? "several ranks of one stratum are one row, stratum below stratum" : "several ranks are one row") : "", poolsWindows ? "several windows are one column" : ""].filter(Boolean).join(", ");
  element("heat-note").textContent = (pooled ? `Pooled: ${pooled}; the share in MPI is the greatest, compute time the mean. ` : "One cell is one rank in one window. ") + (metric === "mpi" ? "Dark: hardly any time in MPI; where ranks meet, the others wait for those. " : "") + "The scale begins at 0.";
  element("heat-hatch").textContent = metric === "kept" ? "summed up, times of calls not kept" : "not measured";
  // Without the cursor, which moves more often than the cells change.
  const still = document.createElement("canvas");
  still.width = canvas.width;
  still.height = canvas.height;
  still.getContext("2d").drawImage(canvas, 0, 0);
  canvas.ampl = { first, last, shown, inner, cell, still, x };
  markHeat();
}

// The selection and the cursor over the cells.
function markHeat() {
  const canvas = element("heat-map");
  if (!canvas || !canvas.ampl) return;
  const { first, last, cell, still, x } = canvas.ampl, pen = canvas.getContext("2d");
  pen.save();
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(still, 0, 0);
  pen.restore();
  if (state.selection) {
    const from = Math.max(state.selection[0], first), until = Math.min(state.selection[1], last) + 1;
    pen.strokeStyle = colour("link"); pen.lineWidth = 2;
    if (until > from) pen.strokeRect(x(from), TOP, x(until) - x(from), rows * cell);
  }
  if (state.cursor !== null && state.cursor >= first && state.cursor <= last) {
    pen.strokeStyle = colour("mpi"); pen.lineWidth = 1.5; pen.beginPath();
    pen.moveTo(x(state.cursor + 0.5), TOP); pen.lineTo(x(state.cursor + 0.5), TOP + rows * cell); pen.stroke();
  }
}

function drawScale(metric, most) {
  const pen = prepare(element("heat-scale"), 320, 34);
  element("heat-scale").style.width = "320px";
  if (metric === "kept") {
    const [red, green, blue] = shade(1);
    pen.fillStyle = `rgb(${red},${green},${blue})`; pen.fillRect(0, 2, 16, 14);
    pen.fillStyle = hatching(pen); pen.fillRect(140, 2, 16, 14);
    pen.fillStyle = colour("text"); pen.textBaseline = "middle"; pen.fillText("times kept", 22, 10); pen.fillText("not kept", 162, 10);
    return;
  }
  for (let at = 0; at < 240; at++) { const [red, green, blue] = shade(at / 239); pen.fillStyle = `rgb(${red},${green},${blue})`; pen.fillRect(at + 4, 2, 1.2, 12); }
  pen.fillStyle = colour("text"); pen.textBaseline = "top";
  for (const part of [0, 0.5, 1]) {
    pen.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
    pen.fillText(metric === "mpi" ? percent(part) : `${digits(part * most)} × mean`, 4 + part * 240, 18);
  }
}

function heatPlace(event) {
  const canvas = element("heat-map"), { first, shown, inner, cell } = canvas.ampl, box = canvas.getBoundingClientRect();
  const column = first + Math.floor((event.clientX - box.left - LEFT) * shown / inner), row = Math.floor((event.clientY - box.top - TOP) / cell);
  return { column: Math.min(Math.max(column, first), first + shown - 1), row, inside: row >= 0 && row < rows };
}

function listenToHeat() {
  const canvas = element("heat-map");
  if (!canvas) return;
  let start = null;
  canvas.addEventListener("pointerdown", event => { start = heatPlace(event).column; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", event => {
    const place = heatPlace(event);
    hoverRow = place.inside ? place.row : null;
    if (start !== null && place.column !== start) select(start, place.column);
    if (place.column === state.cursor) changed("cursor"); else setCursor(place.column);
  });
  canvas.addEventListener("pointerup", event => {
    const { column } = heatPlace(event);
    if (start !== null && column !== start) select(start, column);
    start = null;
  });
  canvas.addEventListener("pointerleave", () => { hoverRow = null; });
  element("heat-metric").addEventListener("change", drawHeat);
}

// Compute time and time in MPI of each rank in the range.
function drawRanks() {
  const canvas = element("rank-map");
  if (!canvas) return;
  const width = canvas.parentElement.clientWidth - 2, high = 150, pen = prepare(canvas, width, high + 50), inner = width - LEFT - 8;
  const sums = rowSums(range()), most = Math.max(...sums.map(of => of.time), 1), bar = inner / rows, hatch = hatching(pen);
  sums.forEach((of, row) => {
    const x = LEFT + row * bar, wide = Math.max(bar - (bar > 4 ? 1 : 0), 0.5), y = value => TOP + high * (1 - value / most);
    if (!of.measured) { pen.fillStyle = hatch; pen.fillRect(x, TOP, wide, high); return; }
    pen.fillStyle = colour("compute"); pen.fillRect(x, y(of.compute), wide, TOP + high - y(of.compute));
    pen.fillStyle = colour("mpi"); pen.fillRect(x, y(of.time), wide, y(of.compute) - y(of.time));
    if (!grid.by_strata) return;
    pen.fillStyle = paint(data.stratum_of[grid.rows[row][0]] || 0); pen.fillRect(x, TOP + high + 3, wide, 7);
  });
  pen.fillStyle = colour("text"); pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const part of [0, 0.5, 1]) pen.fillText(seconds(part * most / 1e9), LEFT - 6, TOP + high * (1 - part) + (part === 1 ? 5 : 0));
  pen.textAlign = "center"; pen.textBaseline = "top";
  for (const row of ticks(rows, Math.floor(inner / 40))) pen.fillText(String(grid.rows[row][0]), LEFT + (row + 0.5) * bar, TOP + high + 14);
  pen.fillText("rank", LEFT + inner / 2, TOP + high + 30);
  pen.strokeStyle = colour("text");
  grid.rows.forEach(([rank], row) => {
    if (row === 0 || poolsRanks || data.host_of[rank] === data.host_of[grid.rows[row - 1][0]]) return;
    pen.beginPath(); pen.moveTo(LEFT + row * bar, TOP + high); pen.lineTo(LEFT + row * bar, TOP + high + 14); pen.stroke();
  });
  canvas.setAttribute("aria-label", `Compute time and time in MPI of ${data.ranks} ranks, ${windowsOf(range())}`);
}

function drawKey() {
  const place = element("strata-key");
  if (!place) return;
  const entry = (text, fill) => {
    const mark = document.createElement("canvas"), item = document.createElement("span");
    mark.width = mark.height = 11;
    const pen = mark.getContext("2d");
    pen.fillStyle = fill; pen.fillRect(0, 0, 11, 11);
    item.append(mark, text);
    return item;
  };
  const strata = data.strata.slice(0, PALETTE.length).map((name, index) => entry(`stratum ${name}`, paint(index)));
  const more = data.strata.length - strata.length;
  if (more > 0) strata.push(entry(more === 1 ? `stratum ${data.strata[PALETTE.length]}` : `${more} further strata`, paint(PALETTE.length)));
  place.replaceChildren(entry("computing", colour("compute")), entry("in MPI", colour("mpi")), ...strata);
}

// Messages: the sender's row, the receiver's column.
function drawMatrix() {
  const canvas = element("matrix-map"), matrix = data.matrix;
  if (!canvas || !matrix) return;
  const metric = element("matrix-metric").value === "bytes" ? 3 : 2, side = matrix.rows.length;
  const size = Math.min(canvas.parentElement.clientWidth - 2, 470), inner = size - LEFT - 8, cell = inner / side;
  const pen = prepare(canvas, size, inner + TOP + 66);
  canvas.style.width = size + "px";
  const most = Math.max(...matrix.cells.map(of => of[metric]), 1);
  pen.strokeStyle = colour("line"); pen.strokeRect(LEFT, TOP, inner, inner);
  for (const of of matrix.cells) {
    if (of[metric] === 0) continue;
    const [red, green, blue] = shade(of[metric] / most);
    pen.fillStyle = `rgb(${red},${green},${blue})`;
    pen.fillRect(LEFT + of[1] * cell, TOP + of[0] * cell, Math.max(cell - (cell > 6 ? 0.5 : 0), 0.8), Math.max(cell - (cell > 6 ? 0.5 : 0), 0.8));
  }
  pen.fillStyle = colour("text"); pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const row of ticks(side, Math.floor(inner / 18))) pen.fillText(String(matrix.rows[row][0]), LEFT - 6, TOP + (row + 0.5) * cell);
  pen.save(); pen.translate(12, TOP + inner / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center"; pen.fillText("sender", 0, 0); pen.restore();
  pen.textAlign = "center"; pen.textBaseline = "top";
  for (const row of ticks(side, Math.floor(inner / 36))) pen.fillText(String(matrix.rows[row][0]), LEFT + (row + 0.5) * cell, TOP + inner + 4);
  pen.fillText("receiver", LEFT + inner / 2, TOP + inner + 18);
  for (let at = 0; at < 160; at++) { const [red, green, blue] = shade(at / 159); pen.fillStyle = `rgb(${red},${green},${blue})`; pen.fillRect(LEFT + at, TOP + inner + 38, 1.2, 10); }
  pen.fillStyle = colour("text"); pen.textAlign = "left"; pen.fillText("0", LEFT, TOP + inner + 50);
  pen.textAlign = "right"; pen.fillText(metric === 3 ? bytes(most) : digits(most), LEFT + 160, TOP + inner + 50);
  pen.textAlign = "left"; pen.fillText("blank: no message", LEFT + 172, TOP + inner + 36);
  canvas.ampl = { cell, side };
}

function listenToMatrix() {
  const canvas = element("matrix-map"), matrix = data.matrix;
  if (!canvas || !matrix) return;
  element("matrix-metric").addEventListener("change", drawMatrix);
  const name = of => span("rank", matrix.rows[of]);
  canvas.addEventListener("pointermove", event => {
    const box = canvas.getBoundingClientRect(), { cell, side } = canvas.ampl;
    const to = Math.floor((event.clientX - box.left - LEFT) / cell), from = Math.floor((event.clientY - box.top - TOP) / cell);
    const inside = to >= 0 && from >= 0 && to < side && from < side;
    const found = matrix.cells.find(of => of[0] === from && of[1] === to);
    element("matrix-readout").textContent = !inside ? "" : `From ${name(from)} to ${name(to)}: ` + (found ? `${digits(found[2])} messages, ${bytes(found[3])}.` : "none.");
  });
  const cellOf = (text, right) => { const td = document.createElement("td"); td.textContent = text; if (right) td.className = "r"; return td; };
  const top = [...matrix.cells].sort((a, b) => b[3] - a[3] || b[2] - a[2]).slice(0, 20);
  for (const [from, to, messages, size] of top) {
    const row = document.createElement("tr");
    row.append(cellOf(name(from)), cellOf(name(to)), cellOf(String(messages), true), cellOf(bytes(size), true));
    element("matrix-pairs").append(row);
  }
}

onChange(what => {
  if (what === "cursor") markHeat();
  if (what !== "range") return;
  const drawn = element("heat-map")?.ampl;
  if (drawn && drawn.first === state.view[0] && drawn.last === state.view[1]) markHeat(); else drawHeat();
  drawRanks();
});
