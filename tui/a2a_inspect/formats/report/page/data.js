"use strict";
// Records from the blocks of this file (report/tables.py). No script of this page turns text into markup.

const ROW = {
  what: 0, since: 1, before: 2, source: 3, target: 4, text: 5, place: 6, kind: 7, severity: 8, exchange: 9, more: 10,
};
const MARKS = new Set(["wait", "missed", "interruption", "handoff", "finding"]);
const KEPT = 64; // blocks of a table that stay unpacked: about 16 MiB

async function unpacked(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

class Table {
  constructor(name, ends) {
    this.name = name;
    this.ends = ends || [];
    this.kept = new Map(); // block -> promise of its records
    this.read = new Map(); // block -> its records
  }

  get length() { return this.ends.length ? this.ends[this.ends.length - 1] : 0; }

  text(block) { return unpacked(`${this.name}-${block}`); }

  start(block) { return block ? this.ends[block - 1] : 0; }

  blockOf(number) {
    let low = 0, high = this.ends.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > number) high = middle; else low = middle + 1;
    }
    return low;
  }

  block(number) {
    let records = this.kept.get(number);
    if (records) {
      this.kept.delete(number);
    } else {
      records = this.text(number).then(text => {
        const made = JSON.parse(text);
        if (this.kept.has(number)) this.read.set(number, made);
        return made;
      });
      while (this.kept.size >= KEPT) {
        const oldest = this.kept.keys().next().value;
        this.kept.delete(oldest);
        this.read.delete(oldest);
      }
    }
    this.kept.set(number, records);
    return records;
  }

  async get(number) {
    if (number < 0 || number >= this.length) return undefined;
    const block = this.blockOf(number);
    return (await this.block(block))[number - this.start(block)];
  }

  async range(first, last) {
    const found = [];
    last = Math.min(last, this.length);
    while (first < last) {
      const block = this.blockOf(first);
      const records = await this.block(block);
      const until = Math.min(last, this.ends[block]);
      for (; first < until; first++) found.push(records[first - this.start(block)]);
    }
    return found;
  }

  // Returns only records that are decompressed already, at once, because printing cannot wait.
  there(first, last) {
    const found = [];
    for (; first < Math.min(last, this.length); first++) {
      const block = this.blockOf(first);
      if (!this.read.has(block)) break;
      found.push(this.read.get(block)[first - this.start(block)]);
    }
    return found;
  }
}

const report = {index: null, tables: {}};

async function openReport() {
  report.index = JSON.parse(await unpacked("index"));
  for (const name of ["talk", "row", "detail", "exchange", "finding", "task"])
    report.tables[name] = new Table(name, report.index.tables[name]);
}

// Returns the first row of an exchange, or the row of its frame `seq`; -1 if it is not in the report.
async function rowAt(place, seq) {
  const {exchange, row} = report.tables;
  for (let block = 0; block < exchange.ends.length; block++) {
    const at = (await exchange.block(block)).findIndex(each => each?.place === place);
    if (at < 0) continue;
    const first = (await exchange.block(block))[at].row, wanted = `#${place.split(":")[1]}.${seq}`;
    if (seq === undefined || first < 0) return first;
    const {first: start, rows} = await report.tables.talk.get(await talkOf(first));
    for (let number = first; number < start + rows; number++)
      if ((await row.get(number))[ROW.place] === wanted) return number;
    return -1;
  }
  return -1;
}

// Returns the conversation that has this row: the last one that begins at it or before it.
async function talkOf(row) {
  const talks = report.tables.talk;
  let low = 0, high = talks.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((await talks.get(middle)).first <= row) low = middle; else high = middle - 1;
  }
  return low;
}
