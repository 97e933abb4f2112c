// SPDX-License-Identifier: Apache-2.0
// Draws a moment of a run on a canvas. Colours are those of the style sheet.
"use strict";

const STEPS = 12; // of the colours of utilisation
const [NODE_PX, QUEUE_PX, DOT_PX, MARK_PX, MARGIN_PX, NEAR_PX, NARROW_PX] = [5, 5, 3.4, 15, 40, 8, 70];
const [NAMED_HOSTS, NAMED_SWITCHES] = [21, 26]; // pixels per unit from which nodes have names
const FONT = "11px system-ui, sans-serif";
const TURN = 2 * Math.PI;
// Colour and unit shape of the classes of frames; a second polygon is a hole.
const regular = (corners, radius = 1, turned = 0) => Array.from({ length: corners }, (_, i) =>
  [radius * Math.sin(TURN * (i / corners + turned)), -radius * Math.cos(TURN * (i / corners + turned))]);
const SHAPES = {
  data: ["ink", regular(16)], retransmission: ["ink", regular(16, 1.4), regular(16, 0.7)], trimmed: ["special", regular(3, 1.7)],
  ack: ["ack", regular(12, 0.65)], cnp: ["special", regular(4, 1.5)], xoff: ["queue", regular(4, 1.4, 0.125)],
  xon: ["queue", regular(4, 1.4, 0.125), regular(4, 0.7, 0.125)], other: ["soft", regular(3, 1.2, 0.5)],
};
const [HOST, SWITCH] = [regular(16, 4), regular(4, 9, 0.125)];
function trace(ctx, polygon, x, y, size = 1) {
  polygon.forEach(([dx, dy], i) => ctx[i ? "lineTo" : "moveTo"](x + dx * size, y + dy * size));
  ctx.closePath();
}
const clamp = (value, middle, size) => Math.min(middle + size / 2, Math.max(middle - size / 2, value));

class Picture {
  constructor(canvas, run) {
    Object.assign(this, { canvas, run, ctx: canvas.getContext("2d"), layout: new Layout(run) });
  }

  setTheme() {
    const style = getComputedStyle(document.documentElement);
    const names = ["card", "ink", "soft", "box", "chosen", "queue", "ack", "special"];
    this.colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`)]));
    const ramp = d3.piecewise(d3.interpolateRgb, [0, 1, 2, 3].map((number) => style.getPropertyValue(`--load${number}`)));
    this.scale = Array.from({ length: STEPS }, (_, step) => ramp(step / (STEPS - 1)));
  }

  resize() {
    this.ratio = window.devicePixelRatio || 1;
    [this.width, this.height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    [this.canvas.width, this.canvas.height] = [this.width * this.ratio, this.height * this.ratio];
  }

  /** The transform that shows everything. */
  fit() {
    const { left, right, top, bottom } = this.layout.extent;
    const scale = Math.min(this.width / (right - left), this.height / (bottom - top));
    return d3.zoomIdentity.translate(this.width / 2, this.height / 2).scale(scale).translate(-(left + right) / 2, -(top + bottom) / 2);
  }

  isVisible(x, y, w = 0, h = 0) {
    return Math.abs(x - this.width / 2) < (this.width + w) / 2 + MARGIN_PX && Math.abs(y - this.height / 2) < (this.height + h) / 2 + MARGIN_PX;
  }

  /** Draws; `moment` has time, markNs (how long marks are shown), kinds (with marks), chosen, transform. */
  draw(moment) {
    const { ctx, ratio } = this;
    Object.assign(this, moment);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    [ctx.fillStyle, ctx.font, ctx.textAlign, ctx.textBaseline] = [this.colours.card, FONT, "center", "middle"];
    ctx.fillRect(0, 0, this.width, this.height);
    this.view = this.layout.view(this.transform.k);
    this.placeEdges();
    this.drawChosen();
    this.drawEdges();
    if (this.run.packets) this.drawFrames();
    this.drawBoxes();
    this.drawMarks();
  }

  /** Ends of visible edges in pixels, a little to the right of their direction. */
  placeEdges() {
    this.lines = [];
    for (const edge of this.view.edges) {
      const { from, to } = edge;
      // a group in the middle has its ends of links opposite those of the others
      const [inner, outer] = from.joins ? [from, to] : [to, from];
      const near = [clamp(outer.x, inner.x, inner.w), clamp(outer.y, inner.y, inner.h)];
      const ends = [near, [clamp(near[0], outer.x, outer.w), clamp(near[1], outer.y, outer.h)]].map((end) => this.transform.apply(end));
      const [[x1, y1], [x2, y2]] = from.joins ? ends : ends.reverse();
      edge.line = null;
      if (!this.isVisible(x1, y1) && !this.isVisible(x2, y2)) continue;
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [dx, dy] = [((y1 - y2) / length) * 2, ((x2 - x1) / length) * 2];
      edge.line = [x1 + dx, y1 + dy, x2 + dx, y2 + dy];
      edge.length = length;
      this.lines.push(edge);
    }
  }

  /** Of an edge in the bin: utilisation of its wires together, longest queue, whether a port is paused. */
  load(edge, bin) {
    let [sent, capacity, bytes, paused] = [0, 0, 0, false];
    for (const wire of edge.wires) {
      const load = this.run.load(wire, bin);
      sent += load?.sent ?? 0;
      capacity += load?.capacity ?? 0;
      bytes = Math.max(bytes, load?.bytes ?? 0);
      paused ||= load ? load.paused : this.run.isPaused(wire, this.time);
    }
    return { utilisation: capacity ? sent / capacity : null, bytes, paused };
  }

  drawEdges() {
    const bin = this.run.binAt(this.time);
    const byStep = Array.from({ length: STEPS + 1 }, () => []);
    const [queues, pauses] = [[], []];
    for (const edge of this.lines) {
      const { utilisation, bytes, paused } = this.load(edge, bin);
      byStep[utilisation === null ? STEPS : Math.min(STEPS - 1, Math.round(utilisation * (STEPS - 1)))].push(edge.line);
      if (bytes) {
        const from = edge.from.w ? 0 : Math.min(0.3, (NODE_PX + 4) / edge.length);
        queues.push(this.part(edge.line, from, from + (0.5 - from) * Math.max(0.06, bytes / this.run.largestQueue)));
      }
      if (paused) pauses.push(this.part(edge.line, 0.5, 0.5));
    }
    byStep.forEach((lines, step) => this.stroke(lines, this.scale[step] ?? this.colours.soft, step < STEPS ? 0.8 + (2.2 * step) / STEPS : 0.5));
    this.stroke(queues, this.colours.queue, QUEUE_PX);
    for (const [x, y] of pauses) this.write("‖", x, y, this.colours.card);
  }

  /** The part of a line between two shares of its length. */
  part([x1, y1, x2, y2], from, to) {
    return [x1 + (x2 - x1) * from, y1 + (y2 - y1) * from, x1 + (x2 - x1) * to, y1 + (y2 - y1) * to];
  }

  stroke(lines, colour, width) {
    const { ctx } = this;
    if (!lines.length) return;
    [ctx.strokeStyle, ctx.lineWidth] = [colour, width];
    ctx.beginPath();
    for (const [x1, y1, x2, y2] of lines) {
      ctx.moveTo(x1, y1);
      ctx.lineTo(x2, y2);
    }
    ctx.stroke();
  }

  drawFrames() {
    const { ctx, run, colours } = this;
    const frames = new Map(); // by class; those of the chosen flow are larger
    run.eachFlight(this.time, (row, share) => {
      const line = this.view.edgeOf[run.column.place[row]]?.line;
      if (!line) return;
      const name = run.frames[run.column.frame[row]];
      const isChosen = this.chosen?.type === "flow" && run.column.flow[row] === this.chosen.id;
      if (!frames.has(name)) frames.set(name, []);
      frames.get(name).push([...this.part(line, share, share), DOT_PX * (isChosen ? 1.8 : 1)]);
    });
    for (const [name, list] of frames) {
      const [colour, ...polygons] = SHAPES[name] ?? SHAPES.other;
      [ctx.fillStyle, ctx.strokeStyle, ctx.lineWidth] = [colours[colour], colours.card, 1.5];
      ctx.beginPath();
      for (const [x, y, , , radius] of list) for (const polygon of polygons) trace(ctx, polygon, x, y, radius);
      ctx.stroke();
      ctx.fill("evenodd");
    }
  }

  /** Below the links: the chosen node, link, or path of a flow. */
  drawChosen() {
    if (!this.chosen) return;
    const { type, id } = this.chosen;
    const { flow_src, flow_dst } = this.run.column;
    const wires = type === "flow" ? this.run.path(id, this.time) : type === "wire" ? this.chosen.wires : [];
    const nodes = type === "flow" ? [flow_src[id], flow_dst[id]] : type === "node" ? [id] : [];
    this.stroke(wires.map((wire) => this.view.edgeOf[wire]?.line).filter(Boolean), this.colours.chosen, 12);
    this.ctx.fillStyle = this.colours.chosen;
    for (const box of nodes.map((node) => this.view.boxOf[node])) {
      const [x, y] = this.transform.apply([box.x, box.y]);
      const [w, h] = [box.w * this.transform.k + 26, box.h * this.transform.k + 26];
      this.ctx.fillRect(x - w / 2, y - h / 2, w, h);
    }
  }

  drawBoxes() {
    const { ctx, colours, run, transform } = this;
    for (const box of this.view.boxes) {
      const [x, y] = transform.apply([box.x, box.y]);
      const [w, h] = [box.w * transform.k, box.h * transform.k];
      if (!this.isVisible(x, y, w, h)) continue;
      const isHost = box.node >= run.switches;
      [ctx.strokeStyle, ctx.fillStyle, ctx.lineWidth] = [colours.ink, colours.box, 1.2];
      ctx.beginPath();
      if (box.node < 0) ctx.roundRect(x - w / 2, y - h / 2, w, h, 5);
      else trace(ctx, isHost ? HOST : SWITCH, x, y);
      ctx.fill();
      ctx.stroke();
      if (box.node < 0 && w < NARROW_PX) this.write(box.label.replace(/\D/g, ""), x, y - 8);
      else if (box.node < 0) [box.label, box.about].forEach((text, line) => this.write(text, x, y - 14 + 14 * line));
      else if (transform.k >= (isHost ? NAMED_HOSTS : NAMED_SWITCHES)) this.write(box.label, x, y + this.labelSide(box) * 16);
    }
  }

  /** Writes a text in a box around a point, or to the right of it; returns the width of the box. */
  write(text, x, y, ground = "transparent", ink = this.colours.ink, isRight = false) {
    const { ctx } = this;
    const shown = text.slice(0, 24);
    const width = Math.max(MARK_PX, ctx.measureText(shown).width + 6);
    const left = isRight ? x : x - width / 2;
    ctx.fillStyle = ground;
    ctx.fillRect(left, y - MARK_PX / 2, width, MARK_PX);
    ctx.fillStyle = ink;
    ctx.fillText(shown, left + width / 2, y + 0.5);
    return width;
  }

  /** Where a node's label is: on the outer side of a host, on the inner side of a switch; 1: below it. */
  labelSide(box) {
    return (box.node >= this.run.switches) === (box.y > 0 || this.layout.isRing) ? 1 : -1;
  }

  /** Events of the last moments: below a host's name, beside a switch, in a group. */
  drawMarks() {
    const { ctx, run, colours } = this;
    const marks = new Map(); // number by box and kind
    for (const kind of this.kinds) {
      const { times, rows } = run.kinds[kind];
      for (let i = rank(times, this.time) - 1; i >= 0 && times[i] > this.time - this.markNs; i--) {
        const node = run.nodeOf(rows[i]);
        const box = this.view.boxOf[this.transform.k < NAMED_HOSTS ? this.layout.switchOf[node] : node];
        if (!marks.has(box)) marks.set(box, new Map());
        marks.get(box).set(kind, (marks.get(box).get(kind) ?? 0) + 1);
      }
    }
    for (const [box, counts] of marks) {
      const isNarrow = box.node < 0 && box.w * this.transform.k < NARROW_PX;
      const texts = isNarrow ? [`${sum([...counts.values()])}`] : Array.from(counts, ([kind, count]) => KINDS[kind].mark + (count > 1 ? ` ${count}` : ""));
      let [x, y] = this.transform.apply([box.x, box.y]);
      if (!this.isVisible(x, y)) continue;
      const isHost = box.node >= run.switches;
      if (isHost) [x, y] = [x - MARK_PX / 2, y + 33 * this.labelSide(box)];
      else [x, y] = box.node < 0 ? [x - (isNarrow ? 9 : 13 * texts.length), y + (isNarrow ? 8 : 16)] : [x + 10, y];
      for (const text of texts) {
        const width = this.write(text, x, y, colours.ink, colours.card, true);
        if (isHost) y += (MARK_PX + 1) * this.labelSide(box);
        else x += width + 2;
      }
    }
  }

  /** The node, group or wires at a point of the canvas; null: there is nothing. */
  at(point) {
    const [x, y] = this.transform.invert(point);
    const isIn = (box) => box.node < 0 && Math.abs(box.x - x) <= box.w / 2 && Math.abs(box.y - y) <= box.h / 2;
    const box = this.view.tree.find(x, y, (2 * NEAR_PX) / this.transform.k) ?? this.view.boxes.find(isIn);
    if (box) return box.node < 0 ? { type: "group", box } : { type: "node", id: box.node };
    let [nearest, least] = [null, NEAR_PX];
    for (const { line, length, wires } of this.lines) {
      const share = ((point[0] - line[0]) * (line[2] - line[0]) + (point[1] - line[1]) * (line[3] - line[1])) / length ** 2;
      const [cx, cy] = this.part(line, Math.min(1, Math.max(0, share)), 0);
      const distance = Math.hypot(cx - point[0], cy - point[1]);
      if (distance < least) [nearest, least] = [{ type: "wire", wires }, distance];
    }
    return nearest;
  }
}
