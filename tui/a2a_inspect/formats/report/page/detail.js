// Details of a row next to the diagram: the frame with its payload, the exchange with its headers, the rule of a finding.

const NAMES = {task_id: "task", context_id: "context", message_id: "message", artifact_id: "artifact", rpc_id: "rpc id"};

function wordsOf(value) { return typeof value === "object" ? JSON.stringify(value) : String(value); }

function factList(told) {
  return facts(Object.entries(told).map(([name, value]) => [NAMES[name] || name.replaceAll("_", " "), wordsOf(value)]));
}

async function detailOf(talk, number) {
  const row = await report.tables.row.get(number);
  const parts = [];
  if (row[ROW.what] === "frame") parts.push(...await frameParts(talk, number, row));
  else if (row[ROW.what] === "finding" && row[ROW.more] >= 0)
    parts.push(...findingParts(await report.tables.finding.get(row[ROW.more])));
  else parts.push(make("h3", {}, row[ROW.what]), make("p", {}, row[ROW.text]));
  const exchange = await report.tables.exchange.get(row[ROW.exchange]);
  if (exchange) parts.push(exchangePart(exchange));
  return parts;
}

async function frameParts(talk, number, row) {
  const detail = await report.tables.detail.get(row[ROW.more]);
  const [from, to] = [row[ROW.source], row[ROW.target]].map(lane => talk.lanes[lane]?.[0] ?? "");
  const parts = [make("h3", {}, `frame ${row[ROW.place]}`), make("p", {}, row[ROW.text]), make("p", {class: "dim"}, `${from} → ${to}`)];
  if (!detail) return [...parts, make("p", {class: "trouble"}, "the frame was deleted while the report was written")];
  for (const note of detail.notes || []) parts.push(make("p", {class: "noted"}, note));
  for (const finding of await about(number, row)) parts.push(...findingParts(finding, "h4"));
  parts.push(make("h4", {}, "Payload"));
  if (detail.cut) parts.push(make("p", {class: "dim"}, detail.cut));
  parts.push(painted(detail), folded("Facts", {}, factList(detail.facts)));
  return parts;
}

// Returns the findings below a frame.
async function about(number, row) {
  const found = [];
  for (const next of await report.tables.row.range(number + 1, number + 40)) {
    if (next[ROW.what] === "frame" || next[ROW.what] === "pause" || next[ROW.exchange] !== row[ROW.exchange]) break;
    if (next[ROW.what] === "finding" && next[ROW.place] === row[ROW.place] && next[ROW.more] >= 0)
      found.push(await report.tables.finding.get(next[ROW.more]));
  }
  return found;
}

function findingParts(finding, level = "h3") {
  const rule = report.index.rules.find(each => each.id === finding.rule);
  return [
    make(level, {class: finding.severity}, `${finding.severity} ${finding.rule} ${rule?.title ?? ""}`),
    make("p", {}, linked(finding.summary, sessionOf(finding))),
    facts([["evidence", finding.evidence.length ? linked(finding.evidence.join("; "), sessionOf(finding)) : ""], ["confidence", finding.confidence], ["at", timeWords(finding.at)]]),
    ...ruleText(rule),
  ];
}

function ruleText(rule) {
  if (!rule?.what) return [];
  return [make("p", {class: "rule"}, rule.what), make("p", {class: "rule"}, rule.why),
    make("p", {class: "dim"}, `specification: ${rule.section}${rule.draft ? " (draft)" : ""}`)];
}

function exchangePart(exchange) {
  const fields = make("table", {}, exchange.headers.map(([side, name, value]) =>
    make("tr", {}, make("td", {class: "dim"}, side), make("th", {scope: "row"}, name), make("td", {}, value))));
  return folded(`Exchange ${placeWords(exchange.place)} ${exchange.title}`, {},
    make("p", {}, [exchange.manner, exchange.outcome, exchange.took].filter(Boolean).join("  ")),
    exchange.notes.map(note => make("p", {class: "noted"}, note)), factList(exchange.facts),
    exchange.headers.length ? make("h4", {}, "Headers") : "", exchange.headers.length ? fields : "");
}
