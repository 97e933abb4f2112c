git clone https://github.com/ultraethernet/uet-htsim && git -C uet-htsim checkout 40ccb05
(cd uet-htsim/htsim/sim && cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target htsim_uec); mkdir beside_uet
# here uet:queue=120466,kmin=24924,kmax=99696,pmax=1
for seed in 1 2 3 4 5; do (time -p uet-htsim/htsim/sim/datacenter/htsim_uec -seed $seed -linkspeed 100000 -topo uet-htsim/htsim/sim/datacenter/topologies/leaf_spine_1024.topo -tm uet-htsim/htsim/sim/datacenter/connection_matrices/perm_1024n_1024c_0u_2000000b.cm -load_balancing_algo mixed) > beside_uet/uet-$seed.out 2>&1; done
# here uet:mode=bitmap,queue=120466,kmin=24924,kmax=99696,pmax=1
for seed in 1 2 3 4 5; do (time -p uet-htsim/htsim/sim/datacenter/htsim_uec -seed $seed -linkspeed 100000 -topo uet-htsim/htsim/sim/datacenter/topologies/leaf_spine_1024.topo -tm uet-htsim/htsim/sim/datacenter/connection_matrices/perm_1024n_1024c_0u_2000000b.cm -load_balancing_algo bitmap) > beside_uet/bitmap-$seed.out 2>&1; done
# here uet:mode=oblivious,queue=120466,kmin=24924,kmax=99696,pmax=1
for seed in 1 2 3 4 5; do (time -p uet-htsim/htsim/sim/datacenter/htsim_uec -seed $seed -linkspeed 100000 -topo uet-htsim/htsim/sim/datacenter/topologies/leaf_spine_1024.topo -tm uet-htsim/htsim/sim/datacenter/connection_matrices/perm_1024n_1024c_0u_2000000b.cm -load_balancing_algo oblivious) > beside_uet/oblivious-$seed.out 2>&1; done
# here reps:variant=fifo,queue=120466,kmin=24924,kmax=99696,pmax=1
for seed in 1 2 3 4 5; do (time -p uet-htsim/htsim/sim/datacenter/htsim_uec -seed $seed -linkspeed 100000 -topo uet-htsim/htsim/sim/datacenter/topologies/leaf_spine_1024.topo -tm uet-htsim/htsim/sim/datacenter/connection_matrices/perm_1024n_1024c_0u_2000000b.cm -load_balancing_algo reps_legacy -sack_threshold 4000) > beside_uet/reps-fifo-$seed.out 2>&1; done
# here reps:evs=64,explore=16,queue=120466,kmin=24924,kmax=99696,pmax=1
for seed in 1 2 3 4 5; do (time -p uet-htsim/htsim/sim/datacenter/htsim_uec -seed $seed -linkspeed 100000 -topo uet-htsim/htsim/sim/datacenter/topologies/leaf_spine_1024.topo -tm uet-htsim/htsim/sim/datacenter/connection_matrices/perm_1024n_1024c_0u_2000000b.cm -load_balancing_algo reps -sack_threshold 4000) > beside_uet/reps-$seed.out 2>&1; done
tailrace paper beside_uet --scale paper --beside .
