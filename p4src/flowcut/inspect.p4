// SPDX-License-Identifier: Apache-2.0
// Sends a bucket of the flow table (flowcut/table.p4) to the controller (READ_FLOWS). SWEEP first deletes entries that
// have been idle for age_ticks: v1model has no timer, and entries that lost a packet or ACK would stay until needed.
#ifndef FLOWCUT_INSPECT_P4
#define FLOWCUT_INSPECT_P4
#include "common/packet_io.p4"
#include "flowcut/table.p4"

control ShowWay(in bit<32> index, in ticks_t now_ticks, in ticks_t age_ticks, in bool sweep,
                inout flow_entry_t entry) {
    apply {
        entry_key_t key;
        port_t in_port;
        port_t out_port;
        entry.setValid();
        flow_key.read(key, index);
        entry.src = key[103:72];
        entry.dst = key[71:40];
        entry.sport = key[39:24];
        entry.dport = key[23:8];
        entry.protocol = key[7:0];
        flow_state.read(entry.state, index);
        flow_in_port.read(in_port, index);
        entry.in_port = (bit<16>)in_port;
        flow_out_port.read(out_port, index);
        entry.out_port = (bit<16>)out_port;
        flow_in_flight_bytes.read(entry.in_flight_bytes, index);
        flow_last_data_ticks.read(entry.last_data_ticks, index);
        flow_rtt_avg.read(entry.rtt_avg, index);
        flow_rtt_last.read(entry.rtt_last, index);
        flow_rtt_growth.read(entry.rtt_growth, index);
        flow_left.read(entry.left, index);
        flow_samples.read(entry.samples, index);
        if (sweep && entry.in_flight_bytes != 0 && LONG_AGO(now_ticks, entry.last_data_ticks, age_ticks)) {
            entry.in_flight_bytes = 0;
            flow_in_flight_bytes.write(index, 0);
            flowcut_expired.count(0);
        }
    }
}

control ShowBucket(in ticks_t now_ticks, in ticks_t age_ticks, inout headers_t hdr,
                   inout standard_metadata_t standard_metadata) {
    ShowWay() show_way;
    Respond() respond;

    apply {
        bool sweep = hdr.packet_out.op == PacketOutOp_t.SWEEP;
        bit<32> bucket = (bit<32>)hdr.packet_out.index;
        bit<32> first = bucket * WAYS;
        hdr.bucket.setValid();
        hdr.bucket.now_ticks = now_ticks;
        untracked_bytes.read(hdr.bucket.untracked_bytes, bucket);
        untracked_last_ticks.read(hdr.bucket.untracked_last_ticks, bucket);
        if (sweep && LONG_AGO(now_ticks, hdr.bucket.untracked_last_ticks, age_ticks)) {
            hdr.bucket.untracked_bytes = 0;
            untracked_bytes.write(bucket, 0);
        }
        show_way.apply(first, now_ticks, age_ticks, sweep, hdr.entries[0]);
        show_way.apply(first + 1, now_ticks, age_ticks, sweep, hdr.entries[1]);
        show_way.apply(first + 2, now_ticks, age_ticks, sweep, hdr.entries[2]);
        show_way.apply(first + 3, now_ticks, age_ticks, sweep, hdr.entries[3]);
        respond.apply(PacketInReason_t.FLOWS, hdr, standard_metadata);
    }
}

#endif
