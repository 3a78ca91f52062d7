// A task's states as a bar over the time of its conversation, with what it missed; the same in words beneath.

const STATES = new Set(["submitted", "working", "completed", "failed", "canceled", "rejected", "input-required", "auth-required"]);
const MOST = 50; // tasks that are drawn; of more it is told how many

function timelines(talk) {
  const times = talk.tasks.flatMap(task => [...task.states.map(([at]) => at), task.end]);
  const from = Math.min(0, ...times), until = Math.max(talk.span, ...times, from + 0.001);
  const share = at => 100 * (at - from) / (until - from);
  const made = talk.tasks.slice(0, MOST).map(task => timeline(task, share, until));
  if (talk.tasks.length > MOST) made.push(make("p", {class: "dim"}, `and ${talk.tasks.length - MOST} more tasks`));
  return made;
}

function timeline(task, share, until) {
  const bar = draw("svg", {class: "bar", height: 34, role: "img", "aria-label": `states of task ${task.id}`},
    draw("rect", {class: "ground", x: 0, y: 6, width: "100%", height: 22}));
  task.states.forEach(([at, name], number) => {
    const next = number + 1 < task.states.length ? task.states[number + 1][0] : Math.max(task.end, at);
    const place = {x: `${share(at)}%`, width: `${Math.max(share(next) - share(at), 0.3)}%`};
    bar.append(draw("svg", {...place, y: 6, height: 22}, draw("title", {}, name),
      draw("rect", {class: `state ${STATES.has(name) ? name : "other"}`, width: "100%", height: 22}),
      draw("text", {class: "name", x: 6, y: 15}, name)));
  });
  for (const [at, words] of task.missed)
    bar.append(draw("svg", {x: `${share(at)}%`, y: 0, width: 16, height: 34, class: "missing"},
      draw("title", {}, words), draw("path", {d: "M0 0 h12 l-6 6 h-6 z M0 0 v34"}), draw("text", {x: 4, y: 33}, "≠")));
  return make("figure", {class: "task"},
    make("figcaption", {}, make("b", {}, `task ${task.id}`), ` agent ${task.agent}`,
      task.context ? ` context ${task.context}` : ""),
    bar,
    facts([
      ["states", task.states.map(([, name, when]) => `${name} ${when}`).join("  →  ")],
      ["generations", task.generations],
      ["artifacts", task.artifacts.join("; ")],
    ]));
}
