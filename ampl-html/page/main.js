// Start: theme, keys, first drawing.
const root = document.documentElement;
function paintAll() {
  drawCharts();
  drawKey();
  drawMatrix();
  drawTopology();
  if (element("heat-map")) element("heat-map").ampl = null;
  changed("range");
}
function setTheme(name) {
  root.dataset.theme = name;
  paintAll();
}
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function move(step, selects) {
  const from = state.cursor === null ? (step > 0 ? state.view[0] - 1 : state.view[1] + 1) : state.cursor;
  const to = Math.min(Math.max(from + step, state.view[0]), state.view[1]);
  if (selects) {
    if (state.anchor === null) state.anchor = Math.min(Math.max(from, state.view[0]), state.view[1]);
    select(state.anchor, to);
  } else {
    state.anchor = null;
  }
  setCursor(to);
}

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const page = Math.max(Math.round((state.view[1] - state.view[0]) / 10), 1);
  const actions = {
    ArrowLeft: () => move(-1, event.shiftKey), ArrowRight: () => move(1, event.shiftKey),
    "[": () => move(-page, false), "]": () => move(page, false),
    z: zoom, Escape: reset, t: () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"),
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action || (!grid && event.key.toLowerCase() !== "t")) return;
  event.preventDefault();
  action();
});

root.classList.add("scripted");
element("bar").hidden = false;
if (!grid) for (const id of ["range", "zoom", "reset", "readout"]) element(id).hidden = true;
element("zoom").addEventListener("click", zoom);
element("reset").addEventListener("click", reset);
element("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
if (element("estimate-series")) element("estimate-series").addEventListener("change", () => { drawEstimates(); changed("range"); });
listenToHeat();
listenToMatrix();
listenToTimeline();
listenToSites();
setTheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
// On paper: all call sites, and light colours.
let shown = null;
window.addEventListener("beforeprint", () => {
  shown = root.dataset.theme;
  if (shown === "dark") setTheme("light");
  for (const row of element("site-table").tBodies[0].rows) row.hidden = false;
});
window.addEventListener("afterprint", () => {
  if (shown === "dark") setTheme("dark");
  listSites();
});
let waiting = 0;
window.addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(paintAll); });
