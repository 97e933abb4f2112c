// SPDX-License-Identifier: Apache-2.0
// The data of a run (viewer/data.py), and what is known about a moment of it.
"use strict";

const TYPES = {
  u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array,
};
const LEAST_BYTES = 64; // of a frame on a wire
const NS_BITS = 8e9; // bytes * NS_BITS / (bit/s) is a time in ns
const SHOWN = 3; // most loaded links and longest queues in the text

// Kinds of events: of the record's rows, by what happened and to which class of frames.
const KINDS = [
  ["path change", "P", "path changes"], ["drain", "D", "drains"], ["resume", "G", "resumptions"], ["timeout", "T", "timeouts"],
  ["trim", "C", "trimmed packets"], ["drop", "X", "dropped packets"], ["lost", "L", "frames lost on links"],
  ["recirculation", "R", "recirculations"], ["pause", "‖", "PFC pauses"], ["unpause", "▸", "ends of PFC pauses"],
  ["other drop", "x", "drops of control frames"], ["other recirculation", "r", "recirculations of control frames"],
].map(([id, mark, many]) => ({ id, mark, many }));
const KIND = Object.fromEntries(KINDS.map(({ id }, kind) => [id, kind]));
const BY_WHAT = { failed: "lost", dropped: "drop", recirculated: "recirculation" };

/** The number of items of a sorted array that are at most `value`. */
function rank(array, value, low = 0, high = array.length) {
  if (low >= high) return low;
  const middle = (low + high) >> 1;
  return array[middle] <= value ? rank(array, value, middle + 1, high) : rank(array, value, low, middle);
}

/** Decodes base64 of gzip into a header and columns (typed arrays). */
async function decode(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const column = {};
  for (const [name, [type, at, count, isDelta]] of Object.entries(header.columns)) {
    const values = new TYPES[type](buffer, 8 + length + at, count);
    let sum = 0;
    column[name] = isDelta ? Float64Array.from(values, (difference) => (sum += difference)) : values;
  }
  return { ...header, column };
}

/** Rows of one kind by time, with the sum of their counts up to each row. */
class Timeline {
  constructor() {
    [this.rows, this.times, this.sums] = [[], [], []];
  }

  add(row, time, count = 1) {
    this.rows.push(row);
    this.times.push(time);
    this.sums.push((this.sums.at(-1) ?? 0) + count);
  }

  /** The sum of the counts of all rows until a time. */
  until(time) {
    return this.sums[rank(this.times, time) - 1] ?? 0;
  }

  /** The last row until a time; undefined: there is none. */
  last(time) {
    return this.rows[rank(this.times, time) - 1];
  }
}

class Run {
  /** Takes what `decode` returns; its keys become fields. */
  constructor(data) {
    Object.assign(this, data);
    this.samples = this.column.sample_ns ?? [];
    const ports = this.column.port_wire ?? [];
    this.portOf = new Int32Array(this.column.wire_source.length).fill(-1); // -1: not sampled
    ports.forEach((wire, port) => (this.portOf[wire] = port));
    this.largestQueue = (this.column.queue_bytes ?? []).reduce((most, bytes) => Math.max(most, bytes), 1);
    this.scan();
  }

  /** Goes through the record once. */
  scan() {
    const { time_ns, what, place, flow, frame, psn, count, bytes, flow_id, flow_dst, wire_source, wire_target } = this.column;
    const timelines = (list) => Array.from(list, () => new Timeline());
    this.kindOf = new Int8Array(time_ns.length).fill(-1);
    this.wireOf = new Int32Array(time_ns.length).fill(-1); // on which a frame was, or which a PFC frame pauses
    this.departed = new Float64Array(time_ns.length).fill(Infinity); // frames on wires
    this.longest = 0; // transit of a wire
    this.kinds = timelines(KINDS);
    [this.delivered, this.lostData] = timelines([0, 1]);
    this.bytesOf = timelines(flow_id); // data that arrived at its host
    this.drains = timelines(flow_id); // and resumptions
    this.hops = Array.from(flow_id, () => new Map()); // by node: when data began to come by another wire
    this.pfc = timelines(wire_source); // PFC frames for a wire, which come by the other direction of its link
    const trimmed = new Map(); // number of trimmed packets by flow, PSN and switch
    const change = (key, by) => trimmed.set(key, Math.max(0, (trimmed.get(key) ?? 0) + by));
    time_ns.forEach((time, row) => {
      const action = this.whats[what[row]];
      const name = this.frames[frame[row]];
      const wire = place[row];
      const isData = name === "data" || name === "retransmission";
      const note = (kind) => {
        this.kindOf[row] = KIND[kind];
        this.kinds[KIND[kind]].add(row, time, count[row]);
      };
      if (action === "arrived" || action === "failed") {
        this.departed[row] = this.departure(row);
        this.longest = Math.max(this.longest, time - this.departed[row]);
        this.wireOf[row] = wire;
      }
      if (action !== "arrived") {
        const isOther = !isData && name !== "trimmed" && (action === "dropped" || action === "recirculated");
        note((isOther ? "other " : "") + (BY_WHAT[action] ?? action));
        if (action === "drain" || action === "resume") this.drains[flow[row]]?.add(row, time);
        if (isData && (action === "dropped" || action === "failed")) this.lostData.add(row, time);
      } else if (name === "xoff" || name === "xon") {
        note(name === "xoff" ? "pause" : "unpause");
        this.wireOf[row] = wire ^ 1;
        this.pfc[wire ^ 1].add(row, time);
      } else if (name === "trimmed") {
        // the switch from which a packet comes has trimmed it, unless it came there trimmed
        const from = `${flow[row]} ${psn[row]} ${wire_source[wire]}`;
        if (!trimmed.get(from)) note("trim");
        change(from, -1);
        change(`${flow[row]} ${psn[row]} ${wire_target[wire]}`, 1);
      } else if (isData && flow[row] >= 0) {
        const node = wire_target[wire];
        if (this.packets && node === flow_dst[flow[row]]) {
          this.delivered.add(row, time);
          this.bytesOf[flow[row]].add(row, time, bytes[row]);
        }
        const hops = this.hops[flow[row]];
        if (!hops.has(node)) hops.set(node, new Timeline());
        if (place[hops.get(node).rows.at(-1)] !== wire) hops.get(node).add(row, time);
      }
    });
    this.events = Array.from(this.kindOf.keys()).filter((row) => this.kindOf[row] >= 0);
  }

  /** When the first bit of a frame left, from when its last bit arrived. */
  departure(row) {
    const { time_ns, place, bytes, wire_rate_bps, wire_delay_ns } = this.column;
    const wire = place[row];
    const sent = time_ns[row] - wire_delay_ns[wire];
    const slow = this.slow.find(([each, , from, until]) => each === wire && from <= sent && (until === null || sent < until));
    return sent - (Math.max(LEAST_BYTES, bytes[row]) * NS_BITS) / (wire_rate_bps[wire] * (slow ? slow[1] : 1));
  }

  /** The node at which an event happened. */
  nodeOf(row) {
    return this.wireOf[row] < 0 ? this.column.place[row] : this.column.wire_source[this.wireOf[row]];
  }

  /** A wire's name: its port and the node to which it leads. */
  wireName(wire) {
    const { wire_source, wire_target, wire_port } = this.column;
    const port = wire_source[wire] < this.switches ? `:${wire_port[wire]}` : "";
    return `${this.names[wire_source[wire]]}${port} → ${this.names[wire_target[wire]]}`;
  }

  /** The sample whose bin (time of the previous sample, its time] contains a time; null: there is none. */
  binAt(time) {
    const { samples } = this;
    if (!samples.length) return null;
    const bin = Math.min(Math.max(rank(samples, time - 1e-6), samples[0] > 0 ? 0 : 1), samples.length - 1);
    return { bin, from: samples[bin - 1] ?? 0, to: samples[bin] };
  }

  /** The sample of a wire: bytes sent, bytes that its rate allows, queue, pause. Ports that never sent are not in
   * the samples; ports of hosts are not sampled: null. */
  load(wire, moment) {
    const { tx_bytes, queue_bytes, paused, wire_rate_bps, wire_source } = this.column;
    if (!moment || wire_source[wire] >= this.switches) return null;
    const capacity = (wire_rate_bps[wire] * (moment.to - moment.from)) / NS_BITS;
    if (this.portOf[wire] < 0) return { sent: 0, capacity, utilisation: 0, bytes: 0, paused: 0 };
    const at = this.portOf[wire] * this.samples.length + moment.bin;
    return { sent: tx_bytes[at], capacity, utilisation: capacity && tx_bytes[at] / capacity, bytes: queue_bytes[at], paused: paused[at] };
  }

  /** Whether the last PFC frame that arrived for a wire pauses it. */
  isPaused(wire, time) {
    return this.kindOf[this.pfc[wire].last(time)] === KIND.pause;
  }

  /** waiting, active, draining or finished */
  flowState(flow, time) {
    const { flow_start_ns, flow_end_ns } = this.column;
    if (flow_start_ns[flow] > time) return "waiting";
    if (flow_end_ns[flow] >= 0 && flow_end_ns[flow] <= time) return "finished";
    return this.kindOf[this.drains[flow].last(time)] === KIND.drain ? "draining" : "active";
  }

  /** The wires by which a flow's data arrived last, from its source to its destination. */
  path(flow, time) {
    const { flow_src, flow_dst, place, wire_source } = this.column;
    const wires = [];
    let node = flow_dst[flow];
    while (node !== flow_src[flow] && wires.length < this.names.length) {
      const row = this.hops[flow].get(node)?.last(time);
      if (row === undefined) break;
      wires.unshift(place[row]);
      node = wire_source[place[row]];
    }
    return wires;
  }

  /** Calls `visit(row, share)` for each recorded frame on a wire; `share` of its transit is past. */
  eachFlight(time, visit) {
    const { time_ns } = this.column;
    for (let row = rank(time_ns, time); row < time_ns.length && time_ns[row] <= time + this.longest; row++) {
      const departed = this.departed[row];
      if (departed <= time) visit(row, (time - departed) / (time_ns[row] - departed));
    }
  }

  /** What is known about a moment: the numbers of its text. */
  describe(time) {
    const flows = { waiting: 0, active: 0, draining: 0, finished: 0 };
    for (const flow of this.column.flow_id.keys()) flows[this.flowState(flow, time)]++;
    const moment = this.binAt(time);
    const ports = Array.from(moment ? this.column.port_wire : [], (wire) => ({ wire, ...this.load(wire, moment) }));
    const top = (key) => ports.filter((port) => port[key] > 0).sort((a, b) => b[key] - a[key]).slice(0, SHOWN)
      .map((port) => ({ wire: this.wireName(port.wire), [key]: port[key] }));
    return {
      flows,
      counts: Object.fromEntries(KINDS.map(({ id }, kind) => [id, this.kinds[kind].until(time)])),
      lost_data: this.lostData.until(time),
      delivered: this.packets ? this.delivered.until(time) : null,
      bin: moment && { from_ns: moment.from, to_ns: moment.to },
      loaded: top("utilisation"),
      queues: top("bytes"),
      paused: moment && ports.filter((port) => port.paused).length,
      xoff: this.pfc.filter((_, wire) => this.isPaused(wire, time)).length,
    };
  }
}
