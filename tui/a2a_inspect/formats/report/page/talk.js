// A conversation: its tasks over time, its diagram, and the details of the selected row.

const TOLD = 5; // findings that are named above the diagram
const PRINTED = 2000; // rows of the diagram on paper
const PAPER = 1030; // px of a diagram on paper, A4 across

class TalkView {
  constructor(number, talk) {
    this.number = number;
    this.talk = talk;
    this.box = make("div", {id: "diagram"});
    this.aside = make("section", {class: "detail", "aria-label": "Detail", tabindex: "-1"});
    this.printed = make("div", {class: "printed"});
    this.found = make("ul", {class: "found", "aria-label": "Findings"});
    const words = [report.index.sessions.length > 1 ? `session ${talk.session}` : "", timeWords(talk.began), counted(talk.exchanges, "exchange"), counted(talk.frames, "frame"),
      talk.operations.join(", ")];
    this.parts = [
      make("h2", {}, talk.title),
      make("p", {class: "dim"}, words.filter(Boolean).join("  ·  "), " ", badges(talk.grave)),
      ...(talk.findings[0] < talk.findings[1] ? [this.found] : []),
      talk.tasks.length === 0 ? "" : folded(counted(talk.tasks.length, "task"), {open: talk.tasks.length < 4, class: "tasks"}, ...timelines(talk)),
      this.printed, this.split = make("div", {class: "split"}, this.box, this.aside),
    ];
  }

  // Call after the parts are in the page. `row` is relative to the conversation; -1: no row is selected.
  async start(row) {
    const {talk} = this, table = report.tables.row;
    await this.tellFound(); // first: it moves the diagram
    if (this.closed) return; // somebody went on meanwhile
    const width = () => widthOf(talk.lanes, this.box.clientWidth);
    this.watch = new ResizeObserver(() => this.split.classList.toggle("stacked", !fitsBeside(talk.lanes, page.main.clientWidth)));
    this.watch.observe(page.main);
    this.list = new LongList(this.box, {
      label: `sequence diagram of ${talk.title}`, height: HEIGHT, count: talk.rows,
      load: (first, last) => table.range(talk.first + first, talk.first + last),
      row: record => diagramRow(record, talk.lanes, width()),
      head: () => diagramHead(talk.lanes, width()),
      chosen: index => this.tell(index),
      opened: () => this.aside.focus(),
      pressed: (key, at) => key === "e" || key === "E" ? (this.hop(at, key === "e" ? 1 : -1), true) : false,
    });
    await this.list.choose(Math.max(row, 0));
    if (row < 0) this.box.scrollTop = 0;
    await table.range(talk.first, talk.first + Math.min(talk.rows, PRINTED)); // there when somebody prints
  }

  // The findings at the top, because the diagram may be long.
  async tellFound() {
    const [first, end] = this.talk.findings;
    const told = await report.tables.finding.range(first, Math.min(end, first + TOLD));
    this.found.replaceChildren(...told.map(each => findingLine(each, true)));
    if (end - first > TOLD) this.found.append(make("li", {class: "dim"}, `and ${end - first - TOLD} more: e goes from one to the next`));
  }

  close() {
    this.closed = true;
    this.list?.close();
    this.watch?.disconnect();
  }

  async tell(index) {
    const asked = this.asked = this.talk.first + index;
    history.replaceState(null, "", `#r${asked}`);
    const parts = await detailOf(this.talk, asked);
    if (asked === this.asked) this.aside.replaceChildren(...parts);
  }

  // Selects the next or the previous mark.
  async hop(index, by) {
    const {first, rows} = this.talk;
    for (let at = index + by; at >= 0 && at < rows; at += by)
      if (MARKS.has((await report.tables.row.get(first + at))[ROW.what])) return this.list.choose(at);
  }

  // On paper all rows are shown.
  print() {
    const {talk} = this, rows = report.tables.row.there(talk.first, talk.first + Math.min(talk.rows, PRINTED));
    const width = Math.max(PAPER - TIMES, widthOf(talk.lanes, 0));
    this.printed.replaceChildren(make("div", {class: "heads"}, diagramHead(talk.lanes, width)),
      make("div", {class: "rows"}, rows.map(row => diagramRow(row, talk.lanes, width))));
    if (rows.length < talk.rows) this.printed.append(make("p", {}, `the first ${rows.length} of ${talk.rows} rows`));
  }
}
