// Tables that follow the range, and the table of call sites.

// Numbers of the range beside those of the run.
onChange(what => {
  if (what !== "range" || !grid) return;
  const whole = isWhole(), found = efficiencies(range());
  for (const name of ["parallel", "balance", "communication", "mpi"]) {
    const place = document.querySelector(`#factor-${name} .selected`);
    if (!place) continue;
    place.hidden = whole;
    const part = name === "parallel" && found && found.known < found.of && !poolsWindows ? ` (${found.known} of ${found.of} windows measured by all ranks)` : "";
    const of = poolsRanks && (name === "balance" || name === "communication") ? " (by windows)" : "";
    place.textContent = found ? `in the range: ${percent(found[name])}${of}${part}` : "in the range: not known";
  }
  for (const place of document.querySelectorAll(".of-range")) place.textContent = whole ? "over the whole run" : `in ${windowsOf(range())}`;
  const sums = rowSums(range()), strata = data.strata.map(() => ({ compute: 0, time: 0 }));
  if (grid.by_strata) sums.forEach((of, row) => {
    const stratum = strata[data.stratum_of[grid.rows[row][0]] || 0];
    stratum.compute += of.compute * grid.sizes[row];
    stratum.time += of.time * grid.sizes[row];
  });
  for (const row of document.querySelectorAll("#strata tr[data-stratum]")) {
    const of = strata[row.dataset.stratum], place = row.querySelector(".in-range");
    if (place) place.textContent = of.time > 0 ? percent(1 - of.compute / of.time) : "not known";
  }
});

onChange(what => {
  if (!grid) return;
  if (what === "range") {
    const text = isWhole() ? "whole run" : `${windowsOf(range())} (${seconds(grid.edges[range()[0]])} to ${seconds(grid.edges[range()[1] + 1])})`;
    element("range").textContent = text;
    element("zoom").disabled = !state.selection;
    element("reset").disabled = isWhole();
  }
  if (state.cursor === null) return;
  const at = state.cursor, found = efficiencies([at, at]), from = seconds(grid.edges[at]);
  const row = hoverRow === null ? "" : `; ${ranksOf(hoverRow)}: ` + (cellValue("mpi", hoverRow, at) === null ? "not measured" : `${percent(cellValue("mpi", hoverRow, at))} in MPI`);
  element("readout").textContent = `${windowsOf([at, at])} from ${from}: ` + (found ? `${percent(found.parallel)} parallel, ${percent(found.balance)} load balance` : "not measured by all ranks") + row;
});

const FEW = 15;
let showsAll = false;
function listSites() {
  const table = element("site-table");
  if (!table) return;
  const wanted = element("site-filter").value.toLowerCase(), body = table.tBodies[0];
  let matching = 0, shown = 0;
  for (const row of body.rows) {
    const fits = !wanted || row.cells[0].textContent.toLowerCase().includes(wanted);
    matching += fits;
    row.hidden = !fits || (!showsAll && !wanted && shown >= FEW);
    shown += !row.hidden;
  }
  element("site-count").textContent = `${shown} of ${body.rows.length} places shown`;
  element("site-all").hidden = showsAll || matching <= shown;
}
function sortSites(key, button) {
  const body = element("site-table").tBodies[0], head = button.closest("th"), falls = head.getAttribute("aria-sort") !== "descending";
  const all = [...body.rows].sort((a, b) => (Number(a.dataset[key]) - Number(b.dataset[key])) * (falls ? -1 : 1));
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falls ? "descending" : "ascending");
  body.append(...all);
  listSites();
}
function listenToSites() {
  const table = element("site-table");
  if (!table) return;
  element("site-filter").addEventListener("input", listSites);
  element("site-all").addEventListener("click", () => { showsAll = true; listSites(); });
  for (const head of table.tHead.rows[0].cells) {
    if (!head.dataset.key) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => sortSites(head.dataset.key, button));
  }
  listSites();
}
