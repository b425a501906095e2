// The list: a row for each group, drawn one page at a time, so that thousands of groups stay fast.

const PAGE = 50;
let shownGroups = []; // [group, its findings that match the filters]
let listed = ""; // the filters of the drawn list

function select() {
  const found = new Map();
  for (const finding of FINDINGS) {
    if (!isShown(finding)) continue;
    if (found.has(finding.group)) found.get(finding.group).push(finding);
    else found.set(finding.group, [finding]);
  }
  const rank = (group) => DATA.verdicts.findIndex(({ name }) => name === group.verdict);
  shownGroups = [...found].sort(([one], [other]) => rank(one) - rank(other));
}

const order = () => shownGroups.flatMap(([, findings]) => findings);

function showFindings() {
  const filters = JSON.stringify(FILTERS.map((key) => state[key]));
  if (filters === listed) return;
  listed = filters;
  select();
  const findings = order();
  const faults = findings.filter((finding) => VERDICTS.get(finding.group.verdict).fault).length;
  const parts = [counted(faults, "fault"), findings.length > faults ? counted(findings.length - faults, "permitted difference") : null];
  byId("count").textContent = findings.length
    ? `${parts.filter(Boolean).join(" and ")}, shown by ${counted(shownGroups.length, "call")}.`
    : "No findings.";
  fill("findings", findings.length ? [] : nothing());
  draw(0);
}

// For an empty list: the counts of each run, and why cases are not applicable.
function nothing() {
  const rows = DATA.rows.filter((row) => (!state.clause || row.key === state.clause) && (!state.standard || row.standard === state.standard)
    && (!state.operator || row.operator === state.operator));
  const clauses = rows.flatMap((row) => row.clauses);
  return DATA.runs.filter((run) => !state.runtime || run.name === state.runtime).map((run) => {
    const counts = tally(run, clauses, state.type);
    const reasons = run.reasons.filter((reason) => clauses.some((clause) =>
      Object.keys(reason.counts[clause] ?? {}).some((type) => !state.type || type === state.type)));
    return make("div", { class: "empty" }, make("p", {}, make("b", {}, run.name), `: ${spoken(counts) || "not tested"}.`),
      reasons.length ? make("ul", {}, reasons.map((reason) => make("li", {}, `Not applicable: ${reason.text}`))) : null);
  });
}

function draw(from) {
  const box = byId("findings");
  box.querySelector(":scope > .more")?.remove();
  for (const [group, findings] of shownGroups.slice(from, from + PAGE)) {
    const title = VERDICTS.get(group.verdict).fault ? "Faults" : "Permitted differences";
    if (box.lastElementChild?.dataset.title !== title) {
      box.append(make("section", { "data-title": title, "aria-label": title }, make("h3", {}, title),
        title === "Faults" ? null : make("p", { class: "hint" }, "The standard permits these differences: they are not faults."), make("ul", { class: "groups" })));
    }
    box.lastElementChild.querySelector(".groups").append(groupRow(group, findings));
  }
  const rest = shownGroups.length - from - PAGE;
  if (rest > 0) box.append(moreButton(rest, () => draw(from + PAGE)));
}

function moreButton(rest, show) {
  return make("button", { type: "button", class: "more", on: { click: show } }, `Show ${Math.min(rest, PAGE)} more of ${rest.toLocaleString("en")}`);
}

function groupRow(group, findings) {
  const types = [...new Set(findings.map((finding) => finding.type))];
  const many = findings.length > 1;
  const inside = make("ul", { class: "cases", hidden: true });
  const { expected, actual } = group.smallest ?? findings[0];
  const button = make("button", { type: "button", class: "finding", "aria-expanded": many ? "false" : null, "aria-haspopup": many ? null : "dialog", on: { click: () => {
    if (!many) openFinding(findings[0]);
    else unfold(button, inside, findings);
  } } },
  named(group.verdict),
  make("span", { class: "what" }, make("b", {}, group.clause), make("span", { class: "says" }, group.statement)),
  make("span", { class: "of" }, `${types.join(", ")}, ${counted(findings.length, "case")}`, make("span", {}, group.run.name)),
  make("span", { class: "change" }, change(expected, actual)));
  return make("li", { "data-verdict": group.verdict }, button, inside);
}

function unfold(button, inside, findings) {
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  inside.hidden = isOpen;
  if (!inside.children.length) unfoldPage(inside, findings, 0);
}

function unfoldPage(inside, findings, from) {
  inside.append(...findings.slice(from, from + PAGE).map((finding) => make("li", {}, make("button", {
    type: "button", class: "finding case", "aria-haspopup": "dialog", on: { click: () => openFinding(finding) },
  }, make("span", { class: "what" }, make("b", {}, finding.sentence), make("span", { class: "says" }, finding.message)),
  make("span", { class: "of" }, finding.type, finding.own === finding.group.clause ? null : make("span", {}, finding.own))))));
  const rest = findings.length - from - PAGE;
  if (rest > 0) {
    const item = make("li", {}, moreButton(rest, () => {
      item.remove();
      unfoldPage(inside, findings, from + PAGE);
    }));
    inside.append(item);
  }
}

// For arrays of one shape, the first element that differs.
function change(expected, actual) {
  const arrow = " \u2192 ";
  const at = expected.text === undefined && actual.text === undefined && expected.type === actual.type ? firstDifference(expected, actual, null) : null;
  if (at === null || expected.values.length === 1) return [make("code", {}, brief(expected)), arrow, make("code", {}, brief(actual))];
  const [one, other] = [expected, actual].map((side) => make("code", {}, side.values[at] + (side.bits.length ? ` (${side.bits[at]})` : "")));
  return [make("span", {}, `${index(at, expected.shape)} of ${shape(expected)}: `), one, arrow, other];
}

// A short form of a result: one value with its bits, or the first elements of an array.
function brief(side) {
  if (side.text !== undefined) return side.text.length > 60 ? `${side.text.slice(0, 60)}\u2026` : side.text || "an error";
  if (!side.values.length) return `${shape(side)}, empty`;
  if (side.values.length === 1) return side.values[0] + (side.bits.length ? ` (${side.bits[0]})` : "");
  return `${shape(side)} ${side.values.slice(0, 3).join(", ")}${side.values.length > 3 ? ", \u2026" : ""}`;
}

function toFindings() {
  const heading = byId("h-findings");
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}
