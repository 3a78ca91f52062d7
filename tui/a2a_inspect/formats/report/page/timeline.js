// A task's states as a bar over the time of its conversation, with missed generations, and the same as text below.

const STATES = new Set(["submitted", "working", "completed", "failed", "canceled", "rejected", "input-required", "auth-required"]);
const OVER = new Set(["completed", "failed", "canceled", "rejected"]); // nothing comes after: they last
const AFTER = 0.12; // of the time is drawn beyond the last frame, so that the last state is seen
const MOST = 50; // tasks that are drawn; of more it is told how many

function timelines(talk) {
  const tasks = talk.tasks.slice(0, MOST);
  const times = tasks.flatMap(task => [...task.states.map(([at]) => at), task.end]);
  const from = Math.min(0, ...times), last = Math.max(talk.span, ...times, from + 0.001);
  const until = last + AFTER * (last - from);
  const share = at => 100 * (at - from) / (until - from);
  const made = tasks.map(task => timeline(task, share, until, talk, tasks.length > 1));
  if (talk.tasks.length > MOST) made.push(make("p", {class: "dim"}, `and ${counted(talk.tasks.length - MOST, "more task")}`));
  return made;
}

function timeline(task, share, until, talk, brief) {
  const words = facts([
    ["states", task.states.map(([, name, when]) => `${name} ${when}`).join("  →  ")],
    ["generations", task.generations ? linked(task.generations, talk.session) : ""],
    ["artifacts", task.artifacts.join("; ")],
  ]);
  const bar = make("div", {class: "bar", role: "img", "aria-label": `states of task ${task.id}`});
  task.states.forEach(([at, name], number) => {
    const rest = OVER.has(name) ? until : Math.max(task.end, at);
    const next = number + 1 < task.states.length ? task.states[number + 1][0] : rest;
    const place = {left: `${share(at)}%`, width: `${Math.max(share(next) - share(at), 0.3)}%`};
    bar.append(placed(make("span", {class: `state ${STATES.has(name) ? name : "other"}`, title: name}, name), place));
  });
  for (const [at, words] of task.missed)
    bar.append(placed(draw("svg", {width: 16, height: 34, class: "missing"},
      draw("title", {}, words), draw("path", {d: "M0 0 h12 l-6 6 h-6 z M0 0 v34"}), draw("text", {x: 4, y: 33}, "≠")),
    {left: `${share(at)}%`}));
  const name = make("b", {}, `task ${task.id}`), whose = `agent ${task.agent}${task.context ? ` context ${task.context}` : ""}`;
  if (!brief) return make("figure", {class: "task"}, make("figcaption", {}, name, ` ${whose}`), bar, words);
  return make("figure", {class: "task brief"},
    make("figcaption", {}, folded(name, {}, make("p", {class: "dim"}, whose), words)), bar);
}
