// Package gaps reads the timestamps of a Kafka topic and says which out-of-orderness
// bound and which idle timeout fit them: it measures the gaps between records and their
// disorder by partition, and replays the topic through package progress for each choice,
// by a virtual clock, to find what would have been late, how long results would have
// waited, and whether partitions would have gone idle and come back late.
//
// It only reads: no consumer group, nothing is committed or created. It does not look at
// running jobs; that is package why's.
//
// Memory is bounded: distributions are histograms of fixed error (see Histogram), and what
// is replayed is kept at a few bytes a record, up to a limit that ends the reading.
//
// Append times are Kafka's record timestamps, made to never fall within a partition. Where
// the topic has log append times, that is when the records became readable; where it has
// create times it is the producers' clocks, the best that Kafka knows.
package gaps
