// From the data to the page, and again whenever the address changes.

let filtered = ""; // what the matrix was drawn for

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
  event.preventDefault(); // the address is the filters'
  toFindings();
});
byId("detail").addEventListener("close", closeFinding);
byId("detail").addEventListener("click", (event) => {
  if (event.target === byId("detail")) closeFinding(); // beside it
});

for (const id of ["all", "skip", "keys"]) byId(id).hidden = false; // without scripts there is the short table alone
drawRuns();
drawStandards();
drawLegend();
drawFilters();
drawReasons();
render();
