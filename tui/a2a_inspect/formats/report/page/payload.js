// Indents and colours JSON as text: numbers keep all their digits, and truncated JSON is shown up to its end.

const TOKEN = /"(?:[^"\\]|\\.)*"?|[[\]{},:]|[^\s"[\]{},:]+/gs;
const DEEPEST = 40;

function paintedJson(text) {
  const made = make("pre", {class: "payload", tabindex: "0", "aria-label": "payload"});
  const tokens = text.match(TOKEN) || [];
  let depth = 0, plain = "";
  const line = () => "\n" + "  ".repeat(Math.min(depth, DEEPEST));
  const put = (name, words) => {
    if (plain) made.append(plain);
    plain = "";
    made.append(make("span", {class: name}, words));
  };
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at], after = tokens[at + 1];
    if (token === "{" || token === "[") {
      plain += token;
      if (after === "}" || after === "]") { plain += after; at++; continue; }
      depth++;
      plain += line();
    } else if (token === "}" || token === "]") {
      depth = Math.max(depth - 1, 0);
      plain += line() + token;
    } else if (token === ",") {
      plain += "," + line();
    } else if (token === ":") {
      plain += ": ";
    } else if (token[0] === '"') {
      put(after === ":" ? "key" : "string", token);
    } else {
      put("number", token);
    }
  }
  made.append(plain);
  return made;
}

function painted(detail) {
  if (!detail.payload) return make("p", {class: "dim"}, "no payload");
  if (detail.form === "json") return paintedJson(detail.payload);
  return make("pre", {class: "payload", tabindex: "0", "aria-label": "payload"}, detail.payload);
}
