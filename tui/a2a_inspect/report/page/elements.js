// Elements with text in them. Texts are text nodes, always.

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

// Where an element stands: a style attribute would be against the policy, a property is not.
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
    .map(name => make("span", {class: `badge ${name}`}, `${grave[name]} ${name}`));
}
