git clone https://github.com/yifeng-ethz/HTSIM-rnic-private && git -C HTSIM-rnic-private checkout 09a5a92
(cd HTSIM-rnic-private/htsim/sim && cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target htsim_uec_df htsim_uec_sf)
mkdir htsim_fig6
cat > htsim_fig6/renumber.py <<'EOF'
# needs networkx; the switches of their Slim Fly have other numbers than ours: an isomorphism of the graphs translates their hosts, 7 on a switch
import re, sys
import networkx
from tailrace.topology import parse_topology
datacenter = "HTSIM-rnic-private/htsim/sim/datacenter"
topology = parse_topology("slim-fly:p=7,q=9")
number = {switch.name: place for place, switch in enumerate(topology.switches)}
ours = networkx.Graph((number[link.a], number[link.b]) for link in topology.links)
theirs = networkx.read_adjlist(f"{datacenter}/topologies/slimfly/p7q9/slimfly.adjlist", nodetype=int)
for graph in (ours, theirs):
    networkx.set_node_attributes(graph, {switch: switch // 81 for switch in graph}, "side")
switches = networkx.vf2pp_isomorphism(theirs, ours, node_label="side")
host = lambda digits: 7 * switches[int(digits) // 7] + int(digits) % 7
for name in sys.argv[1:]:
    flows = open(f"{datacenter}/experiments/sf/p7q9/{name}.cm").read()
    renumbered = re.sub(r"(?m)^(\d+)->(\d+)", lambda pair: f"{host(pair[1])}->{host(pair[2])}", flows)
    open(f"htsim_fig6/{name}.cm", "w").write(renumbered)
EOF
python3 htsim_fig6/renumber.py permutation_global_4MiB adv_all_4MiB
# here valiant:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing VALIANT) > htsim_fig6/permutation-dragonfly-valiant-$seed.out 2>&1; done
# here ugal-l:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing UGAL_L) > htsim_fig6/permutation-dragonfly-ugal-l-$seed.out 2>&1; done
# here ops:weights=latency
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing SOURCE -LB OPS -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/permutation-dragonfly-ops-$seed.out 2>&1; done
# here spritz:variant=scout,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing SOURCE -LB FLOW_V1 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/permutation-dragonfly-scout-$seed.out 2>&1; done
# here spritz:variant=spray,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing SOURCE -LB FLOW_V2 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/permutation-dragonfly-spray-$seed.out 2>&1; done
# here valiant:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing VALIANT) > htsim_fig6/permutation-slim-fly-valiant-$seed.out 2>&1; done
# here ugal-l:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing UGAL_L) > htsim_fig6/permutation-slim-fly-ugal-l-$seed.out 2>&1; done
# here ops:weights=latency
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing SOURCE -LB OPS -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/permutation-slim-fly-ops-$seed.out 2>&1; done
# here spritz:variant=scout,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing SOURCE -LB FLOW_V1 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/permutation-slim-fly-scout-$seed.out 2>&1; done
# here spritz:variant=spray,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/permutation_global_4MiB.cm -flow-weight-scaling 3 -routing SOURCE -LB FLOW_V2 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/permutation-slim-fly-spray-$seed.out 2>&1; done
# here valiant:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/adv_i5_4MiB.cm -flow-weight-scaling 0 -routing VALIANT) > htsim_fig6/adversarial-dragonfly-valiant-$seed.out 2>&1; done
# here ugal-l:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/adv_i5_4MiB.cm -flow-weight-scaling 0 -routing UGAL_L) > htsim_fig6/adversarial-dragonfly-ugal-l-$seed.out 2>&1; done
# here ops:weights=uniform
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/adv_i5_4MiB.cm -flow-weight-scaling 0 -routing SOURCE -LB OPS -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/adversarial-dragonfly-ops-$seed.out 2>&1; done
# here spritz:variant=scout,weights=uniform,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/adv_i5_4MiB.cm -flow-weight-scaling 0 -routing SOURCE -LB FLOW_V1 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/adversarial-dragonfly-scout-$seed.out 2>&1; done
# here spritz:variant=spray,weights=uniform,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_df -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/dragonfly/p4a8h4 -p 4 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/df/p4a8h4/adv_i5_4MiB.cm -flow-weight-scaling 0 -routing SOURCE -LB FLOW_V2 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/adversarial-dragonfly-spray-$seed.out 2>&1; done
# here valiant:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/adv_all_4MiB.cm -flow-weight-scaling 0 -routing VALIANT) > htsim_fig6/adversarial-slim-fly-valiant-$seed.out 2>&1; done
# here ugal-l:draw=hop
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/adv_all_4MiB.cm -flow-weight-scaling 0 -routing UGAL_L) > htsim_fig6/adversarial-slim-fly-ugal-l-$seed.out 2>&1; done
# here ops:weights=uniform
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/adv_all_4MiB.cm -flow-weight-scaling 0 -routing SOURCE -LB OPS -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/adversarial-slim-fly-ops-$seed.out 2>&1; done
# here spritz:variant=scout,weights=uniform,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/adv_all_4MiB.cm -flow-weight-scaling 0 -routing SOURCE -LB FLOW_V1 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/adversarial-slim-fly-scout-$seed.out 2>&1; done
# here spritz:variant=spray,weights=uniform,keep=60s,good=7us,timer=60s,small=512KiB,bias=100,buffer=9
for seed in 13; do (time -p env HTSIM_TRACE_FLOW_COMPLETIONS=1 HTSIM-rnic-private/htsim/sim/datacenter/htsim_uec_sf -basepath HTSIM-rnic-private/htsim/sim/datacenter/topologies/slimfly/p7q9 -p 7 -CC SMARTT_ECN -tm HTSIM-rnic-private/htsim/sim/datacenter/experiments/sf/p7q9/adv_all_4MiB.cm -flow-weight-scaling 0 -routing SOURCE -LB FLOW_V2 -flow-explore-threshold 44 -flow-ecn-threshold 8 -flow-sort-insert 1 -flow-small-flows-bias 1 -flow-small-flows-threshold 524288 -flow-small-flows-weight 100.0) > htsim_fig6/adversarial-slim-fly-spray-$seed.out 2>&1; done
tailrace paper htsim_fig6 --scale paper --beside .
