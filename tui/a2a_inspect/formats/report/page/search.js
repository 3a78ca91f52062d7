// Text search in messages, payloads, headers and findings, block by block, so that matches appear immediately.

const HITS = 300;
const SOUGHT = {
  row: (record, number) => [number, [record[ROW.place], record[ROW.text]]],
  detail: record => [record.row, [record.payload, ...Object.values(record.facts).map(wordsOf), ...(record.notes || [])]],
  exchange: record => [record?.row ?? -1, (record?.headers || []).map(([, name, value]) => `${name}: ${value}`)],
  finding: record => [record.row, [record.rule, record.summary, ...record.evidence]],
};

class SearchView {
  constructor(needle) {
    this.needle = needle.toLowerCase();
    this.said = make("p", {role: "status"}, "searching…");
    this.list = make("ol", {class: "found"});
    this.parts = [make("h2", {}, `Search: ${needle}`), this.said, this.list];
    this.seen = new Set();
    this.closed = false;
  }

  async start() {
    if (this.needle)
      for (const name of Object.keys(SOUGHT)) await this.through(report.tables[name], SOUGHT[name]);
    const most = this.seen.size >= HITS;
    this.said.textContent = !this.needle ? "Type words to search for." : most ? `the first ${HITS} places` : counted(this.seen.size, "place");
  }

  close() { this.closed = true; }

  async through(table, texts) {
    const escaped = JSON.stringify(this.needle).slice(1, -1);
    for (let block = 0; block < table.ends.length && !this.closed && this.seen.size < HITS; block++) {
      this.said.textContent = `searching… ${table.name} ${block + 1} of ${table.ends.length}, ${counted(this.seen.size, "place")}`;
      const text = await table.text(block);
      if (!text.toLowerCase().includes(escaped)) continue;
      JSON.parse(text).forEach((record, offset) => this.look(...texts(record, table.start(block) + offset)));
    }
  }

  look(row, texts) {
    if (this.seen.has(row) || this.seen.size >= HITS) return;
    const found = texts.find(text => text.toLowerCase().includes(this.needle));
    if (found === undefined) return;
    if (row >= 0) this.seen.add(row);
    const at = found.toLowerCase().indexOf(this.needle), from = Math.max(at - 60, 0), end = at + this.needle.length;
    const words = [from ? "…" : "", found.slice(from, at), make("mark", {}, found.slice(at, end)), found.slice(end, end + 100)];
    const where = make("span", {class: "place"});
    this.list.append(make("li", {}, where, row < 0 ? make("span", {}, words) : make("a", {href: `#r${row}`}, words)));
    if (row >= 0) this.locate(row, where);
  }

  // Name of the frame.
  async locate(row, where) { where.textContent = (await report.tables.row.get(row))[ROW.place]; }
}
