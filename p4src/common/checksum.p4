// SPDX-License-Identifier: Apache-2.0
// IPv4 header checksum (RFC 791). RoCEv2 has no UDP checksum, and no switch changes a field that TCP's checksum has.
#ifndef COMMON_CHECKSUM_P4
#define COMMON_CHECKSUM_P4
#include "common/headers.p4"
#include "common/metadata.p4"

#define IPV4_CHECKSUMMED { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len, \
    hdr.ipv4.identification, hdr.ipv4.reserved_flag, hdr.ipv4.do_not_fragment, hdr.ipv4.more_fragments, \
    hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }

control ChecksumVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUMMED, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ChecksumUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUMMED, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

#endif
