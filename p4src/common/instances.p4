// SPDX-License-Identifier: Apache-2.0
// Values of standard_metadata.instance_type, as simple_switch sets it; v1model.p4 does not name them.
#ifndef COMMON_INSTANCES_P4
#define COMMON_INSTANCES_P4

const bit<32> INSTANCE_RECIRCULATED = 4;
const bit<32> INSTANCE_RESUBMITTED  = 6;

#endif
