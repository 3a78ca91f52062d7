// A list of any length: only visible rows exist. Keys and the pointer select a row, and screen readers get its position.

const BESIDE = 12; // rows that are made before and after those in sight
const KEYS = {ArrowDown: 1, ArrowUp: -1, j: 1, k: -1};

class LongList {
  // of: label, height (px), count, load(first, last), row(record, index), head(), chosen(index), opened(index)
  constructor(box, of) {
    this.box = box;
    this.of = of;
    this.current = -1;
    this.turn = 0;
    this.space = make("div", {class: "space", role: "presentation"});
    filled(box, {class: "long", role: "listbox", tabindex: "0", "aria-label": of.label}, []);
    box.replaceChildren(...(of.head ? [of.head()] : []), this.space);
    placed(this.space, {height: `${of.count * of.height}px`});
    box.addEventListener("scroll", () => this.render(), {passive: true});
    box.addEventListener("keydown", event => this.key(event));
    this.space.addEventListener("click", event => {
      const row = event.target.closest("[data-index]");
      if (row) this.choose(Number(row.dataset.index), true);
    });
    this.watch = new ResizeObserver(() => requestAnimationFrame(() => this.resized())); // a scroll bar may resize it again
    this.watch.observe(box);
  }

  close() { this.watch.disconnect(); }

  resized() {
    if (this.of.head) this.box.firstElementChild.replaceWith(this.of.head());
    this.render();
  }

  get above() { return this.of.head ? this.box.firstElementChild.offsetHeight : 0; }

  async render() {
    const turn = ++this.turn, {height, count} = this.of;
    const first = Math.max(Math.floor(this.box.scrollTop / height) - BESIDE, 0);
    const last = Math.min(Math.ceil((this.box.scrollTop + this.box.clientHeight) / height) + BESIDE, count);
    const records = await this.of.load(first, last);
    if (turn !== this.turn) return;
    this.space.replaceChildren(...records.map((record, offset) => this.made(record, first + offset)));
    this.box.setAttribute("aria-activedescendant", this.current < 0 ? "" : `${this.box.id}-${this.current}`);
  }

  made(record, index) {
    const row = filled(this.of.row(record, index), {
      id: `${this.box.id}-${index}`, "data-index": index, role: "option", "aria-selected": String(index === this.current),
      "aria-posinset": index + 1, "aria-setsize": this.of.count,
    }, []);
    return placed(row, {top: `${index * this.of.height}px`, height: `${this.of.height}px`});
  }

  choose(index, open = false) {
    if (!this.of.count) return Promise.resolve();
    this.current = Math.min(Math.max(index, 0), this.of.count - 1);
    const top = this.current * this.of.height, room = this.box.clientHeight - this.above;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.of.height > this.box.scrollTop + room) this.box.scrollTop = top + this.of.height - room;
    this.of.chosen?.(this.current);
    if (open) this.of.opened?.(this.current);
    return this.render();
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(Math.floor(this.box.clientHeight / this.of.height) - 2, 1);
    const by = {...KEYS, PageDown: page, PageUp: -page}[event.key];
    if (by) this.choose(this.current + by);
    else if (event.key === "Home") this.choose(0);
    else if (event.key === "End") this.choose(this.of.count - 1);
    else if (event.key === "Enter") this.of.opened?.(Math.max(this.current, 0));
    else if (!this.of.pressed?.(event.key, this.current)) return;
    event.preventDefault();
  }
}
