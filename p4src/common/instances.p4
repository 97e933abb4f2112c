// SPDX-License-Identifier: Apache-2.0
// Values of standard_metadata.instance_type, as simple_switch sets it; v1model.p4 does not name them. They are macros,
// since p4c warns of constants that a program does not use.
#ifndef COMMON_INSTANCES_P4
#define COMMON_INSTANCES_P4

#define INSTANCE_INGRESS_CLONE 32w1
#define INSTANCE_EGRESS_CLONE  32w2
#define INSTANCE_RECIRCULATED  32w4
#define INSTANCE_REPLICATION   32w5
#define INSTANCE_RESUBMITTED   32w6

#endif
