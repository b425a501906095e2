// The matrix of runtimes and clauses: a grid with one stop for Tab, and arrow keys inside.

let cells = []; // rows of buttons; null if a runtime was not tested
let stop = [0, 0]; // the cell that Tab goes to

function drawLegend() {
  fill("legend", make("ul", { class: "chips" }, DATA.verdicts.map((verdict) =>
    make("li", { title: verdict.means }, named(verdict.name)))));
}

function drawMatrix() {
  const head = make("tr", {}, make("th", { scope: "col" }, "clause"),
    DATA.runs.map((run) => make("th", { scope: "col" }, run.name)));
  const body = [];
  let before = "";
  cells = [];
  for (const row of DATA.rows) {
    if ((state.standard && state.standard !== row.standard) || (state.operator && state.operator !== row.operator)) continue;
    const operator = `${row.standard} ${row.operator}`;
    if (operator !== before) body.push(make("tr", { class: "operator" }, make("th", { scope: "rowgroup", colspan: DATA.runs.length + 1 },
      make("span", {}, operator, make("small", {}, versions(row))))));
    before = operator;
    cells.push(DATA.runs.map((run) => cell(run, row, cells.length)));
    body.push(make("tr", {}, make("th", { scope: "row" }, make("b", {}, row.short), make("small", {}, row.statement)),
      cells.at(-1).map((button) => make("td", {}, button ?? make("span", { class: "none" }, "not tested")))));
  }
  fill("matrix", body.length
    ? make("div", { class: "scroll grid" }, make("table", { "aria-labelledby": "h-matrix", "aria-describedby": "matrix-hint" },
      make("thead", {}, head), make("tbody", {}, body)))
    : make("p", { class: "hint" }, "No clauses for this standard and operator."));
  const first = cells.flat().find(Boolean);
  if (first) (cells[stop[0]]?.[stop[1]] ?? first).tabIndex = 0;
  markCell();
}

function versions(row) {
  const found = DATA.rows.filter((each) => each.standard === row.standard && each.operator === row.operator)
    .flatMap((each) => each.clauses).map((clause) => DATA.clauses[clause].version).filter((version) => version !== null);
  const sorted = [...new Set(found)].sort((one, other) => one - other);
  return sorted.length ? ` ${sorted.length === 1 ? "version" : "versions"} ${sorted.join(", ")}` : "";
}

function cell(run, row, line) {
  const counts = tally(run, row.clauses, state.type);
  if (!counts.length) return null;
  const label = `${run.name}, ${row.standard} ${row.operator} ${row.short}: ${spoken(counts)}, of ${counted(total(counts), "case")}`;
  const column = DATA.runs.indexOf(run);
  const show = () => {
    const again = state.clause === row.key && state.runtime === run.name;
    go({ clause: again ? "" : row.key, runtime: again ? "" : run.name, verdict: "", text: "" });
    if (!again) toFindings();
  };
  return make("button", {
    type: "button", class: "cell", tabindex: "-1", "aria-label": label, title: label, "data-worst": counts[0][0], "data-key": row.key,
    "data-run": run.name, on: { click: show, focus: () => stopAt(line, column), keydown: (event) => walk(event, line, column) },
  }, counts.map(([verdict, number]) => badge(verdict, number)));
}

// The cell that the filters select.
function markCell() {
  for (const button of cells.flat()) {
    button?.setAttribute("aria-pressed", String(state.clause === button.dataset.key && state.runtime === button.dataset.run));
  }
}

function stopAt(line, column) {
  const before = cells[stop[0]]?.[stop[1]];
  if (before) before.tabIndex = -1;
  for (const button of cells.flat()) if (button?.tabIndex === 0) button.tabIndex = -1;
  cells[line][column].tabIndex = 0;
  stop = [line, column];
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function walk(event, line, column) {
  const step = STEPS[event.key];
  if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  let [to, over] = [line + step[0], column + step[1]];
  while (cells[to]?.[over] === null) [to, over] = [to + step[0], over + step[1]];
  cells[to]?.[over]?.focus();
}
