#!/usr/bin/env bash
# A real Apache Kafka broker (one node, KRaft) on loopback, for tests.
#
#   kafka.sh start DIR [PORT]   start the broker that keeps its data in DIR and wait until it answers;
#                               PORT (default 19092) is the listener's, PORT+1 the controller's
#   kafka.sh stop DIR           stop it: TERM, then KILL after 20 s
#   kafka.sh kill DIR           KILL it, for fault tests; start recovers what DIR holds
#   kafka.sh fetch              only fetch the jars
#
# The jars come from Maven once and stay in ${XDG_CACHE_HOME:-~/.cache}/lowwater for all checkouts.
# Needs Java 17 or later and Maven. KAFKA_VERSION, KAFKA_HEAP (default 1g) and KAFKA_ADVERTISED_PORT (that of a
# proxy in front of the listener) may be set.
set -euo pipefail

version=${KAFKA_VERSION:-4.4.0}
lib=${XDG_CACHE_HOME:-$HOME/.cache}/lowwater/kafka-$version

usage() {
  echo "usage: kafka.sh start DIR [PORT] | stop DIR | kill DIR | fetch" >&2
  exit 2
}

die() {
  echo "kafka.sh: $*" >&2
  exit 1
}

# fetch fills a directory of its own and renames it, so that an interrupted or a concurrent fetch leaves no half.
fetch() {
  [ -d "$lib" ] && return
  echo "kafka.sh: fetching Apache Kafka $version into $lib"
  mkdir -p "$(dirname "$lib")"
  local tmp
  tmp=$(mktemp -d "$lib.XXXXXX")
  # shellcheck disable=SC2064 # the name as it is now
  trap "rm -rf '$tmp'" EXIT
  cat >"$tmp/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
XML
  (cd "$tmp" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars)
  mv -T "$tmp/jars" "$lib" 2>/dev/null || [ -d "$lib" ] || die "cannot create $lib"
  rm -rf "$tmp"
}

# running reports whether the process in DIR/pid is this broker, not one that got its number later.
running() {
  local pid
  pid=$(cat "$dir/pid" 2>/dev/null) && ps -o args= -p "$pid" | grep -qF "$dir/server.properties"
}

start() {
  running && die "$dir already has a running broker (pid $(cat "$dir/pid")); stop it first"
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && die "port $port is taken; give another: kafka.sh start DIR PORT"
  fetch
  cat >"$dir/server.properties" <<P
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:${KAFKA_ADVERTISED_PORT:-$port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$dir/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
P
  local log=(-Dorg.slf4j.simpleLogger.showDateTime=true "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"
    -Dorg.slf4j.simpleLogger.showThreadName=false -Dorg.slf4j.simpleLogger.showShortLogName=true)
  if [ ! -e "$dir/data/meta.properties" ]; then
    java "${log[@]}" -cp "$lib/*" kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c "$dir/server.properties" \
      >"$dir/format.log" 2>&1 || die "formatting $dir/data failed; see $dir/format.log"
  fi
  nohup java "-Xmx${KAFKA_HEAP:-1g}" "${log[@]}" -cp "$lib/*" kafka.Kafka "$dir/server.properties" \
    >"$dir/kafka.log" 2>&1 </dev/null &
  local pid=$!
  echo "$pid" >"$dir/pid"
  for _ in $(seq 120); do
    if ! kill -0 "$pid" 2>/dev/null; then # by its number: it may not have become java yet
      tail -n 20 "$dir/kafka.log" >&2
      die "the broker ended; see $dir/kafka.log"
    fi
    if java "${log[@]}" -cp "$lib/*" org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" --list >/dev/null 2>&1; then
      echo "Apache Kafka $version on 127.0.0.1:$port (pid $pid)"
      return
    fi
    sleep 0.5
  done
  end KILL
  die "the broker did not answer within 60 s; see $dir/kafka.log"
}

end() { # SIGNAL
  local pid
  if running; then
    pid=$(cat "$dir/pid")
    kill "-$1" "$pid" || true
    for _ in $(seq 200); do
      running || break
      sleep 0.1
    done
    running && kill -KILL "$pid"
  fi
  rm -f "$dir/pid"
}

cmd=${1:-} dir=${2:-} port=${3:-19092}
if [ "$cmd" = fetch ]; then
  fetch
  exit
fi
[ -n "$dir" ] || usage
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
case $cmd in
  start) start ;;
  stop) end TERM ;;
  kill) end KILL ;;
  *) usage ;;
esac
