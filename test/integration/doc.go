// Package integration tests lowwater against a real Apache Kafka. The tests
// have the build tag integration and find the broker in
// LOWWATER_TEST_BROKERS; `make integration` starts one, runs them and stops it.
//
// What the embedded broker of package lowwatertest can show is tested there, in
// virtual time. Only what depends on the real broker belongs here: that it
// agrees with the embedded one, and jobs from end to end.
package integration
