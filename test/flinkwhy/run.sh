#!/usr/bin/env bash
# Runs lowwater why against a real Apache Flink and a real Apache Kafka.
#
#   test/flinkwhy/run.sh [ARGUMENT OF go test...]
#
# Starts both with empty directories in build/flinkwhy and always stops them. With LOWWATER_TEST_FLINK
# (host:port of the REST interface), LOWWATER_TEST_GATEWAY (of the SQL Gateway) and LOWWATER_TEST_BROKERS
# set, uses those. LOWWATER_TEST_FLINK_LIB is where the cluster's jars are, for javac. Needs Java 17 or later.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${LOWWATER_TEST_FLINK:-}" ]; then
  dir=build/flinkwhy
  export FLINK_REST=${FLINK_REST:-18281} FLINK_GATEWAY=${FLINK_GATEWAY:-18283} FLINK_SLOTS=${FLINK_SLOTS:-40}
  port=${KAFKA_PORT:-19292}
  trap 'test/cluster/flink.sh stop $dir/flink; test/cluster/kafka.sh stop $dir/kafka' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  test/cluster/flink.sh stop $dir/flink
  test/cluster/kafka.sh stop $dir/kafka
  rm -rf $dir
  test/cluster/kafka.sh start $dir/kafka "$port"
  test/cluster/flink.sh start $dir/flink
  export LOWWATER_TEST_BROKERS=127.0.0.1:$port LOWWATER_TEST_FLINK=127.0.0.1:$FLINK_REST LOWWATER_TEST_GATEWAY=127.0.0.1:$FLINK_GATEWAY
fi
version=${FLINK_VERSION:-2.3.0} kafka=${FLINK_KAFKA:-5.0.0-2.2}
export LOWWATER_TEST_FLINK_LIB=${LOWWATER_TEST_FLINK_LIB:-${XDG_CACHE_HOME:-$HOME/.cache}/lowwater/flink-$version-kafka-$kafka/lib}

# The cases wait for most of their time, so more of them run at once than there are processors.
go test -tags flink -count=1 -timeout 10m -parallel 16 "$@" ./test/flinkwhy/...
