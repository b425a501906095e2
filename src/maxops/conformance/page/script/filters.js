// The filters: each one is a field of the form and a key in the address.

const NOTHING = Object.fromEntries(FILTERS.map((key) => [key, ""]));

function drawFilters() {
  const distinct = (values) => [...new Set(values)].map((value) => [value, value]);
  const types = new Set(FINDINGS.map((finding) => finding.type));
  const found = new Set(FINDINGS.map((finding) => finding.group.verdict));
  const verdicts = DATA.verdicts.filter(({ name }) => found.has(name)).map(({ name }) => [name, name]);
  fill("filters",
    choice("runtime", "Runtime", distinct(DATA.runs.map((run) => run.name))),
    choice("standard", "Standard", distinct(DATA.rows.map((row) => row.standard))),
    choice("operator", "Operator", distinct(DATA.rows.map((row) => row.operator))),
    choice("clause", "Clause", DATA.rows.map((row) => [row.key, row.key])),
    choice("type", "Type", distinct([...Object.keys(DATA.types), ...types].filter((type) => types.has(type)))),
    choice("verdict", "Verdict", [["faults", "every fault"], ...verdicts]),
    make("label", { class: "text" }, make("span", {}, "Search"),
      make("input", { type: "search", name: "text", autocomplete: "off", spellcheck: "false", placeholder: "words, values, bits", on: { input: search } })),
    make("button", { type: "button", id: "clear", on: { click: () => go(NOTHING) } }, "Clear"));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
}

function choice(key, label, options) {
  return make("label", {}, make("span", {}, label),
    make("select", { name: key, on: { change: (event) => go({ [key]: event.target.value }) } },
      make("option", { value: "" }, "all"), options.map(([value, text]) => make("option", { value }, text))));
}

// Only the first letter adds an entry to the history.
function search(event) {
  go({ text: event.target.value }, { replace: state.text !== "" });
}

function showFilters() {
  const form = byId("filters");
  for (const key of FILTERS) {
    const field = form.elements[key];
    if (field.value !== state[key]) field.value = state[key];
    // a link may contain a value that this page lacks: the list is empty, and the field shows the reason
    if (field.value !== state[key] && field.tagName === "SELECT") {
      field.append(make("option", { value: state[key] }, `${state[key]} (not on this page)`));
      field.value = state[key];
    }
    field.classList.toggle("on", state[key] !== "");
  }
  byId("clear").hidden = FILTERS.every((key) => !state[key]);
}
