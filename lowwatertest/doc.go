// Package lowwatertest tests jobs in virtual time: a night of silence takes
// milliseconds, no test sleeps, and a failure is the same in every run.
//
// There are two ways in. [Run] starts a Kafka inside the test, for whole jobs:
// create topics, append records when it suits, let hours pass, read results and
// [lowwater.Job.Status]. Its tests need the build tag synctests:
//
//	go test -tags synctests ./...
//
// The tag makes the mutexes of the Kafka client visible to testing/synctest. Without
// it most tests would pass and some would hang: where one goroutine of the client
// waits for a mutex that another holds while it waits for the clock, virtual time
// stands still. So Run fails at once without the tag. A file that uses Run usually
// begins with "//go:build synctests", and go test without the tag leaves it out.
//
// [Drive] needs neither Kafka nor a tag. It is for a part of a job, any number
// of streams in and out: push records, watermarks and idleness, let processing
// time pass, and look at what comes out, one step at a time.
//
// Both run the test in a bubble of testing/synctest. All its goroutines must end
// with it: those of jobs do, those that a user function starts must too. A bubble
// cannot wait for the outside world, so tests with real databases or sockets do
// not belong here. The virtual clock starts at midnight UTC, 2000-01-01.
//
// A part survives a restart if [Harness.Snapshot] and [Restore] say so: take a snapshot
// in one Drive and go on from it in the next, with another parallelism or a state of
// another version.
//
// The package is not for measuring; the embedded Kafka is made to be right, not fast.
package lowwatertest
