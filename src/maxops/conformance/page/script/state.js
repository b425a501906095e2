// The address holds the state of the page, so that views can be shared and the browser's Back button works.

const DATA = JSON.parse(byId("data").textContent);
const VERDICTS = new Map(DATA.verdicts.map((verdict) => [verdict.name, verdict]));
const RUNS = new Map(DATA.runs.map((run) => [run.name, run]));
const FINDINGS = [];
for (const run of DATA.runs) {
  for (const group of run.groups) {
    group.run = run;
    group.smallest = group.reproducer === null ? null : run.reproducers[group.reproducer];
    for (const finding of group.findings) {
      finding.group = group;
      const [own, type, sentence] = split(finding.case);
      Object.assign(finding, { own, type });
      finding.sentence = sentence.replaceAll("-", " ");
      FINDINGS.push(finding);
    }
  }
}

function split(name) {
  const first = name.indexOf("/"), second = name.indexOf("/", first + 1);
  return [name.slice(0, first), name.slice(first + 1, second), name.slice(second + 1)];
}

// The filters and the open finding: `open` is its case, `of` its runtime.
const FILTERS = ["runtime", "standard", "operator", "clause", "type", "verdict", "text"];
const KEYS = [...FILTERS, "open", "of"];

let state = read();

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, given.get(key) ?? ""]));
}

function address(view) {
  const parts = new URLSearchParams(KEYS.filter((key) => view[key]).map((key) => [key, view[key]]));
  return `#${parts}`;
}

function go(changes, { replace = false } = {}) {
  state = { ...state, ...changes };
  if (replace) history.replaceState(history.state, "", address(state));
  else history.pushState({ ours: true }, "", address(state)); // a step that Back can undo
  render();
}

window.addEventListener("popstate", () => {
  state = read();
  render();
});

// The selected verdict: a verdict, every fault, or any finding.
function hasVerdict(verdict) {
  return !state.verdict || state.verdict === verdict || (state.verdict === "faults" && VERDICTS.get(verdict).fault);
}

function words(finding) {
  finding.words ??= [
    finding.case, finding.sentence, finding.group.clause, finding.group.verdict, finding.group.run.name,
    finding.group.statement, finding.message, ...[finding.expected, finding.actual].flatMap((side) => side.text ?? [...side.values, ...side.bits]),
  ].join("\n").toLowerCase();
  return finding.words;
}

function isShown(finding) {
  const group = finding.group, own = DATA.clauses[finding.own];
  return hasVerdict(group.verdict)
    && (!state.runtime || state.runtime === group.run.name)
    && (!state.standard || state.standard === own.standard)
    && (!state.operator || state.operator === own.operator)
    && (!state.clause || state.clause === own.row)
    && (!state.type || state.type === finding.type)
    && (!state.text || state.text.toLowerCase().split(/\s+/).every((word) => words(finding).includes(word)));
}
