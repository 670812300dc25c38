// Package objectstores tests checkpoints in object stores on servers that others wrote and
// that speak the protocols of S3, Google Cloud Storage and Azure Blob Storage: what
// internal/checkpoint promises of a storage, jobs that fail and are restarted, two jobs
// with one directory, servers that are slow, silent or gone.
//
// It is a module of its own, so that the servers do not become dependencies of lowwater.
// run.sh fetches the one that is no Go module and runs the tests. What only the real
// services do, their throttling and their latency, is not tested here.
package objectstores
