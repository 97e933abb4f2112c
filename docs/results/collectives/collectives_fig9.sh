git clone https://github.com/yifeng-ethz/HTSIM-rnic-private && git -C HTSIM-rnic-private checkout 09a5a92
(cd HTSIM-rnic-private/htsim/sim && cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target htsim_uec_df)
mkdir collectives_fig9
# sizes are divided by 8; receivers start no flows there (uec.cpp), so that a butterfly's next message follows the sender's last ACK
cut() { awk -v n=$2 '{ for (i = 1; i < NF; i++) if ($i == "size") $(i + 1) = int($(i + 1) / n); sub("recv_done", "send_done") } 1' HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/$1.cm > collectives_fig9/$3.cm; }
cut allreduce_ring_bg_64MiB_4MiB 8 ring
cut allreduce_bf_bg_64MiB_4MiB 8 butterfly
# here ops:weights=latency
for seed in 1 2; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -fail-percentage 0.02 -tm collectives_fig9/ring.cm -routing SOURCE -LB OPS -flow-weight-scaling 3 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > collectives_fig9/ring-ops-w-$seed.out 2>&1; done
# here spritz:variant=spray,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 1 2; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -fail-percentage 0.02 -tm collectives_fig9/ring.cm -routing SOURCE -LB FLOW_V2 -flow-weight-scaling 3 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > collectives_fig9/ring-spray-w-$seed.out 2>&1; done
# here ops:weights=latency
for seed in 1 2; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -fail-percentage 0.02 -tm collectives_fig9/butterfly.cm -routing SOURCE -LB OPS -flow-weight-scaling 3 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > collectives_fig9/butterfly-ops-w-$seed.out 2>&1; done
# here spritz:variant=spray,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 1 2; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -fail-percentage 0.02 -tm collectives_fig9/butterfly.cm -routing SOURCE -LB FLOW_V2 -flow-weight-scaling 3 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > collectives_fig9/butterfly-spray-w-$seed.out 2>&1; done
tailrace paper collectives_fig9 --scale paper --beside .
