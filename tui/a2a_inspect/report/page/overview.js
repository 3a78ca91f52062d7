// What the report is about, and what was found, by rule.

const FIRST = 100; // findings of a rule that are listed at once

function overview() {
  const index = report.index, counts = index.counts;
  const said = ["conversation", "exchange", "frame", "task", "finding"].map(noun => counted(counts[`${noun}s`], noun));
  const sessions = index.sessions.map(each => facts([
    ["session", String(each.number)], ["started", each.started], ["between", each.ways.join(", ")],
    ["capture", each.capture], ["redaction", each.redaction.join(", ")],
  ]));
  const rules = index.rules.map(rulePart);
  return [
    make("h2", {}, "Overview"),
    make("p", {}, said.join(", "), index.what ? `: only ${index.what}` : ""),
    ...sessions,
    make("h2", {}, "Findings"),
    make("p", {}, badges(index.grave)),
    ...(rules.length ? rules : [make("p", {}, "nothing was found")]),
  ];
}

function rulePart(rule) {
  const list = make("ol", {class: "found"});
  const more = make("button", {type: "button", hidden: true}, "more");
  const part = folded(`${rule.id} ${rule.title} (${rule.count.toLocaleString("en")})`, {class: "rule"}, ...ruleText(rule), list, more);
  let reading = null;
  const go = async () => {
    reading ||= findingsOf(rule.id);
    for (let left = FIRST; left; left--) {
      const {value, done} = await reading.next();
      more.hidden = done;
      if (done) return;
      list.append(findingLine(value));
    }
  };
  part.addEventListener("toggle", () => { if (part.open && !reading) go(); });
  more.addEventListener("click", go);
  return part;
}

async function* findingsOf(rule) {
  const table = report.tables.finding;
  for (let block = 0; block < table.ends.length; block++)
    for (const finding of await table.block(block)) if (finding.rule === rule) yield finding;
}

function findingLine(finding) {
  const where = finding.connection ? `session ${finding.place}, connection ${finding.connection}` : finding.place;
  return make("li", {},
    make("span", {class: `badge ${finding.severity}`}, finding.severity), " ",
    finding.row < 0 ? where : make("a", {href: `#r${finding.row}`}, where), " ", finding.summary,
    finding.evidence.length ? make("span", {class: "dim"}, ` ${finding.evidence.join("; ")}`) : "");
}
