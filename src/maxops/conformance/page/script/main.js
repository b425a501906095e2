// Draws the page from its data, and redraws it when the address changes.

let filtered = ""; // the filters of the drawn matrix

function render() {
  const filters = JSON.stringify([state.standard, state.operator, state.type]);
  if (filters !== filtered) drawMatrix();
  else markCell();
  filtered = filters;
  showFilters();
  showFindings();
  showDetail();
}

byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the filters use the address
  toFindings();
});
byId("detail").addEventListener("close", closeFinding);
byId("detail").addEventListener("click", (event) => {
  if (event.target === byId("detail")) closeFinding(); // a click outside of the dialog
});

for (const id of ["all", "skip", "keys"]) byId(id).hidden = false; // without scripts, only the short table is visible
drawRuns();
drawStandards();
drawLegend();
drawFilters();
drawReasons();
render();
