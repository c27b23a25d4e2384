// Timeline of kept ranks, and drawings of topologies.
const timeline = data.timeline;
if (timeline) {
  timeline.shares = bytesOf(timeline.shares);
  // Where each pixel's shares begin.
  timeline.begins = [];
  for (let at = 0; at < timeline.shares.length;) {
    const count = timeline.shares[at], repeats = timeline.shares[at + 1 + 2 * count];
    for (let pixel = 0; pixel < repeats; pixel++) timeline.begins.push(at);
    at += 2 + 2 * count;
  }
  timeline.width = timeline.begins.length / timeline.ranks.length;
}
const isCompute = name => name.startsWith("compute");
function functionColour(number) {
  if (timeline.functions[number] === "compute or untimed") return colour("untimed");
  if (isCompute(timeline.functions[number])) return colour("compute");
  if (timeline.functions[number] === "other functions") return colour("soft");
  const calls = timeline.functions.map((name, index) => index).filter(index => index !== timeline.unsampled && !isCompute(timeline.functions[index]));
  const place = calls.indexOf(number);
  return place === 0 ? colour("mpi") : paint(place - 1);
}

// Time by function in a stretch of one row, seconds.
function timeIn(row, from, until) {
  const sums = new Map(), { start, pixel, width, begins, shares } = timeline;
  const first = Math.max(Math.floor((from - start) / pixel), 0), last = Math.min(Math.ceil((until - start) / pixel), width);
  for (let at = first; at < last; at++) {
    const inside = Math.min(until, start + (at + 1) * pixel) - Math.max(from, start + at * pixel);
    if (inside <= 0) continue;
    const begin = begins[row * width + at];
    for (let share = 0; share < shares[begin]; share++) {
      const number = shares[begin + 1 + 2 * share];
      sums.set(number, (sums.get(number) || 0) + inside * shares[begin + 2 + 2 * share] / 255);
    }
  }
  return sums;
}

function drawTimeline() {
  const canvas = element("timeline-map");
  if (!canvas || !timeline) return;
  const count = timeline.ranks.length, width = canvas.parentElement.clientWidth - 2, cell = Math.min(Math.max(Math.floor(480 / count), 7), 22);
  const inner = Math.floor(width - LEFT - 8), high = count * cell, pen = prepare(canvas, width, high + TOP + BOTTOM), hatch = hatching(pen);
  const from = grid.edges[state.view[0]], until = grid.edges[state.view[1] + 1], step = (until - from) / inner;
  const fills = timeline.functions.map((name, number) => number === timeline.unsampled ? hatch : functionColour(number));
  for (let row = 0; row < count; row++) {
    for (let x = 0; x < inner; x++) {
      const sums = timeIn(row, from + x * step, from + (x + 1) * step);
      let bottom = TOP + (row + 1) * cell - 1;
      // Computing below, then functions by number, what is not known above.
      const order = [...sums.keys()].sort((a, b) => (a === timeline.unsampled) - (b === timeline.unsampled) || isCompute(timeline.functions[b]) - isCompute(timeline.functions[a]) || a - b);
      for (const number of order) {
        const part = Math.min(sums.get(number) / step, 1) * (cell - 1);
        pen.fillStyle = fills[number];
        pen.fillRect(LEFT + x, bottom - part, 1.2, part);
        bottom -= part;
      }
    }
  }
  pen.fillStyle = colour("text"); pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const row of ticks(count, Math.max(Math.floor(high / 14), 1))) pen.fillText(String(timeline.ranks[row]), LEFT - 6, TOP + row * cell + cell / 2);
  pen.save(); pen.translate(12, TOP + high / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center"; pen.fillText("rank", 0, 0); pen.restore();
  pen.textBaseline = "top";
  for (let part = 0; part <= 4; part++) {
    pen.textAlign = part === 0 ? "left" : part === 4 ? "right" : "center";
    pen.fillText(seconds(from + (until - from) * part / 4), LEFT + inner * part / 4, TOP + high + 4);
  }
  pen.textAlign = "center"; pen.fillText("since MPI_Init returned", LEFT + inner / 2, TOP + high + 20);
  const finest = timeline.pixel;
  element("timeline-note").textContent = `Zoom as far as ${seconds(finest)} per point; calls within a point are shares of it, in no order.` + (timeline.more ? ` ${timeline.more} more ranks have kept times.` : "");
  const still = document.createElement("canvas");
  still.width = canvas.width; still.height = canvas.height;
  still.getContext("2d").drawImage(canvas, 0, 0);
  canvas.ampl = { inner, from, until, high, cell, still };
  const place = element("timeline-key");
  place.replaceChildren(...timeline.functions.map((name, number) => {
    const mark = document.createElement("canvas"), item = document.createElement("span");
    mark.width = mark.height = 11;
    const own = mark.getContext("2d");
    own.fillStyle = number === timeline.unsampled ? hatching(own) : functionColour(number);
    own.fillRect(0, 0, 11, 11);
    item.append(mark, number === timeline.unsampled ? "not sampled: times of calls are not kept" : name);
    return item;
  }));
  markTimeline();
}

// Selection and cursor over the timeline.
function markTimeline() {
  const canvas = element("timeline-map");
  if (!canvas || !canvas.ampl) return;
  const { inner, from, until, high, still } = canvas.ampl, pen = canvas.getContext("2d"), x = at => LEFT + (at - from) / (until - from) * inner;
  pen.save(); pen.setTransform(1, 0, 0, 1, 0, 0); pen.clearRect(0, 0, canvas.width, canvas.height); pen.drawImage(still, 0, 0); pen.restore();
  if (state.selection) {
    const left = Math.max(x(grid.edges[state.selection[0]]), LEFT), right = Math.min(x(grid.edges[state.selection[1] + 1]), LEFT + inner);
    pen.strokeStyle = colour("link"); pen.lineWidth = 2;
    if (right > left) pen.strokeRect(left, TOP, right - left, high);
  }
  if (state.cursor !== null) {
    const middle = x((grid.edges[state.cursor] + grid.edges[state.cursor + 1]) / 2);
    if (middle < LEFT || middle > LEFT + inner) return;
    pen.strokeStyle = colour("text"); pen.lineWidth = 1.5; pen.beginPath(); pen.moveTo(middle, TOP); pen.lineTo(middle, TOP + high); pen.stroke();
  }
}

function listenToTimeline() {
  const canvas = element("timeline-map");
  if (!canvas || !timeline) return;
  let start = null;
  const place = event => {
    const box = canvas.getBoundingClientRect(), { inner, from, until, cell } = canvas.ampl, share = Math.min(Math.max((event.clientX - box.left - LEFT) / inner, 0), 1);
    return { time: from + share * (until - from), row: Math.floor((event.clientY - box.top - TOP) / cell) };
  };
  canvas.addEventListener("pointerdown", event => { start = columnAt(place(event).time); canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", event => {
    const { time, row } = place(event), column = columnAt(time);
    if (start !== null && column !== start) select(start, column);
    setCursor(column);
    if (row < 0 || row >= timeline.ranks.length) return;
    const { from, until, inner } = canvas.ampl, half = Math.max((until - from) / inner, timeline.pixel) / 2;
    const sums = [...timeIn(row, time - half, time + half)].sort((a, b) => b[1] - a[1]).slice(0, 4);
    const texts = sums.map(([number, spent]) => `${timeline.functions[number]} ${percent(spent / (2 * half))}`);
    element("timeline-readout").textContent = `Rank ${timeline.ranks[row]} at ${seconds(time)}: ${texts.join(", ") || "no window"}.`;
  });
  canvas.addEventListener("pointerup", () => { start = null; });
}

// Ranks at their places, messages as lines: the thicker, the more.
function drawTopology() {
  document.querySelectorAll("canvas[data-drawing]").forEach(canvas => {
    const drawing = data.drawings[canvas.dataset.drawing], width = Math.min(canvas.parentElement.clientWidth - 2, 620), flat = new Set(drawing.places.map(of => of[2])).size === 1;
    const high = flat ? 90 : Math.min(width, 420), edge = 24, pen = prepare(canvas, width, high), many = drawing.places.length > 100;
    canvas.style.width = width + "px";
    const at = ([, x, y]) => [edge + x * (width - 2 * edge), edge + y * (high - 2 * edge)];
    pen.strokeStyle = colour("mpi");
    for (const [from, to, share] of drawing.pairs) {
      const [x, y] = at(drawing.places[from]), [u, v] = at(drawing.places[to]), length = Math.hypot(u - x, v - y);
      pen.lineWidth = 0.6 + 3 * share;
      pen.globalAlpha = many ? 0.5 : 0.8;
      pen.beginPath(); pen.moveTo(x, y);
      // Lines along a row of ranks would lie on each other: long ones are bent.
      const bend = length > 0 ? Math.min(length * 0.12, 40) / length : 0;
      pen.quadraticCurveTo((x + u) / 2 - (v - y) * bend, (y + v) / 2 + (u - x) * bend, u, v);
      pen.stroke();
    }
    pen.globalAlpha = 1; pen.lineWidth = 1; pen.textAlign = "center"; pen.textBaseline = "middle";
    for (const place of drawing.places) {
      const [x, y] = at(place);
      pen.fillStyle = paint(data.stratum_of[place[0]] || 0);
      pen.beginPath(); pen.arc(x, y, many ? 4 : 10, 0, 2 * Math.PI); pen.fill();
      pen.fillStyle = "#000000";
      if (!many) pen.fillText(String(place[0]), x, y);
    }
  });
}

let timelineView = null;
onChange(what => {
  if (!timeline || !grid) return;
  if (what === "cursor") return markTimeline();
  const view = state.view.join() + root.dataset.theme + window.innerWidth;
  if (view === timelineView) markTimeline(); else { timelineView = view; drawTimeline(); }
});
