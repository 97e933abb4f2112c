git clone https://github.com/conweave-project/conweave-ns3 && git -C conweave-ns3 checkout 236a801
# in ubuntu:20.04, as the README of the clone says: apt-get install python python3 build-essential git
(cd conweave-ns3 && ./waf configure --build-profile=optimized && ./waf && mkdir -p mix/output)
mkdir conweave_leafspine
cat > conweave_leafspine/flows.py <<'EOF'
import random, runpy, sys
random.seed(1)
cdf, output = "traffic_gen/AliStorage2019.txt", "config/flow.txt"
sys.argv = ["", "-c", cdf, "-n", "128", "-l", "0.25", "-b", "100G", "-t", "0.002", "-o", output]
runpy.run_path("traffic_gen/traffic_gen.py", run_name="__main__")
EOF
cat > conweave_leafspine/run.py <<'EOF'
import os, re, subprocess, sys
balancer, seed = sys.argv[1:]
template = re.search('config_template = """(.*?)"""', open("run.py").read(), re.S)[1]
marks = {f"k{end}_map": f"1 100000000000 {size}" for end, size in (("min", 100), ("max", 400))}
values = {**dict.fromkeys(re.findall("{(.*?)}", template), 0), **marks, **{
    "id": f"{balancer}-{seed}", "topo": "leaf_spine_128_100G_OS2", "flow": "flow", "pmax_map": "1 100000000000 0.2",
    "flowgen_start_time": 2.0, "flowgen_stop_time": 2.002, "qlen_mon_start": 2.0, "qlen_mon_end": 2.002,
    "sw_monitoring_interval": 10000000, "load": 50, "buffer_size": 9, "lb_mode": balancer, "enabled_pfc": 1,
    "cc_mode": 1, "ai": 40, "hai": 100, "dctcp_ai": 1000, "int_multi": 1, "ewma_gain": 0.00390625,
    "cwh_tx_expiry_time": 1000, "cwh_extra_reply_deadline": 4, "cwh_path_pause_time": 16,
    "cwh_extra_voq_flush_time": 64, "cwh_default_voq_waiting_time": 400,
}}
folder = f"mix/output/{balancer}-{seed}"
os.makedirs(folder, exist_ok=True)
config = template.format(**values).replace("RANDOM_SEED 1", f"RANDOM_SEED {seed}")
open(f"{folder}/config.txt", "w").write(config)
program = ["build/scratch/network-load-balance", f"{folder}/config.txt"]
with open(f"{folder}/log", "w") as log:
    subprocess.run(program, check=True, stdout=log, stderr=log, env={**os.environ, "LD_LIBRARY_PATH": "build"})
print(open(f"{folder}/{balancer}-{seed}_out_fct.txt").read(), end="")
EOF
(cd conweave-ns3 && PYTHONPATH=traffic_gen python3 ../conweave_leafspine/flows.py)
# here ecmp:kmin=100KB,kmax=400KB,pmax=0.2
for seed in 1 2 3; do (time -p env -C conweave-ns3 python3 ../conweave_leafspine/run.py 0 $seed) > conweave_leafspine/ecmp-$seed.out 2>&1; done
# here letflow:gap=100us,kmin=100KB,kmax=400KB,pmax=0.2
for seed in 1 2 3; do (time -p env -C conweave-ns3 python3 ../conweave_leafspine/run.py 6 $seed) > conweave_leafspine/letflow-$seed.out 2>&1; done
# here drill:memory=destination,kmin=100KB,kmax=400KB,pmax=0.2
for seed in 1 2 3; do (time -p env -C conweave-ns3 python3 ../conweave_leafspine/run.py 2 $seed) > conweave_leafspine/drill-$seed.out 2>&1; done
tailrace paper conweave_leafspine --scale paper --beside .
