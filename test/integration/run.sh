#!/usr/bin/env bash
# Runs the integration tests against a real Apache Kafka.
#
#   test/integration/run.sh [ARGUMENT OF go test...]
#
# Starts a broker with an empty data directory in build/kafka and always stops it. With
# LOWWATER_TEST_BROKERS set, uses that broker and starts none. KAFKA_PORT (default 19092) and
# KAFKA_VERSION may be set; the controller takes KAFKA_PORT+1.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${LOWWATER_TEST_BROKERS:-}" ]; then
  dir=build/kafka port=${KAFKA_PORT:-19092}
  export KAFKA_VERSION=${KAFKA_VERSION:-4.4.0}
  trap 'test/cluster/kafka.sh stop $dir' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  test/cluster/kafka.sh stop $dir
  rm -rf $dir/data
  test/cluster/kafka.sh start $dir "$port"
  export LOWWATER_TEST_BROKERS=127.0.0.1:$port LOWWATER_TEST_KAFKA_VERSION=$KAFKA_VERSION
fi

# Flink's command line is tested against ours if its distribution is there: test/cluster/flink.sh fetch.
flink=${XDG_CACHE_HOME:-$HOME/.cache}/lowwater/flink-${FLINK_VERSION:-2.3.0}-kafka-${FLINK_KAFKA:-5.0.0-2.2}
if [ -z "${LOWWATER_TEST_FLINK_HOME:-}" ] && [ -d "$flink" ]; then
  export LOWWATER_TEST_FLINK_HOME=$flink
fi

go test -tags integration -race -count=1 -timeout 15m "$@" ./test/integration/...
