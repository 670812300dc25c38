// Package why says why event time in a job does not do what its author expects: which
// input holds the watermark back or lets it run ahead, by which numbers, and what to
// change in the code.
//
// Evidence is a plain value: what a collector saw of the job, of its source and of Kafka,
// at several moments, with everything it could not see marked as unknown. Diagnose is a
// pure function of it, and so is Hold, which follows the smallest watermark from an
// operator back to the split that pins it. Write prints a report for people; Report is
// what machines read.
//
// The package asks nobody anything and looks at no clock; collectors do, in packages of
// their own. It judges event time only: not throughput for its own sake, not memory, not
// checkpoints.
package why
