// Elements with text. Text is always inserted as text nodes.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(each => each !== "" && each !== null && each !== undefined));
  return element;
}

function make(tag, attributes, ...children) { return filled(document.createElement(tag), attributes, children); }

function draw(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// Position of an element: the content security policy forbids style attributes, but not style properties.
function placed(element, styles) {
  Object.assign(element.style, styles);
  return element;
}

function facts(pairs) {
  const list = make("dl", {class: "facts"});
  for (const [name, value] of pairs)
    if (value !== "" && value !== undefined && value !== null) list.append(make("dt", {}, name), make("dd", {}, value));
  return list;
}

function folded(title, attributes, ...children) {
  return make("details", attributes, make("summary", {}, title), ...children);
}

function counted(count, noun) { return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`; }

function badges(grave) {
  return ["error", "warning", "info"].filter(name => grave[name])
    .map(name => make("span", {class: `badge ${name}`}, name === "info" ? `${grave[name]} info` : counted(grave[name], name)));
}

// Returns `1:8.5` as `#8.5`; the session is kept if there are several.
function placeWords(place) { return `#${report.index.sessions.length > 1 ? place : place.slice(place.indexOf(":") + 1)}`; }

// Returns the text with each place in it, as `#8.4`, as a link; a place without a session is in `session`.
function linked(text, session) {
  return text.split(/((?<![\w#&/])#(?:\d{1,9}:)?\d{1,12}(?:\.\d{1,12})?(?!\w))/).map((words, number) =>
    number % 2 ? make("a", {href: words.includes(":") ? words : `#${session}:${words.slice(1)}`}, words) : words);
}

// A table with columns of text, and of numbers (`right`).
function grid(titles, right, rows) {
  const cell = (tag, words, column) => make(tag, {class: right.includes(column) ? "right" : false, scope: tag === "th" && "col"}, words);
  return make("div", {class: "wide"}, make("table", {class: "grid"},
    make("thead", {}, make("tr", {}, titles.map((title, column) => cell("th", title, column)))),
    make("tbody", {}, rows.map(row => make("tr", {}, row.map((words, column) => cell("td", words, column)))))));
}

// A link to a row of the report, or only the words if there is no such row.
function rowLink(row, words) { return row < 0 ? words : make("a", {href: `#r${row}`}, words); }

// Formats `2026-11-22T02:06:22.970952616Z` for reading; the facts of each frame have the digits after the milliseconds.
function timeWords(utc) { return utc && `${utc.slice(0, 10)} ${utc.slice(11, 23)} UTC`; }
