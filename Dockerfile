# SPDX-License-Identifier: Apache-2.0
# Tailrace, and what runs need:  docker build -t tailrace .
#   docker run --rm --privileged -v "$PWD/out:/tailrace/out" tailrace      `make run`: in Mininet, which needs --privileged
#   docker run --rm -v "$PWD/out:/tailrace/out" tailrace tailrace paper flowcut_fig8 --scale small
FROM debian:13-slim
WORKDIR /tailrace
COPY . .
RUN scripts/setup.sh run && rm -rf /var/lib/apt/lists/*
ENV PATH=/tailrace/.venv/bin:$PATH
CMD ["make", "run"]
