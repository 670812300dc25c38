// Package flinkwhy tests lowwater why on a real Flink: it runs jobs that are wrong in known
// ways on real Kafka topics, and checks what the command says of each.
//
// The tests have the build tag flink and find the cluster in LOWWATER_TEST_FLINK and the
// brokers in LOWWATER_TEST_BROKERS; run.sh starts both, runs the tests and stops them. What
// can be tested without Flink is tested beside the rules and the collectors.
package flinkwhy
