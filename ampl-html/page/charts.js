// Line charts over time, all with one cursor and one range.
const charts = [];

function axis(label, values) {
  return { stroke: colour("text"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, label, labelSize: 18, size: 70, values, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
}

// A chart in `place`; `series` are uPlot's, `points` their values over `times`.
function lineChart(place, times, points, series, label, values, scale, height, bands) {
  const selected = plot => {
    if (!state.selection) return;
    const from = plot.valToPos(grid.edges[state.selection[0]], "x", true), until = plot.valToPos(grid.edges[state.selection[1] + 1], "x", true);
    plot.ctx.save();
    plot.ctx.fillStyle = colour("select");
    plot.ctx.fillRect(from, plot.bbox.top, until - from, plot.bbox.height);
    plot.ctx.restore();
  };
  const options = {
    width: place.clientWidth || 600, height,
    cursor: { y: false, drag: { x: true, y: false, setScale: false } },
    scales: { x: { time: false, range: () => [grid.edges[state.view[0]], grid.edges[state.view[1] + 1]] }, y: scale },
    axes: [axis("seconds since MPI_Init returned", undefined), axis(label, values)],
    series: [{ label: "time", value: (plot, value) => value === null ? "-" : seconds(value) }, ...series],
    bands: bands || [],
    hooks: {
      drawClear: [selected],
      setSelect: [plot => {
        if (plot.select.width < 4) return;
        const at = left => columnAt(plot.posToVal(left, "x"));
        select(at(plot.select.left), at(plot.select.left + plot.select.width - 1));
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      }],
      setCursor: [plot => {
        // Without an event it was set here, not by a pointer.
        if (!plot.cursor.event) return;
        const { left } = plot.cursor;
        setCursor(left === null || left < 0 ? null : columnAt(plot.posToVal(left, "x")));
      }],
    },
  };
  options.axes[0].size = 36;
  const plot = new uPlot(options, [times, ...points]);
  place.append(plot.root);
  charts.push({ plot, place, height });
  return plot;
}
// uPlot applies scales later: the cursor follows in the next frame.
let cursorFrame = 0;
function placeCursors() {
  for (const { plot } of charts) {
    const middle = state.cursor === null ? null : (grid.edges[state.cursor] + grid.edges[state.cursor + 1]) / 2;
    if (!plot.cursor.event || state.cursor === null) plot.setCursor({ left: middle === null ? -10 : plot.valToPos(middle, "x"), top: 0 }, false);
  }
}
onChange(what => {
  if (what === "range") for (const { plot } of charts) {
    plot.setScale("x", { min: grid.edges[state.view[0]], max: grid.edges[state.view[1] + 1] });
    plot.redraw(true, true);
  }
  cancelAnimationFrame(cursorFrame);
  cursorFrame = requestAnimationFrame(placeCursors);
});

const line = (label, stroke, unit, dash, width) => ({ label, stroke, width: width || 1.5, dash, spanGaps: false, points: { show: false }, value: (plot, value) => value === null || value === undefined ? "-" : unit(value) });

function drawStrip() {
  const place = document.querySelector("[data-chart=strip]"), strip = data.strip;
  if (!place || !strip.windows.length) return;
  const times = strip.windows.map(timeOf);
  const percentOf = share => percent(share);
  lineChart(place, times, [strip.parallel, strip.balance, strip.communication], [
    line("parallel", colour("text"), percentOf, undefined, 2), line("load balance", colour("compute"), percentOf, [6, 3]),
    line("communication", colour("mpi"), percentOf, [2, 2]),
  ], "share of the time", (plot, all) => all.map(value => percent(value)), { range: [0, 1.02] }, 220);
  if (strip.joined > 1) element("strip-note").textContent = `Each point is the least of up to ${strip.joined} windows.`;
}

let estimatePlot = null;
function drawEstimates() {
  const place = document.querySelector("[data-chart=estimates]"), pick = element("estimate-series");
  if (!place) return;
  if (!pick.options.length) data.estimates.forEach((series, index) => pick.append(new Option(series.name, index)));
  const series = data.estimates[pick.value || 0];
  const at = charts.findIndex(chart => chart.plot === estimatePlot);
  if (at >= 0) { charts.splice(at, 1); estimatePlot.destroy(); }
  const unit = value => amount(value, series.unit), edge = (half, sign) => series.mean.map((mean, index) => mean === null || half[index] === null ? null : mean + sign * half[index]);
  const low = edge(series.half, -1), high = edge(series.half, 1), bandColour = colour("select");
  estimatePlot = lineChart(place, series.windows.map(timeOf), [series.mean, high, low, edge(series.bound, 1), edge(series.bound, -1)], [
    line("mean", colour("compute"), unit, undefined, 2), line("interval up to", colour("compute"), unit, undefined, 0.5),
    line("from", colour("compute"), unit, undefined, 0.5), line("asked for up to", colour("mpi"), unit, [4, 4], 1), line("from", colour("mpi"), unit, [4, 4], 1),
  ], "mean of a rank", (plot, all) => all.map(unit), { range: (plot, min, max) => [Math.min(0, min || 0), (max || 1) * 1.05] }, 220, [{ series: [2, 3], fill: bandColour }]);
  element("estimate-about").textContent = series.about;
}

// One colour and one kind of line have 28 pairs.
const DASHES = [undefined, [6, 3], [2, 2], [10, 3, 2, 3]];
function drawSizes() {
  const place = document.querySelector("[data-chart=sizes]");
  if (!place || !data.sizes.length) return;
  const times = [...new Set(data.sizes.flatMap(of => of.windows))].sort((a, b) => a - b);
  const steps = of => {
    let next = 0, value = null;
    return times.map(window => {
      while (next < of.windows.length && of.windows[next] <= window) value = of.sizes[next++];
      return value;
    });
  };
  const ends = times.map(timeOf);
  const last = grid.edges[columns], values = data.sizes.map(steps).map(of => [...of, of[of.length - 1]]);
  const series = data.sizes.map((of, index) => ({ ...line(`${of.name}, of up to ${of.population}`, PALETTE[index % PALETTE.length], value => digits(value), DASHES[Math.floor(index / PALETTE.length) % DASHES.length], 2), paths: uPlot.paths.stepped({ align: 1 }) }));
  const most = Math.max(...data.sizes.map(of => of.population), 1);
  lineChart(place, [...ends, Math.max(last, ends[ends.length - 1] + 1e-9)], values, series, "ranks kept", undefined, { range: [0, most * 1.05] }, 220);
}

function drawCharts() {
  for (const { plot } of charts.splice(0)) plot.destroy();
  estimatePlot = null;
  if (!grid) return;
  drawStrip();
  drawEstimates();
  drawSizes();
}
