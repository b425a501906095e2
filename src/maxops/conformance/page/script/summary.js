// The head of the page: the judged runtimes, and the number of cases by standard and verdict.

function badge(verdict, number) {
  const { mark } = VERDICTS.get(verdict);
  return make("span", { class: "badge", "data-verdict": verdict },
    make("b", { "aria-hidden": "true" }, mark), number === undefined ? null : ` ${number.toLocaleString("en")}`);
}

function named(verdict) {
  return make("span", { class: "badge", "data-verdict": verdict },
    make("b", { "aria-hidden": "true" }, VERDICTS.get(verdict).mark), ` ${verdict}`);
}

// Cases of a run by verdict, the worst first; optionally only for some clauses and one type.
function tally(run, clauses, type) {
  const found = new Map();
  for (const clause of clauses) {
    for (const [each, counts] of Object.entries(run.counts[clause] ?? {})) {
      if (type && type !== each) continue;
      for (const [verdict, number] of Object.entries(counts)) found.set(verdict, (found.get(verdict) ?? 0) + number);
    }
  }
  return DATA.verdicts.filter(({ name }) => found.has(name)).map(({ name }) => [name, found.get(name)]);
}

// Conforming cases first, then faults from mildest to worst; cases that are not applicable are last.
function rightFirst(counts) {
  const [none, asked] = [true, false].map((isNone) => counts.filter(([verdict]) => (verdict === "not applicable") === isNone));
  return [...asked.reverse(), ...none];
}

const total = (counts) => counts.reduce((sum, [, number]) => sum + number, 0);
const spoken = (counts) => counts.map(([verdict, number]) => `${number} ${VERDICTS.get(verdict).many}`).join(", ");

function drawRuns() {
  const facts = (about) => Object.entries(about).filter(([name]) => name !== "bounds").map(([name, value]) => `${name} ${said(value)}`).join(", ");
  fill("runs",
    make("ul", { class: "who" }, DATA.runs.map((run) =>
      make("li", {}, make("b", {}, run.name), make("span", {}, asked(run)),
        run.bounds.map((said) => make("p", { class: "hint bounds" }, `Bounds: ${said}`))))),
    make("details", {}, make("summary", {}, "Kit and machine"),
      table(["runtime", "kit", "machine", "seconds"],
        DATA.runs.map((run) => [run.name, facts(run.kit), facts(run.machine), run.seconds.toFixed(1)]), "Kit and machine")));
}

// The number of cases, and the selection if it excludes cases.
function asked(run) {
  const { quick, only } = run.kit;
  const cases = counted(total(tally(run, Object.keys(run.counts))), "case");
  return [cases, quick ? "quick" : null, only?.length ? `only ${said(only)}` : null].filter(Boolean).join(", ");
}

function said(value) {
  return typeof value === "string" ? value || "none" : JSON.stringify(value);
}

function drawStandards() {
  const standards = [...new Set(DATA.rows.map((row) => row.standard))];
  fill("standards", make("div", { class: "cards" }, standards.map((standard) => {
    const clauses = DATA.rows.filter((row) => row.standard === standard).flatMap((row) => row.clauses);
    return make("article", { class: "card", "aria-label": standard }, make("h3", {}, standard),
      DATA.runs.map((run) => standing(run, standard, tally(run, clauses))));
  })));
}

function standing(run, standard, counts) {
  if (!counts.length) return make("div", { class: "standing" }, make("h4", {}, run.name), make("p", { class: "hint" }, "not tested"));
  const bar = make("div", { class: "bar", "aria-hidden": "true" }, rightFirst(counts).map(([verdict, number]) => {
    const part = make("i", { "data-verdict": verdict });
    part.style.flexGrow = number;
    return part;
  }));
  return make("div", { class: "standing" },
    make("h4", {}, run.name, make("span", {}, counted(total(counts), "case"))), bar,
    make("ul", { class: "chips" }, rightFirst(counts).map(([verdict, number]) => make("li", {}, chip(run, standard, verdict, number)))));
}

// A count that links to its findings, if there are any.
function chip(run, standard, verdict, number) {
  const text = [make("b", { "aria-hidden": "true" }, VERDICTS.get(verdict).mark), ` ${number.toLocaleString("en")} ${VERDICTS.get(verdict).many}`];
  const about = { class: "badge", "data-verdict": verdict, title: VERDICTS.get(verdict).means };
  if (verdict === "conforms" || verdict === "not applicable") return make("span", about, text);
  const show = () => {
    go({ ...NOTHING, runtime: run.name, standard, verdict });
    toFindings();
  };
  return make("button", { ...about, type: "button", on: { click: show } }, text);
}

function drawReasons() {
  byId("reasons-section").hidden = DATA.runs.every((run) => !run.reasons.length);
  fill("reasons", DATA.runs.filter((run) => run.reasons.length).map((run) => {
    const rows = run.reasons.map((reason) => {
      const counts = Object.values(reason.counts).flatMap((types) => Object.entries(types));
      const types = [...new Set(counts.map(([type]) => type))];
      return [reason.text || "no reason given", total(counts).toLocaleString("en"), types.join(", "), rowsOf(reason).join(", ")];
    });
    return make("details", {}, make("summary", {}, `${run.name}: ${counted(rows.length, "reason")}`),
      table(["why", "cases", "types", "clauses"], rows, `Not applicable to ${run.name}`));
  }));
}

function rowsOf(reason) {
  return [...new Set(Object.keys(reason.counts).map((clause) => DATA.clauses[clause].row))];
}
