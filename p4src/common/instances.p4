// SPDX-License-Identifier: Apache-2.0
// Value of standard_metadata.instance_type, as simple_switch sets it; v1model.p4 does not name it.
#ifndef COMMON_INSTANCES_P4
#define COMMON_INSTANCES_P4

const bit<32> INSTANCE_RECIRCULATED = 4;

#endif
