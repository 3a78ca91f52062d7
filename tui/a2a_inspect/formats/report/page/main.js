// The view in the address: `#overview`, `#t3` a conversation, `#r512` one of its rows, `#find=words`; `#8`, `#8.5`, `#2:8.5` an
// exchange or frame as every command names it.

const PLACE = /^#(?:(\d+):)?(\d+)(?:\.(\d+))?$/;

const page = {view: null, main: document.getElementById("main"), talks: null, turn: 0};

async function route() {
  const turn = ++page.turn;
  const [, kind, rest] = location.hash.match(/^#(t|r|find=)(.*)$/) || [, "", ""];
  if (kind === "find=") return show(new SearchView(sought(rest)));
  const place = location.hash.match(PLACE);
  const [number, row] = place ? await placeOf(place) : await asked(kind, Number(rest));
  const talk = await report.tables.talk.get(number);
  if (turn !== page.turn) return undefined; // somebody went on meanwhile
  if (talk) return showTalk(number, talk, row < 0 ? row : row - talk.first);
  return show({parts: overview(place ? location.hash : ""), start() {}, close() {}});
}

function sought(written) {
  try { return decodeURIComponent(written); } catch { return written; } // somebody wrote it by hand
}

async function placeOf([, session, exchange, seq]) {
  const row = await rowAt(`${session ?? report.index.sessions[0]?.number}:${exchange}`, seq);
  return row < 0 ? [-1, -1] : [await talkOf(row), row];
}

// Returns the conversation in the address and a row of it, or -1. A report of one conversation opens it.
async function asked(kind, number) {
  if (kind === "t") return [number, -1];
  if (kind === "r" && number >= 0 && number < report.tables.row.length) return [await talkOf(number), number];
  return [report.tables.talk.length === 1 && !location.hash ? 0 : -1, -1];
}

function show(view, ...place) {
  page.view?.close();
  page.view = view;
  page.main.replaceChildren(...view.parts);
  page.main.scrollTop = 0;
  return view.start(...place);
}

async function showTalk(number, talk, row) {
  if (page.talks.current !== number) page.talks.choose(number);
  if (page.view instanceof TalkView && page.view.list && page.view.number === number && row >= 0) return page.view.list.choose(row);
  return show(new TalkView(number, talk), row);
}

function talkRow(talk) {
  const states = talk.states.filter(Boolean).join("; ") || talk.outcome;
  return make("div", {class: "talk", title: `${talk.title}\n${talk.begin}\n${states}`},
    make("b", {}, talk.title), make("span", {}, talk.begin), make("span", {class: states.startsWith("error") ? "error" : "dim"}, states),
    make("span", {}, make("span", {class: "dim"}, `${talk.began.slice(11, 19)}  ${counted(talk.frames, "frame")} `), badges(talk.grave)));
}

function startTalks() {
  const table = report.tables.talk;
  document.getElementById("talks-title").textContent = counted(table.length, "conversation");
  page.talks = new LongList(document.getElementById("talks"), {
    label: "conversations", height: 86, count: table.length, load: (first, last) => table.range(first, last), row: talkRow,
    opened: number => { location.hash = `#t${number}`; },
  });
}

function startHead() {
  const index = report.index, needle = document.getElementById("needle"), theme = document.getElementById("theme");
  document.getElementById("name").textContent = index.name;
  document.getElementById("made").textContent = index.tool;
  document.getElementById("search").addEventListener("submit", event => {
    event.preventDefault();
    location.hash = `#find=${encodeURIComponent(needle.value)}`;
  });
  theme.addEventListener("change", () => { document.documentElement.dataset.theme = theme.value; });
  document.getElementById("print").addEventListener("click", () => window.print());
  addEventListener("beforeprint", () => page.view?.print?.());
  addEventListener("keydown", event => {
    if (event.target === needle) {
      if (event.key === "Escape") (document.getElementById("diagram") || page.main).focus();
    } else if (event.key === "/") {
      event.preventDefault();
      needle.select();
    } else if (event.key === "Escape") {
      (document.getElementById("diagram") || page.main).focus();
    }
  });
}

openReport().then(async () => {
  startHead();
  startTalks();
  addEventListener("hashchange", route);
  await route();
  document.documentElement.dataset.ready = "yes";
}).catch(wrong => {
  page.main.replaceChildren(make("p", {class: "trouble"}, `The report cannot be read: ${wrong}. It needs a browser of 2024 or later.`));
});
