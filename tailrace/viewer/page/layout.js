// SPDX-License-Identifier: Apache-2.0
// Where nodes are drawn, and which boxes stand for them at a zoom. The unit is the space of a host.
"use strict";

const RINGS = ["dragonfly", "slim-fly"];
const SWITCH_SPACE = 1.6; // the least
const IN_ROW = 6; // groups; more are drawn above and below the switches that join them
const SINGLE = 16; // switches outside groups that are drawn one by one from far away
const ASPECT = 1.7;
// Pixels per unit from which groups show their switches, switches their hosts, and joining switches are single.
const [OPEN_GROUPS, OPEN_HOSTS, OPEN_ALL] = [7, 13, 30];

/** A switch or host; or, if `node` is -1, some of them. */
class Box {
  constructor(node, label, x = 0, y = 0, w = 0, h = 0) {
    Object.assign(this, { node, label, x, y, w, h, about: "" });
  }
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

class Layout {
  constructor(run) {
    this.run = run;
    this.boxes = run.names.map((name, node) => new Box(node, name));
    this.hostsOf = run.names.map(() => []);
    this.switchOf = run.names.map((_, node) => node);
    run.column.wire_source.forEach((source, wire) => {
      if (source < run.switches) return;
      this.switchOf[source] = run.column.wire_target[wire];
      this.hostsOf[this.switchOf[source]].push(source);
    });
    const isPeers = (source, wire) => run.levels[source] === run.levels[run.column.wire_target[wire]] && source < run.switches;
    this.isRing = RINGS.includes(run.kind) || run.column.wire_source.some(isPeers); // no tiers
    this.groups = []; // boxes
    this.groupOf = run.names.map(() => null);
    const blocks = this.blocks();
    if (this.isRing) this.ring(blocks);
    else this.tiers(blocks);
    const all = [...this.boxes, ...this.groups];
    const edge = (axis, size, sign) => Math.max(...all.map((box) => sign * box[axis] + box[size] / 2 + 0.9));
    this.extent = { left: -edge("x", "w", -1), right: edge("x", "w", 1), top: -edge("y", "h", -1), bottom: edge("y", "h", 1) };
  }

  /** Switches that belong together: those of a group, or a switch with hosts by itself. */
  blocks() {
    const blocks = new Map();
    this.run.groups.forEach((group, node) => {
      if (group < 0 && this.hostsOf[node].length === 0 && !this.isRing) return;
      const key = group < 0 ? `switch ${node}` : group;
      if (!blocks.has(key)) blocks.set(key, []);
      blocks.get(key).push(node);
    });
    return [...blocks.values()].map((switches) => {
      const leaves = switches.filter((node) => this.hostsOf[node].length > 0);
      const others = switches.filter((node) => this.hostsOf[node].length === 0);
      const width = Math.max(sum(leaves.map((node) => this.space(node))), SWITCH_SPACE * others.length);
      return { switches, leaves, others, width };
    });
  }

  /** Rows of the hosts of a switch. */
  hostRows(node) {
    const hosts = this.hostsOf[node].length;
    return hosts <= 4 ? 1 : hosts <= 12 ? 2 : Math.ceil(Math.sqrt(hosts / 2));
  }

  /** The width of a switch with its hosts. */
  space(node) {
    return Math.max(SWITCH_SPACE, Math.ceil(this.hostsOf[node].length / this.hostRows(node)) + 0.5);
  }

  /** Tiers: hosts outside, then switches by their distance from hosts; what joins the groups in the middle. */
  tiers(blocks) {
    const { levels, roles } = this.run;
    const inBlocks = new Set(blocks.flatMap((block) => block.switches));
    const joining = [...levels.keys()].filter((node) => !inBlocks.has(node));
    const split = blocks.length > IN_ROW ? Math.ceil(blocks.length / 2) : 0;
    const sides = [blocks.slice(0, split), blocks.slice(split)];
    const widths = sides.map((side) => sum(side.map((block) => block.width + 1)));
    const width = Math.max(...widths);
    const tiers = 1 + Math.max(...[...inBlocks].map((node) => levels[node]));
    const fitting = width / ASPECT / (split ? 2 : 1) / (tiers + 1);
    const gap = Math.min(fitting, Math.max(4.2, 0.45 * Math.max(...blocks.map((block) => block.width)), tiers > 1 ? 0 : width / 7));
    const rows = [...new Set(joining.map((node) => levels[node]))].sort((a, b) => b - a);
    rows.forEach((level, row) => {
      const members = joining.filter((node) => levels[node] === level);
      this.spread(members, width / 2, (row - (rows.length - 1) / (split ? 2 : 1)) * gap, width);
      if (members.length > SINGLE) {
        const box = this.group(members, `${members.length} ${roles[members[0]]} switches`);
        Object.assign(box, { joins: true, h: gap / 2 });
      }
    });
    sides.forEach((side, below) => {
      let left = (width - widths[below]) / 2 + 0.5;
      for (const block of side) {
        this.place(block, left, (level) => (below ? 1 : -1) * gap * ((rows.length ? 1.2 : 0) + tiers - 1 - level));
        left += block.width + 1;
      }
    });
  }

  /** Places a block of the tiers; `yOf` is the place of a tier, hosts being at -1. */
  place({ switches, leaves, others, width }, left, yOf) {
    const { levels } = this.run;
    let x = left;
    for (const node of leaves) {
      const hosts = this.hostsOf[node];
      const columns = Math.ceil(hosts.length / this.hostRows(node));
      const middle = x + this.space(node) / 2;
      Object.assign(this.boxes[node], { x: middle, y: yOf(levels[node]) });
      hosts.forEach((host, number) => {
        const row = Math.floor(number / columns);
        const y = yOf(-0.8) + row * Math.sign(yOf(-1));
        Object.assign(this.boxes[host], { x: middle + (number % columns) - (columns - 1) / 2 + (row % 2) / 4, y });
      });
      x += this.space(node);
    }
    for (const level of new Set(others.map((node) => levels[node]))) {
      this.spread(others.filter((node) => levels[node] === level), left + width / 2, yOf(level), width);
    }
    this.groupBlock(switches);
  }

  spread(nodes, centre, y, width) {
    nodes.forEach((node, number) =>
      Object.assign(this.boxes[node], { x: centre + ((number + 0.5) / nodes.length - 0.5) * width, y }));
  }

  /** Groups on a circle, the switches of each on a smaller one, their hosts outside it. */
  ring(blocks) {
    const turn = 2 * Math.PI;
    const at = (angle, radius, { x, y }) => ({ x: x + radius * Math.cos(angle), y: y + radius * Math.sin(angle) });
    const radiusOf = (count) => (count > 1 ? Math.max(1.2, (count * 1.7) / turn) : 0);
    const small = Math.max(...blocks.map(({ switches }) => radiusOf(switches.length)));
    const large = blocks.length > 1 ? Math.max(small + 2.5, (blocks.length * 2 * (small + 2)) / turn) : 0;
    blocks.forEach(({ switches }, number) => {
      const outward = (turn * number) / blocks.length - turn / 4;
      const centre = at(outward, large, { x: 0, y: 0 });
      switches.forEach((node, index) => {
        const angle = outward + (turn * index) / switches.length;
        Object.assign(this.boxes[node], at(angle, radiusOf(switches.length), centre));
        const hosts = this.hostsOf[node];
        const share = (turn * 0.85) / switches.length / hosts.length;
        hosts.forEach((host, place) => Object.assign(this.boxes[host],
          at(angle + (place - (hosts.length - 1) / 2) * share, radiusOf(switches.length) + 1.3, centre)));
      });
      this.groupBlock(switches);
    });
  }

  groupBlock(switches) {
    if (switches.length < 2) return;
    const hosts = switches.flatMap((node) => this.hostsOf[node]);
    const box = this.group([...switches, ...hosts], `${this.isRing ? "group" : "pod"} ${this.run.groups[switches[0]] + 1}`);
    box.about = `${hosts.length} hosts`;
  }

  /** Adds the box of a group, around its nodes. */
  group(nodes, label) {
    const [xs, ys] = ["x", "y"].map((axis) => nodes.map((node) => this.boxes[node][axis]));
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const box = new Box(-1, label, (left + right) / 2, (top + bottom) / 2, right - left + 1, bottom - top + 1.4);
    this.groups.push(box);
    for (const node of nodes) this.groupOf[node] = box;
    return box;
  }

  /** What is drawn at a scale: boxes, and edges between them, each with the wires of one direction. */
  view(scale) {
    const detail = [OPEN_GROUPS, OPEN_HOSTS, OPEN_ALL].filter((least) => scale >= least).length;
    if (this.seen?.detail === detail) return this.seen;
    const boxOf = this.boxes.map((_, node) => {
      const group = this.groupOf[node];
      if (group && detail < (group.joins ? 3 : 1)) return group;
      return this.boxes[detail < 2 ? this.switchOf[node] : node];
    });
    const boxes = [...new Set(boxOf)];
    const numbers = new Map(boxes.map((box, number) => [box, number]));
    const edges = new Map();
    const edgeOf = [];
    this.run.column.wire_source.forEach((source, wire) => {
      const [from, to] = [boxOf[source], boxOf[this.run.column.wire_target[wire]]];
      if (from === to) return;
      const key = numbers.get(from) * boxes.length + numbers.get(to);
      if (!edges.has(key)) edges.set(key, { from, to, wires: [] });
      edges.get(key).wires.push(wire);
      edgeOf[wire] = edges.get(key);
    });
    const tree = d3.quadtree(boxes.filter((box) => box.node >= 0), (box) => box.x, (box) => box.y);
    this.seen = { detail, boxes, boxOf, edges: [...edges.values()], edgeOf, tree };
    return this.seen;
  }
}
