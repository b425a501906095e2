// One finding, with its bits and the script that reproduces it.

let drawn = null; // the finding in the dialog

function openFinding(finding) {
  go({ open: finding.case, of: finding.group.run.name });
}

function closeFinding() {
  if (!state.open) return;
  if (history.state?.ours) history.back();
  else go({ open: "", of: "" }, { replace: true });
}

function showDetail() {
  const dialog = byId("detail");
  const finding = state.open ? FINDINGS.find((each) => each.case === state.open && each.group.run.name === state.of) ?? null : null;
  if (!state.open) {
    drawn = null;
    if (dialog.open) dialog.close();
    return;
  }
  if (dialog.open && finding && finding === drawn) return;
  drawn = finding;
  dialog.replaceChildren(...(finding ? detail(finding) : missing()));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  byId("detail-title").focus();
}

function missing() {
  return [head(null, "Not found", []), make("p", {}, `This page has no finding ${state.open} of ${state.of}.`)];
}

function head(verdict, title, buttons) {
  return make("div", { class: "head" }, make("div", {}, verdict ? named(verdict) : null, make("h2", { id: "detail-title", tabindex: "-1" }, title)),
    make("div", { class: "buttons" }, buttons,
      make("button", { type: "button", "aria-label": "Close", title: "Close (Esc)", on: { click: closeFinding } }, "\u2715")));
}

function detail(finding) {
  const group = finding.group, clause = DATA.clauses[group.clause], own = DATA.clauses[finding.own];
  const shown = order();
  const at = shown.indexOf(finding);
  const step = (by, label, mark) => make("button", {
    type: "button", "aria-label": label, title: label, disabled: at < 0 || !shown[at + by], on: { click: () => stepFinding(by) },
  }, mark);
  const version = own.version === null ? "" : `-${own.version}`;
  const fault = VERDICTS.get(group.verdict).fault;
  return [
    head(group.verdict, finding.sentence, [step(-1, "Previous finding (k)", "\u2191"), step(1, "Next finding (j)", "\u2193")]),
    make("p", { class: "lead" }, `${group.run.name} \u00b7 ${own.standard} ${own.operator}${version} \u00b7 ${finding.type}`),
    make("p", { class: fault ? "why" : "why open" }, make("b", {}, fault ? VERDICTS.get(group.verdict).means : "Not a fault: the standard permits it."), " ", finding.message),
    make("section", {}, make("h3", {}, "The clause"), clauseText(group.clause, group.statement),
      group.clause === finding.own ? null : [make("p", { class: "hint" }, "This case tests a different clause:"), clauseText(finding.own, own.statement)]),
    make("section", {}, make("h3", {}, "This case"), make("p", { class: "hint" }, where(finding)), comparison(finding.expected, finding.actual, finding.index)),
    group.smallest ? smallest(group) : make("section", {}, make("h3", {}, "How to reproduce it"), make("p", {}, "No single call reproduces this finding.")),
    make("section", {}, make("h3", {}, "Case id"), make("p", { class: "id" }, finding.case)),
  ];
}

function clauseText(name, says) {
  const { source, decided } = DATA.clauses[name];
  return make("blockquote", {}, make("p", {}, says), make("footer", {}, make("code", {}, name), ` \u00b7 ${source}`,
    decided ? make("span", { class: "decided" }, "decided by maxops, because the specification leaves the question open") : null));
}

function where(finding) {
  const position = finding.index?.length ? `, the first difference at [${finding.index.join(", ")}]` : "";
  return `Call number ${finding.feed + 1} of the case${position}.`;
}

function smallest(group) {
  const { inputs, attributes, expected, actual, script, reproduced, output } = group.smallest;
  const others = group.findings.length - 1;
  const entries = Object.entries(attributes);
  return make("section", {}, make("h3", {}, "The smallest call that reproduces it"),
    others ? make("p", { class: "hint" }, `It also represents ${counted(others, "other case")}.`) : null,
    make("dl", { class: "inputs" }, Object.entries(inputs).map(([name, side]) => [make("dt", {}, make("code", {}, name), side.text === undefined ? make("span", {}, shape(side)) : null),
      make("dd", {}, side.text ?? (side.values.length ? elementList(side) : "empty"))])),
    entries.length ? make("p", {}, "Attributes: ", make("code", {}, entries.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", "))) : null,
    comparison(expected, actual, null),
    ...(script ? [
      make("h4", {}, "A script without maxops"), scriptBox(script),
      make("p", { class: reproduced ? "reproduced yes" : "reproduced" }, reproduced ? "This script reproduced the finding." : "This script did not reproduce the finding."),
      output ? make("details", {}, make("summary", {}, "Output"), make("pre", { tabindex: "0" }, output)) : null,
    ] : [
      make("p", { class: "hint" }, "This run is abridged: it has one script for each kind of finding. To create this script, run ",
        make("code", {}, `maxops conform RUNTIME --only ${group.findings[0].case}`)),
    ]));
}

function scriptBox(script) {
  const text = make("pre", { tabindex: "0", "aria-label": "Script" }, script);
  const status = make("span", { role: "status", class: "hint" });
  const copy = make("button", { type: "button", class: "copy", on: { click: async () => { status.textContent = await copied(text); } } }, "Copy");
  return make("div", { class: "script" }, make("div", { class: "buttons" }, status, copy), text);
}

// Browsers that deny clipboard access to local files still allow a selection.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text.textContent);
    return "Copied";
  } catch {
    getSelection().selectAllChildren(text);
    return document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
  }
}
