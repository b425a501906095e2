// The expected and the actual result, side by side: an error message, one element, or arrays.

const FEW = 16; // arrays of up to this size are shown in full

function shape(side) {
  return side.type + (side.shape.length ? `[${side.shape.join(", ")}]` : "");
}

function comparison(expected, actual, position) {
  const isMessage = expected.text !== undefined || actual.text !== undefined;
  const at = isMessage ? null : firstDifference(expected, actual, position);
  const parts = [make("div", { class: "pair" }, panel("expected", expected, actual, at), panel("actual", actual, expected, at))];
  if (isMessage) return parts;
  const sameShape = String(expected.shape) === String(actual.shape);
  if (expected.type !== actual.type) parts.push(make("p", { class: "apart" }, `Expected type ${expected.type}, got ${actual.type}.`));
  if (!sameShape) parts.push(make("p", { class: "apart" }, `Expected shape [${expected.shape.join(", ")}], got [${actual.shape.join(", ")}].`));
  const hasBits = expected.type === actual.type && expected.bits.length && actual.bits.length && DATA.types[expected.type]?.bits;
  if (hasBits && at !== null) parts.push(bitView(expected.type, expected.bits[at], actual.bits[at]));
  if (sameShape && expected.values.length > 1) parts.push(elementTable(expected, actual));
  return parts;
}

// One side: an error message, the element number `at`, or all elements if they cannot be compared one by one.
function panel(name, side, other, at) {
  const body = [];
  if (side.text !== undefined) {
    body.push(make("p", { class: "words-of" }, side.text || "no message"));
  } else {
    const about = !side.values.length ? ", empty" : side.values.length > 1 && at !== null ? `, at ${index(at, side.shape)}` : "";
    body.push(make("p", { class: "hint" }, shape(side) + about));
    const only = at ?? (side.values.length === 1 ? 0 : null);
    if (only !== null) {
      const beside = at !== null && other.type === side.type ? other.bits[at] : undefined;
      body.push(make("p", { class: "value" }, side.values[only]));
      if (side.bits.length) body.push(make("p", { class: "hex" }, "0x", beside ? marked(side.bits[only], beside) : side.bits[only]));
    } else if (side.values.length) {
      body.push(elementList(side));
    }
  }
  return make("div", { class: "side", "data-side": name }, make("h4", {}, name), body);
}

// The row-major number of the element that the finding names, or else of the first element that differs.
function firstDifference(expected, actual, position) {
  if (expected.values.length === 1 && actual.values.length === 1) return 0;
  if (String(expected.shape) !== String(actual.shape)) return null;
  const [one, other] = expected.bits.length && actual.bits.length ? [expected.bits, actual.bits] : [expected.values, actual.values];
  const named = position?.length === expected.shape.length ? position.reduce((flat, at, axis) => flat * expected.shape[axis] + at, 0) : -1;
  if (named >= 0 && one[named] !== other[named]) return named;
  const found = one.findIndex((text, number) => text !== other[number]);
  return found < 0 ? null : found;
}

function index(flat, sizes) {
  const found = [];
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    found.unshift(flat % sizes[axis]);
    flat = Math.floor(flat / sizes[axis]);
  }
  return `[${found.join(", ")}]`;
}

function elementTable(expected, actual) {
  const size = expected.values.length;
  const differs = (number) => (expected.bits.length && actual.bits.length ? expected.bits[number] !== actual.bits[number] : expected.values[number] !== actual.values[number]);
  const numbers = [...Array(size).keys()], different = numbers.filter(differs);
  const box = make("div", {});
  const draw = (shown) => {
    const rows = shown.map((number) => {
      const [one, other] = [expected.bits[number] ?? "", actual.bits[number] ?? ""];
      return make("tr", { class: differs(number) ? "different" : null }, make("th", { scope: "row" }, index(number, expected.shape)),
        make("td", {}, expected.values[number]), make("td", { class: "hex" }, marked(one, other)),
        make("td", {}, actual.values[number]), make("td", { class: "hex" }, marked(other, one)));
    });
    const columns = ["element", "expected", "bits", "actual", "bits"];
    box.replaceChildren(
      make("p", { class: "hint" }, `${different.length} of ${counted(size, "element")} ${different.length === 1 ? "differs" : "differ"}.`),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Elements" }, make("table", { class: "elements" },
        make("thead", {}, make("tr", {}, columns.map((column) => make("th", { scope: "col" }, column)))), make("tbody", {}, rows))),
      shown.length < size ? make("button", { type: "button", on: { click: () => draw(numbers) } }, `Show all ${size}`) : "");
  };
  draw(size <= FEW ? numbers : different.slice(0, FEW));
  return box;
}

function elementList(side) {
  const box = make("ol", { class: "list" });
  const draw = (until) => {
    const rest = side.values.length - until;
    box.replaceChildren(...side.values.slice(0, until).map((value, number) =>
      make("li", {}, value, side.bits.length ? make("span", { class: "hex" }, ` ${side.bits[number]}`) : "")));
    if (rest > 0) box.append(make("li", {}, make("button", { type: "button", on: { click: () => draw(side.values.length) } }, `${rest} more`)));
  };
  draw(FEW);
  return box;
}
