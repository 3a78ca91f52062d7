// The contents of the report and the findings by rule.

const FIRST = 100; // findings of a rule that are listed at once
const FEW = 40; // findings that are listed without being asked for: those of the gravest rules

function overview() {
  const index = report.index, counts = index.counts;
  const said = ["conversation", "exchange", "frame", "task", "finding"].map(noun => counted(counts[`${noun}s`], noun));
  const sessions = index.sessions.map(each => facts([
    ["session", String(each.number)], ["started", timeWords(each.started)], ["between", each.ways.join(", ")],
    ["capture", each.capture], ["redaction", each.redaction.join(", ")],
  ]));
  let left = FEW;
  const rules = index.rules.map(rule => rulePart(rule, (left -= rule.count) >= 0));
  return [
    make("h2", {}, "Overview"),
    make("p", {}, said.join(", "), counts.failed ? `; ${counted(counts.failed, "exchange")} ended in an error` : "", index.what ? `: only ${index.what}` : ""),
    make("h2", {}, "Findings ", badges(index.grave)),
    ...(rules.length ? rules : [make("p", {}, counts.frames ? "None: what passed broke no rule." : "None: nothing has passed.")]),
    make("h2", {}, sessions.length === 1 ? "Session" : "Sessions"),
    ...sessions,
  ];
}

function rulePart(rule, open) {
  const list = make("ol", {class: "found"});
  const more = make("button", {type: "button", hidden: true}, "more");
  const title = [make("b", {class: rule.severity}, rule.id), ` ${rule.title} `, make("span", {class: "dim"}, `(${rule.count.toLocaleString("en")})`)];
  const part = folded(title, {class: "rule"}, list, more, rule.what ? folded("What this rule says", {}, ...ruleText(rule)) : "");
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
  part.open = open;
  if (open) go();
  return part;
}

async function* findingsOf(rule) {
  const table = report.tables.finding;
  for (let block = 0; block < table.ends.length; block++)
    for (const finding of await table.block(block)) if (finding.rule === rule) yield finding;
}

// With `rule`, the rule's id is shown too, because it is not in the heading.
function findingLine(finding, rule = false) {
  const where = finding.connection ? `session ${finding.place}, connection ${finding.connection}` : placeWords(finding.place);
  return make("li", {},
    make("span", {class: `badge ${finding.severity}`}, finding.severity), " ",
    finding.row < 0 ? where : make("a", {href: `#r${finding.row}`}, where), rule ? ` ${finding.rule} ` : " ", finding.summary,
    finding.evidence.length ? make("span", {class: "dim"}, ` ${finding.evidence.join("; ")}`) : "");
}
