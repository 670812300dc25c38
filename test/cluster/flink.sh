#!/usr/bin/env bash
# A real Apache Flink session cluster with SQL Gateway on loopback, for tests that compare with Flink.
#
#   flink.sh start DIR      start JobManager, TaskManager and SQL Gateway with their logs in DIR/log and
#                           wait until all three answer
#   flink.sh stop DIR       stop them: TERM, then KILL after 20 s each
#   flink.sh kill-tm DIR    KILL the TaskManager only, for fault tests
#   flink.sh fetch          only fetch the distribution
#
# REST answers on 127.0.0.1:$FLINK_REST (default 18081), the SQL Gateway on $FLINK_GATEWAY (18083).
# FLINK_SLOTS (16), FLINK_TM_MEMORY (4g), FLINK_VERSION and FLINK_KAFKA (the connector's version) may be set.
#
# The distribution comes from PyPI, the gateway and the Kafka connector from Maven, once; they stay in
# ${XDG_CACHE_HOME:-~/.cache}/lowwater for all checkouts. Needs Java 17 or later, Maven, Python 3 with pip, curl.
set -euo pipefail

version=${FLINK_VERSION:-2.3.0} kafka=${FLINK_KAFKA:-5.0.0-2.2}
rest=${FLINK_REST:-18081} gateway=${FLINK_GATEWAY:-18083} slots=${FLINK_SLOTS:-16}
home=${XDG_CACHE_HOME:-$HOME/.cache}/lowwater/flink-$version-kafka-$kafka

usage() {
  echo "usage: flink.sh start DIR | stop DIR | kill-tm DIR | fetch" >&2
  exit 2
}

die() {
  echo "flink.sh: $*" >&2
  exit 1
}

# dependency prints the pom's element for one artifact without what it depends on.
dependency() { # ARTIFACT VERSION
  echo "<dependency><groupId>org.apache.flink</groupId><artifactId>$1</artifactId><version>$2</version>"
  echo "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
}

# fetch fills a directory of its own and renames it, so that an interrupted or a concurrent fetch leaves no half.
fetch() {
  [ -d "$home" ] && return
  echo "flink.sh: fetching Apache Flink $version into $home"
  mkdir -p "$(dirname "$home")"
  local tmp
  tmp=$(mktemp -d "$home.XXXXXX")
  # shellcheck disable=SC2064 # the name as it is now
  trap "rm -rf '$tmp'" EXIT
  (cd "$tmp" && fill)
  mv -T "$tmp/home" "$home" 2>/dev/null || [ -d "$home" ] || die "cannot create $home"
  rm -rf "$tmp"
}

# fill brings the jars into home below the current directory. Any failure ends the script.
fill() {
  mkdir -p home/lib home/opt home/plugins
  python3 -m pip download -q --no-deps -d wheel "apache-flink-libraries==$version"
  python3 - <<'PY'
import glob, os, zipfile

parts = {"pyflink/lib/": "lib", "pyflink/opt/flink-sql-client": "opt", "pyflink/bin/bash-java-utils": "opt"}
with zipfile.ZipFile(glob.glob("wheel/*.whl")[0]) as wheel:
    for name in wheel.namelist():
        for prefix, to in parts.items():
            if name.startswith(prefix) and name.endswith(".jar"):
                with open(os.path.join("home", to, os.path.basename(name)), "wb") as f:
                    f.write(wheel.read(name))
PY
  {
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>local</groupId><artifactId>flink</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
    dependency flink-sql-gateway "$version"
    dependency flink-sql-gateway-api "$version"
    dependency flink-sql-connector-kafka "$kafka"
    dependency flink-metrics-prometheus "$version"
    echo '</dependencies></project>'
  } >pom.xml
  mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars
  mv jars/flink-sql-connector-kafka-* jars/flink-metrics-prometheus-* home/lib/
  mv jars/*.jar home/opt/
}

# modules opens what Flink's own start scripts open of the JDK.
modules=(--add-exports=java.base/sun.net.util=ALL-UNNAMED --add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED
  --add-exports=jdk.compiler/com.sun.tools.javac.api=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED)
for p in lang net io nio lang.reflect text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
  modules+=("--add-opens=java.base/java.$p=ALL-UNNAMED")
done

configure() {
  mkdir -p "$dir/conf" "$dir/log"
  cat >"$dir/conf/config.yaml" <<Y
jobmanager: {bind-host: 127.0.0.1, rpc: {address: 127.0.0.1, port: $((rest + 100))}, memory: {process: {size: 1600m}}}
taskmanager: {bind-host: 127.0.0.1, host: 127.0.0.1, numberOfTaskSlots: $slots, memory: {process: {size: ${FLINK_TM_MEMORY:-4g}}}}
parallelism: {default: 1}
rest: {address: 127.0.0.1, bind-address: 127.0.0.1, port: $rest}
sql-gateway: {endpoint: {rest: {address: 127.0.0.1, port: $gateway}}}
Y
  cat >"$dir/conf/log4j.properties" <<'P'
rootLogger.level = INFO
rootLogger.appenderRef.c.ref = C
appender.c.name = C
appender.c.type = CONSOLE
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d %-5p %c{1} - %m%n
P
}

# running reports whether the process in DIR/NAME.pid is ours, not one that got its number later.
running() { # NAME
  local pid
  pid=$(cat "$dir/$1.pid" 2>/dev/null) && ps -o args= -p "$pid" | grep -qF "$dir/conf/log4j.properties"
}

# launch starts one JVM in the background.
launch() { # NAME ARGUMENT...
  local name=$1
  shift
  nohup java "${modules[@]}" "-Dlog4j.configurationFile=file:$dir/conf/log4j.properties" "$@" \
    >"$dir/log/$name.log" 2>&1 </dev/null &
  echo $! >"$dir/$name.pid"
}

start() {
  local name port
  for name in jobmanager taskmanager gateway; do
    running "$name" && die "$dir already has a running $name (pid $(cat "$dir/$name.pid")); stop it first"
  done
  for port in "$rest" "$gateway"; do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && die "port $port is taken; set FLINK_REST or FLINK_GATEWAY"
  done
  fetch
  configure
  export FLINK_CONF_DIR=$dir/conf FLINK_HOME=$home FLINK_LIB_DIR=$home/lib FLINK_PLUGINS_DIR=$home/plugins FLINK_OPT_DIR=$home/opt
  # A TaskManager takes its memory budget from the tool that Flink's own start script calls: line 1 is
  # for the JVM, line 2 for the TaskManager.
  local budget jvm dynamic
  budget=$(java "${modules[@]}" -cp "$home/lib/*:$home/opt/*" org.apache.flink.runtime.util.bash.BashJavaUtils \
    GET_TM_RESOURCE_PARAMS --configDir "$dir/conf" 2>/dev/null | sed -n 's/^BASH_JAVA_UTILS_EXEC_RESULT://p')
  read -ra jvm < <(sed -n 1p <<<"$budget")
  read -ra dynamic < <(sed -n 2p <<<"$budget")

  cd "$dir"
  launch jobmanager -Xmx1g -cp "$home/lib/*" \
    org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir "$dir/conf"
  launch taskmanager "${jvm[@]}" -cp "$home/lib/*" \
    org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$dir/conf" "${dynamic[@]}"
  launch gateway -Xmx1g -cp "$home/lib/*:$home/opt/*" \
    org.apache.flink.table.gateway.SqlGateway -Dsql-gateway.endpoint.rest.address=127.0.0.1
  for _ in $(seq 240); do
    if curl -sf "127.0.0.1:$rest/overview" | grep -q '"taskmanagers":1' && curl -sf "127.0.0.1:$gateway/v3/info" >/dev/null; then
      echo "Apache Flink $version: REST 127.0.0.1:$rest, SQL Gateway 127.0.0.1:$gateway"
      return
    fi
    for name in jobmanager taskmanager gateway; do
      kill -0 "$(cat "$dir/$name.pid")" 2>/dev/null || { # by its number: it may not have become java yet
        stop
        die "the $name ended; see $dir/log/$name.log"
      }
    done
    sleep 0.5
  done
  stop
  die "Flink did not answer within 120 s; see $dir/log"
}

end() { # NAME SIGNAL
  local pid
  if running "$1"; then
    pid=$(cat "$dir/$1.pid")
    kill "-$2" "$pid" || true
    for _ in $(seq 200); do
      running "$1" || break
      sleep 0.1
    done
    running "$1" && kill -KILL "$pid"
  fi
  rm -f "$dir/$1.pid"
}

stop() {
  local name
  for name in gateway taskmanager jobmanager; do
    end "$name" TERM
  done
}

cmd=${1:-} dir=${2:-}
if [ "$cmd" = fetch ]; then
  fetch
  exit
fi
[ -n "$dir" ] || usage
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
case $cmd in
  start) start ;;
  stop) stop ;;
  kill-tm) end taskmanager KILL ;;
  *) usage ;;
esac
