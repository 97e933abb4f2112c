// SPDX-License-Identifier: Apache-2.0
// The page: one clock for its runs, controls, keyboard, lists, and the text alternative.
"use strict";

const [ROW_PX, SPARE_ROWS] = [26, 3]; // of a list
const [REPLAY_S, MARK_S] = [20, 0.25]; // how long a replay takes at first, and the mark of an event is shown
const TEXT_MS = 250; // between two updates of texts while playing
const QUIET = ["resume", "unpause", "other drop", "other recirculation"].map((id) => KIND[id]); // not listed at first

const $ = (id) => document.getElementById(id);
const number = (value, digits = 0) => value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
let CLOCK = { unit: "µs", ns: 1e3, digits: 3 }; // of all times; a long run has a larger unit
const clock = (ns) => `${number(ns / CLOCK.ns, CLOCK.digits)} ${CLOCK.unit}`;
const delay = (ns) => (ns < 1e5 ? `${number(ns)} ns` : `${number(ns / 1e6, 3)} ms`);
const RATES = [["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3], ["b/s", 0]];
const rate = (bps, [unit, by] = RATES.find(([, least]) => bps >= least)) => `${number(bps / (by || 1), 1)} ${unit}`;
const percent = (share) => `${number(100 * share, 1)} %`;
const size = (bytes) => (bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${number(bytes / 1024, 1)} KiB` : `${number(bytes / (1 << 20), 1)} MiB`);
const listed = (parts) => [parts.slice(0, -1).join(", "), ...parts.slice(-1)].filter(Boolean).join(" and ");

/** Makes an element; strings become text, never HTML. */
function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** A description of a moment (Run.describe) in sentences. */
function sentences({ flows, counts, delivered, lost_data, bin, loaded, queues, paused }) {
  const events = KINDS.filter(({ id }, kind) => counts[id] && !QUIET.includes(kind)).map(({ id, many }) => `${number(counts[id])} ${many}`);
  return [
    `${flows.active + flows.draining} flows are active, of which ${flows.draining} drain; ${flows.waiting} have not started, ${flows.finished} have finished.`,
    ...(delivered === null ? [] : [`${number(delivered)} data packets have arrived at their hosts.`]),
    `Until now: ${listed(events) || "no events"}.${lost_data ? ` ${number(lost_data)} full data packets are lost.` : ""}`,
    ...(bin ? [
      `From ${clock(bin.from_ns)} to ${clock(bin.to_ns)}, the most loaded links: ${listed(loaded.map(({ wire, utilisation }) => `${wire} ${percent(utilisation)}`)) || "none"}.`,
      `Longest queues at its end: ${listed(queues.map(({ wire, bytes }) => `${wire} ${size(bytes)}`)) || "none"}; ${paused} ports are paused.`,
    ] : ["Queues and utilisation were not sampled (--sample)."]),
  ];
}

/** A list of buttons, of which only the visible ones are in the document. `row(i)`: text, action, whether it is current. */
class VirtualList {
  constructor(box, row) {
    Object.assign(this, { box, row, space: box.appendChild(element("div", { className: "space" })), length: 0 });
    box.onscroll = () => this.render();
  }

  /** Shows so many rows, and scrolls to one of them. */
  show(length, row = null) {
    this.length = length;
    this.space.style.height = `${length * ROW_PX}px`;
    if (row !== null) this.box.scrollTop = Math.max(0, row * ROW_PX - this.box.clientHeight / 2);
    this.render();
  }

  render() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_PX) - SPARE_ROWS);
    const last = Math.min(this.length, first + Math.ceil(this.box.clientHeight / ROW_PX) + 2 * SPARE_ROWS);
    const focused = this.space.contains(document.activeElement) ? document.activeElement.style.top : null;
    this.space.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, i) => {
      const [textContent, onclick, current] = this.row(first + i);
      const button = element("button", { type: "button", textContent, title: textContent, onclick, ariaCurrent: current ? "true" : null });
      button.style.top = `${(first + i) * ROW_PX}px`;
      return button;
    }));
    if (focused) [...this.space.children].find(({ style }) => style.top === focused)?.focus({ preventScroll: true });
  }
}

class Viewer {
  constructor(runs) {
    this.end = Math.max(...runs.map((run) => run.end_ns));
    if (this.end >= 1e7) CLOCK = this.end < 1e10 ? { unit: "ms", ns: 1e6, digits: 6 } : { unit: "s", ns: 1e9, digits: 9 };
    Object.assign(this, { runs, time: 0, speed: this.end / REPLAY_S, playing: false, chosen: null }); // ns; ns a second
    this.titles = runs.map(({ label }, index) => (runs.length > 1 ? `${"AB"[index]}: ${label}` : label));
    this.kinds = new Set(KINDS.keys().filter((kind) => !QUIET.includes(kind)));
    this.zoom = d3.zoom().on("zoom", ({ transform }) => this.setTransform(transform));
    this.pictures = runs.map((run, index) => this.addPicture(run, this.titles[index]));
    this.flows = new VirtualList($("flows"), (flow) => this.flowRow(flow));
    this.events = new VirtualList($("events"), (index) => this.eventRow(index));
    $("names").append(...runs[0].names.map((value) => element("option", { value })));
    const [sampled, packets] = [runs.some((run) => run.samples.length), runs.some((run) => run.packets)];
    for (const item of document.querySelectorAll("#legend > span")) item.hidden = !(item.matches(".sampled") ? sampled : packets || item.matches(".always"));
    $("find").placeholder = `${runs[0].names[0]}, or flow ${runs[0].column.flow_id[0] ?? 1}`;
    $("queue").textContent = listed(runs.map((run) => size(run.largestQueue)));
    for (const kind of KINDS.keys()) this.addKind(kind);
    this.listen();
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    this.setKinds();
    this.resize();
    new ResizeObserver(() => this.resize()).observe($("pictures"));
    requestAnimationFrame((now) => this.frame(now));
  }

  addPicture(run, title) {
    const canvas = element("canvas", { tabIndex: 0, role: "img", ariaLabel: `Network of ${title}; the section Now describes it` });
    const caption = element("figcaption", {}, [title, run.case, ...run.settings].join(" · "));
    $("pictures").append(element("figure", {}, caption, canvas));
    const picture = new Picture(canvas, run);
    canvas.onclick = ({ offsetX, offsetY }) => this.choose(picture.at([offsetX, offsetY]));
    d3.select(canvas).call(this.zoom).on("dblclick.zoom", null);
    return picture;
  }

  addKind(kind) {
    const total = this.runs.reduce((rows, run) => rows + run.kinds[kind].rows.length, 0);
    const onchange = ({ target }) => this.setKinds(this.kinds[target.checked ? "add" : "delete"](kind));
    const box = element("input", { type: "checkbox", checked: this.kinds.has(kind), disabled: !total, onchange });
    $("kinds").append(element("label", {}, box, element("b", {}, KINDS[kind].mark), ` ${KINDS[kind].id} (${number(total)})`));
  }

  listen() {
    const samples = () => (this.runs[0].samples.length ? this.runs[0].samples : this.times);
    const zoomBy = (factor) => d3.select(this.pictures[0].canvas).call(this.zoom.scaleBy, factor);
    const actions = {
      play: () => this.play(!this.playing), first: () => this.seek(0), last: () => this.seek(this.end),
      back: () => this.jump(samples(), -1), forward: () => this.jump(samples(), 1),
      previous: () => this.jump(this.times, -1), next: () => this.jump(this.times, 1),
      slower: () => this.setSpeed(this.speed / 2), faster: () => this.setSpeed(this.speed * 2),
      closer: () => zoomBy(1.5), farther: () => zoomBy(1 / 1.5), fit: () => this.fit(),
      theme: () => this.setTheme(document.documentElement.dataset.theme !== "dark"),
      help: () => ($("keys").open ? $("keys").close() : $("keys").showModal()),
    };
    for (const [id, action] of Object.entries(actions)) $(id).onclick = action;
    document.onkeydown = (event) => {
      const { target, key } = event;
      const button = document.querySelector(`[data-keys~="${CSS.escape(key === " " ? "Space" : key)}"]`);
      const isTaken = target.matches("#find") || (key === " " && target.matches("button, input, summary"));
      if (!button || isTaken || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      button.click();
    };
    $("time").max = this.end;
    $("time").oninput = ({ target }) => this.seek(Number(target.value));
    $("find").onchange = ({ target: { value } }) => {
      const { names, column } = this.runs[0];
      const [, flow] = /^flow (\d+)$/.exec(value.trim()) ?? [];
      const id = flow ? column.flow_id.indexOf(Number(flow)) : names.indexOf(value.trim());
      if (id >= 0) this.choose({ type: flow ? "flow" : "node", id });
      if (id >= 0 && !flow) this.look(this.pictures[0].layout.boxes[id], 2 * OPEN_HOSTS);
    };
  }

  setTheme(isDark) {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    for (const picture of this.pictures) picture.setTheme();
    this.dirty = true;
  }

  resize() {
    for (const picture of this.pictures) picture.resize();
    if (!this.transform || this.fitted) this.fit();
    this.update();
  }

  setTransform(transform) {
    for (const { canvas } of this.pictures) canvas.__zoom = transform; // where d3.zoom keeps it
    Object.assign(this, { transform, fitted: false, dirty: true });
  }

  fit() {
    const transform = this.pictures[0].fit();
    this.zoom.scaleExtent([transform.k * 0.8, Math.max(transform.k * 4, 4 * OPEN_ALL)]);
    this.setTransform(transform);
    this.fitted = true;
  }

  /** Shows a place at this scale or a larger one. */
  look({ x, y }, scale) {
    const [{ width, height }] = this.pictures;
    const middle = d3.zoomIdentity.translate(width / 2, height / 2);
    this.setTransform(middle.scale(Math.max(scale, this.transform.k)).translate(-x, -y));
  }

  play(playing) {
    if (playing && this.time >= this.end) this.time = 0;
    this.playing = playing;
    $("play").textContent = playing ? "Pause" : "Play";
    $("text").ariaLive = playing ? "off" : "polite";
    this.update();
  }

  /** Draws, and writes all texts anew, in the next frame. */
  update() {
    Object.assign(this, { dirty: true, written: -Infinity });
  }

  setSpeed(speed) {
    Object.assign(this, { speed: Math.min(this.end, Math.max(1, speed)), dirty: true });
  }

  seek(time) {
    this.time = Math.min(this.end, Math.max(0, time));
    this.update();
  }

  /** Pauses at the next or previous one of some times. */
  jump(times, direction) {
    this.play(false);
    const time = times[direction > 0 ? rank(times, this.time) : rank(times, this.time - 1e-6) - 1];
    this.seek(time ?? (direction > 0 ? this.end : 0));
  }

  setKinds() {
    const timeOf = ([index, row]) => this.runs[index].column.time_ns[row];
    const rows = this.runs.flatMap((run, index) => run.events.filter((row) => this.kinds.has(run.kindOf[row])).map((row) => [index, row]));
    this.rows = rows.sort((a, b) => timeOf(a) - timeOf(b)); // run and row of each event
    this.times = this.rows.map(timeOf);
    this.update();
  }

  frame(now) {
    if (this.playing) this.time = Math.min(this.end, this.time + (Math.min(100, now - this.last) / 1000) * this.speed);
    if (this.playing && this.time === this.end) this.play(false);
    if (this.playing || this.dirty) this.draw(now);
    this.last = now;
    requestAnimationFrame((next) => this.frame(next));
  }

  draw(now) {
    const { time, transform, kinds, chosen, speed } = this;
    for (const picture of this.pictures) picture.draw({ time, transform, kinds, chosen, markNs: speed * MARK_S });
    $("clock").textContent = `${clock(time)} of ${clock(this.end)}`;
    $("speed").textContent = `1 s shows ${clock(speed)}`;
    $("time").value = time;
    this.dirty = false;
    if (now - this.written > TEXT_MS) this.write(now);
  }

  write(now) {
    this.written = now;
    $("time").ariaValueText = clock(this.time);
    const each = (lines) => this.runs.flatMap((run, index) => [
      ...(this.runs.length > 1 ? [element("h3", {}, this.titles[index])] : []),
      ...lines(run).map((line) => (typeof line === "string" ? element("p", {}, line) : line)),
    ]);
    const { type } = this.chosen ?? {};
    $("text").replaceChildren(element("p", {}, `Time ${clock(this.time)}.`), ...each((run) => sentences(run.describe(this.time))));
    if (!$("chosen").contains(document.activeElement)) {
      $("chosen").replaceChildren(...(type ? each((run) => this[`${type}Lines`](run, this.chosen)) : []));
    }
    this.flows.show(this.runs[0].column.flow_id.length);
    this.events.show(this.rows.length, rank(this.times, this.time) - 1);
  }

  eventRow(index) {
    const [number, row] = this.rows[index];
    const run = this.runs[number];
    const { time_ns, flow, frame, psn, count, flow_id } = run.column;
    const { id } = KINDS[run.kindOf[row]];
    const wire = run.wireOf[row];
    const text = [
      clock(time_ns[row]), this.runs.length > 1 && "AB"[number], id, flow[row] >= 0 && `flow ${flow_id[flow[row]]}`,
      /drop|lost|recirculation/.test(id) && run.frames[frame[row]], psn[row] >= 0 && `PSN ${psn[row]}`,
      wire < 0 ? run.names[run.nodeOf(row)] : run.wireName(wire), count[row] !== 1 && `${count[row]} times`,
    ].filter(Boolean).join(" · ");
    return [text, () => this.seek(time_ns[row]), time_ns[row] === this.time];
  }

  flowRow(flow) {
    const [{ names, column }] = this.runs;
    const states = this.runs.map((run) => run.flowState(flow, this.time)).join(" | ");
    const ends = `${names[column.flow_src[flow]]} → ${names[column.flow_dst[flow]]}`;
    const isChosen = this.chosen?.type === "flow" && this.chosen.id === flow;
    const choose = () => this.choose(isChosen ? null : { type: "flow", id: flow });
    return [`flow ${column.flow_id[flow]} · ${ends} · ${size(column.flow_bytes[flow])} · ${states}`, choose, isChosen];
  }

  /** Chooses a node, a flow or wires; groups open. */
  choose(chosen) {
    if (chosen?.type === "group") this.look(chosen.box, chosen.box.joins ? OPEN_ALL : OPEN_HOSTS);
    else this.chosen = chosen;
    this.update();
  }

  flowLines(run, { id }) {
    const { flow_start_ns, flow_end_ns, wire_target } = run.column;
    const column = (name) => number(run.column[`flow_${name}`][id]);
    const path = run.path(id, this.time).map((wire) => run.names[wire_target[wire]]);
    return [
      `${this.flowRow(id)[0]}. It starts at ${clock(flow_start_ns[id])} and ${flow_end_ns[id] < 0 ? "does not finish" : `ends at ${clock(flow_end_ns[id])}`}.`,
      path.length ? `Its data last came by ${path.join(", ")}.` : "None of its data has arrived yet.",
      ...(run.packets ? [`${number(run.bytesOf[id].until(this.time))} bytes of frames have arrived, headers included.`] : []),
      `In the whole run: ${column("packets")} packets, of which ${column("retransmitted")} retransmissions; ${column("path_changes")} path changes, ${column("drains")} drains, ${column("timeouts")} timeouts.`,
    ];
  }

  wireLines(run, { wires }) {
    const shown = wires.length > 1 ? wires : [wires[0], wires[0] ^ 1];
    const crossing = (_, flow) => run.flowState(flow, this.time) !== "finished" && run.path(flow, this.time).some((wire) => shown.includes(wire));
    const flows = Array.from(run.column.flow_id).filter(crossing);
    return [...shown.map((wire) => this.wireLine(run, wire)), `Flows whose data last came here: ${flows.join(", ") || "none"}.`];
  }

  wireLine(run, wire) {
    const load = run.load(wire, run.binAt(this.time));
    const paused = (load ? load.paused : run.isPaused(wire, this.time)) ? ", paused" : "";
    const link = `${rate(run.column.wire_rate_bps[wire])}, ${delay(run.column.wire_delay_ns[wire])}`;
    return `${run.wireName(wire)}: ${load ? `${percent(load.utilisation)}, queue ${size(load.bytes)}` : "not sampled"}${paused} (${link})`;
  }

  nodeLines(run, { id }) {
    const { flow_src, flow_dst, wire_source } = run.column;
    const wires = Array.from(wire_source.keys()).filter((wire) => wire_source[wire] === id);
    const flows = Array.from(flow_src.keys()).filter((flow) => flow_src[flow] === id || flow_dst[flow] === id);
    const title = `${run.names[id]}, ${id < run.switches ? `${run.roles[id]} switch` : "host"}:`;
    return [title, ...wires.map((wire) => this.wireLine(run, wire)), ...flows.map((flow) => this.flowRow(flow)[0]), ...this.tables(run, id)];
  }

  /** The tables of a switch at the last stop. */
  tables(run, id) {
    const stop = run.state.findLast(({ time_ns }) => time_ns <= this.time);
    const row = (tag, cells) => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
    return (id < run.switches && stop ? stop.listings : []).map(({ title, columns, rows }) => {
      const entries = rows.filter(([name]) => name === run.names[id]);
      const summary = element("summary", {}, `${title} at the stop at ${clock(stop.time_ns)}: ${entries.length}`);
      return element("details", {}, summary, element("table", {}, row("th", columns.slice(1)), ...entries.map((cells) => row("td", cells.slice(1)))));
    });
  }
}

async function start() {
  const texts = Array.from(document.querySelectorAll("script[type='application/gzip']"), (script) => script.textContent);
  const runs = (await Promise.all(texts.map(decode))).map((data) => new Run(data));
  window.tailrace = { viewer: new Viewer(runs), describe: (time) => runs.map((run) => run.describe(time)) };
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => ($("text").textContent = `This page cannot be shown: ${error.message}`));
