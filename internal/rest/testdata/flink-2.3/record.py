#!/usr/bin/env python3
"""Records what a real Flink answers, for the contract tests.

    test/cluster/kafka.sh start build/kafka 19092
    test/cluster/flink.sh start build/flink
    internal/rest/testdata/flink-2.3/record.py 127.0.0.1:18081 127.0.0.1:18083 127.0.0.1:19092

It runs jobs through the SQL Gateway: one that feeds a topic of three partitions, one that counts
windows of it with checkpoints, and one that fails. Each answer becomes a file beside this script:
method, path with {names} for what differs between runs, status, and body.
"""
import json, os, re, subprocess, sys, tempfile, time, urllib.error, urllib.request

rest, gateway, kafka = sys.argv[1:4]
here = os.path.dirname(os.path.abspath(__file__))


def call(base, method, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://{base}{path}", data=data, method=method)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as e:
        status, text = e.code, e.read()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text.decode()


def get(path):
    return call(rest, "GET", path)[1]


def plain(value):
    """What a value says without stack frames and without the paths of this machine."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, str):
        value = re.sub(r"(\n\tat [^\n]*)+", r"\n\tat (frames)", value)
        value = re.sub(r"(file:)?(/[\w.+-]+){2,}/?", "/path", value) if "/tmp" in value or "/root" in value or "/home" in value else value
        return value if len(value) < 2000 else value[:2000]
    return value


def save(name, method, path, body=None, **places):
    """Asks, and keeps the answer."""
    status, answer = call(rest, method, path.format(**places), body)
    with open(os.path.join(here, name + ".json"), "w") as f:
        json.dump({"method": method, "path": path, "status": status, "body": plain(answer)}, f, indent=1, sort_keys=True)
        f.write("\n")
    print(status, method, path, flush=True)
    return answer


session = call(gateway, "POST", "/v1/sessions", {})[1]["sessionHandle"]


def sql(statement):
    operation = call(gateway, "POST", f"/v1/sessions/{session}/statements", {"statement": statement})[1]["operationHandle"]
    while True:
        status = call(gateway, "GET", f"/v1/sessions/{session}/operations/{operation}/status")[1]["status"]
        if status == "FINISHED":
            break
        if status == "ERROR":
            raise SystemExit(str(call(gateway, "GET", f"/v1/sessions/{session}/operations/{operation}/result/0")))
        time.sleep(0.2)
    return call(gateway, "GET", f"/v1/sessions/{session}/operations/{operation}/result/0")[1]


def wait(what, found):
    for _ in range(300):
        if value := found():
            return value
        time.sleep(0.3)
    raise SystemExit("no " + what)


def job(name, state):
    for j in get("/jobs/overview")["jobs"]:
        if j["name"] == name and j["state"] == state:
            return j["jid"]


topic = f"orders-{int(time.time())}"
jars = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "lowwater", "kafka-" + os.environ.get("KAFKA_VERSION", "4.4.0"), "*")
subprocess.run(["java", "-cp", jars, "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", kafka, "--create", "--topic", topic, "--partitions", "3"], check=True)
columns = "id BIGINT, kind STRING, placed TIMESTAMP(3), WATERMARK FOR placed AS placed - INTERVAL '1' SECOND"
stream = f"'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{kafka}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'properties.group.id' = 'g'"
sql(f"CREATE TABLE orders ({columns}) WITH ({stream})")
sql("CREATE TABLE generated (id BIGINT, kind STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '50', 'fields.kind.length' = '1')")
sql("CREATE TABLE nowhere (kind STRING, n BIGINT) WITH ('connector' = 'blackhole')")
sql("CREATE TABLE sequence (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '5', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000')")
sql("SET 'pipeline.name' = 'feed'")
sql("INSERT INTO orders SELECT id, kind, LOCALTIMESTAMP FROM generated")
sql("SET 'pipeline.name' = 'other'")
sql("INSERT INTO nowhere SELECT kind, id FROM generated")
sql("SET 'parallelism.default' = '2'")
sql("SET 'pipeline.name' = 'count'")
sql("SET 'execution.checkpointing.interval' = '2s'")
sql("INSERT INTO nowhere SELECT kind, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '1' SECOND)) GROUP BY kind, window_start, window_end")
sql("SET 'pipeline.name' = 'fail'")
sql("SET 'restart-strategy.type' = 'none'")
sql("INSERT INTO nowhere SELECT CAST(CONCAT('x', CAST(id AS STRING)) AS STRING), CAST(CONCAT('x', CAST(id AS STRING)) AS BIGINT) FROM sequence")

counting = wait("counting job", lambda: job("count", "RUNNING"))
feeding = wait("feeding job", lambda: job("feed", "RUNNING"))
other = wait("other job", lambda: job("other", "RUNNING"))
failed = wait("failed job", lambda: job("fail", "FAILED"))
wait("checkpoints", lambda: get(f"/jobs/{counting}/checkpoints")["counts"]["completed"] >= 3)
source, window = sorted((v["id"] for v in get(f"/jobs/{counting}")["vertices"]),
                        key=lambda v: not next(x for x in get(f"/jobs/{counting}")["vertices"] if x["id"] == v)["name"].startswith("Source"))
manager = get("/taskmanagers")["taskmanagers"][0]["id"]
get(f"/jobs/{counting}/vertices/{window}/metrics?get=0.numRecordsIn")
time.sleep(12)
where = {"jid": counting, "source": source, "window": window, "tm": manager, "failed": failed, "feed": feeding, "other": other}

for name, path in {
    "config": "/config", "overview": "/overview", "jobs": "/jobs", "jobs-overview": "/jobs/overview",
    "job": "/jobs/{jid}", "job-plan": "/jobs/{jid}/plan", "job-status": "/jobs/{jid}/status", "job-config": "/jobs/{jid}/config",
    "job-exceptions": "/jobs/{jid}/exceptions", "job-exceptions-failed": "/jobs/{failed}/exceptions", "job-failed": "/jobs/{failed}",
    "job-accumulators": "/jobs/{jid}/accumulators", "job-execution-result": "/jobs/{jid}/execution-result",
    "job-execution-result-failed": "/jobs/{failed}/execution-result",
    "job-jobmanager-config": "/jobs/{jid}/jobmanager/config", "job-jobmanager-environment": "/jobs/{jid}/jobmanager/environment",
    "checkpoints": "/jobs/{jid}/checkpoints", "checkpoints-config": "/jobs/{jid}/checkpoints/config",
    "checkpoints-off": "/jobs/{feed}/checkpoints", "checkpoints-config-off": "/jobs/{feed}/checkpoints/config",
    "vertex": "/jobs/{jid}/vertices/{window}", "vertex-source": "/jobs/{jid}/vertices/{source}",
    "vertex-subtasktimes": "/jobs/{jid}/vertices/{window}/subtasktimes", "vertex-taskmanagers": "/jobs/{jid}/vertices/{window}/taskmanagers",
    "vertex-accumulators": "/jobs/{jid}/vertices/{window}/accumulators", "vertex-watermarks": "/jobs/{jid}/vertices/{window}/watermarks",
    "vertex-watermarks-source": "/jobs/{jid}/vertices/{source}/watermarks", "vertex-backpressure": "/jobs/{jid}/vertices/{window}/backpressure",
    "vertex-flamegraph": "/jobs/{jid}/vertices/{window}/flamegraph",
    "subtasks-accumulators": "/jobs/{jid}/vertices/{window}/subtasks/accumulators",
    "subtask": "/jobs/{jid}/vertices/{window}/subtasks/0", "subtask-attempt": "/jobs/{jid}/vertices/{window}/subtasks/0/attempts/0",
    "subtask-attempt-accumulators": "/jobs/{jid}/vertices/{window}/subtasks/0/attempts/0/accumulators",
    "metrics-job": "/jobs/{jid}/metrics", "metrics-job-get": "/jobs/{jid}/metrics?get=uptime,numRestarts",
    "metrics-jobs": "/jobs/metrics", "metrics-jobs-get": "/jobs/metrics?get=uptime&agg=max",
    "metrics-vertex": "/jobs/{jid}/vertices/{window}/metrics", "metrics-vertex-source": "/jobs/{jid}/vertices/{source}/metrics",
    "metrics-vertex-get": "/jobs/{jid}/vertices/{window}/metrics?get=0.numRecordsIn,1.currentInputWatermark,0.busyTimeMsPerSecond,0.unknown",
    "metrics-subtask": "/jobs/{jid}/vertices/{source}/subtasks/0/metrics", "metrics-subtask-get": "/jobs/{jid}/vertices/{source}/subtasks/0/metrics?get=numRecordsOut",
    "metrics-subtasks": "/jobs/{jid}/vertices/{window}/subtasks/metrics", "metrics-subtasks-get": "/jobs/{jid}/vertices/{window}/subtasks/metrics?get=numRecordsIn,currentInputWatermark",
    "metrics-subtasks-agg": "/jobs/{jid}/vertices/{window}/subtasks/metrics?get=numRecordsIn&agg=min,skew&subtasks=0-1",
    "metrics-subtasks-bad-agg": "/jobs/{jid}/vertices/{window}/subtasks/metrics?get=numRecordsIn&agg=median",
    "metrics-jm-operator": "/jobs/{jid}/vertices/{source}/jm-operator-metrics",
    "metrics-taskmanagers": "/taskmanagers/metrics", "metrics-taskmanagers-get": "/taskmanagers/metrics?get=Status.JVM.Memory.Heap.Used",
    "metrics-taskmanager": "/taskmanagers/{tm}/metrics", "metrics-jobmanager": "/jobmanager/metrics",
    "metrics-jobmanager-get": "/jobmanager/metrics?get=numRunningJobs,taskSlotsTotal,taskSlotsAvailable",
    "taskmanagers": "/taskmanagers", "taskmanager": "/taskmanagers/{tm}",
    "jobmanager-config": "/jobmanager/config", "jobmanager-environment": "/jobmanager/environment",
    "applications-overview": "/applications/overview", "application": "/applications/{jid}", "application-exceptions": "/applications/{jid}/exceptions",
    "application-jobmanager-config": "/applications/{jid}/jobmanager/config",
    "datasets": "/datasets", "jars": "/jars", "rescales": "/jobs/{jid}/rescales/overview", "resource-requirements": "/jobs/{jid}/resource-requirements",
    "error-unknown-job": "/jobs/00000000000000000000000000000000", "error-bad-job": "/jobs/xyz",
    "error-unknown-vertex": "/jobs/{jid}/vertices/00000000000000000000000000000000", "error-bad-vertex": "/jobs/{jid}/vertices/xyz",
    "error-unknown-vertex-metrics": "/jobs/{jid}/vertices/00000000000000000000000000000000/metrics",
    "error-unknown-job-metrics": "/jobs/00000000000000000000000000000000/metrics",
    "error-unknown-subtask": "/jobs/{jid}/vertices/{window}/subtasks/99", "error-bad-subtask": "/jobs/{jid}/vertices/{window}/subtasks/x",
    "error-unknown-path": "/nothing/here", "error-unknown-checkpoint": "/jobs/{jid}/checkpoints/details/999999",
    "error-unknown-trigger": "/jobs/{jid}/savepoints/00000000000000000000000000000000", "error-unknown-taskmanager": "/taskmanagers/127.0.0.1:1-000000",
}.items():
    save(name, "GET", path, **where)
latest = get(f"/jobs/{counting}/checkpoints")["latest"]["completed"]["id"]
where["cp"] = latest
save("checkpoint", "GET", "/jobs/{jid}/checkpoints/details/{cp}", **where)
save("checkpoint-subtasks", "GET", "/jobs/{jid}/checkpoints/details/{cp}/subtasks/{window}", **where)
save("error-wrong-method", "POST", "/overview", {})
save("error-bad-body", "POST", "/jobs/{jid}/savepoints", {"cancel-job": "perhaps"}, **where)
save("error-bad-mode", "PATCH", "/jobs/{jid}?mode=stop", **where)
save("error-worse-mode", "PATCH", "/jobs/{jid}?mode=explode", **where)
save("error-cancel-unknown", "PATCH", "/jobs/00000000000000000000000000000000?mode=cancel", **where)
savepoints = "file://" + tempfile.mkdtemp()
save("savepoint-without-directory", "POST", "/jobs/{jid}/savepoints", {"cancel-job": False}, **where)
save("stop-without-savepoints", "POST", "/jobs/{feed}/stop", {"drain": False}, **where)


def trigger(kind, name, path, body, at):
    where["rid"] = save(name + "-trigger", "POST", path, body, **where)["request-id"]
    wait(kind, lambda: get(at.format(**where))["status"]["id"] == "COMPLETED")
    save(name, "GET", at, **where)


trigger("stop", "stop-without-checkpoints", "/jobs/{feed}/stop", {"drain": False, "targetDirectory": savepoints}, "/jobs/{feed}/savepoints/{rid}")
trigger("savepoint", "savepoint", "/jobs/{jid}/savepoints", {"cancel-job": False, "target-directory": savepoints}, "/jobs/{jid}/savepoints/{rid}")
trigger("savepoint", "savepoint-failed", "/jobs/{jid}/savepoints", {"target-directory": "/proc/nowhere"}, "/jobs/{jid}/savepoints/{rid}")
trigger("checkpoint", "checkpoint-by-hand", "/jobs/{jid}/checkpoints", {"checkpointType": "FULL"}, "/jobs/{jid}/checkpoints/{rid}")
trigger("stop", "stop", "/jobs/{jid}/stop", {"drain": False, "targetDirectory": savepoints}, "/jobs/{jid}/savepoints/{rid}")
wait("end", lambda: get(f"/jobs/{counting}")["state"] == "FINISHED")
save("job-finished", "GET", "/jobs/{jid}", **where)
save("job-execution-result-finished", "GET", "/jobs/{jid}/execution-result", **where)
save("job-after-stop-without-checkpoints", "GET", "/jobs/{feed}", **where)
save("cancel", "PATCH", "/jobs/{other}?mode=cancel", **where)
wait("cancellation", lambda: get(f"/jobs/{other}")["state"] == "CANCELED")
save("job-canceled", "GET", "/jobs/{other}", **where)
save("cancel-again", "PATCH", "/jobs/{other}?mode=cancel", **where)
save("stop-ended", "POST", "/jobs/{other}/stop", {"drain": False}, **where)
