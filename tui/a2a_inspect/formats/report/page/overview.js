// The contents of the report: the findings by rule, then tables of latencies, tasks and failures.

const FIRST = 100; // findings of a rule that are listed at once
const FEW = 40; // findings that are listed without being asked for: those of the gravest rules

// `lost` is a place in the address that the report does not have, or empty.
function overview(lost) {
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
    lost ? make("p", {class: "trouble", role: "status"}, `${lost} is not in this report.`) : "",
    make("p", {}, said.join(", "), counts.failed ? `; ${counted(counts.failed, "exchange")} ended in an error` : "", index.what ? `: only ${index.what}` : ""),
    make("h2", {}, "Findings ", badges(index.grave)),
    ...(rules.length ? rules : [make("p", {}, counts.frames ? "None: what passed broke no rule." : "None: nothing has passed.")]),
    ...latencyParts(),
    ...taskParts(),
    ...failureParts(),
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
    rowLink(finding.row, where), rule ? ` ${finding.rule} ` : " ", linked(finding.summary, sessionOf(finding)),
    finding.evidence.length ? make("span", {class: "dim"}, " ", linked(finding.evidence.join("; "), sessionOf(finding))) : "");
}

function sessionOf(finding) { return finding.place.split(":")[0]; }

const RANKS = ["p50", "p95", "p99", "max"];

function latencyParts() {
  const {latencies, omitted} = report.index;
  if (!latencies.length) return [];
  const measures = [["first", "first event"], ["took", "whole call"]].filter(([name]) => latencies.some(each => each[name].length));
  const titles = ["operation", "binding", "calls", "failed", ...measures.flatMap(([, words]) => [`${words}: ${RANKS[0]}`, ...RANKS.slice(1)])];
  const rows = latencies.map(each => [
    each.operation, each.manner, each.count.toLocaleString("en"), each.failed ? each.failed.toLocaleString("en") : "",
    ...measures.flatMap(([name]) => RANKS.map((_, number) => each[name][number] ?? "")),
  ]);
  return [make("h2", {}, "Latencies"), make("p", {class: "dim"}, "from the end of the request; of a live call, from its start"),
    grid(titles, titles.map((_, column) => column).slice(2), rows),
    omitted.calls ? make("p", {class: "dim"}, `and ${counted(omitted.calls, "call")} of other kinds`) : ""];
}

const TASKS = 50; // tasks that are listed at once

function taskParts() {
  const table = report.tables.task;
  if (!table.length) return [];
  const list = grid(["task", "outcome", "states", "duration", "artifacts", "messages", "first exchange"], [3, 5], []);
  const more = make("button", {type: "button", hidden: true});
  let listed = 0;
  const go = async () => {
    const tasks = await table.range(listed, listed += TASKS);
    list.querySelector("tbody").append(...grid([], [3, 5], tasks.map(taskCells)).querySelectorAll("tbody tr"));
    more.hidden = listed >= table.length;
    more.textContent = `${Math.min(TASKS, table.length - listed)} more of ${counted(table.length - listed, "task")}`;
  };
  more.addEventListener("click", go);
  go();
  return [make("h2", {}, "Tasks"), list, more];
}

function taskCells(task) {
  return [make("span", {title: `agent ${task.agent}`}, task.id), task.outcome, task.states, task.took, task.artifacts.join("; "),
    task.messages.toLocaleString("en"), task.place ? rowLink(task.row, placeWords(task.place)) : ""];
}

function failureParts() {
  const {failures, omitted} = report.index;
  if (!failures.length) return [];
  const places = each => [each.places.map(([place, row], number) => [number ? " " : "", rowLink(row, placeWords(place))]).flat(),
    each.count > each.places.length ? make("span", {class: "dim"}, ` and ${(each.count - each.places.length).toLocaleString("en")} more`) : ""].flat();
  const rows = failures.map(each => [each.operation, each.manner, each.outcome, each.code, each.message, each.count.toLocaleString("en"), places(each)]);
  return [make("h2", {}, "Failures"), grid(["operation", "binding", "outcome", "code", "first message", "calls", "first places"], [5], rows),
    omitted.failures ? make("p", {class: "dim"}, `and ${counted(omitted.failures, "call")} with other codes`) : ""];
}
