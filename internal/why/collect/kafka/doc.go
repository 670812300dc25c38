// Package kafka adds to evidence for package why what Kafka knows of the topics that a job
// reads: partitions, offsets, and what the last records look like.
//
// It only reads: it joins no consumer group, commits and creates nothing, and bounds what it
// reads in records, bytes and time. What it could not see it says.
package kafka
