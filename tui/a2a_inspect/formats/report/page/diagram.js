// One row of the sequence diagram: times at the left, then the lifelines with an arrow or a mark and its text.

const HEIGHT = 36, ARROW = 26, EDGE = 68, NARROWEST = 138;
const TIMES = 207; // the columns before the picture and their gaps, `.row` in diagram.css
const BESIDE_DETAIL = 0.68; // of the width is for the diagram, `.split` in style.css
const FAINT = new Set(["end", "comment", "control", "log"]);
const BAD = new Set(["error", "undecodable"]);
const SIGNS = {wait: "?", missed: "≠", interruption: "×", handoff: "»", finding: "!", pause: "┊", turn: "┼"};

function widthOf(lanes, room) { return Math.max(room - TIMES, (lanes.length - 1) * NARROWEST + 2 * EDGE); }

// Whether all lanes fit next to the detail of a row; otherwise the detail is below the diagram.
function fitsBeside(lanes, room) { return TIMES + (lanes.length - 1) * NARROWEST + 2 * EDGE <= room * BESIDE_DETAIL; }

function placesOf(lanes, width) {
  if (lanes.length === 1) return [width / 2];
  return lanes.map((_, number) => EDGE + number * (width - 2 * EDGE) / (lanes.length - 1));
}

function diagramHead(lanes, width) {
  const places = placesOf(lanes, width), between = (places[1] ?? width) - places[0];
  const room = number => number && number < lanes.length - 1 ? between - 12 : Math.min(between - 12, 2 * EDGE - 8);
  const names = lanes.map(([name, part], number) =>
    placed(make("span", {class: `lane ${part}`, title: `${name} (${part})`}, name),
      {left: `${places[number]}px`, maxWidth: `${lanes.length > 1 ? room(number) : width}px`}));
  return make("div", {class: "head", "aria-hidden": "true"},
    make("span", {class: "since"}, "seconds"), make("span", {class: "before"}, "after"),
    make("span", {class: "where"}, "frame"), placed(make("div", {class: "picture"}, names), {width: `${width}px`}));
}

function kindOf(row) {
  const kind = row[ROW.kind];
  return BAD.has(kind) ? "bad" : kind === "cut" ? "cut" : FAINT.has(kind) ? "faint" : "plain";
}

// Text for screen readers.
function spoken(row, lanes) {
  const what = row[ROW.what], name = number => lanes[number] ? lanes[number][0] : "";
  if (what === "frame")
    return `${row[ROW.since]} s, ${row[ROW.place]}, ${name(row[ROW.source])} to ${name(row[ROW.target])}: ${row[ROW.text]}`;
  return `${what}${row[ROW.severity] ? "" : ":"} ${row[ROW.text]}`;
}

function diagramRow(row, lanes, width) {
  const what = row[ROW.what], places = placesOf(lanes, width);
  const frame = what === "frame";
  const picture = draw("svg", {width, height: HEIGHT, "aria-hidden": "true"}, lifelines(places, what));
  const box = placed(make("div", {class: "picture"}, picture), {width: `${width}px`});
  if (frame) message(row, places, width, picture, box);
  else mark(row, places, width, picture, box);
  return make("div", {class: `row ${what} ${frame ? kindOf(row) : row[ROW.severity]}`, "aria-label": spoken(row, lanes)},
    make("span", {class: "since"}, frame ? row[ROW.since] : ""), make("span", {class: "before"}, row[ROW.before]),
    make("span", {class: "where"}, row[ROW.place]), box);
}

function lifelines(places, what) {
  return places.map(x => draw("line", {class: `life ${what === "pause" ? "waiting" : ""}`, x1: x, x2: x, y1: 0, y2: HEIGHT}));
}

function message(row, places, width, picture, box) {
  const a = places[row[ROW.source]], b = places[row[ROW.target]];
  const label = make("span", {class: "label", title: row[ROW.text]}, row[ROW.text]);
  if (a === b) {
    const right = a < width / 2, side = right ? 1 : -1;
    picture.append(draw("path", {class: "shaft", d: `M${a} 12 h${side * 26} v14 h${-side * 18}`}), head(a + side * 2, -side));
    box.append(placed(label, right ? {left: `${a + 34}px`, right: "0", top: "8px", textAlign: "left"}
      : {left: "0", width: `${a - 34}px`, top: "8px", textAlign: "right"}));
    return;
  }
  const side = a < b ? 1 : -1;
  picture.append(draw("circle", {class: "tail", cx: a, cy: ARROW, r: 3}),
    draw("line", {class: "shaft", x1: a, x2: b - side * 9, y1: ARROW, y2: ARROW}));
  picture.append(row[ROW.kind] === "cut" ? cross(b - side * 9) : head(b, side));
  box.append(placed(label, labelPlace(Math.min(a, b) + 10, Math.max(a, b) - 10, width)));
}

// The text over its arrow. Longer text extends over the lifelines at its right, or at its left if it ends at the last one.
function labelPlace(left, right, width) {
  const room = {minWidth: `${right - left}px`}, before = left > EDGE + 10 ? 0 : left, after = width - right > EDGE + 10;
  return after ? {...room, left: `${left}px`, maxWidth: `${width - left}px`}
    : {...room, right: `${width - right}px`, maxWidth: `${right - before}px`};
}

function head(x, side) {
  return draw("path", {class: "tip", d: `M${x} ${ARROW} l${-side * 10} -5 v10 z`});
}

function cross(x) {
  return draw("path", {class: "cross", d: `M${x - 5} ${ARROW - 5} l10 10 m0 -10 l-10 10`});
}

function mark(row, places, width, picture, box) {
  const what = row[ROW.what], x = places[row[ROW.source]];
  const words = make("span", {class: "said"}, row[ROW.text]);
  if (what === "pause" || what === "turn") {
    if (what === "turn") picture.append(draw("line", {class: "turning", x1: 0, x2: width, y1: HEIGHT / 2, y2: HEIGHT / 2}));
    box.append(make("div", {class: "note across"}, words));
    return;
  }
  const left = x <= width / 2;
  const note = make("div", {class: "note", title: row[ROW.text]},
    left ? [make("b", {}, SIGNS[what]), words] : [words, make("b", {}, SIGNS[what])]);
  box.append(placed(note, left ? {left: `${x - 12}px`, maxWidth: `${width - x}px`}
    : {right: `${width - x - 12}px`, maxWidth: `${x}px`}));
}
