// Elements. Names, errors and scripts come from third parties: they become text nodes, never markup.

function make(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const byId = (id) => document.getElementById(id);

function fill(id, ...children) {
  byId(id).replaceChildren(...children.flat(2));
}

function counted(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

// A table in a scrollable box, so that the page itself never scrolls sideways.
function table(columns, rows, label) {
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    make("table", {},
      make("thead", {}, make("tr", {}, columns.map((column) => make("th", { scope: "col" }, column)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell) => make("td", {}, cell)))))));
}
