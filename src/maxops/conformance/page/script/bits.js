// Bits of one element: expected above actual, split into sign, exponent and mantissa, with differences marked.

const BLOCK = 4; // bits that stay together when a line breaks

function binary(hex, bits) {
  return BigInt(`0x${hex}`).toString(2).padStart(bits, "0");
}

function fields(type) {
  const format = DATA.types[type];
  if (format.kind !== "float") return [{ name: format.kind === "bool" ? "byte" : "bits", length: format.bits }];
  const { bits, exponent } = format;
  return [{ name: "sign", length: 1 }, { name: "exponent", length: exponent }, { name: "mantissa", length: bits - 1 - exponent }];
}

function bitView(type, expectedHex, actualHex) {
  const { bits } = DATA.types[type];
  const expected = binary(expectedHex, bits), actual = binary(actualHex, bits);
  let from = 0;
  const parts = fields(type).map((field) => {
    const part = { ...field, expected: expected.slice(from, from + field.length), actual: actual.slice(from, from + field.length) };
    part.different = [...part.expected].filter((bit, place) => bit !== part.actual[place]).length;
    from += field.length;
    return part;
  });
  const sentence = inWords(parts, bits);
  return make("div", { class: "bits" },
    make("div", { class: "words", role: "img", "aria-label": `expected bits ${expected}, actual ${actual}` },
      make("div", { class: "sides" }, make("span", {}, "\u00a0"), make("span", {}, "expected"), make("span", {}, "actual")),
      make("div", { class: "fields" }, parts.map(bitField))),
    make("p", { class: "hint" }, sentence));
}

function inWords(parts, bits) {
  const different = parts.filter((part) => part.different);
  const sum = different.reduce((all, part) => all + part.different, 0);
  if (!sum) return "No bit differs.";
  const where = different.map((part) => (part.name === "sign" ? "the sign" : `${part.different} in the ${part.name}`));
  const verb = sum === 1 ? "differs" : "differ";
  return parts.length === 1 ? `${sum} of ${bits} bits ${verb}.` : `${sum} of ${bits} bits ${verb}: ${where.join(", ")}.`;
}

function bitField(part) {
  const blocks = [];
  // the first block has the remainder, so that blocks end at byte boundaries
  for (let from = 0, to = part.length % BLOCK || BLOCK; from < part.length; from = to, to += BLOCK) {
    blocks.push(make("span", { class: "block" }, bitLine(part.expected, part.actual, from, to), bitLine(part.actual, part.expected, from, to)));
  }
  return make("div", { class: "field", "data-field": part.name }, make("span", { class: "label" }, part.name), make("div", { class: "blocks" }, blocks));
}

function bitLine(bits, other, from, to) {
  return make("span", { class: "line" }, marked(bits.slice(from, to), other.slice(from, to)));
}

// A text in which the characters that differ from another text are marked.
function marked(text, other) {
  return [...text].map((letter, place) => (letter === other[place] ? letter : make("mark", {}, letter)));
}
