// Keyboard shortcuts, which are disabled in text fields.

function stepFinding(by) {
  const shown = order();
  const next = shown[shown.indexOf(drawn) + by];
  if (drawn && next) go({ open: next.case, of: next.group.run.name }, { replace: true });
}

function stepRow(by) {
  const rows = [...document.querySelectorAll("#findings .finding")].filter((row) => row.offsetParent);
  const at = rows.indexOf(document.activeElement);
  if (by > 0 && at === rows.length - 1) {
    const more = document.querySelector("#findings > .more");
    if (more) {
      more.click();
      return stepRow(by);
    }
  }
  const row = at < 0 ? rows[0] : rows[at + by];
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
  return undefined;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  const isOpen = byId("detail").open;
  const by = { j: 1, k: -1 }[event.key];
  if (by) (isOpen ? stepFinding : stepRow)(by);
  else if (event.key === "/" && !isOpen) byId("filters").elements.text.focus();
  else return;
  event.preventDefault();
});
